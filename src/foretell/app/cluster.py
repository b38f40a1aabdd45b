"""Runs on many machines, put together: what `foretell run` and `foretell worker` do with a shared database."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from foretell.app.running import Prepared, Watch, answering, check_options, has_panel
from foretell.app.settings import KEYS, Settings
from foretell.arena.cells import cells_of, panel_cells
from foretell.arena.cluster.engine import CellQueue, Queued
from foretell.arena.cluster.open_runs import Furnish
from foretell.arena.cluster.reaper import executor_name
from foretell.arena.cluster.watching import Following
from foretell.arena.cluster.worker import ROLE, Capacity, Orders, Worker
from foretell.arena.executor import Answer, Progress
from foretell.arena.kept_rates import KeptRates, rates_of
from foretell.arena.spec import spec_from_json
from foretell.arena.store import RunRow, Store
from foretell.llm.database.session_life import SessionLife
from foretell.llm.journal import Journal
from foretell.questions.problems import InputError

OFFERED = ("fred", "metaculus")
"""Services whose key alone decides whether a tool is on offer: the same on every machine, or cells would differ."""
PATIENCE = 5.0
"""Seconds without a worker after which somebody should know."""

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What can be said at one moment."""

    workers: Mapping[int, str]
    """Machine and process, by id."""
    cells: Sequence[Queued]
    """Those that wait or are at work."""
    everywhere: int | None = None
    """How many may be at work at once."""

    def lines(self) -> Iterator[str]:
        """For people."""
        at_work = Counter(queued.executor for queued in self.cells if queued.status == "PENDING")
        for id, name in sorted(self.workers.items(), key=lambda pair: pair[1]):
            yield f"worker {name}: {at_work.pop(executor_name(id), 0)} cells at work"
        if lost := at_work.total():
            yield f"{lost} cells of workers that are gone"
        for run, waiting in Counter(q.key.run for q in self.cells if q.status != "PENDING").items():
            yield f"run {run}: {waiting} cells waiting"
        if not self.workers:
            yield "no worker is there"
        elif self.everywhere:
            yield f"at most {self.everywhere} cells at once over all workers"


def shared_url(settings: Settings) -> str:
    """The address of the shared database."""
    if settings.database is None:
        hint = "FORETELL_DATABASE_URL=postgresql://user@host/name"
        raise InputError("working together needs a shared database", hint=hint)
    return settings.database


def settings_for(settings: Settings, row: RunRow) -> Settings:
    """This machine's settings with the tools of the machine the run was started on."""
    missing = [name for name in OFFERED if name in row.services and not settings.key(name)]
    if missing:
        raise InputError(f"run {row.id} was started with a key for {missing[0]}", hint=f"set {KEYS[missing[0]][0]}")
    extra = {key for name in OFFERED if name not in row.services for key in KEYS[name]}
    keys = {name: value for name, value in settings.keys.items() if name not in extra}
    return replace(settings, keys=keys, together=True)


def furnishing(settings: Settings, store: Store, journal: Journal, concurrency: int) -> Furnish:
    """Surroundings for any run of the store."""

    @asynccontextmanager
    async def furnish(row: RunRow) -> AsyncGenerator[Answer]:
        own = settings_for(settings, row)
        rates = KeptRates(table=await store.aside(store.rates, row.id))
        spec = spec_from_json(row.spec)
        async with answering(spec, own, journal, store, rates=rates, concurrency=concurrency) as answer:
            yield answer

    return furnish


@asynccontextmanager
async def _worker(settings: Settings, capacity: Capacity) -> AsyncGenerator[Worker]:
    url = shared_url(settings)
    with closing(Store(url)) as store, closing(Journal(url)) as journal:
        furnish = furnishing(settings, store, journal, capacity.here)
        yield await asyncio.to_thread(Worker, url, store, _life(journal), furnish)


def _life(keeper: Journal | Store) -> SessionLife:
    life = keeper.database.life
    assert isinstance(life, SessionLife)
    return life


async def serve(settings: Settings, capacity: Capacity, orders: Orders, *, idle: float | None = None) -> Progress:
    """Work until told to leave, or after so many seconds without a cell."""
    async with _worker(settings, capacity) as worker:
        resting = asyncio.create_task(_rest_when_idle(worker, orders, idle)) if idle is not None else None
        try:
            await worker.serve(capacity, orders)
        finally:
            if resting is not None:
                resting.cancel()
        return worker.progress


async def _rest_when_idle(worker: Worker, orders: Orders, seconds: float) -> None:
    while worker.idle < seconds:
        await asyncio.sleep(min(1.0, seconds / 4))
    orders.rest.set()


async def run_together(
    prepared: Prepared, settings: Settings, *, watch: Watch, tell: Tell, work: int | None = None
) -> Progress:
    """Queue the cells of a run and watch others answer them; with `work`, so many at once are answered here."""
    url = shared_url(settings)
    check_options(prepared.spec)
    with closing(Store(url)) as store, closing(await asyncio.to_thread(CellQueue, url)) as queue:
        await store.aside(_begin, store, prepared, settings)
        followed = asyncio.create_task(_follow(prepared, Following(queue=queue, store=store, watch=watch)))
        if work is not None:
            return await _while_helping(followed, settings, Capacity(here=work))
        lonely = asyncio.create_task(_tell_when_alone(store, tell))
        try:
            return await followed
        finally:
            lonely.cancel()


async def _while_helping(followed: asyncio.Task[Progress], settings: Settings, capacity: Capacity) -> Progress:
    orders = Orders()
    helper = asyncio.create_task(serve(settings, capacity, orders))
    try:
        await asyncio.wait([followed, helper], return_when=asyncio.FIRST_COMPLETED)
        if helper.done():
            helper.result()
        return await followed
    finally:
        # Either all cells have ended, or somebody is in a hurry.
        followed.cancel()
        orders.leave.set()
        await asyncio.wait([helper])


async def _follow(prepared: Prepared, following: Following) -> Progress:
    spec, questions = prepared.spec, prepared.questions
    progress = await following.until_ended(list(cells_of(spec.id, questions, spec.trials)))
    if has_panel(spec):
        progress = await following.until_ended(list(panel_cells(spec.id, questions, spec.trials)))
    return progress


def _begin(store: Store, prepared: Prepared, settings: Settings) -> None:
    """Keep everything that a machine without the data set needs."""
    spec, questions = prepared.spec, prepared.questions
    began = datetime.now(UTC).isoformat(timespec="seconds")
    store.begin(spec.id, spec.to_json(), began, services=settings.services)
    store.keep_questions(spec.id, questions)
    store.keep_rates(spec.id, rates_of(questions, prepared.benchmark.resources["rates"](), spec.mode))
    store.forget_failures(spec.id)


async def _tell_when_alone(store: Store, tell: Tell) -> None:
    """Say so where nobody is there to do the work."""
    life = await store.aside(_life, store)
    alone_since = time.monotonic()
    while time.monotonic() - alone_since < PATIENCE:
        await asyncio.sleep(1)
        if await store.aside(life.living, ROLE):
            alone_since = time.monotonic()
    tell("no worker is there: start some with `foretell worker`, here or on other machines, or add --work")


async def drop(settings: Settings, run: str) -> int:
    """Take a run out of the queue: what waits is not begun, what is at work is broken off. How many cells."""

    def drop_all(queue: CellQueue) -> int:
        cells = [queued for queued in queue.open_cells() if queued.key.run == run]
        queue.drop(cells)
        return len(cells)

    with closing(await asyncio.to_thread(CellQueue, shared_url(settings))) as queue:
        return await asyncio.to_thread(drop_all, queue)


async def standing(settings: Settings) -> Standing:
    """Who is there, and what is queued."""
    url = shared_url(settings)
    with closing(Store(url)) as store, closing(await asyncio.to_thread(CellQueue, url)) as queue:
        workers = (await store.aside(_life, store)).living(ROLE)
        cells, everywhere = await asyncio.to_thread(lambda: (queue.open_cells(), queue.everywhere()))
        return Standing(workers=workers, cells=cells, everywhere=everywhere)
