"""Runs cells side by side in one process. What is finished is skipped; what breaks is kept as a failure."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass

from foretell.arena.cells import Cell
from foretell.arena.store import CellKey, Store
from foretell.arena.telling import InOrder
from foretell.questions.event import Emit, Event, Failed, ModelCalled
from foretell.questions.forecast import Failure, Forecast

Answer = Callable[[Cell, Emit], Awaitable[Forecast | Failure]]
"""Answers one cell, telling what happens on the way."""

FLUSH_SECONDS = 0.25
"""How far a watcher may lag behind. A crash may lose the last events; the journal still has every reply."""

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
        self._concurrency = concurrency
        self._watch = watch or _unwatched
        self._waiting: dict[CellKey, list[Event]] = {}

    async def run(self, cells: Iterable[Cell], answer: Answer) -> Progress:
        """Every cell that has no forecast yet is answered and kept. A cell that breaks never stops the others."""
        everything = list(cells)
        finished = self._store.finished(everything[0].run) if everything else set[tuple[str, str, int]]()
        todo = [cell for cell in everything if (cell.key.question, cell.key.due, cell.key.trial) not in finished]
        progress = Progress(
            total=len(everything), done=len(everything) - len(todo), skipped=len(everything) - len(todo)
        )
        self._watch(progress)
        queue = iter(todo)
        flusher = asyncio.create_task(self._flush_now_and_then())
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._concurrency, len(todo))):
                    group.create_task(self._work(queue, answer, progress))
        finally:
            flusher.cancel()
            self._flush()
        return progress

    async def _work(self, queue: Iterator[Cell], answer: Answer, progress: Progress) -> None:
        for cell in queue:
            found = await self._answer(cell, answer, progress)
            self._flush(cell.key)
            self._store.finish_cell(cell.key, found)
            progress.done += 1
            progress.failed += isinstance(found, Failure)
            self._watch(progress)

    async def _answer(self, cell: Cell, answer: Answer, progress: Progress) -> Forecast | Failure:
        self._store.start_cell(cell.key)
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
            self._flush()

    def _flush(self, only: CellKey | None = None) -> None:
        """Write what was told: of one cell that ends, or of all that are under way."""
        keys = [only] if only else list(self._waiting)
        told = [(key, event) for key in keys for event in self._waiting.get(key, ())]
        if told:
            self._store.add_events(told)
        for key in keys:
            self._waiting.get(key, []).clear()
        if only:
            self._waiting.pop(only, None)


def _unwatched(progress: Progress) -> None:
    """Nobody looks."""
