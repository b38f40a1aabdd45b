"""Probabilities of a tree equal those of its Bayes net, also if claims are shared."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.tree.random_trees import by_worlds, claim, formula_tree, random_expression, random_tree, tree_of

from foretell.forecasters.tree import formula as ex
from foretell.forecasters.tree.arithmetic import compiler
from foretell.forecasters.tree.arithmetic.circuit import run_many, run_ops
from foretell.forecasters.tree.arithmetic.compiler import TooManySharedClaims, compile_tree
from foretell.forecasters.tree.arithmetic.evaluation import evaluate
from foretell.forecasters.tree.links import (
    AverageLink,
    FormulaLink,
    InhibitedNoisyOrLink,
    JudgedLink,
    LinearLink,
    Link,
    NoisyOrLink,
)
from foretell.forecasters.tree.text import InvalidTree

SEEDS = st.integers(0, 2**32)
CHANCE = st.floats(0, 1)


@pytest.mark.parametrize(
    ("expression", "p"),
    [
        ("(P1 AND P2) OR (P1 AND P3)", 0.495),
        ("P1 OR P1", 0.5),
        ("P1 AND NOT P1", 0.0),
        ("P1 OR NOT P1", 1.0),
        ("NOT NOT P1", 0.5),
        ("P1 AND P2 AND P3", 0.405),
        ("P1 OR P2 OR P3", 0.995),
        ("P1 AND (P1 OR P2)", 0.5),
        ("(P1 AND P2) OR (P2 AND P3) OR (P1 AND P3)", 0.9),
        ("PA AND P1 OR PA AND P2", 0.95 * 0.4),
    ],
)
def test_formula_with_repeated_child_is_exact(expression: str, p: float):
    values = {name: value for name, value in {"P1": 0.5, "P2": 0.9, "P3": 0.9}.items() if name in expression}
    evaluation = evaluate(formula_tree(expression, values, 0.4 if "PA" in expression else None))
    assert evaluation.p == pytest.approx(p, abs=1e-12)


def test_a_formula_with_an_assumption_is_exact():
    tree = formula_tree("P1 OR (P2 AND P3) OR (P2 AND PA)", {"P1": 0.2, "P2": 0.6, "P3": 0.5}, 0.65)
    assert evaluate(tree).p == pytest.approx(1 - 0.8 * (1 - 0.6 * (1 - 0.5 * 0.35)), abs=1e-12)


@pytest.mark.parametrize(
    ("link", "p"),
    [
        (LinearLink(weights={"P1": 0.4, "P2": 0.5}, intercept=0.05), 0.05 + 0.12 + 0.4),
        (LinearLink(weights={"P1": -0.4, "P2": 0.5}, intercept=-0.05), -0.05 - 0.12 + 0.4),
        (AverageLink(), 0.55),
        (NoisyOrLink(strengths={"P1": 0.5, "P2": 0.25}, leak=0.1), 1 - 0.9 * 0.85 * 0.8),
        (InhibitedNoisyOrLink(strengths={"P1": 0.5}, inhibitors={"P2": 0.25}, leak=0.1), (1 - 0.9 * 0.85) * 0.8),
        (JudgedLink(p=0.77), 0.77),
    ],
)
def test_every_link_equals_a_manual_computation(link: Link, p: float):
    tree = tree_of(claim("P0", children=("P1", "P2"), link=link), claim("P1", p=0.3), claim("P2", p=0.8))
    assert evaluate(tree).p == pytest.approx(p, abs=1e-12)


def test_a_claim_used_in_two_branches_is_one_variable():
    a, b = claim("A", p=0.5), claim("B", p=0.5)
    left = claim("P1", children=("A", "B"), link=FormulaLink(expression="A AND B"))
    right = claim("P2", children=("A",), link=FormulaLink(expression="NOT A"))
    for expression, p in (("P1 AND P2", 0.0), ("P1 OR P2", 0.75)):
        top = claim("P0", children=("P1", "P2"), link=FormulaLink(expression=expression))
        assert evaluate(tree_of(top, left, right, a, b)).p == pytest.approx(p, abs=1e-12)


def test_a_linear_claim_between_a_leaf_and_a_formula_keeps_its_correlation():
    """P0 = A AND L, where P(L) = 0.2 + 0.6·[A], is 0.5 × 0.8, not 0.5 × 0.5."""
    linear = claim("L", children=("A",), link=LinearLink(weights={"A": 0.6}, intercept=0.2))
    top = claim("P0", children=("A", "L"), link=FormulaLink(expression="A AND L"))
    tree = tree_of(top, linear, claim("A", p=0.5), intercept_limit=0.2)
    assert evaluate(tree).p == pytest.approx(0.4, abs=1e-12)


@given(SEEDS)
@settings(max_examples=250)
def test_compiled_probabilities_equal_enumeration_of_all_worlds(seed: int):
    rng = random.Random(seed)
    tree = random_tree(rng, rng.randint(1, 5), rng.randint(1, 6))
    probabilities = compile_tree(tree).probabilities()
    assert probabilities == pytest.approx(by_worlds(tree), abs=1e-12)


@given(SEEDS)
@settings(max_examples=100)
def test_links_that_form_no_bayes_net_keep_their_signed_sums(seed: int):
    """Intermediate results are not clipped; only a claim's own probability is clamped to [0, 1]."""
    rng = random.Random(seed)
    tree = random_tree(rng, rng.randint(1, 4), rng.randint(1, 4), ("linear", "formula"), proper=False)
    circuit, worlds = compile_tree(tree), by_worlds(tree)
    uncapped = [("lin", 0.0, ((op[1], 1.0),)) if op[0] == "cap" else op for op in circuit.ops]
    raw = run_ops(uncapped, circuit.inputs)
    assert {id: raw[place] for id, place in circuit.claims.items()} == pytest.approx(worlds, abs=1e-12)
    assert all(0 <= p <= 1 for p in circuit.probabilities().values())


@given(SEEDS)
@settings(max_examples=60)
def test_run_many_agrees_with_single_runs(seed: int):
    circuit = compile_tree(random_tree(random.Random(seed), 4, 4))
    draws = {name: np.random.default_rng(seed).random(3) for name in circuit.inputs}
    many = run_many(circuit, draws, 3)
    for i in range(3):
        single = circuit.run({name: float(values[i]) for name, values in draws.items()})
        assert [float(values[i]) for values in many] == single


@given(SEEDS, CHANCE, CHANCE, CHANCE)
@settings(max_examples=60)
def test_formula_probabilities_obey_the_laws_of_probability(seed: int, a: float, b: float, c: float):
    values = {"P1": a, "P2": b, "P3": c}
    text = ex.to_text(random_expression(random.Random(seed), ["P1", "P2", "P3"]))

    def p(expression: str) -> float:
        return evaluate(formula_tree(expression, values)).p

    original = p(text)
    assert 0 <= original <= 1
    assert p(f"NOT ({text})") == pytest.approx(1 - original, abs=1e-12)
    assert p(f"NOT NOT ({text})") == pytest.approx(original, abs=1e-12)
    assert p(f"({text}) AND ({text})") == pytest.approx(original, abs=1e-12)
    assert p(f"({text}) OR P1 OR P2 OR P3") >= max(original, a, b, c) - 1e-12
    assert p(f"({text}) AND P1 AND P2 AND P3") <= min(original, a, b, c) + 1e-12


@given(SEEDS, CHANCE, CHANCE)
@settings(max_examples=60)
def test_formulas_without_not_are_monotone(seed: int, low: float, high: float):
    rng = random.Random(seed)
    names = ["P1", "P2", "P3", "P4"]
    text = ex.to_text(random_expression(rng, names)).replace("NOT ", "")
    others = {name: rng.random() for name in names[1:]}
    lower, upper = sorted((low, high))
    at_low, at_high = (evaluate(formula_tree(text, {"P1": p, **others})).p for p in (lower, upper))
    assert at_low <= at_high + 1e-12


@given(SEEDS)
@settings(max_examples=60)
def test_a_second_mention_of_a_child_changes_nothing(seed: int):
    rng = random.Random(seed)
    values = {f"P{i}": rng.random() for i in range(1, 5)}
    text = ex.to_text(random_expression(rng, list(values)))
    doubled = ex.to_text(ex.parse(text)).replace("P2", "(P2 AND P2)").replace("P3", "(P3 OR P3)")
    assert evaluate(formula_tree(doubled, values)).p == pytest.approx(evaluate(formula_tree(text, values)).p, abs=1e-12)


def test_long_chains_of_shared_claims_stay_small():
    """60 leaves are shared by neighbours, but each needs only a few operations."""
    leaves = [claim(f"L{i}", p=0.5 + i / 200) for i in range(61)]
    pairs = [
        claim(f"M{i}", children=(f"L{i}", f"L{i + 1}"), link=FormulaLink(expression=f"L{i} OR L{i + 1}"))
        for i in range(60)
    ]
    top = claim(
        "P0", children=tuple(f"M{i}" for i in range(60)), link=FormulaLink(expression=" AND ".join(m.id for m in pairs))
    )
    circuit = compile_tree(tree_of(top, *pairs, *leaves))
    assert len(circuit.ops) < 3_000
    # P(no two neighbours false), by a sum over the last leaf.
    true, false = leaves[0].p or 0, 1 - (leaves[0].p or 0)
    for leaf in leaves[1:]:
        true, false = (true + false) * (leaf.p or 0), true * (1 - (leaf.p or 0))
    assert circuit.probabilities()["P0"] == pytest.approx(true + false, abs=1e-12)


def test_linear_claims_may_share_any_number_of_leaves():
    leaves = [claim(f"L{i}", p=i / 40) for i in range(40)]
    names = tuple(leaf.id for leaf in leaves)
    sums = [claim(f"S{i}", children=names, link=LinearLink(weights={n: 0.02 for n in names})) for i in range(2)]
    top = claim("P0", children=("S0", "S1"), link=FormulaLink(expression="S0 AND S1"))
    circuit = compile_tree(tree_of(top, *sums, *leaves))
    p = {leaf.id: leaf.p or 0.0 for leaf in leaves}
    wanted = sum(0.02 * 0.02 * (p[a] if a == b else p[a] * p[b]) for a in names for b in names)
    assert circuit.probabilities()["P0"] == pytest.approx(wanted, abs=1e-12)


def test_too_much_sharing_names_the_shared_claims(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiler, "LARGEST", 5)
    rng = random.Random(1)
    leaves = [claim(f"L{i}", p=rng.random()) for i in range(8)]
    parts = []
    for i in range(8):
        three = rng.sample([leaf.id for leaf in leaves], 3)
        parts.append(claim(f"M{i}", children=tuple(three), link=FormulaLink(expression=" OR ".join(three))))
    used = {child for part in parts for child in part.children}
    top = claim(
        "P0", children=tuple(m.id for m in parts), link=FormulaLink(expression=" AND ".join(m.id for m in parts))
    )
    with pytest.raises(TooManySharedClaims) as caught:
        compile_tree(tree_of(top, *parts, *(leaf for leaf in leaves if leaf.id in used)))
    assert caught.value.claim == "P0"
    assert set(caught.value.shared) <= used
    assert "pin one of them" in str(caught.value)


def test_a_result_outside_the_unit_interval_is_an_error_at_its_node():
    low = claim("P1", children=("P2",), link=LinearLink(weights={"P2": 0.9}, intercept=-0.1))
    top = claim("P0", children=("P1",), link=AverageLink())
    with pytest.raises(InvalidTree, match=r"node P1, link: gives -0.01, outside \[0, 1\]"):
        evaluate(tree_of(top, low, claim("P2", p=0.1)))


def test_improper_joint_probabilities_give_a_warning():
    odd = claim("L", children=("A", "B"), link=LinearLink(weights={"A": 0.9, "B": -0.4}))
    top = claim("P0", children=("A", "L"), link=FormulaLink(expression="A AND L"))
    evaluation = evaluate(tree_of(top, odd, claim("A", p=0.5), claim("B", p=0.2)))
    assert [(w.node, w.warning) for w in evaluation.warnings] == [("L", True)]
    assert evaluation.p == pytest.approx(0.5 * (0.9 - 0.08), abs=1e-12)
