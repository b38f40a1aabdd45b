"""Estimates without a model, with which the trials of a run are combined where a question has no market price."""

import asyncio
from collections.abc import Collection, Sequence

from foretell.data.series.series import SeriesSource
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.forecaster import Context, NoSeries, attempt, make_forecaster
from foretell.questions.as_of import AsOfMode
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question

ESTIMATOR = "model_free"
"""The forecaster that makes the estimates."""
AT_ONCE = 16
"""Questions whose series are read at the same time."""


def needs_estimate(question: Question) -> bool:
    """Whether trials are combined with an estimate: a question with a market has its price."""
    return question.kind != "market"


async def estimates_without_model(
    questions: Sequence[Question],
    mode: AsOfMode,
    past: Past,
    series: SeriesSource | None,
    known: Collection[tuple[str, str, str]] = (),
) -> list[tuple[Question, str, float]]:
    """Return the estimate of `model_free` for every target of a question without a market, as far as it has one.

    `known` has question, due date and target of the estimates that are stored already.
    """
    stored = {(question, due) for question, due, _ in known}
    asked = [
        question
        for question in questions
        if needs_estimate(question) and (question.id, question.due.isoformat()) not in stored
    ]
    if not asked:
        return []
    slots, forecaster, source = asyncio.Semaphore(AT_ONCE), make_forecaster(ESTIMATOR, {}), series or NoSeries()

    async def estimate(question: Question) -> Forecast | Failure:
        as_of = question.as_of_in(mode)
        earlier = past.before(min(as_of.at.date(), question.due.date()))
        async with slots:
            return await attempt(forecaster, question, Context(as_of=as_of, series=source, past=earlier))

    answers = await asyncio.gather(*map(estimate, asked))
    return [
        (question, target, p)
        for question, answer in zip(asked, answers, strict=True)
        if isinstance(answer, Forecast)
        for target, p in answer.p.items()
    ]
