"""One run: how far it is, what it costs, what failed and why, and its questions."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foretell.app.web.background import Background
from foretell.app.web.views.runs import RunLine, cells_each, run_line
from foretell.app.web.views.trace import Spending
from foretell.arena.store import RunRow, Store
from foretell.questions.codec import from_json
from foretell.questions.question import Question

PAGE = 100
"""Questions on one page."""
REASONS, EXAMPLES = 20, 5


@dataclass(frozen=True, kw_only=True)
class CellState:
    """One trial on one question."""

    trial: int
    p: dict[str, float] | None
    error: str


@dataclass(frozen=True, kw_only=True)
class QuestionLine:
    """One question with what its trials said so far."""

    id: str
    due: str
    text: str
    cells: tuple[CellState, ...]
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

    run: RunLine
    spec: dict[str, Any]
    services: tuple[str, ...]
    under_way: int
    """Cells that have begun and are not over."""
    spending: Spending
    budget: float | None
    seconds_left: float | None
    """At the pace that was seen since somebody looks."""
    endings: dict[str, int]
    """How often trials ended in which way: submitted, at the step limit, at the budget, …"""
    failures: tuple[FailureReason, ...]
    questions: tuple[QuestionLine, ...]
    """Those of this page."""
    offset: int
    finished: bool
    background: Background | None
    last: int
    """The number of the newest event."""


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What the server saw of a run besides what its store says."""

    spending: Spending
    endings: dict[str, int]
    seconds_left: float | None
    background: Background | None


def run_view(store: Store, row: RunRow, watched: Watched, *, offset: int = 0) -> RunView:
    """The run as it stands now."""
    last = store.last_event()
    line = run_line(store, row)
    budget: dict[str, Any] = row.spec.get("budget") or {}
    return RunView(
        run=line,
        spec=row.spec,
        services=row.services,
        under_way=0 if line.finished else _under_way(store, row.id),
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


_BEGUN = """
select count(*) from (
    select distinct question, due, trial from event where run = ?
    except select question, due, trial from cell where run = ?
) as open_cells"""
_FAILED = "select question, due, failure from cell where run = ? and failure is not null order by question, due, trial"
_PAGE = "select body from question where run = ? order by id, due limit ? offset ?"
_CELLS = """
select question, due, trial, forecast, failure from cell
where run = ? and question >= ? and question <= ? order by question, due, trial"""


def _under_way(store: Store, run: str) -> int:
    return store.database.read(_BEGUN, (run, run))[0][0]


def _failures(store: Store, run: str) -> tuple[FailureReason, ...]:
    """By reason, the most frequent first."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for question, due, failure in store.database.read(_FAILED, (run,)):
        groups.setdefault(str(json.loads(failure).get("error", "")), []).append((question, due))
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))[:REASONS]
    return tuple(
        FailureReason(reason=reason, count=len(cells), examples=tuple(dict.fromkeys(cells))[:EXAMPLES])
        for reason, cells in ordered
    )


def _questions(store: Store, row: RunRow, offset: int) -> tuple[QuestionLine, ...]:
    rows = store.database.read(_PAGE, (row.id, PAGE, offset))
    questions = [from_json(body, Question) for (body,) in rows]
    if not questions:
        return ()
    cells: dict[tuple[str, str], list[CellState]] = {}
    for id, due, trial, forecast, failure in store.database.read(_CELLS, (row.id, questions[0].id, questions[-1].id)):
        cells.setdefault((id, due), []).append(_cell(trial, forecast, failure))
    each = cells_each(row.spec)
    return tuple(
        _line(question, cells.get((question.id, question.due.isoformat()), ()), each) for question in questions
    )


def _cell(trial: int, forecast: str | None, failure: str | None) -> CellState:
    if forecast is not None:
        return CellState(trial=trial, p=json.loads(forecast).get("p", {}), error="")
    return CellState(trial=trial, p=None, error=str(json.loads(failure or "{}").get("error", "")))


def _line(question: Question, cells: Sequence[CellState], each: int) -> QuestionLine:
    return QuestionLine(
        id=question.id,
        due=question.due.isoformat(),
        text=question.text,
        cells=tuple(cells),
        waiting=max(each - len(cells), 0),
    )
