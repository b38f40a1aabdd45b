import numpy as np
import pytest

from foretell.metrics import ResamplingDesign


def test_without_labels_every_row_stands_alone():
    [only] = ResamplingDesign().strata(4)
    assert [part.n for part in only.drawn] == [4]


def test_strata_have_their_own_clusters():
    design = ResamplingDesign(cluster=["x", "x", "y", "x"], stratum=["m", "m", "m", "d"])
    dataset, market = design.strata(4)
    assert (dataset.label, dataset.rows.tolist(), dataset.n_clusters) == ("d", [3], 1)
    assert (market.label, market.rows.tolist(), market.n_clusters) == ("m", [0, 1, 2], 2)


def test_crossed_ways_are_drawn_each_and_as_cells():
    [only] = ResamplingDesign(cluster=["q1", "q1", "q2"], crossed=["d1", "d2", "d2"]).strata(3)
    assert [part.n for part in only.drawn] == [2, 2, 3]
    first, second = only.ways
    assert first.labels[first.codes].tolist() == ["q1", "q1", "q2"]
    assert second.labels[second.codes].tolist() == ["d1", "d2", "d2"]
    assert only.n_clusters == 2
    assert "only 2 clusters" in (only.warning or "")


def test_the_heavier_margin_is_named():
    question = np.arange(100)
    day = np.where(question < 40, "monday", question.astype(str))
    [only] = ResamplingDesign(cluster=question, crossed=day).strata(100)
    assert only.warning == "cluster monday holds 40 % of the rows and decides much of the result"


def test_take_keeps_all_arrays_in_step():
    design = ResamplingDesign(cluster=["a", "b", "c"], stratum=["x", "y", "y"], weight=[1, 2, 3])
    kept = design.take(np.array([True, False, True]))
    assert np.asarray(kept.cluster).tolist() == ["a", "c"]
    assert kept.weights(2).tolist() == [1, 3]
    assert kept.crossed is None


@pytest.mark.parametrize("name", ["cluster", "crossed", "stratum", "weight"])
def test_wrong_length_names_the_argument(name):
    with pytest.raises(ValueError, match=name):
        ResamplingDesign(**{name: [1, 2]}).strata(3)
