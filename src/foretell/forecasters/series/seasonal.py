"""What the same time of year was like before: exceedance among neighbours by day of the year."""

from dataclasses import dataclass

import numpy as np

from foretell.evaluate.arrays import Floats, Ints
from foretell.forecasters.series.history import Chances
from foretell.sources.series import Days, Values

YEAR = 365


@dataclass(frozen=True, kw_only=True)
class Neighbourhood:
    """Which past values count as neighbours of a resolution day."""

    window: int = 10
    """Days of the year to either side."""
    age: int | None = None
    """Days before the due day to look back; None for the whole record."""


WHOLE_RECORD = Neighbourhood()
PRIOR_YEARS = Neighbourhood(window=7, age=5 * YEAR)


def day_of_year(days: Days) -> Ints:
    """1 for the first of January; 31 December of a leap year is folded onto 365.

    >>> day_of_year(np.array(["2023-12-31", "2024-12-31", "2024-01-01"], "M8[D]")).tolist()
    [365, 365, 1]
    """
    days = days.astype("M8[D]")
    return np.minimum((days - days.astype("M8[Y]").astype("M8[D]")).astype(np.int64) + 1, YEAR)


def cyclic_distance(a: Ints, b: Ints) -> Ints:
    """Days between two days of the year, across New Year where that is shorter: min(|a−b|, 365−|a−b|)."""
    apart = np.abs(a - b)
    return np.minimum(apart, YEAR - apart)


def neighbours(
    days: Days, values: Values, due: np.datetime64, resolution: np.datetime64, near: Neighbourhood
) -> Values:
    """Values before the due day that lie in the neighbourhood of the resolution day."""
    due = due.astype("M8[D]")
    first = 0 if near.age is None else int(np.searchsorted(days, due - np.timedelta64(near.age, "D"), side="right"))
    last = int(np.searchsorted(days, due, side="left"))
    target = day_of_year(np.asarray([resolution], "M8[D]"))
    return values[first:last][cyclic_distance(day_of_year(days[first:last]), target) <= near.window]


def exceedance(near: Values, threshold: float) -> tuple[float, float]:
    """Laplace-smoothed (k+1)/(n+2) for k of n above the threshold, and the same for below.

    >>> exceedance(np.array([1.0, 2.0, 3.0]), 1.5)
    (0.6, 0.4)
    """
    n = len(near) + 2
    above, below = (np.sum(near > threshold) + 1) / n, (np.sum(near < threshold) + 1) / n
    return float(above), float(min(below, 1 - above))


def knn(
    days: Days,
    values: Values,
    due: np.datetime64,
    resolution: Days,
    *,
    threshold: float | None = None,
    near: Neighbourhood = WHOLE_RECORD,
) -> Chances:
    """P(y(r) > v) = (k+1)/(n+2) over all neighbours by day of the year (BLF 2026, eq. 17-19; w = 10, any age).

    The threshold defaults to the last value on or before the due day.
    """
    v = reference(days, values, due) if threshold is None else threshold
    pairs = [exceedance(neighbours(days, values, due, r, near), v) for r in resolution]
    table: Floats = np.asarray(pairs, dtype=np.float64).reshape(len(pairs), 2)
    return Chances(above=table[:, 0], below=table[:, 1])


def reference(days: Days, values: Values, due: np.datetime64) -> float:
    """The last value on or before the due day."""
    known = int(np.searchsorted(days, np.asarray(due, "M8[D]"), side="right"))
    if known == 0:
        raise ValueError("days: nothing of the series was known on the due day")
    return float(values[known - 1])
