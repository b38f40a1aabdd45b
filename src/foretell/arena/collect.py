"""The first stage: what platforms list now is looked at, some of it taken up, and what was taken up kept in view."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus

from foretell.arena.live import LiveArena
from foretell.arena.select import volatilities
from foretell.arena.store import SelectedEventRow
from foretell.data.http import SourceError
from foretell.data.markets.listing import ListedEvent, ListingFilter
from foretell.questions.as_of import AsOf

AT_ONCE = 8
"""Events that are asked for one by one at the same time."""


@dataclass(frozen=True, kw_only=True)
class CollectReport:
    """What came of a look around."""

    listed: int
    """Events that were looked at."""
    chosen: tuple[str, ...]
    rejected: Mapping[str, int]
    """By reason."""
    refreshed: int = 0
    """Events taken up before whose quotes were read."""
    over: int = 0
    """Events taken up before that have ended."""
    notes: tuple[str, ...] = ()
    """What platforms sent that could not be used."""
    problems: tuple[str, ...] = ()
    """Platforms that could not be read."""

    @property
    def telling(self) -> bool:
        """Whether anything happened."""
        return True

    def __str__(self) -> str:
        """For people."""
        lines = [f"{self.listed} events looked at, {len(self.chosen)} taken up; {self.refreshed} refreshed"]
        lines[0] += f", {self.over} over" if self.over else ""
        lines += [f"  {n} × {reason}" for reason, n in self.rejected.items()]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes), *(f"problem: {one}" for one in self.problems)])


@dataclass(kw_only=True)
class _CollectCounts:
    """What was met on the way."""

    listed: list[ListedEvent] = field(default_factory=list[ListedEvent])
    left_out: Counter[str] = field(default_factory=Counter[str])
    notes: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    refreshed: int = 0
    over: int = 0


async def collect(arena: LiveArena, now: datetime) -> CollectReport:
    """Look at every platform, refresh what was taken up, choose, and plan the first moments."""
    book, seen = arena.book, _CollectCounts()
    await asyncio.gather(*(_list(arena, platform, now, seen) for platform in arena.spec.platforms))
    unsettled = await book.db.aside(book.selected, unsettled=True)
    known = {id: row for id, row in unsettled.items() if row.status == "open"}
    await _refresh(arena, known, now, seen)
    rules = arena.spec.select
    volatility: Mapping[str, float] = {}
    if rules.volatility > 0:
        fresh = [event for event in seen.listed if event.question.id not in known]
        volatility = await volatilities(fresh, rules, arena.prices, now)
    found = await book.db.aside(book.decide, seen.listed, rules, now, volatility=volatility)
    for event in found.chosen:
        await book.db.aside(book.add_quotes, event.question)
    counts = Counter(seen.left_out) + Counter(found.counts)
    return CollectReport(
        listed=len(seen.listed) + seen.left_out.total(),
        chosen=tuple(event.question.id for event in found.chosen),
        rejected=dict(counts.most_common()),
        refreshed=seen.refreshed,
        over=seen.over,
        notes=tuple(seen.notes),
        problems=tuple(seen.problems),
    )


def listing_request(arena: LiveArena, now: datetime) -> ListingFilter:
    """What a platform is asked for: the rules that it can apply by itself."""
    rules, how = arena.spec.select, arena.spec.collect
    return ListingFilter(
        as_of=AsOf(at=now, mode="live"),
        closes_after=now + timedelta(hours=rules.closes_after_hours),
        closes_before=now + timedelta(days=rules.closes_within_days),
        minimum_volume=rules.volume,
        limit=how.limit,
        pages=how.pages,
    )


async def _list(arena: LiveArena, platform: str, now: datetime, seen: _CollectCounts) -> None:
    """One platform. One that is down keeps no other from being read; what it told before it went down counts."""
    listing = arena.events[platform].events(listing_request(arena, now))
    try:
        async for event in listing:
            seen.listed.append(event)
    except SourceError as error:
        seen.problems.append(f"{platform}: {error}")
    ledger = listing.ledger
    seen.left_out.update(ledger.left_out)
    skipped = Counter(one.reason for one in ledger.skipped).most_common(5)
    seen.notes += [f"{n} × skipped by the reader of {platform}: {reason}" for reason, n in skipped]
    seen.notes += [f"{n} × unknown field of {platform}: {name}" for name, n in ledger.unknown_fields.most_common(5)]


async def _refresh(
    arena: LiveArena, known: Mapping[str, SelectedEventRow], now: datetime, seen: _CollectCounts
) -> None:
    """How events that were taken up stand now: as listed, or asked for one by one."""
    met = {event.question.id: event for event in seen.listed}
    for id in known.keys() & met.keys():
        await _note(arena, known[id], met[id], now, seen)
    others = [row for id, row in known.items() if id not in met and row.platform in arena.events]
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(row: SelectedEventRow) -> None:
        async with slots:
            try:
                found = await arena.events[row.platform].event(row.native, AsOf(at=now, mode="live"))
            except SourceError as error:
                await _lost(arena, row, error, now, seen)
            else:
                await _note(arena, row, found, now, seen)

    await asyncio.gather(*(one(row) for row in others))


async def _lost(
    arena: LiveArena, row: SelectedEventRow, error: SourceError, now: datetime, seen: _CollectCounts
) -> None:
    if error.status != HTTPStatus.NOT_FOUND:
        seen.problems.append(f"{row.event}: {error}")
        return
    await close_event(arena, row.event, "gone", now)
    seen.over += 1


async def _note(
    arena: LiveArena, row: SelectedEventRow, found: ListedEvent, now: datetime, seen: _CollectCounts
) -> None:
    book = arena.book
    await book.db.aside(book.seen, found, now)
    seen.refreshed += 1
    if found.status not in ("open", "unopened"):
        await close_event(arena, row.event, found.status, now)
        seen.over += 1
    elif found.closes_at is not None and found.closes_at != row.closes_at:
        await book.db.aside(_replan, arena, row.event, found.closes_at, now)


async def close_event(arena: LiveArena, event: str, status: str, now: datetime) -> None:
    """An event is over: nothing more is asked about it."""
    book = arena.book
    await book.db.aside(book.over, event, status)
    await book.db.aside(book.moments.drop, event, f"the event is {status}", now)


def _replan(arena: LiveArena, event: str, closes: datetime, now: datetime) -> None:
    """The close was moved: what is to come is planned anew, what was is left as it was."""
    moments, schedule = arena.book.moments, arena.spec.schedule
    known = moments.of_event(event)
    planned = [one for one in known if one.state == "planned"]
    before = [one for one in known if one.state != "planned"]
    if not before:
        return
    last = before[-1]
    at = schedule.following(last.number, last.planned_at, closes)
    if at is not None and at < now:
        at = schedule.following(last.number, now, closes)
    if planned:
        moments.replan(planned[0], at, "the close was moved, and no time is left")
    elif at is not None:
        moments.plan(event, last.number + 1, at)
