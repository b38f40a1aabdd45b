import numpy as np
import pytest

from foretell.forecasters.series import AskedSeries
from foretell.forecasters.series.history import history


def days(*text: str) -> np.ndarray:
    return np.array(text, "M8[D]")


def asked(when: np.ndarray, due: str, *resolution: str, values=None, threshold=None) -> AskedSeries:
    values = np.arange(1.0, len(when) + 1) if values is None else values
    return AskedSeries(when, values, np.datetime64(due), days(*resolution), threshold)


def test_days_without_a_value_carry_the_last_one() -> None:
    one = asked(days("2024-01-05", "2024-01-08", "2024-01-09"), "2024-01-08", "2024-01-08", "2024-01-15")
    past = history(one)
    assert past.values.tolist() == [1.0, 1.0, 1.0, 2.0]
    assert past.steps(one).tolist() == [0, 7]


def test_nothing_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing of the series was known"):
        history(asked(days("2024-01-05"), "2024-01-04"))


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
    one = asked(days(*dates), due, resolution)
    assert history(one).slow
    assert history(one).steps(one).tolist() == [expected]


def test_overdue_observations_count_only_from_the_last_value() -> None:
    when = days("2024-01-01", "2024-02-01", "2024-03-01")
    for threshold, steps in ((None, 1), (2.0, 3)):
        one = asked(when, "2024-05-15", "2024-06-15", threshold=threshold)
        assert history(one).steps(one).tolist() == [steps]


def test_a_hole_in_the_record_is_not_fresh() -> None:
    when = np.concatenate(
        [np.arange("2020-01-01", "2020-02-01", dtype="M8[D]"), np.arange("2020-04-01", "2020-05-01", dtype="M8[D]")]
    )
    past = history(asked(when, "2020-04-30"))
    assert past.fresh[0]
    assert past.fresh[-1]
    assert not past.fresh[60]
