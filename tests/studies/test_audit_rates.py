"""Shares and their intervals, on the published matrix and on hand-made matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.studies.audit.auditor import AuditedText, clustered_rate, filter_matrix


def judged(decision, word, count, cluster=None):
    return [
        AuditedText(decision=decision, word=word, cluster=cluster or f"{decision}/{word}/{n % 400}")
        for n in range(count)
    ]


def test_rates_of_the_published_matrix():
    """BLF, table 3: kept 1354 clean and 21 leaks, dropped 577 clean and 320 leaks."""
    matrix = filter_matrix(
        [
            *judged("kept", "clean", 1354),
            *judged("kept", "leak", 21),
            *judged("dropped", "clean", 577),
            *judged("dropped", "leak", 320),
        ]
    )
    assert (matrix.undetected.count, matrix.undetected.n) == (21, 1375)
    assert round(matrix.undetected.share, 3) == 0.015
    assert (round(matrix.undetected.low, 4), round(matrix.undetected.high, 4)) == (0.0100, 0.0232)
    assert matrix.undetected_at_most == matrix.undetected.share
    assert round(matrix.recall.share, 3) == 0.938
    assert round(matrix.false_drops.share, 3) == 0.299


def test_undecided_is_never_clean():
    matrix = filter_matrix([*judged("kept", "clean", 6), *judged("kept", "leak", 2), *judged("kept", "undecided", 2)])
    assert (matrix.kept.clean, matrix.kept.leak, matrix.kept.undecided) == (6, 2, 2)
    assert matrix.undetected.share == pytest.approx(2 / 8)
    assert matrix.undetected_at_most == pytest.approx(4 / 10)
    assert matrix.recall.n == 2
    assert matrix.recall.share == 0
    assert matrix.dropped.n == 0
    assert np.isnan(filter_matrix([]).undetected.share)
    assert (filter_matrix([]).undetected.low, filter_matrix([]).undetected.high) == (0, 1)


def test_leaks_concentrated_in_one_question_widen_the_interval():
    spread = clustered_rate([n % 10 == 0 for n in range(100)], [str(n) for n in range(100)])
    heaped = clustered_rate([n < 10 for n in range(100)], [str(n // 10) for n in range(100)])
    assert spread.share == heaped.share == 0.1
    assert spread.high == heaped.high
    assert spread.cluster_high == pytest.approx(spread.high, abs=0.005)
    assert heaped.cluster_high > spread.cluster_high + 0.2
    assert "clusters" in (heaped.warning or "")


def test_interval_is_wide_without_leaks_in_few_questions():
    none = clustered_rate([False] * 1000, [str(n % 5) for n in range(1000)])
    assert none.high < 0.005
    assert none.cluster_high == pytest.approx(0.4345, abs=1e-4), "Wilson of 0 in 5"
    assert none.cluster_low == 0


def test_clustered_interval_covers_where_the_plain_one_does_not():
    rng = np.random.default_rng(0)
    covered = np.zeros(2)
    for _ in range(200):
        of_question = rng.beta(0.3, 5.7, size=60)  # mean 0.05, most questions at 0 and a few far above
        sizes = rng.integers(5, 30, size=60)
        hits = np.concatenate([rng.random(m) < q for m, q in zip(sizes, of_question, strict=True)])
        rate = clustered_rate(hits.tolist(), np.repeat(np.arange(60), sizes).astype(str).tolist())
        covered += [rate.low <= 0.05 <= rate.high, rate.cluster_low <= 0.05 <= rate.cluster_high]
    assert covered[0] / 200 < 0.8
    assert covered[1] / 200 > 0.88


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef")), min_size=1, max_size=60))
def test_intervals_contain_the_share_and_the_clustered_one_is_wider(rows):
    rate = clustered_rate([hit for hit, _ in rows], [name for _, name in rows])
    assert 0 <= rate.cluster_low <= rate.share <= rate.cluster_high <= 1
    assert 0 <= rate.low <= rate.share <= rate.high <= 1
    assert rate.cluster_high - rate.cluster_low >= rate.high - rate.low - 1e-9
