import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.tree.random_trees import claim, random_tree, tree_of

from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.edits import (
    AddNode,
    MoveNode,
    RemoveNode,
    Scenario,
    SetClaim,
    SetGrounding,
    SetLink,
    SetP,
    SetReport,
    ShareNode,
    Unpin,
)
from foretell.forecasters.tree.links import AverageLink, LinearLink
from foretell.forecasters.tree.proposition import Grounding, Tree
from foretell.forecasters.tree.text import InvalidTree
from foretell.forecasters.tree.tree_file import (
    check_file,
    edits_from_json,
    read_tree,
    read_tree_file,
    tree_from_dict,
    tree_from_text,
    tree_text,
    tree_to_dict,
    write_tree,
)
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError

ISSUE = {
    "root": "P0",
    "nodes": {
        "P0": {
            "claim": "Top.",
            "children": ["P1", "P2"],
            "causality": "Both help.",
            "link": {"kind": "linear", "intercept": 0.05, "weights": {"P1": 0.4, "P2": 0.5}},
        },
        "P1": {"claim": "First.", "p": 0.8, "grounding": {"grounder": "search", "report": "…", "sources": ["a", "b"]}},
        "P2": {"claim": "Second.", "p": 0.6},
    },
}


def saved(tmp_path: Path, data: object) -> Path:
    path = tmp_path / "t.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def changed(**edits: object) -> dict[str, object]:
    """Return the example with fields replaced, such as `P0__link__kind="x"`; None removes a field."""
    data = json.loads(json.dumps(ISSUE))
    for path, value in edits.items():
        *parents, last = path.split("__")
        at = data if parents[:1] == ["top"] else data["nodes"]
        for step in [step for step in parents if step != "top"]:
            at = at.setdefault(step, {})
        if value is None:
            del at[last]
        else:
            at[last] = value
    return data


def test_the_documented_format_is_read_and_evaluated(tmp_path: Path):
    tree = read_tree(saved(tmp_path, ISSUE))
    assert tree.nodes["P0"].p == pytest.approx(0.05 + 0.32 + 0.3)
    assert tree.nodes["P1"].grounding == Grounding(grounder="search", report="…", sources=("a", "b"))


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_written_trees_read_back_unchanged(seed: int):
    tree = evaluated(random_tree(random.Random(seed), 3, 4))
    read = tree_from_text(tree_text(tree))
    assert evaluated(read.tree) == tree
    assert tree_from_dict(json.loads(json.dumps(tree_to_dict(tree)))).tree == read.tree


def test_all_fields_of_a_tree_are_written_and_read(tmp_path: Path):
    leaf = claim("P1", p=0.4, grounding=Grounding(grounder="g", key_factor="k", sources=("s",), notebook="n.ipynb"))
    failed = claim("P2", grounding=Grounding(grounder="g", error="timed out"))
    top = claim("P0", children=("P1", "P2"), link=AverageLink(), pinned=0.3, report="r", key_factor="f", notes=("n",))
    tree = evaluated(
        Tree(
            root="P0",
            nodes={n.id: n for n in (top, leaf, failed)},
            as_of=AsOf.day("2026-01-31", "live"),
            notes=("a", "b"),
            intercept_limit=0.3,
            missing=0.2,
        )
    )
    extra = LinearLink(weights={"P1": 0.2, "P2": 0.1, "P3": 0.5})
    scenarios = [
        Scenario(name="short", edits=(SetP(id="P1", p=0.0),), text="why"),
        Scenario(
            name="long",
            edits=(
                SetP(id="P1", p=0.1),
                Unpin(id="P0"),
                SetClaim(id="P1", claim="Other."),
                SetReport(id="P1", report="new", key_factor="kf"),
                SetGrounding(id="P1", p=0.3, grounding=Grounding(grounder="h", sources=("s",))),
                AddNode(parent="P0", node=claim("P3", p=0.5), weight=0.2),
                SetLink(id="P0", link=extra),
                ShareNode(id="P3", parent="P1", weight=0.5),
                MoveNode(id="P3", to="P0", weight=0.1, out_of="P1"),
                RemoveNode(id="P3"),
            ),
        ),
    ]
    path = tmp_path / "t.json"
    write_tree(path, tree, {s.name: s for s in scenarios})
    tree_file = read_tree_file(path)
    assert tree_file.tree == tree
    assert list(tree_file.scenarios.values()) == scenarios
    text = path.read_text()
    assert '   "claim": "Claim P1.",\n' in text
    assert '"set": {"P1": 0.0}' in text


@pytest.mark.parametrize(
    ("edits", "problem"),
    [
        ({"top__root": "P9"}, "root: there is no node P9"),
        ({"top__nodes": None}, "nodes: is missing"),
        ({"top__schema": "foretell/tree/9"}, "schema: 'foretell/tree/9' is not 'foretell/tree/1'"),
        ({"top__raot": "P0"}, "raot: is not a field here (did you mean root?)"),
        ({"P0__children": ["P1", "P2", "P7"]}, "node P0, children: there is no node P7"),
        ({"P0__children": ["P1", "P2", "P2"]}, "node P0, children: P2 is named twice"),
        ({"P0__children": "P1"}, "node P0, children: expected a list of texts, found 'P1'"),
        ({"P3": {"claim": "Alone.", "p": 0.1}}, "node P3: cannot be reached from the root"),
        ({"P1__claim": None}, "node P1, claim: is missing"),
        ({"P1__claim": " "}, "node P1, claim: is empty"),
        ({"P1__p": 1.4}, "node P1, p: 1.4 is outside [0, 1]"),
        ({"P1__p": "0.4"}, "node P1, p: expected a number, found '0.4'"),
        ({"P1__p": True}, "node P1, p: expected a number, found true or false"),
        ({"P1__prob": 0.4}, "node P1, prob: is not a field here"),
        ({"P1__pinned": 0.4}, "node P1, pinned: only parents can be overridden"),
        ({"P1__link": {"kind": "average"}}, "node P1, link: the node has a link but no children"),
        ({"P0__link__kind": "linaer"}, "node P0, link.kind: 'linaer' is not a kind of link"),
        ({"P0__link__kind": None}, "node P0, link.kind: is missing"),
        ({"P0__link__weights": {"P1": 0.4}}, "node P0, link.weights: P2 is a child but has no number here"),
        (
            {"P0__link__weights": {"P1": 0.4, "P2": 0.1, "P3": 0.1}},
            "node P0, link.weights: P3 is not a child; the children are P1, P2",
        ),
        ({"P0__link__weights__P1": 1.2}, "node P0, link.weights.P1: 1.2 is outside [-1, 1]"),
        ({"P0__link__weights__P1": float("nan")}, "node P0, link.weights.P1: nan is not a finite number"),
        ({"P0__link__intercept": 0.2}, "node P0, link.intercept: 0.2 is outside [-0.1, 0.1]"),
        ({"P0__link__weights": {"P1": 1.0, "P2": 0.9}}, "node P0, link: gives 1.39, outside [0, 1]"),
        ({"P0__link": {"kind": "formula", "expression": "P1 AND"}}, "node P0, link.expression: character 7"),
        ({"P0__link": {"kind": "formula", "expression": "P1"}}, "link.expression: P2 is a child but does not occur"),
        ({"P0__link": {"kind": "formula", "expression": "P1 OR P2 OR PA"}}, "PA occurs but nothing says what it is"),
        ({"P0__link": {"kind": "formula", "expression": "P1 OR P2 OR pa"}}, "did you mean PA?"),
        ({"P0__link": {"kind": "noisy_or", "strengths": {"P1": 1.2, "P2": 0}}}, "link.strengths.P1: 1.2 is outside"),
        (
            {"P0__link": {"kind": "inhibited_noisy_or", "strengths": {"P1": 1, "P2": 0}, "inhibitors": {"P1": 1}}},
            "P1 cannot both bring the claim about and prevent it",
        ),
        ({"P0__link": {"kind": "judged", "p": -1}}, "node P0, link.p: -1 is outside [0, 1]"),
        ({"top__as_of": "2026-13-01"}, "as_of: '2026-13-01' is not an ISO date"),
        ({"top__missing": 2}, "missing: 2 is outside [0, 1]"),
        ({"top__scenarios": {"a": {"edits": [{"edit": "set_q"}]}}}, "scenarios.a.edits.1.edit: 'set_q' is not an edit"),
        ({"P 1": {"claim": "c", "p": 0}}, "node P 1, id: cannot be an id"),
        ({"PA": {"claim": "c", "p": 0}}, "node PA, id: cannot be an id"),
    ],
)
def test_problems_name_the_node_and_the_field(tmp_path: Path, edits: dict[str, object], problem: str):
    path = saved(tmp_path, changed(**edits))
    with pytest.raises(InputError) as caught:
        read_tree(path)
    assert str(caught.value).startswith(f"{path}: ")
    problems = "\n".join(p.with_pointer() for p in check_file(path))
    assert problem in problems


def test_a_cycle_is_reported_with_its_claims(tmp_path: Path):
    data = changed(P1__children=["P2"], P1__link={"kind": "average"}, P2__children=["P1"], P2__link={"kind": "average"})
    with pytest.raises(InvalidTree, match="a claim cannot depend on itself: P1 → P2 → P1"):
        read_tree(saved(tmp_path, data))


def test_duplicate_ids_are_an_error(tmp_path: Path):
    text = json.dumps(ISSUE).replace('"P2": {', '"P1": {"claim": "Again.", "p": 0.1}, "P2": {', 1)
    with pytest.raises(InvalidTree, match=r"nodes\.P1: is given twice"):
        read_tree(saved(tmp_path, text))


def test_all_problems_are_listed_at_once(tmp_path: Path):
    path = saved(tmp_path, changed(P1__p=7, P2__p=-1, P0__link__weights__P1=3))
    assert len(check_file(path)) == 3
    with pytest.raises(InvalidTree, match=r"and 2 more: `foretell\.show_tree\(\)` lists all"):
        read_tree(path)


def test_the_intercept_limit_can_be_raised_in_the_file(tmp_path: Path):
    path = saved(tmp_path, changed(P0__link__intercept=0.2, P0__link__weights__P2=0.4, top__intercept_limit=0.25))
    assert read_tree(path).nodes["P0"].p == pytest.approx(0.2 + 0.32 + 0.24)


def test_a_written_probability_that_disagrees_gives_a_warning(tmp_path: Path):
    tree_file = read_tree_file(saved(tmp_path, changed(P0__p=0.9)))
    assert tree_file.tree.nodes["P0"].p == pytest.approx(0.67)
    assert "0.9 is written, but the tree gives 0.67" in str(tree_file.warnings[0])
    assert read_tree_file(saved(tmp_path, changed(P0__p=0.6704))).warnings == ()


def test_leaves_without_a_probability_are_read_with_a_warning(tmp_path: Path):
    tree_file = read_tree_file(saved(tmp_path, changed(P2__p=None)))
    assert tree_file.tree.nodes["P0"].incomplete == ("P2",)
    assert tree_file.tree.nodes["P0"].p == pytest.approx(0.05 + 0.32 + 0.25)
    assert "has no probability yet" in str(tree_file.warnings[0])


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"root": 1, "nodes": []}', "null"])
def test_files_without_a_tree_are_rejected(tmp_path: Path, text: str):
    with pytest.raises(InputError):
        read_tree(saved(tmp_path, text))


def test_missing_and_binary_files_are_rejected(tmp_path: Path):
    with pytest.raises(InputError, match="No such file"):
        read_tree(tmp_path / "none.json")
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        read_tree(tmp_path / "b")


def test_reasons_for_a_model_contain_the_caret():
    from foretell.forecasters.tree.edits import SetLink
    from foretell.forecasters.tree.links import FormulaLink
    from foretell.forecasters.tree.what_if import resynthesize

    tree = tree_of(claim("P0", children=("P1", "P2")), claim("P1", p=0.5), claim("P2", p=0.5))
    with pytest.raises(InvalidTree) as caught:
        resynthesize(tree, [SetLink(id="P0", link=FormulaLink(expression="P1 AND (P2 OR"))])
    assert caught.value.reasons.splitlines()[1:] == ["P1 AND (P2 OR", "             ^"]


def test_problems_of_json_edits_name_the_edit():
    with pytest.raises(InvalidTree, match=r"edits\.2\.p: is missing"):
        edits_from_json([{"edit": "unpin", "id": "P0"}, {"edit": "set_p", "id": "P1"}])
