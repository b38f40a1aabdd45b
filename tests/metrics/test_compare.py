import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import (
    Resampling,
    ResamplingDesign,
    brier_index_from_sums,
    compare_paired,
    compare_pairs,
    expanded_level,
    factorise,
)
from foretell.metrics import comparison as module
from foretell.metrics.bootstrap import student_margin

FEW = Resampling(draws=400)
TWO_KINDS = ResamplingDesign(stratum=np.arange(200) % 2)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 60, 200)
    easy = rng.beta(1, 4, 60)[cluster]
    scores = np.clip(easy[:, None] + rng.normal([0, 0.02, 0.1], 0.05, (200, 3)), 0, 1)
    return scores, cluster


def test_difference_of_population_indices(table):
    scores, cluster = table
    comparison = compare_paired(scores[:, 0], scores[:, 2], cluster, statistic=brier_index_from_sums)
    a, b = (100 * (1 - np.sqrt(scores[:, k].mean())) for k in (0, 2))
    assert comparison.diff == pytest.approx(a - b)
    assert comparison.low < comparison.diff < comparison.high
    assert (comparison.n, comparison.n_clusters) == (200, len(set(cluster.tolist())))


def test_pairing_removes_shared_difficulty(table):
    scores, cluster = table
    together = compare_paired(scores[:, 0], scores[:, 1], cluster, resampling=FEW)
    order = np.random.default_rng(1).permutation(200)
    apart = compare_paired(scores[:, 0], scores[order, 1], None, resampling=FEW)
    assert together.se < apart.se / 2


def test_equal_methods_have_no_difference(table):
    scores, cluster = table
    comparison = compare_paired(scores[:, 0], scores[:, 0], cluster, resampling=FEW)
    assert (comparison.diff, comparison.low, comparison.high, comparison.p_one_sided, comparison.p_two_sided) == (
        0,
        0,
        0,
        1,
        1,
    )


@given(st.integers(0, 1000))
@settings(max_examples=15)
def test_swapping_the_methods_mirrors_the_result(seed):
    rng = np.random.default_rng(seed)
    a, b, cluster = rng.random(40), rng.random(40), rng.integers(0, 12, 40)
    first = compare_paired(a, b, cluster, resampling=FEW)
    second = compare_paired(b, a, cluster, resampling=FEW)
    assert (second.diff, second.low, second.high) == pytest.approx((-first.diff, -first.high, -first.low))
    assert (second.p_one_sided, second.p_two_sided, second.se) == pytest.approx(
        (first.p_one_sided, first.p_two_sided, first.se)
    )


def test_unanswered_rows_are_dropped_from_both_arms(table):
    scores, cluster = table
    a = scores[:, 0].copy()
    a[:50] = np.nan
    comparison = compare_paired(a, scores[:, 1], cluster, resampling=FEW)
    same = compare_paired(a[50:], scores[50:, 1], cluster[50:], resampling=FEW)
    assert comparison == same
    assert comparison.n == 150
    with pytest.raises(ValueError, match="no row"):
        compare_paired([np.nan, 1.0], [1.0, np.nan])


def test_other_kinds_of_intervals_use_the_same_draws(table):
    scores, cluster = table
    plain = compare_paired(scores[:, 0], scores[:, 1], cluster, resampling=FEW)
    of_difference = compare_paired(scores[:, 0] - scores[:, 1], np.zeros(200), cluster, resampling=FEW)
    assert (plain.diff, plain.low, plain.p_one_sided) == pytest.approx(
        (of_difference.diff, of_difference.low, of_difference.p_one_sided)
    )
    symmetric = Resampling(draws=400, interval="symmetric")
    comparison = compare_paired(scores[:, 0], scores[:, 1], cluster, resampling=symmetric)
    assert (comparison.diff, comparison.se, comparison.p_one_sided) == (plain.diff, plain.se, plain.p_one_sided)
    assert comparison.low == pytest.approx(plain.low, abs=plain.se)
    assert comparison.low != plain.low


def test_loop_over_draws_gives_the_same_replicates(table):
    scores, cluster = table
    clusters = factorise(cluster)
    rng = FEW.rng()
    picked = rng.integers(0, clusters.n, size=(400, clusters.n))
    loop = []
    for draw in picked:
        rows = np.concatenate([np.flatnonzero(clusters.codes == c) for c in draw])
        a, b = (100 * (1 - np.sqrt(scores[rows, k].mean())) for k in (0, 1))
        loop.append(a - b)
    comparison = compare_paired(scores[:, 0], scores[:, 1], cluster, statistic=brier_index_from_sums, resampling=FEW)
    tail = (1 - expanded_level(0.95, clusters.n)) / 2
    assert comparison.se == pytest.approx(np.std(loop, ddof=1), rel=1e-4)
    low, high = np.quantile(loop, [tail, 1 - tail])
    margin = student_margin(comparison.se, 0.95, clusters.n)
    widest = (min(low, comparison.diff - margin), max(high, comparison.diff + margin))
    assert (comparison.low, comparison.high) == pytest.approx(widest, rel=1e-4)
    assert comparison.p_one_sided == pytest.approx(np.mean(np.array(loop) <= 0))


def test_a_comparison_does_not_depend_on_other_methods(table, monkeypatch):
    scores, cluster = table
    scores = scores.copy()
    scores[:30, 2] = np.nan
    pairs = [(1, 0), (2, 0), (1, 2)]
    together = compare_pairs(scores, pairs, cluster, statistic=brier_index_from_sums, resampling=FEW)
    for a, b in pairs:
        alone = compare_paired(scores[:, a], scores[:, b], cluster, statistic=brier_index_from_sums, resampling=FEW)
        assert together[a, b] == alone
    assert [together[pair].n for pair in pairs] == [200, 170, 170]
    monkeypatch.setattr(module, "BLOCK", 1)
    assert compare_pairs(scores, pairs, cluster, statistic=brier_index_from_sums, resampling=FEW) == together


def test_row_order_does_not_change_a_comparison(table):
    scores, cluster = table
    order = np.random.default_rng(4).permutation(200)
    in_order = compare_paired(scores[:, 0], scores[:, 1], cluster, resampling=FEW)
    other = compare_paired(scores[order, 0], scores[order, 1], cluster[order], resampling=FEW)
    assert (in_order.low, in_order.high, in_order.p_two_sided) == pytest.approx(
        (other.low, other.high, other.p_two_sided), rel=1e-5
    )


def test_both_scores_are_on_the_common_rows_and_subtract(table):
    scores, cluster = table
    first = scores[:, 0].copy()
    first[:40] = np.nan
    comparison = compare_paired(first, scores[:, 1], cluster, statistic=brier_index_from_sums, resampling=FEW)
    assert comparison.second.estimate == pytest.approx(100 * (1 - np.sqrt(scores[40:, 1].mean())))
    assert comparison.first.estimate - comparison.second.estimate == pytest.approx(comparison.diff)


def test_overall_is_the_mean_over_strata(table):
    scores, cluster = table
    kind = np.where(np.arange(200) < 60, "market", "dataset")
    whole = compare_paired(
        scores[:, 0], scores[:, 2], ResamplingDesign(cluster=cluster, stratum=kind), statistic=brier_index_from_sums
    )
    parts = [
        compare_paired(scores[kind == k, 0], scores[kind == k, 2], cluster[kind == k], statistic=brier_index_from_sums)
        for k in ("dataset", "market")
    ]
    assert whole.diff == pytest.approx(np.mean([p.diff for p in parts]))
    assert whole.se == pytest.approx(0.5 * np.hypot(parts[0].se, parts[1].se), rel=0.05)


def test_columns_of_any_number_can_be_compared(table):
    scores, cluster = table
    columns = np.stack([scores, np.ones_like(scores), scores**2], axis=2)

    def spread(sums):
        mean = sums[..., 0] / sums[..., 1]
        return np.sqrt(sums[..., 2] / sums[..., 1] - mean**2)

    comparison = compare_pairs(columns, [(2, 0)], cluster, statistic=spread, resampling=FEW)
    assert comparison[2, 0].diff == pytest.approx(scores[:, 2].std() - scores[:, 0].std())


def test_p_is_uniform_enough_when_nothing_differs():
    rng = np.random.default_rng(5)
    rejected = 0
    for _ in range(300):
        a, b = rng.normal(size=(2, 60))
        rejected += compare_paired(a, b, resampling=Resampling(draws=200)).p_two_sided < 0.05
    assert 0.02 <= rejected / 300 <= 0.10


def test_few_clusters_are_warned_about(table):
    scores, _ = table
    comparison = compare_paired(scores[:, 0], scores[:, 1], np.arange(200) % 5, resampling=FEW)
    assert "only 5 clusters" in (comparison.warning or "")


def test_a_pair_without_common_rows_is_left_out():
    scores = np.array([[0.1, np.nan, 0.2], [0.2, np.nan, 0.3], [np.nan, 0.3, 0.1]])
    assert list(compare_pairs(scores, [(1, 0), (2, 0)], resampling=FEW)) == [(2, 0)]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda s: compare_pairs(s, [(0, 9)]), "not a column"),
        (lambda s: compare_pairs(s[:, 0], [(0, 1)]), "scores"),
        (lambda s: compare_paired(s[:, 0], s[:5, 0]), "score_a"),
        (lambda s: compare_paired(s[:, 0], s[:, 1], [1, 2]), "cluster"),
        # Also if rows are unanswered, which are left out before anything is resampled.
        (lambda s: compare_paired(np.where(s[:, 0] > 0.1, s[:, 0], np.nan), s[:, 1], [1, 2]), "cluster has shape"),
    ],
)
def test_invalid_input_raises(table, call, match):
    with pytest.raises(ValueError, match=match):
        call(table[0])
