"""Time-series models as forecasters: from a question about a series to one probability per date."""

from dataclasses import dataclass

import numpy as np

from foretell.data.series.series import Days, Values
from foretell.forecasters.forecaster import CannotForecast, Context, forecast_of
from foretell.forecasters.series.auto import NOTHING_KNOWN, TRUST_OF_PRICES, AutoChoice, Expectation, choices
from foretell.forecasters.series.changes import walk
from foretell.forecasters.series.climatology import climatology
from foretell.forecasters.series.history import SeriesChances
from foretell.forecasters.series.seasonal import Neighbourhood, hybrid, knn, linear, safe
from foretell.metrics.arrays import Floats
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, SeriesRef

PRICES = Expectation(drift=0.3, trust=TRUST_OF_PRICES)
"""Share prices gain about a third of their yearly spread a year: long-run excess return and interest together."""
PRICE_PROVIDERS = frozenset({"yfinance", "yahoo"})


@dataclass(frozen=True, kw_only=True)
class SeriesQuestion:
    """A question about a series in the form the models take."""

    ref: SeriesRef
    days: Days
    values: Values
    due: np.datetime64
    resolution: Days
    horizons: tuple[int, ...]

    @property
    def arrays(self) -> tuple[Days, Values, np.datetime64, Days]:
        """Days, values, due day and resolution days, in the order the models take them."""
        return self.days, self.values, self.due, self.resolution

    def chosen(self, chances: SeriesChances) -> Floats:
        """P(yes): the side of the threshold the question asks about."""
        return chances.above if self.ref.comparison == "above" else chances.below


async def read_series_question(question: Question, context: Context) -> SeriesQuestion:
    """Read the series of a question as of the cutoff, or say why it cannot be forecast."""
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
    return SeriesQuestion(
        ref=question.series,
        days=series.days,
        values=series.values,
        due=due,
        resolution=due + np.asarray(horizons, dtype="m8[D]"),
        horizons=tuple(horizons),
    )


def _forecast(question: Question, context: Context, name: str, p: Floats, rationale: str) -> Forecast:
    clipped = {t.id: float(np.clip(x, 0.0, 1.0)) for t, x in zip(question.targets, p, strict=True)}
    return forecast_of(clipped, question, context, name, rationale)


def _observations(asked: SeriesQuestion) -> str:
    return f"{len(asked.values)} observations of {asked.ref.id}, the last {asked.values[-1]:g} on {asked.days[-1]}."


@dataclass(frozen=True, kw_only=True)
class SeriesForecaster:
    """One model of a series; each kind says how it computes the chances of both sides of the threshold."""

    name: str = "series"

    def chances(self, asked: SeriesQuestion) -> SeriesChances:
        """The chances by date."""
        raise NotImplementedError

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """One probability per date."""
        asked = await read_series_question(question, context)
        try:
            chances = self.chances(asked)
        except ValueError as error:
            raise CannotForecast(f"question {question.id}: {error}") from error
        return _forecast(question, context, self.name, asked.chosen(chances), _observations(asked))


@dataclass(frozen=True, kw_only=True)
class SeasonalKnn(SeriesForecaster):
    """Exceedance among past values of the same time of year."""

    window: int = 10
    years: float | None = None
    """How far back to look; None for the whole record."""
    name: str = "knn"

    def chances(self, asked: SeriesQuestion) -> SeriesChances:
        """From the neighbours in the season."""
        near = Neighbourhood(window=self.window, age=None if self.years is None else round(self.years * 365))
        return knn(*asked.arrays, threshold=asked.ref.threshold, near=near)


@dataclass(frozen=True, kw_only=True)
class Climatology(SeriesForecaster):
    """Seasonal mean and spread, and what is left of today's anomaly."""

    name: str = "climatology"

    def chances(self, asked: SeriesQuestion) -> SeriesChances:
        """From the seasonal distribution."""
        return climatology(*asked.arrays, threshold=asked.ref.threshold)


@dataclass(frozen=True, kw_only=True)
class LinearTrend(SeriesForecaster):
    """A line through the last observations, trusted by a share `alpha`."""

    window: int = 30
    alpha: float = 0.5
    name: str = "linear"

    def chances(self, asked: SeriesQuestion) -> SeriesChances:
        """From the trend, pulled towards one half."""
        return safe(linear(*asked.arrays, threshold=asked.ref.threshold, window=self.window), self.alpha)


@dataclass(frozen=True, kw_only=True)
class Hybrid(SeriesForecaster):
    """Half trend, half the same time of year in the last five years."""

    window: int = 30
    alpha: float = 0.5
    beta: float = 0.5
    name: str = "hybrid"

    def chances(self, asked: SeriesQuestion) -> SeriesChances:
        """From both."""
        return hybrid(*asked.arrays, threshold=asked.ref.threshold, line=(self.window, self.alpha, self.beta))


@dataclass(frozen=True, kw_only=True)
class Walk(SeriesForecaster):
    """A random walk with a chance of standing still."""

    drift: float = 0.0
    name: str = "walk"

    def chances(self, asked: SeriesQuestion) -> SeriesChances:
        """From the distribution of past changes."""
        return walk(*asked.arrays, threshold=asked.ref.threshold, drift=self.drift)


@dataclass(frozen=True, kw_only=True)
class Auto:
    """The models that foretold this series best at each horizon asked; for prices, a walk that drifts upward.

    It takes no base rates of past questions: for prices they lag behind the market and did harm when tried
    (docs/studies/series.md).
    """

    name: str = "auto"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """One probability per date, with the weights of the models in the rationale."""
        asked = await read_series_question(question, context)
        expected = PRICES if asked.ref.provider in PRICE_PROVIDERS else NOTHING_KNOWN
        chosen = choices(*asked.arrays, threshold=asked.ref.threshold, expected=expected)
        chances = SeriesChances(
            above=np.asarray([c.above for c in chosen]), below=np.asarray([c.below for c in chosen])
        )
        rationale = f"{_observations(asked)} {_trusted(asked, chosen)}"
        return _forecast(question, context, self.name, asked.chosen(chances), rationale)


def _trusted(asked: SeriesQuestion, chosen: list[AutoChoice]) -> str:
    """Which models were listened to at the first and the last date."""
    lines: list[str] = []
    for i in sorted({0, len(chosen) - 1}):
        parts = sorted(chosen[i].weights.items(), key=lambda item: -item[1])
        named = ", ".join(f"{name} {weight:.0%} (says {chosen[i].said[name]:.2f})" for name, weight in parts[:3])
        lines.append(f"{asked.horizons[i]} days: {named}.")
    return " ".join(lines)
