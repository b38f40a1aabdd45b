"""The heat map of distances: symmetric, and empty on the diagonal."""

from xml.etree import ElementTree

import numpy as np

from foretell.report.charts.groups import MOST_ROWS, distance_heatmap


def test_every_pair_is_shown_twice_and_the_diagonal_is_empty():
    distance = np.array([[0.0, 0.012, np.nan], [0.012, 0.0, 0.02], [np.nan, 0.02, 0.0]])
    svg = distance_heatmap(["a", "b <c>", "d"], distance, label="bits").svg
    ElementTree.fromstring(svg)
    assert svg.count(">0.012<") == svg.count(">0.020<") == 2
    assert ">0.000<" not in svg
    assert "b &lt;c&gt;" in svg


def test_equal_single_and_too_many_forecasters():
    ElementTree.fromstring(distance_heatmap(["a", "b"], np.zeros((2, 2)), label="bits").svg)
    assert "Fewer than two" in distance_heatmap(["a"], np.zeros((1, 1)), label="bits").svg
    names = [f"m{i}" for i in range(MOST_ROWS + 5)]
    assert f"the first {MOST_ROWS} of {MOST_ROWS + 5}" in distance_heatmap(names, np.ones((35, 35)), label="bits").svg
