"""Runs as they are listed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foretell.questions.codec import from_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.runs.spec import TYPED_PREFIX, RunSpec, spec_from_json
from foretell.runs.store import RunRow, RunStore
from foretell.web.background_runs import BackgroundStatus
from foretell.web.views.trace import SpendingView

TITLE_LENGTH = 200
"""Characters of a title at most."""


@dataclass(frozen=True, kw_only=True)
class RunRowView:
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
class RunList:
    """A part of all runs, the newest first."""

    runs: tuple[RunRowView, ...]
    total: int
    offset: int


def list_runs(store: RunStore, *, offset: int = 0, limit: int = 50) -> RunList:
    """So many runs from a place in the list on."""
    rows = store.runs()
    return RunList(
        runs=tuple(run_row_view(store, row) for row in rows[offset : offset + limit]), total=len(rows), offset=offset
    )


def run_row_view(store: RunStore, row: RunRow) -> RunRowView:
    """A run as one line."""
    spec = row.spec
    questions = question_count(store, row.id)
    trials = int(spec.get("trials", 1))
    return RunRowView(
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


def question_count(store: RunStore, run: str) -> int:
    """How many questions a run asks."""
    return store.database.read("select count(*) from question where run = ?", (run,))[0][0]


def readable_spec(row: RunRow) -> RunSpec | None:
    """The spec of a run; None where another version wrote it in a way that cannot be read."""
    try:
        return spec_from_json(row.spec)
    except InputError:
        return None


def _title(store: RunStore, row: RunRow) -> str:
    dataset = str(row.spec.get("questions", {}).get("dataset", ""))
    if not dataset.startswith(TYPED_PREFIX):
        return dataset[:TITLE_LENGTH]
    found = store.database.read("select body from question where run = ? limit 1", (row.id,))
    return from_json(found[0][0], Question).text[:TITLE_LENGTH] if found else dataset


# One run: how far it is, what it costs, what failed and why, and its questions.

QUESTIONS_PER_PAGE = 100
"""Questions on one page."""
REASONS, EXAMPLES = 20, 5


@dataclass(frozen=True, kw_only=True)
class CellView:
    """One trial on one question."""

    trial: int
    p: dict[str, float] | None
    error: str


@dataclass(frozen=True, kw_only=True)
class QuestionRowView:
    """One question with what its trials said so far."""

    id: str
    due: str
    text: str
    cells: tuple[CellView, ...]
    waiting: int
    """Trials without an answer."""


@dataclass(frozen=True, kw_only=True)
class FailureReason:
    """Why cells failed, and which."""

    reason: str
    count: int
    examples: tuple[tuple[str, str], ...]
    """Id and date of asking of some questions."""


@dataclass(frozen=True, kw_only=True)
class RunView:
    """Everything about one run but the traces."""

    run: RunRowView
    spec: dict[str, Any]
    services: tuple[str, ...]
    under_way: int
    """Cells that have begun and are not over."""
    spending: SpendingView
    budget: float | None
    seconds_left: float | None
    """At the pace that was seen since somebody looks."""
    endings: dict[str, int]
    """How often trials ended in which way: submitted, at the step limit, at the budget, …"""
    failures: tuple[FailureReason, ...]
    questions: tuple[QuestionRowView, ...]
    """Those of this page."""
    offset: int
    finished: bool
    background: BackgroundStatus | None
    last: int
    """The number of the newest event."""


@dataclass(frozen=True, kw_only=True)
class RunActivity:
    """What the server saw of a run besides what its store says."""

    spending: SpendingView
    endings: dict[str, int]
    seconds_left: float | None
    background: BackgroundStatus | None


def run_view(store: RunStore, row: RunRow, watched: RunActivity, *, offset: int = 0) -> RunView:
    """The run as it stands now."""
    last = store.last_event()
    line = run_row_view(store, row)
    budget: dict[str, Any] = row.spec.get("budget") or {}
    return RunView(
        run=line,
        spec=row.spec,
        services=row.services,
        under_way=0 if line.finished else _active_cells(store, row.id),
        spending=watched.spending,
        budget=budget.get("run"),
        seconds_left=None if line.finished else watched.seconds_left,
        endings=watched.endings,
        failures=_failures(store, row.id) if row.failed else (),
        questions=_questions(store, row, offset),
        offset=offset,
        finished=line.finished,
        background=watched.background,
        last=last,
    )


_BEGUN_SQL = """
select count(*) from (
    select distinct question, due, trial from event where run = ?
    except select question, due, trial from cell where run = ?
) as open_cells"""
_FAILED_SQL = (
    "select question, due, failure from cell where run = ? and failure is not null order by question, due, trial"
)
_PAGE_SQL = "select body from question where run = ? order by id, due limit ? offset ?"
_CELLS_SQL = """
select question, due, trial, forecast, failure from cell
where run = ? and question >= ? and question <= ? order by question, due, trial"""


def _active_cells(store: RunStore, run: str) -> int:
    return store.database.read(_BEGUN_SQL, (run, run))[0][0]


def _failures(store: RunStore, run: str) -> tuple[FailureReason, ...]:
    """By reason, the most frequent first."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for question, due, failure in store.database.read(_FAILED_SQL, (run,)):
        groups.setdefault(str(json.loads(failure).get("error", "")), []).append((question, due))
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))[:REASONS]
    return tuple(
        FailureReason(reason=reason, count=len(cells), examples=tuple(dict.fromkeys(cells))[:EXAMPLES])
        for reason, cells in ordered
    )


def _questions(store: RunStore, row: RunRow, offset: int) -> tuple[QuestionRowView, ...]:
    rows = store.database.read(_PAGE_SQL, (row.id, QUESTIONS_PER_PAGE, offset))
    questions = [from_json(body, Question) for (body,) in rows]
    if not questions:
        return ()
    cells: dict[tuple[str, str], list[CellView]] = {}
    for id, due, trial, forecast, failure in store.database.read(
        _CELLS_SQL, (row.id, questions[0].id, questions[-1].id)
    ):
        cells.setdefault((id, due), []).append(_cell(trial, forecast, failure))
    each = cells_each(row.spec)
    return tuple(
        _question_row(question, cells.get((question.id, question.due.isoformat()), ()), each) for question in questions
    )


def _cell(trial: int, forecast: str | None, failure: str | None) -> CellView:
    if forecast is not None:
        return CellView(trial=trial, p=json.loads(forecast).get("p", {}), error="")
    return CellView(trial=trial, p=None, error=str(json.loads(failure or "{}").get("error", "")))


def _question_row(question: Question, cells: Sequence[CellView], each: int) -> QuestionRowView:
    return QuestionRowView(
        id=question.id,
        due=question.due.isoformat(),
        text=question.text,
        cells=tuple(cells),
        waiting=max(each - len(cells), 0),
    )
