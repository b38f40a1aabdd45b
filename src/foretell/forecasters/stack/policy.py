"""What other series say about an interest rate: the central bank's next steps, and averages that lag behind.

A one-year rate below the overnight rate expects cuts, one above it expects rises, and the short end of the curve
follows (Campbell & Shiller 1991). An average moves predictably, because the days that will leave its window are known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np

from foretell.data.series.series import Series
from foretell.forecasters.combine.rows import logit
from foretell.metrics.arrays import Floats, Ints

ONE_YEAR, OVERNIGHT = "DGS1", "EFFR"
OLDEST = 30
"""Age, in days, beyond which a rate says nothing about today's outlook."""
NEUTRAL, SCALE, STRENGTH = 0.03, 0.3, 1.6
FULL_DAYS, SLOWNESS = 90.0, 0.35
"""Log-odds of a rise of money-market rates: STRENGTH·tanh((outlook − NEUTRAL)/SCALE), in full after a quarter, before
that reduced by a power of time. Fitted on 2010 to 2024 and shrunk to zero, because policy turned only a few times
then."""
RISES, PER_POINT, FEWEST, MOST = 0.4, 5.0, 0.02, 4.0
"""Rises a year of administered rates at an outlook of zero, their growth per point of outlook, and their bounds."""


def outlook(others: Mapping[str, Series], day: date) -> float | None:
    """The one-year rate minus the overnight rate, in percentage points; None if either is unavailable."""
    one_year, overnight = (_newest(others.get(id), day) for id in (ONE_YEAR, OVERNIGHT))
    return None if one_year is None or overnight is None else one_year - overnight


def _newest(series: Series | None, day: date) -> float | None:
    if series is None:
        return None
    days, today = series.days.astype("M8[D]"), np.datetime64(day, "D")
    place = int(np.searchsorted(days, today, side="right")) - 1
    fresh = place >= 0 and int((today - days[place]).astype(np.int64)) <= OLDEST
    return float(series.values[place]) if fresh else None


def money_market(outlook: float, horizon: Floats) -> Floats:
    """What the outlook adds to the log-odds that a money-market rate rises.

    >>> money_market(-0.4, np.array([7.0, 90.0])).round(1).tolist()
    [-0.6, -1.4]
    """
    return STRENGTH * np.tanh((outlook - NEUTRAL) / SCALE) * np.minimum(1.0, (horizon / FULL_DAYS) ** SLOWNESS)


def administered(outlook: float | None, horizon: Floats, usual: float) -> Floats:
    """P(an administered rate rises within the horizon), at the yearly rate the outlook implies, or else `usual`."""
    rate = usual if outlook is None else float(np.clip(RISES * np.exp(PER_POINT * outlook), FEWEST, MOST))
    return 1 - np.exp(-rate * horizon / 365)


@dataclass(frozen=True, kw_only=True)
class AverageOf:
    """An average over the last days of another series."""

    parent: str
    window: int
    level: int
    """Number of days of the parent over which its current level is averaged; more if the parent jumps about."""
    lag: int = 0
    """Days between the end of the window and the publication of the value."""

    def rises(self, parent: Series, due: date, horizon: Floats) -> Floats | None:
        """Log-odds of a rise if the parent stays at its level, tempered by past errors; None if its record is short."""
        from scipy.special import ndtr

        day = parent.days.astype("M8[D]").astype(np.int64)
        today = int(np.datetime64(due, "D").astype(np.int64))
        first = max(int(day[0]), today - TRIED)
        place = np.searchsorted(day, np.arange(first, today + 1), side="right") - 1
        value = parent.values[place]
        if today - int(day[-1]) > OLDEST or len(value) < LEAST:
            return None
        total = np.concatenate([[0.0], np.cumsum(value)])
        origin = np.arange(self.window + self.lag + self.level, len(value))
        level = (total[origin + 1] - total[origin + 1 - self.level]) / self.level
        chances = np.zeros(len(horizon))
        for at, ahead in enumerate(horizon.astype(int).tolist()):
            move = self._mean(total, origin, level, ahead) - self._mean(total, origin, level, 0)
            seen = origin + ahead < len(value)
            actual = self._actual(total, origin[seen] + ahead) - self._actual(total, origin[seen])
            miss = actual - move[seen]
            if len(miss) < LEAST // 4:
                return None
            chances[at] = ndtr(move[-1] / (DOUBT * np.sqrt(np.mean(miss**2)) + 1e-12))
        return logit(chances, EDGE)

    def _actual(self, total: Floats, at: Ints) -> Floats:
        end = at + 1 - self.lag
        return (total[end] - total[end - self.window]) / self.window

    def _mean(self, total: Floats, origin: Ints, level: Floats, ahead: int) -> Floats:
        """The average `ahead` days after each origin, assuming the parent stays at `level` after the origin."""
        new = min(max(ahead - self.lag, 0), self.window)
        old_end = np.minimum(origin + 1, origin + 1 + ahead - self.lag)
        known = total[old_end] - total[old_end - (self.window - new)]
        return (known + new * level) / self.window


TRIED, LEAST, DOUBT, EDGE = 3 * 365, 400, 1.2, 0.03
"""Days of the parent tested; fewest needed; factor by which errors may exceed the tested ones; limit on confidence."""
AVERAGES: Mapping[str, AverageOf] = {
    "SOFR30DAYAVG": AverageOf(parent="SOFR", window=30, level=7),
    "SOFR90DAYAVG": AverageOf(parent="SOFR", window=90, level=7),
    "SOFR180DAYAVG": AverageOf(parent="SOFR", window=180, level=7),
    "IC4WSA": AverageOf(parent="ICSA", window=28, level=28),
    "CC4WSA": AverageOf(parent="CCSA", window=28, level=28),
    "WGS1YR": AverageOf(parent="DGS1", window=7, level=1),
    "WGS10YR": AverageOf(parent="DGS10", window=7, level=1),
    "MORTGAGE15US": AverageOf(parent="DGS10", window=7, level=1, lag=3),
    "MORTGAGE30US": AverageOf(parent="DGS10", window=7, level=1, lag=3),
}
"""FRED series that are averages of others; the weekly mortgage survey follows the week's bond yield."""
