"""Baselines: past values of the same time of year, a line through the last observations, and a mixture of both."""

from dataclasses import dataclass

import numpy as np

from foretell.data.series.series import Days, Values
from foretell.forecasters.series.history import AskedSeries, SeriesChances
from foretell.metrics.arrays import Floats, Ints

YEAR = 365


@dataclass(frozen=True, kw_only=True)
class Neighbourhood:
    """Defines which past values count as neighbours of a resolution day."""

    window: int = 10
    """Days of the year on either side."""
    age: int | None = None
    """Days before the due day to look back; None for the whole record."""


WHOLE_RECORD = Neighbourhood()
PRIOR_YEARS = Neighbourhood(window=7, age=5 * YEAR)


def day_of_year(days: Days) -> Ints:
    """Day of the year, starting at 1; 31 December of a leap year also counts as 365.

    >>> day_of_year(np.array(["2023-12-31", "2024-12-31", "2024-01-01"], "M8[D]")).tolist()
    [365, 365, 1]
    """
    days = days.astype("M8[D]")
    return np.minimum((days - days.astype("M8[Y]").astype("M8[D]")).astype(np.int64) + 1, YEAR)


def cyclic_distance(a: Ints, b: Ints) -> Ints:
    """Days between two days of the year, across New Year if that is shorter: min(|a−b|, 365−|a−b|)."""
    apart = np.abs(a - b)
    return np.minimum(apart, YEAR - apart)


def neighbours(asked: AskedSeries, resolution: np.datetime64, near: Neighbourhood) -> Values:
    """Return the values before the due day that lie in the neighbourhood of a resolution day."""
    due, days = asked.due.astype("M8[D]"), asked.days
    first = 0 if near.age is None else int(np.searchsorted(days, due - np.timedelta64(near.age, "D"), side="right"))
    last = int(np.searchsorted(days, due, side="left"))
    target = day_of_year(np.asarray([resolution], "M8[D]"))
    return asked.values[first:last][cyclic_distance(day_of_year(days[first:last]), target) <= near.window]


def exceedance(near: Values, threshold: float) -> tuple[float, float]:
    """Laplace-smoothed (k+1)/(n+2) for k of n above the threshold, and the same for below."""
    n = len(near) + 2
    above, below = (np.sum(near > threshold) + 1) / n, (np.sum(near < threshold) + 1) / n
    return float(above), float(min(below, 1 - above))


def knn(asked: AskedSeries, near: Neighbourhood = WHOLE_RECORD) -> SeriesChances:
    """P(y(r) > v) = (k+1)/(n+2) over all neighbours by day of the year (BLF 2026, eq. 17-19; w = 10, any age)."""
    return SeriesChances.of([exceedance(neighbours(asked, day, near), asked.bar) for day in asked.resolution])


def linear(asked: AskedSeries, window: int = 30) -> SeriesChances:
    """P(y(r) > v) = Φᶜ((v − ŷ(r)) / σ̂), where ŷ is the least-squares line through the last `window` observations.

    σ̂ is the residual standard deviation (n − 2 degrees of freedom). It does not grow with the horizon, which makes the
    model far too confident about distant days: it serves only as a baseline (BLF 2026, eq. 21; window 30 for FRED, 60
    for stocks).
    """
    from scipy.special import ndtr

    rows, v = slice(max(0, asked.known - window), asked.known), asked.bar
    level, spread = _line(_number(asked.days[rows]), asked.values[rows], _number(asked.resolution))
    if spread <= 0:
        return SeriesChances(above=(level > v).astype(np.float64), below=(level < v).astype(np.float64))
    return SeriesChances(above=ndtr((level - v) / spread), below=ndtr((v - level) / spread))


def safe(chances: SeriesChances, alpha: float) -> SeriesChances:
    """α·p + (1−α)·½: shrink a forecast towards one half (BLF 2026, eq. 20; α is 0.5 for FRED, 0.1 for stocks)."""
    return SeriesChances(above=alpha * chances.above + (1 - alpha) / 2, below=alpha * chances.below + (1 - alpha) / 2)


def hybrid(asked: AskedSeries, window: int = 30, alpha: float = 0.5, beta: float = 0.5) -> SeriesChances:
    """β·safe-linear + (1−β)·prior-year neighbours; safe-linear alone if there are no neighbours (BLF 2026, eq. 22).

    Prior-year neighbours lie within seven days of the resolution's day of year and are at most five years old.
    """
    steady = safe(linear(asked, window), alpha)
    pairs: list[tuple[float, float]] = []
    for above, below, day in zip(steady.above.tolist(), steady.below.tolist(), asked.resolution, strict=True):
        near = neighbours(asked, day, PRIOR_YEARS)
        up, down = exceedance(near, asked.bar)
        mixed = beta * above + (1 - beta) * up, beta * below + (1 - beta) * down
        pairs.append(mixed if len(near) else (above, below))
    return SeriesChances.of(pairs)


def _number(days: Days) -> Floats:
    return days.astype("M8[D]").astype(np.int64).astype(np.float64)


def _line(x: Floats, y: Floats, at: Floats) -> tuple[Floats, float]:
    """Return the fitted line at the given positions, and the residual standard deviation."""
    if len(x) < 3:
        return np.full(len(at), y[-1]), 0.0
    centred = x - x.mean()
    slope = float(centred @ (y - y.mean())) / float(centred @ centred)
    residuals = y - y.mean() - slope * centred
    spread = float(np.sqrt(residuals @ residuals / (len(x) - 2)))
    # A line through a constant leaves rounding noise, not a spread.
    spread = spread if spread > 1e-12 * (1 + float(np.abs(y).max())) else 0.0
    return y.mean() + slope * (at - x.mean()), spread
