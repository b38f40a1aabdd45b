"""Variances read off the trials, and the share they give to the anchor."""

import numpy as np
import pytest

from foretell.forecasters.combine.rows import logit, sigmoid
from foretell.forecasters.combine.shrink import BayesShrink, FittedBayesShrink


def test_by_hand(make_rows):
    rule = FittedBayesShrink(between=0.5, within=1.0, degrees=2)
    z = np.array([0.0, 1.0, 2.0])
    noise = (2 * 1.0 + 2.0) / (2 + 3 - 1)
    share = 3 * 0.5 / (3 * 0.5 + noise)
    found = rule.probabilities(make_rows(sigmoid(z)[:, None], price=0.1))
    assert found == pytest.approx(sigmoid(share * 1.0 + (1 - share) * logit(0.1)))


def test_the_variances_come_back(make):
    rng = np.random.default_rng(0)
    n = 20_000
    anchor = rng.normal(0, 1, n)
    mean = anchor + rng.normal(0, 0.7, n)
    trials = mean + rng.normal(0, 0.5, (5, n))
    found = BayesShrink().fit(make(sigmoid(trials), np.zeros(n), price=sigmoid(anchor)))
    assert found.between == pytest.approx(0.49, rel=0.05)
    assert found.within == pytest.approx(0.25, rel=0.05)


def test_one_trial_each_leaves_everything_as_it_is(make):
    examples = make([0.2, 0.9], [0, 1], price=0.5)
    found = BayesShrink().fit(examples)
    assert found.within == 0
    assert found.probabilities(examples.rows) == pytest.approx([0.2, 0.9])


def test_a_forecaster_who_only_scatters_about_the_price_is_given_up(make):
    rng = np.random.default_rng(1)
    anchor = rng.normal(0, 1, 400)
    examples = make(sigmoid(anchor + rng.normal(0, 1, (5, 400))), np.zeros(400), price=sigmoid(anchor))
    found = BayesShrink().fit(examples)
    assert found.between < 0.05
    assert np.abs(logit(found.probabilities(examples.rows)) - anchor).mean() < 0.2


def test_outcomes_are_not_used(world):
    examples = world(50)
    flipped = type(examples)(
        rows=examples.rows, outcome=1 - examples.outcome, known_on=examples.known_on, weight=examples.weight
    )
    assert BayesShrink().fit(examples) == BayesShrink().fit(flipped)


def test_without_examples_nothing_shrinks(make, make_rows):
    said = make_rows([[0.2, 0.7], [0.4, 0.9]], price=[0.9, 0.1])
    fitted = BayesShrink().fit(make(np.empty((2, 0)), []))
    assert fitted.probabilities(said) == pytest.approx(said.raw, abs=1e-4)
