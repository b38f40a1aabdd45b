import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from foretell.metrics import (
    cdf_bucket_of,
    cdf_buckets,
    crps_quantiles,
    crps_samples,
    interval_covers,
    interval_score,
    metaculus_baseline_continuous,
    metaculus_peer_continuous,
    pinball,
)


def test_samples_agree_with_scoringrules():
    rules = pytest.importorskip("scoringrules")
    rng = np.random.default_rng(5)
    samples, y = rng.normal(size=(20, 15)), rng.normal(size=20)
    assert crps_samples(samples, y) == pytest.approx(rules.crps_ensemble(y, samples, estimator="nrg"))
    assert crps_samples(samples, y, fair=True) == pytest.approx(rules.crps_ensemble(y, samples, estimator="fair"))


def test_quantiles_and_intervals_agree_with_scoringrules():
    rules = pytest.importorskip("scoringrules")
    rng = np.random.default_rng(6)
    levels = np.arange(1, 20) / 20
    quantiles, y = np.sort(rng.normal(size=(10, 19)), axis=1), rng.normal(size=10)
    assert crps_quantiles(quantiles, levels, y) == pytest.approx(rules.crps_quantile(y, quantiles, levels))
    assert pinball(quantiles[:, 3], levels[3], y) == pytest.approx(rules.quantile_score(y, quantiles[:, 3], levels[3]))
    ours = interval_score(quantiles[:, 0], quantiles[:, -1], y, level=0.9)
    assert ours == pytest.approx(rules.interval_score(y, quantiles[:, 0], quantiles[:, -1], 0.1))


def test_dense_quantiles_approach_the_crps():
    rules = pytest.importorskip("scoringrules")
    levels = (np.arange(2000) + 0.5) / 2000
    ours = crps_quantiles([norm.ppf(levels)], levels, [0.4])
    assert ours == pytest.approx(rules.crps_normal(0.4, 0.0, 1.0), abs=1e-3)


finite = st.floats(-100, 100)


@settings(deadline=None, max_examples=50)
@given(samples=st.lists(finite, min_size=1, max_size=12), y=finite, shift=finite)
def test_sample_score_is_the_energy_form_and_moves_with_the_axis(samples, y, shift):
    x = np.array(samples)
    energy = np.abs(x - y).mean() - np.abs(x[:, None] - x).mean() / 2
    assert crps_samples([x], [y])[0] == pytest.approx(energy, abs=1e-9)
    assert crps_samples([x + shift], [y + shift])[0] == pytest.approx(energy, abs=1e-9)
    assert crps_samples([x], [y])[0] >= -1e-9


def test_one_sample_scores_its_distance():
    assert crps_samples([[3.0]], [5.0]).tolist() == [2.0]


@settings(deadline=None, max_examples=40)
@given(level=st.floats(0.05, 0.95), said=st.floats(-2, 2))
def test_the_true_quantile_has_the_least_expected_pinball_loss(level, said):
    values = norm.ppf((np.arange(2000) + 0.5) / 2000)
    truth = np.quantile(values, level, method="inverted_cdf")
    assert pinball(truth, level, values).mean() <= pinball(said, level, values).mean() + 1e-12


def test_coverage_by_hand():
    assert interval_covers([0, 0, 0], [1, 1, 1], [0, 1, 1.01]).tolist() == [True, True, False]


def test_buckets_by_hand():
    pmf = cdf_buckets([[0.01, 0.3, 0.99], [0.0, 0.5, 1.0]])
    assert pmf == pytest.approx(np.array([[0.01, 0.29, 0.69, 0.01], [0, 0.5, 0.5, 0]]))
    assert cdf_bucket_of([0.0, 0.004999, 0.005, 0.0050001, 1.0], 200).tolist() == [1, 1, 1, 2, 200]


def test_continuous_baseline_by_hand():
    cdf = [[0.02, 0.52, 0.98]] * 3
    score = metaculus_baseline_continuous(cdf, [0, 1, 3], open_bounds=2)
    assert score.tolist() == pytest.approx(
        [50 * np.log(0.02 / 0.05), 50 * np.log(0.5 / 0.45), 50 * np.log(0.02 / 0.05)]
    )


def test_uniform_forecasts_have_baseline_zero():
    """0.05 in each open tail and even between them is what the baseline assumes."""
    closed, open_ended = np.linspace(0, 1, 201), np.linspace(0.05, 0.95, 201)
    assert metaculus_baseline_continuous([closed], [17])[0] == pytest.approx(0, abs=1e-9)
    for bucket in (0, 1, 100, 201):
        score = metaculus_baseline_continuous([open_ended], [bucket], open_bounds=2)
        assert score[0] == pytest.approx(0, abs=1e-9)


def test_continuous_peer_is_half_the_log_ratio_to_the_others():
    score = metaculus_peer_continuous([[0.02, np.nan], [0.01, 0.3], [0.04, 0.6]])
    others = (np.log(0.01) + np.log(0.04)) / 2
    assert score[0, 0] == pytest.approx(50 * (np.log(0.02) - others))
    assert np.nansum(score, axis=0) == pytest.approx([0, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: crps_samples([[1.0]], [0, 1]), "value has length 2"),
        (lambda: crps_samples([[1.0]], [np.nan]), r"value\[0\] = nan is missing"),
        (lambda: metaculus_baseline_continuous([[0.5, 0.4]], [0]), "predecessor"),
        (lambda: crps_samples([[1.0]], [np.inf]), "not finite"),
        (lambda: crps_samples([[1.0]], [1.0], fair=True), "two per row"),
        (lambda: crps_samples([], []), "nothing to score"),
        (lambda: crps_quantiles([[1.0]], [0.1, 0.2], [1.0]), "columns"),
        (lambda: pinball([1.0], 1.0, [1.0]), "level"),
        (lambda: interval_score([0], [1], [0], level=1.0), "level"),
        (lambda: interval_covers([1], [0], [0]), "low.* lies above high"),
        (lambda: metaculus_baseline_continuous([[0, 1]], [3]), "is not a column"),
        (lambda: metaculus_baseline_continuous([[0, 1]], [1], open_bounds=3), "open_bounds"),
        (lambda: metaculus_peer_continuous([[0.0]]), "given"),
        (lambda: metaculus_peer_continuous([[np.nan]]), "nothing to score"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
