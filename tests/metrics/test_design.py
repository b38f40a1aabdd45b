import numpy as np
import pytest

from foretell.metrics import ResamplingDesign


def test_without_labels_every_row_stands_alone():
    [only] = ResamplingDesign().strata(4)
    assert only.units.n == 4
    assert only.margins is None


def test_strata_have_their_own_clusters():
    design = ResamplingDesign(cluster=["x", "x", "y", "x"], stratum=["m", "m", "m", "d"])
    dataset, market = design.strata(4)
    assert (dataset.label, dataset.rows.tolist(), dataset.units.n) == ("d", [3], 1)
    assert (market.label, market.rows.tolist(), market.units.n) == ("m", [0, 1, 2], 2)


def test_crossed_margins_name_rows_and_columns_of_cells():
    [only] = ResamplingDesign(cluster=["q1", "q1", "q2"], crossed=["d1", "d2", "d2"]).strata(3)
    assert only.units.n == 3
    assert only.margins is not None
    first, second = only.margins
    assert first.labels[first.codes].tolist() == ["q1", "q1", "q2"]
    assert second.labels[second.codes].tolist() == ["d1", "d2", "d2"]
    assert only.n_clusters(np.array([True, True, False])) == 1
    assert "only 2 clusters" in (only.warning(np.ones(3, dtype=bool)) or "")


def test_the_heavier_margin_is_named():
    question = np.arange(100)
    day = np.where(question < 40, "monday", question.astype(str))
    [only] = ResamplingDesign(cluster=question, crossed=day).strata(100)
    assert only.warning(np.ones(100, dtype=bool)) == (
        "cluster monday holds 40 % of the rows and decides much of the result"
    )


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
