"""The demonstration data set: questions about real series that ship with a library, so that nothing is downloaded.

The questions have the form of ForecastBench's data-set questions: will the value be higher on a later day than on the
day of asking? Any series can be made into a benchmark this way.
"""

from datetime import date, timedelta
from functools import cache

import numpy as np

from foretell.data.datasets.dataset import Dataset, DatasetRequest
from foretell.data.datasets.question_set import QuestionSet, QuestionSetBuilder, asked_key, union
from foretell.data.series.local import PackagedSeries
from foretell.data.series.series import Series
from foretell.questions.as_of import instant
from foretell.questions.question import Question, SeriesRef, Target
from foretell.questions.resolution import Resolution

DEMO: dict[str, tuple[int, tuple[int, ...]]] = {
    "elnino": (400, (30, 90, 180, 365)),
    "co2": (400, (7, 30, 90, 180, 365)),
    "macro": (400, (90, 180, 365)),
    "sunspots": (1200, (365, 1095)),
    "nile": (1200, (365, 1095)),
}
"""Days between two rounds, and the horizons of each in days; no two rounds cover the same period."""
BURN_IN = 0.4
"""Share of each series that is history before the first question."""
LEAST_HISTORY = 24
"""Minimum number of observations known on the due date."""


def demo(request: DatasetRequest | None = None) -> Dataset:
    """Return questions of ForecastBench's form about real series that ship inside statsmodels."""
    del request
    return _built()


@cache
def _built() -> Dataset:
    source = PackagedSeries()
    sets: list[QuestionSet] = []
    for id in source.ids():
        series, name = source.series(id), id.partition(".")[0]
        spacing, horizons = DEMO[name]
        first, last = series.days[int(BURN_IN * len(series))].astype(date), series.days[-1].astype(date)
        dues = [first + timedelta(days=days) for days in range(0, (last - first).days + 1, spacing)]
        sets.append(questions_from(series, SeriesRef(provider=name, id=id), source.title(id), dues, horizons))
    questions = union("demo", sets)
    return Dataset(questions=questions, history=questions, series=source)


def questions_from(
    series: Series, ref: SeriesRef, title: str, dues: list[date], horizons: tuple[int, ...]
) -> QuestionSet:
    """Return one question per due date, with one target per horizon in days, and their outcomes from the series.

    Horizons shorter than the spacing of the observations are left out, because nothing could have changed. The title
    must read well after "Will": "the sea surface temperature".
    """
    id, last = f"{ref.provider}/{series.id}", series.days[-1].astype(date)
    spacing = float(np.median(np.diff(series.days).astype(int)))
    set_builder = QuestionSetBuilder()
    for due in dues:
        if np.searchsorted(series.days, np.asarray(due, "M8[D]"), side="right") < LEAST_HISTORY:
            set_builder.counts["due dates with too little history"] += 1
            continue
        ahead = [due + timedelta(days=horizon) for horizon in horizons if horizon >= 0.9 * spacing]
        days = [day for day in ahead if day <= last]
        set_builder.counts["targets beyond the end of the series"] += len(ahead) - len(days)
        if not days:
            continue
        question = Question(
            id=id,
            source=ref.provider,
            kind="dataset",
            subtype="rise",
            text=f"Will {title} be higher on the resolution date than on {due.isoformat()}?",
            criteria="Compares the last observation on or before each of the two days; an equal value counts as no.",
            due=instant(due),
            targets=tuple(Target(id=day.isoformat(), resolves_at=instant(day)) for day in days),
            # Events after a date move all series together; series of different dates are independent.
            cluster=due.isoformat(),
            series=ref,
        )
        set_builder.questions[asked_key(question)] = question
        set_builder.resolutions += [_resolution(series, question, due, day) for day in days]
    return set_builder.build(id)


def _resolution(series: Series, question: Question, due: date, day: date) -> Resolution:
    before, after = series.at(due), series.at(day)
    assert before is not None
    assert after is not None
    return Resolution(
        question_id=question.id,
        target_id=day.isoformat(),
        due=question.due,
        outcome=int(after > before),
        resolved_at=instant(day),
        provenance=f"{after:g} against {before:g}",
    )
