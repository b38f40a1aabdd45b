"""Error bars of a tree's answer from repeated trials of its leaves, and the allocation of more trials."""

import json
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.forecasters.tree.random_trees import claim, tree_of
from tests.forecasters.tree.scripted_tree import playing

from foretell import grow_tree, update_tree
from foretell.api import show_tree
from foretell.forecasters.tree.arithmetic.error_bar import error_bar, error_bars, leaf_spread, next_trials
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.links import LinearLink
from foretell.forecasters.tree.proposition import Grounding, Tree, leaves
from foretell.forecasters.tree.tree_file import read_tree, tree_from_dict, tree_to_dict, write_tree
from foretell.models.model import Request
from foretell.models.providers.function import model_name
from foretell.questions.errors import InputError
from foretell.runs.settings import Settings
from foretell.studies.tree_noise import RepeatedGrounder, covered, spent
from foretell.studies.tree_world import draw_world

TRIALS = {"P1": (0.4, 0.6, 0.5, 0.5), "P2": (0.3, 0.3, 0.5, 0.5), "P3": (0.7,)}


def tree(together: dict[str, float] | None = None, trials: dict[str, tuple[float, ...]] = TRIALS) -> Tree:
    weights = {"P1": 0.5, "P2": 0.2, "P3": 0.1}
    top = claim("P0", children=tuple(weights), link=LinearLink(weights=weights, intercept=0.05))
    below = [
        claim(id, p=sum(ps) / len(ps), grounding=Grounding(grounder="g", trials=ps if len(ps) > 1 else ()))
        for id, ps in trials.items()
    ]
    return evaluated(tree_of(replace(top, together=together or {}), *below))


def test_the_error_bar_of_a_linear_tree_equals_a_manual_computation():
    bar = error_bar(tree())
    assert bar is not None
    sums = (0.02, 0.04)
    common = sum(sums) / 6
    single = [(total + 4 * common) / (3 + 4) for total in sums] + [common]
    assert bar.contributions["P1"] == pytest.approx(0.25 * single[0] / 4)
    assert bar.contributions["P3"] == pytest.approx(0.01 * single[2]), "a single trial gets the spread of the others"
    assert bar.once == ("P3",)
    assert 0 <= bar.low < bar.p < bar.high <= 1
    wider = error_bar(tree(), systematic_error=0.1)
    assert wider is not None
    assert wider.sd == pytest.approx(sqrt(bar.sd**2 + 0.01 * (0.25 + 0.04 + 0.01)))
    assert error_bar(tree(trials={id: (0.5,) for id in TRIALS})) is None
    assert error_bar(tree(trials={id: (0.5, 0.5) for id in TRIALS})) is None, "identical trials give no error bar"
    assert "for P3, examined once, the spread of the others is used" in str(bar)


def test_every_claim_with_others_below_it_has_an_error_bar_of_its_own(monkeypatch: pytest.MonkeyPatch):
    whole = tree()
    bars = error_bars(whole)
    assert bars[whole.root] == error_bar(whole)
    assert bars.keys() == {id for id, node in whole.nodes.items() if node.children}
    monkeypatch.setattr("foretell.forecasters.tree.arithmetic.error_bar.MOST_BARS", 0)
    assert error_bars(whole).keys() == {whole.root}, "a large tree has only that of its root"


def test_judged_correlations_widen_or_narrow_the_error_bar():
    bars = [error_bar(tree({"P1 P2": rho})) for rho in (-0.8, 0.0, 0.8)]
    sds = [bar.sd for bar in bars if bar is not None]
    assert sds == sorted(sds)
    assert len(set(sds)) == 3
    correlated = tree({"P1 P2": 0.8})
    assert tree_from_dict(tree_to_dict(correlated)).tree.nodes["P0"].together == {"P1 P2": 0.8}
    assert tree_from_dict(tree_to_dict(correlated)).tree.nodes["P1"].grounding == correlated.nodes["P1"].grounding


def test_correlated_errors_in_a_trial_are_measured():
    rng = np.random.default_rng(1)
    shared = rng.standard_normal(40)
    for rho in (0.0, 0.6):
        trials = {
            f"P{n}": tuple(0.5 + 0.1 * (sqrt(rho) * shared + sqrt(1 - rho) * rng.standard_normal(40))) for n in range(8)
        }
        spread = leaf_spread(dict.fromkeys(trials, 0.1), trials)
        assert spread.correlation == pytest.approx(rho, abs=0.12)


def test_more_trials_go_to_the_leaf_with_the_largest_slope_times_spread():
    added = next_trials({"P1": 0.5, "P2": 0.5}, {"P1": (0.5,) * 6, "P2": (0.2, 0.8) * 3}, 6)
    assert added["P2"] > added["P1"]
    assert sum(added.values()) == 6


@pytest.mark.parametrize("kind", ["linear", "logic"])
def test_error_bars_cover_and_adaptive_trials_help_in_a_simulated_world(kind: str, monkeypatch: pytest.MonkeyPatch):
    """Check a few worlds; `foretell study tree-uncertainty` prints more."""
    monkeypatch.setattr("foretell.studies.tree_noise.QUESTIONS", 10)
    coverage: list[float] = []
    gain: list[float] = []
    for place in range(6):
        rng = np.random.default_rng([3, place])
        world = draw_world("linear" if kind == "linear" else "logic", 10, rng)
        coverage += covered(world, RepeatedGrounder(correlation=0.3), 5, rng)[0].tolist()
        if place < 2:
            equal, smart = spent(world, RepeatedGrounder(), rng)
            gain.append(float(np.mean(equal - smart)))
    assert 0.8 <= np.mean(coverage) <= 0.98
    assert np.mean(gain) > 0


def test_a_tree_grown_with_trials_has_an_error_bar(tmp_path: Path):
    slots: list[str] = []

    def varying(request: Request) -> str | None:
        if "/grounding" not in request.slot:
            return None
        slots.append(request.slot)
        p = 0.2 + 0.1 * (len(slots) % 3)
        return json.dumps({"report": "r", "key_factor": "k", "p": p})

    fields = {"grounder": "plain", "leaves": 3, "settings": Settings(home=tmp_path / "home"), "trials": 3}
    grown = grow_tree("The bridge opens by 1 May 2027.", model=model_name(playing(varying)), **fields)
    below = [grown.tree.nodes[id] for id in leaves(grown.tree)]
    assert all(len(leaf.grounding.trials) == 3 for leaf in below if leaf.grounding is not None)
    assert len(set(slots)) == 3 * len(below)
    assert "The answer lies between" in str(grown)
    assert grown.tree.origin is not None
    assert grown.tree.origin.cost.calls == grown.usage.calls >= len(slots)
    assert read_tree(grown.path).origin == grown.tree.origin
    assert grown.tree.origin.run == grown.run


def test_adaptive_trials_are_planned_run_and_shown(tmp_path: Path):
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
    assert sum(extra.values()) - 8 in (8, 9), "the single trial of P3 counts if it gets more trials"
    with pytest.raises(InputError, match="a trial costs nothing"):
        update_tree(file, adaptive=0.03, model=model_name(model), grounder="plain", settings=settings)
    bar = error_bar(after)
    assert bar is not None
    shown = show_tree(file)
    assert "The answer lies between" in str(shown)
    assert shown.to_dict()["error_bar"]["sd"] == bar.sd
    for text in (shown.to_html(), shown.to_markdown()):
        assert "The answer lies between" in text
