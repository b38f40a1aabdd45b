"""Base rates that travel with a run, so that any machine can ask its questions without the data set they come from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from foretell.forecasters.priors import Rates
from foretell.questions.clock import AsOf, Mode
from foretell.questions.question import Question, Target


def rates_of(questions: Sequence[Question], rates: Rates | None, mode: Mode) -> Iterator[tuple[Question, str, float]]:
    """The base rate of every target that has one, as of the moment its question is asked."""
    if rates is None:
        return
    for question in questions:
        for target in question.targets:
            found = rates.rate(question, target, question.as_of_in(mode))
            if found is not None:
                yield question, target.id, found


@dataclass(frozen=True, kw_only=True)
class KeptRates:
    """Base rates by question, date of asking and target."""

    table: Mapping[tuple[str, str, str], float]

    def rate(self, question: Question, target: Target, as_of: AsOf) -> float | None:
        """The one that was kept."""
        return self.table.get((question.id, question.due.isoformat(), target.id))
