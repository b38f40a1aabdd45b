"""Half trend, half the same time of year in recent years."""

import numpy as np

from foretell.forecasters.series.history import Chances
from foretell.forecasters.series.seasonal import PRIOR_YEARS, exceedance, neighbours, reference
from foretell.forecasters.series.trend import linear, safe
from foretell.sources.series import Days, Values


def hybrid(
    days: Days,
    values: Values,
    due: np.datetime64,
    resolution: Days,
    *,
    threshold: float | None = None,
    line: tuple[int, float, float] = (30, 0.5, 0.5),
) -> Chances:
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
    return Chances(above=above, below=below)
