"""Runs, their cells and events, in an SQLite file or a PostgreSQL database.

Events are notes for readers, not the source of truth: after a crash a cell starts again with its replies from the
journal, so the events of an unfinished cell are simply dropped and written again.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from foretell.forecasters.early_stop import StopWish
from foretell.models.canonical import quick_json
from foretell.models.database import open_database
from foretell.models.database.interface import Database, SqlRow, SqlValues, Statements
from foretell.questions import trace as events
from foretell.questions.codec import from_json, to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.questions.trace import ModelCalled, TraceEvent
from foretell.runs.spec import RunState

T = TypeVar("T")
P = ParamSpec("P")

MIGRATIONS = (
    """
    create table run (id text primary key, spec text not null, created text not null);
    create table cell (
        run text not null, question text not null, due text not null, trial integer not null,
        forecast text, failure text, primary key (run, question, due, trial)
    ) without rowid;
    create table event (
        id integer primary key, run text not null, question text not null, due text not null, trial integer not null,
        kind text not null, body text not null
    );
    create index event_of_cell on event (run, question, due, trial, id);
    """,
    "alter table run add column services text not null default '[]';",
    """
    create table question (
        run text not null, id text not null, due text not null, body text not null, primary key (run, id, due)
    ) without rowid;
    """,
    """
    create table rate (
        run text not null, question text not null, due text not null, target text not null, rate real not null,
        primary key (run, question, due, target)
    ) without rowid;
    create table tick (
        name text not null, due text not null, owner integer not null, done integer not null default 0,
        primary key (name, due)
    ) without rowid;
    """,
    # Failures are few and counted often; without it every forecast of a run is read for that.
    "create index cell_failed on cell (run) where failure is not null;",
    # Who follows a run asks for what came after the last number seen.
    "create index event_of_run on event (run, id);",
    # Answers that rest on a failure are few and counted often, too.
    """
    alter table cell add column degraded integer not null default 0;
    update cell set degraded = 1 where replace(forecast, '"ending":"degraded"', '') <> forecast;
    create index cell_degraded on cell (run) where degraded = 1;
    """,
    # A spec names its file of questions as it is called in the folder that the run was started in.
    "alter table run add column folder text not null default '';",
    # What people say of a run, why it was given up, how its questions came out, and how good it was by that.
    """
    alter table run add column name text not null default '';
    alter table run add column note text not null default '';
    alter table run add column tags text not null default '[]';
    alter table run add column archived integer not null default 0;
    alter table run add column problem text not null default '';
    create table run_outcome (
        run text not null, question text not null, due text not null, target text not null, outcome integer,
        payoff real, resolved_at text, told_at text not null, primary key (run, question, due, target)
    ) without rowid;
    create table run_score (run text primary key, seen text not null, summary text not null);
    """,
    # A checksum of every answer, which those of older versions lack.
    "alter table cell add column checksum text;",
)
"""Migrations of the tables. Existing entries never change."""

_RUNS = """
select id, spec, created, services, count(forecast), count(failure),
    (select count(*) from cell as broken where broken.run = run.id and broken.degraded = 1), folder,
    name, note, tags, archived, problem
from run left join cell on run.id = cell.run {where} group by run.id order by created desc"""
_KEEP_QUESTION = "insert into question values (?, ?, ?, ?) on conflict do nothing"
_ADD_EVENT = "insert into event (run, question, due, trial, kind, body) values (?, ?, ?, ?, ?, ?)"
_NO_STOP = "delete from tick where name = ?"
EVENTS = "events"
"""Written one after the other, so that a reader continuing after the last number it saw never misses a smaller one."""
_FINISH = """
insert into cell values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (run, question, due, trial) do update
set forecast = excluded.forecast, failure = excluded.failure, degraded = excluded.degraded,
    checksum = excluded.checksum"""
CELL_COLUMNS = ("run", "question", "due", "trial", "forecast", "failure", "degraded", "checksum")
_CELL = ", ".join(CELL_COLUMNS)
EVENT_KINDS = {kind.__name__: kind for kind in events.TraceEvent.__args__}


class DamagedRow(InputError):
    """A stored row was altered: it is reported and not used."""

    def __init__(self, what: str, fault: str, place: str | Path | None) -> None:
        hint = "foretell doctor --repair sets it aside and brings back what it can"
        super().__init__(f"the stored {what} is not used: {fault}", path=place, hint=hint)


UNREADABLE = (InputError, ValueError, KeyError, TypeError, AttributeError)
"""Exceptions that reading a damaged row may raise."""


def answer_checksum(row: SqlRow) -> str:
    """Checksum of a stored answer: its cell, its content, and whether it rests on a failure."""
    return blake2b(repr(tuple(row[:7])).encode(), digest_size=16).hexdigest()


def answer_fault(row: SqlRow) -> str:
    """What is wrong with a cell's answer; empty if nothing is. Without a checksum it only has to be readable."""
    if row[7] is not None:
        return "" if answer_checksum(row) == row[7] else "it was changed after it was stored"
    try:
        _read_answer(row)
    except UNREADABLE:
        return "it cannot be read"
    return ""


def _read_answer(row: SqlRow) -> Forecast | Failure:
    return from_json(row[4], Forecast) if row[4] else from_json(row[5], Failure)


def stored_answer(row: SqlRow, place: str | Path | None = None) -> Forecast | Failure:
    """The answer of a cell from its row, after verifying its checksum."""
    if fault := answer_fault(row):
        raise DamagedRow(f"answer to {row[1]}, trial {row[3]} of run {row[0]},", fault, place)
    return _read_answer(row)


def read_event(kind: str, body: str) -> Any:
    """An event from its stored form."""
    fields: dict[str, Any] = json.loads(body)
    fields.pop("replayed", None)  # Of earlier versions, in which it was never set.
    return EVENT_KINDS[kind](**fields)


ROW_READERS: Mapping[str, tuple[str, Callable[[SqlRow], Any]]] = {
    "run": ("id, spec, services, tags", lambda row: [dict(json.loads(row[1])), *map(list, map(json.loads, row[2:]))]),
    "question": ("run, id, due, body", lambda row: from_json(row[3], Question)),
    "event": ("run, id, kind, body", lambda row: read_event(row[2], row[3])),
    "run_outcome": ("run, question, due, target, outcome, payoff, resolved_at", lambda row: _resolution(*row[1:])),
}
"""Columns of each table and how to read a row of them; the first two columns name the row."""
TABLE_NOUNS = {"run": "run", "question": "question", "event": "step", "run_outcome": "outcome of"}


def _resolution(
    question: str, due: str, target: str, outcome: int | None, payoff: float | None, at: str | None
) -> Resolution:
    return Resolution(
        question_id=question,
        target_id=target,
        due=datetime.fromisoformat(due),
        outcome=outcome,
        payoff=payoff,
        resolved_at=None if at is None else datetime.fromisoformat(at),
    )


def stored_row(table: str, row: SqlRow, place: str | Path | None = None) -> Any:
    """The content of a row, if it can be read."""
    try:
        return ROW_READERS[table][1](row)
    except UNREADABLE:
        named = f"run {row[0]}" if table == "run" else f"{TABLE_NOUNS[table]} {row[1]} of run {row[0]}"
        raise DamagedRow(named, "it cannot be read", place) from None


class CellKey(NamedTuple):
    """One trial on one question of one run: the unit of work."""

    run: str
    question: str
    due: str
    trial: int

    def row(self) -> tuple[str, str, str, int]:
        """The values in the order of the table's columns."""
        return self


CellFence = Callable[[Statements, Set[CellKey]], Set[CellKey]]
"""Returns which of these cells are still ours, fixed until the end of the transaction."""


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """A run in a list."""

    id: str
    spec: dict[str, Any]
    created: str
    services: tuple[str, ...]
    """Services with a key when it began: a replay offers the same tools without them."""
    done: int
    failed: int
    degraded: int = 0
    """Forecasts that rest on a failure."""
    folder: str = ""
    """Where it was last started: a question file is looked up there."""
    name: str = ""
    """Name given by the user."""
    note: str = ""
    tags: tuple[str, ...] = ()
    archived: bool = False
    """Kept, but hidden in lists."""
    problem: str = ""
    """Why it gave up before its end."""


_SOUND = "forecast is not null and degraded = 0"


def cells_each(spec: Mapping[str, Any]) -> int:
    """Cells per question: its trials, and the panel if there is one."""
    trials = int(spec.get("trials", 1))
    return trials + (spec.get("aggregate") == "judged" and trials > 1)


class RunStore:
    """The store of runs, created if it is missing. Several processes may have it open."""

    def __init__(self, place: str | Path) -> None:
        """Open a path or the PostgreSQL database at an address."""
        self._db = open_database(place, "file of runs", timeout=30, sessions=2)
        try:
            self._db.migrate("store", MIGRATIONS)
        except BaseException:
            self._db.close()
            raise

    @property
    def database(self) -> Database:
        """The underlying database."""
        return self._db

    def close(self) -> None:
        """Close the store."""
        self._db.close()

    def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """Read or write without blocking the event loop."""
        return self._db.aside(work, *args, **kwargs)

    def grouped(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """Like `aside`, grouped with other work of this turn of the event loop."""
        return self._db.grouped(lambda: work(*args, **kwargs))

    def begin(  # noqa: PLR0913 - one for each thing that is noted of a run
        self,
        run: str,
        spec: str,
        created: str,
        *,
        services: Sequence[str] = (),
        folder: str | Path = "",
        instead_of: str = "",
        questions: Iterable[Question] = (),
    ) -> None:
        """Store a run. If it exists, only the folder in which it was last started changes.

        If it replaces another run, it asks these questions and takes over its name, note and tags, in one transaction;
        the other run's answers are archived.
        """
        insert = "insert into run (id, spec, created, services, folder) values (?, ?, ?, ?, ?) on conflict do nothing"
        again = "update run set folder = ?, problem = '' where id = ? and (folder <> ? or problem <> '')"
        asked = _question_rows(run, questions)

        def all_of_it(statements: Statements) -> None:
            statements.write(insert, (run, spec, created, json.dumps(list(services)), str(folder)))
            statements.write(again, (str(folder), run, str(folder)))
            statements.write(_NO_STOP, (f"stop {run}",))
            statements.write_many(_KEEP_QUESTION, asked)
            if rows := statements.read(_RUNS.format(where="where run.id = ?"), (instead_of,)):
                other = _run_row(rows[0])
                _label(statements, run, name=other.name, note=other.note, tags=other.tags)
                if other.done:
                    note = f"became run {run}" + (f"; {other.note}" if other.note else "")
                    _label(statements, other.id, name="", archived=True, note=note)
                else:
                    _remove(statements, other.id)

        self._db.together(all_of_it)

    def label(self, run: str, **said: str | bool | Sequence[str]) -> None:
        """Set a run's name, note, tags, archived state or the problem it ended with."""
        _label(self._db, run, **said)

    def remove(self, run: str) -> None:
        """Delete a run with its answers, events, questions and base rates. The journal keeps the paid replies."""
        self._db.together(lambda statements: _remove(statements, run))

    def asked(self) -> dict[str, int]:
        """Number of questions by run."""
        return dict(self._db.read("select run, count(*) from question group by run"))

    def state(self, row: RunRow, questions: int) -> RunState:
        """The state of a run with so many questions."""
        if row.done + row.failed >= questions * cells_each(row.spec):
            return "partial" if row.failed else "done"
        names = (f"cell {row.id}", f"run {row.id}", f"queue {row.id}")
        claims = self._db.read("select distinct name, owner from tick where name in (?, ?, ?) and done = 0", names)
        if any(owner and self._db.life.alive(owner) for _, owner in claims):
            return "running"
        if row.problem:
            return "error"
        held = {name.partition(" ")[0] for name, _ in claims}
        return "waiting" if "queue" in held else "crashed" if "run" in held else "stopped"

    def queue(self, run: str, *, queued: bool) -> None:
        """Record whether the cells of a run are waiting for workers."""
        words = "insert into tick (name, due, owner) values (?, '', 0) on conflict do nothing"
        self._db.write(words if queued else "delete from tick where name = ?", (f"queue {run}",))

    def ask_to_stop(self, run: str, wish: StopWish) -> None:
        """Request that a run stops; the process working on it notices within a second."""

        def leave_word(statements: Statements) -> None:
            statements.write(_NO_STOP, (f"stop {run}",))
            statements.write("insert into tick (name, due, owner) values (?, ?, 0)", (f"stop {run}", wish))

        self._db.together(leave_word)

    def stop_wishes(self, runs: Iterable[str]) -> dict[str, StopWish]:
        """Those of the runs that are to stop, and how."""
        names = [f"stop {run}" for run in runs]
        marks = ", ".join("?" * len(names))
        rows = self._db.read(f"select name, due from tick where name in ({marks})", names) if names else []
        return {name.removeprefix("stop "): wish for name, wish in rows}

    def specs(self) -> list[tuple[str, dict[str, Any]]]:
        """Id and stored spec of every run, newest first."""
        rows = self._db.read(f"select {ROW_READERS['run'][0]} from run order by created desc")
        return [(row[0], stored_row("run", row, self._db.place)[0]) for row in rows]

    def keep_questions(self, run: str, questions: Iterable[Question]) -> None:
        """Store the questions, so that a run can be read without the file they came from."""
        self._db.write_many(_KEEP_QUESTION, _question_rows(run, questions))

    def questions(self, run: str) -> list[Question]:
        """The questions of a run."""
        query = f"select {ROW_READERS['question'][0]} from question where run = ? order by id, due"
        return [stored_row("question", row, self._db.place) for row in self._db.read(query, (run,))]

    def runs(self) -> list[RunRow]:
        """All runs, newest first."""
        return [_run_row(row, self._db.place) for row in self._db.read(_RUNS.format(where=""))]

    def run(self, run: str) -> RunRow | None:
        """One run, with its progress."""
        rows = self._db.read(_RUNS.format(where="where run.id = ?"), (run,))
        return _run_row(rows[0], self._db.place) if rows else None

    def finished(self, run: str) -> set[tuple[str, str, int]]:
        """Cells with a sound forecast, which never run again. Failures and degraded forecasts are retried."""
        query = f"select question, due, trial from cell where run = ? and {_SOUND}"
        return set(self._db.read(query, (run,)))

    def ended(self, run: str) -> set[tuple[str, str, int]]:
        """Cells with a forecast or a failure."""
        return set(self._db.read("select question, due, trial from cell where run = ?", (run,)))

    def tally(self, run: str, trials: range) -> tuple[int, int, int]:
        """Number of forecasts, failures and degraded forecasts in these trials."""
        where = "from cell where run = ? and trial >= ? and trial < ?"
        values = (run, trials.start, trials.stop)
        ((done, failed),) = self._db.read(f"select count(forecast), count(failure) {where}", values)
        ((degraded,),) = self._db.read(f"select count(*) {where} and degraded = 1", values)
        return done, failed, degraded

    def question(self, key: CellKey) -> Question | None:
        """The question of a cell."""
        query = f"select {ROW_READERS['question'][0]} from question where run = ? and id = ? and due = ?"
        rows = self._db.read(query, key.row()[:3])
        return stored_row("question", rows[0], self._db.place) if rows else None

    def answered(self, key: CellKey) -> bool:
        """Whether a cell has a sound forecast."""
        query = f"select 1 from cell where run = ? and question = ? and due = ? and trial = ? and {_SOUND}"
        return bool(self._db.read(query, key.row()))

    def forget_failures(self, run: str, only: Iterable[CellKey] | None = None) -> None:
        """Delete failures, or those of the given cells, so that their cells are open again."""
        if only is None:
            self._db.write(f"delete from cell where run = ? and not ({_SOUND})", (run,))
            return
        one = f"delete from cell where run = ? and question = ? and due = ? and trial = ? and not ({_SOUND})"
        self._db.write_many(one, [key.row() for key in only])

    def keep_rates(self, run: str, rates: Iterable[tuple[Question, str, float]]) -> None:
        """Store the base rates of a run's targets for machines without its data set."""
        rows = [(run, question.id, question.due.isoformat(), target, rate) for question, target, rate in rates]
        self._db.write_many("insert into rate values (?, ?, ?, ?, ?) on conflict do nothing", rows)

    def rates(self, run: str) -> dict[tuple[str, str, str], float]:
        """Base rates by question, due date and target."""
        query = "select question, due, target, rate from rate where run = ?"
        return {(question, due, target): rate for question, due, target, rate in self._db.read(query, (run,))}

    def model_calls(self, run: str, after: int) -> list[tuple[int, ModelCalled]]:
        """Model calls after a given event number, to follow a run's spending from another machine."""
        query = "select run, id, kind, body from event where run = ? and id > ? and kind = 'ModelCalled' order by id"
        return [(row[1], stored_row("event", row, self._db.place)) for row in self._db.read(query, (run, after))]

    def worth(self, run: str) -> float:
        """What the replies of a run cost when they came, whoever paid for them, in dollars."""
        return self._sum_of_calls(run)

    def reused(self, run: str) -> float:
        """What the replies of a run that another run had paid for cost when they came, in dollars."""
        reused = "body::json ->> 'reused' = 'true'" if self._db.shared else "json_extract(body, '$.reused')"
        return self._sum_of_calls(run, f"and {reused}")

    def _sum_of_calls(self, run: str, only: str = "") -> float:
        value = "(body::json ->> 'dollars')::float" if self._db.shared else "json_extract(body, '$.dollars')"
        query = f"select coalesce(sum({value}), 0.0) from event where run = ? and kind = 'ModelCalled' {only}"
        return float(self._db.read(query, (run,))[0][0])

    def last_event(self) -> int:
        """The number of the newest event of all runs."""
        return self._db.read("select coalesce(max(id), 0) from event")[0][0]

    def start_cell(self, key: CellKey, fence: CellFence | None = None) -> bool:
        """Delete what an unfinished attempt left behind. Returns False and does nothing if the cell is not ours."""
        delete = "delete from event where run = ? and question = ? and due = ? and trial = ?"
        return self._write_fenced(key, delete, key.row(), fence)

    def _write_fenced(
        self, key: CellKey, sql: str, values: SqlValues, fence: CellFence | None, told: Sequence[TraceEvent] = ()
    ) -> bool:
        rows = [_event_row(key, event) for event in told]

        def work(statements: Statements) -> bool:
            ours = fence is None or key in fence(statements, {key})
            if ours:
                if rows:
                    statements.write_many(_ADD_EVENT, rows)
                statements.write(sql, values)
            return ours

        return self._db.together(work, alone=EVENTS if rows else "")

    def add_events(
        self, happened: Iterable[tuple[CellKey, TraceEvent]], fence: CellFence | None = None
    ) -> set[CellKey]:
        """Append events of any cells in one transaction; returns the cells that are no longer ours, which it skips."""
        told = list(happened)
        rows = [_event_row(key, event) for key, event in told]
        keys = {key for key, _ in told}

        def work(statements: Statements) -> set[CellKey]:
            lost = set[CellKey]() if fence is None else keys - fence(statements, keys)
            kept = rows if not lost else [row for row, (key, _) in zip(rows, told, strict=True) if key not in lost]
            statements.write_many(_ADD_EVENT, kept)
            return lost

        return self._db.together(work, alone=EVENTS)

    def finish_cell(
        self,
        key: CellKey,
        answer: Forecast | Failure,
        fence: CellFence | None = None,
        told: Sequence[TraceEvent] = (),
    ) -> bool:
        """Store a cell's answer and its last events. Returns False and does nothing if the cell is not ours."""
        text = to_json(answer)
        pair = (text, None) if isinstance(answer, Forecast) else (None, text)
        degraded = isinstance(answer, Forecast) and answer.degraded
        row = (*key.row(), *pair, int(degraded))
        return self._write_fenced(key, _FINISH, (*row, answer_checksum(row)), fence, told)

    def answers(self, run: str) -> Iterator[Forecast | Failure]:
        """Every answer of a run, in a fixed order."""
        query = f"select {_CELL} from cell where run = ? order by question, due, trial"
        for row in self._db.stream(query, (run,)):
            yield stored_answer(row, self._db.place)

    def answers_to(self, key: CellKey) -> list[Forecast | Failure]:
        """Every answer of a run to a cell's question, by trial."""
        query = f"select {_CELL} from cell where run = ? and question = ? and due = ? order by trial"
        return [stored_answer(row, self._db.place) for row in self._db.read(query, key.row()[:3])]

    def forget_answers(self, keys: Iterable[CellKey]) -> None:
        """Delete answers, so that their cells are open again."""
        delete = "delete from cell where run = ? and question = ? and due = ? and trial = ?"
        self._db.write_many(delete, [key.row() for key in keys])

    def events(
        self, run: str, question: str | None = None, *, after: int = 0
    ) -> Iterator[tuple[int, CellKey, TraceEvent]]:
        """Events of a run, or of one of its questions, in order; `after` continues an earlier reading."""
        where = "run = ? and id > ?" + (" and question = ?" if question else "")
        query = f"select id, run, question, due, trial, kind, body from event where {where} order by id"
        parameters = (run, after, question) if question else (run, after)
        for i, r, q, due, trial, kind, body in self._db.stream(query, parameters):
            event = stored_row("event", (r, i, kind, body), self._db.place)
            yield i, CellKey(run=r, question=q, due=due, trial=trial), event


def _label(statements: Statements, run: str, **said: str | bool | Sequence[str]) -> None:
    assert said.keys() <= {"name", "note", "tags", "archived", "problem"}
    kept = [
        one if isinstance(one, str) else int(one) if isinstance(one, bool) else json.dumps(list(one))
        for one in said.values()
    ]
    if said:
        statements.write(f"update run set {', '.join(f'{one} = ?' for one in said)} where id = ?", (*kept, run))


def _remove(statements: Statements, run: str) -> None:
    for table in ("cell", "event", "question", "rate", "run_outcome", "run_score"):
        statements.write(f"delete from {table} where run = ?", (run,))
    statements.write("delete from run where id = ?", (run,))
    names = (f"cell {run}", f"run {run}", f"queue {run}")
    statements.write("delete from tick where name in (?, ?, ?)", names)


def _question_rows(run: str, questions: Iterable[Question]) -> list[SqlRow]:
    return [(run, q.id, q.due.isoformat(), to_json(q)) for q in questions]


def _run_row(row: SqlRow, place: str | Path | None = None) -> RunRow:
    id, spec, created, services, done, failed, degraded, folder, name, note, tags, archived, problem = row
    written, keys, marks = stored_row("run", (id, spec, services, tags), place)
    return RunRow(
        id=id,
        spec=written,
        created=created,
        services=tuple(keys),
        done=done,
        failed=failed,
        degraded=degraded,
        folder=folder,
        name=name,
        note=note,
        tags=tuple(marks),
        archived=bool(archived),
        problem=problem,
    )


def _event_row(key: CellKey, event: TraceEvent) -> SqlRow:
    # `vars` and not `asdict`: events hold plain JSON, and copying it took longer than writing it.
    return (*key.row(), type(event).__name__, quick_json(vars(event)).decode())


# The units of work of a run: one trial on one question.


@dataclass(frozen=True, kw_only=True)
class RunCell:
    """One trial on one question."""

    run: str
    question: Question
    trial: int

    @property
    def key(self) -> CellKey:
        """Its key in the store."""
        return CellKey(run=self.run, question=self.question.id, due=self.question.due.isoformat(), trial=self.trial)


def panel_cells(run: str, questions: Sequence[Question], trials: int) -> Iterator[RunCell]:
    """One cell per question, numbered after its trials, in which a panel reads their reasons."""
    return (RunCell(run=run, question=question, trial=trials) for question in questions)


def cells_of(run: str, questions: Sequence[Question], trials: int) -> Iterator[RunCell]:
    """Every trial of every question, first trials first, so that an early stop leaves every question answered."""
    return (RunCell(run=run, question=question, trial=trial) for trial in range(trials) for question in questions)


def find_run(store: "RunStore", start: str) -> str:
    """The id of the run with this name or with an id that starts like this."""
    return find_run_row(store, start).id


def find_run_row(store: "RunStore", start: str) -> RunRow:
    """The run with this name or with an id that starts like this, with its progress."""
    rows = store.runs()
    found = [row for row in rows if row.name == start] or [row for row in rows if row.id.startswith(start)]
    if len(found) != 1:
        problem = (
            f"no run is named {start!r}, and no run's id begins with it"
            if not found
            else f"the ids of {len(found)} runs begin with {start!r}"
        )
        raise InputError(problem, hint="foretell runs lists them")
    return found[0]
