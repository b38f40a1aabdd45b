import numpy as np
import pytest

from foretell.metrics import one_sided_p, stars, two_sided_p


@pytest.mark.parametrize(("p", "expected"), [(0.0, "***"), (0.001, "**"), (0.01, "*"), (0.05, ""), (np.nan, "")])
def test_stars_are_strict(p, expected):
    assert stars(p) == expected


def test_one_sided_counts_the_other_side_of_zero():
    draws = np.array([-2.0, -1.0, 0.0, 1.0])
    assert one_sided_p(-0.5, draws) == 0.5
    assert one_sided_p(0.5, draws) == 0.75
    assert np.isnan(one_sided_p(0.5, draws[:0]))


def test_two_sided_is_never_zero_nor_above_one():
    assert two_sided_p(np.ones(999)) == pytest.approx(0.002)
    assert two_sided_p(np.zeros(9)) == 1.0
    assert np.isnan(two_sided_p(np.ones(0)))
