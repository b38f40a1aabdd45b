"""What forecasters on contexts said, out of a store of runs: statements as they were made, and cases for a judge."""

from collections.abc import Iterator, Mapping
from typing import Any

from foretell.arena.store import CellKey, Store
from foretell.arena.studies.consistency import Statement
from foretell.arena.studies.judge import Case
from foretell.forecasters.context.context import Context
from foretell.forecasters.context.rendering import BOTH, VIEWS
from foretell.questions.event import BeliefRevised
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question

TRACE = "context "
"""How the trace of a forecast on a context begins; its digest follows."""
Place = tuple[str, str, int]


def statements_in(store: Store, run: str, *, name: str = "") -> list[Statement]:
    """What every trial of a run stated, before it was made to fit where that was kept, else its forecast.

    `name` replaces the forecaster's own: runs of one forecaster with several models need one each.
    """
    records = _records(store, run)
    return [
        Statement(
            forecaster=name or forecast.forecaster,
            question=question,
            p=records.get(place, {}).get("stated", forecast.p),
        )
        for place, question, forecast in _forecasts(store, run)
    ]


def cases_in(store: Store, run: str, contexts: Mapping[str, Context]) -> list[Case]:
    """Every forecast of a run whose context, by digest, is at hand; the others cannot be judged."""
    records = _records(store, run)
    return [
        Case(context=contexts[digest], forecast=forecast, view=VIEWS.get(records.get(place, {}).get("view", ""), BOTH))
        for place, _, forecast in _forecasts(store, run)
        if (digest := forecast.trace.removeprefix(TRACE)) in contexts
    ]


def _records(store: Store, run: str) -> dict[Place, Mapping[str, Any]]:
    """The last record of each cell that says what was stated."""
    return {
        (key.question, key.due, key.trial): event.belief
        for _, key, event in store.events(run)
        if isinstance(event, BeliefRevised) and "stated" in event.belief
    }


def _forecasts(store: Store, run: str) -> Iterator[tuple[Place, Question, Forecast]]:
    for question in store.questions(run):
        due = question.due.isoformat()
        for answer in store.answers_to(CellKey(run=run, question=question.id, due=due, trial=0)):
            if isinstance(answer, Forecast):
                yield (question.id, due, answer.trial), question, answer
