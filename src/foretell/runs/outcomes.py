"""Outcomes of a run's questions, stored with the run.

They let runs be scored without the question file or a network.

No forecaster and no tool may import this module.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from foretell.questions.question import Question
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
