"""Run forecasters over questions, each as of its own date, and return every answer and every failure."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foretell.data.datasets.question_set import LateText, SetFilter
from foretell.data.series.series import SeriesSource
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.forecaster import Context, Forecaster, NoSeries, as_forecaster, attempt
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.runs.event_loop import run_sync
from foretell.runs.question_sets import Benchmark, open_benchmark
from foretell.runs.services import SeriesOnDemand
from foretell.runs.settings import load_settings
from foretell.tools.late_text import split_late

BacktestAnswer = Forecast | Failure
BacktestProgress = Callable[[int, int], None]
"""Called with (cells done, cells in all)."""


@dataclass(frozen=True, kw_only=True)
class Backtest:
    """The results of a backtest, by question and then by forecaster."""

    questions: tuple[Question, ...]
    answers: tuple[BacktestAnswer, ...]
    quarantined: tuple[Question, ...] = ()
    """Questions that were not asked because their own text was written after the moment of asking."""
    resolutions: tuple[Resolution, ...] = ()
    """The outcomes of the questions, if the question set knows them."""

    @property
    def forecasts(self) -> tuple[Forecast, ...]:
        """The answers that can be scored."""
        return tuple(a for a in self.answers if isinstance(a, Forecast))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The failures; they lower the completion rate."""
        return tuple(a for a in self.answers if isinstance(a, Failure))

    def __str__(self) -> str:
        """How many questions were asked and answered, and why others were not."""
        lines = [f"{len(self.questions)} questions, {len(self.forecasts)} forecasts, {len(self.failures)} failures"]
        reasons = Counter(f"{one.forecaster}: {one.error}" for one in self.failures)
        return "\n".join([*lines, *(f"{count} times {reason}" for reason, count in reasons.most_common(5))])


AnyForecaster = Forecaster | Callable[..., Any] | str
"""A forecaster, a function of a question (and a context), or a name with options such as "always:p=0.3"."""


def backtest(
    forecasters: AnyForecaster | Sequence[AnyForecaster],
    questions: Sequence[Question] | Benchmark | str | Path,
    *,
    series: SeriesSource | AbstractAsyncContextManager[SeriesSource] | None = None,
    past: Past | None = None,
    progress: BacktestProgress | None = None,
    late_text: LateText = "quarantine",
) -> Backtest:
    """Run every forecaster on every question, as of the question's due date. A failure never stops the rest.

    Questions may be given by name, as on the command line: a file or a data set. They then come with their outcomes,
    which `foretell.score` finds in the result, their series, and the past that forecasters may learn from.

    `past` is what forecasters may learn from: each question sees only what was known before its date. `series` may be a
    context manager, which is opened in the event loop of the forecasters and closed at the end. A question whose own
    text was written later is left out or, with `late_text`, kept as it is or cut.

    >>> from foretell.questions.question import Target
    >>> snow = Question(id="snow", source="own", text="Will it snow?", due="2026-01-10", targets=(Target(id="yes"),))
    >>> backtest(lambda question: 0.3, [snow]).forecasts[0].p
    {'yes': 0.3}
    """
    several = [forecasters] if isinstance(forecasters, str) or not isinstance(forecasters, Sequence) else forecasters
    chosen = [as_forecaster(one) for one in several]
    resolutions: tuple[Resolution, ...] = ()
    if isinstance(questions, str | Path):
        questions = open_benchmark(str(questions), wanted=SetFilter(late_text=late_text))
    if isinstance(questions, Benchmark):
        asked, late = questions.questions.questions, questions.questions.quarantined
        resolutions, past = questions.questions.resolutions, past or questions.past
        series = series or questions.series or (SeriesOnDemand(load_settings()) if questions.own else None)
    else:
        asked, late = split_late(questions, late_text)
    cells = [(question, forecaster) for question in asked for forecaster in chosen]

    async def run() -> list[BacktestAnswer]:
        answers: list[BacktestAnswer] = []
        opened = series if isinstance(series, AbstractAsyncContextManager) else nullcontext(series or NoSeries())
        async with opened as source:
            for question, forecaster in cells:
                known = (past or Past()).before(question.due.date())
                context = Context(as_of=question.as_of, series=source, past=known)
                answers.append(await attempt(forecaster, question, context))
                if progress:
                    progress(len(answers), len(cells))
        return answers

    answers = tuple(run_sync(run()))
    return Backtest(questions=tuple(asked), answers=answers, quarantined=tuple(late), resolutions=resolutions)
