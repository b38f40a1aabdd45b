"""The one thing every forecaster does."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from foretell.data.http import SourceError
from foretell.data.series.series import Series, SeriesSource, SeriesUnavailable
from foretell.forecasters.base_rates.rates import Rates
from foretell.models.canonical import request_key
from foretell.models.model import Model, Reply, Request
from foretell.models.names import ModelRole, ModelRoles
from foretell.models.prices import PriceList
from foretell.plugins import load, names
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost, Forecast
from foretell.questions.question import Question, SeriesRef
from foretell.questions.trace import EmitEvent, ModelCalled, TraceEvent, ignore_event
from foretell.tools.fence import FencedTools


class CannotForecast(Exception):
    """The forecaster has nothing to say on this question, and says why: it is recorded as a `Failure`."""


class NoSeries:
    """The source of a run that was given none."""

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """Always refuses."""
        raise SeriesUnavailable(f"no source of series was given for {ref.provider}/{ref.id}")


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """What a forecaster may lean on besides the question: the cutoff, and sources that respect it."""

    as_of: AsOf
    series: SeriesSource = field(default_factory=NoSeries)

    async def series_of(self, question: Question) -> Series:
        """The series that decides the question, clamped to the cutoff whatever the source returned."""
        if question.series is None:
            raise CannotForecast(f"question {question.id} is not about a time series")
        try:
            known = (await self.series.fetch(question.series, self.as_of)).until(self.as_of)
        except (SeriesUnavailable, SourceError) as error:
            raise CannotForecast(str(error)) from error
        if not len(known):
            raise CannotForecast(f"nothing of series {question.series.id} was known at {self.as_of}")
        return known


class Forecaster(Protocol):
    """Turns a question, seen as of a cutoff, into a forecast.

    Asynchronous because most forecasters wait for models and tools; those that only compute simply return.
    """

    @property
    def name(self) -> str:
        """As shown in tables."""
        ...

    async def forecast(self, question: Question, context: RunContext) -> Forecast:
        """One probability for every target of the question, or `CannotForecast`."""
        ...


# What the agent leans on besides the question: models, a fenced toolbox, a listener.


@dataclass(frozen=True, kw_only=True)
class AgentContext(RunContext):
    """A run context with everything that costs money or comes from outside."""

    models: ModelRoles
    """Which model has which role."""
    model: Model
    """Answers requests to any of them, behind journal, limits and budget."""
    toolbox: Callable[[Question, "AgentContext"], FencedTools]
    """A new fenced toolbox for every trial: its shelf and its events are the trial's own."""
    emit: EmitEvent = ignore_event
    trial: int = 0
    seed: int | None = None
    """Sent to the model, different in each trial; None leaves sampling to the provider."""
    prices: PriceList | None = None
    rates: Rates | None = None
    """Base rates for variants that are told the prior."""

    def for_trial(self, trial: int, emit: EmitEvent | None = None) -> "AgentContext":
        """The same context for another trial, which is asked, journalled and seeded on its own."""
        return replace(self, trial=trial, emit=emit or self.emit)


class UsageMeter:
    """Passes events on and adds up what the models cost."""

    def __init__(self, emit: EmitEvent) -> None:
        self._emit = emit
        self.usage = Cost()

    def __call__(self, event: TraceEvent) -> None:
        """Count, then tell."""
        if isinstance(event, ModelCalled):
            self.usage = Cost(
                dollars=self.usage.dollars + (event.dollars or 0.0),
                input_tokens=self.usage.input_tokens + event.input_tokens,
                output_tokens=self.usage.output_tokens + event.output_tokens,
                calls=self.usage.calls + 1,
            )
        self._emit(event)


class TracedModel:
    """A model whose every answer is an event."""

    def __init__(self, inner: Model, emit: EmitEvent, role: ModelRole, prices: PriceList | None = None) -> None:
        self._inner = inner
        self._emit = emit
        self._role = role
        self._prices = prices

    async def complete(self, request: Request) -> Reply:
        """The reply, told to the listener first."""
        reply = await self._inner.complete(request)
        tokens = reply.tokens
        self._emit(
            ModelCalled(
                role=self._role,
                model=request.model,
                key=request_key(request),
                input_tokens=tokens.input,
                output_tokens=tokens.output,
                dollars=self._prices.dollars(request.model, tokens) if self._prices else None,
            )
        )
        return reply


MODEL_FORECASTERS = {
    "agent": "",
    "tree": "; without a model there are tree-views and tree-file",
    "thoughts": "",
}
"""Those that ask models: a run has roles, keys, a budget and a journal for them, a list of names has not."""


def build_forecaster(spec: str, resources: Mapping[str, Callable[[], Any]] | None = None) -> Forecaster:
    """A forecaster from "name" or "name:option=value,…"; resources (base rates, …) are made for those that ask.

    >>> build_forecaster("always:p=0.3").name
    'always 0.3'
    """
    name, _, written = spec.partition(":")
    if name in MODEL_FORECASTERS and name not in names("forecasters"):
        spec_hint = f"write a spec with forecaster: {name}, models and search, and start foretell run SPEC"
        hint = spec_hint + MODEL_FORECASTERS[name]
        raise InputError(f"the forecaster {name!r} asks a model", hint=hint)
    factory = load("forecasters", name)
    accepted = inspect.signature(factory).parameters
    options = _options(spec, written, accepted.keys())
    made = {key: make() for key, make in (resources or {}).items() if key in accepted and key not in options}
    given = {key: value for key, value in made.items() if value is not None}
    try:
        return factory(**given, **options)
    except (TypeError, ValueError) as error:
        raise InputError(f"forecaster {spec!r}: {error}") from None


def _options(spec: str, written: str, accepted: Any) -> dict[str, Any]:
    import yaml

    options: dict[str, Any] = {}
    for part in filter(None, written.split(",")):
        key, equals, value = part.partition("=")
        if not equals or key not in accepted:
            hint = f"options are {', '.join(accepted) or 'none'}"
            raise InputError(f"forecaster {spec!r}: cannot use {part!r}", hint=hint)
        options[key] = yaml.safe_load(value)
    return options
