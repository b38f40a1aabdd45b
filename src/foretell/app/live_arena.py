"""An arena put together from its file and this machine's settings."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from foretell.app.arena_past import ArenaPast
from foretell.app.clock import clock_of
from foretell.app.context_building import building
from foretell.app.equipment import open_markets
from foretell.app.on_context import CONTEXT, contexts_of, own_options, ruled, shown_in
from foretell.app.running import answering, asks_models, check_options, model_free
from foretell.app.settings import Settings
from foretell.arena.cells import Cell
from foretell.arena.cluster.open_runs import OpenRuns
from foretell.arena.executor import Answer, Progress
from foretell.arena.kept_rates import rates_of
from foretell.arena.live.arena import Furnish, LiveArena, Send
from foretell.arena.live.book import Book
from foretell.arena.live.spec import ArenaSpec
from foretell.arena.spec import RunSpec, spec_from_json
from foretell.arena.store import RunRow, Store
from foretell.forecasters.context.options import on_context
from foretell.forecasters.forecaster import Forecaster
from foretell.llm.journal import Journal
from foretell.questions.problems import InputError
from foretell.sources.async_http import AsyncHttpClient


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What of an arena is needed."""

    markets: bool = False
    """Read platforms."""
    contexts: bool = False
    """Build contexts."""
    forecasts: bool = False
    """Answer cells, or hand them to workers."""
    here: bool = False
    """Answer cells in this process even where workers could."""
    concurrency: int = 50
    watch: Callable[[Progress], None] = lambda progress: None


EVERYTHING = Opening(markets=True, contexts=True, forecasts=True)


@asynccontextmanager
async def live_arena(spec: ArenaSpec, settings: Settings, opening: Opening) -> AsyncGenerator[LiveArena]:
    """Open an arena; what is wrong with its file or with this machine's keys is told now."""
    # The budget of an entry is one for all who work at it, and for all the time.
    settings = replace(settings, together=True)
    clock = clock_of(settings)
    async with AsyncExitStack() as stack:
        store = Store(settings.store)
        stack.callback(store.close)
        bare = LiveArena(
            spec=spec,
            store=store,
            book=Book(store.database, spec.name),
            clock=clock,
            asks_models=asks_models,
            services=settings.services,
            concurrency=opening.concurrency,
            watch=opening.watch,
        )
        arena = await _furnished(bare, settings, opening, stack)
        await store.aside(arena.open)
        yield arena


async def _furnished(arena: LiveArena, settings: Settings, opening: Opening, stack: AsyncExitStack) -> LiveArena:
    """With the parts that are needed, each closed with the arena."""
    if opening.markets:
        client = await stack.enter_async_context(AsyncHttpClient())
        found = open_markets(settings, client, arena.spec.platforms)
        arena = replace(arena, events=found.events, settlements=found.settlements, prices=found.prices)
    if not (opening.contexts or opening.forecasts):
        return arena
    journal = Journal(settings.journal)
    stack.callback(journal.close)
    if opening.contexts:
        builder = await stack.enter_async_context(building(arena.spec, settings, journal))
        arena = replace(arena, builder=builder)
    if opening.forecasts:
        past = ArenaPast(arena.book)
        check_entries(arena.spec, arena.store, past)
        runs = _furnishing(settings, arena.store, journal, past, opening.concurrency)
        stack.push_async_callback(runs.close)
        send = None if opening.here else _sending(settings, arena.store, past, stack)
        arena = replace(arena, furnish=_furnish(runs), send=send)
    return arena


def _furnishing(settings: Settings, store: Store, journal: Journal, past: ArenaPast, concurrency: int) -> OpenRuns:
    """Surroundings for the cells of any entry, kept open between two rounds."""

    @asynccontextmanager
    async def furnish(row: RunRow) -> AsyncGenerator[Answer]:
        run = spec_from_json(row.spec)
        if not asks_models(run):
            yield ruled(model_free_entry(run, store, past), run, settings, store)
            return
        async with answering(run, settings, journal, store, rates=past, concurrency=concurrency) as answer:
            yield answer

    return OpenRuns(store, furnish)


def _furnish(runs: OpenRuns) -> Furnish:
    @asynccontextmanager
    async def furnish(run: RunSpec) -> AsyncGenerator[Answer]:
        with await runs.get(run.id) as opened:
            yield opened.answer

    return furnish


def model_free_entry(run: RunSpec, store: Store, past: ArenaPast) -> Answer:
    """A forecaster that asks no model, with its options, on the context where that is asked for."""
    written = [f"{name}={json.dumps(value)}" for name, value in own_options(run.options).items()]
    head, _, more = run.forecaster.partition(":")
    named = f"{head}:{','.join(filter(None, [more, *written]))}" if more or written else head
    dress: Callable[[Forecaster], Forecaster] | None = None
    if CONTEXT in run.options:
        dress = partial(on_context, options=shown_in(run.options), contexts=contexts_of(run, store))
    return model_free(replace(run, forecaster=named), past.resources, dress=dress)


def check_entries(spec: ArenaSpec, store: Store, past: ArenaPast) -> None:
    """Raise now what is wrong with an entry, and name it."""
    for name, run in spec.runs.items():
        try:
            if asks_models(run):
                check_options(run)
            else:
                model_free_entry(run, store, past)
        except InputError as error:
            place = ".".join(filter(None, ["entries", name, error.column]))
            raise InputError(error.problem, path=error.path, column=place, hint=error.hint) from None


def _sending(settings: Settings, store: Store, past: ArenaPast, stack: AsyncExitStack) -> Send | None:
    """The way to the workers that share a database; None without one."""
    if settings.database is None:
        return None
    from foretell.arena.cluster.engine import CellQueue, Queued

    queue = CellQueue(settings.database)
    stack.callback(queue.close)

    def send(cells: Sequence[tuple[Cell, int]]) -> None:
        for run in {cell.run for cell, _ in cells}:
            asked = [cell.question for cell, _ in cells if cell.run == run]
            store.keep_rates(run, rates_of(asked, past, "live"))
        queue.add(Queued(key=cell.key, attempt=attempt) for cell, attempt in cells)

    return send
