"""The result of a backtest: every answer and every failure."""

from collections.abc import Mapping
from dataclasses import field
from html import escape
from typing import Any

from foretell.frozen import frozen
from foretell.number_text import plural
from foretell.questions.codec import plain_data
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.questions.tabular import Tabular, rows_as_html

BacktestAnswer = Forecast | Failure


@frozen
class Backtest(Tabular):
    """The result of a backtest: every forecast and failure, in the order of questions, then forecasters.

    Pass it to `foretell.score`; `to_pandas` returns the forecasts as a data frame.
    """

    questions: tuple[Question, ...]
    answers: tuple[BacktestAnswer, ...]
    excluded: tuple[Question, ...] = ()
    """Questions that were not asked, because their own text was written after their due date."""
    resolutions: tuple[Resolution, ...] = ()
    """The known outcomes, if the questions come from a named set."""
    runs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Agent → the id of the run that stores its steps, for `foretell.show`."""

    @property
    def forecasts(self) -> tuple[Forecast, ...]:
        """The successful answers."""
        return tuple(answer for answer in self.answers if isinstance(answer, Forecast))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The questions without an answer, each with its reason. They lower the completion rate."""
        return tuple(answer for answer in self.answers if isinstance(answer, Failure))

    def rows(self) -> list[dict[str, Any]]:
        """One row per forecaster, question and target."""
        return [
            {
                "forecaster": forecast.forecaster,
                "question": forecast.question_id,
                "as_of": forecast.as_of.at,
                "target": target,
                "p": p,
            }
            for forecast in self.forecasts
            for target, p in forecast.p.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the forecasts and failures as plain data."""
        return {"answers": [plain_data(answer) for answer in self.answers]}

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>{rows_as_html(self.rows()[:SHOWN_ROWS])}"

    def __str__(self) -> str:
        """The numbers of questions, forecasts and failures, the runs, and the most frequent reasons for failures."""
        counts = {"question": self.questions, "forecast": self.forecasts, "failure": self.failures}
        lines = [", ".join(plural(len(of), noun) for noun, of in counts.items())]
        reasons: dict[str, list[str]] = {}
        for failure in self.failures:
            reasons.setdefault(f"{failure.forecaster}: {failure.error}", []).append(failure.question_id)
        frequent = sorted(reasons.items(), key=lambda reason: -len(reason[1]))[:SHOWN_REASONS]
        lines += [f"{agent}: run {run}" for agent, run in self.runs.items()]
        return "\n".join([*lines, *(f"{reason} ({_some(questions)})" for reason, questions in frequent)])


SHOWN_ROWS, SHOWN_REASONS, SHOWN_QUESTIONS = 20, 5, 3


def _some(questions: list[str]) -> str:
    """Return the first few of the questions that failed for one reason."""
    more = len(questions) - SHOWN_QUESTIONS
    return f"question {', '.join(questions[:SHOWN_QUESTIONS])}{f' and {more} more' if more > 0 else ''}"
