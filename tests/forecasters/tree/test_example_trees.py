"""The example trees give the documented numbers."""

from pathlib import Path

import pytest

from foretell.forecasters.tree.edits import Unpin
from foretell.forecasters.tree.tree_file import check_file, read_tree_file
from foretell.forecasters.tree.what_if import compare_scenarios, resynthesize

EXAMPLES = Path(__file__).parents[3] / "examples" / "trees"


def test_nvda_gives_the_published_values():
    tree = read_tree_file(EXAMPLES / "nvda.json").tree
    published = {
        "P1.1": 0.855,
        "P1.2": 0.790,
        "P1.3": 0.815,
        "P1.4": 0.5586,
        "P1": 0.790,
        "P2": 0.904,
        "P3": 0.932,
        "P4": 0.755,
        "P0": 0.872,
    }
    assert {id: tree.nodes[id].p for id in published} == pytest.approx(published, abs=1e-3)


def test_notes_mention_printed_formulas_that_contradict_their_values():
    tree = read_tree_file(EXAMPLES / "nvda.json").tree
    for id, by_formula in (("P1.3", 0.851), ("P4", 0.785)):
        assert str(by_formula) in tree.nodes[id].notes[0]
        assert resynthesize(tree, [Unpin(id=id)]).nodes[id].p == pytest.approx(by_formula, abs=1e-3)


def test_central_bank_scenarios_give_the_documented_values():
    tree_file = read_tree_file(EXAMPLES / "central_bank.json")
    outcomes = {outcome.name: outcome for outcome in compare_scenarios(tree_file.tree, tree_file.scenarios.values())}
    assert tree_file.tree.nodes["P0"].p == pytest.approx(0.5382, abs=1e-4)
    assert outcomes["hard landing"].p == pytest.approx(0.7552, abs=1e-4)
    assert outcomes["no landing"].p == pytest.approx(0.3936, abs=1e-4)
    assert {change.id for change in outcomes["no landing"].changes} == {"P0", "P1", "P1.2", "P2", "P2.1"}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_every_example_is_valid(path: Path):
    assert all(problem.warning for problem in check_file(path))
    assert read_tree_file(path).warnings == ()
