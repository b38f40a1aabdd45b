"""The demonstration data set: questions about real series that ship with a library, so that nothing is downloaded."""

from dataclasses import dataclass
from datetime import date

from foretell.data.datasets.dataset import Dataset, DatasetRequest
from foretell.data.datasets.from_series import SeriesQuestionPlan, SeriesSubject, due_dates, questions_from
from foretell.data.datasets.question_set import QuestionSet, union
from foretell.data.series.local import PackagedSeries
from foretell.questions.question import SeriesRef


@dataclass(frozen=True, kw_only=True)
class DemoSchedule:
    """How often the demo asks about some of the packaged series, and how far ahead."""

    every_days: int
    """More than the longest horizon, so that no two rounds look at the same stretch."""
    horizons: tuple[int, ...]


DEMO = {
    "elnino": DemoSchedule(every_days=400, horizons=(30, 90, 180, 365)),
    "co2": DemoSchedule(every_days=400, horizons=(7, 30, 90, 180, 365)),
    "macro": DemoSchedule(every_days=400, horizons=(90, 180, 365)),
    "sunspots": DemoSchedule(every_days=1200, horizons=(365, 1095)),
    "nile": DemoSchedule(every_days=1200, horizons=(365, 1095)),
}
BURN_IN = 0.4
"""Share of each series that is history before the first question."""


def demo(request: DatasetRequest | None = None) -> Dataset:
    """Real series that ship inside statsmodels, turned into questions of ForecastBench's form."""
    del request
    source = PackagedSeries()
    found = union("demo", [_demo_questions(source, id) for id in source.ids()])
    return Dataset(questions=found, history=found, series=source)


def _demo_questions(source: PackagedSeries, id: str) -> QuestionSet:
    series, name = source.series(id), id.partition(".")[0]
    schedule = DEMO[name]
    first, last = series.days[int(BURN_IN * len(series))].astype(date), series.days[-1].astype(date)
    subject = SeriesSubject(series=series, ref=SeriesRef(provider=name, id=id), title=source.title(id), source=name)
    return questions_from(
        subject, SeriesQuestionPlan(dues=due_dates(first, last, schedule.every_days), horizons=schedule.horizons)
    )
