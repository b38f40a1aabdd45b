"""A straight line through the last observations, carried on."""

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.series.history import Chances
from foretell.forecasters.series.seasonal import reference
from foretell.sources.series import Days, Values


def linear(
    days: Days,
    values: Values,
    due: np.datetime64,
    resolution: Days,
    *,
    threshold: float | None = None,
    window: int = 30,
) -> Chances:
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
        return Chances(above=(level > v).astype(np.float64), below=(level < v).astype(np.float64))
    return Chances(above=ndtr((level - v) / spread), below=ndtr((v - level) / spread))


def safe(chances: Chances, alpha: float) -> Chances:
    """α·p + (1−α)·½: a forecast that trusts its model by a share α (BLF 2026, eq. 20; 0.5 for FRED, 0.1 for stocks)."""
    return Chances(above=alpha * chances.above + (1 - alpha) / 2, below=alpha * chances.below + (1 - alpha) / 2)


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
