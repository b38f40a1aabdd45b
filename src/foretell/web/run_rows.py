"""Runs as lists show them, and what a run or a trial has cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foretell.operations.requests.runs import RunsRequest
from foretell.operations.runs import chosen_runs
from foretell.questions.codec import from_json
from foretell.questions.question import Question
from foretell.runs.spec import TYPED_PREFIX, RunState
from foretell.runs.store import RunRow, RunStore, cells_each
from foretell.scoring.long_tables import StoredScores

TITLE_LENGTH = 200
"""Characters of a title at most."""
RUNS_PER_PAGE = 50


@dataclass(frozen=True, kw_only=True)
class RunRowView(RunRow):
    """One run in a list, with what its spec and its questions say."""

    title: str
    """The question of a run that has one, else its data set."""
    forecaster: str
    model: str
    """Of the agent, where it has one."""
    questions: int
    trials: int
    cells: int
    """How many answers it will have when it is finished."""
    quarantined: int = 0
    """Questions that were left out, because their own text was written after the moment of asking."""
    state: RunState = "done"
    score: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Brier index with its interval, beside the market and the base rate; `decided` questions."""

    @property
    def called(self) -> str:
        """What a link to it says: its name, else what it asks."""
        return self.name or self.title or self.id

    @property
    def finished(self) -> bool:
        """Whether every cell has an answer or a failure."""
        return self.done + self.failed >= self.cells


@dataclass(frozen=True, kw_only=True)
class RunList:
    """A part of all runs, the newest first."""

    runs: tuple[RunRowView, ...]
    total: int
    offset: int
    archived: int = 0
    """How many are left out because they are archived."""


def list_runs(
    store: RunStore, wanted: RunsRequest | None = None, *, offset: int = 0, limit: int = RUNS_PER_PAGE
) -> RunList:
    """So many of the runs that are wanted, from a place in the list on."""
    chosen, archived = chosen_runs(store, wanted or RunsRequest())
    shown = chosen[offset : offset + limit]
    scores = StoredScores(store).of([row for row, _ in shown])
    views = tuple(run_row_view(store, row, scores[row.id]) for row, _ in shown)
    return RunList(runs=views, total=len(chosen), offset=offset, archived=archived)


def run_row_view(store: RunStore, row: RunRow, score: Mapping[str, Any] | None = None) -> RunRowView:
    """A run as one line."""
    spec = row.spec
    ((questions,),) = store.database.read("select count(*) from question where run = ?", (row.id,))
    title = str(spec.get("questions", {}).get("dataset", ""))
    if title.startswith(TYPED_PREFIX):
        found = store.database.read("select body from question where run = ? limit 1", (row.id,))
        title = from_json(found[0][0], Question).text if found else title
    elif Path(title).is_absolute():
        title = Path(title).name
    return RunRowView(
        **vars(row),
        title=title[:TITLE_LENGTH],
        forecaster=str(spec.get("forecaster", "")),
        model=str(spec.get("models", {}).get("agent", "")),
        questions=questions,
        trials=int(spec.get("trials", 1)),
        cells=questions * cells_each(spec),
        state=store.state(row, questions),
        score=score or {},
        quarantined=int(spec.get("questions", {}).get("quarantined", 0)),
    )
