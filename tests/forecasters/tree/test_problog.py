"""A tree, its ProbLog program and its Bayes net give the same probabilities."""

import random
import re
from itertools import product

import pytest
from tests.forecasters.tree.random_trees import claim, random_tree, tree_of

from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.arithmetic.scaling import SCALINGS, bayes_net_faults, scale_tree, scaled
from foretell.forecasters.tree.exports import bayes_net, to_bif, to_problog
from foretell.forecasters.tree.links import AverageLink, FormulaAssumption, FormulaLink, LinearLink
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.text import InvalidTree

COMPUTED = ("linear", "formula", "noisy_or", "inhibited_noisy_or", "average")


def solved(programs: list[str]) -> dict[str, float]:
    problog = pytest.importorskip("problog")
    from problog.program import PrologString

    evaluate = problog.get_evaluatable().create_from(PrologString("\n".join(programs))).evaluate()
    return {str(atom): float(p) for atom, p in evaluate.items()}


def atom(id: str) -> str:
    return id.lower().replace(".", "_")


def batch(trees: list[Tree]) -> None:
    """Check several trees in one program, because starting ProbLog takes longer than solving a tree."""
    wanted = {atom(tree.root): evaluated(tree).nodes[tree.root].p for tree in trees}
    assert solved([to_problog(tree) for tree in trees]) == pytest.approx(wanted, abs=1e-9)


def test_agrees_with_problog_on_200_formulas():
    for start in range(0, 200, 20):
        rng = random.Random(start)
        batch([random_tree(rng, rng.randint(2, 6), 1, ("formula",), prefix=f"F{start + i}") for i in range(20)])


def test_agrees_with_problog_on_120_trees_with_shared_claims():
    for start in range(0, 120, 5):
        rng = random.Random(1_000 + start)
        sizes = [(rng.randint(2, 5), rng.randint(2, 4)) for _ in range(5)]
        batch([random_tree(rng, *size, COMPUTED, prefix=f"T{start + i}") for i, size in enumerate(sizes)])


def test_agrees_with_problog_at_every_claim():
    trees = [random_tree(random.Random(seed), 4, 5, prefix=f"T{seed}") for seed in range(4)]
    for tree in trees:
        wanted = {atom(id): node.p for id, node in evaluated(tree).nodes.items()}
        assert solved([to_problog(tree, queries=tree.nodes)]) == pytest.approx(wanted, abs=1e-9)


def linear_tree(weights: dict[str, float], intercept: float) -> Tree:
    top = claim("P0", children=tuple(weights), link=LinearLink(weights=weights, intercept=intercept))
    return tree_of(top, *(claim(id, p=0.2 + 0.1 * i) for i, id in enumerate(weights)))


def by_net(tree: Tree) -> float:
    """Return the root's probability by summing the net's joint table."""
    variables = bayes_net(tree)
    total = 0.0
    for values in product((True, False), repeat=len(variables)):
        world = {v.name: value for v, value in zip(variables, values, strict=True)}
        weight = 1.0
        for v in variables:
            row = sum((not world[parent]) << i for i, parent in enumerate(reversed(v.parents)))
            weight *= v.chances[row] if world[v.name] else 1 - v.chances[row]
        total += weight * world[variables[-1].name]
    return total


@pytest.mark.parametrize(
    ("weights", "intercept"),
    [
        ({"P1": 0.4, "P2": 0.5}, 0.05),
        ({"P1": 0.2, "P2": 0.3, "P3": 0.3, "P4": 0.15}, 0.05),
        ({"P1": 0.1, "P2": 0.2, "P3": 0.7}, 0.0),
        ({"P1": 0.0, "P2": 0.0}, 0.0),
        ({"P1": 1.0}, 0.0),
    ],
)
def test_a_linear_rule_equals_its_bayes_net_and_its_problog_program(weights: dict[str, float], intercept: float):
    tree = evaluated(linear_tree(weights, intercept))
    p = tree.nodes["P0"].p
    assert p is not None
    assert by_net(tree) == pytest.approx(p, abs=1e-9)
    assert solved([to_problog(tree)])["p0"] == pytest.approx(p, abs=1e-9)


@pytest.mark.parametrize(
    ("weights", "intercept", "reason"),
    [
        ({"P1": -0.1, "P2": 0.9}, 0.05, "P1 is -0.1, below 0"),
        ({"P1": 0.4, "P2": 0.5}, -0.05, "the intercept is -0.05, below 0"),
        ({"P1": 0.7, "P2": 0.5}, 0.0, "add up to 1.2, above 1"),
    ],
)
def test_weights_without_a_bayes_net_are_rejected_and_can_be_scaled(
    weights: dict[str, float], intercept: float, reason: str
):
    tree = evaluated(linear_tree(weights, intercept))
    for export in (to_problog, to_bif):
        with pytest.raises(InvalidTree, match=f"node P0, link: is not a conditional probability: .*{reason}") as caught:
            export(tree)
        assert "min-max, softmax" in str(caught.value)
    for how in SCALINGS:
        scaled = scale_tree(tree, how)
        node = scaled.nodes["P0"]
        assert isinstance(node.link, LinearLink)
        assert bayes_net_faults(node.link) == []
        assert node.notes[0].startswith(f"weights scaled by {how}")
        assert by_net(scaled) == pytest.approx(node.p, abs=1e-9)
        assert solved([to_problog(scaled)])["p0"] == pytest.approx(node.p, abs=1e-9)


def test_scaling_does_not_change_valid_and_pinned_links():
    fine = evaluated(linear_tree({"P1": 0.4, "P2": 0.5}, 0.05))
    assert scale_tree(fine, "softmax") == fine
    pinned = claim("P0", children=("P1",), link=LinearLink(weights={"P1": -0.4}), pinned=0.3)
    assert to_problog(evaluated(tree_of(pinned, claim("P1", p=0.5)))).count("::") == 1 + 1


def test_softmax_and_min_max_equal_a_manual_computation():
    link = LinearLink(weights={"P1": 0.6, "P2": 0.2, "P3": -0.2}, intercept=0.1)
    assert scaled(link, "min-max")[0].weights == pytest.approx({"P1": 0.6, "P2": 0.3, "P3": 0.0})
    soft = scaled(link, "softmax")[0]
    assert sum(soft.weights.values()) + soft.intercept == pytest.approx(1)
    assert soft.weights["P1"] / soft.weights["P2"] == pytest.approx(2.718281828459045**0.4)


def read_bif(text: str) -> dict[str, tuple[list[str], dict[tuple[str, ...], float]]]:
    """Read the part of the format that `to_bif` writes."""
    bif = {}
    plain = re.sub(r"//[^\n]*", "", text)
    for head, body in re.findall(r"probability \( ([^)]*) \) \{(.*?)\n\}", plain, flags=re.S):
        name, _, parents = head.partition(" | ")
        rows = {}
        for states, numbers in re.findall(r"(table|\([^)]*\)) ([^;]*);", body):
            key = () if states == "table" else tuple(states.strip("()").split(", "))
            true, false = map(float, numbers.split(", "))
            assert true + false == pytest.approx(1, abs=1e-15)
            rows[key] = true
        bif[name] = ([p for p in parents.split(", ") if p], rows)
    return bif


def test_the_bif_export_has_the_tables_of_the_bayes_net():
    for seed in range(20):
        tree = random_tree(random.Random(seed), 4, 3)
        variables = bayes_net(tree)
        rows = {v.name: (list(v.parents), v.chances) for v in variables}
        bif = read_bif(to_bif(tree))
        assert {n: (p, tuple(t.values())) for n, (p, t) in bif.items()} == rows
        assert all(list(t) == list(product(("true", "false"), repeat=len(p))) for p, t in bif.values())
        if len(variables) <= 10:
            assert by_net(tree) == pytest.approx(evaluated(tree).nodes[tree.root].p, abs=1e-9)


def test_special_characters_do_not_break_the_export_formats():
    odd = 'He said "no" { // */ -- <b>&amp; % \n p0. }'
    top = claim("P0", children=("P1.1", "P1_1", "p1_1"), link=AverageLink())
    leaves = [claim("P1.1", p=0.1), claim("P1_1", p=0.2), claim("p1_1", p=0.6)]
    tree = evaluated(
        Tree(
            root="P0",
            nodes={n.id: type(n)(id=n.id, claim=odd, children=n.children, link=n.link, p=n.p) for n in (top, *leaves)},
        )
    )
    assert solved([to_problog(tree)])["p0"] == pytest.approx(0.3, abs=1e-9)
    assert len(read_bif(to_bif(tree))) == 4
    assert len({v.name.lower() for v in bayes_net(tree)}) == 4


def test_a_formula_with_an_assumption_has_a_variable_for_it():
    top = claim(
        "P0",
        children=("P1",),
        link=FormulaLink(expression="P1 AND PA", assumption=FormulaAssumption(text="calm", p=0.5)),
    )
    tree = evaluated(tree_of(top, claim("P1", p=0.5)))
    assert [v.id for v in bayes_net(tree)] == ["P1", "P0:PA", "P0"]
    assert by_net(tree) == pytest.approx(0.25)


def test_a_table_that_is_too_large_is_rejected():
    names = tuple(f"P{i}" for i in range(1, 19))
    tree = evaluated(tree_of(claim("P0", children=names, link=AverageLink()), *(claim(n, p=0.5) for n in names)))
    with pytest.raises(InvalidTree, match="node P0, children: has 18 children"):
        to_bif(tree)
