"""Questions made out of time series: will the value be higher on a later day than on the day of asking?

The form is that of ForecastBench's data-set questions, so any series becomes a benchmark of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from foretell.data.datasets.question_set import QuestionSet, count_notes
from foretell.data.series.series import Series
from foretell.questions.as_of import instant
from foretell.questions.question import Question, SeriesRef, Target
from foretell.questions.resolution import Resolution


@dataclass(frozen=True, kw_only=True)
class SeriesQuestionPlan:
    """When to ask about a series, and how far ahead."""

    dues: tuple[date, ...]
    horizons: tuple[int, ...]
    """In days. Those shorter than the spacing of the observations are left out: nothing could have changed."""
    least_history: int = 24
    """Observations that must be known on the due date."""


@dataclass(frozen=True, kw_only=True)
class SeriesSubject:
    """The series asked about, and what to call it."""

    series: Series
    ref: SeriesRef
    title: str
    """Reads well after "Will": "the sea surface temperature"."""
    source: str

    @property
    def id(self) -> str:
        """The id of its questions."""
        return f"{self.source}/{self.series.id}"


def due_dates(first: date, last: date, every_days: int) -> tuple[date, ...]:
    """Days from first to last at a fixed distance; one above the longest horizon keeps the rounds apart.

    >>> [d.isoformat() for d in due_dates(date(2000, 1, 1), date(2002, 1, 1), 400)]
    ['2000-01-01', '2001-02-04']
    """
    count = (last - first).days // every_days + 1
    return tuple(first + timedelta(days=i * every_days) for i in range(max(0, count)))


def questions_from(subject: SeriesSubject, asking: SeriesQuestionPlan) -> QuestionSet:
    """One question per due date with one target per horizon, and the outcomes the series itself gives."""
    counts = {"due dates with too little history": 0, "targets beyond the end of the series": 0}
    pairs = [pair for due in asking.dues if (pair := _ask(subject, asking, due, counts))]
    return QuestionSet(
        name=subject.id,
        questions=tuple(question for question, _ in pairs),
        resolutions=tuple(resolution for _, found in pairs for resolution in found),
        notes=count_notes(counts),
    )


def _ask(
    subject: SeriesSubject, asking: SeriesQuestionPlan, due: date, counts: dict[str, int]
) -> tuple[Question, list[Resolution]] | None:
    series = subject.series
    known = int(np.searchsorted(series.days, np.asarray(due, "M8[D]"), side="right"))
    if known < asking.least_history:
        counts["due dates with too little history"] += 1
        return None
    days = list(_resolution_days(series, due, asking.horizons))
    counts["targets beyond the end of the series"] += sum(not inside for _, inside in days)
    dates = [day for day, inside in days if inside]
    if not dates:
        return None
    reference = series.at(due)
    assert reference is not None
    question = Question(
        id=subject.id,
        source=subject.source,
        kind="dataset",
        subtype="rise",
        text=f"Will {subject.title} be higher on the resolution date than on {due.isoformat()}?",
        criteria="Compares the last observation on or before each of the two days; an equal value counts as no.",
        due=instant(due),
        targets=tuple(Target(id=day.isoformat(), resolves_at=instant(day)) for day in dates),
        # What happens after one date moves all series together; what happens after another does not.
        cluster=due.isoformat(),
        series=subject.ref,
    )
    return question, [_resolution(series, question, day, reference) for day in dates]


def _resolution_days(series: Series, due: date, horizons: Sequence[int]) -> Iterator[tuple[date, bool]]:
    last: date = series.days[-1].astype(date)
    spacing = float(np.median(np.diff(series.days).astype(int)))
    for horizon in horizons:
        if horizon >= 0.9 * spacing:
            day = due + timedelta(days=horizon)
            yield day, day <= last


def _resolution(series: Series, question: Question, day: date, reference: float) -> Resolution:
    value = series.at(day)
    assert value is not None
    return Resolution(
        question_id=question.id,
        target_id=day.isoformat(),
        due=question.due,
        outcome=int(value > reference),
        resolved_at=instant(day),
        provenance=f"{value:g} against {reference:g}",
    )
