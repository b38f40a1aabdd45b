"""Children that overlap are warned of by every check: reading a file, checking it, and showing a tree."""

from dataclasses import replace
from pathlib import Path

import pytest

from foretell.forecasters.tree.arithmetic.evaluation import evaluate
from foretell.forecasters.tree.case_links import AllLink, SplitLink
from foretell.forecasters.tree.links import LinearLink, Link
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree
from foretell.forecasters.tree.tree_file import check_file, read_tree_file, write_tree
from foretell.operations.requests.trees import TreeShowRequest
from foretell.operations.tree import show_tree

VOTE = "The council votes for the bridge in May 2026."
CASES = [
    (VOTE, "In May 2026 the council votes for the bridge", "P1 and P2 say the same"),
    (VOTE, "The council does not vote for the bridge in May 2026.", "P1 and P2 say the opposite"),
    ("The council votes in May 2026.", VOTE, "P1 and P2 overlap: one contains the other"),
    (VOTE, "The council votes for the tunnel in May 2026.", ""),
    (
        "Ajax beats Feyenoord on 3 May 2026.",
        "Feyenoord beats Ajax on 3 May 2026.",
        "P1 and P2 overlap: they are worded",
    ),
]
LINEAR = LinearLink(weights={"P1": 0.5, "P2": 0.5})
NEVER = {"P1": 0.0, "P2": 0.0}
ALL = AllLink(direction={"P1": "helps", "P2": "helps"}, none=0.0, all=0.9, only=NEVER, but=NEVER)
SPLIT = SplitLink(then={"P1": (0.9,), "P2": (0.1,)}, otherwise=(0.5,))


def tree_of(first: str, second: str, link: Link = LINEAR, **fields: object) -> Tree:
    top = Proposition(id="P0", claim="The bridge opens in 2026.", children=("P1", "P2"), link=link)
    leaves = [Proposition(id="P1", claim=first, p=0.4), Proposition(id="P2", claim=second, p=0.3)]
    return Tree(root="P0", nodes={node.id: node for node in (replace(top, **fields), *leaves)})


def overlaps(tree: Tree) -> list[str]:
    return [problem.text for problem in evaluate(tree).warnings if problem.field == "children"]


@pytest.mark.parametrize(("first", "second", "expected"), CASES)
def test_every_check_warns_of_children_that_overlap(first: str, second: str, expected: str, tmp_path: Path):
    tree = tree_of(first, second)
    write_tree(tmp_path / "tree.json", tree)
    checks = [
        overlaps(tree),
        [problem.text for problem in check_file(tmp_path / "tree.json") if problem.field == "children"],
        [problem.text for problem in read_tree_file(tmp_path / "tree.json").warnings if problem.field == "children"],
        [
            warning
            for warning in show_tree(TreeShowRequest(tree=tmp_path / "tree.json")).warnings
            if "P1 and P2" in warning
        ],
        [warning for warning in show_tree(TreeShowRequest(tree=tree)).warnings if "P1 and P2" in warning],
    ]
    for texts in checks:
        assert len(texts) == bool(expected)
        assert all(expected in text for text in texts)


def test_steps_of_a_sequence_and_exclusive_scenarios_do_not_overlap():
    contained, alike = CASES[2][:2], CASES[4][:2]
    assert not overlaps(tree_of(*contained, link=ALL))
    assert not overlaps(tree_of(*alike, link=SPLIT))
    assert overlaps(tree_of(*CASES[0][:2], link=SPLIT)) == ["P1 and P2 say the same"]


def test_children_that_were_judged_to_move_together_are_named():
    judged = tree_of("Steel gets cheaper by May 2026.", VOTE, together={"P1 P2": -0.7})
    assert overlaps(judged) == ["P1 and P2 were judged to move together (correlation -0.7)"]
    assert not overlaps(tree_of("Steel gets cheaper by May 2026.", VOTE, together={"P1 P2": 0.5}))


def test_the_reason_why_a_leaf_was_examined_in_a_way_is_shown(capsys: pytest.CaptureFixture[str]):
    tree = tree_of("Steel gets cheaper by May 2026.", VOTE)
    route = ("search, for a claim about an event: the council decides",)
    leaf = replace(tree.nodes["P2"], grounding=Grounding(grounder="search", report="r", route=route))
    shown = show_tree(TreeShowRequest(tree=replace(tree, nodes={**tree.nodes, "P2": leaf})))
    print(shown)
    assert f"P2 was examined by {route[0]}" in " ".join(capsys.readouterr().out.split())
    assert {row["id"]: row["examined"] for row in shown.rows()} == {"P0": "", "P1": "", "P2": route[0]}
