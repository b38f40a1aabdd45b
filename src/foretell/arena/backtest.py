"""Run forecasters over questions, each seen as of its own date, and keep every answer and every failure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from foretell.arena.waiting import waited
from foretell.forecasters.forecaster import CannotForecast, Forecaster, NoSeries, RunContext
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.sources.series import SeriesSource

Answer = Forecast | Failure
Progress = Callable[[int, int], None]
"""Called with (cells done, cells in all)."""


@dataclass(frozen=True, kw_only=True)
class Backtest:
    """What a backtest produced, in the order of questions, then forecasters."""

    questions: tuple[Question, ...]
    answers: tuple[Answer, ...]

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
    progress: Progress | None = None,
) -> Backtest:
    """Every forecaster on every question, as of the question's due date; a failure never stops the rest."""
    total = len(questions) * len(forecasters)

    async def run() -> list[Answer]:
        answers: list[Answer] = []
        for question, forecaster in _cells(questions, forecasters):
            answers.append(await _answer(question, forecaster, series))
            if progress:
                progress(len(answers), total)
        return answers

    return Backtest(questions=tuple(questions), answers=tuple(waited(run())))


def _cells(questions: Sequence[Question], forecasters: Sequence[Forecaster]) -> Iterator[tuple[Question, Forecaster]]:
    return ((question, forecaster) for question in questions for forecaster in forecasters)


async def _answer(question: Question, forecaster: Forecaster, series: SeriesSource | None) -> Answer:
    context = RunContext(as_of=question.as_of, series=series or NoSeries())
    try:
        forecast = await forecaster.forecast(question, context)
    except CannotForecast as reason:
        return Failure(question_id=question.id, forecaster=forecaster.name, as_of=context.as_of, error=str(reason))
    missing = {target.id for target in question.targets} - forecast.p.keys()
    if missing:
        error = f"no probability for target {min(missing)}"
        return Failure(question_id=question.id, forecaster=forecaster.name, as_of=context.as_of, error=error)
    return forecast
