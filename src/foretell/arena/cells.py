"""The units of work of a run: one trial on one question."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foretell.arena.store import CellKey
from foretell.questions.question import Question


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One trial on one question."""

    run: str
    question: Question
    trial: int

    @property
    def key(self) -> CellKey:
        """Where the store keeps it."""
        return CellKey(run=self.run, question=self.question.id, due=self.question.due.isoformat(), trial=self.trial)


def panel_cells(run: str, questions: Sequence[Question], trials: int) -> Iterator[Cell]:
    """One cell per question, numbered after its trials, in which their reasons are read."""
    return (Cell(run=run, question=question, trial=trials) for question in questions)


def cells_of(run: str, questions: Sequence[Question], trials: int) -> Iterator[Cell]:
    """Every trial of every question; first trials first, so that an early stop leaves all questions answered once."""
    return (Cell(run=run, question=question, trial=trial) for trial in range(trials) for question in questions)
