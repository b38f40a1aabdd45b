"""How an arena is opened from its file and this machine's settings."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from foretell.arena.live import ContextMaker, LiveArena, SendTrials
from foretell.arena.spec import ARENA_PREFIX, FILE_NAME, ArenaSpec, ContextSpec, read_arena
from foretell.arena.store import ArenaStore
from foretell.data.http import AsyncHttpClient
from foretell.data.search.engine import SearchEngine
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.prompt.builder import ContextBuild, ContextBuilder, ContextBuildSettings, ContextUnavailable
from foretell.forecasters.prompt.prediction_context import PredictionContext, known_at
from foretell.frozen import frozen
from foretell.models.budget import Budget
from foretell.models.database.interface import SqlRow
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.runs.contexts import named_view, view_column
from foretell.runs.executor import AnswerTrial
from foretell.runs.past import past_of, rates_of
from foretell.runs.runner import WatchProgress, asks_models, check_options, check_run, open_answers
from foretell.runs.runtime import Runtime, open_runtime, refuse_unpriced, run_budget
from foretell.runs.services import open_markets, open_services
from foretell.runs.settings import Settings, clock_of, load_settings
from foretell.runs.spec import QuestionsSpec, RunSpec, spec_from_json
from foretell.runs.store import RunRow, RunStore, RunTrial
from foretell.runs.worker import OpenRuns

NO_SEARCHER = "nobody"
"""The searcher of contexts without sources."""


class ArenaPast:
    """The past of an arena: its settled questions, read again when there are more."""

    def __init__(self, store: ArenaStore) -> None:
        self._store = store
        self._outcomes: SqlRow | None = None
        self._past = Past()

    def __call__(self) -> Past:
        """Return the past as it is now, from the first question about every settled event."""
        outcomes = self._store.outcome_state()
        if outcomes != self._outcomes:
            settled = {event: row.question for event, row in self._store.selected().items() if row.settled}
            known = [
                outcome
                for outcome in self._store.outcomes()
                if outcome.outcome is not None and outcome.question_id in settled
            ]
            resolutions = [replace(resolution, due=settled[resolution.question_id].due) for resolution in known]
            self._past, self._outcomes = past_of(settled.values(), resolutions), outcomes
        return self._past


class QuestionOnlyContexts:
    """Builds contexts without sources: only the question and its prices."""

    async def build(self, question: Question, as_of: AsOf) -> ContextBuild:
        """Build the context at once."""
        try:
            context = PredictionContext(question=known_at(question, as_of), as_of=as_of, searcher=NO_SEARCHER)
        except ValueError as error:
            raise ContextUnavailable(str(error)) from None
        return ContextBuild(context=context, found=0, dropped={})


@frozen
class SearchedContexts:
    """Builds each context within its own budget, and all within the budget for contexts."""

    engine: SearchEngine | None
    spec: ContextSpec
    journal: Journal
    runtime: Runtime | None = None
    """None for extracts instead of summaries."""

    async def build(self, question: Question, as_of: AsOf) -> ContextBuild:
        """Build the context of a question as of a time. Raises ContextUnavailable if there is none."""
        spec, runtime = self.spec, self.runtime
        summaries: dict[str, Any] = {}
        assert self.engine is not None
        if runtime is not None:
            router, budget = runtime.router, runtime.budget_of(question, "context")
            summaries |= {"models": runtime.models, "model": router.within(budget), "prices": router.prices}
        settings = ContextBuildSettings(queries=spec.queries, per_query=spec.per_query, compared=spec.compared)
        builder = ContextBuilder(engine=self.engine, journal=self.journal, settings=settings, **summaries)
        return await builder.build(question, as_of)


@asynccontextmanager
async def open_context_builder(spec: ArenaSpec, settings: Settings, journal: Journal) -> AsyncGenerator[ContextMaker]:
    """Open the builder of contexts. Raises InputError at once if a key is missing."""
    how = spec.context
    if not how.search:
        if how.models:
            raise InputError("models are set, but no search engine", column="context.search")
        yield QuestionOnlyContexts()
    elif not how.models:
        async with AsyncHttpClient(access=settings.access) as client:
            engine = open_services(settings, client, how.search).engine
            yield SearchedContexts(engine=engine, spec=how, journal=journal)
    else:
        # Contexts are built like a run: with models, engines and a budget.
        run = RunSpec(
            questions=QuestionsSpec(dataset=f"{ARENA_PREFIX}{spec.name}"),
            forecaster="contexts",
            models={**how.models, "agent": how.models.get("agent", next(iter(how.models.values())))},
            search=how.search,
            mode="live",
            budget=how.budget,
            prices=how.prices,
        )
        async with open_runtime(run, settings, journal) as runtime:
            yield SearchedContexts(engine=runtime.services.engine, spec=how, journal=journal, runtime=runtime)


@frozen
class ArenaParts:
    """The parts of an arena to open."""

    markets: bool = False
    """Read the platforms."""
    contexts: bool = False
    """Build contexts."""
    forecasts: bool = False
    """Answer trials, or queue them for workers."""
    here: bool = False
    """Answer trials in this process even if there are workers."""
    concurrency: int = 50
    watch: WatchProgress = lambda progress: None


ALL_PARTS = ArenaParts(markets=True, contexts=True, forecasts=True)


@asynccontextmanager
async def open_arena(spec: ArenaSpec, settings: Settings, opening: ArenaParts) -> AsyncGenerator[LiveArena]:
    """Open an arena. Raises InputError at once if its file is wrong or a key is missing."""
    budget = Budget("arena", dollars=spec.budget, within=settings.budget, id=spec.account)
    settings = replace(settings, budget=budget)
    clock = clock_of(settings)
    async with AsyncExitStack() as stack:
        store = RunStore(settings.store)
        stack.callback(store.close)
        bare = LiveArena(
            spec=spec,
            store=store,
            records=ArenaStore(store.database, spec.name),
            clock=clock,
            asks_models=asks_models,
            services=settings.services,
            concurrency=opening.concurrency,
            watch=opening.watch,
            money=_money_reader(settings),
            spending=lambda: budget.money,
        )
        arena = await _with_parts(bare, settings, opening, stack)
        await store.aside(arena.open)
        yield arena


def _money_reader(settings: Settings) -> Callable[[str], Money]:
    """Return a function that reads from the ledger what an account has cost."""

    def read(account: str) -> Money:
        if settings.database is None and not Path(settings.journal).is_file():
            return Money()
        with closing(Journal(settings.journal)) as journal:
            return journal.ledger.money(account)

    return read


async def _with_parts(arena: LiveArena, settings: Settings, opening: ArenaParts, stack: AsyncExitStack) -> LiveArena:
    """Open the requested parts; each is closed with the arena."""
    if opening.markets:
        client = await stack.enter_async_context(AsyncHttpClient(access=settings.access))
        markets = open_markets(settings, client, arena.spec.platforms)
        arena = replace(arena, events=markets.events, settlements=markets.settlements, prices=markets.prices)
    if not (opening.contexts or opening.forecasts):
        return arena
    if opening.forecasts:
        check_entries(arena.spec, settings, here=opening.here or settings.database is None)
    journal = Journal(settings.journal)
    stack.callback(journal.close)
    # Workers know the budget of the whole arena by the accounts around that of an entry.
    for run in arena.spec.runs.values():
        run_budget(run, journal, settings).open()
    if opening.contexts:
        builder = await stack.enter_async_context(open_context_builder(arena.spec, settings, journal))
        arena = replace(arena, builder=builder)
    if not opening.forecasts:
        return arena
    past, store = ArenaPast(arena.records), arena.store

    @asynccontextmanager
    async def open_row(row: RunRow) -> AsyncGenerator[AnswerTrial]:
        run, at_once = spec_from_json(row.spec), opening.concurrency
        async with open_answers(run, settings, journal, store, past=past, concurrency=at_once) as answer:
            yield answer

    runs = OpenRuns(store, open_row)  # They stay open between rounds.
    stack.push_async_callback(runs.close)

    @asynccontextmanager
    async def answers_of_entry(run: RunSpec) -> AsyncGenerator[AnswerTrial]:
        with await runs.get(run.id) as opened:
            yield opened.answer

    send = None if opening.here else _queue_sender(settings, store, past, stack)
    return replace(arena, prepare=answers_of_entry, send=send)


PRICE_OF_ENTRY = 'prices: {{"{}": 0.5/2}} in the entry'


def check_entries(spec: ArenaSpec, settings: Settings, *, here: bool) -> None:
    """Check every entry before anything is paid, and its keys if it is asked `here`; name the one with an error."""
    for name, run in spec.runs.items():
        try:
            check_options(run)
            if not spec.context.search and (view := named_view(run)) and view.sources:
                problem = f"the view {view.name!r} cannot be shown: the arena gathers no sources"
                raise InputError(problem, column=view_column(run), hint="name search engines under context.search")
            if asks_models(run):
                refuse_unpriced(run, settings.budget, PRICE_OF_ENTRY)
            if here:
                check_run(run, settings)
        except InputError as error:
            place = ".".join(filter(None, ["entries", name, error.column]))
            raise InputError(error.problem, path=error.path, column=place, hint=error.hint) from None


def _queue_sender(settings: Settings, store: RunStore, past: ArenaPast, stack: AsyncExitStack) -> SendTrials | None:
    """Return a function that queues trials for the workers of a shared database; None without one."""
    if settings.database is None:
        return None
    from foretell.runs.trial_queue import QueuedTrial, TrialQueue

    queue = TrialQueue(settings.database)
    stack.callback(queue.close)

    def send(trials: Sequence[tuple[RunTrial, int]]) -> None:
        for run in {trial.run for trial, _ in trials}:
            questions = [trial.question for trial, _ in trials if trial.run == run]
            store.keep_rates(run, rates_of(questions, past().rates, "live"))
        queue.add(QueuedTrial(key=trial.key, attempt=attempt) for trial, attempt in trials)

    return send


SANDBOX = "-sandbox"
"""Suffix of the name of an arena in which forecasts do not count."""


@asynccontextmanager
async def open_arena_file(file: Path, opening: ArenaParts, *, sandbox: bool = False) -> AsyncGenerator[LiveArena]:
    """Open the arena of a file, or its sandbox; errors name the file."""
    try:
        spec = read_arena(file)
        spec = replace(spec, name=f"{spec.name}{SANDBOX}") if sandbox else spec
        async with open_arena(spec, load_settings(), opening) as arena:
            yield arena
    except InputError as error:
        raise error.at(path=file / FILE_NAME if file.is_dir() else file) from None
