"""Links whose numbers come from outside compute what the tree computes; fits find the link that is there."""

import random
from itertools import islice, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.tree.random_trees import random_tree

from foretell.forecasters.tree import (
    FormulaLink,
    LinearLink,
    NoisyOrLink,
    Proposition,
    Tree,
    bayes_net_faults,
    compile_tree,
    leaves,
    run_many,
)
from foretell.forecasters.tree import formula as ex
from foretell.metrics import Floats
from foretell.studies import LinkKind, TreeWorld, TreeWorldSettings, draw_questions, draw_world
from foretell.studies.tree_world import chance_of, fitted_tree, parametric_tree, plain_formulas

LINKED = ("linear", "formula", "noisy_or", "average")


def by_tree(tree: Tree, leaf: Floats) -> Floats:
    circuit = compile_tree(tree)
    inputs = {claim: leaf[:, place] for place, claim in enumerate(leaves(tree))}
    return run_many(circuit, inputs, len(leaf))[circuit.claims[tree.root]]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), proper=st.booleans())
def test_a_sketch_computes_what_the_tree_computes(seed: int, proper: bool):
    rng = random.Random(seed)
    # Signed weights are sound only where nothing is shared; shared claims go with proper ones.
    tree = random_tree(rng, rng.randint(2, 6), rng.randint(1, 4), LINKED if proper else ("linear",), proper=proper)
    leaf = np.random.default_rng(seed).random((7, len(leaves(tree))))
    assert parametric_tree(tree).run(leaf) == pytest.approx(by_tree(tree, leaf), abs=1e-9)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), noise=st.floats(0, 2))
def test_shaken_weights_keep_their_sum_and_sign_and_chances_stay_chances(seed: int, noise: float):
    rng = random.Random(seed)
    made = parametric_tree(random_tree(rng, 4, 3, LINKED))
    found = made.shaken(noise, 50, np.random.default_rng(seed))
    for node in {number.node for number in made.numbers}:
        mine = [number for number in made.numbers if number.node == node and number.role == "weight"]
        if mine:
            total = np.sum([np.abs(found[number.input]) for number in mine], axis=0)
            assert total == pytest.approx(np.full(50, sum(abs(number.value) for number in mine)), abs=1e-9)
        for number in mine:
            assert (np.sign(found[number.input]) == np.sign(number.value)).all()
    for number in made.numbers:
        if number.role == "chance":
            assert ((found[number.input] >= 0) & (found[number.input] <= 1)).all()
        if noise == 0:
            assert found[number.input] == pytest.approx(np.full(50, number.value), abs=2e-6)


def test_weights_drawn_at_random_add_up_to_one():
    made = parametric_tree(random_tree(random.Random(1), 5, 3, ("linear",)))
    found = made.drawn(100, np.random.default_rng(0))
    for node in {number.node for number in made.numbers}:
        weights = [found[n.input] for n in made.numbers if n.node == node and n.role == "weight"]
        assert np.sum(weights, axis=0) == pytest.approx(np.ones(100))
    assert all((found[n.input] == 0).all() for n in made.numbers if n.role == "intercept")


def world_of(kind: LinkKind, seed: int = 2) -> tuple[TreeWorld, Floats, dict[str, Floats]]:
    rng = np.random.default_rng(seed)
    world = draw_world(TreeWorldSettings(kind=kind), rng)
    asked = draw_questions(world, 300, rng)
    return world, asked.leaf, dict(asked.chances)


@pytest.mark.parametrize(("kind", "rule"), [("linear", "linear"), ("linear", "bayes-net"), ("logic", "logic")])
def test_where_the_truth_is_of_the_rules_kind_the_rule_is_right(kind: LinkKind, rule: str):
    world, leaf, known = world_of(kind)
    assert by_tree(fitted_tree(world, rule, known), leaf) == pytest.approx(known["P0"], abs=1e-12)


def claim_errors(world: TreeWorld, rule: str, known: dict[str, Floats]) -> list[float]:
    """Mean squared error of every claim's link, its children's true chances given."""
    found: list[float] = []
    for claim, node in fitted_tree(world, rule, known).nodes.items():
        if node.children:
            alone = Tree(root=claim, nodes={claim: node, **{c: Proposition(id=c, claim=c) for c in node.children}})
            said = by_tree(alone, np.column_stack([known[child] for child in leaves(alone)]))
            found.append(float(np.mean((said - known[claim]) ** 2)))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_each_fit_is_nearest_among_the_links_it_may_choose_from(seed: int):
    """Free weights hold those of a Bayes net, these hold the mean; a noisy-or holds the plain OR and a constant."""
    world, _, known = world_of("logic", seed)
    free, chances, mean = (np.array(claim_errors(world, rule, known)) for rule in ("linear", "bayes-net", "average"))
    assert (free <= chances + 1e-6).all()
    assert (chances <= mean + 1e-6).all()
    parents = [node for node in world.tree.nodes.values() if node.children]
    for node, error in zip(parents, claim_errors(world, "noisy-or", known), strict=True):
        plain = 1 - np.prod([1 - known[child] for child in node.children], axis=0)
        assert error <= np.mean((plain - known[node.id]) ** 2) + 1e-6
        assert error <= np.var(known[node.id]) + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_no_plain_formula_is_nearer_than_the_nearest(seed: int):
    world, _, known = world_of("linear", seed)
    parents = [node for node in world.tree.nodes.values() if node.children]
    for node, error in zip(parents, claim_errors(world, "logic", known), strict=True):
        y = known[node.id]
        if min(np.cov(y, known[child])[0, 1] for child in node.children) < 0:
            continue
        whole_ones = islice(plain_formulas([ex.Var(child) for child in node.children]), 4)
        for formula, p in product(whole_ones, (0.0, 0.3, 0.6, 1.0)):
            said = chance_of(formula, {**known, ex.ASSUMPTION: np.full(len(y), p)})
            assert error <= np.mean((said - y) ** 2) + 1e-9


def test_links_are_of_the_rules_kind():
    world, _, known = world_of("logic")
    kinds = {"linear": LinearLink, "bayes-net": LinearLink, "logic": FormulaLink, "noisy-or": NoisyOrLink}
    for rule, kind in kinds.items():
        links = [node.link for node in fitted_tree(world, rule, known).nodes.values() if node.children]
        assert all(isinstance(link, kind) for link in links)
        if rule == "bayes-net":
            assert not any(bayes_net_faults(link) for link in links if isinstance(link, LinearLink))
        if rule == "linear":
            assert all(abs(link.intercept) <= 0.1 + 1e-9 for link in links if isinstance(link, LinearLink))
