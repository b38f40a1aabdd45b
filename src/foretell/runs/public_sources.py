"""What public markets and series say about a typed question, without a model and without a key."""

import asyncio
import re
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from math import exp, log, sqrt
from typing import Any

from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.markets.listing import ListedEvent
from foretell.data.markets.market import EventQuery, Market
from foretell.data.series.open_meteo import OBSERVED, OpenMeteoSeries, WeatherId
from foretell.data.series.series import SeriesUnavailable
from foretell.data.series.yahoo import YahooSeries
from foretell.data.service import needs_key
from foretell.forecasters.base_rates.same_question import QuestionSense, compare, coverage, sense
from foretell.forecasters.series.typed_question import (
    YEARS,
    AskedSpan,
    SeriesAnswer,
    WeatherQuestion,
    asked_span,
    price_answer,
    price_quantiles,
    price_question,
    weather_answer,
    weather_quantiles,
    weather_question,
)
from foretell.plugins import load, names
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Numeric
from foretell.questions.question import Question, SeriesRef, Target
from foretell.runs.services import service_config
from foretell.runs.settings import Settings

LIMITS = HttpLimits(
    connect_seconds=5.0, read_seconds=10.0, total_seconds=20.0, max_bytes=40_000_000, attempts=1, max_pause_seconds=5.0
)
"""A user is waiting, so slow services are left out and named."""
SECONDS = 25.0
"""Longest time for everything."""
SHOWN = 8
"""Maximum number of markets shown."""
APART = 0.45
"""How far apart, in log-odds, two platforms price the same question on average (benchmarks/reports/asking.md)."""
Z80 = 1.2816
REAL_MONEY, PLAY_MONEY = 2.0, 1.0
"""Weight of a price by what is staked on it."""
LEAST, MOST = 0.005, 0.995
LEVELS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""Levels of the quantiles of a number's distribution."""
MEASURED = {
    "snowfall_sum": "snowfall",
    "precipitation_sum": "rain and snow",
    "temperature_2m_max": "daily highs",
    "temperature_2m_min": "daily lows",
}
OLDEST_PRICE = 30
"""Days after which a price is too old to start from."""
FEWEST_YEARS, WHOLE = 5, 0.9
"""Number of past years needed, and the share of its days that a year must have."""


@dataclass(frozen=True, kw_only=True)
class MarketMatch:
    """A market on the same question or a similar one."""

    platform: str
    text: str
    url: str
    target: str
    """The target of the question it was compared with."""
    price: float | None
    at: datetime
    """When the price was read."""
    closes: date | None
    likeness: float
    same: bool
    """Whether it asks the same thing. Other markets are shown but not used."""
    differs: tuple[str, ...] = ()
    volume: float | None = None
    unit: str = "USD"

    @property
    def used(self) -> bool:
        """Whether the answer uses it."""
        return self.same and self.price is not None

    def as_row(self) -> dict[str, object]:
        """A row for tables and JSON."""
        return {
            "platform": self.platform,
            "text": self.text,
            "url": self.url,
            "target": self.target,
            "price": self.price,
            "read": self.at.isoformat(),
            "closes": self.closes.isoformat() if self.closes else None,
            "likeness": round(self.likeness, 3),
            "same": self.same,
            "differs": list(self.differs),
            "volume": self.volume,
            "unit": self.unit,
        }


@dataclass(frozen=True, kw_only=True)
class SeriesReading:
    """What a public series says about the question."""

    source: str
    name: str
    last: date | None
    """The day of its newest value or newest forecast."""
    answer: SeriesAnswer
    distribution: Numeric | None = None
    """For a question about a number."""

    def as_row(self) -> dict[str, object]:
        """A row for tables and JSON."""
        return {
            "source": self.source,
            "name": self.name,
            "last": self.last.isoformat() if self.last else None,
            "p": self.answer.p,
            "low": self.answer.interval[0],
            "high": self.answer.interval[1],
            "n": self.answer.n,
            "reason": self.answer.reason,
        }


@dataclass(frozen=True, kw_only=True)
class PublicFindings:
    """Everything that was found, and what could not be asked."""

    matches: tuple[MarketMatch, ...] = ()
    """Used markets first, then the most similar."""
    reading: SeriesReading | None = None
    asked: tuple[str, ...] = ()
    """Services that answered."""
    problems: tuple[str, ...] = ()
    """Services that did not answer, and why."""

    def prices(self, target: str) -> list[MarketMatch]:
        """The markets from which a target's probability can be taken."""
        return [one for one in self.matches if one.used and one.target == target]


async def look_around(question: Question, settings: Settings, *, number: bool = False) -> PublicFindings:
    """Ask every keyless market for the same question and, for weather and prices, the series that decides it."""
    async with AsyncHttpClient(limits=LIMITS, access=settings.access) as client:
        platforms = [] if number else _platforms()
        jobs: list[Coroutine[Any, Any, list[MarketMatch] | SeriesReading | None]] = [
            *(_markets(question, platform, settings, client) for platform in platforms),
            _reading(question, settings, client, number=number),
        ]
        done = await asyncio.gather(*(asyncio.wait_for(job, SECONDS) for job in jobs), return_exceptions=True)
    matches: list[MarketMatch] = []
    reading: SeriesReading | None = None
    asked, problems = list[str](), list[str]()
    for who, answer in zip([*platforms, ""], done, strict=True):
        if isinstance(answer, (SourceError, SeriesUnavailable, TimeoutError)):
            problem = answer.problem if isinstance(answer, SourceError) else str(answer) or "no answer in time"
            problems.append(f"{who or 'the series'}: {problem[:200]}")
        elif isinstance(answer, BaseException):
            raise answer
        elif isinstance(answer, SeriesReading) or answer is None:
            reading = answer
        else:
            asked.append(who)
            matches += answer
    ranked = sorted(matches, key=lambda one: (not one.used, not one.same, -one.likeness))
    return PublicFindings(matches=tuple(ranked[:SHOWN]), reading=reading, asked=tuple(asked), problems=tuple(problems))


def _platforms() -> list[str]:
    found: list[str] = []
    for name in names("markets"):
        market: Market = load("markets", name)
        if market.search is not None and not needs_key(market):
            found.append(name)
    return found


# Markets.


async def _markets(question: Question, platform: str, settings: Settings, client: AsyncHttpClient) -> list[MarketMatch]:
    market: Market = load("markets", platform)
    assert market.search is not None
    due, closes = question.due.date(), _last_day(question)
    senses = {target.id: sense(_target_text(question, target), due, closes) for target in question.targets}
    whole = sense(question.text, due, closes)
    query = EventQuery(
        as_of=AsOf(at=question.due, mode="live"),
        phrases=search_phrases(question.text, whole),
        near=lambda title: coverage(whole, sense(title, due)),
    )
    config = service_config(settings, client, platform)
    found = await market.search(market.client(config), config).search(query)
    return matches_of(senses, found, due)


def _last_day(question: Question) -> date | None:
    """The day a question states beside its text, or by a holiday in it."""
    if question.closes_at is not None:
        return question.closes_at.date()
    span = asked_span(question.text, question.due.date(), None)
    return None if span is None else span.last


def matches_of(asked: Mapping[str, QuestionSense], events: Iterable[ListedEvent], due: date) -> list[MarketMatch]:
    """Targets of events that resemble the question's targets, each compared with the most similar one."""
    return [match for event in events for match in _clear(_event_matches(asked, event, due))]


AMBIGUOUS = "more than one outcome of it fits"


def _clear(matches: list[MarketMatch]) -> list[MarketMatch]:
    """Drop ambiguous matches: two outcomes of one event, as of "A vs B", cannot both be what is asked."""
    fits = Counter(one.target for one in matches if one.same)
    return [
        replace(one, same=False, differs=(AMBIGUOUS,)) if one.same and fits[one.target] > 1 else one for one in matches
    ]


def _event_matches(asked: Mapping[str, QuestionSense], event: ListedEvent, due: date) -> list[MarketMatch]:
    matches: list[MarketMatch] = []
    question = event.question
    for target in question.targets:
        text, ends = _target_text(question, target), target.resolves_at or question.closes_at
        theirs = sense(text, due, ends.date() if ends else None)
        likeness, id = max(
            ((compare(mine, theirs, due), id) for id, mine in asked.items()),
            key=lambda pair: (pair[0].same, pair[0].likeness, -len(pair[0].differs)),
        )
        if not likeness.related:
            continue
        quote = target.snapshot
        matches.append(
            MarketMatch(
                platform=event.platform,
                text=text,
                url=question.url,
                target=id,
                price=None if quote is None else quote.price,
                at=question.due,
                closes=ends.date() if ends else None,
                likeness=likeness.likeness,
                same=likeness.same,
                differs=likeness.differs,
                volume=event.volume,
                unit=event.unit,
            )
        )
    return matches


def _target_text(question: Question, target: Target) -> str:
    """A target's full sentence: the question itself if it has one target, else with what sets the target apart."""
    label = target.label.strip()
    if label.endswith("?"):
        return label
    if not label or label.lower() in ("yes", question.text.lower()):
        return question.text
    return f"{question.text} {label}"


def search_phrases(text: str, found: QuestionSense) -> tuple[str, ...]:
    """Search phrases: first names with the significant words after them, then names alone."""
    words = [word for word in re.findall(r"[\w’'&.-]+", text) if coverage(sense(word, date(2000, 1, 1)), found) > 0]
    named = [word for who in found.names for word in who]
    return tuple(dict.fromkeys(filter(None, (" ".join(words[:8]), " ".join(named[:4] or words[:3])))))


def pooled(matches: Sequence[MarketMatch]) -> tuple[float, tuple[float, float]]:
    """One probability from several prices, and the range they leave open.

    Prices are averaged as log-odds, with double weight for real money. Platforms differ by `APART` on the same
    question, so that is the error of one price; the range also covers every single price.
    """
    weights = [REAL_MONEY if one.unit == "USD" else PLAY_MONEY for one in matches]
    odds = [_log_odds(one.price or 0.0) for one in matches]
    middle = sum(w * x for w, x in zip(weights, odds, strict=True)) / sum(weights)
    # The mean distance of two prices is 2/√π of the spread of one.
    error = Z80 * APART * sqrt(3.14159) / 2 / sqrt(len(matches))
    low, high = min(middle - error, *odds), max(middle + error, *odds)
    return _probability(middle), (_probability(low), _probability(high))


def _log_odds(p: float) -> float:
    p = min(max(p, LEAST), MOST)
    return log(p / (1 - p))


def _probability(odds: float) -> float:
    return 1 / (1 + exp(-odds))


# Series.


async def _reading(
    question: Question, settings: Settings, client: AsyncHttpClient, *, number: bool
) -> SeriesReading | None:
    due, closes = question.due.date(), question.closes_at.date() if question.closes_at else None
    if len(question.targets) > 1 and not number:
        return None
    if (price := price_question(question.text, due, closes, number=number)) is not None:
        ref = SeriesRef(provider="yahoo", id=price.symbol)
        source = YahooSeries(service_config(settings, client, "yahoo"))
        series = await source.fetch(ref, AsOf(at=question.due, mode="live"))
        last: date = series.days[-1].astype("M8[D]").item()
        if len(series) < 30:
            raise SeriesUnavailable(f"yahoo has only {len(series)} days of {price.symbol}")
        age = (due - last).days
        if age > OLDEST_PRICE:
            raise SeriesUnavailable(f"yahoo's newest price of {price.symbol} is {age} days old")
        if price.threshold is not None:
            answer = price_answer(price, series.values, last)
            return SeriesReading(source="yahoo", name=price.symbol, last=last, answer=answer)
        now = f"{price.symbol} stood at {series.values[-1]:,.6g} on {last}"
        reason = f"{now}: a random walk from there, without drift and with fat tails."
        x = price_quantiles(price, series.values, last, LEVELS)
        return _number_reading("yahoo", price.symbol, last, x, reason, len(series))
    # A unit given beside the question counts as part of its text.
    text = f"{question.text} {question.range.unit}" if question.range is not None else question.text
    if (weather := weather_question(text, due, closes, number=number)) is not None:
        source = OpenMeteoSeries(service_config(settings, client, "open_meteo"))
        return await _weather(weather, due, source, number=number)
    return None


def _number_reading(
    source: str, name: str, last: date | None, x: Sequence[float], reason: str, n: int
) -> SeriesReading:
    """A reading for a question about a number. Equal quantiles, as of days without snow, are separated slightly."""
    rising = [value + 1e-6 * place for place, value in enumerate(x)]
    return SeriesReading(
        source=source,
        name=name,
        last=last,
        answer=SeriesAnswer(p=0.5, interval=(0.0, 1.0), n=n, reason=reason),
        distribution=Numeric(x=tuple(rising), cdf=LEVELS),
    )


async def _weather(asked: WeatherQuestion, due: date, source: OpenMeteoSeries, *, number: bool) -> SeriesReading:
    place = await source.place(asked.place)
    if place is None:
        raise SeriesUnavailable(f"Open-Meteo knows no place called {asked.place}")
    if asked.scale_unstated and place.name.endswith("United States"):
        asked = asked.in_fahrenheit()
    which = WeatherId(place=place.coordinates, variable=asked.variable)
    ref = SeriesRef(provider="open_meteo", id=f"{OBSERVED}/{which.place}/{which.variable}")
    ahead: dict[date, float] = {}
    with suppress(SourceError, SeriesUnavailable):  # Without a forecast past years alone answer.
        told = await source.forecasts_ahead(ref, AsOf(at=datetime.combine(due, time(), UTC), mode="live"))
        ahead = {day: value for day, value in told.items() if asked.span.first <= day <= asked.span.last}
    covered = ahead if asked.summary == "any day" and (not number or len(ahead) == asked.span.days) else {}
    rest = AskedSpan(first=max([asked.span.first, *(day + timedelta(days=1) for day in covered)]), last=asked.span.last)
    past: dict[int, list[float]] = {}
    if rest.days > 0:
        newest = next(back for back in range(1, YEARS) if _in_year(rest, back)[1] < due)
        spans = await asyncio.gather(
            *(source.same_days(which, *_in_year(rest, back)) for back in range(newest, newest + YEARS))
        )
        # A year of which days are missing would count as one in which nothing happened on them.
        past = {-back: list(values.values()) for back, values in enumerate(spans) if len(values) >= WHOLE * rest.days}
        if len(past) < FEWEST_YEARS:
            raise SeriesUnavailable(f"Open-Meteo has only {len(past)} past years of {place.name}")
    last = max(covered) if covered else None
    name = f"{MEASURED[asked.variable]} in {place.name}"
    if number:
        x, reason = weather_quantiles(asked, past, covered, due, LEVELS)
        return _number_reading("open_meteo", name, last, x, reason, len(past))
    answer = weather_answer(asked, past, covered, due)
    return SeriesReading(source="open_meteo", name=name, last=last, answer=answer)


def _in_year(span: AskedSpan, back: int) -> tuple[date, date]:
    """The same days so many years earlier; February 29 becomes the day before."""

    def moved(day: date) -> date:
        try:
            return day.replace(year=day.year - back)
        except ValueError:
            return day.replace(year=day.year - back, day=28)

    return moved(span.first), moved(span.last)
