"""Section of the study of trajectories: the time spans of the questions, from when they open to when they end."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import median

from foretell.number_text import number, plural
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.report.charts.timelines import DatedSpan, spans_plot
from foretell.report.numbers import CellValue
from foretell.report.study import StudyChart, column, count, table, words
from foretell.report.study_result import StudyResult
from foretell.studies.cases import TracedTrial

ALL = "all"


def question_span(question: Question) -> DatedSpan | None:
    """Return the span from when a question opened, or was asked, to its last date; None if it has none."""
    ends = [target.resolves_at for target in question.targets if target.resolves_at is not None]
    end = max(ends) if ends else question.closes_at
    start = question.opens_at or question.due
    return None if end is None or end < start else DatedSpan(name=question.text, start=start, end=end)


def spans_section(by_run: Mapping[str, Sequence[TracedTrial]]) -> StudyResult:
    """Draw the questions of the runs as a time line. Raises InputError if no question has an end."""
    questions: dict[tuple[str, datetime], Question] = {}
    for trials in by_run.values():
        questions |= {(trial.asked.id, trial.asked.due): trial.asked for trial in trials if trial.asked is not None}
    spans = {key: span for key, question in questions.items() if (span := question_span(question)) is not None}
    if not spans:
        raise InputError("no question says when it ends")
    by_source: dict[str, list[DatedSpan]] = {ALL: [*spans.values()]}
    for key, span in spans.items():
        by_source.setdefault(questions[key].source, []).append(span)
    if len(by_source) == 2:
        del by_source[ALL]
    rows: dict[str, list[CellValue]] = {
        source: [
            len(group),
            min(span.start for span in group).date().isoformat(),
            max(span.end for span in group).date().isoformat(),
            *(measure([span.days for span in group]) for measure in (min, median, max)),
        ]
        for source, group in by_source.items()
    }
    columns = (
        *(count("questions"), words("first opens"), words("last ends")),
        *(column(f"{name} days", decimals=0) for name in ("fewest", "median", "most")),
    )
    days = [span.days for span in spans.values()]
    lasts = f"last from {number(min(days), 0)} to {number(max(days), 0)} days, half of them at most"
    return StudyResult(
        name="trajectories",
        title="Time spans of the questions",
        sentences=(f"{plural(len(spans), 'question')} {lasts} {number(median(days), 0)}.",),
        tables=(
            table(
                "Time spans of the questions",
                "Source",
                columns,
                rows,
                caption="From when a question opened, or was asked.",
            ),
        ),
        charts=(
            StudyChart(
                name="spans", title="Time spans", chart=spans_plot([*spans.values()], "Time spans of the questions")
            ),
        ),
        notes=_without_end(len(questions) - len(spans)),
    )


def _without_end(missing: int) -> tuple[str, ...]:
    return (f"{plural(missing, 'question')} {'has' if missing == 1 else 'have'} no end.",) if missing else ()
