"""The settings of the hybrid model, chosen by walking forward over a series' own past.

At every past origin, each combination of settings predicts from what was known then whether the value will be higher
after the same time. The combination with the least Brier score is used, if it was clearly better than one half.
"""

from itertools import product

import numpy as np

from foretell.forecasters.series.history import DAYS_PER_YEAR, SeriesQuery
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.transforms import normal_cdf

WINDOWS = (15, 30, 60, 120)
ALPHAS = (0.0, 0.1, 0.25, 0.5)
BETAS = (0.0, 0.5, 1.0)
ORIGINS, APART = 156, 14
"""Largest number of past origins, and days between them: six years of every other week."""
FEWEST = 12
"""Fewest origins with an outcome from which settings are chosen."""
NEAR, YEARS = 7, 5
"""Days around the same day of earlier years, and how many years, whose values are compared with the threshold."""


@frozen
class HybridSettings:
    """Settings of the hybrid model: β·(α·line + (1−α)·½) + (1−β)·prior years."""

    window: int
    """Observations through which the line is drawn."""
    alpha: float
    """Weight of the line against one half."""
    beta: float
    """Weight of the line, shrunk to one half, against the same season of earlier years."""


ONE_HALF = HybridSettings(window=30, alpha=0.0, beta=1.0)
"""Settings that always say one half."""


def tuned_settings(query: SeriesQuery) -> list[HybridSettings]:
    """Return the best settings at each resolution day's horizon; those of one half unless it lost by its error."""
    due = int(query.due.astype("M8[D]").astype(np.int64))
    day = query.days[: query.known].astype("M8[D]").astype(np.int64)
    record = _Record(day=day, value=query.values[: query.known])
    grid = [HybridSettings(window=w, alpha=a, beta=b) for w, a, b in product(WINDOWS, ALPHAS, BETAS)]
    chosen: list[HybridSettings] = []
    for horizon in (query.resolution.astype("M8[D]").astype(np.int64) - due).tolist():
        origin = np.arange(due - horizon - APART * ORIGINS, due - horizon + 1, APART)
        origin = origin[origin >= day[0] + DAYS_PER_YEAR]
        if len(origin) < FEWEST:
            chosen.append(ONE_HALF)
            continue
        rose = record.at(origin + horizon) > record.at(origin)
        lines = {window: record.line(origin, horizon, window) for window in WINDOWS}
        season, known = record.season(origin, horizon)
        gains = np.array([0.25 - (_hybrid(s, lines[s.window], season, known) - rose) ** 2 for s in grid])
        best = int(np.argmax(gains.mean(axis=1)))
        # Outcomes that overlap count once.
        independent = max(1.0, len(origin) * min(1.0, APART / horizon))
        clear = gains[best].mean() > gains[best].std() / np.sqrt(independent)
        chosen.append(grid[best] if clear else ONE_HALF)
    return chosen


def _hybrid(settings: HybridSettings, line: Floats, season: Floats, known: Bools) -> Floats:
    """Return P(higher) at each origin; without values of earlier years, the line alone."""
    safe = settings.alpha * line + (1 - settings.alpha) / 2
    return np.where(known, settings.beta * safe + (1 - settings.beta) * season, safe)


@frozen
class _Record:
    """A series with its days as numbers."""

    day: Ints
    value: Floats

    def at(self, day: Ints) -> Floats:
        """The last value on or before each day."""
        return self.value[np.searchsorted(self.day, day, side="right") - 1]

    def line(self, origin: Ints, horizon: int, window: int) -> Floats:
        """P(higher) by the least-squares line through the last observations before each origin."""
        end = np.searchsorted(self.day, origin, side="right")
        begin = np.maximum(end - window, 0)
        n = np.maximum(end - begin, 1).astype(np.float64)
        # Centred numbers keep the sums of squares exact.
        x, y = self.day - float(self.day[-1]), self.value - float(self.value.mean())
        sums = [np.concatenate([[0.0], np.cumsum(column)]) for column in (x, y, x * x, x * y, y * y)]
        sx, sy, sxx, sxy, syy = ((total[end] - total[begin]) / n for total in sums)
        width = np.maximum(sxx - sx**2, 1e-12)
        slope = (sxy - sx * sy) / width
        rest = np.maximum(syy - sy**2 - slope**2 * width, 0.0)
        spread = np.sqrt(rest * n / np.maximum(n - 2, 1.0))
        level = sy + slope * (origin + horizon - float(self.day[-1]) - sx)
        apart = level - y[end - 1]
        tiny = 1e-9 * (1 + float(np.abs(y).max()))
        return np.where(spread > tiny, normal_cdf(apart / np.maximum(spread, tiny)), (apart > 0).astype(np.float64))

    def season(self, origin: Ints, horizon: int) -> tuple[Floats, Bools]:
        """The smoothed share of higher values around the same day of earlier years, and whether there are any."""
        now = self.at(origin)
        known = np.searchsorted(self.day, origin, side="left")
        above, count = np.zeros(len(origin)), np.zeros(len(origin))
        for year in range(1, YEARS + 1 + horizon // 365):
            same = origin + horizon - round(year * DAYS_PER_YEAR)
            first = np.searchsorted(self.day, np.maximum(same - NEAR, origin - YEARS * 365 + 1), side="left")
            last = np.minimum(np.searchsorted(self.day, same + NEAR, side="right"), known)
            place = first[:, None] + np.arange(2 * NEAR + 1)
            valid = place < last[:, None]
            values = self.value[np.minimum(place, len(self.value) - 1)]
            above += (valid & (values > now[:, None])).sum(axis=1)
            count += valid.sum(axis=1)
        return (above + 1) / (count + 2), count > 0
