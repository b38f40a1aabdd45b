"""Links by cases in tree files, edits, histories and exports."""

import json
import random
from itertools import product
from math import prod
from pathlib import Path

import pytest
from tests.forecasters.tree.random_trees import CASE_KINDS, claim, random_tree, tree_of
from tests.forecasters.tree.stated import NEEDED, OPTIONS, SCENARIOS, leaves_under, needed, stated, tree_by_cases
from tests.forecasters.tree.test_problog import batch, solved

from foretell.forecasters.tree.arithmetic.evaluation import evaluated, stale_claims
from foretell.forecasters.tree.case_links import AllLink, AtLeastLink, CasesLink, SplitLink
from foretell.forecasters.tree.edits import AddNode, RemoveNode, SetP
from foretell.forecasters.tree.exports import BayesVariable, bayes_net, link_in_numbers, to_bif, to_dot, to_problog
from foretell.forecasters.tree.history import TreeAuthor, commit_edits, read_history, replace_tree, tree_at
from foretell.forecasters.tree.links import FormulaLink
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.text import InvalidTree
from foretell.forecasters.tree.tree_file import check_file, read_tree, tree_from_dict, tree_to_dict, write_tree
from foretell.forecasters.tree.what_if import resynthesize, what_if

WEIGHED = stated("weigh", none=0.05, all=0.93, only=[0.25, 0.18, 0.12], but=[0.6, 0.75, 0.82], hinders=["P3"])
CHOSEN = stated("at_least", none=0.0, all=0.9, only=[0.1] * 3, but=[0.8] * 3, k=2)
ANY = stated("any", none=0.01, all=0.99, only=[0.99] * 3, but=[0.99] * 3, given=[0.35, 0.18, 0.20], outside="Luck.")


def trees() -> list[Tree]:
    return [
        evaluated(tree)
        for tree in (
            tree_by_cases(needed(), NEEDED),
            tree_by_cases(needed(given=()), NEEDED),
            tree_by_cases(ANY, (0.35, 0.25, 0.30)),
            tree_by_cases(WEIGHED, (0.5, 0.4, 0.3)),
            tree_by_cases(CHOSEN, (0.5, 0.4, 0.3)),
            leaves_under(OPTIONS, SCENARIOS),
            leaves_under(SplitLink(then={"P1": (0.9,), "P2": (0.2,)}, otherwise=(0.5,)), (0.3, 0.4)),
        )
    ]


@pytest.mark.parametrize("tree", trees(), ids=range(7))
def test_tree_files_hold_every_link(tree: Tree, tmp_path: Path):
    path = tmp_path / "t.json"
    write_tree(path, tree)
    again = read_tree(path)
    assert again == tree
    assert json.loads(path.read_text()) == json.loads(json.dumps(tree_to_dict(again)))
    assert [str(problem) for problem in check_file(path)] == []


def test_a_file_without_a_table_gets_it_from_the_cases():
    tree = trees()[0]
    data = tree_to_dict(tree)
    del data["nodes"]["P0"]["link"]["table"]
    assert evaluated(tree_from_dict(data).tree).nodes["P0"].p == tree.nodes["P0"].p


def test_a_file_without_odds_ratios_gets_them_from_given(tmp_path: Path):
    """Row 1 of the acceptance tests: 0.197 with `given`, 0.075 without."""
    data = tree_to_dict(trees()[0])
    link = data["nodes"]["P0"]["link"]
    ratios = link.pop("ratios")
    again = evaluated(tree_from_dict(data).tree)
    assert again.nodes["P0"].p == evaluated(trees()[0]).nodes["P0"].p == pytest.approx(0.197, abs=0.001)
    assert tree_to_dict(again)["nodes"]["P0"]["link"]["ratios"] == ratios
    data["nodes"]["P2"] = {"claim": "P2"}
    (tmp_path / "t.json").write_text(json.dumps(data))
    problems = [str(problem) for problem in check_file(tmp_path / "t.json")]
    assert any("`given` has no odds ratios (give every child a `p`" in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("place", "change", "problem"),
    [
        (0, {"all": 0.5}, "link.table: differs from the stated cases"),
        (0, {"table": [0.5]}, "link.table: has 1 entries instead of 16"),
        (0, {"none": 1.5}, "link.none: 1.5 is outside"),
        (0, {"direction": {"P1": "helps"}}, "link.direction: P2 is a child but has no number here"),
        (0, {"ratios": {"P1": [1.0], "P2": [1.0, 1.0], "P3": [1, 1], "P4": [1, 1]}}, "not two positive odds ratios"),
        (0, {"order": ["P1"]}, "link.order: P2 is a child but has no number here"),
        (0, {"direction": {"P1": "helps", "P2": "slows", "P3": "helps", "P4": "helps"}}, "neither helps nor hinders"),
        (4, {"k": 7}, "link.k: 7 is outside 1 to 3"),
        (5, {"options": ["A", "A", "B"]}, "an option is named twice"),
        (5, {"options": ["A", "B"]}, "link.then.P1: has 3 numbers instead of 2"),
        (5, {"then": {"P1": "x"}}, "link.then.P1: expected a list of numbers"),
        (6, {"otherwise": [1.5]}, "link.otherwise: has numbers outside"),
    ],
)
def test_faulty_links_are_reported(place: int, change: dict[str, object], problem: str, tmp_path: Path):
    data = tree_to_dict(trees()[place])
    data["nodes"]["P0"]["link"] |= change
    (tmp_path / "t.json").write_text(json.dumps(data))
    assert any(problem in str(found) for found in check_file(tmp_path / "t.json"))


def test_too_many_children_are_refused():
    nine = stated("weigh", none=0.0, all=1.0, only=[0.1] * 9, but=[0.9] * 9)
    with pytest.raises(InvalidTree, match="9 children are too many"):
        evaluated(tree_by_cases(nine, [0.5] * 9))


# Edits.


@pytest.mark.parametrize("place", range(7))
def test_a_new_or_removed_child_needs_a_new_judgement(place: int):
    tree = trees()[place]
    p = tree.nodes["P0"].p
    more = resynthesize(tree, [AddNode(parent="P0", node=claim("P9", p=0.0 if place > 4 else 0.7))])
    assert stale_claims(more) == ["P0"]
    assert more.nodes["P0"].stale == "P9 was added"
    assert more.nodes["P0"].p == pytest.approx(p), "the new child changes nothing until the link is judged again"
    back = resynthesize(more, [RemoveNode(id="P9")])
    assert back.nodes["P0"].p == pytest.approx(p)
    fewer = resynthesize(tree, [RemoveNode(id="P2")])
    assert fewer.nodes["P0"].stale == "P2 was removed"
    if not isinstance(tree.nodes["P0"].link, SplitLink) and place not in (0, 2):
        assert fewer.nodes["P0"].p == pytest.approx(p), "cases are averaged over the removed child"
    one = resynthesize(fewer, [RemoveNode(id=id) for id in fewer.nodes["P0"].children[1:]])
    assert isinstance(one.nodes["P0"].link, CasesLink | SplitLink)


def test_at_least_needs_no_more_than_are_left():
    link = trees()[4].nodes["P0"].link
    assert isinstance(link, AtLeastLink)
    assert link.without_child("P1", 0.5).without_child("P2", 0.5).k == 1


def test_history_replays_and_rolls_back(tmp_path: Path):
    path = tmp_path / "t.json"
    tree = trees()[0]
    write_tree(path, tree)
    commit_edits(path, [SetP(id="P3", p=1.0)], TreeAuthor(name="a"))
    commit_edits(path, [AddNode(parent="P0", node=claim("P5", p=0.5))], TreeAuthor(name="b"))
    assert [version.p for version in read_history(path)] == pytest.approx([0.1969, 0.3938, 0.3938], abs=1e-4)
    assert tree_at(path, 1) == tree
    replace_tree(path, tree_at(path, 1), TreeAuthor(message="rolled back"))
    assert read_tree(path) == tree
    options = tmp_path / "o.json"
    write_tree(options, trees()[5])
    commit_edits(options, [SetP(id="P1", p=1.0)], TreeAuthor(name="a"))
    assert read_tree(options).nodes["P0"].row == pytest.approx({"A": 0.78, "B": 0.17, "C": 0.05})
    assert read_history(options)[-1].changed == ("P1", "P2", "P3")
    assert tree_at(options, 1) == trees()[5]


# Exports.


def by_net(variables: list[BayesVariable]) -> dict[str, float]:
    """Return the probability of every variable of a Bayes net, by enumeration."""
    names = [variable.name for variable in variables]
    total = dict.fromkeys((variable.id for variable in variables), 0.0)
    for values in product((True, False), repeat=len(names)):
        world = dict(zip(names, values, strict=True))
        chances: list[float] = []
        for variable in variables:
            row = sum(2**at for at, name in enumerate(reversed(variable.parents)) if not world[name])
            chances.append(variable.chances[row] if world[variable.name] else 1 - variable.chances[row])
        weight = prod(chances)
        for variable in variables:
            total[variable.id] += weight * world[variable.name]
    return total


@pytest.mark.parametrize("tree", trees(), ids=range(7))
def test_bayes_nets_and_programs_give_the_same_probabilities(tree: Tree):
    net = by_net(bayes_net(tree))
    expected = {id: node.p for id, node in tree.nodes.items()}
    assert {id: net[id] for id in expected} == pytest.approx(expected, abs=1e-9)
    assert solved([to_problog(tree, queries=tree.nodes)]) == pytest.approx(
        {id.lower(): p for id, p in expected.items()}, abs=1e-9
    )
    assert to_bif(tree).count("probability (") == len(net)


def test_children_that_are_claims_of_their_own_are_read_as_variables_of_their_own():
    cases = stated("all", none=0.0, all=1.0, only=[0.0, 0.0], given=[0.5, 0.8])
    top = tree_by_cases(cases, (0.5, 0.5)).nodes["P0"]
    first = claim("P1", children=("L",), link=FormulaLink(expression="L"))
    tree = evaluated(tree_of(top, first, claim("P2", p=0.5), claim("L", p=0.5)))
    net = by_net(bayes_net(tree))
    assert net["P0"] == pytest.approx(tree.nodes["P0"].p, abs=1e-9)
    assert net["P0 reads P1"] == pytest.approx(0.5)
    assert solved([to_problog(tree)])["p0"] == pytest.approx(0.4, abs=1e-9)


def test_agrees_with_problog_on_tables_with_shared_claims():
    for start in range(0, 30, 5):
        rng = random.Random(start)
        batch([random_tree(rng, 3, 3, (*CASE_KINDS, "formula"), prefix=f"C{start + i}") for i in range(5)])


def test_drawings_and_numbers_show_the_cases():
    chain, _, _, weighed, _, options, split = trees()
    assert 'label="hinders"' in to_dot(weighed)
    assert 'label="0.78/0.17/0.05"' in to_dot(options)
    shown = link_in_numbers(chain, chain.nodes["P0"])
    assert shown.startswith("0.202 × 0.97 (all four come true)")
    assert shown.endswith("= 0.197")
    assert link_in_numbers(split, split.nodes["P0"]) == "0.300 × 0.9 + 0.400 × 0.2 + 0.3 × 0.5 = 0.500"
    sure = what_if(chain, {"P3": 0.0}).tree
    assert link_in_numbers(sure, sure.nodes["P0"]).endswith("= 0")
    assert isinstance(chain.nodes["P0"].link, AllLink)
