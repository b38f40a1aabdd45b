"""Run trials concurrently in one process. Finished trials are skipped, and failures are stored.

Several processes may run the same trials on one store. They share the work, and one process at a time answers a trial.
"""

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Set
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from foretell.data.untrusted import for_log
from foretell.forecasters.early_stop import EarlyStop, stopping_by
from foretell.forecasters.forecaster import EventOrdering
from foretell.frozen import frozen
from foretell.models.budget import Budget
from foretell.models.database.interface import Statements
from foretell.models.ledger import Money
from foretell.models.waiting import asking_for, pending_work, sending_while
from foretell.questions.clock_jump import ClockReading, jump_text
from foretell.questions.errors import StorageError, storage_error_in
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.trace import EmitEvent, Failed, ModelCalled, TraceEvent
from foretell.runs.claims import ClaimTable
from foretell.runs.store import RunStore, RunTrial, TrialKey

AnswerTrial = Callable[[RunTrial, EmitEvent], Awaitable[Forecast | Failure]]
"""Answers one trial and emits events on the way."""

WatchEvents = Callable[[int, TraceEvent], None]
"""Called immediately with a trial's number and each of its events."""

FLUSH_SECONDS = 0.25
"""Seconds between writes of events. A crash may lose the last events, but the journal has every reply."""
ARRIVING_SECONDS = 2.0
"""Seconds between updates of how much of a reply has arrived."""
OTHER_PROCESS_POLL_SECONDS = 0.5
"""Seconds between checks of trials that another process is answering."""

log = logging.getLogger(__name__)
clock_log = logging.getLogger("foretell.clock")
"""Messages for a person at a terminal."""


@dataclass(kw_only=True)
class RunProgress:
    """The progress of a run, updated while it goes on."""

    total: int
    done: int = 0
    failed: int = 0
    fallback: int = 0
    """Number of fallback forecasts."""
    skipped: int = 0
    money: Money = field(default_factory=Money)
    """Billed and reused since the start, and unknown and reserved now."""
    calls: int = 0
    stopped: str = ""
    """Why the run gave up early; empty if it did not."""
    early: bool = False
    """Whether a user stopped it early."""
    unread: tuple[str, ...] = ()
    """Sources of series that could not be read, and why."""
    fetched: int = 0
    """Number of series fetched before the first trial."""
    wanted: int = 0
    """Number of series to fetch."""

    def __add__(self, later: "RunProgress") -> "RunProgress":
        """Combine two consecutive parts of a run. Unknown and reserved costs are those of the later one."""
        names = ("total", "done", "failed", "fallback", "skipped", "calls")
        sums: dict[str, Any] = {name: getattr(self, name) + getattr(later, name) for name in names}
        sums["money"] = replace(self.money, unknown=0.0, reserved=0.0) + later.money
        return replace(later, **sums, stopped=later.stopped or self.stopped, early=later.early or self.early)


HOPELESS_AFTER = 5
"""The run gives up if this many trials fail for the same reason before any is answered."""


def why_hopeless(results: Iterable[Forecast | Failure]) -> str:
    """Return why a run that began with these results should give up; empty if it should not."""
    problems: list[str] = []
    kinds: set[str] = set()
    for result in results:
        if isinstance(result, Forecast) and not result.fallback:
            return ""
        problems.append(result.error if isinstance(result, Failure) else result.problem)
        kinds.add(failure_kind(problems[-1], result.question_id))
    if len(problems) < HOPELESS_AFTER or len(kinds) > 1:
        return ""
    return f"the first {len(problems)} trials all failed: {problems[0]}"


def failure_kind(error: str, question: str) -> str:
    """Return the text of an error without numbers and ids, which is equal for failures of the same kind."""
    return re.sub(r"[\d.]+", "#", error.replace(question, ""))


class TrialTakenOver(Exception):
    """While this process was suspended or disconnected, another took over one of its trials."""


class TrialStopped(Exception):
    """The run was stopped before this trial had an answer. The trial stays open."""


@frozen
class PendingNote:
    """What was stored as the pending work of a trial."""

    text: str | None = None
    """JSON; None if nothing was stored since the trial began, so that an earlier attempt may have left something."""
    work: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    at: float = 0.0


@dataclass(kw_only=True)
class TrialLease:
    """A trial that this process has claimed, unless it was taken over since."""

    term: int
    """The term of our liveness when we last checked."""
    task: asyncio.Task[Any]
    lost: bool = False


class Executor:
    """Runs trials against one store, at most `concurrency` at a time."""

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
        self._leases: dict[TrialKey, TrialLease] = {}
        self._concurrency = concurrency
        self._watch: Callable[[RunProgress], None] = watch or (lambda _: None)
        self._reported: RunProgress | None = None
        self._on_event = on_event
        self._waiting: dict[TrialKey, list[TraceEvent]] = {}
        self._pending: dict[TrialKey, PendingNote] = {}
        """What was stored as the pending work of trials."""
        self._writing = asyncio.Lock()
        self._results: list[Forecast | Failure] | None = []
        """Results of the first trials; None once enough are known to decide whether to give up."""
        self._stops: dict[str, EarlyStop] = {}
        """Stop requests by run."""
        self.budget: Budget | None = None
        """The run's budget, for reporting."""
        self.unknown_before = 0.0
        """Possible cost of lost replies of earlier processes."""
        self._settled = Money()
        """Billed and reused costs of the parts of the run that have ended."""

    async def run(self, trials: Iterable[RunTrial], answer: AnswerTrial) -> RunProgress:
        """Answer and store every trial without a forecast. A failing trial never stops the others."""
        all_trials = list(trials)
        finished = self._store.finished(all_trials[0].run) if all_trials else set[tuple[str, str, int]]()
        todo = [trial for trial in all_trials if (trial.key.question, trial.key.due, trial.key.trial) not in finished]
        skipped = len(all_trials) - len(todo)
        progress = RunProgress(total=len(all_trials), done=skipped, skipped=skipped)
        self._report(progress)
        async with self.recording(progress):
            while todo:
                queue, elsewhere = iter(todo), list[RunTrial]()
                try:
                    async with asyncio.TaskGroup() as group:
                        for _ in range(min(self._concurrency, len(todo))):
                            group.create_task(self._work(queue, elsewhere, answer, progress))
                except BaseExceptionGroup as problems:
                    raise (storage_error_in(problems) or problems) from None
                if progress.stopped or progress.early:
                    break
                if todo := elsewhere:  # Another process is working on them, and may die.
                    await asyncio.sleep(OTHER_PROCESS_POLL_SECONDS)
        self._report(progress)
        if self.budget is not None:
            self._settled = replace(self.budget.money, unknown=0.0, reserved=0.0)
        return progress

    def _report(self, progress: RunProgress) -> None:
        if self.budget is not None:
            progress.money = self.budget.money - self._settled + Money(unknown=self.unknown_before)
        # A copy, which stays as it was at this step.
        if progress != self._reported:
            self._reported = replace(progress)
            self._watch(self._reported)

    async def _work(
        self, queue: Iterator[RunTrial], elsewhere: list[RunTrial], answer: AnswerTrial, progress: RunProgress
    ) -> None:
        for trial in queue:
            if progress.stopped or progress.early:
                return
            key = trial.key
            result: Forecast | Failure | None = None
            try:
                async with self.claimed(key) as ours:
                    if not ours:
                        elsewhere.append(trial)
                        continue
                    if not await self._store.aside(self._store.answered, key):  # Another process may have answered it.
                        result = await self.answer_trial(trial, answer, progress)
            except TrialStopped:
                return
            except TrialTakenOver as reason:
                log.warning("%s", for_log(reason))
                elsewhere.append(trial)
                continue
            # All at once, so that no report says that a trial failed which is not done.
            progress.done += 1
            progress.failed += isinstance(result, Failure)
            progress.fallback += isinstance(result, Forecast) and result.fallback
            if result is not None:
                self._stop_if_hopeless(result, progress)
            self._report(progress)

    @asynccontextmanager
    async def claimed(self, key: TrialKey) -> AsyncGenerator[bool]:
        """Claim a trial during the block and yield whether we have it. If we lose it, nothing is written."""
        task, store = asyncio.current_task(), self._store
        assert task is not None
        # Read before the claim, so that a process suspended in between checks its claim again.
        term = await store.aside(lambda: store.database.life.term)
        async with self._claims.claim(*trial_claim(key)) as ours:
            if ours:
                self._leases[key] = TrialLease(term=term, task=task)
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

    def _owned(self, statements: Statements, keys: Set[TrialKey]) -> Set[TrialKey]:
        """Return the trials that are still ours. Trials that were never claimed count as ours."""
        claimed = {key for key in keys if key in self._leases}
        only = trial_claim(next(iter(claimed)))[1] if len(claimed) == 1 else None
        ours = {run: self._claims.ours(statements, f"cell {run}", only) for run in {key.run for key in claimed}}
        return {key for key in keys if key not in claimed or trial_claim(key)[1] in ours[key.run]}

    async def _check_leases(self) -> None:
        """Abandon trials that others took over while this process seemed dead."""
        life = self._store.database.life
        term = life.term
        unsure = {key: lease for key, lease in self._leases.items() if lease.term != term}
        if unsure:
            together = self._store.database.together
            ours = await self._store.aside(together, lambda statements: self._owned(statements, unsure.keys()))
            for key, lease in unsure.items():
                if key in ours:
                    lease.term = term
                else:
                    self._abandon(key)

    def _abandon(self, key: TrialKey) -> None:
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

    async def answer_trial(self, trial: RunTrial, answer: AnswerTrial, progress: RunProgress) -> Forecast | Failure:
        """Answer and store one trial. Call it within `recording`."""
        if not await self._store.grouped(self._store.start_trial, trial.key, self._owned):
            raise _taken_over(trial.key)
        in_order = EventOrdering(self._waiting.setdefault(trial.key, []).append)
        self._pending[trial.key] = PendingNote()

        def emit(event: TraceEvent) -> None:
            in_order(event)
            if self._on_event is not None:
                self._on_event(trial.trial, event)
            if isinstance(event, ModelCalled):
                progress.calls += 1

        try:
            async with self._stoppable(trial) as stop:
                result = await answer(trial, emit)
            _raise_if_stopped(result, stop)
        except TrialStopped:  # Its events stay readable until it starts again.
            await self._flush()
            self._waiting.pop(trial.key, None)
            raise
        except asyncio.CancelledError:
            self._waiting.pop(trial.key, None)  # Another process may be working on it and records its own events.
            raise
        except StorageError:  # Nothing can be recorded. The run ends and can be resumed.
            raise
        except Exception as error:  # An error in one trial is recorded, and the run continues.
            log.warning("trial %s failed: %s", for_log(trial.key), for_log(error))
            problem = f"{type(error).__name__}: {error}"
            emit(Failed(error=problem))
            result = Failure(
                question_id=trial.question.id,
                forecaster=type(error).__name__,
                as_of=trial.question.as_of,
                trial=trial.trial,
                error=problem,
            )
        in_order.release()
        async with self._writing:  # A flush in progress writes its events first.
            events = self._waiting.pop(trial.key, [])
        if not await self._store.grouped(self._store.finish_trial, trial.key, result, self._owned, events):
            raise _taken_over(trial.key)
        return result

    @asynccontextmanager
    async def _stoppable(self, trial: RunTrial) -> AsyncGenerator[EarlyStop]:
        """Let a trial run until its run is stopped. Raises `TrialStopped` if it then takes longer than allowed.

        This is a context manager instead of a wrapper to keep the call stack short.
        """
        lease, life = self._leases.get(trial.key), self._store.database.life
        stop, clock = self._stops.setdefault(trial.run, EarlyStop()), asyncio.timeout(None)
        try:
            sending = sending_while(lambda: stop.wish is None and (lease is None or life.holds(lease.term)))
            with sending, asking_for(*trial.key):
                async with clock:
                    with stopping_by(stop), stop.ends(clock):
                        yield stop
        except TimeoutError:
            if not clock.expired():
                raise
            raise TrialStopped from None

    async def _stop_if_asked(self, progress: RunProgress | None) -> None:
        """Stop the runs for which a stop was requested."""
        running = {key.run for key in self._waiting}
        # Forget earlier stops of runs that have resumed.
        self._stops = {run: stop for run, stop in self._stops.items() if run in running}
        wishes = await self._store.aside(self._store.stop_wishes, running) if running else {}
        for run, wish in wishes.items():
            self._stops.setdefault(run, EarlyStop()).ask(wish)
        if wishes and progress is not None:
            progress.early = True

    @asynccontextmanager
    async def recording(self, progress: RunProgress | None = None) -> AsyncGenerator[None]:
        """Write events to the store and report progress regularly during the block."""
        ended = asyncio.Event()

        async def flush_regularly() -> None:
            before = ClockReading.now()
            while True:
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), FLUSH_SECONDS)
                if ended.is_set():
                    return
                now = ClockReading.now()
                if jump := before.jump_to(now):
                    clock_log.warning("%s; the run continues, and its forecasts keep their dates", jump_text(jump))
                before = now
                await self._check_leases()
                await self._flush()
                await self._keep_pending_work()
                await self._stop_if_asked(progress)
                if progress is not None:
                    self._report(progress)

        flusher = asyncio.create_task(flush_regularly())
        try:
            yield
        finally:
            # Not cancelled: a write that goes on in a thread could end after the last one, which it would undo.
            ended.set()
            await asyncio.gather(flusher, return_exceptions=True)
            await self._flush()
            await self._keep_pending_work()

    async def _flush(self) -> None:
        """Write the events of all running trials."""
        async with self._writing:  # One flush at a time, so that events keep their order.
            events = [(key, event) for key, waiting in self._waiting.items() for event in waiting]
            for waiting in self._waiting.values():
                waiting.clear()
            lost = await self._store.aside(self._store.add_events, events, self._owned) if events else ()
        for key in lost:
            self._abandon(key)

    async def _keep_pending_work(self) -> None:
        """Store what running trials wait for, if it has changed, and delete that of trials that have ended."""
        pending, now = pending_work(), time.monotonic()
        changed: dict[TrialKey, str] = {}
        for key, before in list(self._pending.items()):
            running = key in self._waiting
            work = pending.get(key, []) if running else []
            # The size of an arriving reply changes all the time.
            same = before.text is not None and running and _without_tokens(work) == _without_tokens(before.work)
            if same and (work == before.work or now < before.at + ARRIVING_SECONDS):
                continue
            text = json.dumps(work) if work else ""
            if text != before.text:
                changed[key] = text
            if running:
                self._pending[key] = PendingNote(text=text, work=work, at=now)
            else:
                del self._pending[key]
        if changed:
            await self._store.aside(self._store.keep_pending_work, changed)


def _without_tokens(work: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**item, "tokens": 0} for item in work]


def trial_claim(key: TrialKey) -> tuple[str, str]:
    """Return the name of a trial in the table of claims."""
    return f"cell {key.run}", f"{key.question} {key.due} {key.trial}"


def _raise_if_stopped(result: Forecast | Failure, stop: EarlyStop) -> None:
    """Raise `TrialStopped` for a trial that failed only because its run was stopped."""
    if stop.wish is not None and isinstance(result, Failure):
        raise TrialStopped


def _taken_over(key: TrialKey) -> TrialTakenOver:
    where = f"trial {key.trial} of {key.question}, run {key.run}"
    return TrialTakenOver(f"this process was suspended, and another one took over {where}; nothing is written here")
