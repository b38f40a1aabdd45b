import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import calibration_line


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
def test_degenerate_data_give_finite_numbers_and_say_so(p, outcome):
    line = calibration_line(p, outcome)
    assert not line.identified
    assert np.isfinite([line.intercept, line.slope, line.intercept_se, line.slope_se]).all()


def test_one_forecast_value_leaves_the_slope_alone():
    line = calibration_line([0.5] * 4, [1, 1, 1, 0])
    assert line.slope == pytest.approx(1)
    assert line.intercept == pytest.approx(logit(0.75), abs=1e-5)


@settings(deadline=None, max_examples=40)
@given(rows=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=25))
def test_always_finite(rows):
    line = calibration_line([r[0] for r in rows], [r[1] for r in rows])
    assert np.isfinite([line.intercept, line.slope, line.intercept_se, line.slope_se]).all()


@settings(deadline=None, max_examples=30)
@given(rows=st.lists(st.tuples(st.floats(0.01, 0.99), st.booleans()), min_size=5, max_size=25))
def test_turning_the_question_round_mirrors_the_line(rows):
    p, outcome = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    line, mirrored = calibration_line(p, outcome), calibration_line(1 - p, ~outcome)
    assert mirrored.slope == pytest.approx(line.slope, rel=1e-4, abs=1e-4)
    assert mirrored.intercept == pytest.approx(-line.intercept, rel=1e-4, abs=1e-4)


def test_bad_input_raises():
    with pytest.raises(ValueError, match="clip"):
        calibration_line([0.5], [1], clip=0.5)
    with pytest.raises(ValueError, match="missing"):
        calibration_line([0.5], [np.nan])
