"""The second stage: at its moment an event is asked, and what everybody will be shown about it is gathered and kept."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime

from foretell.arena.collect import close_event
from foretell.arena.live import LiveArena
from foretell.arena.schedule import question_date
from foretell.arena.store import Moment, SelectedEventRow
from foretell.data.http import SourceError
from foretell.forecasters.forecaster import CannotForecast
from foretell.questions.as_of import AsOf
from foretell.runs.executor import RunProgress

AT_ONCE = 8
"""Contexts under way at the same time."""


@dataclass(kw_only=True)
class ContextReport:
    """What came of the moments that were due, filled on the way."""

    made: int = 0
    sources: int = 0
    dollars: float = 0.0
    missed: dict[str, int] = field(default_factory=dict[str, int])
    """By reason."""
    over: int = 0
    """Moments of events that turned out to be over."""
    elsewhere: int = 0
    """At which another process is at work."""
    problems: dict[str, int] = field(default_factory=dict[str, int])
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
        return "\n".join([head, *lines, *(f"  to be tried again: {n} × {one}" for one, n in self.problems.items())])


async def make_contexts(arena: LiveArena, now: datetime) -> ContextReport:
    """Every moment that is due: the question kept first, then its context; or missed, if it is too late."""
    report, moments, slots = ContextReport(), arena.book.moments, asyncio.Semaphore(AT_ONCE)
    progress, met = RunProgress(total=0), set[int]()

    async def one(moment: Moment) -> None:
        async with slots, arena.claims.claim(f"moment {arena.name}", str(moment.id)) as mine:
            if mine:
                await _MomentWork(arena, moment, report).do()
            else:
                report.elsewhere += 1
        progress.done, progress.dollars = progress.done + 1, report.dollars
        arena.watch(progress)

    def is_due(moment: Moment) -> bool:
        return moment.id not in met and not arena.retries.rests(moment.id, now)

    # A moment that was missed plans the next, which may be due as well.
    while batch := list(filter(is_due, await arena.book.db.aside(moments.due, now))):
        met.update(moment.id for moment in batch)
        progress.total += len(batch)
        async with asyncio.TaskGroup() as group:
            for moment in batch:
                group.create_task(one(moment))
    return report


class _MomentWork:
    """One moment that this process alone is at work on."""

    def __init__(self, arena: LiveArena, moment: Moment, report: ContextReport) -> None:
        self._arena, self._moment, self._report = arena, moment, report
        self._book, self._aside = arena.book, arena.book.db.aside

    async def do(self) -> None:
        # Another process may have brought it further since it was listed.
        self._moment = await self._aside(self._book.moments.find, self._moment.id)
        row = await self._aside(self._book.event, self._moment.event)
        assert row is not None, f"{self._moment.event} was never taken up"
        if self._moment.state == "planned" and not await self._too_late(row.closes_at):
            try:
                await self._ask(row)
            except SourceError as error:
                await self._failed(str(error))
        if self._moment.state == "taken" and not await self._too_late(self._moment.closes_at or row.closes_at):
            try:
                await self._gather()
            except (CannotForecast, SourceError) as error:
                await self._failed(str(error))

    async def _ask(self, row: SelectedEventRow) -> None:
        """Read the quotes of this moment and keep the question."""
        arena, moment, now = self._arena, self._moment, self._arena.clock()
        event = await arena.events[row.platform].event(row.native, AsOf(at=question_date(now), mode="live"))
        await self._aside(self._book.seen, event, now)
        if event.status != "open":
            await close_event(arena, moment.event, event.status, now)
            self._report.over += 1
            return
        closes, schedule = event.closes_at or row.closes_at, arena.spec.schedule
        if not await self._too_late(closes):
            deadline, _ = schedule.deadline(moment.number, moment.planned_at, closes)
            following = schedule.following(moment.number, moment.planned_at, closes)
            question = replace(event.question, closes_at=closes)
            self._moment = await self._aside(self._book.moments.take, moment, question, deadline, following)

    async def _gather(self) -> None:
        """Build the context of a question that was asked. A builder that was killed goes on where it was."""
        question = await self._aside(self._book.moments.question, self._moment.id)
        built = await self._arena.builder.build(question, question.as_of_in("live"))
        await self._aside(self._book.keep_context, built, self._arena.clock())
        await self._aside(self._book.moments.furnish, self._moment.id, built.context.digest)
        self._arena.retries.forget(self._moment.id)
        self._report.made += 1
        self._report.sources += len(built.context.sources)
        self._report.dollars += built.usage.dollars

    async def _too_late(self, closes: datetime) -> bool:
        """Whether nobody could answer in time any more; then it is missed, and never asked as of an earlier time."""
        moment, schedule = self._moment, self._arena.spec.schedule
        deadline, why = schedule.deadline(moment.number, moment.planned_at, closes)
        if self._arena.clock() < min(deadline, moment.deadline or deadline):
            return False
        reason = f"too late: {why}"
        following = schedule.following(moment.number, moment.planned_at, closes)
        await self._aside(self._book.moments.miss, moment, reason, following)
        self._arena.retries.forget(moment.id)
        self._report.missed[reason] = self._report.missed.get(reason, 0) + 1
        return True

    async def _failed(self, reason: str) -> None:
        await self._aside(self._book.moments.troubled, self._moment.id, reason)
        self._arena.retries.failed(self._moment.id, self._arena.clock())
        self._report.problems[reason] = self._report.problems.get(reason, 0) + 1
