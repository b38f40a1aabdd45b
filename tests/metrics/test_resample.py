import numpy as np
import pytest

from foretell.metrics import Resampling, ResamplingDesign, bootstrap, bootstrap_score, resample_counts
from foretell.metrics.bootstrap import resample_units
from foretell.metrics.clusters import effective_clusters


def test_counts_are_multinomial():
    counts = resample_counts(5, 40_000, np.random.default_rng(0))
    assert (counts.sum(axis=1) == 5).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(5), abs=0.02)
    # Multinomial(5, 1/5): variance 5·(1/5)(4/5), covariance −5/25.
    covariance = np.cov(counts.T)
    assert np.diag(covariance) == pytest.approx(np.full(5, 0.8), abs=0.03)
    assert covariance[0, 1] == pytest.approx(-0.2, abs=0.02)


def test_resampled_sums_equal_sums_of_the_drawn_rows():
    sums, how = np.random.default_rng(1).normal(size=(7, 3)), Resampling(draws=20, seed=5)
    picked = how.rng().integers(0, 7, size=(20, 7))
    assert resample_units(sums, how) == pytest.approx(sums[picked].sum(axis=1), abs=1e-5)


def test_chunks_do_not_change_the_draws(monkeypatch):
    sums, how = np.random.default_rng(1).normal(size=(9, 2)), Resampling(draws=50, seed=2)
    whole = resample_units(sums, how)
    monkeypatch.setattr(bootstrap, "CACHED_COUNTS", 30)
    assert resample_units(sums, how) == pytest.approx(whole, abs=1e-5)


def test_two_ways_of_clustering_add_their_variances():
    # y = a_i + b_j on a full table: the variance of its mean is that of the rows plus that of the columns.
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=12), rng.normal(size=15)
    first, second = np.repeat(np.arange(12), 15), np.tile(np.arange(15), 12)
    design = ResamplingDesign(cluster=first, crossed=second)
    interval = bootstrap_score(a[first] + b[second], design, resampling=Resampling(draws=20_000))
    combined = (a[first] + b[second]).var() / 180
    assert interval.se**2 == pytest.approx(a.var() / 12 + b.var() / 15 - combined, rel=0.05)
    assert interval.n_clusters == 12


def test_many_crossed_clusters_are_merged_before_drawing():
    rng = np.random.default_rng(3)
    cluster, day = rng.integers(0, 900, 5000), rng.integers(0, 700, 5000)
    stratum = ResamplingDesign(cluster=cluster, crossed=day).strata(5000)[0]
    assert [part.n for part in stratum.drawn] == [500, 500, 500]
    assert stratum.n_clusters == 700


def test_effective_clusters_follow_satterthwaite():
    # Equal variances of 5 and 9 clusters: (1 + 1)² / (1/4 + 1/8) = 10.67 degrees of freedom.
    assert effective_clusters([5, 9], [1.0, 1.0]) == 11
    assert effective_clusters([8], [0.3]) == 8
    assert effective_clusters([8, 8], [0.0, 0.0]) == 16
