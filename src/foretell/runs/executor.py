"""Runs cells concurrently in one process. Finished cells are skipped; failures are stored.

Several processes may run the same cells against one store: they share them, and no cell is answered twice at once.
"""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from foretell.data.untrusted import for_log
from foretell.forecasters.early_stop import EarlyStop, stopping_by
from foretell.forecasters.forecaster import EventOrdering
from foretell.models.budget import Budget
from foretell.models.database.interface import Statements
from foretell.models.ledger import Money
from foretell.models.waiting import asking_for, sending_while
from foretell.questions.clock_jump import ClockReading, jump_text
from foretell.questions.errors import StorageError, storage_error_in
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.trace import EmitEvent, Failed, ModelCalled, TraceEvent
from foretell.runs.claims import ClaimTable
from foretell.runs.store import CellKey, RunCell, RunStore

AnswerCell = Callable[[RunCell, EmitEvent], Awaitable[Forecast | Failure]]
"""Answers one cell and emits events on the way."""

WatchEvents = Callable[[int, TraceEvent], None]
"""Called immediately with a trial's number and each of its events."""

FLUSH_SECONDS = 0.25
"""How far a reader may lag behind. A crash may lose the last events; the journal still has every reply."""
OTHER_PROCESS_POLL_SECONDS = 0.5
"""Seconds between checks of cells that another process is answering."""

log = logging.getLogger(__name__)
clock_log = logging.getLogger("foretell.clock")
"""Messages for a person at a terminal."""


@dataclass(kw_only=True)
class RunProgress:
    """The progress of a run, updated while it goes on."""

    total: int
    done: int = 0
    failed: int = 0
    degraded: int = 0
    """Answered, but based on a failure."""
    skipped: int = 0
    money: Money = field(default_factory=Money)
    """Billed and reused since it was started, and what is unknown and reserved for the run now."""
    calls: int = 0
    stopped: str = ""
    """Why the run gave up before its end."""
    early: bool = False
    """Whether somebody stopped it early."""
    unread: tuple[str, ...] = ()
    """Sources of series that could not be read, and why."""

    def __add__(self, later: "RunProgress") -> "RunProgress":
        """Combine two consecutive parts of a run; what is unknown and reserved is that of the later one."""
        names = ("total", "done", "failed", "degraded", "skipped", "calls")
        sums: dict[str, Any] = {name: getattr(self, name) + getattr(later, name) for name in names}
        sums["money"] = replace(self.money, unknown=0.0, reserved=0.0) + later.money
        return replace(later, **sums, stopped=later.stopped or self.stopped, early=later.early or self.early)


HOPELESS_AFTER = 5
"""Number of cells that fail for the same reason before any is answered, after which the run gives up."""


def why_hopeless(results: Iterable[Forecast | Failure]) -> str:
    """Why a run that began with these results should give up; empty if it should not."""
    problems: list[str] = []
    alike: set[str] = set()
    for result in results:
        if isinstance(result, Forecast) and not result.degraded:
            return ""
        problems.append(result.error if isinstance(result, Failure) else result.problem)
        alike.add(failure_kind(problems[-1], result.question_id))
    if len(problems) < HOPELESS_AFTER or len(alike) > 1:
        return ""
    return f"the first {len(problems)} cells all failed: {problems[0]}"


def failure_kind(error: str, question: str) -> str:
    """The words of an error without its numbers (seconds, ids, tokens): equal for failures of the same kind."""
    return re.sub(r"[\d.]+", "#", error.replace(question, ""))


class CellTakenOver(Exception):
    """While this process was suspended or disconnected, another took over one of its cells."""


class CellStopped(Exception):
    """The run was stopped, and this cell had nothing to answer with: it stays open."""


@dataclass(kw_only=True)
class CellLease:
    """A cell that is ours, as far as we know."""

    term: int
    """The term of our liveness when we last checked."""
    task: asyncio.Task[Any]
    lost: bool = False


class Executor:
    """Runs cells against one store, at most `concurrency` at a time."""

    def __init__(
        self,
        store: RunStore,
        *,
        concurrency: int = 50,
        watch: Callable[[RunProgress], None] | None = None,
        on_event: "WatchEvents | None" = None,
        claims: ClaimTable | None = None,
    ) -> None:
        """Pass `claims` to share them with other users in this process."""
        self._store = store
        self._claims = claims or ClaimTable(store.database)
        self._leases: dict[CellKey, CellLease] = {}
        self._concurrency = concurrency
        self._watch: Callable[[RunProgress], None] = watch or (lambda _: None)
        self._on_event = on_event
        self._waiting: dict[CellKey, list[TraceEvent]] = {}
        self._writing = asyncio.Lock()
        self._results: list[Forecast | Failure] | None = []
        """Results of the first cells; None once it is known whether the run is hopeless."""
        self._stops: dict[str, EarlyStop] = {}
        """Stop requests by run."""
        self.budget: Budget | None = None
        """The run's budget, for reporting."""
        self.unknown_before = 0.0
        """What lost replies of earlier processes may have cost."""
        self._told = Money()
        """What was billed and reused in the parts of the run that have ended."""

    async def run(self, cells: Iterable[RunCell], answer: AnswerCell) -> RunProgress:
        """Answer and store every cell without a forecast. A failing cell never stops the others."""
        everything = list(cells)
        finished = self._store.finished(everything[0].run) if everything else set[tuple[str, str, int]]()
        todo = [cell for cell in everything if (cell.key.question, cell.key.due, cell.key.trial) not in finished]
        skipped = len(everything) - len(todo)
        progress = RunProgress(total=len(everything), done=skipped, skipped=skipped)
        self._tell(progress)
        async with self.noting(progress):
            while todo:
                queue, elsewhere = iter(todo), list[RunCell]()
                try:
                    async with asyncio.TaskGroup() as group:
                        for _ in range(min(self._concurrency, len(todo))):
                            group.create_task(self._work(queue, elsewhere, answer, progress))
                except BaseExceptionGroup as problems:
                    raise (storage_error_in(problems) or problems) from None
                if progress.stopped or progress.early:
                    break
                if todo := elsewhere:  # Another process is at them, and may die over them.
                    await asyncio.sleep(OTHER_PROCESS_POLL_SECONDS)
        self._tell(progress)
        if self.budget is not None:
            self._told = replace(self.budget.money, unknown=0.0, reserved=0.0)
        return progress

    def _tell(self, progress: RunProgress) -> None:
        if self.budget is not None:
            progress.money = self.budget.money - self._told + Money(unknown=self.unknown_before)
        self._watch(progress)

    async def _work(
        self, queue: Iterator[RunCell], elsewhere: list[RunCell], answer: AnswerCell, progress: RunProgress
    ) -> None:
        for cell in queue:
            if progress.stopped or progress.early:
                return
            key = cell.key
            try:
                async with self.claimed(key) as ours:
                    if not ours:
                        elsewhere.append(cell)
                        continue
                    if not await self._store.aside(self._store.answered, key):  # Another one may have been quicker.
                        result = await self.one(cell, answer, progress)
                        progress.failed += isinstance(result, Failure)
                        progress.degraded += isinstance(result, Forecast) and result.degraded
                        self._stop_if_hopeless(result, progress)
            except CellStopped:
                return
            except CellTakenOver as reason:
                log.warning("%s", for_log(reason))
                elsewhere.append(cell)
                continue
            progress.done += 1
            self._tell(progress)

    @asynccontextmanager
    async def claimed(self, key: CellKey) -> AsyncGenerator[bool]:
        """Whether we hold a cell during the block: nobody else answers it, and nothing is written if we lose it."""
        task, store = asyncio.current_task(), self._store
        assert task is not None
        # Read before the claim is made: who falls asleep in between makes sure again.
        term = await store.aside(lambda: store.database.life.term)
        async with self._claims.claim(*cell_claim(key)) as ours:
            if ours:
                self._leases[key] = CellLease(term=term, task=task)
            try:
                yield ours
            except asyncio.CancelledError:
                if not ours or not self._leases[key].lost:
                    raise
                task.uncancel()
                raise _taken_over(key) from None
            finally:
                if ours:
                    del self._leases[key]

    def _fence(self, statements: Statements, keys: Set[CellKey]) -> Set[CellKey]:
        """Those of the cells that are still ours; cells that were never claimed pass."""
        claimed = {key for key in keys if key in self._leases}
        only = cell_claim(next(iter(claimed)))[1] if len(claimed) == 1 else None
        ours = {run: self._claims.ours(statements, f"cell {run}", only) for run in {key.run for key in claimed}}
        return {key for key in keys if key not in claimed or cell_claim(key)[1] in ours[key.run]}

    async def _make_sure(self) -> None:
        """After a silence in which others may have considered us dead: release cells that are no longer ours."""
        life = self._store.database.life
        term = life.term
        unsure = {key: lease for key, lease in self._leases.items() if lease.term != term}
        if unsure:
            together = self._store.database.together
            ours = await self._store.aside(together, lambda statements: self._fence(statements, unsure.keys()))
            for key, lease in unsure.items():
                if key in ours:
                    lease.term = term
                else:
                    self._let_go(key)

    def _let_go(self, key: CellKey) -> None:
        lease = self._leases.get(key)
        if lease is not None and not lease.lost:
            lease.lost = True
            lease.task.cancel()

    def _stop_if_hopeless(self, result: Forecast | Failure, progress: RunProgress) -> None:
        if self._results is not None:
            self._results.append(result)
            progress.stopped = why_hopeless(self._results)
            if len(self._results) >= HOPELESS_AFTER:
                self._results = None

    async def one(self, cell: RunCell, answer: AnswerCell, progress: RunProgress) -> Forecast | Failure:
        """Answer and store one cell; call it within `noting`."""
        if not await self._store.grouped(self._store.start_cell, cell.key, self._fence):
            raise _taken_over(cell.key)
        in_order = EventOrdering(self._waiting.setdefault(cell.key, []).append)

        def emit(event: TraceEvent) -> None:
            in_order(event)
            if self._on_event is not None:
                self._on_event(cell.trial, event)
            if isinstance(event, ModelCalled):
                progress.calls += 1

        try:
            async with self._stoppable(cell) as stop:
                result = await answer(cell, emit)
            _refuse_stopped_failure(result, stop)
        except CellStopped:  # Its steps stay readable until it is begun anew.
            await self._flush()
            self._waiting.pop(cell.key, None)
            raise
        except asyncio.CancelledError:
            self._waiting.pop(cell.key, None)  # Another process may be at it by now, and records its events anew.
            raise
        except StorageError:  # Nothing could be recorded either: the run ends, and goes on when it is started again.
            raise
        except Exception as error:  # the boundary of a cell: whatever broke is recorded, and the run goes on
            log.warning("cell %s failed: %s", for_log(cell.key), for_log(error))
            problem = f"{type(error).__name__}: {error}"
            emit(Failed(error=problem))
            result = Failure(
                question_id=cell.question.id,
                forecaster=type(error).__name__,
                as_of=cell.question.as_of,
                trial=cell.trial,
                error=problem,
            )
        in_order.release()
        async with self._writing:  # What a flush has taken is written before the rest.
            events = self._waiting.pop(cell.key, [])
        if not await self._store.grouped(self._store.finish_cell, cell.key, result, self._fence, events):
            raise _taken_over(cell.key)
        return result

    @asynccontextmanager
    async def _stoppable(self, cell: RunCell) -> AsyncGenerator[EarlyStop]:
        """Answer a cell until its run is stopped. Raises `CellStopped` if that takes longer than allowed.

        A context manager instead of a wrapper, to add no frame between a command and its model.
        """
        lease, life = self._leases.get(cell.key), self._store.database.life
        stop, clock = self._stops.setdefault(cell.run, EarlyStop()), asyncio.timeout(None)
        try:
            sending = sending_while(lambda: stop.wish is None and (lease is None or life.holds(lease.term)))
            with sending, asking_for(cell.run, cell.question.id):
                async with clock:
                    with stopping_by(stop), stop.ends(clock):
                        yield stop
        except TimeoutError:
            if not clock.expired():
                raise
            raise CellStopped from None

    async def _stop_if_asked(self, progress: RunProgress | None) -> None:
        """Stop the runs that somebody asked to stop."""
        running = {key.run for key in self._waiting}
        # Of a run that goes on again, the stop of before is forgotten.
        self._stops = {run: stop for run, stop in self._stops.items() if run in running}
        wishes = await self._store.aside(self._store.stop_wishes, running) if running else {}
        for run, wish in wishes.items():
            self._stops.setdefault(run, EarlyStop()).ask(wish)
        if wishes and progress is not None:
            progress.early = True

    @asynccontextmanager
    async def noting(self, progress: RunProgress | None = None) -> AsyncGenerator[None]:
        """While the block lasts, write events to the store now and then and report progress."""

        async def flush_now_and_then() -> None:
            before = ClockReading.now()
            while True:
                await asyncio.sleep(FLUSH_SECONDS)
                now = ClockReading.now()
                if jump := before.jump_to(now):
                    clock_log.warning("%s; the run goes on, its forecasts keep their dates", jump_text(jump))
                before = now
                await self._make_sure()
                await self._flush()
                await self._stop_if_asked(progress)
                if progress is not None:
                    self._tell(progress)

        flusher = asyncio.create_task(flush_now_and_then())
        try:
            yield
        finally:
            flusher.cancel()
            await asyncio.gather(flusher, return_exceptions=True)
            await self._flush()

    async def _flush(self) -> None:
        """Write the events of all running cells."""
        async with self._writing:  # One after the other: the events of a cell keep their order.
            events = [(key, event) for key, waiting in self._waiting.items() for event in waiting]
            for waiting in self._waiting.values():
                waiting.clear()
            lost = await self._store.aside(self._store.add_events, events, self._fence) if events else ()
        for key in lost:
            self._let_go(key)


def cell_claim(key: CellKey) -> tuple[str, str]:
    """The name of a cell in the table of claims."""
    return f"cell {key.run}", f"{key.question} {key.due} {key.trial}"


def _refuse_stopped_failure(result: Forecast | Failure, stop: EarlyStop) -> None:
    """Raise `CellStopped` for a cell that failed only because its run was stopped."""
    if stop.wish is not None and isinstance(result, Failure):
        raise CellStopped


def _taken_over(key: CellKey) -> CellTakenOver:
    where = f"trial {key.trial} of {key.question}, run {key.run}"
    return CellTakenOver(
        f"this process was away for a while, and another one took over {where}: nothing is written here"
    )
