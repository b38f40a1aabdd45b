"""Runs cells side by side in one process. What is finished is skipped; what breaks is kept as a failure.

Several processes may run the same cells against one store: they share them, and none is answered by two at once.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from foretell.arena.cells import Cell
from foretell.arena.once import Once
from foretell.arena.store import CellKey, Store
from foretell.arena.telling import InOrder
from foretell.questions.event import Emit, Event, Failed, ModelCalled
from foretell.questions.forecast import Failure, Forecast

Answer = Callable[[Cell, Emit], Awaitable[Forecast | Failure]]
"""Answers one cell, telling what happens on the way."""

FLUSH_SECONDS = 0.25
"""How far a watcher may lag behind. A crash may lose the last events; the journal still has every reply."""
ELSEWHERE = 0.5
"""Seconds between two looks at cells that another process has before it."""

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Progress:
    """How far a run is; changed while it goes on."""

    total: int
    done: int = 0
    failed: int = 0
    skipped: int = 0
    dollars: float = 0.0
    calls: int = 0


class Executor:
    """Runs cells against one store, at most `concurrency` at a time."""

    def __init__(self, store: Store, *, concurrency: int = 50, watch: Callable[[Progress], None] | None = None) -> None:
        self._store = store
        self._once = Once(store.database)
        self._concurrency = concurrency
        self._watch = watch or _unwatched
        self._waiting: dict[CellKey, list[Event]] = {}
        self._writing = asyncio.Lock()

    async def run(self, cells: Iterable[Cell], answer: Answer) -> Progress:
        """Every cell that has no forecast yet is answered and kept. A cell that breaks never stops the others."""
        everything = list(cells)
        finished = self._store.finished(everything[0].run) if everything else set[tuple[str, str, int]]()
        todo = [cell for cell in everything if (cell.key.question, cell.key.due, cell.key.trial) not in finished]
        progress = Progress(
            total=len(everything), done=len(everything) - len(todo), skipped=len(everything) - len(todo)
        )
        self._watch(progress)
        async with self.noting():
            while todo := await self._round(todo, answer, progress):
                await asyncio.sleep(ELSEWHERE)
        return progress

    async def _round(self, cells: Sequence[Cell], answer: Answer, progress: Progress) -> list[Cell]:
        """Answer those that no other process is at; what is left are the others."""
        queue, elsewhere = iter(cells), list[Cell]()
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._concurrency, len(cells))):
                group.create_task(self._work(queue, elsewhere, answer, progress))
        return elsewhere

    async def _work(self, queue: Iterator[Cell], elsewhere: list[Cell], answer: Answer, progress: Progress) -> None:
        for cell in queue:
            async with self._taken(cell.key) as ours:
                if not ours:
                    elsewhere.append(cell)
                    continue
                if not await self._store.aside(self._store.answered, cell.key):  # Another one may have been quicker.
                    found = await self.one(cell, answer, progress)
                    progress.failed += isinstance(found, Failure)
            progress.done += 1
            self._watch(progress)

    @asynccontextmanager
    async def _taken(self, key: CellKey) -> AsyncGenerator[bool]:
        """Whether a cell is ours while the block lasts."""
        claim = (f"cell {key.run}", f"{key.question} {key.due} {key.trial}")
        ours = await self._store.aside(self._once.take, *claim)
        try:
            yield ours
        finally:
            if ours:
                await self._store.aside(self._once.give_back, *claim)

    async def one(self, cell: Cell, answer: Answer, progress: Progress) -> Forecast | Failure:
        """One cell, answered and kept; within `noting`."""
        await self._store.aside(self._store.start_cell, cell.key)
        try:
            found = await self._answer(cell, answer, progress)
        except asyncio.CancelledError:
            self._waiting.pop(cell.key, None)  # Somebody else may be at it by now, and tells it anew.
            raise
        await self._flush(cell.key)
        await self._store.aside(self._store.finish_cell, cell.key, found)
        return found

    @asynccontextmanager
    async def noting(self) -> AsyncGenerator[None]:
        """While it lasts, what cells tell is written down now and then."""
        flusher = asyncio.create_task(self._flush_now_and_then())
        try:
            yield
        finally:
            flusher.cancel()
            await self._flush()

    async def _answer(self, cell: Cell, answer: Answer, progress: Progress) -> Forecast | Failure:
        told = self._waiting.setdefault(cell.key, [])
        in_order = InOrder(told.append)

        def emit(event: Event) -> None:
            in_order(event)
            if isinstance(event, ModelCalled):
                progress.calls += 1
                progress.dollars += event.dollars or 0.0

        try:
            return await answer(cell, emit)
        except Exception as error:  # the boundary of a cell: whatever broke is told, and the run goes on
            log.warning("cell %s failed: %s", cell.key, error)
            emit(Failed(error=f"{type(error).__name__}: {error}"))
            return Failure(
                question_id=cell.question.id,
                forecaster=type(error).__name__,
                as_of=cell.question.as_of,
                trial=cell.trial,
                error=f"{type(error).__name__}: {error}",
            )
        finally:
            in_order.release()

    async def _flush_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self._flush()

    async def _flush(self, only: CellKey | None = None) -> None:
        """Write what was told: of one cell that ends, or of all that are under way."""
        async with self._writing:  # One after the other: the events of a cell keep their order.
            keys = [only] if only else list(self._waiting)
            told = [(key, event) for key in keys for event in self._waiting.get(key, ())]
            for key in keys:
                self._waiting.get(key, []).clear()
            if only:
                self._waiting.pop(only, None)
            if told:
                await self._store.aside(self._store.add_events, told)


def _unwatched(progress: Progress) -> None:
    """Nobody looks."""
