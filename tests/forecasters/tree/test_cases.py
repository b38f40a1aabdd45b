"""Synthesis by cases: tables, chains of children that depend on each other, scenarios, and their circuits."""

import json
import random
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.tree.random_trees import CASE_KINDS, KINDS, by_worlds, claim, random_cases, random_tree, tree_of
from tests.forecasters.tree.stated import (
    NEEDED,
    OPTIONS,
    SCENARIOS,
    by_child,
    leaves_under,
    needed,
    stated,
    tree_by_cases,
)

from foretell.forecasters.tree import arithmetic as package
from foretell.forecasters.tree.arithmetic.circuit import Op, run_ops, slopes
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.arithmetic.error_bar import error_bar
from foretell.forecasters.tree.arithmetic.evaluation import evaluate, evaluated
from foretell.forecasters.tree.arithmetic.sensitivity import drivers, sensitivities, tornado
from foretell.forecasters.tree.case_links import AllLink, AnyLink, CasesLink, SplitLink, cases_link, situation_weights
from foretell.forecasters.tree.cases import (
    StatedCases,
    cases_in_words,
    given_steps,
    situation_table,
    situations,
    stated_situations,
)
from foretell.forecasters.tree.edits import SetP
from foretell.forecasters.tree.links import FormulaLink
from foretell.forecasters.tree.proposition import Grounding
from foretell.forecasters.tree.text import InvalidTree
from foretell.forecasters.tree.what_if import resynthesize, what_if

SEEDS = st.integers(0, 2**32)


# The acceptance tests of the design.


def test_four_conditions_in_sequence():
    assert evaluate(tree_by_cases(needed(), NEEDED)).p == pytest.approx(0.197, abs=5e-4)


def test_four_independent_conditions():
    assert evaluate(tree_by_cases(needed(given=()), NEEDED)).p == pytest.approx(0.075, abs=5e-4)


@pytest.mark.parametrize(("change", "p"), [({"P3": 0.0}, 0.0), ({"P3": 1.0}, 0.394), ({"P4": 0.95}, 0.211)])
def test_what_if_in_a_sequence_of_conditions(change: dict[str, float], p: float):
    assert what_if(tree_by_cases(needed(), NEEDED), change).p == pytest.approx(p, abs=5e-4)


def test_any_of_three_that_depend_on_each_other():
    cases = stated("any", none=0.01, all=0.99, only=[0.99] * 3, but=[0.99] * 3, given=[0.35, 0.18, 0.20])
    assert evaluate(tree_by_cases(cases, [0.35, 0.25, 0.30])).p == pytest.approx(0.572, abs=5e-4)


def test_weighing_with_an_obstacle():
    cases = stated(
        "weigh",
        none=0.05,
        all=0.93,
        only=[0.25, 0.18, 0.12, 0.15],
        but=[0.60, 0.75, 0.82, 0.45],
        hinders=["P4"],
    )
    assert evaluate(tree_by_cases(cases, [0.55, 0.40, 0.50, 0.35])).p == pytest.approx(0.439, abs=5e-4)


def test_at_least_two_of_three():
    cases = stated("at_least", none=0.02, all=0.97, only=[0.05] * 3, but=[0.95] * 3, k=2)
    assert evaluate(tree_by_cases(cases, [0.5] * 3)).p == pytest.approx(0.499, abs=5e-4)


def test_scenarios_answer_every_option():
    evaluation = evaluate(leaves_under(OPTIONS, SCENARIOS))
    assert evaluation.row == pytest.approx({"A": 0.497, "B": 0.3525, "C": 0.1505})
    assert evaluation.p == evaluation.row["A"]


# Tables.


def test_stated_cases_stand_as_stated_and_the_kind_fills_the_others():
    cases = needed()
    table = dict(zip(situations(cases.children), situation_table(cases), strict=True))
    assert {situation: table[situation] for situation in stated_situations(cases)} == stated_situations(cases)
    assert table[frozenset({"P1", "P4"})] == 0.0
    either = stated("any", none=0.1, all=0.9, only=[0.3, 0.4, 0.2, 0.2], but=[0.8] * 4)
    table = dict(zip(situations(either.children), situation_table(either), strict=True))
    assert table[frozenset({"P1", "P2"})] == pytest.approx(1 - 0.7 * 0.6 / 0.9)
    most = stated("at_least", none=0.0, all=1.0, only=[0.1] * 5, but=[0.9] * 5, k=3)
    table = dict(zip(situations(most.children), situation_table(most), strict=True))
    assert table[frozenset({"P1", "P2", "P3"})] == pytest.approx((5 * 0.9 + 1.0) / 6, abs=0.02)


def test_with_two_children_only_one_is_all_but_the_other():
    cases = stated("weigh", none=0.1, all=0.9, only=[0.3, 0.5])
    assert situation_table(cases) == (0.9, 0.3, 0.5, 0.1)
    assert cases_link(cases, by_child([0.5, 0.5])).but == {}
    without_only = StatedCases(kind="weigh", direction=cases.direction, none=0.1, all=0.9, but={"P1": 0.5, "P2": 0.3})
    assert situation_table(without_only) == (0.9, 0.3, 0.5, 0.1)


@pytest.mark.parametrize("kind", CASE_KINDS)
def test_cases_that_cannot_happen_may_be_left_out(kind: str):
    cases = stated(kind, none=0.1, all=0.9, only=[0.2] * 4, but=[0.8] * 4, k=2)
    some = {**cases.only, "P1": None}, {**cases.but, "P2": None}
    open_cases = StatedCases(
        kind=kind, direction=cases.direction, none=0.1, all=0.9, only=some[0], but=some[1], k=cases.k
    )
    table = situation_table(open_cases)
    assert len(table) == 16
    assert all(0.1 <= p <= 0.9 for p in table)


@given(SEEDS, st.sampled_from(CASE_KINDS), st.integers(2, 6))
@settings(max_examples=150)
def test_the_table_is_monotone_if_the_stated_cases_are(seed: int, kind: str, n: int):
    cases = random_cases(random.Random(seed), [f"P{place}" for place in range(n)], kind)
    if kind == "weigh":  # Log-odds are taken of chances within these limits.
        near = {situation: min(max(p, 0.005), 0.995) for situation, p in stated_situations(cases).items()}
        whole = frozenset(cases.children)
        cases = StatedCases(
            kind=kind,
            direction=cases.direction,
            none=near[frozenset()],
            all=near[whole],
            only={child: near[frozenset({child})] for child in whole},
            but={child: near[whole - {child}] for child in whole},
        )
    table = dict(zip(situations(cases.children), situation_table(cases), strict=True))
    for situation, child in product(table, cases.children):
        assert table[situation] <= table[situation | {child}] + 1e-12


# The circuit.


@given(SEEDS)
@settings(max_examples=150)
def test_compiled_tables_equal_enumeration_even_if_claims_are_shared(seed: int):
    rng = random.Random(seed)
    tree = random_tree(rng, rng.randint(1, 5), rng.randint(1, 4), (*CASE_KINDS, *CASE_KINDS, *KINDS))
    assert compile_tree(tree).probabilities() == pytest.approx(by_worlds(tree), abs=1e-12)


def chained(seed: int, kind: str) -> tuple[StatedCases, dict[str, float]]:
    """Return cases whose `given` is anywhere, also outside its bounds, and the children's probabilities."""
    rng = random.Random(seed)
    children = [f"P{place}" for place in range(1, rng.randint(3, 6))]
    p = {child: rng.uniform(0.02, 0.98) for child in children}
    free = random_cases(rng, children, kind)
    order = tuple(rng.sample(children, len(children)))
    given = {child: rng.random() for child in order}
    return (
        StatedCases(
            kind=kind,
            direction=free.direction,
            none=free.none,
            all=free.all,
            only=free.only,
            but=free.but,
            order=order,
            given=given,
        ),
        p,
    )


@given(SEEDS, st.sampled_from(["all", "any"]))
@settings(max_examples=150)
def test_a_chain_equals_enumeration_and_keeps_the_probability_of_every_child(seed: int, kind: str):
    cases, p = chained(seed, kind)
    link = cases_link(cases, p)
    steps = {step.child: step for step in given_steps(cases, p)}
    total = 0.0
    marginal = dict.fromkeys(p, 0.0)
    for situation, chance in zip(situations(cases.children), link.chances, strict=True):
        weight, holds = 1.0, True
        for child in cases.chain:
            own = steps[child].given if holds else steps[child].rest
            weight *= own if child in situation else 1 - own
            holds = holds and (child in situation) == (kind == "all")
        total += weight * chance
        for child in situation:
            marginal[child] += weight
    assert marginal == pytest.approx({child: cases.favourable(child, value) for child, value in p.items()}, abs=1e-9)
    top = claim("P0", children=tuple(p), link=link)
    tree = tree_of(top, *(claim(child, p=value) for child, value in p.items()))
    assert evaluate(tree).p == pytest.approx(total, abs=1e-6)
    assert sum(situation_weights(link, p)) == pytest.approx(1)


@given(SEEDS, st.sampled_from(["all", "any", "weigh", "at_least"]))
@settings(max_examples=100)
def test_a_child_that_is_set_to_0_or_1_restricts_the_table(seed: int, kind: str):
    cases, p = chained(seed, kind if kind in ("all", "any") else "all")
    if kind not in ("all", "any"):
        cases = random_cases(random.Random(seed), list(p), kind)
    link = cases_link(cases, p)
    tree = evaluated(
        tree_of(
            claim("P0", children=tuple(p), link=link),
            *(claim(child, p=value) for child, value in p.items()),
        )
    )
    for child, value in product(p, (0.0, 1.0)):
        weights = situation_weights(link, {**p, child: value})
        favourable = cases.favourable(child, value) == 1.0
        inside = [
            (weight, chance)
            for situation, weight, chance in zip(situations(cases.children), weights, link.chances, strict=True)
            if (child in situation) == favourable
        ]
        assert sum(weight for weight, _ in inside) == pytest.approx(1)
        expected = sum(weight * chance for weight, chance in inside)
        assert what_if(tree, {child: value}).p == pytest.approx(expected, abs=1e-9)


def test_a_certain_set_of_children_gives_the_stated_case():
    tree = evaluated(tree_by_cases(needed(), NEEDED))
    all_true = dict.fromkeys(by_child(NEEDED), 1.0)
    assert what_if(tree, all_true).p == pytest.approx(0.97)
    assert what_if(tree, {**all_true, "P1": 0.0}).p == pytest.approx(0.05)


def test_a_chain_reads_only_the_probabilities_of_its_children():
    """P1 and P2 share a leaf, but how they go together was stated."""
    cases = stated("all", none=0.0, all=1.0, only=[0.0, 0.0], given=[0.5, 0.8])
    leaf = claim("L", p=0.5)
    part = {"children": ("L",), "link": FormulaLink(expression="L")}
    link = cases_link(cases, {"P1": 0.5, "P2": 0.5})
    top = claim("P0", children=("P1", "P2"), link=link)
    tree = evaluated(tree_of(top, claim("P1", **part), claim("P2", **part), leaf))
    assert tree.nodes["P0"].p == pytest.approx(0.4)
    plain = claim("P0", children=("P1", "P2"), link=cases_link(stated("all", none=0.0, all=1.0, only=[0.0, 0.0]), {}))
    assert evaluate(tree_of(plain, claim("P1", **part), claim("P2", **part), leaf)).p == pytest.approx(0.5)
    above = claim("T", children=("P0", "P1"), link=FormulaLink(expression="P0 AND P1"))
    assert evaluate(tree_of(above, *tree.nodes.values())).p == pytest.approx(0.4 * 0.5)


def test_six_children_need_few_operations():
    cases = stated(
        "weigh", none=0.05, all=0.95, only=[0.1, 0.12, 0.14, 0.16, 0.18, 0.2], but=[0.7, 0.72, 0.74, 0.76, 0.78, 0.8]
    )
    assert len(compile_tree(tree_by_cases(cases, [0.5] * 6)).ops) < 300


@given(st.floats(0, 1), st.floats(1e-9, 1e9))
def test_odds_stay_within_0_and_1(p: float, ratio: float):
    ops: list[Op] = [("in", "a"), ("odds", 0, ratio)]
    value = run_ops(ops, {"a": p})[1]
    assert 0 <= value <= 1 + 1e-15
    assert value == p if p in (0.0, 1.0) else True


@given(st.floats(0.01, 0.99), st.floats(0.05, 20))
def test_the_slope_of_odds_is_their_derivative(p: float, ratio: float):
    ops: list[Op] = [("in", "a"), ("odds", 0, ratio)]
    step = 1e-6
    ahead, behind = (run_ops(ops, {"a": p + way})[1] for way in (step, -step))
    assert slopes(ops, run_ops(ops, {"a": p}), 1)[0] == pytest.approx((ahead - behind) / (2 * step), rel=1e-3)


def test_javascript_agrees_bit_for_bit(tmp_path: Path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    rng = random.Random(8)
    trees = [random_tree(rng, 4, 3, (*CASE_KINDS, *KINDS)) for _ in range(30)]
    for seed in range(30):
        cases, p = chained(seed, ("all", "any")[seed % 2])
        trees.append(
            tree_of(claim("P0", children=tuple(p), link=cases_link(cases, p)), *(claim(c, p=v) for c, v in p.items()))
        )
    trees.append(leaves_under(OPTIONS, SCENARIOS))
    cases = []
    for circuit in map(compile_tree, trees):
        name, p = rng.choice(list(circuit.inputs)), rng.choice([0.0, 1.0, rng.random()])
        inputs = {**circuit.inputs, **circuit.changes(name, p, circuit.inputs)}
        cases.append({"circuit": circuit.to_dict(), "set": [name, p], "inputs": inputs, "values": circuit.run(inputs)})
    assert any(op[0] == "odds" for case in cases for op in case["circuit"]["ops"])
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    (tmp_path / "circuit.mjs").write_text(Path(package.__file__).with_name("circuit.js").read_text())
    (tmp_path / "check.mjs").write_text(
        "import {readFileSync} from 'fs'; import {run, withInput} from './circuit.mjs';\n"
        "const cases = JSON.parse(readFileSync('cases.json'));\n"
        "const wrong = cases.filter(c => {\n"
        "  const inputs = withInput(c.circuit, c.circuit.inputs, ...c.set);\n"
        "  return !Object.entries(c.inputs).every(([id, p]) => inputs[id] === p)\n"
        "    || !run(c.circuit.ops, inputs).every((v, i) => v === c.values[i]); });\n"
        "console.log(cases.length, wrong.length);\n"
    )
    out = subprocess.run([node, "check.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert out.split() == [str(len(cases)), "0"]


# Sensitivity and error bars.


def test_importance_and_tornado_use_the_answer_at_0_and_1_and_slopes_the_derivative():
    tree = evaluated(tree_by_cases(needed(), NEEDED))
    ends = {bar.id: (bar.at_low, bar.at_high) for bar in tornado(tree)}
    for bar in tornado(tree):
        assert ends[bar.id] == tuple(what_if(tree, {bar.id: end}).p for end in (0.0, 1.0))
    for row in sensitivities(tree):
        low, high = ends[row.id]
        assert row.importance == pytest.approx((high - low) ** 2 * row.p * (1 - row.p))
        near = [what_if(tree, {row.id: row.p + way}).p for way in (1e-6, -1e-6)]
        assert row.slope == pytest.approx((near[0] - near[1]) / 2e-6, rel=1e-4)
    bent = next(row for row in sensitivities(tree) if row.id == "P2")
    assert bent.slope != pytest.approx(ends["P2"][1] - ends["P2"][0], rel=1e-2)


def test_a_driver_that_is_read_by_its_odds_turns_the_answer_where_it_says():
    cases = stated("all", none=0.0, all=1.0, only=[0.0, 0.0], given=[0.8, 0.6])
    tree = evaluated(tree_by_cases(cases, [0.8, 0.5]))
    driver = next(driver for driver in drivers(tree) if driver.id == "P2")
    assert driver.turns_at is not None
    assert what_if(tree, {"P2": driver.turns_at}).p == pytest.approx(0.5)
    assert driver.pull == pytest.approx((tree.nodes["P0"].p or 0) - what_if(tree, {"P2": 0.5}).p)
    low = evaluated(tree_by_cases(cases, [0.3, 0.2]))
    assert next(driver.turns_at for driver in drivers(low) if driver.id == "P2") is None


def test_the_error_bar_of_a_chain_follows_its_slopes():
    tree = tree_by_cases(needed(), NEEDED)
    trials = {"P1": (0.6, 0.7), "P2": (0.4, 0.5), "P3": (0.25, 0.35), "P4": (0.8, 0.9)}
    nodes = {id: claim(id, p=tree.nodes[id].p, grounding=Grounding(trials=ps)) for id, ps in trials.items()}
    bar = error_bar(evaluated(tree_of(tree.nodes["P0"], *nodes.values())))
    assert bar is not None
    assert bar.low < 0.197 < bar.high


# Scenarios.


def test_a_scenario_that_is_certain_leaves_nothing_to_the_others():
    tree = evaluated(leaves_under(OPTIONS, SCENARIOS))
    sure = what_if(tree, {"P2": 1.0})
    assert sure.row == pytest.approx({"A": 0.22, "B": 0.70, "C": 0.08})
    assert [sure.tree.nodes[id].p for id in ("P1", "P3")] == [0.0, 0.0]
    never = what_if(tree, {"P2": 0.0})
    assert [never.tree.nodes[id].p for id in ("P1", "P3")] == pytest.approx([0.5 / 0.65, 0.15 / 0.65])
    both = what_if(tree, {"P1": 0.6, "P2": 0.4})
    assert both.tree.nodes["P3"].p == pytest.approx(0.0)
    assert both.p == pytest.approx(0.6 * 0.78 + 0.4 * 0.22)
    with pytest.raises(InvalidTree, match="exclude each other"):
        resynthesize(tree, [SetP(id="P1", p=0.7), SetP(id="P2", p=0.7)])
    bars = {bar.id: (bar.at_low, bar.at_high) for bar in tornado(tree)}
    assert bars["P2"] == (never.p, sure.p)
    slope = next(row.slope for row in sensitivities(tree) if row.id == "P2")
    assert slope == pytest.approx(sure.p - never.p)


def test_what_no_scenario_covers_is_otherwise():
    link = SplitLink(then={"P1": (0.9,), "P2": (0.2,)}, otherwise=(0.5,))
    assert evaluate(leaves_under(link, [0.3, 0.4])).p == pytest.approx(0.27 + 0.08 + 0.15)
    mean = SplitLink(then={"P1": (0.9,), "P2": (0.2,)})
    assert evaluate(leaves_under(mean, [0.3, 0.4])).p == pytest.approx(0.27 + 0.08 + 0.3 * 0.55)


def test_scenarios_above_one_are_reported():
    evaluation = evaluate(leaves_under(SplitLink(then={"P1": (0.9,), "P2": (0.8,)}), [0.7, 0.6]))
    assert ["exclude each other, but add up to 1.3" in str(warning) for warning in evaluation.warnings] == [True]


def test_only_the_root_answers_options():
    top = claim("T", children=("P0",), link=FormulaLink(expression="P0"))
    with pytest.raises(InvalidTree, match="only the root"):
        evaluate(tree_of(top, *leaves_under(OPTIONS, SCENARIOS).nodes.values()))


# Words.


def test_cases_are_said_in_words():
    five = stated("all", none=0.0, all=0.97, only=[0.0] * 5, but=[0.0] * 5)
    said = cases_in_words(five, {"P3": "the court"})
    assert said.startswith("If all five come true the claim has 97 %; if only P1, P2, the court, P4 or P5 fails, 0 %;")
    against = stated("weigh", none=0.1, all=0.9, only=[0.3, 0.5], hinders=["P2"])
    assert cases_in_words(against) == (
        "If both turn out in its favour the claim has 90 %; if only P1 turns out in its favour, 30 %; if only P2 turns "
        "out in its favour, 50 %; if none turns out in its favour, 10 %."
    )


def test_links_describe_themselves():
    tree = evaluated(tree_by_cases(needed(), NEEDED))
    link = tree.nodes["P0"].link
    assert isinstance(link, AllLink)
    text = link.describe(tree.nodes["P0"].children)
    assert text.startswith("Of P1, P2, P3, and P4, all of them are needed. If all four come true the claim has 97 %")
    assert "Judged while all earlier ones are favourable: P2 69 %, P3 50 %, and P4 90 %." in text
    assert not isinstance(link, AnyLink)
    assert isinstance(link, CasesLink)
    assert "At most one of P1, P2, and P3 happens: if P1 happens, A 78 %, B 17 %, C 5 %" in OPTIONS.describe(())
