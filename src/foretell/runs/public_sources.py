"""Answers to typed questions from public markets and series, without a model or key."""

import asyncio
import re
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
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
from foretell.forecasters.series.forecasters import value_read
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
from foretell.frozen import frozen
from foretell.plugins import load, names
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Numeric
from foretell.questions.question import Question, SeriesRef, Target
from foretell.questions.value_age import ValueAge
from foretell.runs.services import service_config
from foretell.runs.settings import Settings

LIMITS = HttpLimits(
    connect_seconds=5.0, read_seconds=10.0, total_seconds=20.0, max_bytes=40_000_000, attempts=1, max_pause_seconds=5.0
)
"""Short, because a user is waiting. Slow services are left out and named."""
SECONDS = 25.0
"""Maximum total time."""
SHOWN = 8
"""Maximum number of markets shown."""
APART = 0.45
"""How far apart, in log-odds, two platforms price the same question on average (benchmarks/reports/asking.md)."""
Z80 = 1.2816
REAL_MONEY, PLAY_MONEY = 2.0, 1.0
"""Weight of a price."""
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


@frozen
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
    similarity: float
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
            "similarity": round(self.similarity, 3),
            "same": self.same,
            "differs": list(self.differs),
            "volume": self.volume,
            "unit": self.unit,
        }


@frozen
class SeriesReading:
    """The answer of a public series."""

    source: str
    name: str
    last: date | None
    """The day of its newest value or newest forecast."""
    answer: SeriesAnswer
    distribution: Numeric | None = None
    """For a question about a number."""
    value: ValueAge | None = None
    """The newest value, if it starts from one."""

    @property
    def reason(self) -> str:
        """Why it says so, and how old the value is that it starts from."""
        return (
            self.answer.reason
            if self.value is None
            else f"{self.answer.reason} It stands on the {self.value.in_words}."
        )

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


@frozen
class PublicFindings:
    """Results of public markets and series, and services that failed."""

    matches: tuple[MarketMatch, ...] = ()
    """Used markets first, then the most similar."""
    reading: SeriesReading | None = None
    asked: tuple[str, ...] = ()
    """Services that answered."""
    problems: tuple[str, ...] = ()
    """Services that did not answer, and why."""

    def prices(self, target: str) -> list[MarketMatch]:
        """Return the markets that are used for a target's probability."""
        return [match for match in self.matches if match.used and match.target == target]


async def look_around(question: Question, settings: Settings, *, number: bool = False) -> PublicFindings:
    """Search markets that need no key for the same question, and read the series that decides weather or prices."""
    async with AsyncHttpClient(limits=LIMITS, access=settings.access) as client:
        platforms = [] if number else _platforms()
        jobs: list[Coroutine[Any, Any, list[MarketMatch] | SeriesReading | None]] = [
            *(_markets(question, platform, settings, client) for platform in platforms),
            _reading(question, settings, client, number=number),
        ]
        results = await asyncio.gather(*(asyncio.wait_for(job, SECONDS) for job in jobs), return_exceptions=True)
    matches: list[MarketMatch] = []
    reading: SeriesReading | None = None
    answered, problems = list[str](), list[str]()
    for platform, answer in zip([*platforms, ""], results, strict=True):
        if isinstance(answer, (SourceError, SeriesUnavailable, TimeoutError)):
            problem = answer.problem if isinstance(answer, SourceError) else str(answer) or "no answer in time"
            problems.append(f"{platform or 'the series'}: {problem[:200]}")
        elif isinstance(answer, BaseException):
            raise answer
        elif isinstance(answer, SeriesReading) or answer is None:
            reading = answer
        else:
            answered.append(platform)
            matches += answer
    ranked = sorted(matches, key=lambda match: (not match.used, not match.same, -match.similarity))
    return PublicFindings(
        matches=tuple(ranked[:SHOWN]), reading=reading, asked=tuple(answered), problems=tuple(problems)
    )


def _platforms() -> list[str]:
    platforms: list[str] = []
    for name in names("markets"):
        market: Market = load("markets", name)
        if market.search is not None and not needs_key(market):
            platforms.append(name)
    return platforms


# Markets.


async def _markets(question: Question, platform: str, settings: Settings, client: AsyncHttpClient) -> list[MarketMatch]:
    market: Market = load("markets", platform)
    assert market.search is not None
    due, closes = question.due.date(), _last_day(question)
    senses = {target.id: sense(_target_text(question, target), due, closes) for target in question.targets}
    full_sense = sense(question.text, due, closes)
    query = EventQuery(
        as_of=AsOf(at=question.due, mode="live"),
        phrases=search_phrases(question.text, full_sense),
        near=lambda title: coverage(full_sense, sense(title, due)),
    )
    config = service_config(settings, client, platform)
    events = await market.search(market.client(config), config, query)
    return matches_of(senses, events, due)


def _last_day(question: Question) -> date | None:
    """Return the day on which a question closes, or the last day of the period in its text."""
    if question.closes_at is not None:
        return question.closes_at.date()
    span = asked_span(question.text, question.due.date(), None)
    return None if span is None else span.last


def matches_of(senses: Mapping[str, QuestionSense], events: Iterable[ListedEvent], due: date) -> list[MarketMatch]:
    """Return targets of events that resemble the question's targets, each compared with the most similar one."""
    return [match for event in events for match in _unambiguous(_event_matches(senses, event, due))]


AMBIGUOUS = "several of its outcomes fit"


def _unambiguous(matches: list[MarketMatch]) -> list[MarketMatch]:
    """Mark ambiguous matches as different: two outcomes of one event, such as "A vs B", cannot both match."""
    fits = Counter(match.target for match in matches if match.same)
    return [
        replace(match, same=False, differs=(AMBIGUOUS,)) if match.same and fits[match.target] > 1 else match
        for match in matches
    ]


def _event_matches(senses: Mapping[str, QuestionSense], event: ListedEvent, due: date) -> list[MarketMatch]:
    matches: list[MarketMatch] = []
    question = event.question
    for target in question.targets:
        text, ends = _target_text(question, target), target.resolves_at or question.closes_at
        theirs = sense(text, due, ends.date() if ends else None)
        similarity, id = max(
            ((compare(mine, theirs, due), id) for id, mine in senses.items()),
            key=lambda pair: (pair[0].same, pair[0].similarity, -len(pair[0].differs)),
        )
        if not similarity.related:
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
                similarity=similarity.similarity,
                same=similarity.same,
                differs=similarity.differs,
                volume=event.volume,
                unit=event.unit,
            )
        )
    return matches


def _target_text(question: Question, target: Target) -> str:
    """Return a target's full text: the question, followed by the target's label if it has several."""
    label = target.label.strip()
    if label.endswith("?"):
        return label
    if not label or label.lower() in ("yes", question.text.lower()):
        return question.text
    return f"{question.text} {label}"


def search_phrases(text: str, question_sense: QuestionSense) -> tuple[str, ...]:
    """Return search phrases: first names with the significant words, then names alone."""
    words = [
        word for word in re.findall(r"[\w’'&.-]+", text) if coverage(sense(word, date(2000, 1, 1)), question_sense) > 0
    ]
    named = [word for name in question_sense.names for word in name]
    return tuple(dict.fromkeys(filter(None, (" ".join(words[:8]), " ".join(named[:4] or words[:3])))))


def pooled(matches: Sequence[MarketMatch]) -> tuple[float, tuple[float, float]]:
    """Return one probability from several prices, and a range around it.

    Prices are averaged as log-odds, with double weight for real money. The error of one price
    is `APART`, the difference between platforms on the same question. The range also covers every single price.
    """
    weights = [REAL_MONEY if match.unit == "USD" else PLAY_MONEY for match in matches]
    odds = [_log_odds(match.price or 0.0) for match in matches]
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
            value = value_read(ref, series, due)
            return SeriesReading(source="yahoo", name=price.symbol, last=last, answer=answer, value=value)
        now = f"{price.symbol} was at {series.values[-1]:,.6g} on {last}"
        reason = f"{now}: a random walk from there, without drift and with fat tails."
        x = price_quantiles(price, series.values, last, LEVELS)
        reading = _number_reading("yahoo", price.symbol, last, x, reason, len(series))
        return replace(reading, value=value_read(ref, series, due))
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
    rising = [value + 1e-6 * i for i, value in enumerate(x)]
    return SeriesReading(
        source=source,
        name=name,
        last=last,
        answer=SeriesAnswer(p=0.5, interval=(0.0, 1.0), n=n, reason=reason),
        distribution=Numeric(x=tuple(rising), cdf=LEVELS),
    )


async def _weather(weather: WeatherQuestion, due: date, source: OpenMeteoSeries, *, number: bool) -> SeriesReading:
    place = await source.place(weather.place)
    if place is None:
        raise SeriesUnavailable(f"Open-Meteo has no place called {weather.place}")
    if weather.scale_unstated and place.name.endswith("United States"):
        weather = weather.in_fahrenheit()
    which = WeatherId(place=place.coordinates, variable=weather.variable)
    ref = SeriesRef(provider="open_meteo", id=f"{OBSERVED}/{which.place}/{which.variable}")
    ahead: dict[date, float] = {}
    with suppress(SourceError, SeriesUnavailable):  # Without a forecast, only past years are used.
        forecasts_ahead = await source.forecasts_ahead(ref, AsOf.day(due, "live"))
        ahead = {day: value for day, value in forecasts_ahead.items() if weather.span.first <= day <= weather.span.last}
    covered = ahead if weather.summary == "any day" and (not number or len(ahead) == weather.span.days) else {}
    rest = AskedSpan(
        first=max([weather.span.first, *(day + timedelta(days=1) for day in covered)]), last=weather.span.last
    )
    past: dict[int, list[float]] = {}
    if rest.days > 0:
        newest = next(back for back in range(1, YEARS) if _in_year(rest, back)[1] < due)
        spans = await asyncio.gather(
            *(source.same_days(which, *_in_year(rest, back)) for back in range(newest, newest + YEARS))
        )
        # A year with missing days would count as one in which nothing happened on those days.
        past = {-back: list(values.values()) for back, values in enumerate(spans) if len(values) >= WHOLE * rest.days}
        if len(past) < FEWEST_YEARS:
            raise SeriesUnavailable(f"Open-Meteo has only {len(past)} past years of {place.name}")
    last = max(covered) if covered else None
    name = f"{MEASURED[weather.variable]} in {place.name}"
    if number:
        x, reason = weather_quantiles(weather, past, covered, due, LEVELS)
        return _number_reading("open_meteo", name, last, x, reason, len(past))
    answer = weather_answer(weather, past, covered, due)
    return SeriesReading(source="open_meteo", name=name, last=last, answer=answer)


def _in_year(span: AskedSpan, back: int) -> tuple[date, date]:
    """Return the same days `back` years earlier; February 29 becomes February 28."""

    def moved(day: date) -> date:
        try:
            return day.replace(year=day.year - back)
        except ValueError:
            return day.replace(year=day.year - back, day=28)

    return moved(span.first), moved(span.last)
