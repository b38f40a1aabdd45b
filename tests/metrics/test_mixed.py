import warnings

import numpy as np
import pytest

from foretell.metrics import mixed_effects_check, two_way_effects


def scores(seed, filled, between=0.3):
    rng = np.random.default_rng(seed)
    method, question = np.nonzero(rng.random((4, 60)) < filled)
    y = np.array([0.0, 0.05, 0.1, 0.3])[method] + rng.normal(0, between, 60)[question]
    return y + rng.normal(0, 0.2, len(y)), method, question


def statsmodels_fit(y, method, question):
    module = pytest.importorskip("statsmodels.regression.mixed_linear_model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module.MixedLM(y, np.eye(method.max() + 1)[method], question).fit(reml=True, method=["lbfgs", "powell"])


@pytest.mark.parametrize("filled", [1.0, 0.6])
def test_agrees_with_statsmodels(filled):
    y, method, question = scores(0, filled)
    ours, theirs = mixed_effects_check(y, method, question), statsmodels_fit(y, method, question)
    assert ours.mean == pytest.approx(theirs.fe_params, abs=1e-5)
    assert np.sqrt(np.diag(ours.covariance)) == pytest.approx(theirs.bse_fe, rel=1e-3)
    assert ours.residual_variance == pytest.approx(theirs.scale, rel=1e-3)
    assert ours.question_variance == pytest.approx(float(np.squeeze(theirs.cov_re)), rel=1e-3)
    assert ours.log_likelihood == pytest.approx(theirs.llf, abs=1e-4)
    assert ours.log_likelihood >= theirs.llf - 1e-8


def test_contrasts_equal_fixed_effects_when_balanced():
    y, method, question = scores(1, 1.0)
    mixed, fixed = mixed_effects_check(y, method, question), two_way_effects(y, method, question)
    contrast = mixed.contrast(3, 0)
    assert contrast.diff == pytest.approx(fixed.method[3] - fixed.method[0])
    assert contrast.se == pytest.approx(np.sqrt(2 * fixed.residual_variance / 60), rel=1e-6)
    assert contrast.low < contrast.diff < contrast.high
    assert contrast.p < 1e-6


def test_questions_that_do_not_differ_have_no_variance():
    rng = np.random.default_rng(3)
    y = np.tile([1.0, -1.0], 20) + rng.normal(0, 0.01, 40)
    fit = mixed_effects_check(y, np.zeros(40, dtype=int), np.repeat(np.arange(20), 2))
    assert fit.question_variance == 0.0
    assert fit.intraclass == 0.0
    assert fit.mean[0] == pytest.approx(y.mean())


def test_a_constant_shift_changes_only_the_means():
    y, method, question = scores(2, 0.7)
    effects_check, two = mixed_effects_check(y, method, question), mixed_effects_check(y + 100, method, question)
    assert two.mean - 100 == pytest.approx(effects_check.mean)
    assert two.question_variance == pytest.approx(effects_check.question_variance, rel=1e-5)


def test_invalid_input_raises():
    with pytest.raises(ValueError, match="more rows"):
        mixed_effects_check([0.1, 0.2], ["a", "b"], ["x", "x"])
    fit = mixed_effects_check([0.1, 0.2, 0.4, 0.3], ["a", "b", "a", "b"], ["x", "x", "z", "z"])
    with pytest.raises(ValueError, match="must be methods"):
        fit.contrast("a", "c")
