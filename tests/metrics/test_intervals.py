import numpy as np
import pytest

from foretell.metrics import METRICS, Interval, Resampling, bootstrap_score
from foretell.metrics.bootstrap import (
    ClusterSupport,
    expanded_level,
    expanded_p,
    interval_bounds,
    percentile_interval,
    rate_interval,
    reach_out,
    summarise,
    symmetric_interval,
)


def test_percentile_matches_numpy():
    replicates = np.random.default_rng(0).normal(size=500)
    assert percentile_interval(replicates, 0.9) == pytest.approx(np.quantile(replicates, [0.05, 0.95]))


def test_symmetric_interval_follows_algorithm_one():
    replicates = np.arange(1.0, 101.0)
    low, high, mass = symmetric_interval(0.0, replicates, 0.95)
    assert (low, high, mass) == (-95.0, 95.0, 0.95)
    assert symmetric_interval(0.0, replicates[:7], 0.95) == (-7.0, 7.0, 1.0)


def test_symmetric_does_not_round_up_by_floating_point():
    assert 0.55 * 100 > 55
    assert symmetric_interval(0.0, np.arange(1.0, 101.0), 0.55) == (-55.0, 55.0, 0.55)


def test_interval_bounds_selects_the_kind_of_interval():
    replicates = np.random.default_rng(0).normal(size=200)
    assert interval_bounds(0.0, replicates) == percentile_interval(replicates)
    assert interval_bounds(0.0, replicates, kind="symmetric") == symmetric_interval(0.0, replicates)[:2]
    assert np.isnan(interval_bounds(0.0, replicates[:0])).all()


def test_an_interval_extends_to_the_margin_within_bounds_and_stays_without_one():
    assert reach_out(0.4, 0.6, 0.5, 0.2) == pytest.approx((0.3, 0.7))
    assert reach_out(0.2, 0.9, 0.5, 0.2) == (0.2, 0.9)
    assert reach_out(0.4, 0.6, 0.5, 0.9, (0.0, 1.0)) == (0.0, 1.0)
    assert reach_out(0.4, 0.6, 0.7, 0.0) == (0.4, 0.6), "not even to the estimate"
    assert reach_out(0.4, 0.6, 0.5, float("nan")) == (0.4, 0.6)


def test_a_negative_factor_turns_the_ends_and_keeps_the_error_positive():
    share = Interval(estimate=0.5, low=0.25, high=1.0, se=0.125, n_clusters=30, draws=100)
    points = share.times(-100)
    assert (points.estimate, points.low, points.high, points.se) == (-50.0, -100.0, -25.0, 12.5)
    assert (points.n_clusters, points.draws) == (30, 100)


def test_two_draws_have_a_standard_error():
    interval = summarise(0.5, np.array([0.25, 0.75]), ClusterSupport(n_clusters=30, n_effective=30), Resampling())
    assert interval.se == pytest.approx(np.sqrt(2) / 4)


@pytest.mark.parametrize("n_clusters", [3, 12])
def test_the_level_and_the_p_value_are_expanded_alike(n_clusters: int):
    assert expanded_p(1 - expanded_level(0.95, n_clusters), n_clusters) == pytest.approx(0.05)


def test_the_p_value_of_two_clusters_is_that_of_one_degree_of_freedom():
    """With one, the tails of Student's t are 1 − 2·arctan(t)/π together; the normal quantile of 0.01 is −2.32635."""
    assert expanded_p(0.02, 2) == pytest.approx(1 - 2 * np.arctan(2.32635 / np.sqrt(2)) / np.pi, abs=1e-6)


def test_a_rate_of_nothing_has_the_interval_of_wilson_over_clusters():
    rate = rate_interval([0.0] * 20, [str(n // 2) for n in range(20)])
    assert rate is not None
    # z²/(n + z²) with 10 clusters and z = 1.96.
    assert (rate.estimate, rate.low, rate.high) == pytest.approx((0.0, 0.0, 3.8415 / 13.8415), abs=1e-4)


@pytest.mark.parametrize("name", ["brier", "accuracy", "reliability", "ece", "choice"])
def test_the_interval_of_a_share_ends_within_zero_and_one(name: str):
    bounds = METRICS[name].bounds
    assert bootstrap_score([1.0] * 11 + [0.5], bounds=bounds).high == 1
    assert bootstrap_score([0.0] * 11 + [0.5], bounds=bounds).low == 0
