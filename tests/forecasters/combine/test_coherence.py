"""Projections: never worse on any possible outcome, idempotent, exact, and strict about invalid input."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foretell.forecasters.combine.coherence import at_most_one, exactly_one, falling, implied, rising
from foretell.metrics import chain_gap, exclusivity_score
from foretell.metrics.transforms import logit

chances = st.lists(st.floats(0, 1), min_size=2, max_size=7).map(np.array)
inner = st.lists(st.floats(0.01, 0.99), min_size=2, max_size=7).map(np.array)


def squared(q, y, w=1.0):
    return float(np.sum(w * (q - y) ** 2))


def log_loss(q, y):
    return float(-np.sum(np.log(np.where(y == 1, q, 1 - q))))


def steps(n):
    """Return all non-decreasing 0/1 vectors."""
    return [np.r_[np.zeros(k), np.ones(n - k)] for k in range(n + 1)]


@settings(max_examples=60)
@given(chances, st.integers(0, 10_000))
def test_exclusive_projections_never_raise_the_squared_error(p, seed):
    w = np.random.default_rng(seed).uniform(0.2, 5, len(p))
    truths = list(np.eye(len(p)))
    for weight in (None, w):
        q = exactly_one(p, weight)
        assert q.sum() == pytest.approx(1, abs=1e-12)
        assert q.min() >= 0
        capped = at_most_one(p, weight)
        assert capped.sum() <= 1 + 1e-12
        own = 1.0 if weight is None else weight
        assert all(squared(q, y, own) <= squared(p, y, own) + 1e-12 for y in truths)
        assert all(squared(capped, y, own) <= squared(p, y, own) + 1e-12 for y in [*truths, np.zeros(len(p))])
        np.testing.assert_allclose(exactly_one(q, weight), q, atol=1e-12)
        np.testing.assert_allclose(at_most_one(capped, weight), capped, atol=1e-12)


@settings(max_examples=60)
@given(inner)
def test_log_projections_never_raise_the_log_loss(p):
    q, line = exactly_one(p, distance="log"), rising(p, distance="log")
    assert q.sum() == pytest.approx(1, abs=1e-12)
    assert np.ptp(logit(q) - logit(p)) < 1e-7
    assert all(log_loss(q, y) <= log_loss(p, y) + 1e-9 for y in np.eye(len(p)))
    assert all(log_loss(line, y) <= log_loss(p, y) + 1e-9 for y in steps(len(p)))


@settings(max_examples=60)
@given(chances, st.integers(0, 10_000))
def test_chains_never_raise_the_error_and_end_in_order(p, seed):
    w = np.random.default_rng(seed).uniform(0.2, 5, len(p))
    for weight in (None, w):
        q = rising(p, weight)
        assert (np.diff(q) >= 0).all()
        own = 1.0 if weight is None else weight
        assert all(squared(q, y, own) <= squared(p, y, own) + 1e-12 for y in steps(len(p)))
        np.testing.assert_allclose(rising(q, weight), q, atol=1e-12)
        np.testing.assert_allclose(falling(p[::-1], None if weight is None else w[::-1])[::-1], q, atol=1e-12)


@settings(max_examples=40)
@given(chances)
def test_coherent_probabilities_are_not_changed(p):
    ordered = np.sort(p)
    assert rising(ordered).tolist() == ordered.tolist()
    assert rising(ordered, distance="log").tolist() == ordered.tolist()
    small = p / (len(p) + 1)
    assert at_most_one(small).tolist() == small.tolist()
    assert implied(ordered, list(pairwise(range(len(p))))).tolist() == ordered.tolist()


def test_chain_of_implications_gives_the_isotonic_projection():
    rng = np.random.default_rng(0)
    for distance in ("squared", "log"):
        for _ in range(20):
            p = rng.uniform(size=int(rng.integers(2, 9)))
            line = implied(p, list(pairwise(range(len(p)))), distance=distance)
            np.testing.assert_allclose(rising(p, distance=distance), line, atol=1e-10)


def test_rising_agrees_with_isotonic_regression_of_scikit_learn():
    isotonic = pytest.importorskip("sklearn.isotonic")
    rng = np.random.default_rng(1)
    p, w = rng.uniform(size=60), rng.uniform(0.1, 3, 60)
    expected = isotonic.IsotonicRegression().fit(np.arange(60), p, w).predict(np.arange(60))
    np.testing.assert_allclose(rising(p, w), expected, atol=1e-12)


def test_projections_match_values_computed_by_hand():
    assert exactly_one([0.5, 0.3]).tolist() == pytest.approx([0.6, 0.4])
    assert exactly_one([0.0, 0.0]).tolist() == [0.5, 0.5]
    assert exactly_one([0.9, 0.6], [1, 2]).tolist() == pytest.approx([0.9 - 1 / 3, 0.6 - 1 / 6])
    assert exactly_one([0.4], distance="log").tolist() == [1]
    assert rising([0.4, 0.2], [3, 1]).tolist() == pytest.approx([0.35, 0.35])
    # Equivalent claims get their mean, at any position.
    assert falling([0.2, 0.8, 0.4], level=[5, 3, 5]).tolist() == pytest.approx([0.3, 0.8, 0.3])


def test_projected_probabilities_have_perfect_consistency_scores():
    p = np.array([0.7, 0.6, 0.2])
    assert exclusivity_score(exactly_one(p), ["e"] * 3) == 1
    assert chain_gap(p) == pytest.approx(0.5)
    assert chain_gap(rising(p)) == 0


PAIRS = [(0, 1), (0, 2), (1, 3), (2, 3), (4, 3), (4, 5)]


@settings(max_examples=60)
@given(st.lists(st.floats(0, 1), min_size=6, max_size=6))
@example([0.9890635220514252, 0.0, 0.0, 0.0, 0.0, 0.0])
@example([1.0, 1.0, 1.0, 0.0, 1e-13, 0.0])
def test_implied_never_raises_the_squared_error_on_any_possible_outcome(values):
    p = np.array(values)
    possible = [np.array(y, float) for y in product((0, 1), repeat=6) if all(y[i] <= y[j] for i, j in PAIRS)]
    q = implied(p, PAIRS)
    assert ((q >= 0) & (q <= 1)).all()
    assert all(q[i] <= q[j] + 1e-9 for i, j in PAIRS)
    assert all(squared(q, y) <= squared(p, y) + 1e-9 for y in possible)
    np.testing.assert_allclose(implied(q, PAIRS), q, atol=1e-8)


def test_implied_gives_the_nearest_of_many_candidates():
    rng = np.random.default_rng(2)
    others = rng.uniform(size=(200_000, 4))
    pairs = [(0, 1), (2, 1), (2, 3)]
    others = others[np.all([others[:, i] <= others[:, j] for i, j in pairs], axis=0)]
    for _ in range(10):
        p = rng.uniform(size=4)
        assert squared(implied(p, pairs), p) <= np.min(np.sum((others - p) ** 2, axis=1)) + 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exactly_one([0.5, 1.2]), "outside"),
        (lambda: exactly_one([0.5, 0.5], [1, 0]), "weight"),
        (lambda: exactly_one([0.5, 0.4], distance="kl"), "neither squared nor log"),
        (lambda: exactly_one([]), "empty"),
        (lambda: rising([0.5, float("nan")]), "missing"),
        (lambda: rising([0.5, 0.4], level=[1]), "level has length 1"),
        (lambda: rising([0.5, 0.4], [1, -1]), "weight"),
    ],
)
def test_invalid_arguments_raise_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
