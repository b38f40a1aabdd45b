"""Shares and their intervals, on the published matrix and on matrices made by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.studies.audit import AuditedText, clustered_rate, fence_matrix


def judged(decision, word, count, cluster=None):
    return [
        AuditedText(decision=decision, word=word, cluster=cluster or f"{decision}/{word}/{n % 400}")
        for n in range(count)
    ]


def test_the_published_matrix():
    """BLF, table 3: kept 1354 clean and 21 leaks, dropped 577 clean and 320 leaks."""
    found = fence_matrix(
        [
            *judged("kept", "clean", 1354),
            *judged("kept", "leak", 21),
            *judged("dropped", "clean", 577),
            *judged("dropped", "leak", 320),
        ]
    )
    assert (found.undetected.count, found.undetected.n) == (21, 1375)
    assert round(found.undetected.share, 3) == 0.015
    assert (round(found.undetected.low, 4), round(found.undetected.high, 4)) == (0.0100, 0.0232)
    assert found.undetected_at_most == found.undetected.share
    assert round(found.recall.share, 3) == 0.938
    assert round(found.false_drops.share, 3) == 0.299


def test_undecided_is_never_clean():
    found = fence_matrix([*judged("kept", "clean", 6), *judged("kept", "leak", 2), *judged("kept", "undecided", 2)])
    assert (found.kept.clean, found.kept.leak, found.kept.undecided) == (6, 2, 2)
    assert found.undetected.share == pytest.approx(2 / 8)
    assert found.undetected_at_most == pytest.approx(4 / 10)
    assert found.recall.n == 2
    assert found.recall.share == 0
    assert found.dropped.n == 0
    assert np.isnan(fence_matrix([]).undetected.share)
    assert (fence_matrix([]).undetected.low, fence_matrix([]).undetected.high) == (0, 1)


def test_leaks_that_sit_in_one_question_make_the_interval_wider():
    spread = clustered_rate([n % 10 == 0 for n in range(100)], [str(n) for n in range(100)])
    heaped = clustered_rate([n < 10 for n in range(100)], [str(n // 10) for n in range(100)])
    assert spread.share == heaped.share == 0.1
    assert spread.high == heaped.high
    assert spread.cluster_high == pytest.approx(spread.high, abs=0.005)
    assert heaped.cluster_high > spread.cluster_high + 0.2
    assert "clusters" in (heaped.warning or "")


def test_no_leak_in_many_texts_of_few_questions_proves_little():
    none = clustered_rate([False] * 1000, [str(n % 5) for n in range(1000)])
    assert none.high < 0.005
    assert none.cluster_high == pytest.approx(0.4345, abs=1e-4), "Wilson of 0 in 5"
    assert none.cluster_low == 0


def test_the_interval_by_question_covers_where_the_plain_one_does_not():
    rng = np.random.default_rng(0)
    covered = np.zeros(2)
    for _ in range(200):
        of_question = rng.beta(0.3, 5.7, size=60)  # mean 0.05, most questions at nought and a few far above
        sizes = rng.integers(5, 30, size=60)
        hits = np.concatenate([rng.random(m) < q for m, q in zip(sizes, of_question, strict=True)])
        found = clustered_rate(hits.tolist(), np.repeat(np.arange(60), sizes).astype(str).tolist())
        covered += [found.low <= 0.05 <= found.high, found.cluster_low <= 0.05 <= found.cluster_high]
    assert covered[0] / 200 < 0.8
    assert covered[1] / 200 > 0.88


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef")), min_size=1, max_size=60))
def test_intervals_hold_the_share_and_the_careful_one_is_no_narrower(rows):
    found = clustered_rate([hit for hit, _ in rows], [name for _, name in rows])
    assert 0 <= found.cluster_low <= found.share <= found.cluster_high <= 1
    assert 0 <= found.low <= found.share <= found.high <= 1
    assert found.cluster_high - found.cluster_low >= found.high - found.low - 1e-9
