"""Rules that aggregate trials: symmetry, bounds, and failed trials."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.combine.aggregate import Aggregate, extremised, logit_mean, mean, median, trimmed

probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=9)


@pytest.mark.parametrize("rule", [mean, logit_mean, median, trimmed, extremised])
@given(p=probabilities, seed=st.integers(0, 99))
@settings(max_examples=40)
def test_rules_are_symmetric_in_trials_and_in_yes_and_no(rule, p, seed):
    shuffled = np.random.default_rng(seed).permutation(p)
    assert rule(shuffled) == pytest.approx(rule(p), abs=1e-12)
    assert rule(1 - np.asarray(p)) == pytest.approx(1 - rule(p), abs=1e-9)


@pytest.mark.parametrize("rule", [mean, logit_mean, median, trimmed])
@given(p=probabilities)
@settings(max_examples=40)
def test_result_is_within_the_range_of_the_trials(rule, p):
    assert min(p) - 1e-12 <= rule(p) <= max(p) + 1e-12


@given(p=probabilities, factor=st.floats(0.1, 5))
@settings(max_examples=40)
def test_extremised_stays_on_the_same_side_of_one_half(p, factor):
    result = extremised(p, factor)
    assert 0 <= result <= 1
    assert (result - 0.5) * (logit_mean(p) - 0.5) >= -1e-12


def test_rules_match_values_computed_by_hand():
    assert mean([0.1, 0.2, 0.6]) == pytest.approx(0.3)
    assert logit_mean([0.9, 0.9, 0.5]) == pytest.approx(1 / (1 + (1 / 9) ** (2 / 3)))
    assert trimmed([0.0, 0.2, 0.4, 0.6, 1.0], 0.2) == pytest.approx(0.4)
    assert extremised([0.8], 2) == pytest.approx(16 / 17)


def test_failed_trial_is_ignored_or_counted_as_one_half_as_in_the_paper():
    trials = [{"yes": 0.95}] * 4
    assert Aggregate().apply(trials, failed=1)["yes"] == pytest.approx(0.95)
    paper = Aggregate(failed_as_half=True).apply(trials, failed=1)["yes"]
    assert paper == pytest.approx(1 / (1 + (1 / 19) ** 0.8))
    assert Aggregate(rule="mean", failed_as_half=True).apply(trials, failed=1)["yes"] == pytest.approx(0.86)


def test_targets_are_aggregated_separately():
    assert Aggregate(rule="mean").apply([{"a": 0.2, "b": 1.0}, {"b": 0.0, "a": 0.4}]) == pytest.approx(
        {"a": 0.3, "b": 0.5}
    )


def test_invalid_trials_and_rules_raise_errors():
    with pytest.raises(ValueError, match="no trials"):
        Aggregate().apply([])
    with pytest.raises(ValueError, match="no rule"):
        Aggregate(rule="mode")
    with pytest.raises(ValueError, match="outside"):
        trimmed([0.1], 0.5)
    with pytest.raises(ValueError, match="positive"):
        extremised([0.1], 0)
