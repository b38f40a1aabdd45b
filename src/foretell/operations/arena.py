"""Operations on a live arena, and how an arena is opened from its file and this machine's settings."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.arena.live import ContextMaker, LiveArena, SendCells
from foretell.arena.spec import ARENA_PREFIX, FILE_NAME, ArenaSpec, ContextSpec, read_arena
from foretell.arena.store import ArenaStore
from foretell.data.http import AsyncHttpClient
from foretell.data.search.engine import SearchEngine
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.prompt.builder import ContextBuild, ContextBuilder, ContextBuildSettings, ContextUnavailable
from foretell.forecasters.prompt.prediction_context import PredictionContext, known_at
from foretell.models.budget import Budget
from foretell.models.database.interface import SqlRow
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.operations.requests.tournaments import (
    ArenaRunRequest,
    ArenaScoreRequest,
    ArenaShowRequest,
)
from foretell.operations.result import ReportResult, Result
from foretell.questions.as_of import AsOf
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError, known_names
from foretell.questions.question import Question
from foretell.report.terminal import TextColumn, show_text, text_table
from foretell.runs.executor import AnswerCell
from foretell.runs.outcomes import past_of, rates_of
from foretell.runs.runner import WatchProgress, asks_models, check_options, open_answers
from foretell.runs.runtime import Runtime, open_runtime, refuse_unpriced, run_budget
from foretell.runs.services import open_markets, open_services
from foretell.runs.settings import Settings, clock_of, load_settings
from foretell.runs.spec import QuestionsSpec, RunSpec, spec_from_json
from foretell.runs.store import RunCell, RunRow, RunStore
from foretell.runs.worker import OpenRuns

if TYPE_CHECKING:
    from rich.console import Console

NO_SEARCHER = "nobody"
"""The searcher of contexts without sources."""
SIMULATED_LOOK = 0.1
"""Seconds between two checks of a clock that may jump."""
PRICES_SHOWN = 12


class ArenaPast:
    """The past of an arena: its settled questions, read again when there are more."""

    def __init__(self, book: ArenaStore) -> None:
        self._book = book
        self._outcomes: SqlRow | None = None
        self._past = Past()

    def __call__(self) -> Past:
        """The past as it is now, from the first question about every settled event."""
        outcomes = self._book.outcome_state()
        if outcomes != self._outcomes:
            settled = {event: row.question for event, row in self._book.selected().items() if row.settled}
            known = [one for one in self._book.outcomes() if one.outcome is not None and one.question_id in settled]
            resolutions = [replace(one, due=settled[one.question_id].due) for one in known]
            self._past, self._outcomes = past_of(settled.values(), resolutions), outcomes
        return self._past


# Building contexts: with a search engine and summaries or extracts, or without sources.


class QuestionOnlyContexts:
    """Contexts without sources: the question and its prices."""

    async def build(self, question: Question, as_of: AsOf) -> ContextBuild:
        """Build the context at once."""
        try:
            context = PredictionContext(question=known_at(question, as_of), as_of=as_of, searcher=NO_SEARCHER)
        except ValueError as error:
            raise ContextUnavailable(str(error)) from None
        return ContextBuild(context=context, found=0, dropped={})


@dataclass(frozen=True, kw_only=True)
class SearchedContexts:
    """Builds each context within its own budget, and all within the budget for contexts."""

    engine: SearchEngine | None
    spec: ContextSpec
    journal: Journal
    runtime: Runtime | None = None
    """None for extracts instead of summaries."""

    async def build(self, question: Question, as_of: AsOf) -> ContextBuild:
        """The context of a question at a time, or `ContextUnavailable`."""
        spec, runtime = self.spec, self.runtime
        summaries: dict[str, Any] = {}
        assert self.engine is not None
        if runtime is not None:
            limit, run = spec.budget.question, runtime.spec.id
            account = "" if limit is None else f"{run}/{question.id} {question.due.isoformat()}"
            budget = Budget("context", dollars=limit, within=runtime.budget, id=account)
            router = runtime.router
            summaries |= {"models": runtime.models, "model": router.within(budget), "prices": router.prices}
        settings = ContextBuildSettings(queries=spec.queries, per_query=spec.per_query, compared=spec.compared)
        builder = ContextBuilder(engine=self.engine, journal=self.journal, settings=settings, **summaries)
        return await builder.build(question, as_of)


@asynccontextmanager
async def open_context_builder(spec: ArenaSpec, settings: Settings, journal: Journal) -> AsyncGenerator[ContextMaker]:
    """Open what builds contexts; a missing key is an error now."""
    how = spec.context
    if not how.search:
        if how.models:
            raise InputError("models are named, but no engine to search with", column="context.search")
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


# Opening an arena.


@dataclass(frozen=True, kw_only=True)
class ArenaParts:
    """The parts of an arena to open."""

    markets: bool = False
    """Read the platforms."""
    contexts: bool = False
    """Build contexts."""
    forecasts: bool = False
    """Answer cells, or queue them for workers."""
    here: bool = False
    """Answer cells in this process even if there are workers."""
    concurrency: int = 50
    watch: WatchProgress = lambda progress: None


ALL_PARTS = ArenaParts(markets=True, contexts=True, forecasts=True)


@asynccontextmanager
async def open_arena(spec: ArenaSpec, settings: Settings, opening: ArenaParts) -> AsyncGenerator[LiveArena]:
    """Open an arena; errors in its file or missing keys are raised now."""
    budget = Budget("arena", dollars=spec.budget, within=settings.budget, id=spec.account)
    settings = replace(settings, budget=budget)
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
            money=_money_reader(settings),
            spending=lambda: budget.money,
        )
        arena = await _with_parts(bare, settings, opening, stack)
        await store.aside(arena.open)
        yield arena


def _money_reader(settings: Settings) -> Callable[[str], Money]:
    """Reads from the ledger what an account has cost."""

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
        found = open_markets(settings, client, arena.spec.platforms)
        arena = replace(arena, events=found.events, settlements=found.settlements, prices=found.prices)
    if not (opening.contexts or opening.forecasts):
        return arena
    if opening.forecasts:
        check_entries(arena.spec, settings.budget)
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
    past, store = ArenaPast(arena.book), arena.store

    @asynccontextmanager
    async def open_row(row: RunRow) -> AsyncGenerator[AnswerCell]:
        run, at_once = spec_from_json(row.spec), opening.concurrency
        async with open_answers(run, settings, journal, store, past=past, concurrency=at_once) as answer:
            yield answer

    runs = OpenRuns(store, open_row)  # Stay open between two rounds.
    stack.push_async_callback(runs.close)

    @asynccontextmanager
    async def answers_of_entry(run: RunSpec) -> AsyncGenerator[AnswerCell]:
        with await runs.get(run.id) as opened:
            yield opened.answer

    send = None if opening.here else _queue_sender(settings, store, past, stack)
    return replace(arena, furnish=answers_of_entry, send=send)


def check_entries(spec: ArenaSpec, budget: Budget | None = None) -> None:
    """Check every entry before anything is paid, and name the one with an error."""
    for name, run in spec.runs.items():
        try:
            check_options(run)
            if asks_models(run):
                refuse_unpriced(run, budget)
        except InputError as error:
            place = ".".join(filter(None, ["entries", name, error.column]))
            raise InputError(error.problem, path=error.path, column=place, hint=error.hint) from None


def _queue_sender(settings: Settings, store: RunStore, past: ArenaPast, stack: AsyncExitStack) -> SendCells | None:
    """Queue cells for the workers of a shared database; None without one."""
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


# The operations.

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


@dataclass(frozen=True, kw_only=True)
class ArenaScores(ReportResult):
    """The leaderboard of an arena."""

    by: tuple[str, ...] = ()

    def to_html(self) -> str:
        """The report as a page, with figures."""
        return self.report.page()

    def print(self, console: "Console") -> None:
        """The tables of the report."""
        self.report.print(console, by=self.by)


async def score_arena(request: ArenaScoreRequest) -> ArenaScores:
    """Rank all entries on the resolved events."""
    from foretell.arena.score_data import read_arena_table
    from foretell.report.arena_report import arena_report

    # The engine of arenas calls this column "lead time".
    by = tuple(name.replace("lead_time", "lead time") for name in request.by)
    async with open_arena_file(request.file, ArenaParts()) as arena:
        folder = load_settings().home / "standings"
        table = await arena.store.aside(read_arena_table, arena.store.database, arena.name, keep=folder)
        report = arena_report(table, by=by, bootstrap=request.bootstrap)
    return ArenaScores(report=report, by=by)


@dataclass(frozen=True, kw_only=True)
class ArenaEventResult(ReportResult):
    """One event of an arena, from its first price to its outcome."""

    def print(self, console: "Console") -> None:
        """The question, its prices, and a table of forecasts."""
        from rich.text import Text

        found = self.report
        console.print(Text(f"{found.question.text}  ({found.event}, {found.status})", style="bold"))
        if found.question.url:
            console.print(Text(found.question.url))
        for target, prices in found.prices.items():
            path = " → ".join(f"{price:.2f}" for _, price in _thinned(prices))
            outcome = f"  came out {found.outcomes[target]}" if target in found.outcomes else ""
            console.print(Text(f"{found.labels[target]}: {path or 'no price'}{outcome}"))
        columns = [
            TextColumn(head="#", right=True),
            TextColumn(head="asked at (UTC)"),
            TextColumn(head="to close", drop=2),
            TextColumn(head="state", drop=1),
            TextColumn(head="entry", shrink=12),
            TextColumn(head="forecast", shrink=20),
        ]
        lines: list[tuple[str, ...]] = []
        for moment in found.moments:
            head = (str(moment.number), f"{moment.at:%Y-%m-%d %H:%M}", moment.to_close, moment.state)
            rows = [(name, self._numbers(p)) for name, p in moment.said.items()] or [("", moment.reason)]
            lines += [(*(head if not place else ("", "", "", "")), *row) for place, row in enumerate(rows)]
        show_text(console, text_table(columns, lines, console.width) + "\n")

    def _numbers(self, p: Mapping[str, float]) -> str:
        return ", ".join(f"{self.report.labels.get(target, target)} {value:.0%}" for target, value in p.items())


def _thinned(prices: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The first and last price, and some in between."""
    if len(prices) <= PRICES_SHOWN:
        return prices
    return [prices[round(place * (len(prices) - 1) / (PRICES_SHOWN - 1))] for place in range(PRICES_SHOWN)]


async def show_arena(request: ArenaShowRequest) -> ReportResult:
    """Return the state of an arena, or of one of its events: prices, every forecast, and the outcome."""
    from foretell.arena.status import arena_status, event_history

    async with open_arena_file(request.file, ArenaParts()) as arena:
        if request.event is None:
            return ReportResult(report=await arena.store.aside(arena_status, arena, arena.clock()))
        return ArenaEventResult(report=await arena.store.aside(event_history, arena.book, request.event))


@dataclass(frozen=True, kw_only=True)
class ArenaRunResult(Result):
    """What the stages of an arena did: the last report of each."""

    arena: str
    stages: Mapping[str, Any]
    status: Any = None
    """The state of the arena after a run in a sandbox."""

    def to_dict(self) -> dict[str, Any]:
        """The reports by stage."""
        status = {} if self.status is None else {"status": plain_data(self.status)}
        return {"arena": self.arena, **status, **{name: plain_data(report) for name, report in self.stages.items()}}

    def __str__(self) -> str:
        lines = [f"{stage}: {report}" for stage, report in self.stages.items()]
        if self.status is not None:
            lines += [str(self.status), f"This was the sandbox {self.arena}; nothing of it counts."]
        return "\n".join(lines) or "nothing is due"


async def run_arena(
    request: ArenaRunRequest,
    *,
    tell: Callable[[str], None] = lambda line: None,
    begin: Callable[[LiveArena, asyncio.Event], None] = lambda arena, stop: None,
    watch: WatchProgress = lambda progress: None,
) -> ArenaRunResult:
    """Run the stages of an arena, once or as a service until it is stopped.

    Args:
        request: Which arena, and how.
        tell: Is given a line for every stage that a service did something in.
        begin: Is called when a service begins, with the event that stops it.
        watch: Is given the progress of contexts and forecasts.
    """
    from foretell.arena.stages import LOOK_SECONDS, STAGES, ArenaService
    from foretell.arena.status import arena_status

    entries = read_arena(request.file).entries
    if unknown := [name for name in request.entries if name not in entries]:
        hint = known_names(unknown[0], list(entries))
        raise InputError(f"no entry is called {unknown[0]!r}", path=request.file, column="--entry", hint=hint)
    stages, reports = request.stages or STAGES, dict[str, Any]()
    lasting = not (request.once or request.sandbox)
    opening = ArenaParts(
        markets=bool({"collect", "context", "resolve"} & set(stages)),
        contexts="context" in stages,
        forecasts="forecast" in stages,
        here=request.where == "here" or request.sandbox,
        concurrency=request.concurrency,
        watch=ALL_PARTS.watch if lasting else watch,
    )
    async with open_arena_file(request.file, opening, sandbox=request.sandbox) as arena:

        def report_stage(stage: str, report: object) -> None:
            reports[stage] = report
            if lasting:
                first, *more = str(report).splitlines()
                tell(f"{arena.clock().isoformat(timespec='seconds')} {stage}: {first}")
                for line in more:
                    tell(f"  {line.strip()}")

        look = SIMULATED_LOOK if load_settings().clock else LOOK_SECONDS
        service = ArenaService(
            arena=arena, stages=stages, entries=request.entries, poll_interval=look, tell=report_stage
        )
        if lasting:
            stop = asyncio.Event()
            begin(arena, stop)
            await service.run(stop)
        elif request.stages:
            await service.now()
        else:
            await service.once()
        status = await arena.store.aside(arena_status, arena, arena.clock()) if request.sandbox else None
        return ArenaRunResult(arena=arena.name, stages=reports, status=status)
