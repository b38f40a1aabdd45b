"""Runs as they are listed."""

from dataclasses import dataclass
from typing import Any

from foretell.app.asking import TYPED
from foretell.arena.spec import RunSpec, spec_from_json
from foretell.arena.store import RunRow, Store
from foretell.questions.codec import from_json
from foretell.questions.problems import InputError
from foretell.questions.question import Question

TITLE = 200
"""Characters of a title at most."""


@dataclass(frozen=True, kw_only=True)
class RunLine:
    """One run in a list."""

    id: str
    title: str
    """The question of a run that has one, else its data set."""
    created: str
    forecaster: str
    model: str
    """Of the agent, where it has one."""
    questions: int
    trials: int
    cells: int
    """How many answers it will have when it is finished."""
    done: int
    """Answers that are forecasts."""
    failed: int

    @property
    def finished(self) -> bool:
        """Whether every cell has an answer or a failure."""
        return self.done + self.failed >= self.cells


@dataclass(frozen=True, kw_only=True)
class Runs:
    """A part of all runs, the newest first."""

    runs: tuple[RunLine, ...]
    total: int
    offset: int


def list_runs(store: Store, *, offset: int = 0, limit: int = 50) -> Runs:
    """So many runs from a place in the list on."""
    rows = store.runs()
    return Runs(
        runs=tuple(run_line(store, row) for row in rows[offset : offset + limit]), total=len(rows), offset=offset
    )


def run_line(store: Store, row: RunRow) -> RunLine:
    """A run as one line."""
    spec = row.spec
    questions = question_count(store, row.id)
    trials = int(spec.get("trials", 1))
    return RunLine(
        id=row.id,
        title=_title(store, row),
        created=row.created,
        forecaster=str(spec.get("forecaster", "")),
        model=str(spec.get("models", {}).get("agent", "")),
        questions=questions,
        trials=trials,
        cells=questions * cells_each(spec),
        done=row.done,
        failed=row.failed,
    )


def cells_each(spec: dict[str, Any]) -> int:
    """Cells of one question: its trials, and the panel that reads them where one does."""
    trials = int(spec.get("trials", 1))
    return trials + (spec.get("aggregate") == "judged" and trials > 1)


def question_count(store: Store, run: str) -> int:
    """How many questions a run asks."""
    return store.database.read("select count(*) from question where run = ?", (run,))[0][0]


def readable_spec(row: RunRow) -> RunSpec | None:
    """The spec of a run; None where another version wrote it in a way that cannot be read."""
    try:
        return spec_from_json(row.spec)
    except InputError:
        return None


def _title(store: Store, row: RunRow) -> str:
    dataset = str(row.spec.get("questions", {}).get("dataset", ""))
    if not dataset.startswith(TYPED):
        return dataset[:TITLE]
    found = store.database.read("select body from question where run = ? limit 1", (row.id,))
    return from_json(found[0][0], Question).text[:TITLE] if found else dataset
