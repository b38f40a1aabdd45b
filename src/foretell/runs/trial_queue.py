"""The queue that distributes trials to workers: DBOS on PostgreSQL. No other module uses DBOS, so it can be replaced.

A trial is a workflow without steps. When it restarts elsewhere, the journal returns every reply that it had. It waits
in a queue that no engine reads. A worker with free capacity moves it to its own queue, where the engine starts it.
This gives every worker its own concurrency instead of that of the worker that joined last.
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
from foretell.frozen import frozen
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.questions.errors import MissingExtra
from foretell.questions.trace import CallMeter
from foretell.runs.executor import HOPELESS_AFTER, RunProgress, why_hopeless
from foretell.runs.store import RunStore, RunTrial, TrialKey

QUEUE = "foretell-cells"
"""The queue in which trials wait. It holds the maximum number of trials that run over all workers."""
LANES = 8
"""Number of waiting queues, one for each of the first trials, so that early trials of every run come first."""
WORKFLOW = "foretell.cell"
APPLICATION = "foretell"
VERSION = "1"
"""Fixed instead of the engine's hash of the source, so that a newer build can finish trials of an older one."""
POLL_SECONDS = 0.25
"""Seconds between checks of a queue."""
POOL = 5
BATCH = 100
"""Trials queued per transaction."""
RETRY_SECONDS = 0.5
WARN_EVERY = 10.0
"""Seconds between warnings about an unreachable server."""
OPEN_STATUSES = ("ENQUEUED", "PENDING", "DELAYED")
STUCK_MS = 10_000
"""Milliseconds after which the server ends a session that hangs while distributing trials."""

T = TypeVar("T")
TrialWork = Callable[[TrialKey], Awaitable[None]]

log = logging.getLogger(__name__)


@frozen
class QueuedTrial:
    """A trial in the queue."""

    key: TrialKey
    attempt: int = 0
    """How often it has ended without a forecast."""
    status: str = ""
    executor: str = ""
    """The worker that has taken it; empty while it waits."""

    @property
    def id(self) -> str:
        """Unique id, so that the same trial and attempt cannot be queued twice.

        >>> QueuedTrial(key=TrialKey(run="r", question="a/b", due="2026-01-01", trial=2)).id
        'r/0/2/2026-01-01/a/b'
        """
        return f"{self.key.run}/{self.attempt}/{self.key.trial}/{self.key.due}/{self.key.question}"

    @property
    def open(self) -> bool:
        """Whether it is waiting or running."""
        return self.status in OPEN_STATUSES


def waiting_queue(trial: int) -> str:
    """The queue in which the trials with this number wait.

    >>> waiting_queue(0), waiting_queue(2), waiting_queue(50)
    ('foretell-cells', 'foretell-cells+2', 'foretell-cells+7')
    """
    return f"{QUEUE}+{min(trial, LANES - 1)}" if trial else QUEUE


WAITING = tuple(map(waiting_queue, range(LANES)))


def own_queue(executor: str) -> str:
    """The queue of a worker."""
    return f"{QUEUE}/{executor}"


def read_id(id: str, *, status: str = "", executor: str = "") -> QueuedTrial:
    """Parse the id of a queued trial.

    >>> read_id("r/0/2/2026-01-01/a/b").key.question
    'a/b'
    """
    run, attempt, trial, due, question = id.split("/", 4)
    key = TrialKey(run=run, question=question, due=due, trial=int(trial))
    return QueuedTrial(key=key, attempt=int(attempt), status=status, executor=executor)


def _retrying(work: Callable[[], T]) -> T:
    """Retry while the server is unreachable. Use it only for idempotent work."""
    from sqlalchemy.exc import InterfaceError, OperationalError

    warned_at = -WARN_EVERY
    while True:
        try:
            return work()
        except (OperationalError, InterfaceError) as error:
            if time.monotonic() - warned_at >= WARN_EVERY:
                warned_at = time.monotonic()
                log.warning("the queue is unreachable, trying again: %s", " ".join(str(error).split())[:200])
            time.sleep(RETRY_SECONDS)


def _dbos() -> Any:
    try:
        import dbos
    except ImportError:
        raise MissingExtra("sharing a run between machines", "cluster") from None
    logging.getLogger("dbos").setLevel(logging.CRITICAL)
    return dbos


class TrialQueue:
    """The queue of trials: add them, see which worker has them, and put them back. Calls block on the server."""

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
        """Set and return the maximum number of trials that run over all workers.

        The first worker sets it, and so do later ones that pass a number.
        """
        cap = everywhere or (None if first else self.everywhere())
        _retrying(lambda: self._client.register_queue(QUEUE, global_concurrency=cap))
        return cap

    def join(self, executor: str) -> None:
        """Create a queue for a worker's own trials."""
        _retrying(lambda: self._client.register_queue(own_queue(executor), polling_interval_sec=POLL_SECONDS))

    def forget(self, gone: Callable[[str], bool]) -> None:
        """Delete the empty queues of workers for which the condition holds."""
        for queue in self._client.list_queues():
            executor = queue.name.partition(own_queue(""))[2]
            if executor and gone(executor) and not self.held([executor]):
                self._client.delete_queue(queue.name)

    def take(self, executor: str, at_once: int) -> int:
        """Move waiting trials to a worker, up to its concurrency and the overall limit, and return how many."""
        return _retrying(lambda: self._take(executor, at_once))

    def _take(self, executor: str, at_once: int) -> int:
        if not self._list(status="ENQUEUED", queue_name=list(WAITING), limit=1):
            return 0
        with self._alone():
            room, cap = at_once - len(self.held([executor])), self.everywhere()
            if cap is not None:
                room = min(room, cap - len(self.held()))
            chosen: list[QueuedTrial] = []
            for lane in WAITING:
                if len(chosen) < room:
                    chosen += self._list(status="ENQUEUED", queue_name=lane, limit=room - len(chosen))
            if chosen:
                self.join(executor)  # Others may have removed the queue of a worker that was disconnected for long.
            self._move(chosen, own_queue(executor))
            return len(chosen)

    def _move(self, trials: Sequence[QueuedTrial], queue: str) -> None:
        if trials:
            self._client.resume_workflows([queued.id for queued in trials], queue_name=queue)

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Hold the lock under which trials are distributed, put back or dropped."""
        from sqlalchemy import text

        from foretell.models.database.postgres import lock_number

        with self._engine.begin() as transaction:
            transaction.execute(text("select pg_advisory_xact_lock(:lock)"), {"lock": lock_number("cells")})
            yield

    def everywhere(self) -> int | None:
        """Return the maximum number of trials that run over all workers."""
        queue = _retrying(lambda: self._client.retrieve_queue(QUEUE))
        return queue.global_concurrency if queue else None

    def add(self, trials: Iterable[QueuedTrial]) -> None:
        """Queue trials, early trials first. Trials that are already queued stay as they are."""
        waiting = iter(trials)
        while batch := list(islice(waiting, BATCH)):
            _retrying(partial(self._add, batch))

    def _add(self, batch: Sequence[QueuedTrial]) -> None:
        with self._engine.begin() as transaction:
            for queued in batch:
                self._client.enqueue_in_transaction(transaction, self._options(queued), *queued.key.row())

    def _options(self, queued: QueuedTrial) -> dict[str, Any]:
        return {
            "workflow_name": WORKFLOW,
            "queue_name": waiting_queue(queued.key.trial),
            "workflow_id": queued.id,
            "app_version": VERSION,
            "priority": queued.key.trial + 1,
            "serialization_type": self._json,
        }

    def of_run(self, run: str) -> list[QueuedTrial]:
        """Every trial of a run that was ever queued."""
        # Includes trials that were dropped from the queue.
        return self._list(workflow_id_prefix=f"{run}/")

    def open_trials(self) -> list[QueuedTrial]:
        """Trials of any run that are waiting or running."""
        return self._list(status=list(OPEN_STATUSES))

    def held(self, executors: Sequence[str] | None = None) -> list[QueuedTrial]:
        """Unfinished trials taken by any worker, or by these."""
        if executors is None:
            queues = [queue.name for queue in self._client.list_queues() if queue.name.startswith(own_queue(""))]
        else:
            queues = list(map(own_queue, executors))
        return self._list(status=list(OPEN_STATUSES), queue_name=queues) if queues else []

    def _list(self, **where: Any) -> list[QueuedTrial]:
        workflows = self._client.list_workflows(name=WORKFLOW, load_input=False, load_output=False, **where)
        return [
            read_id(row.workflow_id, status=row.status, executor=(row.queue_name or "").partition(own_queue(""))[2])
            for row in workflows
        ]

    def put_back(self, executors: Sequence[str], trials: Sequence[QueuedTrial]) -> None:
        """Make trials that these workers still hold available to others."""
        with self._alone():
            held = {queued.id for queued in self.held(executors)}
            for lane in dict.fromkeys(waiting_queue(queued.key.trial) for queued in trials):
                mine = [queued for queued in trials if waiting_queue(queued.key.trial) == lane and queued.id in held]
                self._move(mine, lane)

    def drop(self, trials: Sequence[QueuedTrial]) -> None:
        """Remove trials from the queue."""
        if trials:
            with self._alone():
                self._client.cancel_workflows([queued.id for queued in trials])

    def close(self) -> None:
        """End all sessions."""
        self._client.destroy()
        self._engine.dispose()


class QueueEngine:
    """Takes trials from the queue and passes them to `work`, on the event loop that is running at the start."""

    def __init__(self, url: str, executor: str, work: TrialWork) -> None:
        self._url = url
        self._executor = executor
        self._work = work

    def start(self) -> None:
        """Start the trials that are moved to this worker. Only one engine can run in a process."""
        _retrying(self._start)

    def _start(self) -> None:
        dbos = _dbos()
        dbos.DBOS.destroy(destroy_registry=True)  # Clean up after a failed start.
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

        async def answer_trial(run: str, question: str, due: str, trial: int) -> None:
            await work(TrialKey(run=run, question=question, due=due, trial=trial))

        dbos.DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)(answer_trial)
        dbos.DBOS.listen_queues([own_queue(self._executor)])
        # Launched within the running loop, the engine uses it instead of its own.
        dbos.DBOS.launch()

    def stop(self) -> None:
        """Stop and wait for its threads."""
        _dbos().DBOS.destroy(destroy_registry=True)


# Queueing the trials of a run.


def not_queued(trials: Iterable[RunTrial], queued_before: Iterable[QueuedTrial]) -> Iterator[QueuedTrial]:
    """Trials that are not queued yet, each with the number of its next attempt.

    >>> list(not_queued([], []))
    []
    """
    last: dict[TrialKey, QueuedTrial] = {}
    for queued in queued_before:
        if queued.key not in last or queued.attempt > last[queued.key].attempt:
            last[queued.key] = queued
    for trial in trials:
        before = last.get(trial.key)
        if before is None:
            yield QueuedTrial(key=trial.key)
        elif not before.open:
            yield QueuedTrial(key=trial.key, attempt=before.attempt + 1)


def open_trials(store: RunStore, trials: Sequence[RunTrial]) -> list[RunTrial]:
    """Trials without a forecast or a failure."""
    if not trials:
        return []
    ended = store.ended(trials[0].run)
    return [trial for trial in trials if (trial.key.question, trial.key.due, trial.key.trial) not in ended]


def enqueue(queue: TrialQueue, store: RunStore, trials: Sequence[RunTrial]) -> list[RunTrial]:
    """Queue open trials that are not queued yet, idempotently, and return all open trials."""
    left = open_trials(store, trials)
    if left:
        queued = queue.of_run(left[0].run)
        queue.add(not_queued(open_trials(store, left), queued))
    return left


def drop_trials(queue: TrialQueue, run: str) -> int:
    """Remove a run's trials from the queue and return how many. Running trials are aborted."""
    trials = [queued for queued in queue.open_trials() if queued.key.run == run]
    queue.drop(trials)
    return len(trials)


# Following a run that other processes work on: trials are queued, and progress is read from the store.

FOLLOW_SECONDS = 0.5
RECHECK_SECONDS = 15.0
"""Seconds between checks that every open trial is still queued."""
RECHECK_SHARE = 20
"""Pause between checks as a multiple of the duration of a check, which is longer for large runs."""


_TRIALS_SQL = """
select run, question, due, trial, forecast is not null, degraded from cell where run = ? and trial >= ? and trial < ?"""


def _trials_of(run_trials: Sequence[RunTrial]) -> range:
    numbers = [trial.trial for trial in run_trials]
    return range(min(numbers), max(numbers) + 1)


@dataclass(kw_only=True)
class RunFollower:
    """Follows the trials of one run until all have ended."""

    queue: TrialQueue
    store: RunStore
    watch: Callable[[RunProgress], None]
    journal: Journal | None = None
    """The journal of the workers, whose ledger has the costs."""
    progress: RunProgress = field(default_factory=lambda: RunProgress(total=0))
    _seen: int = -1
    _next_look: float = 0.0
    _before: Money | None = None
    """What the run had cost when following began."""
    _meter: CallMeter = field(default_factory=CallMeter)
    _others: tuple[int, int, int] = (0, 0, 0)
    """Forecasts, failures and fallback forecasts of the run in trials that are not followed."""

    async def until_ended(self, trials: Sequence[RunTrial]) -> RunProgress:
        """Queue the open trials and wait until workers have answered them."""
        if not trials:
            return self.progress
        if self._seen < 0:
            self._seen = await self.store.aside(self.store.last_event)
        if self._before is None and self.journal is not None:
            self._before = await self.journal.database.aside(self.journal.ledger.money, trials[0].run)
        before = replace(self.progress)
        self._others = await self.store.aside(self._tally_of_others, trials)
        left, check = await self._enqueue(trials)
        self.progress.total += len(trials)
        self.progress.skipped += len(trials) - len(left)
        while left:
            ended = await self._look(trials, before)
            if self.progress.early:  # Workers first finish the trials that they are answering.
                await asyncio.sleep(2 * PATIENCE + FOLLOW_SECONDS)
            if self.progress.stopped or self.progress.early:
                await asyncio.to_thread(drop_trials, self.queue, trials[0].run)
                break
            if ended >= len(trials) or time.monotonic() > check:
                left, check = await self._enqueue(trials)
            if left:
                await asyncio.sleep(FOLLOW_SECONDS)
        self._next_look = 0.0  # Read the costs again at once.
        await self._look(trials, before)
        return self.progress

    async def _enqueue(self, trials: Sequence[RunTrial]) -> tuple[list[RunTrial], float]:
        """Queue open trials and return them and the time of the next check."""
        start = time.monotonic()
        left = await asyncio.to_thread(enqueue, self.queue, self.store, trials)
        end = time.monotonic()
        return left, end + max(RECHECK_SECONDS, RECHECK_SHARE * (end - start))

    async def _look(self, trials: Sequence[RunTrial], before: RunProgress) -> int:
        """Update the progress and return how many trials have ended."""
        run, tally = trials[0].run, await self.store.aside(self.store.tally, trials[0].run, _trials_of(trials))
        forecasts, failed, fallback = (count - other for count, other in zip(tally, self._others, strict=True))
        for number, call in await self.store.aside(self.store.model_calls, run, after=self._seen):
            self._seen = number
            self.progress.calls += self._meter.count(call)
        self.progress.done = before.total + forecasts + failed
        self.progress.failed = before.failed + failed
        self.progress.fallback = before.fallback + fallback
        if failed + fallback >= HOPELESS_AFTER and forecasts == fallback and not before.total:
            self.progress.stopped = await self.store.aside(self._hopeless, run)
        self.progress.early = bool(await self.store.aside(self.store.stop_wishes, [run]))
        await self._look_at_money(run)
        self.watch(self.progress)
        return forecasts + failed

    def _hopeless(self, run: str) -> str:
        return why_hopeless(self.store.answers(run))

    def _tally_of_others(self, trials: Sequence[RunTrial]) -> tuple[int, int, int]:
        followed, span = {trial.key.row() for trial in trials}, _trials_of(trials)
        rows = self.store.database.read(_TRIALS_SQL, (trials[0].run, span.start, span.stop))
        others = [(done, bad) for *key, done, bad in rows if tuple(key) not in followed]
        return sum(done for done, _ in others), sum(not done for done, _ in others), sum(bad for _, bad in others)

    async def _look_at_money(self, run: str) -> None:
        if self.journal is None or time.monotonic() < self._next_look:
            return
        start = time.monotonic()
        money = await self.journal.database.aside(self.journal.ledger.money, run)
        billed = money.billed - (self._before or money).billed
        self.progress.money = replace(money, billed=round(billed, 9), reused=self._meter.cost.reused)
        end = time.monotonic()
        self._next_look = end + RECHECK_SHARE * (end - start)
