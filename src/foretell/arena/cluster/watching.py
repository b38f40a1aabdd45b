"""A run that others work at, followed from outside: cells are queued, and progress is read from the store."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from foretell.arena.cells import Cell
from foretell.arena.cluster.engine import CellQueue
from foretell.arena.cluster.enqueue import enqueue
from foretell.arena.executor import Progress
from foretell.arena.store import Store

LOOK = 0.5
CHECK = 15.0
"""Seconds after which it is made sure that every open cell is still queued."""
CHECK_SHARE = 20
"""That takes longer for a large run: so many times as long passes before it is done again."""


@dataclass(kw_only=True)
class Following:
    """Follows the cells of one run until all have ended."""

    queue: CellQueue
    store: Store
    watch: Callable[[Progress], None]
    progress: Progress = field(default_factory=lambda: Progress(total=0))
    _seen: int = -1

    async def until_ended(self, cells: Sequence[Cell]) -> Progress:
        """Queue what is open, and wait for others to answer it."""
        if self._seen < 0:
            self._seen = await self.store.aside(self.store.last_event)
        before = replace(self.progress)
        left, check = await self._enqueue(cells)
        self.progress.total += len(cells)
        self.progress.skipped += len(cells) - len(left)
        while left:
            ended = await self._look(cells, before)
            if ended >= len(cells) or time.monotonic() > check:
                left, check = await self._enqueue(cells)
            if left:
                await asyncio.sleep(LOOK)
        await self._look(cells, before)
        return self.progress

    async def _enqueue(self, cells: Sequence[Cell]) -> tuple[list[Cell], float]:
        """What is open, and when to make sure again that it is queued."""
        start = time.monotonic()
        left = await asyncio.to_thread(enqueue, self.queue, self.store, cells)
        end = time.monotonic()
        return left, end + max(CHECK, CHECK_SHARE * (end - start))

    async def _look(self, cells: Sequence[Cell], before: Progress) -> int:
        """Read how far it is; how many of the cells have ended."""
        run, trials = cells[0].run, [cell.trial for cell in cells]
        found, failed = await self.store.aside(self.store.tally, run, range(min(trials), max(trials) + 1))
        for number, call in await self.store.aside(self.store.model_calls, run, self._seen):
            self._seen = number
            self.progress.calls += 1
            self.progress.dollars += call.dollars or 0.0
        self.progress.done = before.total + found + failed
        self.progress.failed = before.failed + failed
        self.watch(self.progress)
        return found + failed
