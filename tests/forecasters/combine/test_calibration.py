"""Platt, beta and isotonic calibration against general optimisers, and leave-out against refitting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.combine.calibration import (
    Beta,
    FittedBeta,
    FittedIsotonic,
    FittedPlatt,
    HierarchicalPlatt,
    Isotonic,
    Platt,
)
from foretell.forecasters.combine.rules import refitted
from foretell.metrics.transforms import logit, sigmoid


@pytest.mark.parametrize("method", [Platt(), HierarchicalPlatt(by=("source", "subtype")), Beta(), Isotonic()])
@settings(max_examples=12)
@given(seed=st.integers(0, 1000), n=st.integers(1, 40), wrong=st.booleans())
def test_leave_out_equals_refitting_without_the_group(world, method, seed, n, wrong):
    examples = world(n, seed=seed)
    if wrong:
        examples.outcome[:] = examples.rows.raw < 0.5
    groups = np.unique(examples.rows.question, return_inverse=True)[1]
    assert method.leave_out(examples, groups) == pytest.approx(refitted(method, examples, groups), abs=1e-7)


def test_hierarchical_platt_minimises_the_loss_of_the_paper(world):
    from scipy.optimize import minimize

    examples = world(300, seed=1)
    x, y = logit(examples.rows.raw, 1e-4), examples.outcome
    names, code = np.unique(examples.rows.source, return_inverse=True)

    def loss(at):
        z = at[0] * x + at[1] + at[2:][code]
        return np.logaddexp(0, z).sum() - y @ z + 2.5 * (at[2:] ** 2).sum()

    at = minimize(loss, np.r_[1, np.zeros(1 + len(names))], options={"gtol": 1e-7}).x
    fitted = HierarchicalPlatt(strength=2.5).fit(examples)
    assert (fitted.slope, fitted.intercept) == pytest.approx(tuple(at[:2]), abs=1e-4)
    assert [fitted.offsets[str(name)] for name in names] == pytest.approx(at[2:], abs=1e-4)


def test_platt_halves_the_log_odds_of_a_forecaster_that_doubles_them(make):
    z = np.repeat(np.linspace(-2, 2, 41), 400)
    outcome = np.random.default_rng(0).random(len(z)) < sigmoid(z)
    fitted = Platt().fit(make(sigmoid(2 * z), outcome))
    assert fitted.slope == pytest.approx(0.5, abs=0.02)
    assert fitted.intercept == pytest.approx(0, abs=0.05)
    assert fitted.offsets == {}


def test_fitted_platt_matches_values_computed_by_hand(make_rows):
    rule = FittedPlatt(slope=0.5, intercept=0.2, offsets={"fred": -1.0, "fred > all": 0.3}, by=("source", "subtype"))
    rows = make_rows([0.8, 0.8, 0.8], source=["fred", "fred", "new"], subtype=["all", "other", "all"])
    z = 0.5 * np.log(4) + 0.2 + np.array([-0.7, -1.0, 0.0])
    assert rule.probabilities(rows) == pytest.approx(1 / (1 + np.exp(-z)))


def test_unseen_source_has_no_offset(world, make_rows):
    fitted = HierarchicalPlatt().fit(world(200))
    assert fitted.offsets
    new = fitted.probabilities(make_rows([0.3], source="never seen"))
    assert new == pytest.approx(sigmoid(fitted.slope * logit(0.3) + fitted.intercept))


def test_strongly_penalised_offsets_give_plain_platt_scaling(world):
    examples = world(200)
    stiff, plain = HierarchicalPlatt(strength=1e9).fit(examples), Platt().fit(examples)
    assert (stiff.slope, stiff.intercept) == pytest.approx((plain.slope, plain.intercept), abs=1e-5)


def test_offsets_exist_for_source_and_subtype_within_source(world):
    examples = world(200)
    fitted = HierarchicalPlatt(by=("source", "subtype")).fit(examples)
    assert "source 0" in fitted.offsets
    assert "source 0 > all" in fitted.offsets


def test_weight_of_two_equals_the_example_twice(make):
    p, y = [0.2, 0.4, 0.7, 0.9], [0, 1, 0, 1]
    weighted = Platt().fit(make(p, y, weight=[2, 1, 1, 2]))
    twice = Platt().fit(make([*p, 0.2, 0.9], [*y, 0, 1]))
    assert (weighted.slope, weighted.intercept) == pytest.approx((twice.slope, twice.intercept), abs=1e-6)


def test_rule_is_the_identity_if_one_class_is_left(make):
    examples = make([0.2, 0.4, 0.6], [0, 0, 1])
    assert Platt().leave_out(examples, np.arange(3))[2] == pytest.approx(0.6)
    assert Platt().fit(make([0.2, 0.4], [0, 0])).slope == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": ("horizon",)}, "by = 'horizon'"),
        ({"strength": 0}, "strength = 0"),
    ],
)
def test_invalid_settings_raise_errors(options, message):
    with pytest.raises(ValueError, match=message):
        HierarchicalPlatt(**options)


def test_beta_calibration_agrees_with_scikit_learn(make):
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    p = rng.beta(1, 2, 600)
    y = rng.random(600) < p**0.7
    fitted = Beta().fit(make(p, y))
    features = np.column_stack([np.log(p), -np.log1p(-p)])
    theirs = linear_model.LogisticRegression(C=1e8, tol=1e-10, max_iter=5000).fit(features, y)
    assert (fitted.a, fitted.b, fitted.c) == pytest.approx((*theirs.coef_[0], theirs.intercept_[0]), abs=1e-3)


def test_beta_calibration_matches_values_computed_by_hand(make_rows):
    rule = FittedBeta(a=2, b=0.5, c=-0.1)
    z = 2 * np.log(0.3) - 0.5 * np.log(0.7) - 0.1
    assert rule.probabilities(make_rows([0.3])) == pytest.approx(1 / (1 + np.exp(-z)))
    assert FittedBeta().probabilities(make_rows([0.3, 0.99])) == pytest.approx([0.3, 0.99])


def test_beta_calibration_recovers_the_true_parameters(make):
    rng = np.random.default_rng(1)
    p = rng.random(60_000)
    y = rng.random(60_000) < sigmoid(1.5 * np.log(p) - 0.6 * np.log1p(-p) + 0.3)
    fitted = Beta().fit(make(p, y))
    assert (fitted.a, fitted.b, fitted.c) == pytest.approx((1.5, 0.6, 0.3), abs=0.06)


def test_negative_slope_of_beta_calibration_is_dropped(make):
    rng = np.random.default_rng(2)
    p = rng.random(20_000)
    y = rng.random(20_000) < sigmoid(-0.8 * np.log(p) - 2 * np.log1p(-p) - 2)
    fitted = Beta().fit(make(p, y))
    assert fitted.a == 0
    assert fitted.b > 0


def test_beta_calibration_of_inverted_forecasts_gives_the_base_rate(make, make_rows):
    rng = np.random.default_rng(3)
    p = rng.random(5000)
    fitted = Beta().fit(make(p, rng.random(5000) < 0.3 + 0.4 * (1 - p)))
    assert (fitted.a, fitted.b) == (0, 0)
    assert fitted.probabilities(make_rows([0.1, 0.9])) == pytest.approx([0.5, 0.5], abs=0.02)


POINTS = st.lists(st.tuples(st.integers(1, 20), st.booleans(), st.floats(0.01, 5)), min_size=2, max_size=40)


@settings(max_examples=60)
@given(POINTS)
def test_isotonic_blocks_agree_with_scikit_learn(make, points):
    isotonic = pytest.importorskip("sklearn.isotonic")
    x, y, w = np.array(points, float).T
    fitted = Isotonic().fit(make(x / 21, y, weight=w))
    if len(set(y)) < 2:
        assert fitted.at == ()
        return
    theirs = isotonic.IsotonicRegression().fit(x, y, sample_weight=w).predict(x)
    margin = 1 / (w.sum() ** 2 / (w**2).sum() + 2)
    levels = np.unique(theirs.round(9))
    assert np.unique(np.round(fitted.value, 9)) == pytest.approx(
        np.unique(np.clip(levels, margin, 1 - margin)), abs=1e-7
    )
    assert (np.diff(fitted.at) > 0).all()
    assert (np.diff(fitted.value) >= 0).all()


def test_isotonic_blocks_match_values_computed_by_hand(make):
    fitted = Isotonic().fit(make(np.array([1, 1, 2, 3, 4]) / 10, [0, 1, 0, 1, 1], weight=[1, 1, 2, 1, 3]))
    assert fitted.at == pytest.approx((0.15, 0.375))
    assert fitted.value == pytest.approx((0.25, 1 - 1 / (64 / 16 + 2)))


def test_isotonic_curve_is_linear_between_centres_and_constant_outside(make_rows):
    rule = FittedIsotonic(at=(0.2, 0.6), value=(0.1, 0.5))
    rows = make_rows([0.05, 0.2, 0.4, 0.6, 0.9, np.nan])
    assert rule.probabilities(rows) == pytest.approx([0.1, 0.1, 0.3, 0.5, 0.5, np.nan], nan_ok=True)


def test_isotonic_blocks_keep_a_margin_from_certainty(make):
    fitted = Isotonic().fit(make([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]))
    assert fitted.at == pytest.approx((0.15, 0.85))
    assert fitted.value == pytest.approx((1 / 6, 5 / 6))
    light = Isotonic().fit(make([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], weight=1e-3))
    assert light.value == pytest.approx(fitted.value)


def test_isotonic_curve_follows_the_outcomes(make):
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    fitted = Isotonic().fit(make(p, rng.random(20_000) < p**2))
    assert np.interp([0.3, 0.5, 0.8], fitted.at, fitted.value) == pytest.approx([0.09, 0.25, 0.64], abs=0.04)
