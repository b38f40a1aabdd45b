"""Forecasters without a model: a constant, the market price, the market's quotes, the base rate.

A constant and the market price are baselines. They set `stated`, so that exclusive outcomes are not scaled and an entry
of an arena scores exactly like the baseline it repeats.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import ClassVar

from foretell.data.http import SourceError
from foretell.data.markets.market import market_ref
from foretell.data.series.series import SeriesUnavailable
from foretell.forecasters.base_rates.rates import Rates
from foretell.forecasters.forecaster import CannotForecast, Context, forecast_of
from foretell.frozen import frozen
from foretell.questions.as_of import AsOf, instant
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, SeriesRef, Snapshot, Target, scaled


@frozen
class ConstantForecaster:
    """Gives the same probability to everything; any forecaster should beat 0.5."""

    p: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"p = {self.p} is outside [0, 1]")

    @property
    def name(self) -> str:
        """The name shown in tables."""
        return f"always {self.p:g}"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Return the constant for every target."""
        p = {t.id: self.p for t in question.targets}
        return forecast_of(p, question, context, self.name, stated=p)


@frozen
class MarketPriceForecaster:
    """The newest market price before the cutoff if its history is available, else the price of the question."""

    fallback: float | None = None
    """Probability for a target without a price; with None such a question raises `CannotForecast`."""
    name: str = "market-price"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Return the price of every target unchanged."""
        targets = [await with_newest_price(t, question, context) for t in question.targets]
        p = {t.id: _price_or(t, self.fallback, question, context) for t in targets}
        words = f"The market price, unchanged{_oldest(targets, context)}."
        return forecast_of(p, question, context, self.name, words, stated=p)


@frozen
class MarketForecaster:
    """The probability implied by the quotes: yes ask over the sum of both asks, which removes the spread."""

    across: bool = False
    """Also scale targets that exclude each other so that they sum to one, or to at most one."""
    name: str = "market"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Return the implied probability of every target. Raises `CannotForecast` if one has no quotes."""
        p = {t.id: _price_or(t, None, question, context) for t in question.targets}
        p = scaled(p, question.exclusivity) if self.across else p
        return forecast_of(p, question, context, self.name, "Quotes, both asks scaled to one.", stated=p)


@frozen
class BaseRateForecaster:
    """The share of earlier questions of this source and template that came true."""

    not_options: ClassVar[tuple[str, ...]] = ("rates",)

    rates: Rates | None = None
    """Rates to use instead of those counted from the past."""
    name: str = "prior"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Return the base rate of every target."""
        kind, rates = f"{question.source} {question.subtype}".strip(), self.rates or context.past
        p = {t.id: rates.rate(question, t, context.as_of) for t in question.targets}
        if None in p.values():
            problem = f"no outcome of an earlier question of {kind} is known on {context.as_of.at.date()}"
            raise CannotForecast(f"{problem}; outside-view and constant need none")
        p = scaled({target: rate for target, rate in p.items() if rate is not None}, question.exclusivity)
        return forecast_of(p, question, context, self.name, f"Base rate of {kind}")


@frozen
class MarketOrBaseRate:
    """The market price for market questions, the base rate for questions about data sets."""

    not_options: ClassVar[tuple[str, ...]] = ("rates",)

    rates: Rates | None = None
    """Rates to use instead of those counted from the past."""
    fallback: float | None = None
    name: str = "market-or-base-rate"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Return price or base rate of every target, by the question's kind."""
        if question.kind == "market":
            return await MarketPriceForecaster(fallback=self.fallback, name=self.name).forecast(question, context)
        return await BaseRateForecaster(rates=self.rates, name=self.name).forecast(question, context)


STALE = timedelta(days=1)
"""Age from which a newer price is looked up in the market's history."""


def price_read(target: Target, question: Question, as_of: AsOf) -> SeriesRef | None:
    """Return the market whose history is read for a target; None if its price is fresh or it has no market."""
    own = target.snapshot
    if question.kind != "market" or (own is not None and as_of.at - own.at < STALE):
        return None
    ref = market_ref(question, target)
    return None if ref is None else SeriesRef(provider=ref.platform, id=ref.id)


async def with_newest_price(target: Target, question: Question, context: Context) -> Target:
    """Return the target with the last price before the cutoff, if the market's history has a newer one."""
    own, as_of = target.snapshot, context.as_of
    ref = price_read(target, question, as_of)
    if ref is None:
        return target
    try:
        history = await context.series.fetch(ref, as_of)
    except (SeriesUnavailable, SourceError):
        return target
    known = history.until(as_of)
    if not len(known):
        return target
    at, price = instant(known.days[-1].astype("M8[D]").item()), float(known.values[-1])
    newer = own is None or own.price is None or at > own.at
    return replace(target, snapshot=Snapshot(at=at, last_price=price)) if newer and 0 <= price <= 1 else target


def _oldest(targets: Sequence[Target], context: Context) -> str:
    """Describe the age of the oldest price; empty if it is less than a day."""
    days = max(((context.as_of.at - t.snapshot.at).days for t in targets if t.snapshot is not None), default=0)
    return "" if days < 1 else f"; it was {days} {'day' if days == 1 else 'days'} old"


def _price_or(target: Target, fallback: float | None, question: Question, context: Context) -> float:
    snapshot = target.snapshot
    # A snapshot later than the cutoff would leak.
    if snapshot is not None and context.as_of.admits(snapshot.at) and snapshot.price is not None:
        return snapshot.price
    if fallback is None:
        raise CannotForecast(f"target {target.id} of question {question.id} has no price known at {context.as_of}")
    return fallback
