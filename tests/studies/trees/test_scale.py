"""Trees cut off at fewer leaves: how they are cut, and the arithmetic of bias and spread."""

import numpy as np
import pytest

from foretell.forecasters.tree import LinearLink, Proposition, Tree, leaves
from foretell.metrics import Resampling
from foretell.operations import study as run_study
from foretell.report import cell_number as num
from foretell.studies import StudyData
from foretell.studies.trees import (
    NoiseStreams,
    SimulatedGrounder,
    Simulation,
    TreeWorld,
    TreeWorldSettings,
    draw_questions,
    draw_world,
)
from foretell.studies.trees.scale import SIZES, cut_tree, score_cut


def world() -> TreeWorld:
    """P0 = 0.5·P1 + 0.5·P2, P1 = 0.6·P1.1 + 0.4·P1.2."""
    nodes = {
        "P0": Proposition(id="P0", claim="r", children=("P1", "P2"), link=LinearLink(weights={"P1": 0.5, "P2": 0.5})),
        "P1": Proposition(
            id="P1", claim="a", children=("P1.1", "P1.2"), link=LinearLink(weights={"P1.1": 0.6, "P1.2": 0.4})
        ),
        **{id: Proposition(id=id, claim=id, p=0.5) for id in ("P2", "P1.1", "P1.2")},
    }
    return TreeWorld(tree=Tree(root="P0", nodes=nodes), settings=TreeWorldSettings(size=40.0))


def test_a_tree_is_taken_apart_until_it_has_enough_leaves():
    tree = world().tree
    assert list(cut_tree(tree, 1).nodes) == ["P0"]
    assert leaves(cut_tree(tree, 2)) == ["P1", "P2"]
    assert sorted(leaves(cut_tree(tree, 3))) == ["P1.1", "P1.2", "P2"]
    assert cut_tree(tree, 99) == cut_tree(tree, 3)


@pytest.mark.parametrize(
    ("size", "correlation", "variance"),
    [
        (1, 0.0, 0.05**2),
        (2, 0.0, (0.5**2 + 0.5**2) * 0.05**2),
        (3, 0.0, (0.3**2 + 0.2**2 + 0.5**2) * 0.05**2),
        (3, 1.0, 0.05**2),
        (3, 0.5, 0.5 * 0.38 * 0.05**2 + 0.5 * 0.05**2),
    ],
)
def test_spread_is_what_the_weights_on_the_ways_say(size: int, correlation: float, variance: float):
    """By hand: leaves have weights 0.3, 0.2, 0.5 in the root, whose squares add up to 0.38."""
    here = world()
    asked = draw_questions(here, 400, np.random.default_rng(0))
    grounder = SimulatedGrounder(bias=0.01, slant=0, sd=0.05, correlation=correlation, harder=1.0)
    found = score_cut(here, asked, size, grounder, [NoiseStreams.of(0, 0, run) for run in range(30)])
    assert found.predicted == pytest.approx(variance**0.5)
    assert found.spread == pytest.approx(variance**0.5, rel=0.03)
    assert found.bias == pytest.approx(0.01, abs=0.003), "weights add up to one: a common bias stays"


def test_more_leaves_less_error_and_less_so_where_they_err_together():
    settings = TreeWorldSettings(leaves=20)
    scene = Simulation(worlds=6, questions=40, settings=settings)
    found = run_study("tree-scale", StudyData(tables={}, simulation=scene, resampling=Resampling(draws=100)))
    spread: dict[str, list[float]] = {}
    for grid in found.tables:
        spread[grid.title] = [num(entry.values[2]) for entry in grid.rows]
        assert len(spread[grid.title]) == len(SIZES)
        assert spread[grid.title] == sorted(spread[grid.title], reverse=True)
        for entry in grid.rows:
            assert num(entry.values[2]) == pytest.approx(num(entry.values[3]), rel=0.08)
        errors = [num(entry.values[4]) for entry in grid.rows]
        assert errors[-1] < 0.1 * errors[0]
    alone, together = spread.values()
    assert together[-1] > 1.5 * alone[-1]
    assert f"{spread['Independent errors'][0]:.1f} to" in found.text


def test_a_world_is_never_smaller_than_it_is_cut():
    tree = draw_world(TreeWorldSettings(leaves=40), np.random.default_rng(3)).tree
    sizes = [len(leaves(cut_tree(tree, size))) for size in (1, 5, 10, 40)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 1
    assert sizes[-1] >= 40
