"""What the same time of year was like before: exceedance among neighbours by day of the year."""

from dataclasses import dataclass

import numpy as np

from foretell.data.series.series import Days, Values
from foretell.forecasters.series.history import SeriesChances
from foretell.metrics.arrays import Floats, Ints

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
) -> SeriesChances:
    """P(y(r) > v) = (k+1)/(n+2) over all neighbours by day of the year (BLF 2026, eq. 17-19; w = 10, any age).

    The threshold defaults to the last value on or before the due day.
    """
    v = reference(days, values, due) if threshold is None else threshold
    pairs = [exceedance(neighbours(days, values, due, r, near), v) for r in resolution]
    table: Floats = np.asarray(pairs, dtype=np.float64).reshape(len(pairs), 2)
    return SeriesChances(above=table[:, 0], below=table[:, 1])


def reference(days: Days, values: Values, due: np.datetime64) -> float:
    """The last value on or before the due day."""
    known = int(np.searchsorted(days, np.asarray(due, "M8[D]"), side="right"))
    if known == 0:
        raise ValueError("days: nothing of the series was known on the due day")
    return float(values[known - 1])


# A straight line through the last observations, carried on.


def linear(
    days: Days,
    values: Values,
    due: np.datetime64,
    resolution: Days,
    *,
    threshold: float | None = None,
    window: int = 30,
) -> SeriesChances:
    """P(y(r) > v) = Φᶜ((v − ŷ(r)) / σ̂), ŷ the least-squares line through the last `window` observations.

    σ̂ is the residual standard deviation (n − 2 degrees of freedom) and does not grow with the horizon, which
    makes the model far too sure of distant days: it is here to be compared with (BLF 2026, eq. 21; window 30
    for FRED, 60 for stocks).
    """
    from scipy.special import ndtr

    v = reference(days, values, due) if threshold is None else threshold
    known = int(np.searchsorted(days, np.asarray(due, "M8[D]"), side="right"))
    start = max(0, known - window)
    level, spread = _line(_number(days[start:known]), values[start:known], _number(resolution))
    if spread <= 0:
        return SeriesChances(above=(level > v).astype(np.float64), below=(level < v).astype(np.float64))
    return SeriesChances(above=ndtr((level - v) / spread), below=ndtr((v - level) / spread))


def safe(chances: SeriesChances, alpha: float) -> SeriesChances:
    """α·p + (1−α)·½: a forecast that trusts its model by a share α (BLF 2026, eq. 20; 0.5 for FRED, 0.1 for stocks)."""
    return SeriesChances(above=alpha * chances.above + (1 - alpha) / 2, below=alpha * chances.below + (1 - alpha) / 2)


def _number(days: Days) -> Floats:
    return days.astype("M8[D]").astype(np.int64).astype(np.float64)


def _line(x: Floats, y: Floats, at: Floats) -> tuple[Floats, float]:
    """The fitted line at given places, and the residual standard deviation."""
    if len(x) < 3:
        return np.full(len(at), y[-1]), 0.0
    centred = x - x.mean()
    slope = float(centred @ (y - y.mean())) / float(centred @ centred)
    residuals = y - y.mean() - slope * centred
    spread = float(np.sqrt(residuals @ residuals / (len(x) - 2)))
    # A line through a constant leaves rounding noise, not a spread.
    spread = spread if spread > 1e-12 * (1 + float(np.abs(y).max())) else 0.0
    return y.mean() + slope * (at - x.mean()), spread


# Half trend, half the same time of year in recent years.


def hybrid(
    days: Days,
    values: Values,
    due: np.datetime64,
    resolution: Days,
    *,
    threshold: float | None = None,
    line: tuple[int, float, float] = (30, 0.5, 0.5),
) -> SeriesChances:
    """β·safe-linear + (1−β)·prior-year neighbours; safe-linear alone where there are none (BLF 2026, eq. 22).

    `line` holds the trend's window, its trust α, and the trend's share β. Prior-year neighbours lie within seven
    days of the resolution's day of year and are at most five years old.
    """
    window, alpha, beta = line
    v = reference(days, values, due) if threshold is None else threshold
    steady = safe(linear(days, values, due, resolution, threshold=v, window=window), alpha)
    above, below = steady.above.copy(), steady.below.copy()
    for i, day in enumerate(resolution):
        near = neighbours(days, values, due, day, PRIOR_YEARS)
        if len(near):
            up, down = exceedance(near, v)
            above[i] = beta * above[i] + (1 - beta) * up
            below[i] = beta * below[i] + (1 - beta) * down
    return SeriesChances(above=above, below=below)
