"""Rules over trials with gaps, and exact expectations over choices of trials."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.studies.made_trials import made

from foretell.forecasters.combine.aggregate import mean
from foretell.studies.trials import RULES, expected_brier, infinite_trials_brier, pooled


@pytest.mark.parametrize("rule", RULES)
def test_failed_trials_are_left_out(rule: str):
    trials = np.array([[0.2, 0.7, np.nan], [0.4, np.nan, np.nan], [0.6, 0.9, np.nan]])
    p = pooled(RULES[rule], trials)
    assert p[0] == pytest.approx(RULES[rule](trials[:, :1])[0])
    assert p[1] == pytest.approx(RULES[rule](trials[[0, 2], 1:2])[0])
    assert np.isnan(p[2])


@pytest.mark.parametrize("rule", ["logit mean", "mean", "median"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_expected_brier_is_the_mean_over_all_choices(rule: str, k: int):
    examples = made(rounds=1, size=10)
    trials, outcome = examples.rows.trials, examples.outcome
    each = [(RULES[rule](trials[list(c)]) - outcome) ** 2 for c in combinations(range(3), k)]
    np.testing.assert_allclose(expected_brier(RULES[rule], examples, k), np.mean(each, axis=0), atol=1e-12)


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(2, 6))
def test_score_of_the_mean_is_linear_in_one_over_k(seed: int, trials: int):
    """E(k) = E(∞) + s²/k exactly, s² being the trials' variance with divisor K − 1."""
    examples = made(rounds=1, size=6, trials=trials, seed=seed)
    spread = examples.rows.trials.var(axis=0, ddof=1)
    for k in range(1, trials + 1):
        expected = infinite_trials_brier(examples) + spread / k
        np.testing.assert_allclose(expected_brier(mean, examples, k), expected, atol=1e-10)


def test_single_trial_has_no_extrapolated_score():
    assert np.isnan(infinite_trials_brier(made(rounds=1, size=4, trials=1))).all()
