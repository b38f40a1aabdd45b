"""A worker takes trials of any run from the queue and answers them like the local executor."""

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
from foretell.frozen import frozen
from foretell.models.database.interface import Statements
from foretell.models.database.liveness import SessionLiveness
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.runs.claims import ClaimTable
from foretell.runs.executor import (
    OTHER_PROCESS_POLL_SECONDS,
    AnswerTrial,
    Executor,
    RunProgress,
    TrialStopped,
    TrialTakenOver,
    trial_claim,
)
from foretell.runs.store import RunRow, RunStore, RunTrial, TrialKey
from foretell.runs.trial_queue import POLL_SECONDS, QueuedTrial, QueueEngine, TrialQueue

# The runs that a worker has open.

PrepareRun = Callable[[RunRow], AbstractAsyncContextManager[AnswerTrial]]
"""Prepares a run on this machine, or raises an error if something is missing."""
IDLE_SECONDS = 60.0
"""Seconds without a trial after which a run's connections are closed."""


class OpenRun:
    """A run opened by a worker. Use it with `with` around every trial, so that it is not closed meanwhile."""

    def __init__(self, answer: AnswerTrial) -> None:
        self.answer = answer
        self._running = 0
        self._last = time.monotonic()

    def __enter__(self) -> "OpenRun":
        """Count one more trial."""
        self._running += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Count one trial less."""
        self._running -= 1
        self._last = time.monotonic()

    @property
    def idle(self) -> bool:
        """Whether it has been unused for a while."""
        return not self._running and time.monotonic() - self._last > IDLE_SECONDS


class OpenRuns:
    """Opens a run with its first trial, each in its own task, and closes it when no more trials come."""

    def __init__(self, store: RunStore, prepare: PrepareRun) -> None:
        self._store = store
        self._prepare = prepare
        self._ready: dict[str, asyncio.Future[OpenRun]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    async def get(self, run: str) -> OpenRun:
        """Return the open run. If it cannot be opened, every caller gets the same error."""
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
            async with self._prepare(row) as answer:
                opened = OpenRun(answer)
                ready.set_result(opened)
                while not self._closing.is_set() and not opened.idle:
                    await self._pause()
                self._ready.pop(run, None)
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)
            ready.exception()  # Marks it as retrieved, in case no caller is waiting.

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(IDLE_SECONDS / 4):
                await self._closing.wait()
        except TimeoutError:
            return


# Live workers put trials of dead workers back into the queue.

MAX_TAKEOVERS = 5
"""Takeovers after which a trial counts as failed, because it may be what kills its workers."""
TAKEOVER_TABLES = ("create table takeover (workflow text primary key, times integer not null);",)
_COUNT = """
insert into takeover values (?, 1) on conflict (workflow) do update set times = takeover.times + 1"""

_reaper_log = logging.getLogger(__name__)


def executor_name(life: int) -> str:
    """The name of a worker in the queue."""
    return f"{life:016x}"


class Reaper:
    """Puts trials of dead workers back into the queue. Calls block. Any number of processes may do it."""

    def __init__(self, queue: TrialQueue, store: RunStore, life: SessionLiveness) -> None:
        self._queue = queue
        self._store = store
        self._life = life
        self._claims = ClaimTable(store.database)
        store.database.migrate("cluster", TAKEOVER_TABLES)

    def sweep(self) -> list[QueuedTrial]:
        """Put back trials of dead workers and return those of live workers."""
        held = self._queue.held()
        living = {executor_name(id) for id in self._life.living()}
        gone = {queued.executor for queued in held} - living
        if gone:
            self.put_back(sorted(gone), "its worker is gone")
        return [queued for queued in held if queued.executor in living]

    def put_back(self, executors: Sequence[str], why: str, *, counted: bool = True) -> int:
        """Put back the trials of these workers and return how many. A trial taken over too often becomes a failure."""

        def work(statements: Statements) -> int:
            # Exclusive, because a second reaper with an old list would take trials from their new workers.
            lost = self._queue.held(executors)
            spent = [queued for queued in lost if counted and _count_takeover(statements, queued) > MAX_TAKEOVERS]
            for queued in spent:
                self._fail(queued, why)
            self._queue.drop(spent)
            self._queue.put_back(executors, [queued for queued in lost if queued not in spent])
            for queued in lost:
                # Otherwise a worker that was only suspended would continue and be cut off in a paid call.
                self._claims.take_away(statements, *trial_claim(queued.key), int(queued.executor, 16))
            return len(lost)

        count = self._store.database.together(work, alone="reaper")
        if count:
            _reaper_log.warning("%d trials are queued again: %s", count, why)
        return count

    def _fail(self, queued: QueuedTrial, why: str) -> None:
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
            self._store.finish_trial(queued.key, failure)


def _count_takeover(statements: Statements, queued: QueuedTrial) -> int:
    statements.write(_COUNT, (queued.id,))
    return statements.read("select times from takeover where workflow = ?", (queued.id,))[0][0]


SWEEP_SECONDS = 2.0
"""Seconds between checks for dead workers."""
SHUTDOWN_SECONDS = 10.0
"""Maximum seconds for the engine to record finished trials at shutdown."""
NOTED_SECONDS = 0.05
"""Seconds after which the engine has recorded the end of a trial."""
WORKER_ROLE = "worker"

T = TypeVar("T")

log = logging.getLogger(__name__)


@frozen
class WorkerCapacity:
    """How many trials run at once."""

    here: int = 50
    everywhere: int | None = None
    """Limit over all workers."""


@dataclass(kw_only=True)
class WorkerSignals:
    """Signals to a worker from outside."""

    rest: asyncio.Event = field(default_factory=asyncio.Event)
    """Take no new trials, finish the running ones, and stop."""
    leave: asyncio.Event = field(default_factory=asyncio.Event)
    """Stop now. Unfinished trials go back into the queue."""


class Worker:
    """Answers trials until it is stopped or cannot serve a run."""

    def __init__(self, url: str, store: RunStore, life: SessionLiveness, prepare: PrepareRun) -> None:
        self._store = store
        self._life = life
        self._name = executor_name(life.id)
        self._queue = TrialQueue(url)
        self._engine = QueueEngine(url, self._name, self._work)
        self._reaper = Reaper(self._queue, store, life)
        self._executor = Executor(store)
        self._runs = OpenRuns(store, prepare)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="trial-queue")
        self._at_work: dict[TrialKey, asyncio.Task[object]] = {}
        self._unfit: asyncio.Future[None] | None = None
        self._ended = asyncio.Event()
        self._last = time.monotonic()
        self.progress = RunProgress(total=0)
        """The progress of this worker."""

    @property
    def idle(self) -> float:
        """Seconds without a running trial."""
        return 0.0 if self._at_work else time.monotonic() - self._last

    async def serve(self, capacity: WorkerCapacity, orders: WorkerSignals) -> None:
        """Take trials until stopped. If a run cannot be served, return the trials and raise its error."""
        self._unfit = asyncio.get_running_loop().create_future()
        async with self._at_the_queue(capacity), self._executor.recording():
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
        # Exclusive, so that a worker that joins at the same time sees the limit that another one sets.
        self._store.database.together(join, alone="join")

    async def _work(self, key: TrialKey) -> None:
        """Answer one trial; called by the engine."""
        task = asyncio.current_task()
        assert task is not None
        if key in self._at_work:  # It was put back by another worker and is ours again.
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
        """Move trials to this worker while it has capacity, and at once when a trial ends."""
        while True:
            self._ended.clear()
            try:
                if len(self._at_work) < here:
                    await self._aside(lambda: self._queue.take(self._name, here))
            except Exception:  # Retried at the next poll.
                log.exception("taking trials")
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._ended.wait()
                    await asyncio.sleep(NOTED_SECONDS)
            except TimeoutError:
                continue

    async def _answer(self, key: TrialKey) -> None:
        try:
            run = await self._runs.get(key.run)
        except Exception as error:  # A worker that cannot serve a run must not empty the queue.
            await self._report_unfit(error)
            return
        with run:
            question = await self._store.aside(self._store.question, key)
            if question is None or await self._store.aside(self._store.answered, key):
                return
            if await self._store.aside(self._store.stop_wishes, [key.run]):
                return
            answer = await self._claimed(RunTrial(run=key.run, question=question, trial=key.trial), run.answer)
        if answer is None:
            return
        self.progress.done += 1
        self.progress.failed += isinstance(answer, Failure)
        self.progress.fallback += isinstance(answer, Forecast) and answer.fallback

    async def _claimed(self, trial: RunTrial, answer: AnswerTrial) -> Forecast | Failure | None:
        """Answer a trial, or return None if another worker did or the run was stopped."""
        while True:
            try:
                async with self._executor.claimed(trial.key) as ours:
                    if ours and await self._store.aside(self._store.answered, trial.key):
                        return None
                    if ours:
                        return await self._executor.answer_trial(trial, answer, self.progress)
            except TrialStopped:
                return None
            except TrialTakenOver as reason:
                log.warning("%s", for_log(reason))
                raise asyncio.CancelledError from None  # The engine then records nothing.
            # Its previous worker has not noticed yet that it is ours.
            await asyncio.sleep(OTHER_PROCESS_POLL_SECONDS)

    async def _report_unfit(self, error: Exception) -> None:
        """Record the error and keep the trial unfinished until it is returned."""
        if self._unfit is not None and not self._unfit.done():
            self._unfit.set_exception(error)
        await asyncio.Event().wait()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                before = dict(self._at_work)
                held = {queued.key for queued in await self._aside(self._reaper.sweep) if queued.executor == self._name}
                self._abandon({key: task for key, task in before.items() if key not in held})
            except Exception:  # Retried at the next sweep.
                log.exception("looking for dead workers")

    def _abandon(self, lost: Mapping[TrialKey, asyncio.Task[object]]) -> None:
        """Abandon trials that others took over while this worker was disconnected, so that each is recorded once."""
        for key, task in lost.items():
            if self._at_work.get(key) is task:
                log.warning("trial %s was taken over by another worker", key)
                task.cancel()

    async def _finish(self, orders: WorkerSignals, unfit: asyncio.Future[None]) -> None:
        """Wait until running trials are done, unless the worker must stop now or cannot serve."""
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
        why = "its worker could not serve it" if unfit else "its worker left"
        await self._aside(lambda: self._reaper.put_back([self._name], why, counted=unfit))

    async def _aside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
