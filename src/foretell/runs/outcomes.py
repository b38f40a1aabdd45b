"""Outcomes of a run's questions, the past made of outcomes, and base rates, all stored with the run.

With them, scoring needs neither the question file nor a network.

No forecaster and no tool may import this module.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from foretell.forecasters.base_rates.past import Past, PastAnswer
from foretell.forecasters.base_rates.rates import Rates
from foretell.questions.as_of import AsOf, AsOfMode
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.runs.store import ROW_READERS, RunStore, stored_row

_KEEP = """
insert into run_outcome values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (run, question, due, target) do update
set outcome = excluded.outcome, payoff = excluded.payoff,
    resolved_at = excluded.resolved_at, told_at = excluded.told_at"""


class RunOutcomes:
    """Known outcomes of runs' questions, in the run store."""

    def __init__(self, store: RunStore) -> None:
        self._db = store.database

    def keep(self, run: str, questions: Iterable[Question], resolutions: Iterable[Resolution]) -> int:
        """Store the outcomes of a run's questions; returns how many targets are new or changed."""
        known = {(one.question_id, one.due, one.target_id): one for one in resolutions}
        if not known:
            return 0
        told, rows = datetime.now(UTC).isoformat(timespec="seconds"), list[tuple[object, ...]]()
        before = {(one.question_id, one.due, one.target_id): (one.outcome, one.payoff) for one in self.of(run)}
        for question in questions:
            for target in question.targets:
                # An outcome without a date is that of every asking.
                found = known.get((question.id, question.due, target.id)) or known.get((question.id, None, target.id))
                if found is None or (found.outcome is None and found.payoff is None):
                    continue
                if before.get((question.id, question.due, target.id)) != (found.outcome, found.payoff):
                    at = found.resolved_at.isoformat() if found.resolved_at else None
                    key = (run, question.id, question.due.isoformat(), target.id)
                    rows.append((*key, found.outcome, found.payoff, at, told))
        self._db.write_many(_KEEP, rows)
        return len(rows)

    def of(self, run: str, question: str | None = None) -> list[Resolution]:
        """What is known about a run's questions, or about one of them."""
        query = f"select {ROW_READERS['run_outcome'][0]} from run_outcome where run = ?"
        query, values = (query, (run,)) if question is None else (f"{query} and question = ?", (run, question))
        return [stored_row("run_outcome", row, self._db.place) for row in self._db.read(query, values)]

    def count(self) -> dict[str, tuple[int, str]]:
        """By run: the number of resolved targets, and when the last one was recorded."""
        query = "select run, count(outcome), max(told_at) from run_outcome group by run"
        return {run: (n, told) for run, n, told in self._db.read(query)}


# What forecasters may learn from outcomes: the past of a question set, and base rates.


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
