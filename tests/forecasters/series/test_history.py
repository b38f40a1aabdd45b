import numpy as np
import pytest

from foretell.forecasters.series.history import history


def ordinals(*text: str) -> np.ndarray:
    return np.array(text, "M8[D]").astype(np.int64)


def test_days_without_a_value_carry_the_last_one() -> None:
    days = np.array(["2024-01-05", "2024-01-08", "2024-01-09"], "M8[D]")
    past = history(days, np.array([1.0, 2.0, 3.0]), np.datetime64("2024-01-08"))
    assert past.values.tolist() == [1.0, 1.0, 1.0, 2.0]
    assert past.steps(ordinals("2024-01-08", "2024-01-15"), from_last=False).tolist() == [0, 7]


def test_nothing_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing of the series was known"):
        history(np.array(["2024-01-05"], "M8[D]"), np.array([1.0]), np.datetime64("2024-01-04"))


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
def test_slow_series_count_the_observations_to_come(
    dates: tuple[str, ...], due: str, resolution: str, expected: int
) -> None:
    past = history(np.array(dates, "M8[D]"), np.arange(3.0), np.datetime64(due))
    assert past.slow
    assert past.steps(ordinals(resolution), from_last=False).tolist() == [expected]


def test_overdue_observations_count_only_from_the_last_value() -> None:
    days = np.array(["2024-01-01", "2024-02-01", "2024-03-01"], "M8[D]")
    past = history(days, np.arange(3.0), np.datetime64("2024-05-15"))
    assert past.steps(ordinals("2024-06-15"), from_last=False).tolist() == [1]
    assert past.steps(ordinals("2024-06-15"), from_last=True).tolist() == [3]


def test_a_hole_in_the_record_is_not_fresh() -> None:
    days = np.concatenate(
        [np.arange("2020-01-01", "2020-02-01", dtype="M8[D]"), np.arange("2020-04-01", "2020-05-01", dtype="M8[D]")]
    )
    past = history(days, np.ones(len(days)), np.datetime64("2020-04-30"))
    assert past.fresh[0]
    assert past.fresh[-1]
    assert not past.fresh[60]
