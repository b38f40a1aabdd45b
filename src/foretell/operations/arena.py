"""An arena put together from its file and this machine's settings."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from foretell.arena.live import ContextMaker, LiveArena, PrepareEntry, SendCells
from foretell.arena.spec import ARENA_PREFIX, ArenaSpec, ContextSpec
from foretell.arena.store import ArenaStore
from foretell.data.http import AsyncHttpClient
from foretell.data.search.engine import SearchEngine
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.prompt.builder import ContextBuild, ContextBuilder, ContextBuildSettings, ContextUnavailable
from foretell.forecasters.prompt.prediction_context import PredictionContext, known_at
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.runs.executor import AnswerCell, RunProgress
from foretell.runs.past import past_of, rates_of
from foretell.runs.runner import asks_models, check_options, open_answers
from foretell.runs.runtime import (
    Runtime,
    open_runtime,
)
from foretell.runs.services import Services, open_markets, open_services
from foretell.runs.settings import Settings, clock_of
from foretell.runs.spec import QuestionsSpec, RunSpec, spec_from_json
from foretell.runs.store import RunCell, RunRow, RunStore
from foretell.runs.worker import OpenRuns


class ArenaPast:
    """The past of an arena: its own settled questions. Read anew when there are more outcomes."""

    def __init__(self, book: ArenaStore) -> None:
        self._book = book
        self._outcomes = -1
        self._past = Past()

    def __call__(self) -> Past:
        """The past as it is now, from the first question about every settled event."""
        count = self._book.outcome_count()
        if count != self._outcomes:
            settled = {event: row.question for event, row in self._book.selected().items() if row.settled}
            known = [one for one in self._book.outcomes() if one.outcome is not None and one.question_id in settled]
            resolutions = [replace(one, due=settled[one.question_id].due) for one in known]
            self._past, self._outcomes = past_of(settled.values(), resolutions), count
        return self._past


# Where contexts of an arena are built: any search engine, with a summariser or with extracts, or none at all.

NO_SEARCHER = "nobody"
"""The searcher of contexts without sources."""


class QuestionOnlyContexts:
    """No sources: the question and its quotes."""

    async def build(self, question: Question, as_of: AsOf) -> ContextBuild:
        """At once."""
        try:
            context = PredictionContext(question=known_at(question, as_of), as_of=as_of, searcher=NO_SEARCHER)
        except ValueError as error:
            raise ContextUnavailable(str(error)) from None
        return ContextBuild(context=context, found=0, dropped={})


@dataclass(frozen=True, kw_only=True)
class SearchedContexts:
    """Builds each context within its own budget, and all within that of the arena's contexts."""

    engine: SearchEngine
    spec: ContextSpec
    journal: Journal
    bench: Runtime | None = None
    """None: extracts instead of summaries."""

    async def build(self, question: Question, as_of: AsOf) -> ContextBuild:
        """The context of a question at a moment, or `ContextUnavailable`."""
        spec, bench = self.spec, self.bench
        settings = ContextBuildSettings(queries=spec.queries, per_query=spec.per_query, compared=spec.compared)
        if bench is None:
            plain = ContextBuilder(engine=self.engine, journal=self.journal, settings=settings)
            return await plain.build(question, as_of)
        budget = Budget("context", dollars=spec.budget.question, within=bench.budget)
        builder = ContextBuilder(
            engine=self.engine,
            models=bench.models,
            model=bench.exchange.within(budget),
            journal=self.journal,
            settings=settings,
            prices=bench.exchange.prices,
        )
        return await builder.build(question, as_of)


@asynccontextmanager
async def open_context_builder(spec: ArenaSpec, settings: Settings, journal: Journal) -> AsyncGenerator[ContextMaker]:
    """What builds contexts, with its connections; a missing key is told now."""
    how = spec.context
    if not how.search:
        if how.models:
            raise InputError("models are named, but no engine to search with", column="context.search")
        yield QuestionOnlyContexts()
    elif not how.models:
        async with AsyncHttpClient() as client:
            yield SearchedContexts(
                engine=_engine(open_services(settings, client, how.search)), spec=how, journal=journal
            )
    else:
        async with open_runtime(_context_run(spec), settings, journal) as bench:
            yield SearchedContexts(engine=_engine(bench.equipment), spec=how, journal=journal, bench=bench)


def _engine(equipment: Services) -> SearchEngine:
    assert equipment.engine is not None
    return equipment.engine


def _context_run(spec: ArenaSpec) -> RunSpec:
    """The making of contexts as if it were a run: its models, its engines, its budget."""
    models = dict(spec.context.models)
    models.setdefault("agent", next(iter(models.values())))
    return RunSpec(
        questions=QuestionsSpec(dataset=f"{ARENA_PREFIX}{spec.name}"),
        forecaster="contexts",
        models=models,
        search=spec.context.search,
        mode="live",
        budget=spec.context.budget,
    )


@dataclass(frozen=True, kw_only=True)
class ArenaParts:
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
    watch: Callable[[RunProgress], None] = lambda progress: None


ALL_PARTS = ArenaParts(markets=True, contexts=True, forecasts=True)


@asynccontextmanager
async def open_arena(spec: ArenaSpec, settings: Settings, opening: ArenaParts) -> AsyncGenerator[LiveArena]:
    """Open an arena; what is wrong with its file or with this machine's keys is told now."""
    # The budget of an entry is one for all who work at it, and for all the time.
    settings = replace(settings, together=True)
    clock = clock_of(settings)
    async with AsyncExitStack() as stack:
        store = RunStore(settings.store)
        stack.callback(store.close)
        bare = LiveArena(
            spec=spec,
            store=store,
            book=ArenaStore(store.database, spec.name),
            clock=clock,
            asks_models=asks_models,
            services=settings.services,
            concurrency=opening.concurrency,
            watch=opening.watch,
        )
        arena = await _with_parts(bare, settings, opening, stack)
        await store.aside(arena.open)
        yield arena


async def _with_parts(arena: LiveArena, settings: Settings, opening: ArenaParts, stack: AsyncExitStack) -> LiveArena:
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
        builder = await stack.enter_async_context(open_context_builder(arena.spec, settings, journal))
        arena = replace(arena, builder=builder)
    if opening.forecasts:
        past = ArenaPast(arena.book)
        check_entries(arena.spec)
        runs = _entry_runs(settings, arena.store, journal, past, opening.concurrency)
        stack.push_async_callback(runs.close)
        send = None if opening.here else _queue_sender(settings, arena.store, past, stack)
        arena = replace(arena, furnish=_answers_of_entry(runs), send=send)
    return arena


def _entry_runs(settings: Settings, store: RunStore, journal: Journal, past: ArenaPast, concurrency: int) -> OpenRuns:
    """Surroundings for the cells of any entry, kept open between two rounds."""

    @asynccontextmanager
    async def furnish(row: RunRow) -> AsyncGenerator[AnswerCell]:
        run = spec_from_json(row.spec)
        async with open_answers(run, settings, journal, store, past=past, concurrency=concurrency) as answer:
            yield answer

    return OpenRuns(store, furnish)


def _answers_of_entry(runs: OpenRuns) -> PrepareEntry:
    @asynccontextmanager
    async def furnish(run: RunSpec) -> AsyncGenerator[AnswerCell]:
        with await runs.get(run.id) as opened:
            yield opened.answer

    return furnish


def check_entries(spec: ArenaSpec) -> None:
    """Raise now what is wrong with an entry, and name it."""
    for name, run in spec.runs.items():
        try:
            check_options(run)
        except InputError as error:
            place = ".".join(filter(None, ["entries", name, error.column]))
            raise InputError(error.problem, path=error.path, column=place, hint=error.hint) from None


def _queue_sender(settings: Settings, store: RunStore, past: ArenaPast, stack: AsyncExitStack) -> SendCells | None:
    """The way to the workers that share a database; None without one."""
    if settings.database is None:
        return None
    from foretell.runs.cell_queue import CellQueue, QueuedCell

    queue = CellQueue(settings.database)
    stack.callback(queue.close)

    def send(cells: Sequence[tuple[RunCell, int]]) -> None:
        for run in {cell.run for cell, _ in cells}:
            asked = [cell.question for cell, _ in cells if cell.run == run]
            store.keep_rates(run, rates_of(asked, past().rates, "live"))
        queue.add(QueuedCell(key=cell.key, attempt=attempt) for cell, attempt in cells)

    return send
