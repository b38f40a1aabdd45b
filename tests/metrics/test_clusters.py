import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import factorise
from foretell.metrics.clusters import cross_clusters, effective_clusters, number_of_shared_days, share_days

labels = st.lists(st.integers(0, 6), min_size=1, max_size=30)


def same_partition(a, b) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return bool(((a[:, None] == a) == (b[:, None] == b)).all())


@given(labels)
@settings(max_examples=50)
def test_every_dtype_gives_the_same_codes(values):
    expected = np.unique(values, return_inverse=True)[1].tolist()
    texts = [f"q{v}" for v in values]
    for form in (values, np.array(values, dtype=np.uint8), np.array(values, dtype=float), texts):
        assert factorise(form).codes.tolist() == expected
    assert factorise(np.array(texts, dtype=object)).codes.tolist() == expected
    assert factorise(np.array(values) * 10**9).codes.tolist() == expected


def test_labels_name_the_codes():
    clusters = factorise(["z", "a", "z"])
    assert clusters.labels[clusters.codes].tolist() == ["z", "a", "z"]
    assert clusters.sizes.tolist() == [1, 2]
    days = factorise(np.array(["2026-01-02", "2026-01-01"], dtype="datetime64[D]"))
    assert days.codes.tolist() == [1, 0]


@given(labels, st.randoms())
@settings(max_examples=30)
def test_row_order_does_not_matter(values, random):
    order = list(range(len(values)))
    random.shuffle(order)
    whole = factorise(values)
    assert factorise(np.array(values)[order]).codes.tolist() == whole.codes[order].tolist()


def test_crossed_clusters_separate_rows_that_differ_in_either():
    crossed = cross_clusters(factorise([0, 0, 1, 1]), factorise([0, 1, 1, 1]))
    assert crossed.codes.tolist() == [0, 1, 2, 2]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=60))
@settings(max_examples=50)
def test_crossed_clusters_are_the_distinct_pairs(pairs):
    first, second = np.array(pairs).T
    expected = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
    assert same_partition(cross_clusters(factorise(first), factorise(second)).codes, expected)


def test_sums_add_up():
    values = np.arange(12.0).reshape(6, 2)
    sums = factorise(list("abcabc")).sums(values)
    assert sums.sum(axis=0) == pytest.approx(values.sum(axis=0))
    assert sums[0] == pytest.approx(values[[0, 3]].sum(axis=0))


def test_few_and_dominant_clusters_are_warned_about():
    assert factorise(np.arange(100)).warning is None
    assert "only 10 clusters" in (factorise(np.arange(10)).warning or "")
    lopsided = np.concatenate([np.zeros(100), np.arange(1, 100)])
    assert "has 50 % of the rows" in (factorise(lopsided).warning or "")
    assert factorise(["x", "x"]).warning == "only 1 cluster: intervals from fewer than 30 tend to be too short"


@pytest.mark.parametrize(
    "bad",
    [
        [1.0, float("nan")],
        ["a", None],
        np.array(["a", float("nan")], dtype=object),
        np.array(["2026-01-01", "NaT"], dtype="datetime64[D]"),
        [],
        [[1, 2]],
        np.array(["a", 1], dtype=object),
    ],
)
def test_invalid_labels_raise(bad):
    with pytest.raises(ValueError, match="cluster"):
        factorise(bad)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="same number"):
        cross_clusters(factorise([1]), factorise([1, 2]))


def test_days_are_shared_if_any_day_has_several_clusters():
    cluster, day = np.array([0, 0, 1, 2, 3]), np.array([0, 0, 0, 1, 4])
    assert number_of_shared_days(cluster, day) == 3
    assert number_of_shared_days(cluster, np.array([5, 5, 3, 2, 1])) == 0, "every day belongs to a single cluster"


@pytest.mark.parametrize(("days", "shared"), [(9, False), (10, True)])
def test_days_are_resampled_from_ten_days_on(days, shared):
    cluster = np.arange(2 * days)
    assert share_days(cluster, cluster // 2) is shared


def test_effective_clusters_follow_satterthwaite():
    assert effective_clusters([2], [1.0]) == 2
    assert effective_clusters([11, 21], [1.0, 3.0]) == 1 + int(16 / (1 / 10 + 9 / 20))
    assert effective_clusters([5, 1], [1.0, 0.0]) == 1, "nothing is known of the uncertainty of a single cluster"
    assert effective_clusters([5, 7], [0.0, 0.0]) == 12
