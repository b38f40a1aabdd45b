"""The agent's surroundings for one run: models behind the journal, and a fenced toolbox for every trial."""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.prices import market_ref
from foretell.data.series.series import Series, SeriesInMemory, SeriesSource, SeriesUnavailable
from foretell.forecasters.base_rates.rates import Rates
from foretell.forecasters.forecaster import AgentContext, CannotForecast, Forecaster, RunContext, TracedModel
from foretell.forecasters.prompt.adapter import AttemptingForecaster, on_context
from foretell.forecasters.prompt.prediction_context import PredictionContexts, QuestionOnly
from foretell.forecasters.series.forecasters import Auto
from foretell.models.budget import Budget, SharedBudget
from foretell.models.canonical import content_key
from foretell.models.journal import Journal
from foretell.models.limits import ModelLimits
from foretell.models.names import MODEL_ROLES, ModelRole, ModelRoles
from foretell.models.router import ModelRouter
from foretell.plugins import load, names
from foretell.questions.as_of import AsOf, Clock
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, SeriesRef
from foretell.questions.trace import EmitEvent, ignore_event
from foretell.runs.executor import AnswerCell
from foretell.runs.services import Services, open_services, plugin_tools
from foretell.runs.settings import Settings, clock_of
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunCell, RunStore
from foretell.tools.fence import FencedTools, SourceStore
from foretell.tools.journal import JournaledTool, journal_scope, note_event
from foretell.tools.leak_filter import LeakFilter
from foretell.tools.prices import FetchPrices
from foretell.tools.rules import FenceRules
from foretell.tools.series import FetchSeries
from foretell.tools.tool import Tool
from foretell.tools.web import LookupUrl, SummarizeResults, WebSearch
from foretell.tools.wikipedia import FetchWikipedia

# The journal around series that a forecaster reads without a tool: fetched once, the same in every replay.


@dataclass(frozen=True, kw_only=True)
class JournaledSeries:
    """A source of series whose answers, refusals among them, are in the journal before anyone sees them."""

    source: SeriesSource
    journal: Journal

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """The series as it was first read for this cutoff."""
        asked = ["series", ref.provider, ref.id, as_of.at.isoformat(), as_of.mode]

        async def produce() -> dict[str, Any]:
            try:
                found = await self.source.fetch(ref, as_of)
            except (SeriesUnavailable, SourceError) as error:
                return {"failed": str(error)}
            return {"id": found.id, "days": found.days.astype(str).tolist(), "values": found.values.tolist()}

        kept = await self.journal.once_json(content_key(asked), "series", produce)
        if "failed" in kept:
            raise SeriesUnavailable(kept["failed"])
        days = np.array(kept["days"], dtype="M8[D]")
        return Series(id=kept["id"], days=days, values=np.array(kept["values"], dtype=np.float64))


# Entries of an arena among other runs: what they are shown, and the rules they all answer under.

CONTEXT_FORECASTER = "context"
"""The name of the forecaster that only reads a context, and of the option that shows it to another."""


class TrialForecaster(Forecaster, AttemptingForecaster, Protocol):
    """A forecaster that ends every trial in a value."""


ContextWrapper = Callable[[TrialForecaster], TrialForecaster]
"""Shows a forecaster what its run is to be shown."""


def without_context(forecaster: TrialForecaster) -> TrialForecaster:
    """Shown nothing more."""
    return forecaster


def forecaster_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the forecaster itself, without what it is shown."""
    return {name: value for name, value in options.items() if name != CONTEXT_FORECASTER}


def contexts_of(spec: RunSpec, store: RunStore) -> PredictionContexts:
    """What is shown: what the question set holds ready for everybody, or else the question alone."""
    live = live_questions(spec)
    return QuestionOnly() if live is None else live.contexts(spec, store)


def context_wrapper(spec: RunSpec, store: RunStore) -> ContextWrapper:
    """Shows the context to a forecaster whose options ask for it."""
    if CONTEXT_FORECASTER not in spec.options:
        return without_context
    shown = context_options(spec.options)
    contexts = contexts_of(spec, store)
    return lambda forecaster: on_context(forecaster, shown, contexts)


def context_options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """How a forecaster is shown the context."""
    shown = options[CONTEXT_FORECASTER]
    if not isinstance(shown, Mapping):
        raise InputError(f"context is {shown!r}, write e.g. {{view: both, tools: false}}", column="options.context")
    return cast("Mapping[str, Any]", shown)


def under_rules(answer: AnswerCell, spec: RunSpec, settings: Settings, store: RunStore) -> AnswerCell:
    """Entries of an arena answer in time and add up; other runs answer as they do."""
    live = live_questions(spec)
    return answer if live is None else live.rules(answer, spec, store, clock_of(settings))


class LiveQuestions(Protocol):
    """A question set that goes on while it is answered: what everybody is shown, and the rules all answer under."""

    def contexts(self, spec: RunSpec, store: RunStore) -> PredictionContexts:
        """What every entry is shown, question by question."""
        ...

    def rules(self, answer: AnswerCell, spec: RunSpec, store: RunStore, clock: Clock) -> AnswerCell:
        """The same answer, held to the rules."""
        ...


def live_questions(spec: RunSpec) -> LiveQuestions | None:
    """The live question set that a run's data set names by its prefix, such as `arena:`; nothing for any other."""
    prefix, colon, _ = spec.questions.dataset.partition(":")
    return load("live_questions", prefix)() if colon and prefix in names("live_questions") else None


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """Makes a context for every trial of a run."""

    spec: RunSpec
    models: ModelRoles
    exchange: ModelRouter
    journal: Journal
    equipment: Services
    budget: Budget
    rates: Rates | None = None

    def context(self, question: Question, trial: int, emit: EmitEvent = ignore_event) -> AgentContext:
        """What one trial on one question may lean on."""
        budget = Budget("question", dollars=self.spec.budget.question, within=self.budget)
        return AgentContext(
            as_of=question.as_of_in(self.spec.mode),
            series=JournaledSeries(source=self.equipment.series, journal=self.journal),
            models=self.models,
            model=self.exchange.within(budget),
            toolbox=self.toolbox,
            emit=emit,
            trial=trial,
            seed=self.spec.seed,
            prices=self.exchange.prices,
            rates=self.rates,
        )

    def answers(self, forecaster: AttemptingForecaster) -> AnswerCell:
        """How cells are answered by a forecaster at this bench."""

        async def answer(cell: RunCell, emit: EmitEvent) -> Forecast | Failure:
            return await forecaster.attempt(cell.question, self.context(cell.question, cell.trial, emit))

        return answer

    def toolbox(self, question: Question, context: AgentContext) -> FencedTools:
        """A new toolbox with its own shelf, behind the fence."""
        fence = FenceRules(as_of=context.as_of, question=question, clairvoyant=self.spec.clairvoyant, emit=context.emit)
        shelf = SourceStore()
        leak_filter = LeakFilter(
            model=self._watched(context, "filter"),
            name=self.models.name("filter"),
            settings=self.models.setting("filter"),
        )
        engine = self.equipment.engine
        # Another engine finds other pages for the same words.
        scope = journal_scope(question.id, context.trial, engine.name if engine else None)
        reaching = [
            JournaledTool(tool=tool, journal=self.journal, scope=scope, emit=context.emit)
            for tool in self._reaching(question, context)
        ]
        summary = SummarizeResults(
            shelf=shelf,
            model=self._watched(context, "summariser"),
            name=self.models.name("summariser"),
            question=question,
            settings=self.models.setting("summariser"),
        )
        return FencedTools.around([*reaching, summary], fence, leak_filter, shelf=shelf)

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
                    estimate=estimate_from_series,
                    # DBnomics keeps no vintages; its observations are measurements that are hardly ever corrected.
                    allow_revised=question.series.provider == "dbnomics",
                    emit=note_event,
                )
            )
        ref = market_ref(question)
        if ref is not None and ref.platform in self.equipment.prices:
            tools.append(FetchPrices(question=question, sources=self.equipment.prices, emit=note_event))
        return tools + plugin_tools(self.equipment, question)

    def _watched(self, context: AgentContext, role: ModelRole) -> TracedModel:
        return TracedModel(context.model, context.emit, role, context.prices)


async def estimate_from_series(question: Question, series: Series, as_of: AsOf) -> Mapping[str, float]:
    """What `auto` says about a question from the history an agent just read; nothing where it cannot."""
    context = RunContext(as_of=as_of, series=SeriesInMemory(series={series.id: series}))
    try:
        return (await Auto().forecast(question, context)).p
    except CannotForecast:
        return {}


def models_of_run(spec: RunSpec) -> ModelRoles:
    """The models of a run by role."""
    unknown = [role for role in spec.models if role not in MODEL_ROLES]
    if unknown:
        raise InputError(
            f"there is no role {unknown[0]!r}", column="models", hint=f"roles are {', '.join(MODEL_ROLES)}"
        )
    if "agent" not in spec.models:
        raise InputError("no model is named for the agent", column="models", hint="e.g. models: {agent: openai:NAME}")
    others: dict[ModelRole, str] = {
        role: spec.models[role] for role in MODEL_ROLES if role in spec.models and role != "agent"
    }
    return ModelRoles(agent=spec.models["agent"], others=others)


def _refuse_unpriced(spec: RunSpec, models: ModelRoles, exchange: ModelRouter, budget: Budget | None) -> None:
    """A limit in dollars means nothing for a model whose price nobody knows: say so before the first cell fails."""
    if spec.budget.run is None and spec.budget.question is None and budget is None:
        return
    unpriced = [name for name in models.names() if exchange.prices.of(name) is None]
    if unpriced:
        raise InputError(
            f"a budget in dollars needs a known price, and that of {unpriced[0]} is not known",
            column="budget",
            hint="leave the budget out, or choose a model that is priced",
        )


@asynccontextmanager
async def open_runtime(
    spec: RunSpec,
    settings: Settings,
    journal: Journal,
    *,
    rates: Rates | None = None,
    limits: ModelLimits | None = None,
) -> AsyncGenerator[Runtime]:
    """Opened for one run and closed with it."""
    models = models_of_run(spec)
    patience = limits or ModelLimits()
    providers = {name.partition(":")[0] for name in models.names()}
    # What a provider allows is said by its name, or for a server of one's own by its address.
    allowed = {place: patience.allowing(settings.limits.get(place)) for place in {*providers, *settings.limits}}
    async with (
        AsyncHttpClient() as client,
        ModelRouter(
            settings.keys,
            journal=journal,
            limits=allowed,
            addresses=settings.addresses,
        ) as exchange,
    ):
        exchange.check(models.names())
        _refuse_unpriced(spec, models, exchange, settings.budget)
        with _budget(spec, journal, settings) as budget:
            yield Runtime(
                spec=spec,
                models=models,
                exchange=exchange,
                journal=journal,
                equipment=open_services(settings, client, spec.search),
                rates=rates,
                budget=budget,
            )


@contextmanager
def _budget(spec: RunSpec, journal: Journal, settings: Settings) -> Generator[Budget]:
    """Of the run: this process's, or that of all who work at it."""
    if not settings.shared_budget or spec.budget.run is None:
        yield Budget("run", dollars=spec.budget.run, within=settings.budget)
        return
    budget = SharedBudget("run", journal.database, spec.id, dollars=spec.budget.run)
    try:
        yield budget
    finally:
        budget.give_back()
