"""Beta calibration against an unpenalised logistic regression, and its rule of rising curves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.combine.calibration import Beta, FittedBeta
from foretell.forecasters.combine.rows import sigmoid
from foretell.forecasters.combine.rules import refitted


def test_agrees_with_scikit_learn(make):
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    p = rng.beta(1, 2, 600)
    y = rng.random(600) < p**0.7
    found = Beta().fit(make(p, y))
    features = np.column_stack([np.log(p), -np.log1p(-p)])
    theirs = linear_model.LogisticRegression(C=1e8, tol=1e-10, max_iter=5000).fit(features, y)
    assert (found.a, found.b, found.c) == pytest.approx((*theirs.coef_[0], theirs.intercept_[0]), abs=1e-3)


def test_by_hand(make_rows):
    rule = FittedBeta(a=2, b=0.5, c=-0.1)
    z = 2 * np.log(0.3) - 0.5 * np.log(0.7) - 0.1
    assert rule.probabilities(make_rows([0.3])) == pytest.approx(1 / (1 + np.exp(-z)))
    assert FittedBeta().probabilities(make_rows([0.3, 0.99])) == pytest.approx([0.3, 0.99])


def test_true_parameters_come_back(make):
    rng = np.random.default_rng(1)
    p = rng.random(60_000)
    y = rng.random(60_000) < sigmoid(1.5 * np.log(p) - 0.6 * np.log1p(-p) + 0.3)
    found = Beta().fit(make(p, y))
    assert (found.a, found.b, found.c) == pytest.approx((1.5, 0.6, 0.3), abs=0.06)


def test_a_negative_slope_is_dropped(make):
    rng = np.random.default_rng(2)
    p = rng.random(20_000)
    y = rng.random(20_000) < sigmoid(-0.8 * np.log(p) - 2 * np.log1p(-p) - 2)
    found = Beta().fit(make(p, y))
    assert found.a == 0
    assert found.b > 0


def test_forecasts_that_run_against_the_outcomes_leave_the_base_rate(make, make_rows):
    rng = np.random.default_rng(3)
    p = rng.random(5000)
    found = Beta().fit(make(p, rng.random(5000) < 0.3 + 0.4 * (1 - p)))
    assert (found.a, found.b) == (0, 0)
    assert found.probabilities(make_rows([0.1, 0.9])) == pytest.approx([0.5, 0.5], abs=0.02)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 1000), st.integers(1, 60), st.booleans())
def test_leaving_out_is_fitting_again(world, seed, n, wrong):
    examples = world(n, seed=seed)
    if wrong:
        examples.outcome[:] = examples.rows.raw < 0.5
    groups = np.unique(examples.rows.question, return_inverse=True)[1]
    again = refitted(Beta(), examples, groups)
    assert Beta().leave_out(examples, groups) == pytest.approx(again, abs=1e-7)
