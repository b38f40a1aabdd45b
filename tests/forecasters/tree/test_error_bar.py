"""How sure a tree's answer is, from leaves that were examined several times, and where the next dollar goes."""

import json
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.forecasters.tree.random_trees import claim, tree_of
from tests.forecasters.tree.scripted_tree import playing

from foretell.forecasters.tree import (
    Grounding,
    LinearLink,
    Tree,
    error_bar,
    evaluated,
    leaf_spread,
    leaves,
    next_trials,
    read_tree,
    tree_from_dict,
    tree_to_dict,
    write_tree,
)
from foretell.models import Request
from foretell.models.providers import model_name
from foretell.operations import grow_tree, show_tree, update_tree
from foretell.questions import InputError
from foretell.runs import Settings
from foretell.studies import draw_world
from foretell.studies.tree_noise import RepeatedGrounder, covered, spent

TRIALS = {"P1": (0.4, 0.6, 0.5, 0.5), "P2": (0.3, 0.3, 0.5, 0.5), "P3": (0.7,)}


def tree(together: dict[str, float] | None = None, trials: dict[str, tuple[float, ...]] = TRIALS) -> Tree:
    weights = {"P1": 0.5, "P2": 0.2, "P3": 0.1}
    top = claim("P0", children=tuple(weights), link=LinearLink(weights=weights, intercept=0.05))
    below = [
        claim(id, p=sum(one) / len(one), grounding=Grounding(grounder="g", trials=one if len(one) > 1 else ()))
        for id, one in trials.items()
    ]
    return evaluated(tree_of(replace(top, together=together or {}), *below))


def test_a_linear_tree_by_hand():
    found = error_bar(tree())
    assert found is not None
    sums = (0.02, 0.04)
    common = sum(sums) / 6
    single = [(one + 4 * common) / (3 + 4) for one in sums] + [common]
    assert found.contributions["P1"] == pytest.approx(0.25 * single[0] / 4)
    assert found.contributions["P3"] == pytest.approx(0.01 * single[2]), "examined once: the spread of the others"
    assert found.once == ("P3",)
    assert 0 <= found.low < found.p < found.high <= 1
    wider = error_bar(tree(), systematic_error=0.1)
    assert wider is not None
    assert wider.sd == pytest.approx(sqrt(found.sd**2 + 0.01 * (0.25 + 0.04 + 0.01)))
    assert error_bar(tree(trials={id: (0.5,) for id in TRIALS})) is None
    assert error_bar(tree(trials={id: (0.5, 0.5) for id in TRIALS})) is None, "who repeats himself shows nothing"
    assert "for P3, examined once, the spread of the others stands in" in str(found)


def test_judged_correlations_widen_or_narrow_the_bar():
    bars = [error_bar(tree({"P1 P2": rho})) for rho in (-0.8, 0.0, 0.8)]
    sds = [one.sd for one in bars if one is not None]
    assert sds == sorted(sds)
    assert len(set(sds)) == 3
    made = tree({"P1 P2": 0.8})
    assert tree_from_dict(tree_to_dict(made)).tree.nodes["P0"].together == {"P1 P2": 0.8}
    assert tree_from_dict(tree_to_dict(made)).tree.nodes["P1"].grounding == made.nodes["P1"].grounding


def test_errors_that_go_together_in_a_trial_are_measured():
    rng = np.random.default_rng(1)
    shared = rng.standard_normal(40)
    for rho in (0.0, 0.6):
        said = {
            f"P{n}": tuple(0.5 + 0.1 * (sqrt(rho) * shared + sqrt(1 - rho) * rng.standard_normal(40))) for n in range(8)
        }
        found = leaf_spread(dict.fromkeys(said, 0.1), said)
        assert found.correlation == pytest.approx(rho, abs=0.12)


def test_money_goes_where_slope_times_spread_is_largest():
    given = next_trials({"P1": 0.5, "P2": 0.5}, {"P1": (0.5,) * 6, "P2": (0.2, 0.8) * 3}, 6)
    assert given["P2"] > given["P1"]
    assert sum(given.values()) == 6


@pytest.mark.parametrize("kind", ["linear", "logic"])
def test_bars_hold_and_smart_spending_pays_in_a_simulated_world(kind: str, monkeypatch: pytest.MonkeyPatch):
    """A few worlds; `foretell study tree-uncertainty` prints the rest."""
    monkeypatch.setattr("foretell.studies.tree_noise.QUESTIONS", 10)
    held: list[float] = []
    gain: list[float] = []
    for place in range(6):
        rng = np.random.default_rng([3, place])
        world = draw_world("linear" if kind == "linear" else "logic", 10, rng)
        held += covered(world, RepeatedGrounder(correlation=0.3), 5, rng)[0].tolist()
        if place < 2:
            equal, smart = spent(world, RepeatedGrounder(), rng)
            gain.append(float(np.mean(equal - smart)))
    assert 0.8 <= np.mean(held) <= 0.98
    assert np.mean(gain) > 0


def test_a_tree_has_its_error_bar_from_the_start(tmp_path: Path):
    said: list[str] = []

    def moody(request: Request) -> str | None:
        if "/grounding" not in request.slot:
            return None
        said.append(request.slot)
        p = 0.2 + 0.1 * (len(said) % 3)
        return json.dumps({"report": "r", "key_factor": "k", "p": p})

    fields = {"grounder": "plain", "leaves": 3, "settings": Settings(home=tmp_path / "home"), "trials": 3}
    grown = grow_tree("The bridge opens by 1 May 2027.", model=model_name(playing(moody)), **fields)
    below = [grown.tree.nodes[id] for id in leaves(grown.tree)]
    assert all(len(one.grounding.trials) == 3 for one in below if one.grounding is not None)
    assert len(set(said)) == 3 * len(below)
    assert "The answer lies between" in str(grown)
    assert grown.tree.origin is not None
    assert grown.tree.origin.cost.calls == grown.usage.calls >= len(said)
    assert read_tree(grown.path).origin == grown.tree.origin
    assert grown.tree.origin.run == grown.run


def test_spending_and_showing(tmp_path: Path):
    file = tmp_path / "t.json"
    write_tree(file, tree())
    settings = Settings(home=tmp_path / "home")
    fields: dict[str, Any] = {"grounder": "plain", "settings": settings, "set": {"prices.agent": "1/2"}}
    model = playing()
    plan = update_tree(file, adaptive=0.03, plan=True, model=model_name(model), **fields).plan
    assert plan.steps[0].claim == "P1"
    assert (plan.dollars or 0) <= 0.03
    done = update_tree(file, adaptive=0.03, model=model_name(model), **fields)
    after = read_tree(file)
    assert done.failed == ()
    extra = {id: len(node.grounding.trials) for id, node in after.nodes.items() if node.grounding is not None}
    assert extra["P1"] > 4
    assert sum(extra.values()) - 8 in (8, 9), "P3 had one trial, which counts once more trials are there"
    with pytest.raises(InputError, match="a trial costs nothing"):
        update_tree(file, adaptive=0.03, model=model_name(model), grounder="plain", settings=settings)
    bar = error_bar(after)
    assert bar is not None
    shown = show_tree(file)
    assert "The answer lies between" in str(shown)
    assert shown.to_dict()["error_bar"]["sd"] == bar.sd
    for text in (shown.to_html(), shown.to_markdown()):
        assert "The answer lies between" in text
