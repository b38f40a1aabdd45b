"""Numerical methods find what scipy's find."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression, nnls
from scipy.special import ndtr

from foretell.metrics.numerics import isotonic, minimum, nonnegative_least_squares, root
from foretell.metrics.transforms import normal_cdf, sigmoid

SEEDS = st.integers(0, 10**6)


@given(st.floats(-5, 5), st.floats(0.01, 50), st.sampled_from([1, -1]))
def test_a_root_is_found_however_steep_the_function_is(at: float, steep: float, sign: int) -> None:
    assert root(lambda x: sign * math.tanh(steep * (x - at)), -6.0, 7.0) == pytest.approx(at, abs=1e-9)


def test_a_root_at_an_end_is_returned_and_a_missing_one_refused() -> None:
    assert (root(lambda x: x, 0.0, 1.0), root(lambda x: x - 1, 0.0, 1.0)) == (0.0, 1.0)
    with pytest.raises(ValueError, match="same sign"):
        root(lambda x: x, 1.0, 2.0)


@given(st.floats(-5, 5), st.floats(0.1, 50))
def test_the_minimum_of_a_valley_is_found(at: float, steep: float) -> None:
    assert minimum(lambda x: steep * abs(x - at), -6.0, 7.0) == pytest.approx(at, abs=1e-8)


@given(SEEDS, st.integers(1, 30))
def test_isotonic_regression_agrees_with_scipy_also_with_ties(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    values, weight = rng.integers(0, 6, n).astype(np.float64), rng.random(n) + 0.1
    theirs = isotonic_regression(values, weights=weight)
    fitted, first = isotonic(values, weight)
    np.testing.assert_allclose(fitted, theirs.x, rtol=1e-12)
    assert (np.diff(fitted[first]) > 0).all()
    assert first[0] == 0


@given(SEEDS, st.integers(1, 12), st.integers(1, 9))
def test_nonnegative_least_squares_agrees_with_scipy(seed: int, rows: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, target = rng.integers(-2, 3, (rows, columns)).astype(np.float64), rng.normal(size=rows)
    x = nonnegative_least_squares(matrix, target)
    assert (x >= 0).all()
    assert float(np.linalg.norm(matrix @ x - target)) == pytest.approx(nnls(matrix, target)[1], abs=1e-9)


@given(SEEDS)
def test_functions_of_arrays_keep_the_shape(seed: int) -> None:
    z = np.random.default_rng(seed).normal(size=(3, 4)) * 10
    np.testing.assert_allclose(normal_cdf(z), ndtr(z), rtol=1e-11)
    np.testing.assert_allclose(sigmoid(z), 1 / (1 + np.exp(-z)), rtol=1e-12)
    assert np.isnan(normal_cdf(np.nan))
