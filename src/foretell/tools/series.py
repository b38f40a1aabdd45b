"""Series and market prices up to the cutoff."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from foretell.data.http import SourceError
from foretell.data.markets.market import MarketRef, PricePoint, PriceSource, PricesUnavailable, market_ref
from foretell.data.series.series import FetchedSeries, Series, SeriesSource, SeriesUnavailable
from foretell.frozen import frozen
from foretell.models.model import ToolSpec
from foretell.models.structured_output import closed_object
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, SeriesRef, Target
from foretell.questions.trace import EmitEvent, LeakBlocked, ignore_event
from foretell.tools.leakage_rules import clamp_prices, clamp_series
from foretell.tools.tool import (
    FETCH_PRICES,
    FETCH_SERIES,
    LeakRefused,
    Refusal,
    SourceItem,
    ToolFailed,
    ToolMaterial,
    required_text,
)

STRIDES = ((60, 1), (300, 5), (1_300, 21), (10_000, 125))
"""How observations are thinned: all of the newest 60 are shown, every fifth of the 300 before them, and so on."""
SERIES_SPEC = ToolSpec(
    name=FETCH_SERIES,
    description=(
        "Get the history of the very series that decides this question, up to the cutoff: the reference value to "
        "compare with, past observations (older ones thinned out) and the probabilities that a statistical "
        "model gives. No arguments."
    ),
    parameters={"type": "object", "properties": {}, "additionalProperties": False},
)

Estimate = Callable[[Question, Series, AsOf], Awaitable[Mapping[str, float]]]
"""Returns probabilities by target id from a history that ends at the cutoff; empty if the model has no estimate."""


@runtime_checkable
class WithProvenance(Protocol):
    """A source that reports whether its values may have been revised since."""

    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """Return the series and its provenance."""
        ...


async def known_series(
    source: WithProvenance | SeriesSource, ref: SeriesRef, as_of: AsOf, *, allow_revised: bool, emit: EmitEvent
) -> Series:
    """Return the part of a series that was known at the cutoff.

    Values that may have been revised since are refused in a backtest unless allowed; a source without provenance counts
    as revised. Raises `ToolFailed` if nothing can be read.
    """
    name = f"{ref.provider}/{ref.id}"
    try:
        if isinstance(source, WithProvenance):
            fetched = await source.fetch_with_provenance(ref, as_of)
        else:
            fetched = FetchedSeries(series=await source.fetch(ref, as_of), revised=True)
    except (SeriesUnavailable, SourceError) as error:
        raise ToolFailed(f"The series could not be read: {error}") from error
    if fetched.revised and as_of.mode == "backtest" and not allow_revised:
        raise LeakRefused(
            "The series is only known as corrected later, so it is closed here. Search for reports instead.",
            Refusal(layer="data", reason=f"{name} may hold values corrected after the cutoff"),
        )
    known, late = clamp_series(fetched.series, as_of)
    if late:
        emit(LeakBlocked(layer="data", reason=f"{late} points of {name} after the cutoff", title=name))
    if not len(known):
        raise ToolFailed("Nothing of the series was known at the cutoff; search for reports instead.")
    return known


@runtime_checkable
class WithDaysAhead(Protocol):
    """A source that reports what was known at a cutoff about the days after it."""

    async def ahead(self, ref: SeriesRef, as_of: AsOf) -> tuple[str, ...]:
        """Return forecasts and scheduled releases, one per line."""
        ...


async def known_ahead(source: object, ref: SeriesRef, as_of: AsOf) -> tuple[str, ...]:
    """Return what a source knew about the days ahead; empty if it has no such data."""
    if not isinstance(source, WithDaysAhead):
        return ()
    try:
        return await source.ahead(ref, as_of)
    except (SeriesUnavailable, SourceError):
        return ()


@frozen
class SeriesTool:
    """What the tools for the series of one question share."""

    question: Question
    source: WithProvenance | SeriesSource
    allow_revised: bool = False
    emit: EmitEvent = ignore_event

    @property
    def ref(self) -> SeriesRef:
        """The series that decides the question."""
        if self.question.series is None:
            raise ToolFailed("This question is not decided by a series; search for reports instead.")
        return self.question.series

    async def known(self, as_of: AsOf) -> Series:
        """Return what was known of the series at the cutoff."""
        return await known_series(self.source, self.ref, as_of, allow_revised=self.allow_revised, emit=self.emit)

    def material(self, heading: str, lines: Iterable[str]) -> ToolMaterial:
        """Return lines about the series as one item."""
        item = SourceItem(title=f"{self.ref.provider}/{self.ref.id}", text="\n".join(lines), clamped=True)
        return ToolMaterial(heading=heading, items=(item,))


@frozen
class FetchSeries(SeriesTool):
    """Reads the series of one question."""

    estimate: Estimate | None = None

    spec = SERIES_SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return one item of dated rows."""
        ref, known = self.ref, await self.known(as_of)
        estimates = await self.estimate(self.question, known, as_of) if self.estimate is not None else {}
        due = np.datetime64(self.question.due.date(), "D")
        value = known.at(due)
        against = f"{ref.threshold:g}" if ref.threshold is not None else "that value"
        lines = [f"last value on or before {due}: {value:g}"] if value is not None else []
        lines += [f"asked: whether the value will be {ref.comparison} {against}", f"observations: {len(known)}"]
        for target in self.question.targets:
            if target.id in estimates:
                lines.append(f"model estimate of yes for {target.id}: {estimates[target.id]:.3f}")
        lines += await known_ahead(self.source, ref, as_of)
        rows = [f"{known.days[place]}, {known.values[place]:.10g}" for place in shown_places(len(known))]
        return self.material("The series that decides the question:", [*lines, "day, value", *rows])


def shown_places(count: int) -> list[int]:
    """Return the indices of the observations to show out of `count`, oldest first."""
    places: list[int] = []
    last = count - 1
    for span, stride in STRIDES:
        places += range(last, max(last - span, -1), -stride)
        last = max(last - span, -1)
    return places[::-1]


# Questions about the weather without a series. The model chooses the place.

WEATHER_WORDS = pattern(
    r"\b(temperatures?|degrees|rain(?:fall|s)?|snow(?:fall|s)?|precipitation|hottest|coldest|warmest|gusts?)\b|°[CF]\b",
    re.IGNORECASE,
)
WEATHER_SOURCES = ("kalshi",)
"""Sources that have daily markets about the weather."""
WEATHER_PROVIDER = "open_meteo"
QUANTITIES: Mapping[str, str] = {
    "temperature_2m_max": "°C",
    "temperature_2m_min": "°C",
    "temperature_2m_mean": "°C",
    "precipitation_sum": "mm",
    "snowfall_sum": "cm",
    "wind_gusts_10m_max": "km/h",
}
"""Daily weather quantities and their units."""
WEATHER_SPEC = ToolSpec(
    name=FETCH_SERIES,
    description=(
        "Get the weather of a place by day: what was measured, up to some days ago, and what is forecast for the next "
        "week. In °C, mm, cm and km/h. It is not an official record of a station, which may differ by a degree or two."
    ),
    parameters=closed_object(
        {
            "place": {"type": "string", "description": "Latitude and longitude, such as 40.78,-73.97."},
            "quantity": {"type": "string", "enum": list(QUANTITIES)},
        }
    ),
)


def about_weather(question: Question) -> bool:
    """Whether a market without a series is about the weather of a day, judged by its words.

    >>> from foretell.questions.as_of import instant
    >>> about_weather(Question(id="q", source="kalshi", text="Will it snow in Oslo?", due=instant("2026-01-01")))
    True
    """
    return (
        question.source in WEATHER_SOURCES
        and question.series is None
        and WEATHER_WORDS.search(question.text) is not None
    )


@frozen
class FetchWeather:
    """Reads the weather at any place, as known at the cutoff."""

    source: WithProvenance | SeriesSource
    emit: EmitEvent = ignore_event

    spec = WEATHER_SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return one item with the forecast, followed by dated rows."""
        place, quantity = required_text(arguments, "place"), required_text(arguments, "quantity")
        if quantity not in QUANTITIES:
            raise ToolFailed(f"There is no quantity {quantity!r}; there are {', '.join(QUANTITIES)}.")
        ref = SeriesRef(provider=WEATHER_PROVIDER, id=f"observed/{place.replace(' ', '')}/{quantity}")
        known = await known_series(self.source, ref, as_of, allow_revised=False, emit=self.emit)
        lines = [f"unit: {QUANTITIES[quantity]}", *await known_ahead(self.source, ref, as_of)]
        rows = [f"{known.days[n]}, {known.values[n]:.10g}" for n in shown_places(len(known))]
        text = "\n".join([*lines, "day, value", *rows])
        item = SourceItem(title=f"{quantity} at {place}", text=text, clamped=True)
        return ToolMaterial(heading=f"The weather at {place}:", items=(item,))


# Prices of a question's market in the weeks before the cutoff.

PRICE_DAYS = 60
MOST_PRICED_TARGETS = 12
PRICES_SPEC = ToolSpec(
    name=FETCH_PRICES,
    description=(
        "Get the prices at which this question's own market traded in the 60 days before the cutoff, as probabilities "
        "of yes. No arguments."
    ),
    parameters={"type": "object", "properties": {}, "additionalProperties": False},
)


async def known_prices(
    source: PriceSource, ref: MarketRef, as_of: AsOf, days: int, emit: EmitEvent
) -> list[PricePoint]:
    """Return a market's prices in the days before the cutoff, oldest first; raise `ToolFailed` if they cannot be read.

    Contains times and prices only, because all other fields of a market reflect today's state.
    """
    try:
        points = await source.prices(ref, as_of, days)
    except (PricesUnavailable, SourceError) as error:
        raise ToolFailed(f"The prices could not be read: {error}") from error
    known, late = clamp_prices(points, as_of)
    if late:
        name = f"{ref.platform}/{ref.id}"
        emit(LeakBlocked(layer="data", reason=f"{late} prices of {name} after the cutoff", title=name))
    return known


@frozen
class FetchPrices:
    """Reads the prices of one question's market."""

    question: Question
    sources: Mapping[str, PriceSource]
    """Price sources by platform."""
    emit: EmitEvent = ignore_event

    spec = PRICES_SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return one item of dated prices per target."""
        results = [await self._item(target, as_of) for target in self.question.targets[:MOST_PRICED_TARGETS]]
        items = tuple(item for item in results if item is not None)
        if not items:
            raise ToolFailed("No price of this question's market was known at the cutoff; search for reports instead.")
        return ToolMaterial(heading="Prices of the question's market, as probabilities of yes:", items=items)

    async def _item(self, target: Target, as_of: AsOf) -> SourceItem | None:
        ref = market_ref(self.question, target)
        source = self.sources.get(ref.platform) if ref is not None else None
        if ref is None or source is None:
            raise ToolFailed("This question has no market whose prices can be read; search for reports instead.")
        try:
            known = await known_prices(source, ref, as_of, PRICE_DAYS, self.emit)
        except ToolFailed:
            if len(self.question.targets) > 1:
                return None
            raise
        text = "\n".join(["moment, price", *(f"{point.at:%Y-%m-%dT%H:%MZ}, {point.p:.3f}" for point in known)])
        return SourceItem(title=target.label or target.id, text=text, clamped=True) if known else None
