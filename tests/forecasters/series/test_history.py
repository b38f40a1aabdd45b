import numpy as np
import pytest

from foretell.forecasters.series.history import SeriesQuery, history


def days(*text: str) -> np.ndarray:
    return np.array(text, "M8[D]")


def make_query(when: np.ndarray, due: str, *resolution: str, values=None, threshold=None) -> SeriesQuery:
    values = np.arange(1.0, len(when) + 1) if values is None else values
    return SeriesQuery(when, values, np.datetime64(due), days(*resolution), threshold)


def test_days_without_a_value_carry_the_last_one() -> None:
    query = make_query(days("2024-01-05", "2024-01-08", "2024-01-09"), "2024-01-08", "2024-01-08", "2024-01-15")
    past = history(query)
    assert past.values.tolist() == [1.0, 1.0, 1.0, 2.0]
    assert past.steps(query).tolist() == [0, 7]


def test_series_without_known_values_raises_an_error() -> None:
    with pytest.raises(ValueError, match="no value on or before the due day"):
        history(make_query(days("2024-01-05"), "2024-01-04"))


@pytest.mark.parametrize(
    ("dates", "due", "resolution", "expected"),
    [
        (("2024-01-01", "2024-02-01", "2024-03-01"), "2024-03-15", "2024-03-31", 0),
        (("2024-01-01", "2024-02-01", "2024-03-01"), "2024-03-15", "2024-04-01", 1),
        (("2023-12-31", "2024-01-31", "2024-02-29"), "2024-03-15", "2024-03-31", 1),
        (("2023-11-30", "2023-12-31", "2024-01-31"), "2024-02-10", "2024-02-29", 1),
        (("2023-11-30", "2023-12-31", "2024-01-31"), "2024-02-10", "2024-02-28", 0),
        (("2023-06-30", "2023-09-30", "2023-12-31"), "2024-01-01", "2024-12-31", 4),
        (("2021-12-31", "2022-12-31", "2023-12-31"), "2024-02-01", "2024-12-30", 0),
        (("2021-12-31", "2022-12-31", "2023-12-31"), "2024-02-01", "2025-12-31", 2),
    ],
)
def test_steps_of_slow_series_are_the_expected_observations(
    dates: tuple[str, ...], due: str, resolution: str, expected: int
) -> None:
    query = make_query(days(*dates), due, resolution)
    assert history(query).slow
    assert history(query).steps(query).tolist() == [expected]


def test_overdue_observations_count_only_with_a_fixed_threshold() -> None:
    when = days("2024-01-01", "2024-02-01", "2024-03-01")
    for threshold, steps in ((None, 1), (2.0, 3)):
        query = make_query(when, "2024-05-15", "2024-06-15", threshold=threshold)
        assert history(query).steps(query).tolist() == [steps]


def test_values_carried_across_a_gap_are_not_fresh() -> None:
    when = np.concatenate(
        [np.arange("2020-01-01", "2020-02-01", dtype="M8[D]"), np.arange("2020-04-01", "2020-05-01", dtype="M8[D]")]
    )
    past = history(make_query(when, "2020-04-30"))
    assert past.fresh[0]
    assert past.fresh[-1]
    assert not past.fresh[60]
