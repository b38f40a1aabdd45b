"""All stages as one service: each in its own time, until told to stop. Any number of them may run on one database."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from foretell.arena.collect import CollectReport, collect
from foretell.arena.context import ContextReport, make_contexts
from foretell.arena.forecast import ForecastReport, make_forecasts
from foretell.arena.live import LiveArena
from foretell.arena.schedule import slot
from foretell.arena.settle import SettleReport, settle
from foretell.runs.claims import ClaimTable

StageCallback = Callable[[str, object], None]
"""Hears of every stage that did something: its name, and its report."""
StageReport = CollectReport | ContextReport | ForecastReport | SettleReport
LOOK_SECONDS = 20.0
"""Seconds between two looks at the clock."""

log = logging.getLogger(__name__)


def ignore_report(stage: str, report: object) -> None:
    """Nobody listens."""


@dataclass(frozen=True, kw_only=True)
class ArenaService:
    """One process that does whatever is due."""

    arena: LiveArena
    look: float = LOOK_SECONDS
    tell: StageCallback = ignore_report

    async def run(self, stop: asyncio.Event) -> None:
        """Until told to stop; what is under way is left where it stands, and anybody can go on from there."""
        spec, once = self.arena.spec, ClaimTable(self.arena.store.database)

        async def contexts(now: datetime) -> None:
            if await self.arena.book.db.aside(self.arena.book.moments.due, now):
                self._told("context", await make_contexts(self.arena, now))

        loops = [
            self._loop("context", contexts, stop),
            self._loop("collect", self._slotted("collect", spec.collect.every_hours, self._collect, once), stop),
            self._loop("resolve", self._slotted("resolve", spec.resolve.every_hours, self._resolve, once), stop),
            # One loop for each entry: a slow one holds up nobody else.
            *(self._loop(f"forecast {name}", self._entry(name), stop) for name in spec.entries),
        ]
        tasks = [asyncio.create_task(loop) for loop in loops]
        stopped = asyncio.create_task(_stopped(stop))
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
        arena, now = self.arena, self.arena.clock()
        once = ClaimTable(arena.store.database)
        await self._slotted("collect", arena.spec.collect.every_hours, self._collect, once)(now)
        self._told("context", await make_contexts(arena, now))
        self._told("forecast", await make_forecasts(arena, now))
        await self._slotted("resolve", arena.spec.resolve.every_hours, self._resolve, once)(now)

    def _entry(self, name: str) -> Callable[[datetime], Awaitable[None]]:
        async def answered(now: datetime) -> None:
            self._told("forecast", await make_forecasts(self.arena, now, entries=(name,)))

        return answered

    async def _collect(self, now: datetime) -> bool:
        found: CollectReport = await collect(self.arena, now)
        self._told("collect", found)
        return bool(found.listed) or not found.problems

    async def _resolve(self, now: datetime) -> bool:
        found: SettleReport = await settle(self.arena, now)
        self._told("resolve", found)
        return True  # A platform that could not be read is asked again in its next turn.

    def _slotted(
        self, name: str, hours: float, work: Callable[[datetime], Awaitable[bool]], once: ClaimTable
    ) -> Callable[[datetime], Awaitable[None]]:
        """Done once in every stretch of so many hours, by one process; another one's turn if that one dies over it."""
        db = self.arena.store.database
        full = f"{name} {self.arena.name}"

        async def in_its_time(now: datetime) -> None:
            due = slot(now, hours).isoformat()
            if not await db.aside(once.take, full, due):
                return
            finished = False
            try:
                finished = await work(now)
            finally:
                await db.aside(once.done if finished else once.give_back, full, due)

        return in_its_time

    async def _loop(self, name: str, work: Callable[[datetime], Awaitable[None]], stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await work(self.arena.clock())
            except Exception:  # The boundary of a stage: what broke is told, and tried again at the next look.
                log.exception("arena %s, %s", self.arena.name, name)
            await _pause(stop, self.look)

    def _told(self, stage: str, report: StageReport) -> None:
        """What did nothing is not worth a word."""
        if report.telling:
            self.tell(stage, report)


async def _stopped(stop: asyncio.Event) -> None:
    await stop.wait()


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
