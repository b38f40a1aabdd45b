"""Run forecasters over questions, each as of its own date, and return every answer and every failure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from foretell.agent import Agent
from foretell.data.datasets.question_set import LeakyQuestions, SetFilter
from foretell.data.series.series import SeriesSource
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.forecaster import Context, Forecaster, NoSeries, as_forecaster, attempt
from foretell.forecasters.prompt.prediction_context import PredictionContexts
from foretell.frozen import frozen
from foretell.interface import suggesting
from foretell.python_calls import python_errors
from foretell.questions.backtest import Backtest, BacktestAnswer
from foretell.questions.errors import InputError, WrongValue, said
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.runs.event_loop import run_sync
from foretell.runs.question_sets import AskedQuestions, Benchmark, open_benchmark
from foretell.runs.services import SeriesOnDemand
from foretell.runs.settings import Settings, check_settings, load_settings
from foretell.tools.post_cutoff_text import split_leaky

if TYPE_CHECKING:
    from foretell.runs.agent_runs import AgentRun

BacktestProgress = Callable[[int, int], None]
"""Called with the number of answers so far and in total."""


Answer = float | Mapping[str, float] | Forecast
ForecastFunction = (
    Callable[[Question], Answer]
    | Callable[[Question], Awaitable[Answer]]
    | Callable[[Question, Context], Answer]
    | Callable[[Question, Context], Awaitable[Answer]]
)
"""A function of a question, or of a question and a context. It may be `async`."""


class HasForecast(Protocol):
    """An object with a method `forecast`."""

    @property
    def forecast(self) -> ForecastFunction:
        """The forecasting function."""
        ...


AnyForecaster = str | Agent | Forecaster | HasForecast | ForecastFunction
"""A name with options such as "constant:p=0.3", an agent, an object with a method `forecast`, or a function."""
AnyQuestions = Sequence[Question] | Benchmark | str | Path


@suggesting
@python_errors()
def backtest(  # noqa: PLR0913 - one parameter per setting
    forecasters: AnyForecaster | Sequence[AnyForecaster],
    questions: AnyQuestions,
    *,
    series: SeriesSource | AbstractAsyncContextManager[SeriesSource] | None = None,
    past: Past | None = None,
    progress: BacktestProgress | None = None,
    limit: int | None = None,
    leaky_questions: LeakyQuestions = "exclude",
    settings: Settings | None = None,
) -> Backtest:
    """Run every forecaster on every question, as of the question's due date.

    A question that a forecaster cannot answer, because it raises an exception or returns no valid probability, becomes
    a `Failure` in the result, with the id of the question and the reason.

    Args:
        forecasters: One or several of: a name with options ("knn", "constant:p=0.3"), a function of a question, or of
            a question and a context, an object with a method `forecast` like that, or an `Agent`. They may be `async`.
            What an agent does is stored as a run; what it has answered before is not asked again.
        questions: A list of `Question`, a file, or the name of a question set. Named sets come with outcomes (which
            `foretell.score` finds in the result), series and past questions.
        series: Where forecasters read time series. A context manager is opened for the run and closed afterwards.
        past: Earlier questions with outcomes to learn from. Each question sees only what was known before its date.
        progress: Called with the number of answers so far and in total.
        limit: Ask only this many questions, the first ones.
        leaky_questions: What to do with a question whose own text was written after its due date: leave it out
            ("exclude"), keep it, or redact the later passages.
        settings: Settings of this machine, such as its home folder, instead of its settings file.

    Returns:
        A `Backtest` with `forecasts`, `failures`, `questions` and, for a named set, `resolutions`.

    Raises:
        InputError: If there is no such forecaster or question set, or a setting is wrong.

    >>> from foretell.questions.question import Target
    >>> snow = Question(id="snow", source="own", text="Will it snow?", due="2026-01-10", targets=(Target(id="yes"),))
    >>> backtest(lambda question: 0.3, [snow]).forecasts[0].p
    {'yes': 0.3}
    """
    return run_sync(_backtest(_plan(forecasters, questions, series, past, limit, leaky_questions, settings), progress))


@suggesting
async def abacktest(  # noqa: PLR0913 - one parameter per setting
    forecasters: AnyForecaster | Sequence[AnyForecaster],
    questions: AnyQuestions,
    *,
    series: SeriesSource | AbstractAsyncContextManager[SeriesSource] | None = None,
    past: Past | None = None,
    progress: BacktestProgress | None = None,
    limit: int | None = None,
    leaky_questions: LeakyQuestions = "exclude",
    settings: Settings | None = None,
) -> Backtest:
    """Run every forecaster on every question, like `backtest`, without blocking the event loop.

    Parameters, result and errors are those of `backtest`. Cancelling it cancels the work.
    """
    with python_errors():
        plan = await asyncio.to_thread(_plan, forecasters, questions, series, past, limit, leaky_questions, settings)
        return await _backtest(plan, progress)


@frozen
class _Plan:
    """What a backtest works on."""

    forecasters: Mapping[int, Forecaster]
    """By place in the list; those that answer question by question."""
    agents: Mapping[int, AgentRun]
    questions: tuple[Question, ...]
    excluded: tuple[Question, ...]
    resolutions: tuple[Resolution, ...]
    contexts: PredictionContexts | None
    series: SeriesSource | AbstractAsyncContextManager[SeriesSource] | None
    past: Past


def _plan(  # noqa: PLR0913 - the parameters of a backtest
    forecasters: AnyForecaster | Sequence[AnyForecaster],
    questions: AnyQuestions,
    series: SeriesSource | AbstractAsyncContextManager[SeriesSource] | None,
    past: Past | None,
    limit: int | None,
    leaky_questions: LeakyQuestions,
    settings: Settings | None,
) -> _Plan:
    several = forecasters if isinstance(forecasters, Sequence) and not isinstance(forecasters, str) else [forecasters]
    given = [item if isinstance(item, Agent) else as_forecaster(item) for item in several]
    if not given:
        raise InputError("is empty", column="forecasters", hint="give a name, a function of a question, or an Agent")
    settings = load_settings() if settings is None else check_settings(settings)
    try:
        wanted = SetFilter(limit=limit, leaky_questions=leaky_questions)
    except ValueError as error:
        raise InputError(said(error)) from None
    named = str(questions) if isinstance(questions, str | Path) else None
    own_past = past
    resolutions: tuple[Resolution, ...] = ()
    contexts = None
    if isinstance(questions, str | Path):
        questions = open_benchmark(str(questions), wanted=wanted)
    if isinstance(questions, Benchmark):
        chosen_questions, excluded = questions.questions.questions, questions.questions.excluded
        resolutions, past = questions.questions.resolutions, past or questions.past
        contexts = questions.contexts
        series = series or questions.series or (SeriesOnDemand(settings) if questions.own else None)
    else:
        questions = tuple(questions) if isinstance(questions, Iterable) else (questions,)  # pyright: ignore[reportUnnecessaryIsInstance]
        wrong = [question for question in questions if not isinstance(question, Question)]  # pyright: ignore[reportUnnecessaryIsInstance]
        if wrong:
            hint = "give foretell.Question objects, a file of questions, or the name of a question set"
            raise InputError(f"{wrong[0]!r} is not a Question", hint=hint)
        chosen_questions, excluded = split_leaky(questions, leaky_questions)
    benchmark = questions if isinstance(questions, Benchmark) and named is None else None
    chosen_questions = tuple(chosen_questions)[:limit]
    _check_names([item.label if isinstance(item, Agent) else item.name for item in given])
    asked = AskedQuestions(
        questions=chosen_questions,
        dataset=named,
        wanted=wanted,
        benchmark=benchmark,
        past=own_past,
    )
    return _Plan(
        forecasters={place: item for place, item in enumerate(given) if not isinstance(item, Agent)},
        agents=_agent_runs(given, settings, asked),
        questions=chosen_questions,
        excluded=tuple(excluded),
        resolutions=resolutions,
        contexts=contexts,
        series=series,
        past=past or Past(),
    )


def _agent_runs(
    forecasters: Sequence[Forecaster | Agent], settings: Settings, asked: AskedQuestions
) -> Mapping[int, AgentRun]:
    """Return the prepared runs of the agents by place in the list."""
    agents = {place: item for place, item in enumerate(forecasters) if isinstance(item, Agent)}
    if not agents:
        return {}
    from foretell.runs.agent_runs import prepare_agent  # Loads models and tools, which other forecasters do not need.

    return {place: prepare_agent(agent, asked, settings) for place, agent in agents.items()}


def _check_names(names: Sequence[str]) -> None:
    if twice := next((name for name in names if names.count(name) > 1), None):
        hint = "name them apart, such as Agent(name=…)"
        raise InputError(f"two forecasters are called {twice!r}", column="forecasters", hint=hint)


async def _backtest(plan: _Plan, progress: BacktestProgress | None) -> Backtest:
    if progress is not None and not callable(progress):
        raise InputError("must be a function", column="progress")
    answers: dict[tuple[int, int], BacktestAnswer] = {}
    total = len(plan.questions) * (len(plan.forecasters) + len(plan.agents))

    def watch(done: int) -> None:
        if progress:
            progress(len(answers) + done, total)

    series = plan.series
    opened = series if isinstance(series, AbstractAsyncContextManager) else nullcontext(series or NoSeries())
    async with opened as source:
        for number, question in enumerate(plan.questions):
            for place, forecaster in plan.forecasters.items():
                known = plan.past.before(question.due.date())
                context = Context(as_of=question.as_of, series=source, past=known, contexts=plan.contexts)
                answers[number, place] = await _answer(forecaster, question, context)
                watch(0)
    for place, agent in plan.agents.items():
        given = await agent.answers(plan.questions, watch)
        answers |= {(number, place): answer for number, answer in enumerate(given)}
    return Backtest(
        questions=plan.questions,
        answers=tuple(answers[key] for key in sorted(answers)),
        excluded=plan.excluded,
        resolutions=plan.resolutions,
        runs={agent.name: agent.prepared.spec.id for agent in plan.agents.values()},
    )


async def _answer(forecaster: Forecaster, question: Question, context: Context) -> BacktestAnswer:
    """Return the answer to a question; an exception of the forecaster is its failure to answer."""
    try:
        return await attempt(forecaster, question, context)
    except Exception as error:
        if isinstance(error, InputError) and not isinstance(error, WrongValue):
            raise  # Wrong settings fail every question.
        reason = f"{type(error).__name__}: {error}".removesuffix(": ")
        return Failure(
            question_id=question.id, forecaster=forecaster.name, as_of=context.as_of, error=reason, trial=context.trial
        )
