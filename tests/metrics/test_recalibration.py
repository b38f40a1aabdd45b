import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import METRICS, MetricRows, calibration_line, ece


def logit(p):
    return np.log(p / (1 - p))


def test_two_forecast_values_are_fitted_exactly():
    """With two values of p the line goes through both observed frequencies."""
    p = [0.8] * 10 + [0.3] * 10
    outcome = [1] * 7 + [0] * 3 + [1] * 4 + [0] * 6
    line = calibration_line(p, outcome)
    slope = (logit(0.7) - logit(0.4)) / (logit(0.8) - logit(0.3))
    assert line.slope == pytest.approx(slope, abs=1e-5)
    assert line.intercept == pytest.approx(logit(0.7) - slope * logit(0.8), abs=1e-5)
    assert line.identified


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_agrees_with_statsmodels():
    api = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(1)
    p = rng.uniform(0.02, 0.98, 400)
    outcome = (rng.random(400) < 1 / (1 + np.exp(-(0.3 + 0.6 * logit(p))))).astype(int)
    fit = api.Logit(outcome, api.add_constant(logit(p))).fit(disp=0)
    line = calibration_line(p, outcome)
    assert (line.intercept, line.slope) == pytest.approx(tuple(fit.params), abs=1e-6)
    assert (line.intercept_se, line.slope_se) == pytest.approx(tuple(fit.bse), rel=1e-6)


@pytest.mark.parametrize(
    ("p", "outcome"),
    [
        ([0.3, 0.6, 0.9], [1, 1, 1]),
        ([0.3, 0.6, 0.9], [0, 0, 0]),
        ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]),
        ([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0]),
        ([0.5, 0.5, 0.5], [1, 0, 1]),
        ([0.0, 1.0], [0, 1]),
        ([1.0], [0]),
    ],
)
def test_line_is_nan_if_the_data_do_not_determine_it(p, outcome):
    line = calibration_line(p, outcome)
    assert not line.identified
    assert np.isnan([line.intercept, line.slope, line.intercept_se, line.slope_se]).all()


def test_leave_one_out_rates_have_no_slope():
    """Left out of its own rate, a target that came true lowers it: a slope of some hundred below zero."""
    outcome = np.arange(200) % 2
    rate = (outcome.sum() - outcome + 1) / (len(outcome) + 1)
    assert not calibration_line(rate, outcome).identified
    mixed = np.append(rate, rate[:20])
    assert not calibration_line(mixed, np.append(outcome, 1 - outcome[:20])).identified


def test_constant_forecasts_have_no_calibration_error():
    """It is the distance to the base rate: 0.49 in one group and 0.003 in another, whatever the forecaster does."""
    outcome, weight = [1, 0, 0, 0], [0.1, 0.7, 0.3, 1 / 3]
    assert np.isnan(METRICS["ece"].population(MetricRows.of([0.3] * 4, outcome, weight)))
    p = [0.3, 0.3, 0.3, 0.301]
    assert METRICS["ece"].population(MetricRows.of(p, outcome, weight)) == pytest.approx(ece(p, outcome, weight))


@settings(max_examples=40)
@given(rows=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=25))
def test_line_has_all_numbers_or_none(rows):
    line = calibration_line([r[0] for r in rows], [r[1] for r in rows])
    assert (np.isfinite([line.intercept, line.slope, line.intercept_se, line.slope_se]) == line.identified).all()


@settings(max_examples=30)
@given(rows=st.lists(st.tuples(st.floats(0.01, 0.99), st.booleans()), min_size=5, max_size=25))
def test_negating_the_question_mirrors_the_line(rows):
    p, outcome = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    line, mirrored = calibration_line(p, outcome), calibration_line(1 - p, ~outcome)
    assert mirrored.slope == pytest.approx(line.slope, rel=1e-4, abs=1e-4, nan_ok=True)
    assert mirrored.intercept == pytest.approx(-line.intercept, rel=1e-4, abs=1e-4, nan_ok=True)


def test_invalid_input_raises():
    with pytest.raises(ValueError, match="clip"):
        calibration_line([0.5], [1], clip=0.5)
    with pytest.raises(ValueError, match="missing"):
        calibration_line([0.5], [np.nan])
