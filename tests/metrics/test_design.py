import numpy as np
import pytest

from foretell.metrics import ResamplingDesign


def test_without_labels_every_row_is_a_cluster():
    [only] = ResamplingDesign().strata(4)
    assert [part.n for part in only.drawn] == [4]


def test_strata_have_their_own_clusters():
    design = ResamplingDesign(cluster=["x", "x", "y", "x"], stratum=["m", "m", "m", "d"])
    dataset, market = design.strata(4)
    assert (dataset.label, dataset.rows.tolist(), dataset.n_clusters) == ("d", [3], 1)
    assert (market.label, market.rows.tolist(), market.n_clusters) == ("m", [0, 1, 2], 2)


def test_crossed_ways_are_resampled_each_and_combined():
    [only] = ResamplingDesign(cluster=["q1", "q1", "q2"], crossed=["d1", "d2", "d2"]).strata(3)
    assert [part.n for part in only.drawn] == [2, 2, 3]
    first, second = only.ways
    assert first.labels[first.codes].tolist() == ["q1", "q1", "q2"]
    assert second.labels[second.codes].tolist() == ["d1", "d2", "d2"]
    assert only.n_clusters == 2
    assert "only 2 clusters" in (only.warning or "")


def test_the_warning_names_the_dominant_cluster():
    question = np.arange(100)
    day = np.where(question < 40, "monday", question.astype(str))
    [only] = ResamplingDesign(cluster=question, crossed=day).strata(100)
    assert only.warning == "cluster monday has 40 % of the rows and dominates the result"


def test_the_warning_does_not_name_codes():
    [only] = ResamplingDesign(cluster=np.where(np.arange(100) < 40, 7, np.arange(100))).strata(100)
    assert only.warning == "one cluster has 40 % of the rows and dominates the result"


def test_days_are_crossed_in_each_stratum_in_which_clusters_share_ten_of_them():
    cluster, kind = np.arange(40), np.repeat(["a", "b"], 20)
    day, unknown = np.where(cluster < 20, cluster % 10, cluster % 9), np.full(40, -1)
    both = ResamplingDesign(cluster=cluster, days={"unknown": unknown, "day": day}, stratum=kind, stream=3).strata(40)
    assert [(part.day, part.n_clusters, len(part.drawn), part.stream) for part in both] == [
        ("day", 10, 3, 3),
        ("", 20, 1, 4),
    ]
    assert both[0].days_warning is None
    assert "clusters share 9 days (day)" in (both[1].days_warning or "")
    one_day = ResamplingDesign(cluster=cluster, days={"day": np.zeros(40, np.int64)}).strata(40)[0]
    own_days = ResamplingDesign(cluster=cluster, days={"day": cluster}).strata(40)[0]
    assert (one_day.days_warning, own_days.days_warning) == (None, None)


def test_take_selects_the_same_rows_of_all_arrays():
    design = ResamplingDesign(cluster=["a", "b", "c"], stratum=["x", "y", "y"], weight=[1, 2, 3])
    part = design.take(np.array([True, False, True]))
    assert np.asarray(part.cluster).tolist() == ["a", "c"]
    assert part.weights(2).tolist() == [1, 3]
    assert part.crossed is None


@pytest.mark.parametrize("name", ["cluster", "crossed", "stratum", "weight"])
def test_wrong_length_names_the_argument(name):
    with pytest.raises(ValueError, match=name):
        ResamplingDesign(**{name: [1, 2]}).strata(3)
