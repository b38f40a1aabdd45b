"""How far a series moves over a horizon: random walk, momentum or mean reversion, each with a chance of not moving."""

import numpy as np

from foretell.evaluate.arrays import Floats, Ints
from foretell.forecasters.series.changes import (
    DRIFT,
    MONTH,
    OFF_LONG,
    OFF_YEAR,
    QUARTER,
    SEASON,
    STEP,
    YEAR,
    Changes,
    Motion,
    from_motion,
    motion,
)
from foretell.forecasters.series.history import Chances, History, history
from foretell.sources.series import Days, Values

WALK = [DRIFT]
MOMENTUM = [DRIFT, STEP, MONTH, QUARTER, YEAR]
REVERSION = [OFF_YEAR, OFF_LONG]
JOINT = [DRIFT, STEP, MONTH, QUARTER, YEAR, OFF_YEAR, OFF_LONG, SEASON]


def walk(
    days: Days,
    values: Values,
    due: np.datetime64,
    resolution: Days,
    *,
    threshold: float | None = None,
    drift: float = 0.0,
) -> Chances:
    """P(y(r) > v) for a random walk: y(r) − y(f) is 0 with P(no change), else normal with spread ∝ √h.

    P(no change) is how often the series stood still over that horizon; the drift is shrunk hard to `drift` (per
    unit of yearly spread), since even a decade of data says little about it.
    """
    return _moving(WALK, history(days, values, due), resolution, threshold=threshold, drift=drift)


def momentum(
    days: Days, values: Values, due: np.datetime64, resolution: Days, *, threshold: float | None = None
) -> Chances:
    """The walk with a mean that continues changes of the last week, month, quarter and year as far as they used to."""
    return _moving(MOMENTUM, history(days, values, due), resolution, threshold=threshold, drift=0.0)


def revert(
    days: Days, values: Values, due: np.datetime64, resolution: Days, *, threshold: float | None = None
) -> Chances:
    """The walk with a mean that returns to the averages of the last year and five years as far as it used to.

    A direct regression at the horizon: no half-life has to be assumed to be the same at all horizons.
    """
    return _moving(REVERSION, history(days, values, due), resolution, threshold=threshold, drift=0.0)


def offset(measured: Motion, past: History, threshold: float | None) -> float:
    """The change the question asks to exceed, on the scale on which the series moves."""
    if threshold is None or threshold == past.last:
        return 0.0
    if not measured.logarithmic:
        return threshold - past.last
    return float(np.log(threshold / past.last)) if threshold > 0 else -np.inf


def now(changes: Changes, columns: list[int], at: float) -> tuple[float, float]:
    """P(change > at) and P(change < at) from now on, by a regression on some columns."""
    return changes.beyond(changes.regression.using(columns), at)


def _moving(columns: list[int], past: History, resolution: Days, *, threshold: float | None, drift: float) -> Chances:
    measured = motion(past)
    at = offset(measured, past, threshold)
    steps: Ints = past.steps(resolution.astype("M8[D]").astype(np.int64), from_last=threshold is not None)
    pairs = [
        now(from_motion(measured, past, int(h), drift=drift), columns, at) if h > 0 else (float(at < 0), float(at > 0))
        for h in steps
    ]
    table: Floats = np.asarray(pairs, dtype=np.float64).reshape(len(pairs), 2)
    return Chances(above=table[:, 0], below=table[:, 1])
