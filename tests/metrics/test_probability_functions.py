"""The distributions of one number agree with scipy's, which is too slow to import for a small score."""

import math

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.special import bdtr, betainc, betaincinv, nctdtr, ndtr, ndtri, pdtr, stdtr, stdtrit

from foretell.metrics.probability_functions import (
    beta_below,
    beta_quantile,
    binomial_below,
    noncentral_student_below,
    normal_below,
    normal_quantile,
    poisson_below,
    student_below,
    student_quantile,
)

FREEDOM = st.one_of(st.integers(1, 600), st.floats(0.5, 1e4))
SHAPE = st.floats(0.5, 2000)


@given(st.floats(-30, 30), FREEDOM)
def test_the_share_below_agrees_with_scipy(t: float, freedom: float) -> None:
    assert student_below(t, freedom) == pytest.approx(float(stdtr(freedom, t)), rel=1e-9, abs=1e-300)
    assert normal_below(t) == pytest.approx(float(ndtr(t)), rel=1e-11)


@given(st.floats(1e-6, 1 - 1e-6), FREEDOM)
def test_quantiles_agree_with_scipy(p: float, freedom: float) -> None:
    assert student_quantile(p, freedom) == pytest.approx(float(stdtrit(freedom, p)), rel=1e-9, abs=1e-12)
    assert normal_quantile(p) == pytest.approx(float(ndtri(p)), rel=1e-12, abs=1e-15)


@example(2.9e-162, 4.0, 1.0)
@example(1e200, 4.0, 1.0)
@given(st.floats(-12, 12), FREEDOM, st.floats(-10, 10))
def test_the_noncentral_distribution_agrees_with_scipy(t: float, freedom: float, shift: float) -> None:
    expected = float(nctdtr(freedom, shift, t))
    assume(not math.isnan(expected))  # scipy gives up on some negative numbers.
    assert noncentral_student_below(t, freedom, shift) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("shift", [45.0, 80.0])
def test_a_large_shift_does_not_underflow(shift: float) -> None:
    assert noncentral_student_below(shift, 1e6, shift) == pytest.approx(0.5, abs=1e-3)
    assert noncentral_student_below(2.0, 50, shift) == 0.0
    assert noncentral_student_below(5 * shift, 50, shift) == pytest.approx(1.0)


@given(SHAPE, SHAPE, st.floats(1e-6, 1 - 1e-6))
def test_beta_agrees_with_scipy(a: float, b: float, x: float) -> None:
    assert beta_below(a, b, x) == pytest.approx(float(betainc(a, b, x)), rel=1e-9, abs=1e-200)
    assert beta_quantile(x, a, b) == pytest.approx(float(betaincinv(a, b, x)), rel=1e-9)


@given(st.integers(1, 5000), st.floats(0.001, 0.999), st.floats(0, 0.999))
def test_counts_agree_with_scipy(n: int, p: float, part: float) -> None:
    k = int(part * n)
    assert binomial_below(k, n, p) == pytest.approx(float(bdtr(k, n, p)), rel=1e-8, abs=1e-200)
    assert poisson_below(k, p * n) == pytest.approx(float(pdtr(k, p * n)), rel=1e-8, abs=1e-200)


def test_certain_counts() -> None:
    assert [binomial_below(2, 3, p) for p in (0.0, 1.0)] == [1.0, 0.0]
    assert poisson_below(0, 0.0) == 1.0


@pytest.mark.parametrize("freedom", [1, 7.5, 10**6])
def test_ends_and_middle(freedom: float) -> None:
    assert [student_below(t, freedom) for t in (-math.inf, 0.0, math.inf)] == [0.0, 0.5, 1.0]
    assert math.isnan(student_below(math.nan, freedom))
