"""The past of a question set, and base rates stored with a run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from foretell.forecasters.base_rates.past import Past, PastAnswer
from foretell.forecasters.base_rates.rates import Rates
from foretell.questions.as_of import AsOf, AsOfMode
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution


def past_of(questions: Iterable[Question], resolutions: Iterable[Resolution]) -> Past:
    """The past made of questions and their resolutions.

    Outcomes without a date are left out, because nobody can say when they became known.
    """
    answers = [
        PastAnswer(
            question_id=one.question_id,
            due=one.due,
            target_id=one.target_id,
            outcome=one.outcome,
            known_on=one.resolved_at.date(),
        )
        for one in resolutions
        if one.outcome is not None and one.due is not None and one.resolved_at is not None
    ]
    return Past.of(questions, answers)


def rates_of(
    questions: Sequence[Question], rates: Rates | None, mode: AsOfMode
) -> Iterator[tuple[Question, str, float]]:
    """The base rate of every target that has one, as of the moment its question is asked."""
    if rates is None:
        return
    for question in questions:
        for target in question.targets:
            rate = rates.rate(question, target, question.as_of_in(mode))
            if rate is not None:
                yield question, target.id, rate


@dataclass(frozen=True, kw_only=True)
class StoredRates:
    """Base rates stored with a run, so that any machine can use them without the data set."""

    table: Mapping[tuple[str, str, str], float]

    def rate(self, question: Question, target: Target, as_of: AsOf) -> float | None:
        """The stored rate."""
        return self.table.get((question.id, question.due.isoformat(), target.id))
