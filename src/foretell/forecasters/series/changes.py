"""Changes of a series over a horizon: their size, how often there is none, and predictors known at the time."""

from functools import cached_property

import numpy as np

from foretell.forecasters.series.history import (
    SeriesChances,
    SeriesHistory,
    SeriesQuery,
    history,
    running_products,
    trailing_mean,
)
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.probability_functions import normal_below
from foretell.metrics.transforms import normal_cdf

# Regression along the past: every origin is predicted from values known by then.

REFITS = 24
"""How many times the coefficients are refitted along the past; the last fit uses everything known now."""
SCALE_PRIOR = 5.0
"""Weight, in independent outcomes, of the prior belief that scaled outcomes have a spread of one."""


@frozen
class OriginOutcomes:
    """The outcome after each origin. It is known `lead` origins later, so the newest origins have none yet."""

    y: Floats
    """One value per origin whose outcome is known, scaled to a spread near one."""
    valid: Bools
    n_origins: int
    lead: int
    share: float
    """Independent outcomes per origin; less than one if outcomes overlap."""

    @cached_property
    def known(self) -> Ints:
        """How many outcomes were known at each origin."""
        return np.maximum(np.arange(self.n_origins, dtype=np.int64) + 1 - self.lead, 0)


@frozen
class RegressionFit:
    """The predicted mean of the outcome at each origin, and the spread around it."""

    mean: Floats
    spread: Floats


@frozen
class OriginRegression:
    """A regression of outcomes on columns known at each origin, with a prior on the coefficients."""

    x: Floats
    outcomes: OriginOutcomes
    prior: Floats
    strength: Floats
    """Precision of the prior per column, in independent outcomes."""

    def using(self, columns: list[int]) -> RegressionFit:
        """Fit a ridge regression on some of the columns, refitted along the past.

        With the outcomes known at a refit: b = (w Σ x xᵀ + Λ)⁻¹ (w Σ x y + Λ b₀), where w is the independent share
        (ridge regression, Hoerl & Kennard 1970, shrunk to b₀ instead of zero).
        """
        j = self.x.shape[1]
        strength, prior = self.strength[columns], self.prior[columns]
        refit, sums = self._refits
        gram = self.outcomes.share * sums
        xx, xy = gram[:, columns][:, :, columns], gram[:, columns, j]
        b = np.linalg.solve(xx + np.diag(strength), (xy + strength * prior)[:, :, None])[:, :, 0]
        rest = gram[:, j, j] - 2 * (b * xy).sum(axis=1) + np.einsum("ri,rij,rj->r", b, xx, b)
        spread = np.sqrt((np.maximum(rest, 0.0) + SCALE_PRIOR) / (gram[:, j + 1, j + 1] + SCALE_PRIOR))
        full = np.zeros((len(b), j))
        full[:, columns] = b
        return RegressionFit(mean=np.einsum("nj,nj->n", self.x, full[refit]), spread=spread[refit])

    @cached_property
    def _refits(self) -> tuple[Ints, Floats]:
        """The last refit before each origin, and the summed products of [x, y, 1] over valid outcomes at each refit."""
        known = len(self.outcomes.y)
        table = np.concatenate([self.x[:known], self.outcomes.y[:, None], np.ones((known, 1))], axis=1)
        edges, sums = running_products(table * self.outcomes.valid[:, None], max(1, -(-known // REFITS)))
        return np.searchsorted(edges, self.outcomes.known, side="right") - 1, sums


def independent_share(y: Floats, valid: Bools, *, least: float) -> float:
    """Independent values per value of an autocorrelated sequence: 2 (1−ρ)/(1+ρ), between `least` and 1.

    For sums over k overlapping steps ρ = 1 − 1/k, which gives about 1/k.

    >>> independent_share(np.tile([1.0, -1.0], 8), np.ones(16, bool), least=0.1)
    1.0
    """
    used = valid.astype(np.float64)
    n, pairs = float(used.sum()), float(used[1:] @ used[:-1])
    if pairs < 8:
        return least
    centred = (y - float(y @ used) / n) * used
    power = float(centred @ centred) / n
    if power <= 0:
        return least
    rho = float(centred[1:] @ centred[:-1]) / (pairs * power)
    return float(np.clip(2 * (1 - rho) / (1 + rho), least, 1.0)) if rho > -1 else 1.0


DRIFT, STEP, MONTH, QUARTER, YEAR, OFF_YEAR, OFF_LONG, SEASON, CALENDAR = COLUMNS = range(9)
"""Columns: a constant; changes over 1, 4, 13 and 52 strides; distances from two past means; the change in the same
season of earlier years; the change between the same days of earlier months."""
MOMENTUM = {STEP: 1, MONTH: 4, QUARTER: 13, YEAR: 52}
DISTANCE = {OFF_YEAR: 52, OFF_LONG: 260}
PRIOR_MOMENTUM = {MONTH: 0.05, QUARTER: 0.08, YEAR: 0.13}
"""Prior slopes, pooled over series: changes continue a little. Chosen on early years of the raw series
(benchmarks/reports/series.md)."""
COEFFICIENT_STRENGTH = 30.0
SEASON_STRENGTH = 10.0
CALENDAR_PRIOR, CALENDAR_STRENGTH = 0.5, 10.0
"""Prior: half of the pattern of earlier months repeats."""
DRIFT_YEARS = 40.0
"""Drift per unit of spread varies between series by about 0.16 a year, so its prior counts as 1/0.16² years of data."""
CLIP = 3.0
STILLNESS_PRIOR = 6.0
"""Prior count of independent moves, so that a move stays possible after a past without any."""
RECENT = 104
SEASONS_BACK = 8


@frozen
class Changes:
    """Changes of a series (or of its logarithm) over `horizon` steps, scaled by its recent spread."""

    level: Floats
    origins: Ints
    scale: Floats
    """Spread of a change over one stride, as known at each origin."""
    predictors: Floats
    fresh: Bools
    stride: int
    apart: int
    """Steps between origins: several strides if the horizon is long, because its changes overlap anyway."""
    per_year: float
    horizon: int
    drift: float
    """Prior drift per unit of yearly spread."""
    wait: int = 0
    """Steps from an origin to the value that the change starts from."""
    by_month: Floats | None = None
    """The result of `month_profile` at each origin; None for a slow series."""
    first_day: int = 0
    """The date of the first step, in days since 1970."""

    @cached_property
    def lead(self) -> int:
        """Number of origins until an outcome is known."""
        return max(1, -(-(self.wait + self.horizon) // self.apart))

    @cached_property
    def spread(self) -> Floats:
        """Spread of a change over the horizon, if steps were independent."""
        return self.scale * np.sqrt(self.horizon / self.stride)

    @cached_property
    def moved(self) -> Floats:
        """The raw change after each origin whose outcome is known."""
        start = self._started + self.wait
        return self.level[start + self.horizon] - self.level[start]

    @cached_property
    def valid(self) -> Bools:
        """Whether both the start and the end of each change were read from fresh values."""
        start = self._started + self.wait
        return self.fresh[start] & self.fresh[start + self.horizon]

    @cached_property
    def outcomes(self) -> OriginOutcomes:
        """The changes in units of their expected spread."""
        y = np.clip(self.moved / self.spread[: len(self.moved)], -CLIP, CLIP)
        share = min(1.0, self.apart / self.horizon)
        return OriginOutcomes(y=y, valid=self.valid, n_origins=len(self.origins), lead=self.lead, share=share)

    @cached_property
    def stillness(self) -> Floats:
        """P(no change at all) at each origin: half from the whole past, half from the last 104 strides."""
        still = np.concatenate([[0.0], np.cumsum((self.moved == 0) & self.valid)])
        valid = np.concatenate([[0.0], np.cumsum(self.valid)])
        known = np.minimum(self.outcomes.known, len(self.moved))
        early = np.maximum(known - RECENT * self.stride // self.apart, 0)
        share = self.outcomes.share
        whole = still[known] * share / (valid[known] * share + STILLNESS_PRIOR)
        recent = still[known] - still[early]
        return 0.5 * whole + 0.5 * recent * share / ((valid[known] - valid[early]) * share + STILLNESS_PRIOR)

    @cached_property
    def regression(self) -> OriginRegression:
        """Regression of the scaled change on everything known at its origin; each model uses some of the columns."""
        x = self.predictors.copy()
        x[:, SEASON] = self._same_season
        x[:, CALENDAR] = self._same_days_of_month
        fading = min(1.0, 52 * self.stride / self.horizon)
        prior, strength = np.zeros(len(COLUMNS)), np.full(len(COLUMNS), COEFFICIENT_STRENGTH)
        for column, slope in PRIOR_MOMENTUM.items():
            prior[column] = slope * fading
        prior[DRIFT] = self.drift * np.sqrt(self.horizon / self.per_year)
        strength[DRIFT] = max(3.0, DRIFT_YEARS * self.per_year / max(self.horizon, self.stride))
        strength[SEASON] = SEASON_STRENGTH
        prior[CALENDAR], strength[CALENDAR] = CALENDAR_PRIOR, CALENDAR_STRENGTH
        return OriginRegression(x=x, outcomes=self.outcomes, prior=prior, strength=strength)

    def rises(self, fitted: RegressionFit) -> Floats:
        """P(change > 0) at each origin: the change is either normally distributed or exactly zero."""
        return (1.0 - self.stillness) * normal_cdf(fitted.mean / fitted.spread)

    def beyond(self, fitted: RegressionFit, offset: float) -> tuple[float, float]:
        """P(change > offset) and P(change < offset) for the change that starts now."""
        z = (fitted.mean[-1] - offset / self.spread[-1]) / fitted.spread[-1]
        still = float(self.stillness[-1])
        above = (1.0 - still) * normal_below(z) + still * (offset < 0)
        below = (1.0 - still) * normal_below(-z) + still * (offset > 0)
        return above, below

    @cached_property
    def _started(self) -> Ints:
        return self.origins[: max(0, len(self.origins) - self.lead)]

    @cached_property
    def _same_days_of_month(self) -> Floats:
        """The scaled change expected from the calendar alone, from the start's day of the month to the end's."""
        if self.by_month is None:
            return np.zeros(len(self.origins))
        row, start = np.arange(len(self.origins)), self.first_day + self.origins + self.wait
        moved = self.by_month[row, _to_month_end(start + self.horizon)] - self.by_month[row, _to_month_end(start)]
        return np.clip(moved / np.sqrt(self.horizon / self.stride), -CLIP, CLIP)

    @cached_property
    def _same_season(self) -> Floats:
        """Mean change over the horizon around the same date of earlier years, as far as known at each origin."""
        n, period = len(self.origins), self.per_year / self.apart
        total, count = np.zeros(n), np.zeros(n)
        if period < 2 or not len(self.moved):
            return total
        near = 2 if period > 26 else 1 if period > 12 else 0
        y = np.where(self.outcomes.valid, self.outcomes.y, 0.0)
        smooth = _around(y, near)
        weight = _around(self.outcomes.valid.astype(np.float64), near)
        for year in range(1, SEASONS_BACK + 1):
            back = round(year * period)
            if back < self.lead + near or back >= n:
                continue
            seen = min(n - back, len(smooth))
            total[back : back + seen] += smooth[:seen]
            count[back : back + seen] += weight[:seen]
        return total / (count + 2.0)


@frozen
class Motion:
    """What the models of change share across all horizons: level, recent spread and predictors at each origin."""

    level: Floats
    logarithmic: bool
    scale: Floats
    predictors: Floats
    by_month: Floats | None


def motion(history: SeriesHistory) -> Motion:
    """Measure how a series moves, on a log scale if its moves grow with its level."""
    logarithmic = _moves_in_proportion(history)
    level = np.log(history.values) if logarithmic else history.values
    origins, stride = history.origins, history.stride
    scale = _recent_spread(level, origins, stride)
    x = np.zeros((len(origins), len(COLUMNS)))
    x[:, DRIFT] = 1.0
    for column, strides in MOMENTUM.items():
        before = np.maximum(origins - strides * stride, 0)
        width = np.maximum(origins - before, 1) / stride
        x[:, column] = (level[origins] - level[before]) / (scale * np.sqrt(width))
    for column, strides in DISTANCE.items():
        width = np.minimum(strides * stride, origins + 1)
        mean = trailing_mean(level, strides * stride)[origins]
        x[:, column] = (level[origins] - mean) / (scale * np.sqrt(np.maximum(width / stride, 1.0) / 3))
    return Motion(
        level=level,
        logarithmic=logarithmic,
        scale=scale,
        predictors=np.clip(x, -CLIP, CLIP),
        by_month=None if history.slow else month_profile(level, scale, history),
    )


def from_motion(motion: Motion, history: SeriesHistory, horizon: int, *, drift: float) -> Changes:
    """Return the changes over one horizon of a series that is already measured."""
    # At most a quarter of the horizon, and no more than eight strides.
    hop = int(np.clip(horizon // (4 * history.stride), 1, 8))
    rows = slice((len(history.origins) - 1) % hop, None, hop)
    return Changes(
        level=motion.level,
        origins=history.origins[rows],
        scale=motion.scale[rows],
        predictors=motion.predictors[rows],
        fresh=history.fresh,
        stride=history.stride,
        apart=hop * history.stride,
        per_year=history.per_year,
        horizon=horizon,
        drift=drift,
        wait=history.wait,
        by_month=None if motion.by_month is None else motion.by_month[rows],
        first_day=int(history.day[0]),
    )


# Seasonality within a month: taxes, pay days and ends of months move money on the same days.

DAYS_OF_MONTH = 31
AROUND = 30
"""Days on either side of a day in the mean that its value is compared with."""
WEEKS_SEEN = 5 * 52
FEWEST_MONTHS = 12.0
"""Prior count of months without any pattern."""


def month_profile(level: Floats, scale: Floats, history: SeriesHistory) -> Floats:
    """Mean deviation of the series from its surrounding mean, by origin and days to the end of the month.

    Measured in spreads of a stride, over the five years before each origin as far as known then.
    """
    n, origins = len(level), history.origins
    total = np.concatenate([[0.0], np.cumsum(level)])
    middle = np.arange(AROUND, n - AROUND)
    if not len(middle):
        return np.zeros((len(origins), DAYS_OF_MONTH))
    around = (total[middle + AROUND + 1] - total[middle - AROUND]) / (2 * AROUND + 1)
    # A day's deviation is known when the days after it are, at the next origin.
    known_at = np.searchsorted(origins, middle + AROUND)
    off = np.clip((level[middle] - around) / scale[known_at], -CLIP, CLIP) * history.fresh[middle]
    bin_ = known_at * DAYS_OF_MONTH + _to_month_end(history.day[middle].astype(np.int64))
    size = len(origins) * DAYS_OF_MONTH
    sums = np.stack([np.bincount(bin_, off, size), np.bincount(bin_, history.fresh[middle], size)])
    sums = np.cumsum(sums.reshape(2, len(origins), DAYS_OF_MONTH), axis=1)
    sums[:, WEEKS_SEEN:] -= sums[:, :-WEEKS_SEEN].copy()
    return sums[0] / (sums[1] + FEWEST_MONTHS)


def _to_month_end(day: Ints) -> Ints:
    """Days from each day (in days since 1970) to the last day of its month.

    >>> _to_month_end(np.array([0, 30, 31])).tolist()
    [30, 0, 27]
    """
    days = day.astype("M8[D]")
    return ((days.astype("M8[M]") + np.timedelta64(1, "M")).astype("M8[D]") - days).astype(np.int64) - 1


def _around(y: Floats, near: int) -> Floats:
    """Mean over the neighbours within `near` places, with missing neighbours at the ends counted as zero."""
    if not near:
        return y
    total = np.concatenate([[0.0], np.cumsum(y)])
    place = np.arange(len(y))
    low, high = np.maximum(place - near, 0), np.minimum(place + near + 1, len(y))
    return (total[high] - total[low]) / (2 * near + 1)


def _recent_spread(level: Floats, origins: Ints, stride: int) -> Floats:
    """Root mean square change over one stride: 45 % the last 13 strides, 45 % the last 52, 10 % the whole past."""
    if len(level) <= stride:
        moves = np.diff(level)
        guess = float(np.sqrt((moves**2).mean() * stride)) if len(moves) else 0.05 * float(np.abs(level[0]))
        return np.full(len(origins), guess) + _tiny(level[origins])
    square = np.zeros(len(level))
    square[stride:] = (level[stride:] - level[:-stride]) ** 2
    total = np.concatenate([[0.0], np.cumsum(square)])
    variance = np.zeros(len(origins))
    for strides, part in ((13, 0.45), (52, 0.45), (len(level), 0.1)):
        before = np.minimum(np.maximum(origins - strides * stride, stride - 1), origins)
        variance += part * np.maximum(total[origins + 1] - total[before + 1], 0) / np.maximum(origins - before, 1)
    return np.sqrt(variance) + _tiny(level[origins])


def _tiny(level: Floats) -> Floats:
    """Return a tiny offset that avoids a division by zero for a constant series."""
    return 1e-9 * (np.abs(level) + 1e-9)


def _moves_in_proportion(history: SeriesHistory) -> bool:
    """Whether the spread of moves is steadier on the log scale, comparing eighths of the record."""
    if history.values.min() <= 0 or len(history.origins) < 64:
        return bool(history.values.min() > 0)

    def unsteadiness(level: Floats) -> float:
        moves = np.diff(level[history.origins])
        eighths = moves[: len(moves) // 8 * 8].reshape(8, -1)
        power = (eighths**2).mean(axis=1)
        return float(np.std(np.log(power + 1e-12 * power.max() + 1e-300)))

    return unsteadiness(np.log(history.values)) <= unsteadiness(history.values)


# The change of a series over a horizon: a random walk, or all predictors, each with a chance of no change.

WALK_MODEL = [DRIFT]
JOINT_MODEL = list(COLUMNS)
TREND_MODEL, REVERSION_MODEL = [DRIFT, *MOMENTUM], [*DISTANCE]


def walk(query: SeriesQuery, drift: float = 0.0) -> SeriesChances:
    """P(y(r) > v) for a random walk: y(r) − y(f) is 0 with P(no change), else normal with spread ∝ √h.

    P(no change) is how often the series did not change over that horizon. The drift is shrunk strongly to `drift` (per
    unit of yearly spread), because even a decade of data says little about it.
    """
    past = history(query)
    measured = motion(past)
    at = offset(measured, past, query.threshold)
    pairs: list[tuple[float, float]] = []
    for horizon in past.steps(query).tolist():
        if horizon > 0:
            change = from_motion(measured, past, horizon, drift=drift)
            pairs.append(change.beyond(change.regression.using(WALK_MODEL), at))
        else:
            pairs.append((float(at < 0), float(at > 0)))
    return SeriesChances.of(pairs)


def offset(measured: Motion, past: SeriesHistory, threshold: float | None) -> float:
    """Return the change that the question asks to exceed, on the scale of the model."""
    if threshold is None or threshold == past.last:
        return 0.0
    if not measured.logarithmic:
        return threshold - past.last
    return float(np.log(threshold / past.last)) if threshold > 0 else -np.inf
