"""One of many: takes cells of any run from the queue, answers them as the embedded executor does, leaves in order."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from foretell.arena.cells import Cell
from foretell.arena.cluster.engine import CellQueue, Engine
from foretell.arena.cluster.open_runs import Furnish, OpenRuns
from foretell.arena.cluster.reaper import Reaper, executor_name
from foretell.arena.executor import Executor, Progress
from foretell.arena.store import CellKey, Store
from foretell.llm.database.port import Statements
from foretell.llm.database.session_life import SessionLife
from foretell.questions.forecast import Failure

SWEEP = 2.0
"""Seconds between two looks for workers that are gone."""
LAST_WORDS = 10.0
"""Seconds in which the engine should have noted what was finished."""
ROLE = "worker"

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """How many cells at once."""

    here: int = 50
    everywhere: int | None = None
    """Over all workers."""


@dataclass(kw_only=True)
class Orders:
    """What a worker is told from outside."""

    rest: asyncio.Event = field(default_factory=asyncio.Event)
    """Take nothing new, finish what you have, and leave."""
    leave: asyncio.Event = field(default_factory=asyncio.Event)
    """Leave now: what is unfinished goes back into the queue."""


class Worker:
    """Serves until it is told to leave, or finds that it lacks what a run needs."""

    def __init__(self, url: str, store: Store, life: SessionLife, furnish: Furnish) -> None:
        self._store = store
        self._life = life
        self._name = executor_name(life.id)
        self._queue = CellQueue(url)
        self._engine = Engine(url, self._name, self._work)
        self._reaper = Reaper(self._queue, store, life)
        self._executor = Executor(store)
        self._runs = OpenRuns(store, furnish)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cell-queue")
        self._at_work: dict[CellKey, asyncio.Task[object]] = {}
        self._unfit: asyncio.Future[None] | None = None
        self._room = asyncio.Semaphore(1)
        self._last = time.monotonic()
        self.progress = Progress(total=0)
        """What was done here."""

    @property
    def idle(self) -> float:
        """Seconds without a cell at work."""
        return 0.0 if self._at_work else time.monotonic() - self._last

    async def serve(self, capacity: Capacity, orders: Orders) -> None:
        """Take cells until told otherwise. Raises what kept it from serving a run, after giving back its cells."""
        self._unfit = asyncio.get_running_loop().create_future()
        self._room = asyncio.Semaphore(capacity.here)
        async with self._at_the_queue(capacity), self._executor.noting():
            waiting = [asyncio.create_task(event.wait()) for event in (orders.rest, orders.leave)]
            sweeping = asyncio.create_task(self._sweep())
            await asyncio.wait([*waiting, self._unfit], return_when=asyncio.FIRST_COMPLETED)
            self._engine.rest()
            await self._finish(orders, self._unfit)
            for task in (*waiting, sweeping):
                task.cancel()
            await self._give_back()
        if self._unfit.done():
            self._unfit.result()

    @asynccontextmanager
    async def _at_the_queue(self, capacity: Capacity) -> AsyncGenerator[None]:
        try:
            await self._aside(lambda: self._join(capacity))
            self._engine.start(capacity.here)
            yield
        finally:
            await self._runs.close()
            await self._aside(self._engine.stop)
            await self._aside(self._queue.close)
            self._thread.shutdown()

    def _join(self, capacity: Capacity) -> None:
        def join(_: Statements) -> None:
            first = self._life.living(ROLE).keys() <= {self._life.id}
            self._queue.open_for(per_worker=capacity.here, everywhere=capacity.everywhere, first=first)

        self._life.play(ROLE)
        # Alone: one who comes at the same moment must see the cap that another one names.
        self._store.database.together(join, alone="join")

    async def _work(self, key: CellKey) -> None:
        """One cell, called by the engine."""
        task = asyncio.current_task()
        assert task is not None
        if key in self._at_work:  # Lost, put back by another, and now ours again.
            self._at_work[key].cancel()
        self._at_work[key] = task
        try:
            async with self._room:  # The engine may have begun with another worker's number.
                await self._answer(key)
        finally:
            if self._at_work.get(key) is task:
                del self._at_work[key]
            self._last = time.monotonic()

    async def _answer(self, key: CellKey) -> None:
        try:
            run = await self._runs.get(key.run)
        except Exception as error:  # Whatever it is: a worker that cannot serve must not swallow the queue.
            await self._leave_it(error)
            return
        with run:
            question = await self._store.aside(self._store.question, key)
            if question is None or await self._store.aside(self._store.answered, key):
                return
            cell = Cell(run=key.run, question=question, trial=key.trial)
            found = await self._executor.one(cell, run.answer, self.progress)
        self.progress.done += 1
        self.progress.failed += isinstance(found, Failure)

    async def _leave_it(self, error: Exception) -> None:
        """The cell stays ours, unfinished, until we give it back."""
        if self._unfit is not None and not self._unfit.done():
            self._unfit.set_exception(error)
        await asyncio.Event().wait()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            try:
                before = dict(self._at_work)
                held = {queued.key for queued in await self._aside(self._reaper.sweep) if queued.executor == self._name}
                self._let_go({key: task for key, task in before.items() if key not in held})
            except Exception:  # The next look may go better; without looking, cells of the dead would stay theirs.
                log.exception("looking for workers that are gone")

    def _let_go(self, lost: Mapping[CellKey, asyncio.Task[object]]) -> None:
        """While the server could not see us, others took these over: two at one cell would tell everything twice."""
        for key, task in lost.items():
            if self._at_work.get(key) is task:
                log.warning("cell %s was taken over by another worker", key)
                task.cancel()

    async def _finish(self, orders: Orders, unfit: asyncio.Future[None]) -> None:
        """Until the cells at work are done, or there is no more time or no sense in that."""
        leave = asyncio.create_task(orders.leave.wait())
        while self._at_work and not orders.leave.is_set() and not unfit.done():
            await asyncio.wait([*self._at_work.values(), leave, unfit], return_when=asyncio.FIRST_COMPLETED)
        leave.cancel()

    async def _give_back(self) -> None:
        unfit = self._unfit is not None and self._unfit.done()
        unfinished = len(self._at_work)
        for task in self._at_work.values():
            task.cancel()
        until = time.monotonic() + LAST_WORDS
        while len(await self._aside(lambda: self._queue.held([self._name]))) > unfinished and time.monotonic() < until:
            await asyncio.sleep(0.1)
        why = "the worker that had it could not serve it" if unfit else "the worker that had it left"
        await self._aside(lambda: self._reaper.put_back([self._name], why, counted=unfit))

    async def _aside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
