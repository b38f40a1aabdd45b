"""The distributions of one number agree with scipy's, which is too slow to import for a small score."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from foretell.metrics.student import normal_below, normal_quantile, student_below, student_quantile

FREEDOM = st.one_of(st.integers(1, 600), st.floats(0.5, 1e4))


@given(st.floats(-30, 30), FREEDOM)
def test_the_share_below_agrees_with_scipy(t: float, freedom: float) -> None:
    assert student_below(t, freedom) == pytest.approx(float(stdtr(freedom, t)), rel=1e-9, abs=1e-300)
    assert normal_below(t) == pytest.approx(float(ndtr(t)), rel=1e-11)


@given(st.floats(1e-6, 1 - 1e-6), FREEDOM)
def test_quantiles_agree_with_scipy(p: float, freedom: float) -> None:
    assert student_quantile(p, freedom) == pytest.approx(float(stdtrit(freedom, p)), rel=1e-9, abs=1e-12)
    assert normal_quantile(p) == pytest.approx(float(ndtri(p)), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("freedom", [1, 7.5, 10**6])
def test_ends_and_middle(freedom: float) -> None:
    assert [student_below(t, freedom) for t in (-math.inf, 0.0, math.inf)] == [0.0, 0.5, 1.0]
    assert math.isnan(student_below(math.nan, freedom))
