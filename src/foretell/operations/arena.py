"""Operations on a live arena, and how an arena is opened from its file and this machine's settings."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
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
    ArenaCollectRequest,
    ArenaContextRequest,
    ArenaForecastRequest,
    ArenaInitRequest,
    ArenaResolveRequest,
    ArenaRunRequest,
    ArenaScoreRequest,
    ArenaShowRequest,
    ArenaStatusRequest,
)
from foretell.operations.result import ReportResult, Result
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
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
POLL_SECONDS = 1.0
"""Seconds between two checks of what workers have done."""
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

REHEARSAL = "-rehearsal"
"""Suffix of the name of a rehearsed arena."""


@asynccontextmanager
async def open_arena_file(file: Path, opening: ArenaParts, *, rehearse: bool = False) -> AsyncGenerator[LiveArena]:
    """Open the arena of a file, or a rehearsal of it; errors name the file."""
    try:
        spec = read_arena(file)
        spec = replace(spec, name=f"{spec.name}{REHEARSAL}") if rehearse else spec
        async with open_arena(spec, load_settings(), opening) as arena:
            yield arena
    except InputError as error:
        raise error.at(path=file / FILE_NAME if file.is_dir() else file) from None


@dataclass(frozen=True, kw_only=True)
class ArenaFile(Result):
    """The file of a new arena."""

    file: Path
    name: str
    entries: tuple[str, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to do next."""
        return (f"next: foretell arena run {self.file.parent}",)

    def __str__(self) -> str:
        return f"Wrote {self.file}: arena {self.name} with {', '.join(self.entries)}"


def init_arena(request: ArenaInitRequest) -> ArenaFile:
    """Write the file of a new arena, with every field explained."""
    from foretell.operations.init_files import template_text, write_commented

    file = request.place if request.place.suffix in (".yaml", ".yml") else request.place / FILE_NAME
    if file.exists() and not request.force:
        raise InputError("there is one already", path=file, hint="--force overwrites it")
    text = Template(template_text("arena.yaml")).substitute(name=request.name or default_arena_name(file))
    write_commented(file, text, "arena")
    spec = read_arena(file)
    return ArenaFile(file=file, name=spec.name, entries=tuple(spec.entries))


def default_arena_name(file: Path) -> str:
    """An arena's name from the path of its file.

    >>> default_arena_name(Path("/srv/My Arena/arena.yaml")), default_arena_name(Path("/srv/x/cup.yaml"))
    ('my-arena', 'cup')
    """
    name = file.resolve().parent.name if file.stem == "arena" else file.stem
    return re.sub(r"[^a-z0-9_-]+", "-", name.casefold()).strip("-_") or "arena"


async def collect_events(request: ArenaCollectRequest) -> ReportResult:
    """Read the platforms of an arena, and select events by its rules."""
    from foretell.arena.select import slot
    from foretell.arena.stages import collect
    from foretell.runs.claims import ClaimTable

    async with open_arena_file(request.file, ArenaParts(markets=True)) as arena:
        now = arena.clock()
        found = await collect(arena, now)
        if found.complete:
            # A running service need not read the platforms again in this period.
            due = slot(now, arena.spec.collect.every_hours).isoformat()
            once = ClaimTable(arena.store.database)
            await arena.store.aside(once.take, f"collect {arena.name}", due)
            await arena.store.aside(once.done, f"collect {arena.name}", due)
        return ReportResult(report=found)


async def build_contexts(request: ArenaContextRequest, watch: WatchProgress) -> ReportResult:
    """Build the shared context of every event that is due."""
    from foretell.arena.stages import make_contexts

    async with open_arena_file(request.file, ArenaParts(markets=True, contexts=True, watch=watch)) as arena:
        return ReportResult(report=await make_contexts(arena, arena.clock()))


async def forecast_events(request: ArenaForecastRequest, watch: WatchProgress) -> ReportResult:
    """Let every entry forecast the events that are ready."""
    from foretell.arena.forecast import make_forecasts

    if unknown := [name for name in request.entries if name not in read_arena(request.file).entries]:
        raise InputError(f"no entry is called {unknown[0]!r}", path=request.file, column="--entry")
    opening = ArenaParts(forecasts=True, here=request.where == "here", concurrency=request.concurrency, watch=watch)
    async with open_arena_file(request.file, opening) as arena:
        found = await make_forecasts(arena, arena.clock(), entries=request.entries)
        while found.sent:
            await asyncio.sleep(POLL_SECONDS)
            found = replace(found, sent=0) + await make_forecasts(arena, arena.clock(), entries=request.entries)
        return ReportResult(report=found)


async def resolve_events(request: ArenaResolveRequest) -> ReportResult:
    """Look up the outcomes of events that have closed or disappeared from the list."""
    from foretell.arena.stages import settle

    async with open_arena_file(request.file, ArenaParts(markets=True)) as arena:
        return ReportResult(report=await settle(arena, arena.clock(), recheck=True))


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
        report = arena_report(table, by=by, draws=request.draws, seed=request.seed)
    return ArenaScores(report=report, by=by)


async def status_of_arena(request: ArenaStatusRequest) -> ReportResult:
    """What is open, done and missed, when the next forecasts are due, and what was spent."""
    from foretell.arena.status import arena_status

    async with open_arena_file(request.file, ArenaParts()) as arena:
        return ReportResult(report=await arena.store.aside(arena_status, arena, arena.clock()))


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


async def show_event(request: ArenaShowRequest) -> ArenaEventResult:
    """The prices of an event, every forecast, and its outcome."""
    from foretell.arena.status import event_history

    async with open_arena_file(request.file, ArenaParts()) as arena:
        return ArenaEventResult(report=await arena.store.aside(event_history, arena.book, request.event))


async def run_arena(
    request: ArenaRunRequest,
    tell: Callable[[str], None],
    begin: Callable[[LiveArena, asyncio.Event], None],
) -> None:
    """All stages of an arena as one service, until it is stopped.

    Args:
        request: Which arena, and how.
        tell: Is given a line for every stage that did something.
        begin: Is called when the service begins, with the event that stops it.
    """
    from foretell.arena.stages import LOOK_SECONDS, ArenaService
    from foretell.arena.status import arena_status

    opening = replace(ALL_PARTS, here=request.where == "here" or request.rehearse, concurrency=request.concurrency)
    async with open_arena_file(request.file, opening, rehearse=request.rehearse) as arena:

        def report_stage(stage: str, report: object) -> None:
            first, *more = str(report).splitlines()
            tell(f"{arena.clock().isoformat(timespec='seconds')} {stage}: {first}")
            for line in more:
                tell(f"  {line.strip()}")

        look = request.poll_interval or (SIMULATED_LOOK if load_settings().clock else LOOK_SECONDS)
        service = ArenaService(arena=arena, poll_interval=look, tell=report_stage)
        if request.once or request.rehearse:
            await service.once()
            if request.rehearse:
                tell(str(await arena.store.aside(arena_status, arena, arena.clock())))
                tell(f"A rehearsal: it stands under the name {arena.name}, and the arena itself has none of it.")
            return
        stop = asyncio.Event()
        begin(arena, stop)
        await service.run(stop)
