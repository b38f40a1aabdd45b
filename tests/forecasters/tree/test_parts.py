"""How a claim follows from its children, as pages, reports and terminals show it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.forecasters.tree.random_trees import claim, tree_of
from tests.forecasters.tree.stated import NEEDED, OPTIONS, SCENARIOS, leaves_under, needed, stated, tree_by_cases

from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.case_links import cases_link
from foretell.forecasters.tree.cases import StatedCases
from foretell.forecasters.tree.links import JudgedLink, LinearLink
from foretell.forecasters.tree.parts import chances_in_chain, claim_parts, reasoning_lines, reconciliation_parts
from foretell.forecasters.tree.proposition import Tree, TreeOrigin
from foretell.forecasters.tree.tree_file import tree_from_dict, tree_to_dict
from foretell.forecasters.tree.what_if import what_if
from foretell.questions.forecast import Reconciliation

BOTH = Reconciliation(tree={"yes": 0.197}, direct={"yes": 0.18}, gap=0.11)


def chain() -> Tree:
    return evaluated(tree_by_cases(needed(), NEEDED))


def test_conditions_in_sequence_are_said_as_in_the_design():
    assert reasoning_lines(chain(), BOTH) == [
        "four conditions in sequence: tree 20 %, direct 18 % (agree)",
        "  P1 65 %   P2 then 69 %   P3 then 50 %   P4 then 90 %",
        "  P3 certain: 39 %   P3 fails: 0 %",
    ]


def test_a_tree_remembers_its_direct_estimate_and_says_how_it_was_changed():
    both = replace(BOTH, asked=True, apart=True, changes=("P1 70 % → 65 % (E2)",), report="Two views.")
    grown = replace(chain(), origin=TreeOrigin(question="?", reconciliation=both))
    again = tree_from_dict(tree_to_dict(grown)).tree
    assert again.origin == grown.origin
    assert reconciliation_parts(again) == {
        "blind": {"yes": 0.18},
        "tree": {"yes": 0.197},
        "gap": 0.11,
        "apart": True,
        "changes": ["P1 70 % → 65 % (E2)"],
        "weights": {"yes": {"direct": 0.75, "tree": 0.25}},
        "report": "Two views.",
    }
    lines = reasoning_lines(what_if(grown, {"P3": 1.0}).tree)
    assert lines[0] == "four conditions in sequence: tree 20 %, direct 18 % (stay apart); the tree now gives 39 %"
    assert lines[-2:] == ["  changed: P1 70 % → 65 % (E2)", "  on the difference: Two views."]
    assert reconciliation_parts(chain()) is None


@pytest.mark.parametrize(
    ("cases", "p", "first", "children"),
    [
        (
            stated("any", none=0.01, all=0.99, only=[0.99] * 3, but=[0.99] * 3, given=[0.35, 0.18, 0.20]),
            (0.35, 0.25, 0.30),
            "three ways, one is enough: 57 %",
            "  P1 35 %   P2 else 18 %   P3 else 20 %",
        ),
        (
            stated("at_least", none=0.02, all=0.97, only=[0.05] * 3, but=[0.95] * 3, k=2),
            (0.5, 0.5, 0.5),
            "three conditions, two are enough: 50 %",
            "  P1 50 %   P2 50 %   P3 50 %",
        ),
        (
            stated("all", none=0.0, all=1.0, only=[0.0, 0.0]),
            (0.5, 0.4),
            "two conditions, both needed: 20 %",
            "  P1 50 %   P2 40 %",
        ),
    ],
)
def test_every_kind_has_words(cases: StatedCases, p: Sequence[float], first: str, children: str):
    lines = reasoning_lines(evaluated(tree_by_cases(cases, p)))
    assert lines[:2] == [first, children]


def test_options_are_listed_with_both_values():
    tree = evaluated(leaves_under(OPTIONS, SCENARIOS))
    both = Reconciliation(tree=dict(tree.nodes["P0"].row), direct={"A": 0.5, "B": 0.35, "C": 0.15}, gap=0.01)
    assert reasoning_lines(tree, both)[:2] == ["three scenarios: agree", "  A: tree 50 %, direct 50 % (agree)"]
    parts = claim_parts(tree, "P0")
    assert parts is not None
    assert sum(row.adds for row in parts.sums) == pytest.approx(tree.nodes["P0"].p)


def test_situations_add_up_and_chances_have_bounds():
    tree = chain()
    parts = claim_parts(tree, "P0")
    assert parts is not None
    assert sum(row.adds for row in parts.sums) == pytest.approx(tree.nodes["P0"].p)
    assert sum(row.likely for row in parts.sums) == pytest.approx(1.0)
    assert (len(parts.cases), parts.filled) == (10, 6)
    assert parts.cases[0].words == "all four come true"
    second = parts.children[1]
    assert second.bounds == pytest.approx((0.1538, 0.6923), abs=1e-4)
    assert second.so_far == pytest.approx(0.65 * 0.69)
    assert second.without == 0.0
    assert chances_in_chain(tree, "P0") == {"P2": "then 69 %", "P3": "then 50 %", "P4": "then 90 %"}
    assert chances_in_chain(tree, "P1") == {}


def test_ends_of_a_child_are_those_of_a_what_if():
    inner = cases_link(stated("any", none=0.1, all=0.9, only=[0.8, 0.8], hinders=["P2"]), {"P1": 0.4, "P2": 0.3})
    outer = LinearLink(intercept=0.1, weights={"P3": 0.5})
    tree = evaluated(
        tree_of(
            claim("P0", children=("P3",), link=outer),
            claim("P3", children=("P1", "P2"), link=inner),
            claim("P1", p=0.4),
            claim("P2", p=0.3),
        )
    )
    top, below = claim_parts(tree, "P0"), claim_parts(tree, "P3")
    assert top is not None
    assert below is not None
    assert (top.heading, top.children[0].if_false, top.children[0].if_true) == ("", 0.1, pytest.approx(0.6))
    hinders = below.children[1]
    assert hinders.helps is False
    for end, p in ((hinders.if_false, 0.0), (hinders.if_true, 1.0)):
        assert end == pytest.approx(what_if(tree, {"P2": p}).tree.nodes["P3"].p)
    assert claim_parts(tree, "P1") is None
    judged = replace(tree, nodes={**tree.nodes, "P3": replace(tree.nodes["P3"], link=JudgedLink(p=0.5))})
    assert claim_parts(evaluated(judged), "P3") is None
