"""Run forecasters over questions, each seen as of its own date, and keep every answer and every failure."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from foretell.data.series.series import SeriesSource
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.forecaster import CannotForecast, Context, Forecaster, NoSeries
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question

# Waiting for a coroutine from ordinary code, also inside a notebook.

T = TypeVar("T")


def run_sync(work: Coroutine[Any, Any, T], run: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run) -> T:
    """The result. Where a loop is running already, as in a notebook, the work gets a thread and a loop of its own.

    >>> run_sync(asyncio.sleep(0, "done"))
    'done'
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run(work)
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(run, work).result()


BacktestAnswer = Forecast | Failure
BacktestProgress = Callable[[int, int], None]
"""Called with (cells done, cells in all)."""


@dataclass(frozen=True, kw_only=True)
class Backtest:
    """What a backtest produced, in the order of questions, then forecasters."""

    questions: tuple[Question, ...]
    answers: tuple[BacktestAnswer, ...]

    @property
    def forecasts(self) -> tuple[Forecast, ...]:
        """The answers that can be scored."""
        return tuple(a for a in self.answers if isinstance(a, Forecast))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The answers that broke; they lower the completion rate."""
        return tuple(a for a in self.answers if isinstance(a, Failure))


def backtest(
    questions: Sequence[Question],
    forecasters: Sequence[Forecaster],
    *,
    series: SeriesSource | None = None,
    past: Past | None = None,
    progress: BacktestProgress | None = None,
) -> Backtest:
    """Every forecaster on every question, as of the question's due date; a failure never stops the rest.

    `past` is what forecasters may learn from: each question is shown only what was known before its date.
    """
    total = len(questions) * len(forecasters)

    async def run() -> list[BacktestAnswer]:
        answers: list[BacktestAnswer] = []
        for question, forecaster in _cells(questions, forecasters):
            answers.append(await _answer(question, forecaster, series or NoSeries(), past or Past()))
            if progress:
                progress(len(answers), total)
        return answers

    return Backtest(questions=tuple(questions), answers=tuple(run_sync(run())))


def _cells(questions: Sequence[Question], forecasters: Sequence[Forecaster]) -> Iterator[tuple[Question, Forecaster]]:
    return ((question, forecaster) for question in questions for forecaster in forecasters)


async def _answer(question: Question, forecaster: Forecaster, series: SeriesSource, past: Past) -> BacktestAnswer:
    context = Context(as_of=question.as_of, series=series, past=past.before(question.due.date()))
    try:
        forecast = await forecaster.forecast(question, context)
    except CannotForecast as reason:
        return Failure(question_id=question.id, forecaster=forecaster.name, as_of=context.as_of, error=str(reason))
    missing = {target.id for target in question.targets} - forecast.p.keys()
    if missing:
        error = f"no probability for target {min(missing)}"
        return Failure(question_id=question.id, forecaster=forecaster.name, as_of=context.as_of, error=error)
    return forecast
