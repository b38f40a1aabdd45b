"""Agreement of marks, by hand and against other libraries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import Resampling, kappa_from_sums, mean_interval, rater_agreement, share_interval

QUICK = Resampling(draws=100)
marks = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=3, max_size=30)


def test_kappa_matches_hand_computation() -> None:
    # Observed: 4 on the diagonal, 1 off by one, 1 off by two. Margins: first 2,2,2; second 3,1,2.
    first, second = [1, 1, 2, 2, 3, 3], [1, 1, 1, 2, 3, 1]
    observed = (1 * 1 + 1 * 4) / 6
    expected = sum(2 / 6 * q / 6 * (i - j) ** 2 for i in (1, 2, 3) for j, q in ((1, 4), (2, 1), (3, 1)))
    assert [second.count(j) for j in (1, 2, 3)] == [4, 1, 1]
    agreement = rater_agreement(first, second, list("abcdef"), resampling=QUICK)
    assert agreement.kappa.estimate == pytest.approx(1 - observed / expected)
    assert agreement.distance.estimate == pytest.approx(3 / 6)
    assert agreement.bias.estimate == pytest.approx(3 / 6)
    assert (agreement.exact, agreement.within_one) == (pytest.approx(4 / 6), pytest.approx(5 / 6))


@given(marks)
@settings(max_examples=60)
def test_agreement_matches_other_libraries(pairs: list[tuple[int, int]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    stats = pytest.importorskip("scipy.stats")
    first, second = (list(side) for side in zip(*pairs, strict=True))
    agreement = rater_agreement(first, second, np.arange(len(first)), resampling=QUICK)
    if len(set(first) | set(second)) > 1:
        for ours, weights in ((agreement.kappa, "quadratic"), (agreement.linear, "linear")):
            theirs = metrics.cohen_kappa_score(first, second, labels=[1, 2, 3, 4, 5], weights=weights)
            assert ours.estimate == pytest.approx(theirs, abs=1e-9)
    if len(set(first)) > 1 and len(set(second)) > 1:
        assert agreement.pearson.estimate == pytest.approx(stats.pearsonr(first, second).statistic, abs=1e-7)
        assert agreement.spearman.estimate == pytest.approx(stats.spearmanr(first, second).statistic, abs=1e-7)


def test_an_item_counts_once_however_many_people_rated_it() -> None:
    single = rater_agreement([1, 5, 3], [1, 1, 3], ["a", "b", "c"], resampling=QUICK)
    many = rater_agreement([1, 5, 5, 5, 5, 3], [1, 1, 1, 1, 1, 3], ["a", "b", "b", "b", "b", "c"], resampling=QUICK)
    assert many.kappa.estimate == pytest.approx(single.kappa.estimate)
    assert many.pearson.estimate == pytest.approx(single.pearson.estimate)
    assert many.spearman.estimate == pytest.approx(single.spearman.estimate)
    assert many.variance == pytest.approx(single.variance)
    assert (many.items, many.ratings) == (3, 6)


def test_the_interval_covers_the_estimate_and_narrows_with_items() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 6, 400)
    noisy = np.clip(truth + rng.integers(-1, 2, 400), 1, 5)
    few = rater_agreement(truth[:40], noisy[:40], np.arange(40))
    many = rater_agreement(truth, noisy, np.arange(400))
    for agreement in (few, many):
        assert agreement.kappa.low < agreement.kappa.estimate < agreement.kappa.high
    assert many.kappa.high - many.kappa.low < few.kappa.high - few.kappa.low


def test_kappa_is_missing_if_marks_do_not_vary() -> None:
    agreement = rater_agreement([3, 3, 3], [3, 3, 3], list("abc"), resampling=QUICK)
    assert np.isnan(agreement.kappa.estimate)
    assert np.isnan(agreement.pearson.estimate)
    assert agreement.exact == 1
    assert np.isnan(kappa_from_sums(np.zeros(25), 5))


@pytest.mark.parametrize(
    ("first", "second", "item", "message"),
    [
        ([1, 6], [1, 2], "ab", r"first\[1\]"),
        ([1, 2], [1, 2.5], "ab", r"second\[1\]"),
        ([1, 2], [1], "ab", "shapes differ"),
        ([], [], "", "empty"),
    ],
)
def test_invalid_marks_are_refused(first: list, second: list, item: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rater_agreement(first, second, list(item))


def test_shares_and_means_of_empty_input_are_none() -> None:
    assert share_interval(0, 0) is None
    assert mean_interval([], []) is None
    assert share_interval(5, 5).low < 1 == share_interval(5, 5).estimate
