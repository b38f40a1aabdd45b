"""The runtime of a run: creates the context of every trial, with models behind the journal and filtered tools."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from foretell.data.files import write_atomically
from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.market import market_ref
from foretell.data.search.engine import DocumentSource
from foretell.data.series.series import Series, SeriesInMemory, SeriesSource, SeriesUnavailable
from foretell.data.untrusted import question_for_prompt
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.forecaster import (
    CannotForecast,
    Context,
    Forecaster,
    Models,
    NoSeries,
    attempt,
    no_evidence,
    read_forecaster,
)
from foretell.forecasters.prompt.adapter import on_context
from foretell.forecasters.prompt.prediction_context import PredictionContexts
from foretell.forecasters.series.forecasters import Auto
from foretell.frozen import frozen
from foretell.models.budget import Budget
from foretell.models.canonical import content_key
from foretell.models.check import CapabilityCheck, unknown_models, with_capabilities
from foretell.models.facts import forget_facts
from foretell.models.journal import Journal
from foretell.models.limits import UNLIMITED, ModelLimits
from foretell.models.model import EFFORTS, ModelSettings, ReasoningEffort
from foretell.models.names import MODEL_ROLES, ModelName, ModelRole, ModelRoles
from foretell.models.prices import PriceList
from foretell.models.router import ModelRouter
from foretell.models.token_price import read_price
from foretell.models.waiting import USUAL_SECONDS
from foretell.plugins import load, names
from foretell.questions.as_of import AsOf, Clock
from foretell.questions.errors import InputError, known_names
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, SeriesRef
from foretell.questions.trace import EmitEvent, ignore_event
from foretell.runs.executor import AnswerTrial
from foretell.runs.matching_sources import MatchingSources
from foretell.runs.services import MAY_BE_REVISED, Services, open_services, plugin_tools
from foretell.runs.settings import CHECKED_MODELS, Settings, clock_of
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunStore, RunTrial
from foretell.runs.trial_evidence import EvidenceOfTrials
from foretell.tools.calculate import Calculate
from foretell.tools.content_filter import ModelContentFilter
from foretell.tools.journal import JournaledTool, journal_scope, note_event
from foretell.tools.leakage_filter import FilteredTools, SourceStore
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.own_tool import own_tools
from foretell.tools.series import WEATHER_PROVIDER, FetchPrices, FetchSeries, FetchWeather, about_weather
from foretell.tools.series_stats import SeriesStats
from foretell.tools.tool import Tool
from foretell.tools.web import FetchWikipedia, LookupUrl, SummarizeResults, WebSearch


@frozen
class JournaledSeries:
    """A series source for forecasters that read series without a tool. Each series is fetched only once."""

    source: SeriesSource
    journal: Journal

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """The series as it was first read for this cutoff."""
        request = ["series", ref.provider, ref.id, as_of.at.isoformat(), as_of.mode]

        async def produce() -> dict[str, Any]:
            try:
                series = await self.source.fetch(ref, as_of)
            except (SeriesUnavailable, SourceError) as error:
                return {"failed": str(error)}
            return {"id": series.id, "days": series.days.astype(str).tolist(), "values": series.values.tolist()}

        stored = await self.journal.once_json(content_key(request), "series", produce)
        if "failed" in stored:
            raise SeriesUnavailable(stored["failed"])
        days = np.array(stored["days"], dtype="M8[D]")
        return Series(id=stored["id"], days=days, values=np.array(stored["values"], dtype=np.float64))


CONTEXT_OPTION = "context"
"""The run option that shows the forecaster each question's shared context."""


def forecaster_options(spec: RunSpec) -> dict[str, Any]:
    """The forecaster's own options: those in its name, then those of the run."""
    options = read_forecaster(spec.forecaster)[1]
    name, seconds = forecaster_name(spec), SLOW_TIERS.get(spec.sampling.get("tier") or "")
    if seconds is not None and name in ("agent", "prompt", "reason"):
        options.setdefault("seconds", REPLIES_OF_TRIAL * seconds)
    elif name == "prompt" and spec.sampling.get(REPLY_SECONDS):
        options.setdefault("seconds", max(USUAL_SECONDS, REPLIES_OF_TRIAL * float(spec.sampling[REPLY_SECONDS])))
    return options | {name: value for name, value in spec.options.items() if name != CONTEXT_OPTION}


def forecaster_name(spec: RunSpec) -> str:
    """The forecaster's name in the registry."""
    return spec.forecaster.partition(":")[0]


def shown_context(forecaster: Forecaster, spec: RunSpec) -> Forecaster:
    """The forecaster, with the shared context if the run's options ask for it."""
    if CONTEXT_OPTION not in spec.options:
        return forecaster
    options = spec.options[CONTEXT_OPTION]
    if not isinstance(options, Mapping):
        raise InputError(f"context is {options!r}, write e.g. {{view: both, tools: false}}", column="options.context")
    return on_context(forecaster, cast("Mapping[str, Any]", options))


def under_rules(answer: AnswerTrial, spec: RunSpec, settings: Settings, store: RunStore) -> AnswerTrial:
    """Apply the rules of a live question set, such as an arena, to answers. Other runs have no such rules."""
    live = live_questions(spec)
    return answer if live is None else live.rules(answer, spec, store, clock_of(settings))


class LiveQuestions(Protocol):
    """A question set that grows while it is answered, with shared contexts and rules."""

    def contexts(self, spec: RunSpec, store: RunStore) -> PredictionContexts:
        """Return the contexts that every entry is shown."""
        ...

    def rules(self, answer: AnswerTrial, spec: RunSpec, store: RunStore, clock: Clock) -> AnswerTrial:
        """Wrap `answer` so that it obeys the rules."""
        ...


def live_questions(spec: RunSpec) -> LiveQuestions | None:
    """The live question set named by a run's data set prefix, such as `arena:`; None for any other.

    A backtest asks the same questions again, with the contexts that were kept and without the rules.
    """
    prefix, colon, _ = spec.questions.dataset.partition(":")
    live = colon and spec.mode == "live" and prefix in names("live_questions")
    return load("live_questions", prefix)() if live else None


@frozen
class TreeOutput:
    """Where a run's only tree is stored, a callback for its events, and warnings about it."""

    file: Path | None = None
    """None for the default place in the home."""
    watch: EmitEvent = ignore_event
    warnings: list[str] = field(default_factory=list[str])


@frozen
class PlainRuntime:
    """Creates the context of every trial of a run that asks no model."""

    spec: RunSpec
    past: Callable[[], Past] = Past
    """Returns past questions to learn from. Called for every context, because an arena's past grows."""
    series: SeriesSource = field(default_factory=NoSeries)
    contexts: PredictionContexts | None = None
    """Shared contexts of questions; None for the questions alone."""

    def context(self, question: Question, trial: int = 0, emit: EmitEvent = ignore_event) -> Context:
        """The context of one trial on one question."""
        as_of = question.as_of_in(self.spec.mode)
        return Context(
            as_of=as_of,
            series=self.series,
            past=self.past().before(min(as_of.at.date(), question.due.date())),
            contexts=self.contexts,
            emit=emit,
            seed=self.spec.seed,
            trial=trial,
            trials=self.spec.trials,
            marked=self.spec.marked,
        )

    def answers(self, forecaster: Forecaster) -> AnswerTrial:
        """Return a function that answers trials with a forecaster."""

        def answer(run_trial: RunTrial, emit: EmitEvent) -> Awaitable[Forecast | Failure]:
            question = question_for_prompt(run_trial.question) if self.spec.marked else run_trial.question
            return attempt(forecaster, question, self.context(question, run_trial.trial, emit))

        return answer


@frozen
class Runtime(PlainRuntime):
    """Creates the context of every trial of a run that asks models: models, tools and series behind the journal."""

    models: ModelRoles
    router: ModelRouter
    journal: Journal
    services: Services
    budget: Budget
    settings: Settings
    trees: TreeOutput = field(default_factory=TreeOutput)
    evidence: EvidenceOfTrials | None = None
    """What the trials on a question found; None if they are not stored."""

    def context(self, question: Question, trial: int = 0, emit: EmitEvent = ignore_event) -> Context:
        """The context of one trial on one question."""
        budget = self.budget_of(question)
        return replace(
            super().context(question, trial, emit),
            models=Models(roles=self.models, model=self.router.within(budget), prices=self.router.prices),
            tools=self.tools,
            series=JournaledSeries(source=self.services.series, journal=self.journal),
            budget=budget,
            matching_sources=MatchingSources(settings=self.settings, journal=self.journal).of,
            evidence_of_others=no_evidence if self.evidence is None else partial(self.evidence.of_others, trial=trial),
        )

    def budget_of(self, question: Question, name: str = "question") -> Budget:
        """Return the budget of a question, which its trials and its context share."""
        limit = self.spec.budget.question
        account = "" if limit is None else f"{self.spec.id}/{question.id} {question.due.isoformat()}"
        return Budget(name, dollars=limit, within=self.budget, id=account)

    def tools(self, question: Question, context: Context) -> FilteredTools:
        """Return new tools behind the leakage filter, with their own store of sources."""
        rules = LeakageRules(
            as_of=context.as_of, question=question, unfiltered=not self.spec.leakage_filter, emit=context.emit
        )
        content_filter = ModelContentFilter(
            model=context.model("filter"),
            name=self.models.name("filter"),
            settings=self.models.setting("filter"),
            seconds=tool_seconds(self.spec, self.models.setting("filter"), ModelContentFilter.seconds),
            marked=self.spec.marked,
        )
        engine = self.services.engine
        # Results depend on the engine and on the archive check.
        suffix = " and archive" if self.spec.archive_check else ""
        scope = journal_scope(question.id, context.trial, f"{engine.name}{suffix}" if engine else None)
        online = [
            JournaledTool(tool=tool, journal=self.journal, scope=scope, emit=context.emit)
            for tool in self._online_tools(question, context)
        ]
        own = own_tools(self.spec.tools, backtest=rules.active)
        online += [
            # A changed function has another name and is called again.
            JournaledTool(tool=tool, journal=self.journal, scope=f"{scope}/{name}", emit=context.emit)
            for name, tool in own.items()
        ]
        sources = SourceStore(marked=self.spec.marked)
        summary = SummarizeResults(
            sources=sources,
            model=context.model("summariser"),
            name=self.models.name("summariser"),
            question=question,
            settings=self.models.setting("summariser"),
            seconds=tool_seconds(self.spec, self.models.setting("summariser"), SummarizeResults.seconds),
        )
        return FilteredTools.around([*online, summary, Calculate()], rules, content_filter, sources=sources)

    def _online_tools(self, question: Question, context: Context) -> list[Tool]:
        """The tools that use the network and are available for this question."""
        services, filtered = self.services, self.spec.leakage_filter
        stored = context.as_of.mode == "backtest" and filtered
        tools: list[Tool] = []
        if services.engine is not None and (services.engine.filters_dates or not stored):
            history = services.stored_pages if stored and self.spec.archive_check else None
            tools.append(WebSearch(engine=services.engine, history=history))
        documents = services.engine if isinstance(services.engine, DocumentSource) else None
        tools.append(LookupUrl(pages=services.stored_pages if stored else services.live_pages, documents=documents))
        tools.append(FetchWikipedia(wikipedia=services.wikipedia))
        if question.series is not None and services.series.supplies(question.series):
            source, revised = services.series, question.series.provider in MAY_BE_REVISED
            tools += [
                FetchSeries(
                    question=question,
                    source=source,
                    estimate=estimate_from_series,
                    allow_revised=revised,
                    emit=note_event,
                ),
                SeriesStats(question=question, source=source, allow_revised=revised, emit=note_event),
            ]
        elif about_weather(question) and services.series.supplies(SeriesRef(provider=WEATHER_PROVIDER, id="")):
            tools.append(FetchWeather(source=services.series, emit=note_event))
        ref = market_ref(question)
        if ref is not None and ref.platform in services.prices:
            tools.append(FetchPrices(question=question, sources=services.prices, emit=note_event))
        return tools + plugin_tools(services, question)


async def estimate_from_series(question: Question, series: Series, as_of: AsOf) -> Mapping[str, float]:
    """Return the forecast of `auto` from a series that an agent just read; empty if it cannot forecast."""
    context = Context(as_of=as_of, series=SeriesInMemory(series={series.id: series}))
    try:
        return (await Auto().forecast(question, context)).p
    except CannotForecast:
        return {}


def models_of_run(spec: RunSpec) -> ModelRoles:
    """The models of a run by role."""
    unknown = [role for role in spec.models if role not in MODEL_ROLES]
    if unknown:
        raise InputError(f"there is no role {unknown[0]!r}", column="models", hint=known_names(unknown[0], MODEL_ROLES))
    if "agent" not in spec.models:
        raise InputError("no model is named for the agent", column="models", hint="e.g. models: {agent: openai:NAME}")
    others: dict[ModelRole, str] = {
        role: spec.models[role] for role in MODEL_ROLES if role in spec.models and role != "agent"
    }
    chosen = {name: value for name, value in spec.sampling.items() if name != REPLY_SECONDS}
    try:
        sampling = ModelSettings(**chosen)
    except TypeError:
        known = [*(field.name for field in fields(ModelSettings)), REPLY_SECONDS]
        wrong = next((name for name in chosen if name not in known), "")
        hint = known_names(wrong, known)
        raise InputError(f"sampling has no setting {wrong!r}", column="sampling", hint=hint) from None
    if sampling.effort not in (None, *EFFORTS):
        hint = f"there are {', '.join(EFFORTS)}"
        raise InputError(f"there is no effort {sampling.effort!r}", column="sampling.effort", hint=hint)
    model_roles = ModelRoles(agent=spec.models["agent"], others=others, settings={"agent": sampling} if chosen else {})
    settings = dict(model_roles.settings)
    for role in MODEL_ROLES:
        if role in spec.efforts:
            settings[role] = replace(model_roles.setting(role), effort=cast("ReasoningEffort", spec.efforts[role]))
    return replace(model_roles, settings=settings)


REPLY_SECONDS = "reply_seconds"
"""Field in a spec's sampling: how long to wait for one reply. It does not affect the reply itself."""
SLOW_TIERS = {"flex": 900.0, "batch": 25 * 3600.0}
"""Seconds that a reply may take in a cheap service tier; a batch expires after a day."""
REPLIES_OF_TRIAL = 10
"""A trial of the agent has time for this many replies, unless its options set another time."""


def tool_seconds(spec: RunSpec, settings: ModelSettings, usual: float) -> float:
    """How long a tool waits for its model: as set by the run, or as the service tier needs."""
    return float(spec.sampling.get(REPLY_SECONDS) or SLOW_TIERS.get(settings.tier or "", usual))


def patience_of(spec: RunSpec) -> ModelLimits:
    """How long a run waits for its models."""
    usual = ModelLimits()
    tier = spec.sampling.get("tier") or ""
    seconds = spec.sampling.get(REPLY_SECONDS) or SLOW_TIERS.get(tier)
    if seconds is None:
        return usual
    if tier == "batch":  # Waiting requests block nothing, and more requests make fewer batches.
        usual = replace(usual, at_once=UNLIMITED)
    return replace(usual, seconds=float(seconds), total_seconds=max(usual.total_seconds, 3 * float(seconds)))


def prices_of(spec: RunSpec) -> PriceList:
    """Prices for a run: those in its spec, then the known ones."""
    return PriceList({name: read_price(price) for name, price in spec.prices.items()})


def unpriced_models(spec: RunSpec) -> list[str]:
    """The run's models whose price is unknown."""
    prices = prices_of(spec)
    deep = spec.options.get("deep_model")
    models = [*models_of_run(spec).names(), *([deep] if isinstance(deep, str) else [])]
    return [name for name in models if prices.of(name) is None]


def refuse_unpriced(spec: RunSpec, budget: Budget | None, setting: str = "--set prices.{}=0.5/2") -> None:
    """Raise `InputError` if there is a dollar limit and a model with an unknown price.

    `setting` is how a user states the price of a model.
    """
    limited = budget is not None and budget.limited
    if spec.budget.run is None and spec.budget.question is None and not limited:
        return
    if unpriced := unpriced_models(spec):
        write = setting.format(unpriced[0])
        raise InputError(
            f"a budget in dollars needs a known price, and the price of {unpriced[0]} is unknown",
            column="budget",
            hint=f"state it in dollars per million input/output tokens: {write} (0 if it is free); or set no budget",
        )


@asynccontextmanager
async def open_runtime(
    spec: RunSpec,
    settings: Settings,
    journal: Journal,
    *,
    past: Callable[[], Past] = Past,
    limits: ModelLimits | None = None,
    budget: Budget | None = None,
) -> AsyncGenerator[Runtime]:
    """Open the runtime of a run. `budget` is the run's budget, if it exists already."""
    models = models_of_run(spec)
    patience = limits or patience_of(spec)
    providers = {name.partition(":")[0] for name in models.names()}
    # Limits are by provider name, or by address for a user's own server.
    allowed = {place: patience.allowing(settings.limits.get(place)) for place in {*providers, *settings.limits}}
    async with (
        AsyncHttpClient(access=settings.access) as client,
        ModelRouter(
            settings.keys, journal=journal, prices=prices_of(spec), limits=allowed, addresses=settings.addresses
        ) as router,
    ):
        router.check(models.names())
        refuse_unpriced(spec, settings.budget)
        budget = budget or run_budget(spec, journal, settings)
        if settings.check_models and journal.mode == "live":
            for name in unknown_models(models.names(), router.prices):
                await try_first(name, router, budget, settings)
        yield Runtime(
            spec=spec,
            models=models,
            router=router,
            journal=journal,
            services=open_services(settings, client, spec.search),
            past=past,
            budget=budget,
            settings=settings,
        )


FIRST_REPLY_SECONDS = 120.0
TRIED_FIRST = (
    "{} is an unknown model: a few short requests, paid from the budget of the run, find out first what it supports "
    "(check_models = false in settings.toml turns this off)"
)
log = logging.getLogger("foretell.models.check")


async def try_first(name: str, router: ModelRouter, budget: Budget, settings: Settings) -> None:
    """Probe an unknown model once, within the budget, before paying for more."""
    log.warning("%s", TRIED_FIRST.format(name))
    check = CapabilityCheck(model=router.within(budget), name=name, seconds=FIRST_REPLY_SECONDS)
    checks = await check.run(turns=False)
    if check.sure:
        keep_capabilities(settings, name, check.found(router.learned(name)))
    else:
        log.warning(
            "%s: its capabilities could not be determined (%s); it is used like most models", name, checks[-1][1]
        )


def keep_capabilities(settings: Settings, model: str, capabilities: Mapping[str, str]) -> None:
    """Store a model's capabilities in the home."""
    path = settings.home / CHECKED_MODELS
    write_atomically(path, with_capabilities(path, ModelName.read(model).name, capabilities))
    forget_facts()


def run_budget(spec: RunSpec, journal: Journal, settings: Settings) -> Budget:
    """Return the budget of a run, which all its processes share, within the budget of the settings."""
    budget = Budget("run", dollars=spec.budget.run, within=settings.budget, run=spec.id)
    budget.use(journal.ledger)
    return budget
