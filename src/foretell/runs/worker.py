"""A worker: takes cells of any run from the queue, answers them like the local executor, and leaves in order."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import TypeVar

from foretell.data.untrusted import for_log
from foretell.models.database.interface import Statements
from foretell.models.database.liveness import SessionLiveness
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.runs.cell_queue import POLL_SECONDS, CellQueue, QueuedCell, QueueEngine
from foretell.runs.claims import ClaimTable
from foretell.runs.executor import (
    OTHER_PROCESS_POLL_SECONDS,
    AnswerCell,
    CellStopped,
    CellTakenOver,
    Executor,
    RunProgress,
    cell_claim,
)
from foretell.runs.store import CellKey, RunCell, RunRow, RunStore

# The runs a worker has open: each with whatever answering its cells takes on this machine.

PrepareRun = Callable[[RunRow], AbstractAsyncContextManager[AnswerCell]]
"""Prepares a run on this machine, or raises an error if something is missing."""
IDLE_SECONDS = 60.0
"""Seconds without a cell after which a run's connections are closed."""


class OpenRun:
    """A run opened by a worker; used with `with` around every cell, so that it is not closed underneath."""

    def __init__(self, answer: AnswerCell) -> None:
        self.answer = answer
        self._cells = 0
        self._last = time.monotonic()

    def __enter__(self) -> "OpenRun":
        """Count one more cell."""
        self._cells += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Count one cell less."""
        self._cells -= 1
        self._last = time.monotonic()

    @property
    def idle(self) -> bool:
        """Whether it has been unused for a while."""
        return not self._cells and time.monotonic() - self._last > IDLE_SECONDS


class OpenRuns:
    """Opens a run with its first cell, each in its own task, and closes it when no more cells come."""

    def __init__(self, store: RunStore, furnish: PrepareRun) -> None:
        self._store = store
        self._furnish = furnish
        self._ready: dict[str, asyncio.Future[OpenRun]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    async def get(self, run: str) -> OpenRun:
        """The open run, or the same error for every caller if it cannot be opened."""
        if run not in self._ready:
            self._ready[run] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._keep_open(run, self._ready[run]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(self._ready[run])

    async def close(self) -> None:
        """Close all."""
        self._closing.set()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _keep_open(self, run: str, ready: asyncio.Future[OpenRun]) -> None:
        try:
            row = await self._store.aside(self._store.run, run)
            if row is None:
                raise InputError(f"there is no run {run} in this database")
            async with self._furnish(row) as answer:
                opened = OpenRun(answer)
                ready.set_result(opened)
                while not self._closing.is_set() and not opened.idle:
                    await self._a_while()
                self._ready.pop(run, None)
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)
            ready.exception()  # Nobody may be waiting any more.

    async def _a_while(self) -> None:
        try:
            async with asyncio.timeout(IDLE_SECONDS / 4):
                await self._closing.wait()
        except TimeoutError:
            return


# Cells of workers that are gone are put back into the queue by those who live.

MAX_TAKEOVERS = 5
"""How often a cell is taken over until it counts as a failure: it may be what kills its workers."""
TAKEOVER_TABLES = ("create table takeover (workflow text primary key, times integer not null);",)
_COUNT = """
insert into takeover values (?, 1) on conflict (workflow) do update set times = takeover.times + 1"""

_reaper_log = logging.getLogger(__name__)


def executor_name(life: int) -> str:
    """The name of a worker in the queue."""
    return f"{life:016x}"


def life_of(executor: str) -> int:
    """The process behind a worker's name in the queue."""
    return int(executor, 16)


class Reaper:
    """Finds cells held by dead workers. Calls block on the server; any number of processes may do it."""

    def __init__(self, queue: CellQueue, store: RunStore, life: SessionLiveness) -> None:
        self._queue = queue
        self._store = store
        self._life = life
        self._claims = ClaimTable(store.database)
        store.database.migrate("cluster", TAKEOVER_TABLES)

    def sweep(self) -> list[QueuedCell]:
        """Put back cells of dead workers and return what the living hold."""
        held = self._queue.held()
        living = {executor_name(id) for id in self._life.living()}
        gone = {queued.executor for queued in held} - living
        if gone:
            self.put_back(sorted(gone), "the worker that had it is gone")
        return [queued for queued in held if queued.executor in living]

    def put_back(self, executors: Sequence[str], why: str, *, counted: bool = True) -> int:
        """Put back the cells of these workers; a cell taken over too often becomes a failure."""

        def work(statements: Statements) -> int:
            # Alone: a second reaper with an old list would take cells from those who have them now.
            lost = self._queue.held(executors)
            spent = [queued for queued in lost if counted and _count_takeover(statements, queued) > MAX_TAKEOVERS]
            for queued in spent:
                self._fail(queued, why)
            self._queue.drop(spent)
            self._queue.put_back(executors, [queued for queued in lost if queued not in spent])
            for queued in lost:
                # Or one who only slept would go on with a cell that it no longer has, and be cut off in a paid call.
                self._claims.take_away(statements, *cell_claim(queued.key), life_of(queued.executor))
            return len(lost)

        found = self._store.database.together(work, alone="reaper")
        if found:
            _reaper_log.warning("%d cells are queued again: %s", found, why)
        return found

    def _fail(self, queued: QueuedCell, why: str) -> None:
        question = self._store.question(queued.key)
        if question is not None and not self._store.answered(queued.key):
            error = f"given up after {MAX_TAKEOVERS} takeovers: {why}"
            failure = Failure(
                question_id=question.id,
                forecaster="cluster",
                as_of=question.as_of,
                trial=queued.key.trial,
                error=error,
            )
            self._store.finish_cell(queued.key, failure)


def _count_takeover(statements: Statements, queued: QueuedCell) -> int:
    statements.write(_COUNT, (queued.id,))
    return statements.read("select times from takeover where workflow = ?", (queued.id,))[0][0]


SWEEP_SECONDS = 2.0
"""Seconds between checks for dead workers."""
SHUTDOWN_SECONDS = 10.0
"""Seconds for the engine to record finished cells at shutdown."""
NOTED_SECONDS = 0.05
"""Seconds after which the engine has recorded the end of a cell."""
WORKER_ROLE = "worker"

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class WorkerCapacity:
    """How many cells run at once."""

    here: int = 50
    everywhere: int | None = None
    """Limit over all workers."""


@dataclass(kw_only=True)
class WorkerSignals:
    """Signals to a worker from outside."""

    rest: asyncio.Event = field(default_factory=asyncio.Event)
    """Take nothing new, finish running cells, and leave."""
    leave: asyncio.Event = field(default_factory=asyncio.Event)
    """Leave now: unfinished cells go back into the queue."""


class Worker:
    """Works until told to leave or until it lacks something that a run needs."""

    def __init__(self, url: str, store: RunStore, life: SessionLiveness, furnish: PrepareRun) -> None:
        self._store = store
        self._life = life
        self._name = executor_name(life.id)
        self._queue = CellQueue(url)
        self._engine = QueueEngine(url, self._name, self._work)
        self._reaper = Reaper(self._queue, store, life)
        self._executor = Executor(store)
        self._runs = OpenRuns(store, furnish)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cell-queue")
        self._at_work: dict[CellKey, asyncio.Task[object]] = {}
        self._unfit: asyncio.Future[None] | None = None
        self._ended = asyncio.Event()
        self._last = time.monotonic()
        self.progress = RunProgress(total=0)
        """What was done here."""

    @property
    def idle(self) -> float:
        """Seconds without a running cell."""
        return 0.0 if self._at_work else time.monotonic() - self._last

    async def serve(self, capacity: WorkerCapacity, orders: WorkerSignals) -> None:
        """Take cells until told to stop. Raises what kept it from serving a run, after returning its cells."""
        self._unfit = asyncio.get_running_loop().create_future()
        async with self._at_the_queue(capacity), self._executor.noting():
            waiting = [asyncio.create_task(event.wait()) for event in (orders.rest, orders.leave)]
            sweeping, taking = asyncio.create_task(self._sweep()), asyncio.create_task(self._take(capacity.here))
            await asyncio.wait([*waiting, self._unfit], return_when=asyncio.FIRST_COMPLETED)
            taking.cancel()
            await self._finish(orders, self._unfit)
            for task in (*waiting, sweeping):
                task.cancel()
            await self._give_back()
        if self._unfit.done():
            self._unfit.result()

    @asynccontextmanager
    async def _at_the_queue(self, capacity: WorkerCapacity) -> AsyncGenerator[None]:
        try:
            await self._aside(lambda: self._join(capacity))
            self._engine.start()
            yield
        finally:
            await self._runs.close()
            await self._aside(self._engine.stop)
            await self._aside(lambda: self._queue.forget(lambda executor: executor == self._name))
            await self._aside(self._queue.close)
            self._thread.shutdown()

    def _join(self, capacity: WorkerCapacity) -> None:
        def join(_: Statements) -> None:
            first = self._life.living(WORKER_ROLE).keys() <= {self._life.id}
            self._queue.open_for(everywhere=capacity.everywhere, first=first)
            living = set(map(executor_name, self._life.living()))
            self._queue.forget(lambda executor: executor not in living)

        self._queue.join(self._name)
        self._life.play(WORKER_ROLE)
        # Alone: one who comes at the same moment must see the cap that another one names.
        self._store.database.together(join, alone="join")

    async def _work(self, key: CellKey) -> None:
        """Answer one cell; called by the engine."""
        task = asyncio.current_task()
        assert task is not None
        if key in self._at_work:  # Lost, put back by another, and now ours again.
            self._at_work[key].cancel()
        self._at_work[key] = task
        try:
            await self._answer(key)
        finally:
            if self._at_work.get(key) is task:
                del self._at_work[key]
            self._last = time.monotonic()
            self._ended.set()

    async def _take(self, here: int) -> None:
        """Move cells to this worker while there is capacity, immediately when one has ended."""
        while True:
            self._ended.clear()
            try:
                if len(self._at_work) < here:
                    await self._aside(lambda: self._queue.take(self._name, here))
            except Exception:  # The next look may go better.
                log.exception("taking cells")
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._ended.wait()
                    await asyncio.sleep(NOTED_SECONDS)
            except TimeoutError:
                continue

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
            if await self._store.aside(self._store.stop_wishes, [key.run]):
                return
            found = await self._claimed(RunCell(run=key.run, question=question, trial=key.trial), run.answer)
        if found is None:
            return
        self.progress.done += 1
        self.progress.failed += isinstance(found, Failure)
        self.progress.degraded += isinstance(found, Forecast) and found.degraded

    async def _claimed(self, cell: RunCell, answer: AnswerCell) -> Forecast | Failure | None:
        """The answer; None if another worker gave it."""
        while True:
            try:
                async with self._executor.claimed(cell.key) as ours:
                    if ours and await self._store.aside(self._store.answered, cell.key):
                        return None
                    if ours:
                        return await self._executor.one(cell, answer, self.progress)
            except CellStopped:
                return None
            except CellTakenOver as reason:
                log.warning("%s", for_log(reason))
                raise asyncio.CancelledError from None  # As if it had been let go of: the engine notes nothing.
            # The worker that had it before has not noticed yet that it is ours.
            await asyncio.sleep(OTHER_PROCESS_POLL_SECONDS)

    async def _leave_it(self, error: Exception) -> None:
        """The cell stays ours, unfinished, until we return it."""
        if self._unfit is not None and not self._unfit.done():
            self._unfit.set_exception(error)
        await asyncio.Event().wait()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                before = dict(self._at_work)
                held = {queued.key for queued in await self._aside(self._reaper.sweep) if queued.executor == self._name}
                self._let_go({key: task for key, task in before.items() if key not in held})
            except Exception:  # The next look may go better; without looking, cells of the dead would stay theirs.
                log.exception("looking for workers that are gone")

    def _let_go(self, lost: Mapping[CellKey, asyncio.Task[object]]) -> None:
        """Abandon cells that others took over while the server could not see us: each must be recorded once."""
        for key, task in lost.items():
            if self._at_work.get(key) is task:
                log.warning("cell %s was taken over by another worker", key)
                task.cancel()

    async def _finish(self, orders: WorkerSignals, unfit: asyncio.Future[None]) -> None:
        """Wait until running cells are done, unless there is no time left or no point in waiting."""
        leave = asyncio.create_task(orders.leave.wait())
        while self._at_work and not orders.leave.is_set() and not unfit.done():
            await asyncio.wait([*self._at_work.values(), leave, unfit], return_when=asyncio.FIRST_COMPLETED)
        leave.cancel()

    async def _give_back(self) -> None:
        unfit = self._unfit is not None and self._unfit.done()
        unfinished = len(self._at_work)
        for task in self._at_work.values():
            task.cancel()
        until = time.monotonic() + SHUTDOWN_SECONDS
        while len(await self._aside(lambda: self._queue.held([self._name]))) > unfinished and time.monotonic() < until:
            await asyncio.sleep(0.1)
        why = "the worker that had it could not serve it" if unfit else "the worker that had it left"
        await self._aside(lambda: self._reaper.put_back([self._name], why, counted=unfit))

    async def _aside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
