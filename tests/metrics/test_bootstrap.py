import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import (
    Resampling,
    ResamplingDesign,
    bootstrap_score,
    bootstrap_sums,
    brier_index_from_sums,
    mean_from_sums,
)

FEW = Resampling(draws=300)


def clustered(rng, clusters, size, between=0.2, within=0.1):
    cluster = np.repeat(np.arange(clusters), size)
    return rng.normal(0, between, clusters)[cluster] + rng.normal(0, within, len(cluster)), cluster


def test_brier_index_is_computed_after_the_mean():
    sums = np.array([[0.04, 1.0], [0.36, 1.0]])
    assert brier_index_from_sums(sums.sum(axis=0)) == pytest.approx(100 * (1 - np.sqrt(0.2)))
    assert bootstrap_score([0.04, 0.36], statistic=brier_index_from_sums).estimate == pytest.approx(55.2786, abs=1e-4)


def test_a_draw_without_weight_is_nan_and_negative_means_are_clamped():
    assert np.isnan(mean_from_sums(np.array([0.0, 0.0])))
    assert brier_index_from_sums(np.array([-1.0, 2.0])) == 100.0


def test_same_seed_same_interval():
    x = np.random.default_rng(0).normal(size=60)
    first, second = bootstrap_score(x, resampling=FEW), bootstrap_score(x, resampling=FEW)
    assert first == second
    assert bootstrap_score(x, resampling=Resampling(draws=300, seed=1)) != first


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_row_order_and_shifted_labels_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    x, cluster = clustered(rng, 8, 3)
    order = rng.permutation(len(x))
    first = bootstrap_score(x, cluster, resampling=FEW)
    two = bootstrap_score(x[order], cluster[order], resampling=FEW)
    three = bootstrap_score(x, [f"q{c:02d}" for c in cluster], resampling=FEW)
    for other in (two, three):
        assert (other.low, other.high, other.se) == pytest.approx((first.low, first.high, first.se))


def test_clusters_of_one_are_the_ordinary_bootstrap():
    x = np.random.default_rng(3).normal(size=50)
    plain, single = bootstrap_score(x), bootstrap_score(x, np.arange(50))
    assert plain == single
    # Standard error of a mean under resampling is √(population variance / n), known without simulation.
    assert plain.se == pytest.approx(x.std() / np.sqrt(50), rel=0.03)


def test_standard_error_of_a_clustered_mean():
    x, cluster = clustered(np.random.default_rng(4), 60, 5)
    means = x.reshape(60, 5).mean(axis=1)
    interval = bootstrap_score(x, cluster, resampling=Resampling(draws=5000))
    assert interval.se == pytest.approx(means.std() / np.sqrt(60), rel=0.03)
    assert interval.se > 1.5 * bootstrap_score(x).se
    assert (interval.n_clusters, interval.draws, interval.warning) == (60, 5000, None)


def test_coverage_of_the_clustered_interval():
    rng = np.random.default_rng(11)
    hits = naive = 0
    for _ in range(400):
        x, cluster = clustered(rng, 50, 4)
        ours, plain = bootstrap_score(x, cluster, resampling=FEW), bootstrap_score(x, resampling=FEW)
        hits += ours.low <= 0 <= ours.high
        naive += plain.low <= 0 <= plain.high
    assert 0.90 <= hits / 400 <= 0.98
    assert naive / 400 < 0.80


def test_crossed_clusters_cover_if_one_way_does_not():
    rng = np.random.default_rng(12)
    question, day = np.repeat(np.arange(40), 10), np.tile(np.arange(10), 40)
    hits = naive = 0
    for _ in range(200):
        x = rng.normal(0, 0.1, 40)[question] + rng.normal(0, 0.3, 10)[day] + rng.normal(0, 0.1, 400)
        ours = bootstrap_score(x, ResamplingDesign(cluster=question, crossed=day), resampling=FEW)
        one_way = bootstrap_score(x, question, resampling=FEW)
        hits += ours.low <= 0 <= ours.high
        naive += one_way.low <= 0 <= one_way.high
    # Ten days are few, so even the right interval is a little short.
    assert 0.85 <= hits / 200 <= 1.0
    assert naive / 200 < 0.5


def test_strata_are_averaged_not_pooled():
    kind = np.array(["market"] * 30 + ["dataset"] * 90)
    brier = np.where(kind == "market", 0.04, 0.16)
    interval = bootstrap_score(brier, ResamplingDesign(stratum=kind), statistic=brier_index_from_sums)
    assert interval.estimate == pytest.approx((80 + 60) / 2)
    assert interval.n_clusters == 120


def test_weights_act_as_repetition():
    x, w = np.array([0.1, 0.5, 0.9]), np.array([1.0, 2.0, 1.0])
    weighted = bootstrap_score(x, ResamplingDesign(weight=w), resampling=FEW)
    assert weighted.estimate == pytest.approx(0.5)
    repeated = bootstrap_score([0.1, 0.5, 0.5, 0.9], ["a", "b", "b", "c"], resampling=FEW)
    assert weighted.se == pytest.approx(repeated.se)


def test_statistics_may_use_any_number_of_columns():
    x = np.random.default_rng(0).normal(1, 1, 200)
    columns = np.column_stack([x, x**2, np.ones_like(x)])

    def variance(sums):
        return sums[..., 1] / sums[..., 2] - (sums[..., 0] / sums[..., 2]) ** 2

    assert bootstrap_score(columns, statistic=variance, resampling=FEW).estimate == pytest.approx(x.var())
    with pytest.raises(ValueError, match="weight"):
        bootstrap_score(columns, ResamplingDesign(weight=np.ones(200)), statistic=variance)


def test_symmetric_intervals_are_centred_on_the_estimate():
    x = np.random.default_rng(0).exponential(size=80)
    symmetric = bootstrap_score(x, resampling=Resampling(interval="symmetric"))
    assert symmetric.high - symmetric.estimate == pytest.approx(symmetric.estimate - symmetric.low)


def test_draws_without_a_value_are_reported():
    sums = np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    interval = bootstrap_sums(sums, mean_from_sums, FEW)
    assert interval.draws < 300
    assert "draws had no value" in (interval.warning or "")


@pytest.mark.parametrize("bad", [{"draws": 1}, {"level": 0.0}, {"level": 1.0}])
def test_impossible_resampling_raises(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Resampling(**bad)


def test_scoring_nothing_raises():
    with pytest.raises(ValueError, match="score"):
        bootstrap_score([])
    with pytest.raises(ValueError, match="cluster"):
        bootstrap_score([0.1, 0.2], ["a"])
