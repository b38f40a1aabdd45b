"""Run forecasters over questions, each as of its own date, and return every answer and every failure."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.data.datasets.question_set import LateText, SetFilter
from foretell.data.series.series import SeriesSource
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.forecaster import Context, Forecaster, NoSeries, as_forecaster, attempt
from foretell.questions.errors import InputError, MissingExtra
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.request import errors_name_fields
from foretell.runs.event_loop import run_sync
from foretell.runs.question_sets import Benchmark, open_benchmark
from foretell.runs.services import SeriesOnDemand
from foretell.runs.settings import load_settings
from foretell.tools.late_text import split_late

if TYPE_CHECKING:
    from pandas import DataFrame

BacktestAnswer = Forecast | Failure
BacktestProgress = Callable[[int, int], None]
"""Called with (cells done, cells in all)."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Backtest:
    """The result of a backtest: every forecast and failure, in the order of questions, then forecasters.

    Pass it to `foretell.score`; `to_frame` returns the forecasts as a data frame.
    """

    questions: tuple[Question, ...]
    answers: tuple[BacktestAnswer, ...]
    quarantined: tuple[Question, ...] = ()
    """Questions that were not asked, because their own text was written after their due date."""
    resolutions: tuple[Resolution, ...] = ()
    """The known outcomes, if the questions come from a named set."""

    @property
    def forecasts(self) -> tuple[Forecast, ...]:
        """The successful answers."""
        return tuple(a for a in self.answers if isinstance(a, Forecast))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The questions without an answer, each with its reason. They lower the completion rate."""
        return tuple(a for a in self.answers if isinstance(a, Failure))

    def rows(self) -> list[dict[str, Any]]:
        """One row per forecaster, question and target."""
        return [
            {"forecaster": one.forecaster, "question": one.question_id, "as_of": one.as_of.at, "target": target, "p": p}
            for one in self.forecasts
            for target, p in one.p.items()
        ]

    def to_frame(self) -> "DataFrame":
        """The rows as a pandas data frame."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise MissingExtra("a data frame", "notebook") from None
        return DataFrame(self.rows())

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """The numbers of questions, forecasts and failures, and the most frequent reasons for failures."""
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
    """Run every forecaster on every question, as of the question's due date.

    A question that a forecaster cannot answer (it raises `CannotForecast`, or returns no valid probability) becomes a
    `Failure` in the result; any other exception is a bug in the forecaster and is raised.

    Args:
        forecasters: One or several of: a name with options ("knn", "always:p=0.3"), a function of a question, or an
            object with a `name` and an `async forecast(question, context)`.
        questions: A list of `Question`, a file, or the name of a question set, as on the command line. Named sets
            come with outcomes (which `foretell.score` finds in the result), series and past questions.
        series: Where forecasters read time series. A context manager is opened for the run and closed afterwards.
        past: Earlier questions with outcomes to learn from. Each question sees only what was known before its date.
        progress: Called with the number of answers so far and in total.
        late_text: What to do with a question whose own text was written after its due date: leave it out
            ("quarantine"), keep it, or cut the late passages.

    >>> from foretell.questions.question import Target
    >>> snow = Question(id="snow", source="own", text="Will it snow?", due="2026-01-10", targets=(Target(id="yes"),))
    >>> backtest(lambda question: 0.3, [snow]).forecasts[0].p
    {'yes': 0.3}
    """
    several = [forecasters] if isinstance(forecasters, str) or not isinstance(forecasters, Sequence) else forecasters
    chosen = [as_forecaster(one) for one in several]
    resolutions: tuple[Resolution, ...] = ()
    if isinstance(questions, str | Path):
        with errors_name_fields():
            questions = open_benchmark(str(questions), wanted=SetFilter(late_text=late_text))
    if isinstance(questions, Benchmark):
        asked, late = questions.questions.questions, questions.questions.quarantined
        resolutions, past = questions.questions.resolutions, past or questions.past
        series = series or questions.series or (SeriesOnDemand(load_settings()) if questions.own else None)
    else:
        wrong = [one for one in questions if not isinstance(one, Question)]  # pyright: ignore[reportUnnecessaryIsInstance]
        if wrong:
            hint = "give foretell.Question objects, a file of questions, or the name of a question set"
            raise InputError(f"{wrong[0]!r} is not a Question", hint=hint)
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
