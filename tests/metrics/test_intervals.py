import numpy as np
import pytest

from foretell.metrics.bootstrap import interval_bounds, percentile_interval, reach_out, symmetric_interval


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
