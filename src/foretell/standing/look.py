"""A cheap look at what may have changed: prices, the series that decides, saved searches. No model is asked."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Protocol

from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.market import PricePoint, PricesUnavailable, market_ref
from foretell.data.search.engine import CannotSearch, SearchEngine, SearchHit
from foretell.data.series.series import SeriesUnavailable
from foretell.forecasters.base_rates.same_question import sense
from foretell.forecasters.combine.default import FRESH_PRICE_DAYS
from foretell.frozen import frozen
from foretell.number_text import percent
from foretell.questions.as_of import AsOf, UtcDatetime, instant
from foretell.questions.question import Question, SeriesRef, scaled
from foretell.runs.public_sources import look_around, pooled, search_phrases
from foretell.runs.services import Services, open_services
from foretell.runs.settings import Settings
from foretell.standing.news import LONGEST_TEXT, content_key, sentences_of
from foretell.standing.record import NewEvidence, StandingQuestion
from foretell.standing.settings import watch_keys

HISTORY_DAYS = 60
HITS = 10
"""Results of a saved search that are read."""
MOST_NEW = 20
"""Documents that one look takes up; the next look finds the rest."""
CORPUS = "local"
"""The search engine of the user's own documents."""


@frozen
class PastPrice:
    """A price of a target in the past."""

    target: str
    at: UtcDatetime
    p: float


@frozen
class Sighting:
    """What was seen at one look, before anything is compared with earlier looks."""

    at: UtcDatetime
    prices: Mapping[str, float] = field(default_factory=dict[str, float])
    """Target → fresh price; empty without a market that asks the same."""
    history: tuple[PastPrice, ...] = ()
    """Earlier prices, if the market shows them. They are not stored."""
    moved: tuple[str, ...] = ()
    """Targets whose price moved by more than usual since the last belief."""
    value: float | None = None
    value_day: str = ""
    value_text: str = ""
    """What the series says, for a reader."""
    series_p: Mapping[str, float] = field(default_factory=dict[str, float])
    """Target → probability that follows from the series without a model."""
    documents: tuple[NewEvidence, ...] = ()
    """What the saved searches found, seen before or not."""
    searched: bool = False
    """Whether a search ran, so that finding nothing means that nothing was reported."""
    problems: tuple[str, ...] = ()
    """What could not be read, and why."""

    @property
    def series_key(self) -> str:
        """Key of the newest value as evidence."""
        return f"series {self.value_day} {self.value!r}"


class LookSources(Protocol):
    """Reads what a look needs. It costs no money."""

    async def read(self, standing: StandingQuestion, now: datetime) -> Sighting:
        """Return what is seen now. Sources that cannot be read are named in it."""
        ...


def saved_searches(standing: StandingQuestion) -> tuple[str, ...]:
    """Return the saved searches of a question: those that were set, else the significant words of its text."""
    stated = watch_keys(standing.settings).searches
    question = standing.question
    return stated or search_phrases(question.text, sense(question.text, question.due.date()))[:1]


@frozen
class PublicLook:
    """Reads public markets, series and search engines, within the rate limit of each."""

    settings: Settings

    async def read(self, standing: StandingQuestion, now: datetime) -> Sighting:
        """Return what is seen now."""
        stated: Sequence[str] = standing.settings.get("search") or ()
        corpus = [CORPUS] if self.settings.corpus.exists() and CORPUS not in stated else []
        async with AsyncHttpClient(access=self.settings.access) as client:
            services = open_services(self.settings, client, [*stated])
            own = open_services(self.settings, client, corpus).engine
            engines = [engine for engine in (services.engine, own) if engine is not None]
            priced, valued, *found = await asyncio.gather(
                self._prices(standing.question, services, now),
                self._value(standing.question, services, now),
                *(_search(engine, query, now) for engine in engines for query in saved_searches(standing)),
            )
        sighting = Sighting(
            at=now,
            prices=priced.prices,
            history=priced.history,
            problems=(*priced.problems, *valued.problems, *(problem for each in found for problem in each.problems)),
            documents=tuple({item.key: item for each in found for item in each.documents}.values()),
            searched=bool(found) and not any(each.problems for each in found),
        )
        named = valued if valued.value is not None or valued.series_p else priced
        return replace(
            sighting,
            value=named.value,
            value_day=named.value_day,
            value_text=named.value_text,
            series_p=named.series_p,
        )

    async def _prices(self, question: Question, services: Services, now: datetime) -> Sighting:
        """Return the prices of the question's own market, or of public markets that ask the same."""
        refs = {target.id: market_ref(question, target) for target in question.targets}
        known = {id: ref for id, ref in refs.items() if ref is not None and ref.platform in services.prices}
        if not known:
            return await self._public(question, now)
        as_of = AsOf(at=now, mode="live")
        prices: dict[str, float] = {}
        history: list[PastPrice] = []
        problems: list[str] = []
        for target, ref in known.items():
            try:
                points = await services.prices[ref.platform].prices(ref, as_of, HISTORY_DAYS)
            except (PricesUnavailable, SourceError) as error:
                problems.append(f"{ref.platform}: {error}"[:200])
                continue
            history += [PastPrice(target=target, at=point.at, p=point.p) for point in points]
            if points and now - points[-1].at <= timedelta(days=FRESH_PRICE_DAYS):
                prices[target] = points[-1].p
        return Sighting(at=now, prices=prices, history=tuple(history), problems=tuple(problems))

    async def _public(self, question: Question, now: datetime) -> Sighting:
        if not self.settings.network:
            return Sighting(at=now)
        number = question.range is not None
        findings = await look_around(replace(question, due=now), self.settings, number=number)
        pools = {target.id: pooled(found) for target in question.targets if (found := findings.prices(target.id))}
        complete = len(pools) == len(question.targets)
        prices = scaled({id: p for id, (p, _) in pools.items()}, question.exclusivity) if complete else {}
        reading = findings.reading
        if reading is None:
            return Sighting(at=now, prices=prices, problems=findings.problems)
        value = None if reading.value is None else reading.value.value
        day = None if reading.value is None else reading.value.day
        p = {question.targets[0].id: reading.answer.p} if not number and len(question.targets) == 1 else {}
        if reading.distribution is not None:
            p = {target.id: reading.distribution.above(float(target.id[1:])) for target in question.targets}
        return Sighting(
            at=now,
            prices=prices,
            # A weather forecast has no single value, so what follows from it is compared.
            value=round(reading.answer.p, 2) if value is None and not number else value,
            value_day="" if day is None else day.isoformat(),
            value_text=f"{reading.source}, {reading.name}: {reading.reason}",
            series_p=p,
            problems=findings.problems,
        )

    async def _value(self, question: Question, services: Services, now: datetime) -> Sighting:
        """Return the newest value of the question's own series."""
        ref: SeriesRef | None = question.series
        if ref is None or not services.series.supplies(ref):
            return Sighting(at=now)
        as_of = AsOf(at=now, mode="live")
        try:
            series = (await services.series.fetch(ref, as_of)).until(as_of)
        except (SeriesUnavailable, SourceError) as error:
            return Sighting(at=now, problems=(f"{ref.provider}: {error}"[:200],))
        if not len(series):
            return Sighting(at=now)
        value, day = float(series.values[-1]), str(series.days[-1])
        text = f"{ref.provider}/{ref.id} was at {value:g} on {day}"
        return Sighting(at=now, value=value, value_day=day, value_text=text)


async def _search(engine: SearchEngine, query: str, now: datetime) -> Sighting:
    as_of = AsOf(at=now, mode="live")
    try:
        hits = await engine.search(query, as_of, HITS)
    except (CannotSearch, SourceError) as error:
        return Sighting(at=now, problems=(f"{engine.name}: {error}"[:200],))
    return Sighting(at=now, documents=tuple(document(hit) for hit in hits if as_of.admits(hit.published)))


def document(hit: SearchHit) -> NewEvidence:
    """Return a search result as evidence."""
    body = hit.text or hit.snippet
    text = f"{hit.title}\n{body}".strip()[:LONGEST_TEXT]
    return NewEvidence(
        key=content_key(body or hit.title),
        text=text,
        url=hit.url,
        published=hit.published,
        sentences=sentences_of(hit.text or ""),
    )


def new_value(sighting: Sighting) -> NewEvidence:
    """Return the newest value of the series as evidence, with what follows from it without a model."""
    chances = ", ".join(f"{percent(p)} for {target}" for target, p in sighting.series_p.items())
    follows = f" Without a model, {chances} follows from it." if chances else ""
    published = None
    with suppress(ValueError):
        published = instant(sighting.value_day)
    return NewEvidence(key=sighting.series_key, text=f"{sighting.value_text}.{follows}", published=published)


def price_points(sighting: Sighting, target: str) -> list[PricePoint]:
    """Return the earlier prices of a target that the market shows."""
    return [PricePoint(at=past.at, p=past.p) for past in sighting.history if past.target == target]
