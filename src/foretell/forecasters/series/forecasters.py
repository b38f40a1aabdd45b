"""Time-series models as forecasters: turn a question about a series into one probability per date."""

from dataclasses import replace
from datetime import date

import numpy as np

from foretell.data.series.series import Days, Publication, Series, Values
from foretell.data.untrusted import for_log
from foretell.forecasters.forecaster import CannotForecast, Context, forecast_of
from foretell.forecasters.series.auto import NOTHING_KNOWN, TRUST_OF_PRICES, Expectation, choices
from foretell.forecasters.series.changes import walk
from foretell.forecasters.series.climatology import climatology
from foretell.forecasters.series.history import SeriesChances, SeriesQuery, history
from foretell.forecasters.series.tuning import HybridSettings, tuned_settings
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, Ints
from foretell.metrics.transforms import normal_cdf
from foretell.number_text import percent
from foretell.plugins import exists, load
from foretell.questions.forecast import Forecast
from foretell.questions.question import LastValue, Question, SeriesRef
from foretell.questions.value_age import ValueAge

# Baselines: past values of the same time of year, a line through the last observations, and a mixture of both.

YEAR = 365


@frozen
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


def neighbours(query: SeriesQuery, resolution: np.datetime64, near: Neighbourhood) -> Values:
    """Return the values before the due day that lie in the neighbourhood of a resolution day."""
    due, days = query.due.astype("M8[D]"), query.days
    first = 0 if near.age is None else int(np.searchsorted(days, due - np.timedelta64(near.age, "D"), side="right"))
    last = int(np.searchsorted(days, due, side="left"))
    target = day_of_year(np.asarray([resolution], "M8[D]"))
    return query.values[first:last][cyclic_distance(day_of_year(days[first:last]), target) <= near.window]


def exceedance(near: Values, threshold: float) -> tuple[float, float]:
    """Laplace-smoothed (k+1)/(n+2) for k of n above the threshold, and the same for below."""
    n = len(near) + 2
    above, below = (np.sum(near > threshold) + 1) / n, (np.sum(near < threshold) + 1) / n
    return float(above), float(min(below, 1 - above))


def knn(query: SeriesQuery, near: Neighbourhood = WHOLE_RECORD) -> SeriesChances:
    """P(y(r) > v) = (k+1)/(n+2) over all neighbours by day of the year (BLF 2026, eq. 17-19; w = 10, any age)."""
    return SeriesChances.of(
        [exceedance(neighbours(query, day, near), query.threshold_value) for day in query.resolution]
    )


def linear(query: SeriesQuery, window: int = 30) -> SeriesChances:
    """P(y(r) > v) = Φᶜ((v − ŷ(r)) / σ̂), where ŷ is the least-squares line through the last `window` observations.

    σ̂ is the residual standard deviation (n − 2 degrees of freedom). It does not grow with the horizon, which makes the
    model far too confident about distant days: it serves only as a baseline (BLF 2026, eq. 21; window 30 for FRED, 60
    for stocks).
    """
    rows, v = slice(max(0, query.known - window), query.known), query.threshold_value
    level, spread = _line(_number(query.days[rows]), query.values[rows], _number(query.resolution))
    if spread <= 0:
        return SeriesChances(above=(level > v).astype(np.float64), below=(level < v).astype(np.float64))
    return SeriesChances(above=normal_cdf((level - v) / spread), below=normal_cdf((v - level) / spread))


def safe(chances: SeriesChances, alpha: float) -> SeriesChances:
    """α·p + (1−α)·½: shrink a forecast towards one half (BLF 2026, eq. 20; α is 0.5 for FRED, 0.1 for stocks)."""
    return SeriesChances(above=alpha * chances.above + (1 - alpha) / 2, below=alpha * chances.below + (1 - alpha) / 2)


def hybrid(query: SeriesQuery, window: int = 30, alpha: float = 0.5, beta: float = 0.5) -> SeriesChances:
    """β·safe-linear + (1−β)·prior-year neighbours; safe-linear alone if there are no neighbours (BLF 2026, eq. 22).

    Prior-year neighbours lie within seven days of the resolution's day of year and are at most five years old.
    """
    steady = safe(linear(query, window), alpha)
    pairs: list[tuple[float, float]] = []
    for above, below, day in zip(steady.above.tolist(), steady.below.tolist(), query.resolution, strict=True):
        near = neighbours(query, day, PRIOR_YEARS)
        up, down = exceedance(near, query.threshold_value)
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
    # For a constant series, the spread is only rounding noise.
    spread = spread if spread > 1e-12 * (1 + float(np.abs(y).max())) else 0.0
    return y.mean() + slope * (at - x.mean()), spread


# The models as forecasters.

PRICES = Expectation(drift=0.3, trust=TRUST_OF_PRICES)
"""Share prices gain about a third of their yearly spread a year: long-run excess return and interest together."""
PRICE_PROVIDERS = frozenset({"yfinance", "yahoo"})
LINE_OF_PRICES, OTHER_LINES = (
    HybridSettings(window=60, alpha=0.1, beta=0.5),
    HybridSettings(window=30, alpha=0.5, beta=0.5),
)
"""The settings of the trend models in BLF 2026: for share prices, and for other series."""


def _is_price(question: Question) -> bool:
    return question.series is not None and question.series.provider in PRICE_PROVIDERS


async def read_series_question(question: Question, context: Context) -> SeriesQuery:
    """Return the question about a series as of the cutoff. Raises `CannotForecast` if it cannot be forecast."""
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
    return SeriesQuery(series.days, series.values, due, resolution, question.series.threshold)


def _forecast(
    question: Question, context: Context, name: str, query: SeriesQuery, chances: SeriesChances, more: str = ""
) -> Forecast:
    """Build the forecast: P(yes) by target, from the side of the threshold that the question asks about."""
    assert question.series is not None
    p = np.clip(chances.above if question.series.comparison == "above" else chances.below, 0.0, 1.0)
    known = Series(id=question.series.id, days=query.days[: query.known], values=query.values[: query.known])
    value = value_read(question.series, known, question.due.date())
    seen = f"{len(query.values)} observations of {question.series.id}, the last is the {value.in_words}."
    by_target = {target.id: float(x) for target, x in zip(question.targets, p, strict=True)}
    return forecast_of(by_target, question, context, name, f"{seen} {more}".strip(), value=value)


# The value that a forecast stands on.


def value_read(ref: SeriesRef, series: Series, due: date) -> ValueAge:
    """Return the newest value of a series that was read, with its age on the due date."""
    day: date = series.days[-1].astype("M8[D]").item()
    return ValueAge(
        series=f"{ref.provider}/{ref.id}",
        value=float(series.values[-1]),
        day=day,
        age=(due - day).days,
        usual=_publication(ref).usual_age(due, series.interval),
    )


async def value_known(question: Question, context: Context) -> ValueAge | None:
    """Return the newest value of the question's series, or the one published with it if the series cannot be read."""
    ref, due, last = question.series, question.due.date(), question.last_value
    if ref is None:
        return None
    try:
        return value_read(ref, await context.series_of(question), due)
    except CannotForecast as error:
        return None if last is None else value_published(ref, last, due, for_log(str(error)))


def value_published(ref: SeriesRef, last: LastValue, due: date, reason: str) -> ValueAge:
    """Return the value that was published with the question; `reason` is why the series could not be read."""
    day = last.at.date()
    return ValueAge(
        series=f"{ref.provider}/{ref.id}",
        value=last.value,
        day=day,
        age=(due - day).days,
        usual=_publication(ref).usual_age(due),
        reason=reason,
    )


def _publication(ref: SeriesRef) -> Publication:
    """Return when the source of a series publishes its values; daily if that is unknown."""
    source = load("series", ref.provider) if exists("series", ref.provider) else None
    return getattr(source, "publication", Publication())


@frozen
class SeriesForecaster:
    """Base of forecasters that use one model; a subclass computes the probabilities on both sides of the threshold."""

    name: str = "series"

    def fitting(self, question: Question) -> "SeriesForecaster":
        """Return the forecaster with the settings for the question's source."""
        return self

    def chances(self, query: SeriesQuery) -> SeriesChances:
        """Return the probabilities above and below the threshold by date."""
        raise NotImplementedError

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Forecast one probability per date."""
        query = await read_series_question(question, context)
        try:
            chances = self.fitting(question).chances(query)
        except ValueError as error:
            raise CannotForecast(f"question {question.id}: {error}") from error
        return _forecast(question, context, self.name, query, chances)


@frozen
class SeasonalKnn(SeriesForecaster):
    """Share of past values at the same time of year that exceed the threshold."""

    window: int = 10
    years: float | None = None
    """How many years to look back; None for the whole record."""
    name: str = "knn"

    def chances(self, query: SeriesQuery) -> SeriesChances:
        """Compute the probabilities from past values of the same season."""
        near = Neighbourhood(window=self.window, age=None if self.years is None else round(self.years * 365))
        return knn(query, near)


@frozen
class Climatology(SeriesForecaster):
    """Seasonal mean and spread, and the remainder of today's anomaly."""

    name: str = "climatology"

    def chances(self, query: SeriesQuery) -> SeriesChances:
        """Compute the probabilities from the seasonal distribution."""
        return climatology(query)


@frozen
class LinearTrend(SeriesForecaster):
    """A line through the last observations, given the weight `alpha` against one half."""

    window: int | None = None
    """Observations; None means 60 for share prices and 30 for other series."""
    alpha: float | None = None
    """None means 0.1 for share prices and 0.5 for other series."""
    name: str = "linear"

    def fitting(self, question: Question) -> "LinearTrend":
        """Return the forecaster with the settings for the question's source."""
        line = self._filled(LINE_OF_PRICES if _is_price(question) else OTHER_LINES)
        return replace(self, window=line.window, alpha=line.alpha)

    def chances(self, query: SeriesQuery) -> SeriesChances:
        """Compute the probabilities from the trend, pulled towards one half."""
        line = self._filled(OTHER_LINES)
        return safe(linear(query, line.window), line.alpha)

    def _filled(self, usual: HybridSettings) -> HybridSettings:
        return replace(
            usual,
            window=usual.window if self.window is None else self.window,
            alpha=usual.alpha if self.alpha is None else self.alpha,
        )


@frozen
class Hybrid(LinearTrend):
    """A weighted mean (by default half and half) of the trend and the same time of year in the last five years."""

    beta: float = 0.5
    tuned: bool = False
    """Whether window, alpha and beta are chosen by walking forward over the series' own past, for each horizon."""
    name: str = "hybrid"

    def chances(self, query: SeriesQuery) -> SeriesChances:
        """Compute the probabilities from both models."""
        usual = replace(self._filled(OTHER_LINES), beta=self.beta)
        settings = tuned_settings(query) if self.tuned else [usual] * len(query.resolution)
        pairs: list[tuple[float, float]] = []
        for place, chosen in enumerate(settings):
            alone = replace(query, resolution=query.resolution[place : place + 1])
            both = hybrid(alone, chosen.window, chosen.alpha, chosen.beta)
            pairs.append((float(both.above[0]), float(both.below[0])))
        return SeriesChances.of(pairs)


@frozen
class Walk(SeriesForecaster):
    """A random walk with a chance of no change."""

    drift: float = 0.0
    name: str = "random-walk"

    def chances(self, query: SeriesQuery) -> SeriesChances:
        """Compute the probabilities from the distribution of past changes."""
        return walk(query, self.drift)


@frozen
class Auto:
    """Weights the models by how well they predicted this series at each horizon; for prices, a walk that drifts upward.

    It uses no base rates of past questions, which lag behind the market for prices and made forecasts worse
    (benchmarks/reports/series.md).
    """

    name: str = "auto"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Forecast one probability per date, with the weights of the models in the rationale."""
        query = await read_series_question(question, context)
        chosen = choices(query, PRICES if _is_price(question) else NOTHING_KNOWN)
        chances = SeriesChances.of([(choice.above, choice.below) for choice in chosen])
        days = (query.resolution - query.due).astype(int).tolist()
        reference_unknown = history(query).wait > 0
        # The weights of the models at the first and the last date.
        notes = ["The value for the due date is not published yet."] if reference_unknown else list[str]()
        notes += [f"The series is {chosen[0].series_class}."]
        for i in sorted({0, len(chosen) - 1}):
            if not chosen[i].weights:
                notes.append(f"{days[i]} days: no new value is expected by then, so the last one remains.")
                continue
            parts = sorted(chosen[i].weights.items(), key=lambda item: -item[1])
            says = {name: percent(chosen[i].chances[name]) for name, _ in parts[:3]}
            named = ", ".join(f"{name} {percent(weight)} (says {says[name]})" for name, weight in parts[:3])
            notes.append(f"{days[i]} days: {named}.")
        return _forecast(question, context, self.name, query, chances, " ".join(notes))
