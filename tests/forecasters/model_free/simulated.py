"""Example questions of the templates that `model_free` covers."""

import asyncio
from datetime import date, timedelta

import numpy as np

from foretell.data.series.series import Series, SeriesInMemory
from foretell.forecasters.base_rates.past import Past, PastAnswer
from foretell.forecasters.forecaster import Context, Forecaster, NoSeries
from foretell.questions.as_of import instant
from foretell.questions.forecast import Forecast
from foretell.questions.question import LastValue, Question, SeriesRef, Target

STATION = "meteofrance/TEMPERATURE/celsius.07149.D"


def dataset_question(source: str, subtype: str, id: str, due: str, text: str = "?", **more) -> Question:
    """A data-set question with dates after 7, 30, 90 and 180 days."""
    start, frozen = date.fromisoformat(due), date.fromisoformat(due) - timedelta(days=10)
    ends = [str(start + timedelta(days=days)) for days in more.pop("days", (7, 30, 90, 180))]
    value = more.pop("value", None)
    return Question(
        id=f"{source}/{id}",
        source=source,
        kind="dataset",
        subtype=subtype,
        text=text,
        due=due,
        targets=tuple(Target(id=end, resolves_at=end) for end in ends),
        last_value=None if value is None else LastValue(value=value, at=str(frozen)),
        **more,
    )


def events(kind: str, place: str, due: str, value: float, *, spike: bool = False) -> Question:
    """An ACLED question; `value` is as published."""
    words = "Will there be more than ten times as many" if spike else "Will there be more"
    subtype = "10x_spike" if spike else "increase"
    text = f"{words} '{kind}' in {place} for the 30 days before each resolution date?"
    return dataset_question("acled", subtype, f"{kind} {place} {subtype}", due, text, value=value)


def warmer(due: str, value: float | None = None, station: str = STATION, **more) -> Question:
    """A question about whether it will be warmer at a station."""
    ref = SeriesRef(provider="dbnomics", id=station)
    return dataset_question("dbnomics", "all", station.replace("/", "_"), due, value=value, series=ref, **more)


def rate(id: str, due: str, text: str = "Will the yield have increased?", source: str = "fred", **more) -> Question:
    """A question about whether a series will rise."""
    return dataset_question(source, "all", id, due, text, series=SeriesRef(provider=source, id=id), **more)


def answers_to(question: Question, *outcomes: int) -> list[PastAnswer]:
    """Return answers to a question's first targets, each known on its date."""
    return [
        PastAnswer(
            question_id=question.id,
            due=question.due,
            target_id=target.id,
            outcome=outcome,
            known_on=instant(target.id).date(),
        )
        for target, outcome in zip(question.targets, outcomes, strict=False)
    ]


def past_of(*askings: tuple[Question, tuple[int, ...]]) -> Past:
    """Return a past of questions with their outcomes."""
    answers = [answer for question, outcomes in askings for answer in answers_to(question, *outcomes)]
    return Past.of([question for question, _ in askings], answers)


NOTHING = Past()


def walk(id: str, until: str, seed: int = 0) -> Series:
    """Return a daily random walk."""
    days = np.arange("2019-01-01", until, dtype="M8[D]")
    return Series(id=id, days=days, values=50 + np.cumsum(np.random.default_rng(seed).normal(size=len(days))))


def forecast(question: Question, forecaster: Forecaster, *series: Series, past: Past | None = None) -> Forecast:
    """Return a forecaster's forecast on the due date with these series."""
    source = SeriesInMemory(series={item.id: item for item in series}) if series else NoSeries()
    return asyncio.run(forecaster.forecast(question, Context(as_of=question.as_of, series=source, past=past or Past())))
