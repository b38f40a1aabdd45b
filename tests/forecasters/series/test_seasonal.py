import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.series.forecasters import (
    PRIOR_YEARS,
    Neighbourhood,
    cyclic_distance,
    day_of_year,
    exceedance,
    knn,
    neighbours,
)
from foretell.forecasters.series.history import SeriesQuery


def days(*text: str) -> np.ndarray:
    return np.array(text, "M8[D]")


def test_distance_crosses_new_year() -> None:
    assert cyclic_distance(day_of_year(days("2023-12-31")), day_of_year(days("2024-01-02"))).tolist() == [2]
    assert cyclic_distance(day_of_year(days("2023-01-01")), day_of_year(days("2023-07-02"))).tolist() == [182]


@given(st.integers(1, 365), st.integers(1, 365))
@settings(max_examples=50)
def test_distance_is_symmetric_and_at_most_half_a_year(a: int, b: int) -> None:
    one, other = cyclic_distance(np.array([a]), np.array([b])), cyclic_distance(np.array([b]), np.array([a]))
    assert one == other
    assert 0 <= one[0] <= 182


def test_knn_matches_values_computed_by_hand() -> None:
    # Neighbours of 1 July 2023 within 10 days, before the due day: 25 June 2021 (3), 5 July 2022 (5), 11 July 2022 (1).
    when = days("2021-06-25", "2021-09-01", "2022-07-05", "2022-07-11", "2022-07-12", "2023-06-20")
    values = np.array([3.0, 99.0, 5.0, 1.0, 99.0, 2.0])
    chances = knn(SeriesQuery(when, values, np.datetime64("2023-06-20"), days("2023-07-01")))
    assert chances.above.tolist() == [pytest.approx((2 + 1) / (3 + 2))]
    assert chances.below.tolist() == [pytest.approx((1 + 1) / (3 + 2))]


def test_due_day_is_not_a_neighbour() -> None:
    when = days("2022-06-20", "2023-06-20")
    near = neighbours(
        SeriesQuery(when, np.array([1.0, 2.0]), np.datetime64("2023-06-20"), np.array([np.datetime64("2023-06-22")])),
        np.datetime64("2023-06-22"),
        Neighbourhood(),
    )
    assert near.tolist() == [1.0]


def test_age_limit_is_exclusive() -> None:
    due = np.datetime64("2023-06-20")
    when = np.array([due - np.timedelta64(5 * 365, "D"), due - np.timedelta64(5 * 365 - 1, "D")])
    near = neighbours(
        SeriesQuery(when, np.array([1.0, 2.0]), due, np.array([np.datetime64("2023-06-21")])),
        np.datetime64("2023-06-21"),
        PRIOR_YEARS,
    )
    assert near.tolist() == [2.0]


def test_exceedance_without_neighbours_is_one_half() -> None:
    assert exceedance(np.array([]), 3.0) == (0.5, 0.5)


def test_values_at_the_threshold_are_neither_above_nor_below() -> None:
    above, below = exceedance(np.array([1.0, 1.0, 1.0, 2.0]), 1.0)
    assert above == pytest.approx(2 / 6)
    assert below == pytest.approx(1 / 6)
