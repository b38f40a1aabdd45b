"""Ranges of numeric questions."""

import numpy as np
import pytest

from foretell.submit.metaculus_cdf import NumericRange


def test_edges_of_a_logarithmic_range_follow_the_platforms_map():
    scale = NumericRange(minimum=2.0, maximum=500.0, zero_point=-10.0)
    edges = scale.edges()
    ratio = (500.0 + 10.0) / (2.0 + 10.0)
    place = (np.log((edges - 2.0) * (ratio - 1) + 498.0) - np.log(498.0)) / np.log(ratio)
    assert place == pytest.approx(np.linspace(0, 1, 201))
    assert (edges[0], edges[-1]) == (2.0, 500.0)
    assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"minimum": 1, "maximum": 1},
        {"minimum": 0, "maximum": 1, "zero_point": 0.5},
        {"minimum": 0, "maximum": 1, "outcomes": 0},
    ],
)
def test_what_is_no_range(wrong: dict[str, float]):
    with pytest.raises(ValueError):
        NumericRange(**wrong)
