"""The agent's surroundings for one run: models behind the journal, and a fenced toolbox for every trial."""

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from foretell.app.equipment import Equipment, equip
from foretell.app.kept_series import KeptSeries
from foretell.app.settings import Settings
from foretell.arena.cells import Cell
from foretell.arena.executor import Answer
from foretell.arena.spec import RunSpec
from foretell.forecasters.agent.context import AgentContext, Watched
from foretell.forecasters.context.adapter import Attempts
from foretell.forecasters.forecaster import CannotForecast, RunContext
from foretell.forecasters.priors import Rates
from foretell.forecasters.series.forecasters import Auto
from foretell.llm.cost import Budget
from foretell.llm.journal import Journal
from foretell.llm.limits import Limits
from foretell.llm.opening import Exchange
from foretell.llm.roles import ROLES, Models, Role
from foretell.llm.shared_budget import SharedBudget
from foretell.questions.clock import AsOf
from foretell.questions.event import Emit, ignore
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.problems import InputError
from foretell.questions.question import Question
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.markets.reference import market_ref
from foretell.sources.series import Series
from foretell.sources.series_from.memory import SeriesInMemory
from foretell.tools.fence import Fence, Fenced
from foretell.tools.kept import Kept, note, scope_of
from foretell.tools.leaks import LeakFilter
from foretell.tools.page import LookupUrl
from foretell.tools.prices import FetchPrices
from foretell.tools.search import WebSearch
from foretell.tools.series import FetchSeries
from foretell.tools.shelf import Shelf
from foretell.tools.summarize import SummarizeResults
from foretell.tools.tool import Tool
from foretell.tools.wikipedia import FetchWikipedia


@dataclass(frozen=True, kw_only=True)
class Workbench:
    """Makes a context for every trial of a run."""

    spec: RunSpec
    models: Models
    exchange: Exchange
    journal: Journal
    equipment: Equipment
    budget: Budget
    rates: Rates | None = None

    def context(self, question: Question, trial: int, emit: Emit = ignore) -> AgentContext:
        """What one trial on one question may lean on."""
        budget = Budget("question", dollars=self.spec.budget.question, within=self.budget)
        return AgentContext(
            as_of=question.as_of_in(self.spec.mode),
            series=KeptSeries(source=self.equipment.series, journal=self.journal),
            models=self.models,
            model=self.exchange.within(budget),
            toolbox=self.toolbox,
            emit=emit,
            trial=trial,
            seed=self.spec.seed,
            prices=self.exchange.prices,
            rates=self.rates,
        )

    def answers(self, forecaster: Attempts) -> Answer:
        """How cells are answered by a forecaster at this bench."""

        async def answer(cell: Cell, emit: Emit) -> Forecast | Failure:
            return await forecaster.attempt(cell.question, self.context(cell.question, cell.trial, emit))

        return answer

    def toolbox(self, question: Question, context: AgentContext) -> Fenced:
        """A new toolbox with its own shelf, behind the fence."""
        fence = Fence(as_of=context.as_of, question=question, clairvoyant=self.spec.clairvoyant, emit=context.emit)
        shelf = Shelf()
        leak_filter = LeakFilter(
            model=self._watched(context, "filter"),
            name=self.models.name("filter"),
            settings=self.models.setting("filter"),
        )
        engine = self.equipment.engine
        # Another engine finds other pages for the same words.
        scope = scope_of(question.id, context.trial, engine.name if engine else None)
        reaching = [
            Kept(tool=tool, journal=self.journal, scope=scope, emit=context.emit)
            for tool in self._reaching(question, context)
        ]
        summary = SummarizeResults(
            shelf=shelf,
            model=self._watched(context, "summariser"),
            name=self.models.name("summariser"),
            question=question,
            settings=self.models.setting("summariser"),
        )
        return Fenced.around([*reaching, summary], fence, leak_filter, shelf=shelf)

    def _reaching(self, question: Question, context: AgentContext) -> list[Tool]:
        """The tools that leave this machine and can be used for this question."""
        backtest = context.as_of.mode == "backtest"
        engine = self.equipment.engine
        tools: list[Tool] = []
        if engine is not None and (engine.filters_dates or not backtest or self.spec.clairvoyant):
            tools.append(WebSearch(engine=engine))
        stored = backtest and not self.spec.clairvoyant
        tools.append(LookupUrl(pages=self.equipment.stored_pages if stored else self.equipment.live_pages))
        tools.append(FetchWikipedia(wikipedia=self.equipment.wikipedia))
        if question.series is not None and self.equipment.series.supplies(question.series):
            tools.append(
                FetchSeries(
                    question=question,
                    source=self.equipment.series,
                    estimate=estimate,
                    # DBnomics keeps no vintages; its observations are measurements that are hardly ever corrected.
                    allow_revised=question.series.provider == "dbnomics",
                    emit=note,
                )
            )
        ref = market_ref(question)
        if ref is not None and ref.platform in self.equipment.prices:
            tools.append(FetchPrices(question=question, sources=self.equipment.prices, emit=note))
        return tools

    def _watched(self, context: AgentContext, role: Role) -> Watched:
        return Watched(context.model, context.emit, role, context.prices)


async def estimate(question: Question, series: Series, as_of: AsOf) -> Mapping[str, float]:
    """What `auto` says about a question from the history an agent just read; nothing where it cannot."""
    context = RunContext(as_of=as_of, series=SeriesInMemory(series={series.id: series}))
    try:
        return (await Auto().forecast(question, context)).p
    except CannotForecast:
        return {}


def cast_of(spec: RunSpec) -> Models:
    """The models of a run by role."""
    unknown = [role for role in spec.models if role not in ROLES]
    if unknown:
        raise InputError(f"there is no role {unknown[0]!r}", column="models", hint=f"roles are {', '.join(ROLES)}")
    if "agent" not in spec.models:
        raise InputError("no model is named for the agent", column="models", hint="e.g. models: {agent: openai:NAME}")
    others: dict[Role, str] = {role: spec.models[role] for role in ROLES if role in spec.models and role != "agent"}
    return Models(agent=spec.models["agent"], others=others)


def _refuse_unpriced(spec: RunSpec, models: Models, exchange: Exchange, purse: Budget | None) -> None:
    """A limit in dollars means nothing for a model whose price nobody knows: say so before the first cell fails."""
    if spec.budget.run is None and spec.budget.question is None and purse is None:
        return
    unpriced = [name for name in models.names() if exchange.prices.of(name) is None]
    if unpriced:
        raise InputError(
            f"a budget in dollars needs a known price, and that of {unpriced[0]} is not known",
            column="budget",
            hint="leave the budget out, or choose a model that is priced",
        )


@asynccontextmanager
async def workbench(
    spec: RunSpec,
    settings: Settings,
    journal: Journal,
    *,
    rates: Rates | None = None,
    limits: Limits | None = None,
) -> AsyncGenerator[Workbench]:
    """Opened for one run and closed with it."""
    models = cast_of(spec)
    patience = limits or Limits()
    providers = {name.partition(":")[0] for name in models.names()}
    # What a provider allows is said by its name, or for a server of one's own by its address.
    allowed = {place: patience.allowing(settings.limits.get(place)) for place in {*providers, *settings.limits}}
    async with (
        AsyncHttpClient() as client,
        Exchange(
            settings.keys,
            journal=journal,
            limits=allowed,
            addresses=settings.addresses,
        ) as exchange,
    ):
        exchange.check(models.names())
        _refuse_unpriced(spec, models, exchange, settings.purse)
        with _budget(spec, journal, settings) as budget:
            yield Workbench(
                spec=spec,
                models=models,
                exchange=exchange,
                journal=journal,
                equipment=equip(settings, client, spec.search),
                rates=rates,
                budget=budget,
            )


@contextmanager
def _budget(spec: RunSpec, journal: Journal, settings: Settings) -> Generator[Budget]:
    """Of the run: this process's, or that of all who work at it."""
    if not settings.together or spec.budget.run is None:
        yield Budget("run", dollars=spec.budget.run, within=settings.purse)
        return
    budget = SharedBudget("run", journal.database, spec.id, dollars=spec.budget.run)
    try:
        yield budget
    finally:
        budget.give_back()
