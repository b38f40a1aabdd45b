"""The queue that distributes cells to workers: DBOS on PostgreSQL. No other module uses DBOS, so it can be replaced.

A cell is a workflow without steps: restarted elsewhere, it gets every reply it had from the journal. It waits in a
queue that nobody listens to. A worker with free capacity moves it to its own queue, from which the engine starts it.
This way every worker has its own concurrency instead of that of the worker that joined last.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from foretell.forecasters.early_stop import PATIENCE
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.questions.errors import MissingExtra
from foretell.runs.executor import HOPELESS_AFTER, RunProgress, why_hopeless
from foretell.runs.store import CellKey, RunCell, RunStore

QUEUE = "foretell-cells"
"""Where cells wait. Its description holds the maximum number of cells at work over all workers."""
LANES = 8
"""Waiting queues: one for each of the first trials, so that early trials of every run come first."""
WORKFLOW = "foretell.cell"
APPLICATION = "foretell"
VERSION = "1"
"""Fixed instead of the engine's hash of the source, so that a newer build finishes cells of an older one."""
POLL_SECONDS = 0.25
"""Seconds between checks of a queue."""
POOL = 5
BATCH = 100
"""Cells queued per transaction."""
RETRY_SECONDS = 0.5
WARN_EVERY = 10.0
"""Seconds between warnings about a server that is away."""
OPEN_STATUSES = ("ENQUEUED", "PENDING", "DELAYED")
STUCK_MS = 10_000
"""Milliseconds after which the server ends a session of ours that hangs while distributing cells."""

T = TypeVar("T")
CellWork = Callable[[CellKey], Awaitable[None]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class QueuedCell:
    """A cell in the queue."""

    key: CellKey
    attempt: int = 0
    """How often it has ended without a forecast."""
    status: str = ""
    executor: str = ""
    """The worker that has taken it; empty while it waits."""

    @property
    def id(self) -> str:
        """Unique id, so that the same cell and attempt cannot be queued twice.

        >>> QueuedCell(key=CellKey(run="r", question="a/b", due="2026-01-01", trial=2)).id
        'r/0/2/2026-01-01/a/b'
        """
        return f"{self.key.run}/{self.attempt}/{self.key.trial}/{self.key.due}/{self.key.question}"

    @property
    def open(self) -> bool:
        """Whether it is waiting or running."""
        return self.status in OPEN_STATUSES


def waiting_queue(trial: int) -> str:
    """The queue in which a cell of this trial waits.

    >>> waiting_queue(0), waiting_queue(2), waiting_queue(50)
    ('foretell-cells', 'foretell-cells+2', 'foretell-cells+7')
    """
    return f"{QUEUE}+{min(trial, LANES - 1)}" if trial else QUEUE


WAITING = tuple(map(waiting_queue, range(LANES)))


def own_queue(executor: str) -> str:
    """The queue of a worker."""
    return f"{QUEUE}/{executor}"


def read_id(id: str, *, status: str = "", executor: str = "") -> QueuedCell:
    """Parse the id of a queued cell.

    >>> read_id("r/0/2/2026-01-01/a/b").key.question
    'a/b'
    """
    run, attempt, trial, due, question = id.split("/", 4)
    key = CellKey(run=run, question=question, due=due, trial=int(trial))
    return QueuedCell(key=key, attempt=int(attempt), status=status, executor=executor)


def _retrying(work: Callable[[], T]) -> T:
    """Retry while the server is away; only for idempotent work."""
    from sqlalchemy.exc import InterfaceError, OperationalError

    told = -WARN_EVERY
    while True:
        try:
            return work()
        except (OperationalError, InterfaceError) as error:
            if time.monotonic() - told >= WARN_EVERY:
                told = time.monotonic()
                log.warning("the queue is away, trying again: %s", " ".join(str(error).split())[:200])
            time.sleep(RETRY_SECONDS)


def _dbos() -> Any:
    try:
        import dbos
    except ImportError:
        raise MissingExtra("sharing a run between machines", "cluster") from None
    logging.getLogger("dbos").setLevel(logging.CRITICAL)
    return dbos


class CellQueue:
    """The queue seen from outside: add cells, see who has them, put them back. Calls block on the server."""

    def __init__(self, url: str) -> None:
        """Create the engine's tables if they are missing."""
        dbos = _dbos()
        from sqlalchemy import create_engine, make_url

        _retrying(lambda: dbos.DBOS.migrate(url))
        self._engine = create_engine(
            make_url(url).set(drivername="postgresql+psycopg"),
            pool_size=1,
            pool_pre_ping=True,
            connect_args={"options": f"-c idle_in_transaction_session_timeout={STUCK_MS}"},
        )
        self._client: Any = dbos.DBOSClient(
            system_database_url=url, application_name=APPLICATION, system_database_pool_size=2, lazy=True
        )
        self._json: Any = dbos.WorkflowSerializationFormat.PORTABLE

    def open_for(self, *, everywhere: int | None, first: bool) -> int | None:
        """The maximum number of cells at work over all workers.

        The first worker sets it, and later ones that pass a number; a worker without one keeps the current value.
        """
        cap = everywhere or (None if first else self.everywhere())
        _retrying(lambda: self._client.register_queue(QUEUE, global_concurrency=cap))
        return cap

    def join(self, executor: str) -> None:
        """Create a queue for a worker's own cells."""
        _retrying(lambda: self._client.register_queue(own_queue(executor), polling_interval_sec=POLL_SECONDS))

    def forget(self, gone: Callable[[str], bool]) -> None:
        """Delete the empty queues of workers for which the condition holds."""
        for queue in self._client.list_queues():
            executor = queue.name.partition(own_queue(""))[2]
            if executor and gone(executor) and not self.held([executor]):
                self._client.delete_queue(queue.name)

    def take(self, executor: str, at_once: int) -> int:
        """Move waiting cells to a worker up to its concurrency and the overall limit; returns how many."""
        return _retrying(lambda: self._take(executor, at_once))

    def _take(self, executor: str, at_once: int) -> int:
        if not self._list(status="ENQUEUED", queue_name=list(WAITING), limit=1):
            return 0
        with self._alone():
            room, cap = at_once - len(self.held([executor])), self.everywhere()
            if cap is not None:
                room = min(room, cap - len(self.held()))
            chosen: list[QueuedCell] = []
            for lane in WAITING:
                if len(chosen) < room:
                    chosen += self._list(status="ENQUEUED", queue_name=lane, limit=room - len(chosen))
            if chosen:
                self.join(executor)  # Others may have forgotten one who was away for long.
            self._move(chosen, own_queue(executor))
            return len(chosen)

    def _move(self, cells: Sequence[QueuedCell], queue: str) -> None:
        if cells:
            self._client.resume_workflows([queued.id for queued in cells], queue_name=queue)

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Hold the lock under which cells are distributed, put back or dropped."""
        from sqlalchemy import text

        from foretell.models.database.postgres import lock_number

        with self._engine.begin() as transaction:
            transaction.execute(text("select pg_advisory_xact_lock(:lock)"), {"lock": lock_number("cells")})
            yield

    def everywhere(self) -> int | None:
        """The maximum number of cells at work over all workers."""
        standing = _retrying(lambda: self._client.retrieve_queue(QUEUE))
        return standing.global_concurrency if standing else None

    def add(self, cells: Iterable[QueuedCell]) -> None:
        """Queue cells, early trials first. Cells that are already queued stay as they are."""
        waiting = iter(cells)
        while batch := list(islice(waiting, BATCH)):
            _retrying(partial(self._add, batch))

    def _add(self, batch: Sequence[QueuedCell]) -> None:
        with self._engine.begin() as transaction:
            for queued in batch:
                self._client.enqueue_in_transaction(transaction, self._options(queued), *queued.key.row())

    def _options(self, queued: QueuedCell) -> dict[str, Any]:
        return {
            "workflow_name": WORKFLOW,
            "queue_name": waiting_queue(queued.key.trial),
            "workflow_id": queued.id,
            "app_version": VERSION,
            "priority": queued.key.trial + 1,
            "serialization_type": self._json,
        }

    def of_run(self, run: str) -> list[QueuedCell]:
        """Every cell of a run that was ever queued."""
        # One that was dropped is no longer in the queue, and has its id nevertheless.
        return self._list(workflow_id_prefix=f"{run}/")

    def open_cells(self) -> list[QueuedCell]:
        """Cells of any run that are waiting or running."""
        return self._list(status=list(OPEN_STATUSES))

    def held(self, executors: Sequence[str] | None = None) -> list[QueuedCell]:
        """Unfinished cells taken by any worker, or by these."""
        if executors is None:
            queues = [queue.name for queue in self._client.list_queues() if queue.name.startswith(own_queue(""))]
        else:
            queues = list(map(own_queue, executors))
        return self._list(status=list(OPEN_STATUSES), queue_name=queues) if queues else []

    def _list(self, **where: Any) -> list[QueuedCell]:
        found = self._client.list_workflows(name=WORKFLOW, load_input=False, load_output=False, **where)
        return [
            read_id(row.workflow_id, status=row.status, executor=(row.queue_name or "").partition(own_queue(""))[2])
            for row in found
        ]

    def put_back(self, executors: Sequence[str], cells: Sequence[QueuedCell]) -> None:
        """Let others take those of the cells that these workers still hold."""
        with self._alone():
            still = {queued.id for queued in self.held(executors)}
            for lane in dict.fromkeys(waiting_queue(queued.key.trial) for queued in cells):
                mine = [queued for queued in cells if waiting_queue(queued.key.trial) == lane and queued.id in still]
                self._move(mine, lane)

    def drop(self, cells: Sequence[QueuedCell]) -> None:
        """Remove cells from the queue."""
        if cells:
            with self._alone():
                self._client.cancel_workflows([queued.id for queued in cells])

    def close(self) -> None:
        """End all sessions."""
        self._client.destroy()
        self._engine.dispose()


class QueueEngine:
    """Takes cells from the queue and passes them to `work`, on the event loop that is running at the start."""

    def __init__(self, url: str, executor: str, work: CellWork) -> None:
        self._url = url
        self._executor = executor
        self._work = work

    def start(self) -> None:
        """Start the cells that are moved to this worker. Only one engine can run in a process."""
        _retrying(self._start)

    def _start(self) -> None:
        dbos = _dbos()
        dbos.DBOS.destroy(destroy_registry=True)  # What is left of a start that failed.
        dbos.DBOS(
            config={
                "name": APPLICATION,
                "system_database_url": self._url,
                "application_version": VERSION,
                "executor_id": self._executor,
                "max_executor_threads": 8,
                "sys_db_pool_size": POOL,
                "log_level": "CRITICAL",
                "run_migrations": False,
            }
        )
        work = self._work

        async def cell(run: str, question: str, due: str, trial: int) -> None:
            await work(CellKey(run=run, question=question, due=due, trial=trial))

        dbos.DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)(cell)
        dbos.DBOS.listen_queues([own_queue(self._executor)])
        # Started from within the loop, the engine runs cells on it and not on one of its own.
        dbos.DBOS.launch()

    def stop(self) -> None:
        """Stop and wait for its threads."""
        _dbos().DBOS.destroy(destroy_registry=True)


# Which cells of a run are queued, and when all of them have ended.


def not_queued(cells: Iterable[RunCell], standing: Iterable[QueuedCell]) -> Iterator[QueuedCell]:
    """Cells that are not queued yet, each with the number of its next attempt.

    >>> list(not_queued([], []))
    []
    """
    last: dict[CellKey, QueuedCell] = {}
    for queued in standing:
        if queued.key not in last or queued.attempt > last[queued.key].attempt:
            last[queued.key] = queued
    for cell in cells:
        before = last.get(cell.key)
        if before is None:
            yield QueuedCell(key=cell.key)
        elif not before.open:
            yield QueuedCell(key=cell.key, attempt=before.attempt + 1)


def open_cells(store: RunStore, cells: Sequence[RunCell]) -> list[RunCell]:
    """Cells without a forecast or a failure."""
    if not cells:
        return []
    ended = store.ended(cells[0].run)
    return [cell for cell in cells if (cell.key.question, cell.key.due, cell.key.trial) not in ended]


def enqueue(queue: CellQueue, store: RunStore, cells: Sequence[RunCell]) -> list[RunCell]:
    """Queue open cells that are not queued yet, idempotently, and return all open cells."""
    left = open_cells(store, cells)
    if left:
        standing = queue.of_run(left[0].run)
        queue.add(not_queued(open_cells(store, left), standing))
    return left


def drop_cells(queue: CellQueue, run: str) -> int:
    """Remove a run from the queue: waiting cells do not start, running ones are aborted. Returns how many."""
    cells = [queued for queued in queue.open_cells() if queued.key.run == run]
    queue.drop(cells)
    return len(cells)


# A run that others work at, followed from outside: cells are queued, and progress is read from the store.

FOLLOW_SECONDS = 0.5
RECHECK_SECONDS = 15.0
"""Seconds between checks that every open cell is still queued."""
RECHECK_SHARE = 20
"""For a large run the check takes longer, and this multiple of its duration passes before the next."""


_CELLS_SQL = """
select run, question, due, trial, forecast is not null, degraded from cell where run = ? and trial >= ? and trial < ?"""


def _trials_of(cells: Sequence[RunCell]) -> range:
    trials = [cell.trial for cell in cells]
    return range(min(trials), max(trials) + 1)


@dataclass(kw_only=True)
class RunFollower:
    """Follows the cells of one run until all have ended."""

    queue: CellQueue
    store: RunStore
    watch: Callable[[RunProgress], None]
    journal: Journal | None = None
    """Where workers record what they send: its ledger knows what that costs."""
    progress: RunProgress = field(default_factory=lambda: RunProgress(total=0))
    _seen: int = -1
    _next_look: float = 0.0
    _before: Money | None = None
    """What the run had cost when it was first looked at."""
    _reused: float = 0.0
    _others: tuple[int, int, int] = (0, 0, 0)
    """Forecasts, failures and degraded forecasts of the run in cells that are not followed."""

    async def until_ended(self, cells: Sequence[RunCell]) -> RunProgress:
        """Queue the open cells and wait until workers have answered them."""
        if not cells:
            return self.progress
        if self._seen < 0:
            self._seen = await self.store.aside(self.store.last_event)
        if self._before is None and self.journal is not None:
            self._before = await self.journal.database.aside(self.journal.ledger.money, cells[0].run)
        before = replace(self.progress)
        self._others = await self.store.aside(self._tally_of_others, cells)
        left, check = await self._enqueue(cells)
        self.progress.total += len(cells)
        self.progress.skipped += len(cells) - len(left)
        while left:
            ended = await self._look(cells, before)
            if self.progress.early:  # The workers answer what they have before them first.
                await asyncio.sleep(2 * PATIENCE + FOLLOW_SECONDS)
            if self.progress.stopped or self.progress.early:
                await asyncio.to_thread(drop_cells, self.queue, cells[0].run)
                break
            if ended >= len(cells) or time.monotonic() > check:
                left, check = await self._enqueue(cells)
            if left:
                await asyncio.sleep(FOLLOW_SECONDS)
        self._next_look = 0.0  # The money is read again, however lately that was.
        await self._look(cells, before)
        return self.progress

    async def _enqueue(self, cells: Sequence[RunCell]) -> tuple[list[RunCell], float]:
        """Queue open cells; returns them and the time of the next check."""
        start = time.monotonic()
        left = await asyncio.to_thread(enqueue, self.queue, self.store, cells)
        end = time.monotonic()
        return left, end + max(RECHECK_SECONDS, RECHECK_SHARE * (end - start))

    async def _look(self, cells: Sequence[RunCell], before: RunProgress) -> int:
        """Update the progress and return how many cells have ended."""
        run, tally = cells[0].run, await self.store.aside(self.store.tally, cells[0].run, _trials_of(cells))
        found, failed, degraded = (count - other for count, other in zip(tally, self._others, strict=True))
        for number, call in await self.store.aside(self.store.model_calls, run, self._seen):
            self._seen = number
            self.progress.calls += 1
            self._reused += (call.dollars or 0.0) if call.reused else 0.0
        self.progress.done = before.total + found + failed
        self.progress.failed = before.failed + failed
        self.progress.degraded = before.degraded + degraded
        if failed + degraded >= HOPELESS_AFTER and found == degraded and not before.total:
            self.progress.stopped = await self.store.aside(self._hopeless, run)
        self.progress.early = bool(await self.store.aside(self.store.stop_wishes, [run]))
        await self._look_at_money(run)
        self.watch(self.progress)
        return found + failed

    def _hopeless(self, run: str) -> str:
        return why_hopeless(self.store.answers(run))

    def _tally_of_others(self, cells: Sequence[RunCell]) -> tuple[int, int, int]:
        followed, span = {cell.key.row() for cell in cells}, _trials_of(cells)
        rows = self.store.database.read(_CELLS_SQL, (cells[0].run, span.start, span.stop))
        others = [(done, bad) for *key, done, bad in rows if tuple(key) not in followed]
        return sum(done for done, _ in others), sum(not done for done, _ in others), sum(bad for _, bad in others)

    async def _look_at_money(self, run: str) -> None:
        if self.journal is None or time.monotonic() < self._next_look:
            return
        start = time.monotonic()
        money = await self.journal.database.aside(self.journal.ledger.money, run)
        billed = money.billed - (self._before or money).billed
        self.progress.money = replace(money, billed=round(billed, 9), reused=self._reused)
        end = time.monotonic()
        self._next_look = end + RECHECK_SHARE * (end - start)
