"""A forecaster that asks a model once about a context, for a rationale and one probability for every outcome."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from foretell.forecasters.agent.agent import FORECAST
from foretell.forecasters.combine.clamp import Clamp, ClampName
from foretell.forecasters.combine.coherence import CoherentProbabilities, Distance, check_distance, coherent
from foretell.forecasters.forecaster import CannotForecast, Context, forecast_of
from foretell.forecasters.prompt.elicitation import (
    Elicitation,
    ElicitationCall,
    ElicitedAnswer,
    call_of,
    read_elicitation,
)
from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.forecasters.prompt.rendering import BOTH, ContextView, missing_part, read_view, readable
from foretell.frozen import frozen
from foretell.models.model import ModelError, ModelSettings
from foretell.models.names import ModelRole
from foretell.models.structured_output import ask_until_usable
from foretell.models.waiting import MORE_SECONDS, USUAL_SECONDS, WorkClock
from foretell.number_text import percent
from foretell.questions.forecast import Categorical, Forecast
from foretell.questions.question import Question
from foretell.questions.trace import BeliefRevised, ForecastMade

MADE = "one prompt on a shared context"
WIDE = Clamp(low=0, high=1)


@frozen
class CallResult:
    """The result of one call."""

    ask: ElicitationCall
    answer: ElicitedAnswer | None
    problem: str = ""
    """Why there is no answer."""

    def as_json(self) -> dict[str, Any]:
        """Plain data for the trace."""
        data: dict[str, Any] = {"ask": self.ask.name}
        if self.answer is None:
            return data | {"problem": self.problem}
        data |= {"p": dict(self.answer.p), "notes": list(self.answer.notes)}
        return data | ({"confidence": dict(self.answer.confidence)} if self.answer.confidence else {})


@frozen
class PromptForecaster:
    """Asks a model about a context, in one of several ways.

    For outcomes that exclude each other the forecast is the nearest set of probabilities with a valid sum. The stated
    probabilities are recorded in a `BeliefRevised` event and in the rationale. Other outcomes stay exactly as stated.
    """

    asks_models: ClassVar[bool] = True
    reads_context: ClassVar[bool] = True
    not_options: ClassVar[tuple[str, ...]] = ("role", "sampling")

    view: ContextView | str | None = None
    """The parts of a context that are shown; None for all that it has. A backtest refuses a question whose context
    lacks a part that is named here."""
    elicitation: Elicitation | str = "default"
    role: ModelRole = "agent"
    attempts: int = 3
    """Maximum number of attempts to get one answer that can be parsed."""
    sampling: ModelSettings | None = None
    """Sampling settings; None uses those of the run for the role."""
    distance: Distance = "squared"
    """The distance: `squared` never has a worse Brier score than the stated probabilities, `log` never gives zero."""
    clamp: Clamp | tuple[float, float] | ClampName = WIDE
    """Lowest and highest probability of a trial, or `once`: 0.02 and 0.98 of the answer alone."""
    seconds: float | None = None
    """Seconds a forecast may take, not counting time spent waiting for its turn or for money. None means
    `USUAL_SECONDS`, and more if the model is slow."""
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "view", self.view and read_view(self.view))
        object.__setattr__(self, "elicitation", read_elicitation(self.elicitation))
        object.__setattr__(self, "clamp", Clamp.read(self.clamp))
        check_distance(self.distance)
        if self.attempts < 1:
            raise ValueError(f"attempts = {self.attempts}: at least one is needed")

    @property
    def name(self) -> str:
        """The name shown in tables."""
        way = "" if self.way.name == "default" else f" {self.way.name}"
        return self.label or f"context {self.shown.name}{way}"

    @property
    def shown(self) -> ContextView:
        """The view as a `ContextView`."""
        return read_view(self.view or BOTH)

    @property
    def way(self) -> Elicitation:
        """The elicitation as an `Elicitation`."""
        return read_elicitation(self.elicitation)

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Return one probability for every outcome, or raise `CannotForecast`."""
        shared = await context.gathered(question)
        _check(shared, question, context)
        check_view(shared, self.view, context)
        seconds, asks = self.seconds, list(self.way.asks())
        replies = self.attempts * len(asks)
        clock = WorkClock(USUAL_SECONDS, replies=replies) if seconds is None else WorkClock(seconds)
        try:
            async with clock:
                results = await asyncio.gather(*(self._ask(ask, shared, context) for ask in asks))
        except TimeoutError:
            raise CannotForecast(MORE_SECONDS.format(clock.seconds)) from None
        answered = [(result.ask, result.answer) for result in results if result.answer is not None]
        stated = self.way.pool(answered)
        if stated is None:
            raise CannotForecast(_failure(results))
        return self._forecast(shared, context, results, stated)

    async def _ask(self, ask: ElicitationCall, shared: PredictionContext, context: Context) -> CallResult:
        call = call_of(ask, readable(shared) if context.marked else shared, self.shown, context.as_of.mode)
        # The slot distinguishes requests with the same text: trials and votes. Each is paid for once.
        request = context.request(
            self.role,
            call.messages,
            schema=call.schema,
            settings=self.sampling,
            slot=f"{shared.question.id}/trial {context.trial}/{ask.name}",
            call=ask.number,
        )
        try:
            answer = await ask_until_usable(context.model(self.role), request, call.read, attempts=self.attempts)
        except ModelError as error:
            return CallResult(ask=ask, answer=None, problem=str(error))
        return CallResult(ask=ask, answer=answer)

    def _forecast(
        self, shared: PredictionContext, context: Context, results: Sequence[CallResult], stated: Mapping[str, float]
    ) -> Forecast:
        question = shared.question
        fitted = fit(question, stated, self.distance)
        clamp = Clamp.read(self.clamp)
        p = dict(fitted.p) if clamp == WIDE else clamp.apply(fitted.p, question.exclusivity)
        reasons = _reasons(results)
        record = {
            "context": shared.digest,
            "view": self.shown.name,
            "elicitation": self.way.name,
            "stated": dict(stated),
            "coherent": dict(fitted.p),
            "rule": fitted.rule,
            "calls": [result.as_json() for result in results],
        }
        context.emit(BeliefRevised(step=1, p=dict(stated), reason=reasons, belief=record))
        context.emit(ForecastMade(p=p, how=MADE))
        # All numbers are on one line, which `without_numbers` removes.
        was = f"; stated {_numbers(stated)}" if fitted.moved > 0 else ""
        how = f"{self.way.name}, {self.shown.name}, context {shared.digest[:12]}{was}"
        return forecast_of(
            p,
            question,
            context,
            self.name,
            f"{FORECAST}{_numbers(p)} ({how}).\n\n{reasons}".strip(),
            trace=f"context {shared.digest}",
            distribution=Categorical(p=p, normalise=True) if question.exclusivity == "exactly one" else None,
            stated=dict(stated) if p != dict(stated) else None,
        )


def fit(question: Question, stated: Mapping[str, float], distance: Distance = "squared") -> CoherentProbabilities:
    """Make outcomes that exclude each other coherent, and leave all others unchanged.

    >>> from foretell.questions.question import Target
    >>> q = Question(id="q", source="own", text="Who?", due="2026-01-10", targets=(Target(id="a"), Target(id="b")))
    >>> fit(q, {"a": 0.7, "b": 0.5}).p, fit(replace(q, exclusivity="exactly one"), {"a": 0.7, "b": 0.5}).p
    ({'a': 0.7, 'b': 0.5}, {'a': 0.6, 'b': 0.4})
    """
    if question.exclusivity != "independent":
        result = coherent(question, stated, distance=distance)
        return replace(result, p={target: round(p, 12) for target, p in result.p.items()})
    return CoherentProbabilities(p=dict(stated), rules=(), gap=0.0, moved=0.0)


def check_view(shared: PredictionContext, view: ContextView | str | None, context: Context) -> None:
    """Raise `CannotForecast` if a backtest is to show what a context lacks. Live, the prompt says what is missing."""
    if view is not None and context.as_of.mode == "backtest" and (missing := missing_part(shared, read_view(view))):
        raise CannotForecast(f"the view {read_view(view).name!r} cannot be shown: {missing}")


def _check(shared: PredictionContext, question: Question, context: Context) -> None:
    # A context that an arena gathered live is shown unchanged in a backtest.
    if shared.as_of.at != context.as_of.at:
        raise ValueError(f"the context is as of {shared.as_of}, the question as of {context.as_of}")
    context_targets, question_targets = ([target.id for target in item.targets] for item in (shared.question, question))
    same = shared.question.id == question.id and shared.question.exclusivity == question.exclusivity
    if not same or context_targets != question_targets:
        raise ValueError(f"the context is about another question than {question.id}, or about other outcomes")


def _failure(results: Sequence[CallResult]) -> str:
    problems = [result.problem for result in results if result.problem]
    if len(results) == 1:
        return problems[0]
    return f"{len(problems)} of {len(results)} calls failed; the first: {problems[0]}"


def _reasons(results: Sequence[CallResult]) -> str:
    """Return the distinct rationales of all calls, with notes on failed calls and repaired answers."""
    answered = [(result.ask, result.answer) for result in results if result.answer is not None]
    texts = dict.fromkeys(answer.rationale for _, answer in answered if answer.rationale)
    notes = dict.fromkeys(f"({ask.name}: {note})" for ask, answer in answered for note in answer.notes)
    failures = [f"({result.ask.name} failed: {result.problem})" for result in results if result.answer is None]
    return "\n\n".join([*texts, *notes, *failures])


def _numbers(p: Mapping[str, float]) -> str:
    return ", ".join(f"{target} {percent(value, 1)}" for target, value in p.items())
