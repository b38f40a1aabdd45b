"""Time-series models as forecasters: turn a question about a series into one probability per date."""

from dataclasses import dataclass

import numpy as np

from foretell.data.series.series import Days, Values
from foretell.forecasters.forecaster import CannotForecast, Context, forecast_of
from foretell.forecasters.series.auto import NOTHING_KNOWN, TRUST_OF_PRICES, Expectation, choices
from foretell.forecasters.series.changes import walk
from foretell.forecasters.series.climatology import climatology
from foretell.forecasters.series.history import AskedSeries, SeriesChances, history
from foretell.metrics.arrays import Floats, Ints
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question

# Baselines: past values of the same time of year, a line through the last observations, and a mixture of both.

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


# The models as forecasters.

PRICES = Expectation(drift=0.3, trust=TRUST_OF_PRICES)
"""Share prices gain about a third of their yearly spread a year: long-run excess return and interest together."""
PRICE_PROVIDERS = frozenset({"yfinance", "yahoo"})


async def read_series_question(question: Question, context: Context) -> AskedSeries:
    """Return what a question asks of its series as of the cutoff; raise CannotForecast if it cannot be forecast."""
    series = await context.series_of(question)
    assert question.series is not None
    horizons: list[int] = []
    for target in question.targets:
        horizon = question.horizon_days(target)
        if horizon is None:
            raise CannotForecast(f"target {target.id} of question {question.id} has no resolution date")
        if horizon <= 0:
            raise CannotForecast(f"target {target.id} of question {question.id} resolves on or before the due date")
        horizons.append(horizon)
    due = np.datetime64(question.due.date(), "D")
    resolution = due + np.asarray(horizons, dtype="m8[D]")
    return AskedSeries(series.days, series.values, due, resolution, question.series.threshold)


def _forecast(
    question: Question, context: Context, name: str, asked: AskedSeries, chances: SeriesChances, more: str = ""
) -> Forecast:
    """Build the forecast: P(yes) by target, from the side of the threshold that the question asks about."""
    assert question.series is not None
    p = np.clip(chances.above if question.series.comparison == "above" else chances.below, 0.0, 1.0)
    days = int((asked.due - asked.days[-1]).astype("m8[D]").astype(int))
    age = "" if days <= 0 else f", {days} {'day' if days == 1 else 'days'} before the due date"
    last = f"the last {asked.values[-1]:g} on {asked.days[-1]}{age}"
    seen = f"{len(asked.values)} observations of {question.series.id}, {last}."
    by_target = {target.id: float(x) for target, x in zip(question.targets, p, strict=True)}
    return forecast_of(by_target, question, context, name, f"{seen} {more}".strip())


@dataclass(frozen=True, kw_only=True)
class SeriesForecaster:
    """Base of forecasters that use one model; a subclass computes the probabilities on both sides of the threshold."""

    name: str = "series"

    def chances(self, asked: AskedSeries) -> SeriesChances:
        """Return the probabilities above and below the threshold by date."""
        raise NotImplementedError

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Forecast one probability per date."""
        asked = await read_series_question(question, context)
        try:
            chances = self.chances(asked)
        except ValueError as error:
            raise CannotForecast(f"question {question.id}: {error}") from error
        return _forecast(question, context, self.name, asked, chances)


@dataclass(frozen=True, kw_only=True)
class SeasonalKnn(SeriesForecaster):
    """Share of past values at the same time of year that exceed the threshold."""

    window: int = 10
    years: float | None = None
    """How many years to look back; None for the whole record."""
    name: str = "knn"

    def chances(self, asked: AskedSeries) -> SeriesChances:
        """Compute the probabilities from past values of the same season."""
        near = Neighbourhood(window=self.window, age=None if self.years is None else round(self.years * 365))
        return knn(asked, near)


@dataclass(frozen=True, kw_only=True)
class Climatology(SeriesForecaster):
    """Seasonal mean and spread, and what is left of today's anomaly."""

    name: str = "climatology"

    def chances(self, asked: AskedSeries) -> SeriesChances:
        """Compute the probabilities from the seasonal distribution."""
        return climatology(asked)


@dataclass(frozen=True, kw_only=True)
class LinearTrend(SeriesForecaster):
    """A line through the last observations, given the weight `alpha` against one half."""

    window: int = 30
    alpha: float = 0.5
    name: str = "linear"

    def chances(self, asked: AskedSeries) -> SeriesChances:
        """Compute the probabilities from the trend, pulled towards one half."""
        return safe(linear(asked, self.window), self.alpha)


@dataclass(frozen=True, kw_only=True)
class Hybrid(SeriesForecaster):
    """A weighted mean (by default half and half) of the trend and the same time of year in the last five years."""

    window: int = 30
    alpha: float = 0.5
    beta: float = 0.5
    name: str = "hybrid"

    def chances(self, asked: AskedSeries) -> SeriesChances:
        """Compute the probabilities from both models."""
        return hybrid(asked, self.window, self.alpha, self.beta)


@dataclass(frozen=True, kw_only=True)
class Walk(SeriesForecaster):
    """A random walk with a chance of no change."""

    drift: float = 0.0
    name: str = "walk"

    def chances(self, asked: AskedSeries) -> SeriesChances:
        """Compute the probabilities from the distribution of past changes."""
        return walk(asked, self.drift)


@dataclass(frozen=True, kw_only=True)
class Auto:
    """Weights the models by how well they predicted this series at each horizon; for prices, a walk that drifts upward.

    It uses no base rates of past questions, because for prices they lag behind the market and did harm when tried
    (benchmarks/reports/series.md).
    """

    name: str = "auto"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Forecast one probability per date, with the weights of the models in the rationale."""
        asked = await read_series_question(question, context)
        prices = question.series is not None and question.series.provider in PRICE_PROVIDERS
        chosen = choices(asked, PRICES if prices else NOTHING_KNOWN)
        chances = SeriesChances.of([(one.above, one.below) for one in chosen])
        days = (asked.resolution - asked.due).astype(int).tolist()
        open_ = history(asked).wait > 0
        # Which models were listened to at the first and the last date.
        trusted = ["The value that counts as that of the due date is not out yet."] if open_ else list[str]()
        for i in sorted({0, len(chosen) - 1}):
            if not chosen[i].weights:
                trusted.append(f"{days[i]} days: no new value is expected by then, so that the last one stands.")
                continue
            parts = sorted(chosen[i].weights.items(), key=lambda item: -item[1])
            named = ", ".join(f"{name} {weight:.0%} (says {chosen[i].chances[name]:.2f})" for name, weight in parts[:3])
            trusted.append(f"{days[i]} days: {named}.")
        return _forecast(question, context, self.name, asked, chances, " ".join(trusted))
