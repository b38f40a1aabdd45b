"""All stages as one service: each in its own time, until told to stop. Any number of them may run on one database."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from foretell.arena.collect import CollectReport, collect
from foretell.arena.context import ContextReport, make_contexts
from foretell.arena.forecast import ForecastReport, make_forecasts
from foretell.arena.live import LiveArena
from foretell.arena.schedule import slot
from foretell.arena.settle import SettleReport, settle
from foretell.questions.clock_jump import TOLERANCE
from foretell.runs.claims import ClaimTable

StageReport = CollectReport | ContextReport | ForecastReport | SettleReport
StageCallback = Callable[[str, StageReport], None]
"""Hears of every stage that did something: its name, and its report."""
StageWork = Callable[[datetime], Awaitable[None]]
LOOK_SECONDS = 20.0
"""Seconds between two looks at the clock."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ArenaService:
    """One process that does whatever is due."""

    arena: LiveArena
    look: float = LOOK_SECONDS
    tell: StageCallback = lambda stage, report: None
    claims: ClaimTable = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "claims", ClaimTable(self.arena.store.database))

    async def run(self, stop: asyncio.Event) -> None:
        """Until told to stop; what is under way is left where it stands, and anybody can go on from there."""
        work: dict[str, StageWork] = {"context": self._contexts, "collect": self._collect, "resolve": self._resolve}
        # One loop for each entry: a slow one holds up nobody else.
        work |= {f"forecast {name}": self._forecasts(name) for name in self.arena.spec.entries}
        work["clock"] = clock_check(self.arena)
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(self._loop(name, stage, stop)) for name, stage in work.items()
        ]
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([*tasks, stopped], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in (*tasks, stopped):
                task.cancel()
            await asyncio.gather(*tasks, stopped, return_exceptions=True)

    async def once(self) -> None:
        """Whatever is due now, one stage after the other."""
        now = self.arena.clock()
        for stage in (clock_check(self.arena), self._collect, self._contexts, self._forecasts(), self._resolve):
            await stage(now)

    async def _contexts(self, now: datetime) -> None:
        if await self.arena.book.db.aside(self.arena.book.moments.due, now):
            self._report("context", await make_contexts(self.arena, now))

    def _forecasts(self, *entries: str) -> StageWork:
        async def work(now: datetime) -> None:
            self._report("forecast", await make_forecasts(self.arena, now, entries=entries))

        return work

    async def _collect(self, now: datetime) -> None:
        async def work() -> bool:
            report = await collect(self.arena, now)
            self._report("collect", report)
            return bool(report.listed) or not report.problems

        await self._in_its_slot("collect", self.arena.spec.collect.every_hours, now, work)

    async def _resolve(self, now: datetime) -> None:
        async def work() -> bool:
            self._report("resolve", await settle(self.arena, now))
            return True  # A platform that could not be read is asked again in its next turn.

        await self._in_its_slot("resolve", self.arena.spec.resolve.every_hours, now, work)

    async def _in_its_slot(self, name: str, hours: float, now: datetime, work: Callable[[], Awaitable[bool]]) -> None:
        """Done once in every stretch of so many hours, by one process; another one's turn if that one dies over it."""
        database, once = self.arena.store.database, self.claims
        full, due = f"{name} {self.arena.name}", slot(now, hours).isoformat()
        if not await database.aside(once.take, full, due):
            return
        finished = False
        try:
            finished = await work()
        finally:
            await database.aside(once.done if finished else once.give_back, full, due)

    async def _loop(self, name: str, work: StageWork, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await work(self.arena.clock())
            except Exception:  # The boundary of a stage: what broke is told, and tried again at the next look.
                log.exception("arena %s, %s", self.arena.name, name)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.look):
                    await stop.wait()

    def _report(self, stage: str, report: StageReport) -> None:
        """What did nothing is not worth a word."""
        if report.telling:
            self.tell(stage, report)


def clock_check(arena: LiveArena) -> StageWork:
    """Tells of a clock that lies behind what was done before: until it has caught up, next to nothing is due."""
    latest: datetime | None = None
    told = False

    async def work(now: datetime) -> None:
        nonlocal latest, told
        if latest is None:
            latest = await arena.book.db.aside(arena.book.latest) or now
        behind = latest - now > timedelta(seconds=TOLERANCE)
        if behind and not told:
            text = "arena %s: the clock shows %s, but something was done here at %s; nothing is due until then. %s"
            mend = "Set this machine's clock (foretell doctor looks at it)"
            log.warning(text, arena.name, f"{now:%Y-%m-%d %H:%M}", f"{latest:%Y-%m-%d %H:%M} UTC", mend)
        told, latest = behind, max(latest, now)

    return work
