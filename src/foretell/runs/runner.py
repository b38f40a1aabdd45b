"""From a run spec to its answers: questions, surroundings, forecaster, executor, store."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from foretell.data.series.series import SeriesSource
from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.settings import VARIANTS, AgentSettings, Clamp
from foretell.forecasters.base_rates.baselines import ConstantForecaster
from foretell.forecasters.base_rates.rates import Rates
from foretell.forecasters.combine.trials import ReasonsPanel
from foretell.forecasters.forecaster import CannotForecast, Forecaster, RunContext, build_forecaster
from foretell.forecasters.prompt.adapter import context_forecaster, on_context
from foretell.forecasters.prompt.prediction_context import QuestionOnly
from foretell.forecasters.series.forecasters import Auto
from foretell.models.capabilities import check_knowledge_cutoff
from foretell.models.journal import Journal
from foretell.models.limits import ModelLimits
from foretell.models.router import ModelRouter
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.trace import EmitEvent
from foretell.runs.executor import AnswerCell, Executor, RunProgress, WatchEvents
from foretell.runs.question_sets import Benchmark, open_benchmark
from foretell.runs.runtime import (
    CONTEXT_FORECASTER,
    Runtime,
    context_options,
    context_wrapper,
    contexts_of,
    forecaster_options,
    models_of_run,
    open_runtime,
    refuse_unpriced,
    under_rules,
)
from foretell.runs.services import SEARCH_ENGINES
from foretell.runs.settings import KEYS, Settings
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunCell, RunStore, cells_of, panel_cells
from foretell.runs.tree_options import ThoughtOptions, TreeOptions
from foretell.runs.tree_runtime import THOUGHTS_FORECASTER, TREE_FORECASTER, TreeOutput, thought_answers, tree_answers

WatchProgress = Callable[[RunProgress], None]
AGENT_FORECASTER = "agent"


@dataclass(frozen=True, kw_only=True)
class PreparedRun:
    """A run that is ready to start, or to go on."""

    spec: RunSpec
    benchmark: Benchmark
    questions: tuple[Question, ...]
    warnings: tuple[str, ...] = ()
    """What the models may already know of the questions."""


def prepare_run(spec: RunSpec, benchmark: Benchmark | None = None) -> PreparedRun:
    """Open the questions and check that the models cannot have read about them."""
    asked = spec.questions
    benchmark = benchmark or open_benchmark(asked.dataset, rounds=asked.rounds, live=spec.mode == "live")
    questions = benchmark.questions.questions[: spec.questions.limit]
    warnings: dict[str, int] = {}
    if spec.mode == "backtest":
        for question in questions:
            for model in dict.fromkeys(spec.models.values()):
                found = check_knowledge_cutoff(model, question.opens_at or question.due, strict=spec.strict)
                if found is not None:
                    warnings[found.text] = warnings.get(found.text, 0) + 1
    told = tuple(f"{text} ({n} questions)" if n > 1 else text for text, n in list(warnings.items())[:5])
    return PreparedRun(spec=spec, benchmark=benchmark, questions=questions, warnings=told)


async def execute_run(  # noqa: PLR0913 - who watches, and where things go
    prepared: PreparedRun,
    settings: Settings,
    *,
    watch: WatchProgress | None = None,
    on_event: WatchEvents | None = None,
    journal: Journal | None = None,
    concurrency: int = 50,
    trees: TreeOutput | None = None,
) -> RunProgress:
    """Run what has no forecast yet. Started again after a crash, it goes on where it was without paying twice.

    The journal, a given one too, is closed at the end.
    """
    store = RunStore(settings.store)
    spec = prepared.spec
    began = datetime.now(UTC).isoformat(timespec="seconds")
    store.begin(spec.id, spec.to_json(), began, services=settings.services)
    store.keep_questions(spec.id, prepared.questions)
    cells = cells_of(spec.id, prepared.questions, spec.trials)
    executor = Executor(store, concurrency=concurrency, watch=watch, on_event=on_event)
    try:
        if not asks_models(spec):
            resources, series = prepared.benchmark.resources, prepared.benchmark.series
            return await executor.run(cells, model_free(spec, resources, series=series))
        rates = prepared.benchmark.resources["rates"]()
        with closing(journal or Journal(settings.journal)) as kept:
            async with open_answers(
                spec, settings, kept, store, rates=rates, concurrency=concurrency, trees=trees
            ) as answer:
                done = await executor.run(cells, answer)
                if not has_panel(spec):
                    return done
                return await executor.run(panel_cells(spec.id, prepared.questions, spec.trials), answer)
    finally:
        store.close()


def asks_models(spec: RunSpec) -> bool:
    """Whether its cells take long and cost money: these are shared between machines."""
    return spec.forecaster in (AGENT_FORECASTER, TREE_FORECASTER, THOUGHTS_FORECASTER, CONTEXT_FORECASTER)


def check_options(spec: RunSpec) -> None:
    """Raise now what any machine would find wrong with the roles and options of a run that asks models."""
    models_of_run(spec)
    options = forecaster_options(spec.options)
    if spec.forecaster == AGENT_FORECASTER:
        build_agent(options)
    elif spec.forecaster == TREE_FORECASTER:
        TreeOptions.read(options)
    elif spec.forecaster == THOUGHTS_FORECASTER:
        ThoughtOptions.read(options)
    elif spec.forecaster == CONTEXT_FORECASTER:
        context_forecaster(spec.options, QuestionOnly())
    if spec.forecaster != CONTEXT_FORECASTER and CONTEXT_FORECASTER in spec.options:
        on_context(ConstantForecaster(), context_options(spec.options), QuestionOnly())


def check_run(spec: RunSpec, settings: Settings) -> None:
    """Raise now, before anything is stored, what this machine would find wrong with a run that asks models."""
    if not asks_models(spec):
        return
    check_options(spec)
    models, router = models_of_run(spec), ModelRouter(settings.keys)
    router.check(models.names())
    refuse_unpriced(spec, models, router, settings.purse)
    for engine in spec.search:
        if engine not in SEARCH_ENGINES:
            hint = f"engines are {', '.join(SEARCH_ENGINES)}"
            raise InputError(f"there is no search engine {engine!r}", column="search", hint=hint)
        if engine in KEYS and not settings.key(engine):
            hint = f"set {KEYS[engine][0]}, or use --search local"
            raise InputError(f"the search engine {engine} needs a key", column="search", hint=hint)


def has_panel(spec: RunSpec) -> bool:
    """Whether a model reads what the trials wrote, in one more cell per question."""
    return spec.aggregate == "judged" and spec.trials > 1


@asynccontextmanager
async def open_answers(  # noqa: PLR0913 - what a run needs around it
    spec: RunSpec,
    settings: Settings,
    journal: Journal,
    store: RunStore,
    *,
    rates: Rates | None = None,
    concurrency: int = 50,
    trees: TreeOutput | None = None,
) -> AsyncGenerator[AnswerCell]:
    """What answers the cells of a run that asks models, so many at once; the cell after the trials is the panel's."""
    limits = ModelLimits(at_once=max(64, concurrency))
    if spec.forecaster == TREE_FORECASTER:
        limits = TreeOptions.read(forecaster_options(spec.options)).limits(limits)
    elif spec.forecaster == THOUGHTS_FORECASTER:
        limits = ThoughtOptions.read(forecaster_options(spec.options)).grounding.limits(limits)
    async with (
        open_runtime(spec, settings, journal, rates=rates, limits=limits) as bench,
        _trials(spec, bench, settings, store, trees) as trial,
    ):
        if not has_panel(spec):
            yield under_rules(trial, spec, settings, store)
            return
        panel = _panel(store, bench)

        async def answer(cell: RunCell, emit: EmitEvent) -> Forecast | Failure:
            return await (panel if cell.trial >= spec.trials else trial)(cell, emit)

        yield under_rules(answer, spec, settings, store)


@asynccontextmanager
async def _trials(
    spec: RunSpec, bench: Runtime, settings: Settings, store: RunStore, trees: TreeOutput | None
) -> AsyncGenerator[AnswerCell]:
    """The agent, one who only reads a context, or trees and thoughts with whatever their grounders need."""
    if spec.forecaster == CONTEXT_FORECASTER:
        yield bench.answers(context_forecaster(spec.options, contexts_of(spec, store)))
        return
    dress = context_wrapper(spec, store)
    if spec.forecaster not in (TREE_FORECASTER, THOUGHTS_FORECASTER):
        yield bench.answers(dress(build_agent(forecaster_options(spec.options))))
        return
    opened = (
        tree_answers(bench, settings, dress, trees)
        if spec.forecaster == TREE_FORECASTER
        else thought_answers(bench, settings, dress)
    )
    async with opened as answer:
        yield answer


def _panel(store: RunStore, bench: Runtime) -> AnswerCell:
    """One more cell per question, in which a model reads what the trials wrote."""
    panel = ReasonsPanel()

    async def answer(cell: RunCell, emit: EmitEvent) -> Forecast | Failure:
        said = await store.aside(store.answers_to, cell.key)
        made = [a for a in said if isinstance(a, Forecast) and a.trial < cell.trial]
        context = bench.context(cell.question, cell.trial, emit)
        try:
            return await panel.judge(cell.question, made, context)
        except CannotForecast as reason:
            return Failure(
                question_id=cell.question.id,
                forecaster=panel.name,
                as_of=context.as_of,
                trial=cell.trial,
                error=str(reason),
            )

    return answer


def build_agent(options: Mapping[str, Any]) -> BeliefAgent:
    """The agent that a run's options describe; an unknown option is named."""
    known = {"variant", "crowd", "prior", "steps", "seconds", "asking", "clamp", "bypass", "fixed"}
    for name in options:
        if name not in known:
            raise InputError(
                f"the agent has no option {name!r}", column="options", hint=f"options are {', '.join(sorted(known))}"
            )
    try:
        return _agent_from_options(options)
    except (TypeError, ValueError) as error:
        raise InputError(f"the agent's options do not fit: {error}", column="options") from None


def _agent_from_options(options: Mapping[str, Any]) -> BeliefAgent:
    kind = str(options.get("variant", "full"))
    if kind not in VARIANTS:
        raise InputError(f"there is no variant {kind!r}", column="options", hint=f"variants are {', '.join(VARIANTS)}")
    variant = VARIANTS[kind].told(crowd=bool(options.get("crowd", True)), prior=bool(options.get("prior", True)))
    chosen = {name: options[name] for name in ("steps", "seconds", "asking", "fixed") if name in options}
    settings = AgentSettings(**chosen)
    if "clamp" in options:
        if not isinstance(options["clamp"], list | tuple) or len(options["clamp"]) != 2:
            raise ValueError(f"clamp is {options['clamp']!r}, write two numbers such as [0.05, 0.95]")
        low, high = options["clamp"]
        settings = replace(settings, clamp=Clamp(low=float(low), high=float(high)))
    sources: Sequence[str] = options.get("bypass", ("dbnomics",))
    return BeliefAgent(variant=variant, settings=settings, bypass={source: Auto() for source in sources})


def model_free(
    spec: RunSpec,
    resources: Mapping[str, Callable[[], Any]],
    *,
    series: SeriesSource | None = None,
    dress: Callable[[Forecaster], Forecaster] | None = None,
) -> AnswerCell:
    """What answers the cells of a run that asks no model."""
    forecaster = build_forecaster(spec.forecaster, resources)
    forecaster = forecaster if dress is None else dress(forecaster)

    async def answer(cell: RunCell, emit: EmitEvent) -> Forecast | Failure:
        as_of = cell.question.as_of_in(spec.mode)
        context = RunContext(as_of=as_of, series=series) if series else RunContext(as_of=as_of)
        try:
            return await forecaster.forecast(cell.question, context)
        except CannotForecast as reason:
            return Failure(question_id=cell.question.id, forecaster=forecaster.name, as_of=as_of, error=str(reason))

    return answer
