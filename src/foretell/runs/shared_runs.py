"""Runs on several machines: what `foretell run` and `foretell worker` do with a shared database."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import UTC, datetime

from foretell.forecasters.base_rates.past import Past
from foretell.frozen import frozen
from foretell.models.budget import Budget
from foretell.models.database.liveness import SessionLiveness
from foretell.models.journal import Journal
from foretell.plugins import PAIR, variables_in_words
from foretell.questions.errors import InputError
from foretell.runs.contexts import context_rows
from foretell.runs.executor import AnswerTrial, RunProgress
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.past import keep_past, stored_past
from foretell.runs.runner import (
    PreparedRun,
    WatchProgress,
    begin_run,
    check_options,
    has_panel,
    keep_estimates,
    open_answers,
)
from foretell.runs.runtime import run_budget
from foretell.runs.services import SeriesOnDemand
from foretell.runs.settings import KEYS, Settings
from foretell.runs.spec import spec_from_json
from foretell.runs.store import RunRow, RunStore
from foretell.runs.trial_queue import QueuedTrial, RunFollower, TrialQueue, drop_trials
from foretell.runs.worker import WORKER_ROLE, PrepareRun, Worker, WorkerCapacity, WorkerSignals, executor_name

OFFERED_CELLS = ("acled", "fred", "metaculus")
"""Services whose key decides whether a tool is available. All machines must have the same ones, or trials differ."""
ALONE_SECONDS = 5.0
"""Seconds without a worker before the user is notified."""

Notify = Callable[[str], None]


@frozen
class ClusterStatus:
    """The workers at one time, and their trials."""

    workers: Mapping[int, str]
    """Worker id → machine and process."""
    trials: Sequence[QueuedTrial]
    """Trials that are waiting or being answered."""
    everywhere: int | None = None
    """How many trials all workers together may answer at the same time."""

    def lines(self) -> Iterator[str]:
        """Yield lines of text."""
        at_work = Counter(queued.executor for queued in self.trials if queued.status == "PENDING")
        for id, name in sorted(self.workers.items(), key=lambda pair: pair[1]):
            yield f"worker {name}: {at_work.pop(executor_name(id), 0)} trials in progress"
        if lost := at_work.total():
            yield f"{lost} trials of lost workers"
        for run, waiting in Counter(q.key.run for q in self.trials if q.status != "PENDING").items():
            yield f"run {run}: {waiting} trials waiting"
        if not self.workers:
            yield "no worker is running"
        elif self.everywhere:
            yield f"all workers together answer at most {self.everywhere} trials at the same time"


def shared_url(settings: Settings) -> str:
    """Return the address of the shared database."""
    if settings.database is None:
        hint = "FORETELL_DATABASE_URL=postgresql://user@host/name"
        raise InputError("this needs a shared database", hint=hint)
    return settings.database


def settings_for(settings: Settings, row: RunRow) -> Settings:
    """Return this machine's settings with the tools of the machine that started the run."""
    missing = [name for name in OFFERED_CELLS if name in row.services and not settings.key(name)]
    if missing:
        hint = f"set {variables_in_words(KEYS[missing[0]][:1])}"
        raise InputError(f"run {row.id} was started with a key for {missing[0]}", hint=hint)
    extra = {
        key
        for name in OFFERED_CELLS
        if name not in row.services
        for variable in KEYS[name]
        for key in variable.split(PAIR)
    }
    keys = {name: value for name, value in settings.keys.items() if name not in extra}
    return replace(settings, keys=keys)


def run_opener(settings: Settings, store: RunStore, journal: Journal, concurrency: int) -> PrepareRun:
    """Return a function that opens any run of the store to answer its trials."""

    @asynccontextmanager
    async def open_row(row: RunRow) -> AsyncGenerator[AnswerTrial]:
        own = settings_for(settings, row)
        past = await store.aside(stored_past, store, row.id) or Past()
        spec = spec_from_json(row.spec)
        async with open_answers(spec, own, journal, store, past=lambda: past, concurrency=concurrency) as answer:
            yield answer

    return open_row


def _life(store: RunStore) -> SessionLiveness:
    """Return the store's own session, in whose name trials are claimed."""
    life = store.database.life
    assert isinstance(life, SessionLiveness)
    return life


async def run_worker(
    settings: Settings, capacity: WorkerCapacity, signals: WorkerSignals, *, idle: float | None = None
) -> RunProgress:
    """Answer trials until signalled to leave, or until there was no trial for some seconds."""
    url, spending = shared_url(settings), Budget("worker", within=settings.budget)
    settings = replace(settings, budget=spending)
    with closing(RunStore(url)) as store, closing(Journal(url)) as journal:
        prepare = run_opener(settings, store, journal, capacity.here)
        worker = await asyncio.to_thread(Worker, url, store, _life(store), prepare)
        resting = asyncio.create_task(_rest_when_idle(worker, signals, idle)) if idle is not None else None
        try:
            await worker.serve(capacity, signals)
        finally:
            if resting is not None:
                resting.cancel()
        return replace(worker.progress, money=spending.money)


async def _rest_when_idle(worker: Worker, signals: WorkerSignals, seconds: float) -> None:
    while worker.idle < seconds:
        await asyncio.sleep(min(1.0, seconds / 4))
    signals.rest.set()


async def run_together(
    prepared: PreparedRun, settings: Settings, *, watch: WatchProgress, tell: Notify, work: int | None = None
) -> RunProgress:
    """Queue the trials of a run and watch workers answer them; with `work`, answer that many at once here too."""
    url = shared_url(settings)
    check_options(prepared.spec)
    with (
        closing(RunStore(url)) as store,
        closing(Journal(url)) as journal,
        closing(await asyncio.to_thread(TrialQueue, url)) as queue,
    ):
        await store.aside(_begin, store, prepared, settings)
        async with SeriesOnDemand(settings) as on_demand:
            await keep_estimates(store, prepared, on_demand)
        # Workers find the enclosing budgets of the run by its account.
        await store.aside(run_budget(prepared.spec, journal, settings).open)
        following = RunFollower(queue=queue, store=store, watch=watch, journal=journal)
        followed = asyncio.create_task(_follow(prepared, following))
        lonely = None
        try:
            if work is not None:
                progress = await _while_helping(followed, settings, WorkerCapacity(here=work))
            else:
                lonely = asyncio.create_task(_notify_when_alone(store, tell))
                progress = await followed
            if progress.stopped or progress.early:
                store.queue(prepared.spec.id, queued=False)
            if progress.stopped:
                store.label(prepared.spec.id, problem=progress.stopped)
            return progress
        finally:
            if lonely is not None:
                lonely.cancel()


async def _while_helping(
    followed: asyncio.Task[RunProgress], settings: Settings, capacity: WorkerCapacity
) -> RunProgress:
    signals = WorkerSignals()
    helper = asyncio.create_task(run_worker(settings, capacity, signals))
    try:
        await asyncio.wait([followed, helper], return_when=asyncio.FIRST_COMPLETED)
        if helper.done():
            helper.result()
        return await followed
    finally:
        # Either all trials have ended, or the user wants to leave.
        followed.cancel()
        signals.leave.set()
        await asyncio.wait([helper])


async def _follow(prepared: PreparedRun, following: RunFollower) -> RunProgress:
    progress = await following.until_ended(prepared.run_trials())
    if has_panel(prepared.spec) and not (progress.stopped or progress.early):
        progress = await following.until_ended(prepared.panel_trials())
    return progress


def _begin(store: RunStore, prepared: PreparedRun, settings: Settings) -> None:
    """Store everything that a machine without the question set needs."""
    spec, questions = prepared.spec, prepared.questions
    begin_run(store, spec, datetime.now(UTC), settings.services)
    store.keep_questions(spec.id, questions)
    store.keep_contexts(spec.id, context_rows(prepared.contexts.values()))
    RunOutcomes(store).keep(spec.id, questions, prepared.benchmark.questions.resolutions)
    keep_past(store, spec.id, prepared.past)
    store.forget_failures(spec.id, prepared.only)
    store.queue(spec.id, queued=True)


async def _notify_when_alone(store: RunStore, tell: Notify) -> None:
    """Notify the user if there is no worker."""
    life = await store.aside(_life, store)
    alone_since = time.monotonic()
    while time.monotonic() - alone_since < ALONE_SECONDS:
        await asyncio.sleep(1)
        if await store.aside(life.living, WORKER_ROLE):
            alone_since = time.monotonic()
    tell("no worker is running: start some with `foretell worker`, here or elsewhere, or run it here too (where: both)")


def unqueue_run(settings: Settings, run: str) -> int:
    """Remove the trials of a run from the queue, even those in progress; return how many there were."""
    with closing(TrialQueue(shared_url(settings))) as queue:
        return drop_trials(queue, run)


async def cluster_status(settings: Settings) -> ClusterStatus:
    """Return the workers, and what is queued."""
    url = shared_url(settings)
    with closing(RunStore(url)) as store, closing(await asyncio.to_thread(TrialQueue, url)) as queue:
        workers = (await store.aside(_life, store)).living(WORKER_ROLE)
        trials, everywhere = await asyncio.to_thread(lambda: (queue.open_trials(), queue.everywhere()))
        return ClusterStatus(workers=workers, trials=trials, everywhere=everywhere)
