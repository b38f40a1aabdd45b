"""Noise, and the theorem of the noise study: no rule loses less variance than a weighted sum of the leaves."""

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.tree.random_trees import KINDS, random_tree

from foretell.forecasters.tree.arithmetic.circuit import run_many
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.proposition import Tree, leaves
from foretell.metrics import Floats
from foretell.studies.leaf_noise import (
    DISTURBANCES,
    add_uniform_noise,
    replace_by_chance,
    reverse_by_chance,
    variance_lost,
)


@pytest.mark.parametrize("kind", DISTURBANCES)
@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
def test_disturbed_probabilities_stay_within_zero_and_one(kind: str, ratio: float):
    p = np.random.default_rng(0).random((500, 4))
    disturbed = DISTURBANCES[kind](p, ratio, np.random.default_rng(1))
    assert ((disturbed >= 0) & (disturbed <= 1)).all()
    if ratio == 0:
        assert (disturbed == p).all()


def test_each_kind_of_noise_has_its_distribution():
    p, rng = np.full(200_000, 0.3), np.random.default_rng(2)
    assert add_uniform_noise(p, 0.4, rng).mean() == pytest.approx(0.5, abs=0.001)
    assert add_uniform_noise(p, 0.4, rng).max() <= 0.7
    some = replace_by_chance(p, 0.25, rng)
    assert np.mean(some == 0.3) == pytest.approx(0.75, abs=0.005)
    assert some[some != 0.3].mean() == pytest.approx(0.5, abs=0.01)
    turned = reverse_by_chance(p, 0.25, rng)
    assert np.mean(turned == 0.7) == pytest.approx(0.25, abs=0.005)
    assert (reverse_by_chance(p, 1.0, rng) == 0.7).all()


def test_variance_lost_matches_hand_computation():
    before, after = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.2, 0.1, 0.4, 0.3])
    assert variance_lost(before, after) == pytest.approx(1 - 0.6**2)
    assert np.isnan(variance_lost(np.full(3, 0.5), before[:3]))


Law = list[tuple[float, float, float]]
"""Values of a leaf before and after noise, with the weight of the case."""


def law(rng: random.Random) -> Law:
    """Return the cases of a leaf with two values, each disturbed or not."""
    low, high = sorted((rng.random(), rng.random()))
    chance, ratio = rng.uniform(0.1, 0.9), rng.random()
    cases = []
    for value, weight in ((low, chance), (high, 1 - chance)):
        other = 1 - value if rng.random() < 0.5 else rng.random()
        cases += [(value, value, weight * (1 - ratio)), (value, other, weight * ratio)]
    return cases


def correlation(x: Floats, y: Floats, weight: Floats) -> float:
    a, b = x - weight @ x, y - weight @ y
    size = (weight @ a**2) * (weight @ b**2)
    return float(weight @ (a * b) / size**0.5) if size > 1e-24 else 0.0


def exactly(tree: Tree, laws: list[Law]) -> tuple[float, list[float]]:
    """Return the correlation of the root before and after noise over all cases, and that of every leaf."""
    cases = np.array(list(product(*laws)))
    weight = cases[:, :, 2].prod(axis=1)
    circuit, names = compile_tree(tree), leaves(tree)
    roots = [
        run_many(circuit, {name: cases[:, i, when] for i, name in enumerate(names)}, len(cases))[
            circuit.claims[tree.root]
        ]
        for when in (0, 1)
    ]
    single = [correlation(*(np.array(column) for column in zip(*law, strict=True))) for law in laws]
    return correlation(roots[0], roots[1], weight), single


@settings(max_examples=150)
@given(seed=st.integers(0, 10**9))
def test_root_correlation_is_at_most_the_largest_leaf_correlation(seed: int):
    """Formulas, noisy-ors, sums and means, claims shared or not: |r| of the root is at most the largest |ρ|."""
    rng = random.Random(seed)
    kinds = [kind for kind in KINDS if kind != "judged"]
    tree = random_tree(rng, rng.randint(2, 4), rng.randint(1, 4), kinds)
    root, single = exactly(tree, [law(rng) for _ in leaves(tree)])
    assert abs(root) <= max(map(abs, single)) + 1e-9


@settings(max_examples=60)
@given(seed=st.integers(0, 10**9))
def test_weighted_sum_has_the_correlation_of_its_leaves(seed: int):
    rng = random.Random(seed)
    tree = random_tree(rng, rng.randint(2, 4), rng.randint(1, 3), ("linear", "average"))
    same = law(rng)
    root, single = exactly(tree, [same for _ in leaves(tree)])
    if abs(root) > 1e-12:
        assert root == pytest.approx(single[0], abs=1e-9)
