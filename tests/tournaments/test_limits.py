"""Probabilities within a platform's limits."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.tournaments.submission import ProbabilityLimits, fit_to_limits

TAKEN = ProbabilityLimits(low=0.001, high=0.999)


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0, 1), min_size=2, max_size=30))
@settings(max_examples=100)
def test_options_sum_to_one_within_limits_and_keep_their_order(p: dict[str, float]):
    limits = fit_to_limits(p, TAKEN)
    assert sum(limits.values()) == pytest.approx(1, abs=1e-9)
    assert all(0.001 <= value <= 0.999 for value in limits.values())
    names = sorted(p, key=lambda name: p[name])
    if sum(p.values()) > 0:
        assert all(limits[a] <= limits[b] + 1e-8 for a, b in pairwise(names))


def test_even_the_smallest_numbers_keep_their_order():
    assert fit_to_limits({"a": 5e-324, "b": 1e-310}, TAKEN) == {"a": 0.001, "b": 0.999}


def test_probabilities_within_limits_are_unchanged():
    assert fit_to_limits({"a": 0.6, "b": 0.4}, TAKEN) == {"a": 0.6, "b": 0.4}


def test_certain_option_leaves_the_minimum_to_the_others():
    assert fit_to_limits({"a": 1.0, "b": 0.0, "c": 0.0}, TAKEN) == {"a": 0.998, "b": 0.001, "c": 0.001}


def test_too_many_options_are_rejected():
    with pytest.raises(ValueError, match="2000 options"):
        fit_to_limits({str(n): 0.5 for n in range(2000)}, TAKEN)


def test_complaint_names_the_clipped_value():
    assert TAKEN.complaint(0.5) == ""
    assert TAKEN.complaint(1.0, "Ann") == "Ann: 1 is outside 0.001 to 0.999, clipped it would be 0.999"
