"""What the forecasters of a run may learn from outcomes: past questions and base rates, stored with the run.

No forecaster and no tool may import this module.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from foretell.forecasters.base_rates.past import Past, PastAnswer, PastQuestions
from foretell.forecasters.base_rates.rates import Rates
from foretell.frozen import frozen
from foretell.questions.as_of import AsOf, AsOfMode
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.runs.store import RunStore


def past_of(questions: Iterable[Question], resolutions: Iterable[Resolution]) -> Past:
    """Return past questions with their resolutions.

    Outcomes without a date are left out, because it is unknown when they became known.
    """
    answers = [
        PastAnswer(
            question_id=resolution.question_id,
            due=resolution.due,
            target_id=resolution.target_id,
            outcome=resolution.outcome,
            known_on=resolution.resolved_at.date(),
        )
        for resolution in resolutions
        if resolution.outcome is not None and resolution.due is not None and resolution.resolved_at is not None
    ]
    return Past.of(questions, answers)


def keep_past(store: RunStore, run: str, past: Past) -> Past:
    """Store what a run may learn from, and return it.

    It is shown to models, so a resumed run, a worker on another machine and a replay have to use the same.
    """
    body = past.whole.table.to_bytes()
    stored = store.keep_past(run, body)
    return past if stored == body else Past.of_table(PastQuestions.from_bytes(stored))


def stored_past(store: RunStore, run: str) -> Past | None:
    """Return what a run may learn from; None for runs of older versions."""
    body = store.past(run)
    return None if body is None else Past.of_table(PastQuestions.from_bytes(body))


def rates_of(
    questions: Sequence[Question], rates: Rates | None, mode: AsOfMode
) -> Iterator[tuple[Question, str, float]]:
    """Yield the base rate of every target that has one, as of its question's date."""
    if rates is None:
        return
    for question in questions:
        for target in question.targets:
            rate = rates.rate(question, target, question.as_of_in(mode))
            if rate is not None:
                yield question, target.id, rate


@frozen
class StoredRates:
    """Base rates stored with a run, so that any machine can use them without the data set."""

    table: Mapping[tuple[str, str, str], float]

    def rate(self, question: Question, target: Target, as_of: AsOf) -> float | None:
        """The stored rate."""
        return self.table.get((question.id, question.due.isoformat(), target.id))
