"""The second stage: at its moment an event is asked, and what everybody will be shown about it is gathered and kept."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from foretell.arena.collect import close_event
from foretell.arena.live import LiveArena
from foretell.arena.schedule import Moment, question_date
from foretell.data.http import SourceError
from foretell.forecasters.forecaster import CannotForecast
from foretell.questions.as_of import AsOf
from foretell.runs.executor import RunProgress

AT_ONCE = 8
"""Contexts under way at the same time."""


@dataclass(frozen=True, kw_only=True)
class ContextReport:
    """What came of the moments that were due."""

    made: int = 0
    sources: int = 0
    dollars: float = 0.0
    missed: Mapping[str, int] = field(default_factory=dict[str, int])
    """By reason."""
    over: int = 0
    """Moments of events that turned out to be over."""
    elsewhere: int = 0
    """At which another process is at work."""
    problems: Mapping[str, int] = field(default_factory=dict[str, int])
    """What failed and is tried again."""

    @property
    def telling(self) -> bool:
        """Whether anything happened."""
        return bool(self.made or self.missed or self.over or self.problems)

    def __str__(self) -> str:
        """For people."""
        head = f"{self.made} contexts made with {self.sources} sources, ${self.dollars:.4f}"
        head += f"; {self.over} over" if self.over else ""
        head += f"; {self.elsewhere} at work elsewhere" if self.elsewhere else ""
        lines = [f"  missed: {n} × {reason}" for reason, n in self.missed.items()]
        return "\n".join([head, *lines, *(f"  to be tried again: {n} × {told}" for told, n in self.problems.items())])


@dataclass(kw_only=True)
class _ContextCounts:
    made: int = 0
    sources: int = 0
    dollars: float = 0.0
    over: int = 0
    elsewhere: int = 0
    missed: Counter[str] = field(default_factory=Counter[str])
    problems: Counter[str] = field(default_factory=Counter[str])
    done: int = 0
    total: int = 0


async def make_contexts(arena: LiveArena, now: datetime) -> ContextReport:
    """Every moment that is due: the question kept first, then its context; or missed, if it is too late."""
    tally, met, moments = _ContextCounts(), set[int](), arena.book.moments
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(moment: Moment) -> None:
        async with slots:
            await _claimed(arena, moment, tally)
        tally.done += 1
        arena.watch(RunProgress(total=tally.total, done=tally.done, dollars=tally.dollars))

    # A moment that was missed plans the next, which may be due as well.
    while batch := [m for m in await arena.book.db.aside(moments.due, now) if _fresh(arena, m, met, now)]:
        met.update(moment.id for moment in batch)
        tally.total += len(batch)
        async with asyncio.TaskGroup() as group:
            for moment in batch:
                group.create_task(one(moment))
    return ContextReport(
        made=tally.made,
        sources=tally.sources,
        dollars=tally.dollars,
        missed=dict(tally.missed.most_common()),
        over=tally.over,
        elsewhere=tally.elsewhere,
        problems=dict(tally.problems.most_common()),
    )


def _fresh(arena: LiveArena, moment: Moment, met: set[int], now: datetime) -> bool:
    return moment.id not in met and not arena.retries.rests(moment.id, now)


async def _claimed(arena: LiveArena, moment: Moment, tally: _ContextCounts) -> None:
    moments = arena.book.moments
    async with arena.claims.claim(f"moment {arena.name}", str(moment.id)) as mine:
        if not mine:
            tally.elsewhere += 1
            return
        # Another process may have brought it further since it was listed.
        current = await arena.book.db.aside(moments.find, moment.id)
        if current.state == "planned":
            current = await _ask(arena, current, tally)
        if current.state == "taken":
            await _gather(arena, current, tally)


async def _ask(arena: LiveArena, moment: Moment, tally: _ContextCounts) -> Moment:
    """Read the quotes of this moment and keep the question."""
    book, now = arena.book, arena.clock()
    row = await book.db.aside(book.event, moment.event)
    assert row is not None, f"{moment.event} was never taken up"
    if await _too_late(arena, moment, row.closes_at, tally):
        return moment
    try:
        found = await arena.events[row.platform].event(row.native, AsOf(at=question_date(now), mode="live"))
    except SourceError as error:
        await _failed(arena, moment, str(error), tally)
        return moment
    await book.db.aside(book.seen, found, now)
    if found.status != "open":
        await close_event(arena, moment.event, found.status, now)
        tally.over += 1
        return moment
    closes = found.closes_at or row.closes_at
    if await _too_late(arena, moment, closes, tally):
        return moment
    schedule = arena.spec.schedule
    deadline, _ = schedule.deadline(moment.number, moment.planned_at, closes)
    following = schedule.following(moment.number, moment.planned_at, closes)
    question = replace(found.question, closes_at=closes)
    return await book.db.aside(book.moments.take, moment, question, deadline, following)


async def _too_late(arena: LiveArena, moment: Moment, closes: datetime, tally: _ContextCounts) -> bool:
    """Whether nobody could answer in time any more; then it is missed, and never asked as of an earlier time."""
    schedule = arena.spec.schedule
    deadline, why = schedule.deadline(moment.number, moment.planned_at, closes)
    if moment.deadline is not None:
        deadline = min(deadline, moment.deadline)
    if arena.clock() < deadline:
        return False
    following = schedule.following(moment.number, moment.planned_at, closes)
    await arena.book.db.aside(arena.book.moments.miss, moment, f"too late: {why}", following)
    arena.retries.forget(moment.id)
    tally.missed[f"too late: {why}"] += 1
    return True


async def _gather(arena: LiveArena, moment: Moment, tally: _ContextCounts) -> None:
    """Build the context of a question that was asked. A builder that was killed goes on where it was."""
    book = arena.book
    row = await book.db.aside(book.event, moment.event)
    assert row is not None, f"{moment.event} was never taken up"
    if await _too_late(arena, moment, moment.closes_at or row.closes_at, tally):
        return
    question = await book.db.aside(book.moments.question, moment.id)
    try:
        built = await arena.builder.build(question, question.as_of_in("live"))
    except (CannotForecast, SourceError) as error:
        await _failed(arena, moment, str(error), tally)
        return
    await book.db.aside(book.keep_context, built, arena.clock())
    await book.db.aside(book.moments.furnish, moment.id, built.context.digest)
    arena.retries.forget(moment.id)
    tally.made += 1
    tally.sources += len(built.context.sources)
    tally.dollars += built.usage.dollars


async def _failed(arena: LiveArena, moment: Moment, reason: str, tally: _ContextCounts) -> None:
    await arena.book.db.aside(arena.book.moments.troubled, moment.id, reason)
    arena.retries.failed(moment.id, arena.clock())
    tally.problems[reason] += 1
