"""Seasonal normals: mean and spread by time of year, and anomalies around them that fade with the lag."""

from functools import cached_property

import numpy as np

from foretell.forecasters.series.history import (
    DAYS_PER_YEAR,
    SeriesChances,
    SeriesHistory,
    SeriesQuery,
    history,
    running_products,
    trailing_mean,
)
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats
from foretell.metrics.probability_functions import normal_below
from foretell.metrics.transforms import normal_cdf

YEARS_NEEDED = 3.0
HARMONICS = 3
SPREAD_HARMONICS = 2
WINDOWS = (4, 52)
"""Windows, in strides, over which past anomalies are averaged, besides the last value and the last stride."""
ANOMALY_STRENGTH = 100.0
"""Weight, in outcomes, of the prior belief that anomalies are gone by the end of the horizon."""
CLIP = 4.0
SHAPE_WINDOW = 30
"""Days on either side of the resolution's day of year whose past anomalies give the shape of the distribution."""
KERNEL = 0.3


@frozen
class Normals:
    """Seasonal mean and spread fitted on everything known now, and the past anomalies around them."""

    past: SeriesHistory
    waves: Floats
    """Harmonics at each origin."""
    mean: Floats
    spread: Floats
    anomalies: Floats
    """Per origin: the last value, the last stride, and longer averages, each as a scaled anomaly."""

    @property
    def share(self) -> float:
        """The share of the variance of the series that its yearly wave explains."""
        values = self.past.values[self.past.origins]
        return float((self.waves @ self.mean).var() / max(float(values.var()), 1e-300))

    def ahead(self, horizon: int, rows: slice) -> tuple[Floats, Floats]:
        """Return the seasonal mean and spread `horizon` steps after the selected origins."""
        years = horizon / self.past.per_year
        return _normal(self.waves[rows], ahead_by(self.mean, years), ahead_by(self.spread, years))


@frozen
class SeasonalNormal:
    """The forecast of a seasonal series over one horizon."""

    normals: Normals
    horizon: int

    @cached_property
    def remainder(self) -> tuple[float, float]:
        """The expected remainder of today's anomaly at the end of the horizon, and the spread around it, both scaled.

        Fitted by ridge regression of past scaled anomalies on those one horizon earlier.
        """
        past, x = self.normals.past, self.normals.anomalies
        lead = -(-self.horizon // past.stride)
        started = past.origins[: max(0, len(past.origins) - lead)]
        end = started + self.horizon
        mean, spread = self.normals.ahead(self.horizon, slice(len(started)))
        y = np.clip((past.values[end] - mean) / spread, -CLIP, CLIP)
        used = past.fresh[end] & past.fresh[started]
        x, now, y = x[: len(started)][used], x[-1], y[used]
        b = np.linalg.solve(x.T @ x + ANOMALY_STRENGTH * np.eye(x.shape[1]), x.T @ y)
        rest = y - x @ b
        return float(now @ b), float(np.sqrt((rest @ rest + ANOMALY_STRENGTH) / (len(y) + ANOMALY_STRENGTH)))

    def chances(self, threshold: float) -> tuple[float, float]:
        """P(above) and P(below): half from the normal distribution, half from the shape of past anomalies."""
        mean, spread = self.normals.ahead(self.horizon, slice(-1, None))
        left, width = self.remainder
        z = ((float(mean[0]) - threshold) / float(spread[0]) + left) / width
        shape, weight = self._shape
        smooth = float((normal_cdf((shape + z) / KERNEL) @ weight + 0.5) / (weight.sum() + 1))
        above = 0.5 * normal_below(z) + 0.5 * smooth
        return above, 1.0 - above

    @cached_property
    def _shape(self) -> tuple[Floats, Floats]:
        """Past scaled anomalies of the season in which the horizon ends, and their weights."""
        past = self.normals.past
        end = float(past.day[-1]) + self.horizon * DAYS_PER_YEAR / past.per_year
        apart = (past.day[past.origins] - end + DAYS_PER_YEAR / 2) % DAYS_PER_YEAR - DAYS_PER_YEAR / 2
        used = (np.abs(apart) <= SHAPE_WINDOW) & past.fresh[past.origins]
        return self.normals.anomalies[used, 0], 1 - np.abs(apart[used]) / (SHAPE_WINDOW + 1)


def normals(past: SeriesHistory) -> Normals | None:
    """Fit seasonal normals; None if the record is too short or too coarse to show a season."""
    columns = _columns(past)
    if not columns:
        return None
    origins = past.origins
    level, day = _levels(past)
    used = past.fresh[origins]
    mean = least_squares(harmonics(day, columns)[used], level[used])
    values = past.values[origins]
    waves = harmonics(past.day[origins], columns)
    residual = np.abs(values - waves @ mean)
    k = min(columns, 2 * SPREAD_HARMONICS + 1)
    spread = least_squares(waves[used, :k], residual[used] * np.sqrt(np.pi / 2))
    center, scale = _normal(waves, mean, spread)
    deviation = level - harmonics(day, columns) @ mean
    anomalies = [values - center, deviation, *(trailing_mean(deviation, width) for width in WINDOWS)]
    table = np.clip(np.stack(anomalies, axis=1) / scale[:, None], -CLIP, CLIP)
    return Normals(past=past, waves=waves, mean=mean, spread=spread, anomalies=table)


@frozen
class RunningNormals:
    """Seasonal normals as known at each origin, refitted once a year, without anomalies.

    Used to test on the past whether a series is seasonal.
    """

    past: SeriesHistory
    waves: Floats
    """Harmonics at each origin."""
    mean: Floats
    spread: Floats
    usable: Bools
    """Whether each origin has two years of data before it and a fresh value."""

    def rises(self, horizon: int, rows: slice) -> Floats:
        """P(y(t+h) > y(t)) at the selected origins."""
        ahead = ahead_by(self.mean[rows], horizon / self.past.per_year)
        expected = (self.waves[rows] * ahead).sum(axis=1)
        return normal_cdf((expected - self.past.values[self.past.origins[rows]]) / self.spread[rows])


def running_normals(past: SeriesHistory) -> RunningNormals | None:
    """Fit seasonal normals along the past; None if the record is too short or too coarse to show a season."""
    columns = _columns(past)
    if not columns:
        return None
    origins, per_year = past.origins, past.per_year / past.stride
    level, day = _levels(past)
    waves = harmonics(day, columns)
    mean = _along(waves, level, past.fresh[origins], per_year)
    usable = (np.arange(len(origins)) >= 2 * per_year) & past.fresh[origins]
    values, here = past.values[origins], harmonics(past.day[origins], columns)
    miss = np.where(usable, (values - (here * mean).sum(axis=1)) ** 2, 0.0)
    spread = np.sqrt(np.cumsum(miss) / np.maximum(np.cumsum(usable), 1)) + 1e-12
    return RunningNormals(past=past, waves=here, mean=mean, spread=spread, usable=usable)


def climatology(query: SeriesQuery) -> SeriesChances:
    """P(y(r) > v) from the seasonal mean and spread and the remainder of today's anomaly.

    y(r) = μ(r) + σ(r)·(b·a(f) + s·ε): harmonics for μ and σ, anomalies a of the last value, week, month and year, b and
    s by ridge regression at that lag. Raises ValueError if the record is shorter than three years.
    """
    past = history(query)
    fitted = normals(past)
    if fitted is None:
        raise ValueError("days: a seasonal normal needs three years of observations or more")
    v = query.threshold_value
    known = float(past.last > v), float(past.last < v)
    return SeriesChances.of(
        [SeasonalNormal(normals=fitted, horizon=h).chances(v) if h > 0 else known for h in past.steps(query).tolist()]
    )


def harmonics(day: Floats, columns: int) -> Floats:
    """Return the columns 1, cos, sin, cos 2, sin 2, … of the time of year."""
    angle = 2 * np.pi * day / DAYS_PER_YEAR
    waves = [np.ones_like(day)]
    for k in range(1, columns // 2 + 1):
        waves += [np.cos(k * angle), np.sin(k * angle)]
    return np.stack(waves, axis=1)


def ahead_by(coefficients: Floats, years: float) -> Floats:
    """Shift harmonic coefficients, so that the harmonics of a day give the value `years` (or a fraction) later."""
    turned = coefficients.copy()
    for k in range(1, coefficients.shape[-1] // 2 + 1):
        cos, sin = np.cos(2 * np.pi * k * years), np.sin(2 * np.pi * k * years)
        a, b = coefficients[..., 2 * k - 1], coefficients[..., 2 * k]
        turned[..., 2 * k - 1] = a * cos + b * sin
        turned[..., 2 * k] = b * cos - a * sin
    return turned


def _columns(past: SeriesHistory) -> int:
    """How many harmonic columns the record can support; 0 if it cannot show a season."""
    per_year = past.per_year / past.stride
    if per_year < 3.5 or len(past.values) < YEARS_NEEDED * past.per_year:
        return 0
    return 2 * HARMONICS + 1 if per_year > 7 else 3


def _levels(past: SeriesHistory) -> tuple[Floats, Floats]:
    """Mean over the stride that ends at each origin, and the day in the middle of that stride."""
    origins = past.origins
    middle = np.minimum(past.stride - 1, origins) / 2 * (DAYS_PER_YEAR / past.per_year)
    return trailing_mean(past.values, past.stride)[origins], past.day[origins] - middle


def _normal(waves: Floats, mean: Floats, spread: Floats) -> tuple[Floats, Floats]:
    scale = waves[:, : len(spread)] @ spread
    return waves @ mean, np.maximum(scale, max(0.2 * float(spread[0]), 1e-12))


def least_squares(x: Floats, y: Floats) -> Floats:
    """Return the least-squares coefficients, with a tiny ridge so that a solution always exists."""
    solved: Floats = np.linalg.solve(x.T @ x + 1e-9 * np.eye(x.shape[1]), x.T @ y).astype(np.float64)
    return solved


def _along(x: Floats, y: Floats, used: Bools, per_year: float) -> Floats:
    """Refit least squares once a year along the past; return the coefficients as known at each origin."""
    table = np.concatenate([x, y[:, None]], axis=1) * used[:, None]
    edges, sums = running_products(table, max(1, round(per_year)))
    fitted = np.linalg.solve(sums[:, :-1, :-1] + 1e-3 * np.eye(x.shape[1]), sums[:, :-1, -1:])[:, :, 0]
    return fitted[np.searchsorted(edges, np.arange(len(y)) + 1, side="right") - 1].astype(np.float64)
