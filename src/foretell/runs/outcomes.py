"""Outcomes of a run's questions, past questions for forecasters, and base rates, all stored with the run.

They let runs be scored without the question file or a network.

No forecaster and no tool may import this module.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from foretell.forecasters.base_rates.past import Past, PastAnswer, PastQuestions
from foretell.forecasters.base_rates.rates import Rates
from foretell.questions.as_of import AsOf, AsOfMode
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.runs.store import RunStore
from foretell.runs.stored_rows import ROW_READERS, stored_row

_KEEP = """
insert into run_outcome values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (run, question, due, target) do update
set outcome = excluded.outcome, payoff = excluded.payoff,
    resolved_at = excluded.resolved_at, told_at = excluded.told_at"""
_SHARED = """
select other.run, count(distinct other.question || ' ' || other.due) from run_outcome other join run_outcome mine
on mine.question = other.question and mine.due = other.due and mine.target = other.target
where mine.run = ? and other.run <> ? group by other.run order by 2 desc, 1"""


class RunOutcomes:
    """Known outcomes of runs' questions, in the run store."""

    def __init__(self, store: RunStore) -> None:
        self._db = store.database

    def keep(self, run: str, questions: Iterable[Question], resolutions: Iterable[Resolution]) -> int:
        """Store the outcomes of a run's questions and return how many targets are new or changed."""
        known = {
            (resolution.question_id, resolution.due, resolution.target_id): resolution for resolution in resolutions
        }
        if not known:
            return 0
        now, rows = datetime.now(UTC).isoformat(timespec="seconds"), list[tuple[object, ...]]()
        before = {(old.question_id, old.due, old.target_id): (old.outcome, old.payoff) for old in self.of(run)}
        for question in questions:
            for target in question.targets:
                # An outcome without a due date applies to every due date.
                match = known.get((question.id, question.due, target.id)) or known.get((question.id, None, target.id))
                if match is None or (match.outcome is None and match.payoff is None):
                    continue
                if before.get((question.id, question.due, target.id)) != (match.outcome, match.payoff):
                    at = match.resolved_at.isoformat() if match.resolved_at else None
                    key = (run, question.id, question.due.isoformat(), target.id)
                    rows.append((*key, match.outcome, match.payoff, at, now))
        self._db.write_many(_KEEP, rows)
        return len(rows)

    def withdraw(self, run: str, question: str) -> int:
        """Remove the outcomes of a run's question, which turned out to be unknown; return how many there were."""
        return self._db.write("delete from run_outcome where run = ? and question = ?", (run, question))

    def of(self, run: str, question: str | None = None) -> list[Resolution]:
        """Return the known outcomes of a run's questions, or of one of them."""
        query = f"select {ROW_READERS['run_outcome'][0]} from run_outcome where run = ?"
        query, values = (query, (run,)) if question is None else (f"{query} and question = ?", (run, question))
        return [stored_row("run_outcome", row, self._db.place) for row in self._db.read(query, values)]

    def count(self) -> dict[str, tuple[int, str]]:
        """Return the number of resolved targets by run, and when the last one was recorded."""
        query = "select run, count(outcome), max(told_at) from run_outcome group by run"
        return {run: (n, recorded) for run, n, recorded in self._db.read(query)}

    def shared(self, run: str) -> dict[str, int]:
        """Return the number of resolved questions that other runs have in common with a run, the most first."""
        return dict(self._db.read(_SHARED, (run, run)))


# What forecasters may learn from outcomes: the past of a question set, and base rates.


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


@dataclass(frozen=True, kw_only=True)
class StoredRates:
    """Base rates stored with a run, so that any machine can use them without the data set."""

    table: Mapping[tuple[str, str, str], float]

    def rate(self, question: Question, target: Target, as_of: AsOf) -> float | None:
        """The stored rate."""
        return self.table.get((question.id, question.due.isoformat(), target.id))
