"""Rows of the list of runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from foretell.frozen import frozen
from foretell.operations.requests.runs import RunsRequest
from foretell.operations.runs import chosen_runs, question_set, run_title
from foretell.runs.spec import RunState
from foretell.runs.store import RunRow, RunStore, trials_per_question
from foretell.scoring.stored_scores import StoredScores

TITLE_LENGTH = 200
"""Maximum length of a title in characters."""
RUNS_PER_PAGE = 50


@frozen
class RunRowView(RunRow):
    """A run in a list, with details from its spec and its questions."""

    called: str
    """Its name or, if it has none, what it asks with what."""
    title: str
    """The text of a typed question, else the data set."""
    forecaster: str
    model: str
    """The agent's model; empty if there is no agent."""
    questions: int
    trials: int
    total: int
    """Number of answers the run will have when it is finished."""
    excluded: int = 0
    """Number of questions left out because their own text was written after the time of asking."""
    state: RunState = "done"
    score: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Brier index with its interval, beside the market and the base rate, and the number of `decided` questions."""

    @property
    def finished(self) -> bool:
        """Whether every trial has an answer or a failure."""
        return self.done + self.failed >= self.total


@frozen
class RunList:
    """A page of the list of runs."""

    runs: tuple[RunRowView, ...]
    total: int
    offset: int
    archived: int = 0
    """Number of runs left out because they are archived."""


def list_runs(
    store: RunStore,
    filters: RunsRequest,
    spent: Callable[[Sequence[str]], Mapping[str, float]],
    *,
    offset: int,
    limit: int,
) -> RunList:
    """Return up to `limit` of the runs that match, starting at `offset`; `spent` returns what runs have cost."""
    chosen, archived = chosen_runs(store, filters, spent)
    shown = chosen[offset : offset + limit]
    scores = StoredScores(store).of([row for row, _ in shown])
    views = tuple(run_row_view(store, row, scores[row.id]) for row, _ in shown)
    return RunList(runs=views, total=len(chosen), offset=offset, archived=archived)


def run_row_view(store: RunStore, row: RunRow, score: Mapping[str, Any] | None = None) -> RunRowView:
    """Build the list row of a run."""
    spec = row.spec
    questions, title = store.question_count(row.id), question_set(spec)
    if not title:
        first = store.first_question(row.id)
        title = first.text if first else str(spec.get("questions", {}).get("dataset", ""))
    return RunRowView(
        **vars(replace(row, folder="")),  # No page needs it, and it is private.
        called=run_title(store, row, questions),
        title=title[:TITLE_LENGTH],
        forecaster=str(spec.get("forecaster", "")),
        model=str(spec.get("models", {}).get("agent", "")),
        questions=questions,
        trials=int(spec.get("trials", 1)),
        total=questions * trials_per_question(spec),
        state=store.state(row, questions),
        score=score or {},
        excluded=int(spec.get("questions", {}).get("excluded", 0)),
    )
