from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from foretell.metrics import (
    brier,
    cdf_bucket_of,
    cdf_buckets,
    crps_cdf,
    crps_quantiles,
    crps_samples,
    interval_covers,
    interval_score,
    metaculus_baseline_continuous,
    metaculus_peer_continuous,
    pinball,
    rps,
)

finite = st.floats(-100, 100)
steps = st.lists(st.floats(0, 1), min_size=2, max_size=6)


def test_crps_of_a_uniform_cdf_matches_a_hand_computation():
    """CRPS of U(0, 1) at y is y³/3 + (1−y)³/3, plus the distance outside."""
    cdf, y = [[0, 0.5, 1.0]] * 4, np.array([0.0, 0.25, 1.0, 1.5])
    assert crps_cdf(cdf, [0, 0.5, 1], y).tolist() == pytest.approx([1 / 3, (0.25**3 + 0.75**3) / 3, 1 / 3, 5 / 6])


@settings(max_examples=40)
@given(heights=steps, y=st.floats(-1, 7))
def test_crps_of_a_cdf_equals_the_integral(heights, y):
    heights = np.sort(heights)
    grid = np.arange(len(heights), dtype=float)

    def gap(x):
        height = 0.0 if x < 0 else 1.0 if x > grid[-1] else np.interp(x, grid, heights)
        return (height - (x >= y)) ** 2

    low, high = min(y, 0) - 1e-9, max(y, grid[-1]) + 1e-9
    breaks = np.unique(np.clip([low, y, *grid, high], low, high))
    integral = sum(quad(gap, a, b)[0] for a, b in pairwise(breaks))
    assert crps_cdf([heights], grid, [y])[0] == pytest.approx(integral, abs=1e-7)


def test_dense_cdf_matches_the_normal_closed_form():
    rules = pytest.importorskip("scoringrules")
    grid = np.linspace(-12, 12, 4001)
    y = np.array([-1.5, 0.0, 0.7, 3.0])
    ours = crps_cdf(np.tile(norm.cdf(grid), (4, 1)), grid, y)
    assert ours == pytest.approx(rules.crps_normal(y, 0.0, 1.0), abs=1e-5)


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


@settings(max_examples=50)
@given(samples=st.lists(finite, min_size=1, max_size=12), y=finite, shift=finite)
def test_sample_score_is_the_energy_form_and_moves_with_the_axis(samples, y, shift):
    x = np.array(samples)
    energy = np.abs(x - y).mean() - np.abs(x[:, None] - x).mean() / 2
    assert crps_samples([x], [y])[0] == pytest.approx(energy, abs=1e-9)
    assert crps_samples([x + shift], [y + shift])[0] == pytest.approx(energy, abs=1e-9)
    assert crps_samples([x], [y])[0] >= -1e-9


def test_crps_of_one_sample_is_its_distance():
    assert crps_samples([[3.0]], [5.0]).tolist() == [2.0]


@settings(max_examples=40)
@given(level=st.floats(0.05, 0.95), stated=st.floats(-2, 2))
def test_the_true_quantile_has_the_least_expected_pinball_loss(level, stated):
    values = norm.ppf((np.arange(2000) + 0.5) / 2000)
    truth = np.quantile(values, level, method="inverted_cdf")
    assert pinball(truth, level, values).mean() <= pinball(stated, level, values).mean() + 1e-12


def test_rps_agrees_with_scoringrules():
    rules = pytest.importorskip("scoringrules")
    rng = np.random.default_rng(7)
    p = rng.dirichlet(np.ones(5), size=20)
    happened = rng.integers(0, 5, 20)
    assert rps(p, happened) == pytest.approx(rules.rps_score(happened + 1, p))


def test_rps_of_two_options_is_the_brier_score():
    p = np.array([0.2, 0.9])
    assert rps(np.column_stack([1 - p, p]), [1, 0]) == pytest.approx(brier(p, [1, 0]))


def test_rps_rewards_near_misses_and_accepts_rows_of_different_length():
    near, far = rps([[0, 1, 0, 0], [1, 0, 0, 0]], [2, 2])
    assert (near, far) == (1, 2)
    ragged = rps([[0.5, 0.5, np.nan], [0.2, 0.3, 0.5]], [0, 0], normalised=True)
    assert ragged.tolist() == pytest.approx([0.25, (0.64 + 0.25) / 2])


@settings(max_examples=40)
@given(
    truth=st.lists(st.floats(0.05, 1), min_size=3, max_size=3),
    stated=st.lists(st.floats(0.05, 1), min_size=3, max_size=3),
)
def test_honest_options_have_the_least_expected_rps(truth, stated):
    truth, stated = np.array(truth) / sum(truth), np.array(stated) / sum(stated)
    honest, other = (float(truth @ rps(np.tile(p, (3, 1)), [0, 1, 2])) for p in (truth, stated))
    assert honest <= other + 1e-12


def test_coverage_matches_a_hand_computation():
    assert interval_covers([0, 0, 0], [1, 1, 1], [0, 1, 1.01]).tolist() == [True, True, False]


def test_buckets_match_a_hand_computation():
    pmf = cdf_buckets([[0.01, 0.3, 0.99], [0.0, 0.5, 1.0]])
    assert pmf == pytest.approx(np.array([[0.01, 0.29, 0.69, 0.01], [0, 0.5, 0.5, 0]]))
    assert cdf_bucket_of([0.0, 0.004999, 0.005, 0.0050001, 1.0], 200).tolist() == [1, 1, 1, 2, 200]


def test_continuous_baseline_matches_a_hand_computation():
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
        (lambda: crps_cdf([[0.5, 0.4]], [0, 1], [0]), "predecessor"),
        (lambda: crps_cdf([[0, 1]], [1, 1], [0]), "strictly rising"),
        (lambda: crps_cdf([[0, 1]], [0, 1, 2], [0]), "2 strictly rising"),
        (lambda: crps_cdf([[0, 1]], [0, 1], [0, 1]), "value has length 2"),
        (lambda: crps_cdf([[0, 1]], [0, 1], [np.nan]), r"value\[0\] = nan is missing"),
        (lambda: crps_samples([[1.0]], [np.inf]), "not finite"),
        (lambda: crps_samples([[1.0]], [1.0], fair=True), "two per row"),
        (lambda: crps_samples([], []), "nothing to score"),
        (lambda: crps_quantiles([[1.0]], [0.1, 0.2], [1.0]), "columns"),
        (lambda: pinball([1.0], 1.0, [1.0]), "level"),
        (lambda: interval_score([0], [1], [0], level=1.0), "level"),
        (lambda: interval_covers([1], [0], [0]), "low.* lies above high"),
        (lambda: rps([[0.5, np.nan, 0.5]], [0]), "before options"),
        (lambda: rps([[0.5, 0.6]], [0]), "is not 1"),
        (lambda: metaculus_baseline_continuous([[0, 1]], [3]), "is not a column"),
        (lambda: metaculus_baseline_continuous([[0, 1]], [1], open_bounds=3), "open_bounds"),
        (lambda: metaculus_peer_continuous([[0.0]]), "given"),
        (lambda: metaculus_peer_continuous([[np.nan]]), "nothing to score"),
    ],
)
def test_invalid_input_raises_an_error_that_names_it(call, message):
    with pytest.raises(ValueError, match=message):
        call()
