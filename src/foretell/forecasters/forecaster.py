"""Forecasters: their common interface, the context they get, and how to make one by name."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import count
from string import Template
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np

from foretell.data.http import SourceError
from foretell.data.series.series import Series, SeriesSource, SeriesUnavailable
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.prompt.prediction_context import PredictionContext, PredictionContexts, known_at
from foretell.frozen import frozen
from foretell.models.budget import Budget
from foretell.models.canonical import request_key
from foretell.models.model import Message, Model, ModelSettings, Reply, Request, UserMessage
from foretell.models.names import ModelRole, ModelRoles
from foretell.models.prices import PriceList
from foretell.models.token_price import TokenPrice
from foretell.models.waiting import PendingWork
from foretell.plugins import current_name, load, signature_of, takes_arguments
from foretell.questions.as_of import AsOf
from foretell.questions.codec import parse_options
from foretell.questions.errors import InputError, WrongValue, known_names, said
from foretell.questions.forecast import Cost, Failure, Forecast, check_sides
from foretell.questions.question import Question, SeriesRef
from foretell.questions.trace import (
    CallMeter,
    EmitEvent,
    Failed,
    ModelCalled,
    TraceEvent,
    cost_of_calls,
    ignore_event,
)
from foretell.tools.content_filter import Excerpt, LeakVerdict
from foretell.tools.leakage_filter import FilteredTools
from foretell.tools.leakage_rules import LeakageRules

Key = TypeVar("Key")


class CannotForecast(Exception):
    """The forecaster cannot answer this question, for the reason given; recorded as a `Failure`."""

    def __init__(self, message: str = "", *, forecaster: str = "") -> None:
        super().__init__(message)
        self.forecaster = forecaster
        """The name to record the failure under, if it is not the forecaster's usual one."""


class NoSeries:
    """The series source of a run without one."""

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """Always raise `SeriesUnavailable`."""
        raise SeriesUnavailable(f"there is no source for the series {ref.provider}/{ref.id}")


@frozen
class Models:
    """The models that a forecaster may call: the model of each role, and a single interface to all of them."""

    roles: ModelRoles | None = None
    """The model and its settings for every role; None without models."""
    model: Model | None = None
    """Answers requests to any of the models, behind the journal, limits and budget."""
    prices: PriceList | None = None
    samples: dict[str, set[int]] = field(default_factory=dict[str, set[int]], repr=False, compare=False)
    """By request: the samples that this trial has taken."""

    def name(self, role: ModelRole) -> str:
        """The name of the model that has a role."""
        return self._roles.name(role)

    def settings(self, role: ModelRole) -> ModelSettings:
        """The sampling settings of the model that has a role."""
        return self._roles.setting(role)

    def price(self, role: ModelRole) -> TokenPrice | None:
        """The price of the model that has a role; None if unknown."""
        return None if self.prices is None else self.prices.of(self.name(role))

    def with_model(self, role: ModelRole, name: str) -> "Models":
        """A copy of these models with a different model in one role."""
        return replace(self, roles=self._roles.with_model(role, name))

    @property
    def _roles(self) -> ModelRoles:
        if self.roles is None:
            raise CannotForecast(NO_MODEL)
        return self.roles


NO_MODEL = "this forecaster asks a model, and none was given: name a model, or list it under `models` in a run spec"


class AdmitAll:
    """A content filter that keeps everything, for tools whose material was checked before."""

    async def judge(self, excerpts: Sequence[Excerpt], as_of: AsOf, question: str) -> list[LeakVerdict]:
        """Keep every excerpt."""
        return [LeakVerdict(word="KEEP", reason="checked before")] * len(excerpts)


def no_tools(question: Question, context: "Context") -> FilteredTools:
    """Return an empty toolbox, the default of a context."""
    return FilteredTools.around((), LeakageRules(as_of=context.as_of, question=question, emit=context.emit), AdmitAll())


async def no_evidence(question: Question) -> Sequence[Mapping[str, str]]:
    """Return nothing, because there are no other trials."""
    return ()


@frozen
class MatchingSource:
    """A market or a series that asks the same as a claim."""

    text: str
    price: float | None = None
    """Its fresh price, if it is a market with trades."""


async def no_sources(question: Question, context: "Context") -> Sequence[MatchingSource]:
    """Return nothing, because no markets or series are available."""
    return ()


@frozen
class Context:
    """Everything a forecaster may use besides the question.

    Only `as_of` is required. A model, tool or series that was not given raises an error with an explanation when it is
    used.
    """

    as_of: AsOf
    """The time of the forecast: nothing later may be used."""
    models: Models = field(default_factory=Models)
    """The language models by role."""
    tools: Callable[[Question, "Context"], FilteredTools] = no_tools
    """Makes a new set of filtered tools for every trial; call `tools_for`."""
    series: SeriesSource = field(default_factory=NoSeries)
    """The source of time series."""
    past: Past = field(default_factory=Past)
    """Earlier questions and the outcomes known before `as_of`."""
    contexts: PredictionContexts | None = None
    """What was gathered for questions beforehand; call `gathered`."""
    budget: Budget = field(default_factory=lambda: Budget("question"))
    """The limit on the cost of the models; `models` enforces it."""
    emit: EmitEvent = ignore_event
    """Receives the events of the trace."""
    seed: int | None = None
    """The seed of the run; None leaves sampling to the provider."""
    trial: int = 0
    """The number of this trial among several independent ones."""
    trials: int = 1
    """How many independent trials there are."""
    evidence_of_others: Callable[[Question], Awaitable[Sequence[Mapping[str, Any]]]] = no_evidence
    """Returns what the other trials on a question have found so far: for each its evidence and its direct estimate."""
    matching_sources: Callable[[Question, "Context"], Awaitable[Sequence[MatchingSource]]] = no_sources
    """Returns markets and series that ask the same as a question."""
    marked: bool = True
    """Whether prompts mark text from outside as such; runs of older versions continue without this."""

    @cached_property
    def rng(self) -> "np.random.Generator":
        """A random number generator that is the same for the same seed and trial."""
        return np.random.default_rng([self.seed or 0, self.trial])

    async def series_of(self, question: Question) -> Series:
        """Fetch the series that decides the question, up to `as_of`."""
        if question.series is None:
            raise CannotForecast(f"question {question.id} is not about a time series")
        try:
            known = (await self.series.fetch(question.series, self.as_of)).until(self.as_of)
        except (SeriesUnavailable, SourceError) as error:
            raise CannotForecast(str(error)) from error
        if not len(known):
            raise CannotForecast(f"nothing of series {question.series.id} was known at {self.as_of}")
        return known

    async def gathered(self, question: Question) -> PredictionContext:
        """Return what was gathered for the question beforehand: its sources and its quotes, the same for everybody."""
        stored = None if self.contexts is None else await self.contexts.of(question, self.as_of)
        if stored is not None:
            return stored
        try:
            return PredictionContext(question=known_at(question, self.as_of), as_of=self.as_of)
        except ValueError as error:
            raise CannotForecast(str(error)) from None

    def tools_for(self, question: Question) -> FilteredTools:
        """Make new tools for a trial on a question; their sources and events belong to that trial alone."""
        return self.tools(question, self)

    def model(self, role: ModelRole = "agent") -> Model:
        """Return a model that emits a trace event under this role for every reply.

        A repeated request within a trial is another sample, with its own reply and cost. Only requests of tools about a
        text, such as whether it leaks, are sent once.
        """
        model = self.models.model
        if model is None:
            raise CannotForecast(NO_MODEL)
        samples = None if role in SAMPLED_ONCE else self.models.samples
        return TracedModel(model, self.emit, role, self.models.prices, samples)

    def request(
        self,
        role: ModelRole,
        messages: Iterable[Message],
        *,
        slot: str,
        schema: Mapping[str, Any] | None = None,
        settings: ModelSettings | None = None,
        call: int | None = 0,
    ) -> Request:
        """Make a request to the model of a role, seeded by trial and call number; `call=None` leaves the seed out.

        The slot distinguishes requests with the same text in the journal.
        """
        sampling = settings or self.models.settings(role)
        if self.seed is not None and call is not None:
            sampling = replace(sampling, seed=self.seed + self.trial + SEEDS_BETWEEN_CALLS * call)
        name = self.models.name(role)
        return Request(model=name, messages=tuple(messages), settings=sampling, schema=schema, slot=slot)

    async def ask(self, text: str, *, role: ModelRole = "agent", slot: str = "") -> Reply:
        """Send a text to a model and return its reply, for forecasters that need no more than that.

        A repeated text is another sample: five calls give five replies and are paid for five times.
        """
        full_slot = f"{slot}/trial {self.trial}" if slot else f"trial {self.trial}"
        return await self.model(role).complete(self.request(role, (UserMessage(text=text),), slot=full_slot))

    def with_model(self, wrap: Callable[[Model], Model]) -> "Context":
        """Return a copy of this context with its models behind a wrapper."""
        if self.models.model is None:
            return self
        return replace(self, models=replace(self.models, model=wrap(self.models.model)))


SEEDS_BETWEEN_CALLS = 1_000
"""Distance between the seeds of two calls of one trial; there are fewer trials than that."""


@cache
def prompt_template(folder: str, name: str) -> Template:
    """Load a prompt text from a folder of this package, such as `agent/wording`."""
    file = files("foretell.forecasters").joinpath(folder, f"{name}.md")
    return Template(file.read_text(encoding="utf-8").strip())


class Forecaster(Protocol):
    """Turns a question, as of a given time, into a forecast.

    The method is asynchronous because most forecasters wait for models and tools; those that only compute simply
    return.
    """

    @property
    def name(self) -> str:
        """The name shown in tables."""
        ...

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Return one probability for every target of the question, or raise `CannotForecast`."""
        ...


class EventOrdering:
    """Forwards events, and holds those of concurrent tasks until the trial's own task emits again.

    Each task's events stay together. Tasks are sorted by the content of their events, because their timing varies.
    Create it in the trial's own task.
    """

    def __init__(self, emit: EmitEvent) -> None:
        self._emit = emit
        self._own = asyncio.current_task()
        self._held: dict[Any, list[TraceEvent]] = {}

    def __call__(self, event: TraceEvent) -> None:
        """Forward the event now, or hold it until its turn."""
        task = asyncio.current_task()
        if task is self._own:
            if self._held:
                self.release()
            self._emit(event)
        else:
            self._held.setdefault(task, []).append(event)

    def held(self) -> list[TraceEvent]:
        """Return the held events, in the order in which they will be forwarded."""

        def content(group: list[TraceEvent]) -> str:
            return json.dumps([[type(event).__name__, vars(event)] for event in group], sort_keys=True, default=str)

        groups = list(self._held.values())
        return [event for group in (sorted(groups, key=content) if len(groups) > 1 else groups) for event in group]

    def release(self) -> None:
        """Forward the held events."""
        events = self.held()
        self._held.clear()
        for event in events:
            self._emit(event)


class JobEvents(EventOrdering):
    """The events of one job, in an order that depends on replies and not on timing. Create it in the job's own task."""

    def __init__(self, on_event: EmitEvent) -> None:
        self._on_event = on_event
        self._ordered: list[TraceEvent] = []
        super().__init__(self._ordered.append)

    def __call__(self, event: TraceEvent) -> None:
        """Store the event and forward it immediately."""
        self._on_event(event)
        super().__call__(event)

    def events(self) -> list[TraceEvent]:
        """Return all events of the job, in order."""
        return [*self._ordered, *self.held()]


class EventLog(Generic[Key]):
    """Stores events by job and forwards them immediately to a listener."""

    def __init__(self, on_event: EmitEvent = ignore_event) -> None:
        self._on_event = on_event
        self.jobs: dict[Key, JobEvents] = {}

    def job(self, key: Key) -> EmitEvent:
        """Return the listener of a new job; call this once, in the job's own task."""
        if key in self.jobs:
            raise ValueError(f"the job {key} was started twice")
        self.jobs[key] = JobEvents(self._on_event)
        return self.jobs[key]

    def events(self, order: Iterable[Key]) -> list[TraceEvent]:
        """Return all events, job by job in this order, which may include jobs that never ran."""
        return [event for key in order if key in self.jobs for event in self.jobs[key].events()]

    def usage(self) -> Cost:
        """Total cost of the model calls, each reply once even if several jobs used it."""
        return cost_of_calls(self.events(self.jobs))

    def models(self) -> tuple[str, ...]:
        """Models used, as ROLE=MODEL."""
        calls = [event for event in self.events(self.jobs) if isinstance(event, ModelCalled)]
        return tuple(sorted({f"{event.role}={event.model}" for event in calls}))


class UsageMeter:
    """Forwards events and adds up the cost of the models."""

    def __init__(self, emit: EmitEvent) -> None:
        self._emit = emit
        self._meter = CallMeter()

    @property
    def usage(self) -> Cost:
        """The cost so far."""
        return self._meter.cost

    def __call__(self, event: TraceEvent) -> None:
        """Count the event and forward it."""
        self._meter.count(event)
        self._emit(event)


SAMPLED_ONCE: frozenset[ModelRole] = frozenset({"filter", "summariser", "auditor"})
"""Roles whose requests have one answer: a repeated request is not another sample."""


class TracedModel:
    """A model that emits an event for every reply, and gives identical requests different slots."""

    def __init__(
        self,
        inner: Model,
        emit: EmitEvent,
        role: ModelRole,
        prices: PriceList | None = None,
        samples: dict[str, set[int]] | None = None,
    ) -> None:
        """`samples` are those that a trial has taken, by request; without it, a request is sent once."""
        self._inner = inner
        self._emit = emit
        self._role = role
        self._prices = prices
        self._samples = samples

    async def complete(self, request: Request) -> Reply:
        """Return the reply after emitting its event; earlier replies that were cut off have their own events."""
        sampled, taken, sample = self._sample(request)
        try:
            with PendingWork("model", self._role, request.model) as work:
                reply = await self._inner.complete(sampled)
        except BaseException:
            taken.discard(sample)  # The next request takes the sample of this one, which failed.
            raise
        for part in (*reply.cut_off, reply):
            dollars = part.charged if part.charged is not None else self._price(request, part)
            self._emit(
                ModelCalled(
                    role=self._role,
                    model=request.model,
                    key=part.key or request_key(sampled),
                    input_tokens=part.tokens.input,
                    output_tokens=part.tokens.output,
                    dollars=dollars,
                    reused=part.reused,
                    # The count of a free call matters to nobody.
                    uncounted=part.tokens.estimated and dollars != 0,
                ).since(work.since)
            )
        return reply

    def _sample(self, request: Request) -> tuple[Request, set[int], int]:
        """Return the request as the first free sample, the taken samples, and its number."""
        taken = set[int]() if self._samples is None else self._samples.setdefault(request_key(request), set[int]())
        sample = next(number for number in count(1) if number not in taken)
        taken.add(sample)
        sampled = request if sample == 1 else replace(request, slot=f"{request.slot}/sample {sample}")
        return sampled, taken, sample

    def _price(self, request: Request, reply: Reply) -> float | None:
        """Return the price of a reply that no budget paid for."""
        return self._prices.charged(request, reply) if self._prices else None


# Forecasters by name: entries of the registry under `forecasters`, called with options.


def asks_models(name: str, models: Mapping[str, str] | None = None) -> bool:
    """Whether a registered forecaster uses language models: its class sets `asks_models = True`.

    A plain function gets models if the run names some.
    """
    factory = load("forecasters", name)
    return bool(models) if _is_forecasting_function(factory) else getattr(factory, "asks_models", False)


def reads_context(name: str) -> bool:
    """Whether a registered forecaster reads what was gathered for a question: its class sets `reads_context = True`.

    A plain function may call `context.gathered`.
    """
    factory = load("forecasters", name)
    return _is_forecasting_function(factory) or getattr(factory, "reads_context", False)


def make_forecaster(name: str, options: Mapping[str, Any]) -> Any:
    """Call the registered forecaster with its options. Raises `InputError` for an unknown or wrong option.

    Most entries make a forecaster. One that needs a resource for a whole run makes an object with `open(runtime)`, an
    asynchronous context manager that yields the forecaster and the runtime it works with.
    """
    factory = load("forecasters", name)
    if _is_forecasting_function(factory):
        return FunctionForecaster(function=factory, name=name, options=options)
    options = current_options(name, options)
    accepted = [key for key in inspect.signature(factory).parameters if key not in getattr(factory, "not_options", ())]
    for option in options:
        if option not in accepted:
            hint = known_names(option, sorted(accepted)) if accepted else "it has no options"
            raise InputError(f"the forecaster {name!r} has no option {option!r}", column="options", hint=hint)
    try:
        return factory(**options)
    except WrongValue as error:
        raise InputError(error.problem, column=f"options.{error.field}", hint=error.hint) from None
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"the options of {name!r} do not fit: {error}", column="options") from None


def current_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options under their current names: stored specs may use the forecaster's `former_names` and `former_values`."""
    plugin = load("forecasters", name)
    former_names: Mapping[str, str] = getattr(plugin, "former_names", {})
    former_values: Mapping[Any, Any] = getattr(plugin, "former_values", {})
    return {
        former_names.get(option, option): former_values.get(value, value) if isinstance(value, str) else value
        for option, value in options.items()
    }


def build_forecaster(spec: str) -> Forecaster:
    """Build a forecaster that asks no model from "name" or "name:option=value,…"."""
    name, options = read_forecaster(spec)
    if asks_models(name):
        hint = f"write a spec with forecaster: {name}, models and search, and start foretell run SPEC"
        raise InputError(f"the forecaster {name!r} asks a model", hint=hint)
    try:
        return make_forecaster(name, options)
    except InputError as error:
        raise InputError(f"forecaster {spec!r}: {error.problem}", hint=error.hint) from None


def read_forecaster(spec: str) -> tuple[str, dict[str, Any]]:
    """Parse name and options from "name:option=value,…"."""
    try:
        name, options = parse_options(spec)
    except InputError as error:
        raise InputError(f"forecaster {error.problem}", hint=error.hint) from None
    return current_name("forecasters", name), options


# Plain functions as forecasters.


def _is_forecasting_function(factory: Any) -> bool:
    """Whether a function answers questions itself, rather than making a forecaster from options."""
    return inspect.isroutine(factory) and next(iter(signature_of(factory).parameters), "") == "question"


@frozen
class FunctionForecaster:
    """Wraps a function of a question, or of a question and a context, as a forecaster.

    The function returns a probability, a mapping from targets to probabilities, a `Forecast`, or a coroutine of one of
    them.
    """

    function: Callable[..., Any]
    name: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Call the function and return its result as a forecast."""
        parameters = signature_of(self.function).parameters.values()
        free = [
            parameter for parameter in parameters if parameter.name not in self.options and parameter.kind in POSITIONAL
        ]
        takes_context = len(free) > 1 and (free[1].name == "context" or free[1].default is inspect.Parameter.empty)
        result = self.function(*((question, context) if takes_context else (question,)), **self.options)
        return forecast_of(await result if inspect.isawaitable(result) else result, question, context, self.name)


POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def forecast_of(
    result: Any, question: Question, context: Context, name: str, rationale: str = "", **more: Any
) -> Forecast:
    """Convert a probability, a mapping from targets to probabilities, or a forecast to a forecast.

    A single number answers a question with one target, and one that asks the same for several dates; `more` are other
    fields of the forecast.
    """
    if isinstance(result, Forecast):
        return result
    if not isinstance(result, Mapping):
        dates = question.exclusivity == "independent" and all(
            target.resolves_at and not target.label for target in question.targets
        )
        if len(question.targets) != 1 and not dates:
            targets = ", ".join(target.id for target in question.targets)
            raise CannotForecast(f"{name} gave one number for {targets}: return a mapping with one for each target")
        result = {target.id: result for target in question.targets}
    try:
        return Forecast(
            question_id=question.id,
            forecaster=name,
            as_of=context.as_of,
            p=dict(result),
            trial=context.trial,
            rationale=rationale,
            **more,
        )
    except (TypeError, ValueError) as error:
        raise CannotForecast(f"{name} gave no probabilities: {said(error)}") from error


def as_forecaster(value: Any) -> Forecaster:
    """Make a forecaster from a forecaster, a function of a question, or a name with options such as "always:p=0.3"."""
    if isinstance(value, str):
        return build_forecaster(value)
    if isinstance(value, type):
        raise InputError(f"the class {value.__name__} is not a forecaster", hint=f"give an object: {value.__name__}(…)")
    method = getattr(value, "forecast", None)
    if method is not None:
        return replace(
            cast("FunctionForecaster", as_forecaster(method)), name=getattr(value, "name", type(value).__name__)
        )
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        if not takes_arguments(value, 1, 2):
            hint = "it takes the question, or the question and the context"
            raise InputError(f"the function {name} cannot be a forecaster", hint=hint)
        return FunctionForecaster(function=value, name=name)
    raise InputError(
        f"{value!r} is not a forecaster", hint="give a name, a function of a question, or an object with forecast()"
    )


def _without_no(forecast: Forecast, question: Question) -> Forecast:
    """Leave out the probability of no for a question that has only yes, after checking that both sum to 1."""
    if "no" not in forecast.p or [target.id for target in question.targets] != ["yes"]:
        return forecast
    try:
        check_sides(forecast.p["yes"], forecast.p["no"])
    except ValueError as error:
        raise CannotForecast(str(error)) from None
    stated = None if forecast.stated is None else {"yes": forecast.stated["yes"]}
    return replace(forecast, p={"yes": forecast.p["yes"]}, stated=stated)


async def attempt(forecaster: Forecaster, question: Question, context: Context) -> Forecast | Failure:
    """Run one trial. Return a forecast for every target, or a failure with its reason.

    Adds up the cost of the models, and emits a failure as a trace event.
    """
    meter, started = UsageMeter(context.emit), monotonic()
    try:
        forecast = await forecaster.forecast(question, replace(context, emit=meter))
        missing = {target.id for target in question.targets} - forecast.p.keys()
        if missing:
            raise CannotForecast(f"no probability for target {min(missing)}")
        forecast = _without_no(forecast, question)
    except CannotForecast as reason:
        context.emit(Failed(error=str(reason)))
        return Failure(
            question_id=question.id,
            forecaster=reason.forecaster or forecaster.name,
            as_of=context.as_of,
            error=str(reason),
            trial=context.trial,
        )
    if meter.usage.calls and forecast.usage == Cost():
        forecast = replace(forecast, usage=replace(meter.usage, seconds=monotonic() - started))
    return forecast if forecast.trial == context.trial else replace(forecast, trial=context.trial)
