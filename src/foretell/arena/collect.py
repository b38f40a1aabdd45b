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


@dataclass(kw_only=True)
class CollectReport:
    """What came of a look around, filled on the way."""

    listed: int = 0
    """Events that were looked at."""
    chosen: tuple[str, ...] = ()
    rejected: Mapping[str, int] = field(default_factory=dict[str, int])
    """By reason."""
    refreshed: int = 0
    """Events taken up before whose quotes were read."""
    over: int = 0
    """Events taken up before that have ended."""
    notes: list[str] = field(default_factory=list[str])
    """What platforms sent that could not be used."""
    problems: list[str] = field(default_factory=list[str])
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


async def collect(arena: LiveArena, now: datetime) -> CollectReport:
    """Look at every platform, refresh what was taken up, choose, and plan the first moments."""
    book, rules, report = arena.book, arena.spec.select, CollectReport()
    listed: list[ListedEvent] = []
    met: set[str] = set()
    left_out = Counter[str]()

    async def look(platform: str) -> None:
        # A platform that is down keeps no other from being read; what it told before it went down counts.
        listing = arena.events[platform].events(listing_request(arena, now))
        try:
            async for event in listing:
                if event.question.id not in met:  # It may be in two parts of a platform.
                    met.add(event.question.id)
                    listed.append(event)
        except SourceError as error:
            report.problems.append(f"{platform}: {error}")
        left_out.update(listing.ledger.left_out)
        skipped = Counter(one.reason for one in listing.ledger.skipped).most_common(5)
        unknown = listing.ledger.unknown_fields.most_common(5)
        report.notes += [f"{n} × skipped by the reader of {platform}: {reason}" for reason, n in skipped]
        report.notes += [f"{n} × unknown field of {platform}: {name}" for name, n in unknown]

    await asyncio.gather(*map(look, arena.spec.platforms))
    unsettled = await book.db.aside(book.selected, unsettled=True)
    known = {id: row for id, row in unsettled.items() if row.status == "open"}
    await _refresh(arena, known, {event.question.id: event for event in listed}, now, report)
    volatility: Mapping[str, float] = {}
    if rules.volatility > 0:
        fresh = [event for event in listed if event.question.id not in known]
        volatility = await volatilities(fresh, rules, arena.prices, now)
    selection = await book.db.aside(book.decide, listed, rules, now, volatility=volatility)
    for event in selection.chosen:
        await book.db.aside(book.add_quotes, event.question)
    report.listed = len(listed) + left_out.total()
    report.chosen = tuple(event.question.id for event in selection.chosen)
    report.rejected = dict((left_out + Counter(selection.counts)).most_common())
    return report


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


async def _refresh(
    arena: LiveArena,
    known: Mapping[str, SelectedEventRow],
    listed: Mapping[str, ListedEvent],
    now: datetime,
    report: CollectReport,
) -> None:
    """How events that were taken up stand now: as listed, or asked for one by one."""
    book, slots = arena.book, asyncio.Semaphore(AT_ONCE)

    async def over(row: SelectedEventRow, status: str) -> None:
        await close_event(arena, row.event, status, now)
        report.over += 1

    async def note(row: SelectedEventRow, event: ListedEvent) -> None:
        await book.db.aside(book.seen, event, now)
        report.refreshed += 1
        if event.status not in ("open", "unopened"):
            await over(row, event.status)
        elif event.closes_at is not None and event.closes_at != row.closes_at:
            await book.db.aside(_replan, arena, row.event, event.closes_at, now)

    async def ask(row: SelectedEventRow) -> None:
        async with slots:
            try:
                event = await arena.events[row.platform].event(row.native, AsOf(at=now, mode="live"))
            except SourceError as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    await over(row, "gone")
                else:
                    report.problems.append(f"{row.event}: {error}")
            else:
                await note(row, event)

    for id in known.keys() & listed.keys():
        await note(known[id], listed[id])
    await asyncio.gather(*(ask(row) for id, row in known.items() if id not in listed and row.platform in arena.events))


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
