"""Shrinkage computed by hand, the choice on the grid, and leave-out against refitting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.combine.rules import refitted
from foretell.forecasters.combine.shrink import BayesShrink, FittedBayesShrink, FittedShrink, Shrink, TrialSpread
from foretell.metrics import mean_brier
from foretell.metrics.transforms import logit, sigmoid


def test_fitted_shrink_matches_values_computed_by_hand(make_rows):
    z = np.array([1.0, 2.0, 3.0])
    rows = make_rows(sigmoid(z)[:, None], price=0.3)
    share = 1 - 0.5 * z.std()
    assert FittedShrink(floor=0.2, slope=0.5).probabilities(rows) == pytest.approx(
        sigmoid(share * 2 + (1 - share) * logit(0.3))
    )
    assert FittedShrink(floor=0.9, slope=0.5).probabilities(rows) == pytest.approx(sigmoid(0.9 * 2 + 0.1 * logit(0.3)))


def test_anchor_is_the_price_else_the_base_rate_else_one_half(make_rows):
    rows = make_rows([[0.9] * 3, [0.1] * 3], price=[0.7, np.nan, np.nan], prior=[0.2, 0.2, np.nan])
    assert FittedShrink(floor=0.0, slope=2.0).probabilities(rows) == pytest.approx([0.7, 0.2, 0.5])


def test_single_answer_has_no_spread(make_rows):
    rows = make_rows([[0.9, 0.9], [np.nan, 0.1]], price=0.5)
    p = FittedShrink(floor=0.0, slope=2.0).probabilities(rows)
    assert p == pytest.approx([0.9, 0.5])
    assert TrialSpread.of(rows, 1e-4).std[0] == 0


def test_equal_trials_have_no_spread(make_rows):
    assert TrialSpread.of(make_rows(np.full((5, 3), [0.1, 0.3, 1.0])), 1e-4).std.tolist() == [0, 0, 0]


def test_fit_chooses_the_best_pair_of_the_grid(world):
    examples = world(150, seed=3)
    losses = [
        (mean_brier(FittedShrink(floor=f, slope=c).probabilities(examples.rows), examples.outcome), f, c)
        for f in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
        for c in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
    ]
    fitted = Shrink().fit(examples)
    assert mean_brier(fitted.probabilities(examples.rows), examples.outcome) == pytest.approx(min(losses)[0])
    assert fitted.slope > 0


def test_first_of_equally_good_pairs_is_chosen(make):
    examples = make([0.2, 0.7], [0, 1])
    assert (Shrink().fit(examples).floor, Shrink().fit(examples).slope) == (0, 0)


@settings(max_examples=15)
@given(st.integers(0, 1000), st.integers(1, 60), st.booleans())
def test_leave_out_equals_refitting_without_the_group(world, seed, n, weighted):
    examples = world(n, seed=seed)
    if weighted:
        examples.weight[:] = np.random.default_rng(seed).integers(0, 3, n)
    groups = np.unique(examples.rows.question, return_inverse=True)[1]
    again = refitted(Shrink(), examples, groups)
    assert Shrink().leave_out(examples, groups) == pytest.approx(again, abs=1e-12)
    rules, which = Shrink().rules_without(examples, groups)
    by_rule = np.array([rule.probabilities(examples.rows) for rule in rules])
    assert by_rule[which, np.arange(n)] == pytest.approx(again, abs=1e-12)


def test_posterior_mean_matches_values_computed_by_hand(make_rows):
    rule = FittedBayesShrink(between=0.5, within=1.0, degrees=2)
    z = np.array([0.0, 1.0, 2.0])
    noise = (2 * 1.0 + 2.0) / (2 + 3 - 1)
    share = 3 * 0.5 / (3 * 0.5 + noise)
    probabilities = rule.probabilities(make_rows(sigmoid(z)[:, None], price=0.1))
    assert probabilities == pytest.approx(sigmoid(share * 1.0 + (1 - share) * logit(0.1)))


def test_fit_recovers_the_variances(make):
    rng = np.random.default_rng(0)
    n = 20_000
    anchor = rng.normal(0, 1, n)
    mean = anchor + rng.normal(0, 0.7, n)
    trials = mean + rng.normal(0, 0.5, (5, n))
    fitted = BayesShrink().fit(make(sigmoid(trials), np.zeros(n), price=sigmoid(anchor)))
    assert fitted.between == pytest.approx(0.49, rel=0.05)
    assert fitted.within == pytest.approx(0.25, rel=0.05)


def test_variances_of_few_trials_match_values_computed_by_hand(make):
    # One question with log-odds 1 and 3, whose anchor is 0, and one with a single trial at 2.
    z = np.array([[1.0, 2.0], [3.0, np.nan]])
    fitted = BayesShrink().fit(make(sigmoid(z), [0, 1], price=0.5))
    assert fitted.within == pytest.approx(2.0), "squares of 1 and 1, and one degree of freedom"
    assert fitted.between == pytest.approx(((4 - 2 / 2) + (4 - 2 / 1)) / 2)


def test_single_trials_are_not_shrunk(make):
    examples = make([0.2, 0.9], [0, 1], price=0.5)
    fitted = BayesShrink().fit(examples)
    assert fitted.within == 0
    assert fitted.probabilities(examples.rows) == pytest.approx([0.2, 0.9])


def test_forecaster_that_is_only_noise_around_the_price_is_shrunk_to_it(make):
    rng = np.random.default_rng(1)
    anchor = rng.normal(0, 1, 400)
    examples = make(sigmoid(anchor + rng.normal(0, 1, (5, 400))), np.zeros(400), price=sigmoid(anchor))
    fitted = BayesShrink().fit(examples)
    assert fitted.between < 0.05
    assert np.abs(logit(fitted.probabilities(examples.rows)) - anchor).mean() < 0.2


def test_bayes_shrink_does_not_use_outcomes(world):
    examples = world(50)
    flipped = type(examples)(
        rows=examples.rows, outcome=1 - examples.outcome, known_on=examples.known_on, weight=examples.weight
    )
    assert BayesShrink().fit(examples) == BayesShrink().fit(flipped)


def test_bayes_shrink_without_examples_does_not_shrink(make, make_rows):
    rows = make_rows([[0.2, 0.7], [0.4, 0.9]], price=[0.9, 0.1])
    fitted = BayesShrink().fit(make(np.empty((2, 0)), []))
    assert fitted.probabilities(rows) == pytest.approx(rows.raw, abs=1e-4)
