import numpy as np
import pytest

from foretell.metrics.bootstrap import bca_interval, interval_bounds, percentile_interval, symmetric_interval


def test_percentile_matches_numpy():
    replicates = np.random.default_rng(0).normal(size=500)
    assert percentile_interval(replicates, 0.9) == pytest.approx(np.quantile(replicates, [0.05, 0.95]))


def test_symmetric_is_algorithm_one():
    replicates = np.arange(1.0, 101.0)
    low, high, mass = symmetric_interval(0.0, replicates, 0.95)
    assert (low, high, mass) == (-95.0, 95.0, 0.95)
    assert symmetric_interval(0.0, replicates[:7], 0.95) == (-7.0, 7.0, 1.0)


def test_symmetric_does_not_round_up_by_floating_point():
    assert 0.55 * 100 > 55
    assert symmetric_interval(0.0, np.arange(1.0, 101.0), 0.55) == (-55.0, 55.0, 0.55)


def test_bca_agrees_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    x = np.random.default_rng(0).exponential(size=50)
    rng = np.random.default_rng(1)
    replicates = rng.choice(x, (20_000, 50)).mean(axis=1)
    ours = bca_interval(float(x.mean()), replicates, (x.sum() - x) / 49)
    theirs = stats.bootstrap((x,), np.mean, n_resamples=20_000, method="BCa", rng=rng).confidence_interval
    assert ours == pytest.approx(tuple(theirs), rel=0.01)


def test_bca_falls_back_when_the_estimate_lies_outside():
    replicates = np.arange(100.0)
    assert bca_interval(500.0, replicates, np.ones(4)) == percentile_interval(replicates)


def test_bounds_dispatches():
    replicates = np.random.default_rng(0).normal(size=200)
    assert interval_bounds(0.0, replicates) == percentile_interval(replicates)
    assert interval_bounds(0.0, replicates, kind="symmetric") == symmetric_interval(0.0, replicates)[:2]
    assert np.isnan(interval_bounds(0.0, replicates[:0])).all()
    with pytest.raises(ValueError, match="bca"):
        interval_bounds(0.0, replicates, kind="bca")
