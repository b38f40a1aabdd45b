"""Runs, their cells and what happened in them, in one SQLite file.

Events are notes for readers, not the truth: after a crash a cell starts again and its replies come from the journal, so
the events of an unfinished cell are simply dropped and written anew.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foretell.llm.wal import use_wal
from foretell.questions import event as events
from foretell.questions.codec import from_json, to_json
from foretell.questions.event import Event
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question

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
)
"""Each entry brings the file one version further; existing entries never change."""

KINDS = {kind.__name__: kind for kind in events.Event.__args__}


@dataclass(frozen=True, kw_only=True)
class CellKey:
    """One trial on one question of one run: the unit of work."""

    run: str
    question: str
    due: str
    trial: int

    def row(self) -> tuple[str, str, str, int]:
        """In the order of the tables."""
        return self.run, self.question, self.due, self.trial


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """A run as listed."""

    id: str
    spec: dict[str, Any]
    created: str
    services: tuple[str, ...]
    """Whose keys there were when it began: a replay offers the same tools without them."""
    done: int
    failed: int


class Store:
    """Opens or creates the file; every process may have it open."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._con = sqlite3.connect(self.path, isolation_level=None, timeout=30)
        use_wal(self._con)
        self._con.execute("pragma synchronous = normal")
        self._migrate()

    def _migrate(self) -> None:
        if self._version() >= len(MIGRATIONS):
            return
        with self._con:  # Commits, or undoes all of it.
            self._con.execute("begin immediate")
            # Asked again under the lock: another process may have been quicker.
            for script in MIGRATIONS[self._version() :]:
                for statement in filter(str.strip, script.split(";")):
                    self._con.execute(statement)
            self._con.execute(f"pragma user_version = {len(MIGRATIONS)}")

    def _version(self) -> int:
        return self._con.execute("pragma user_version").fetchone()[0]

    def close(self) -> None:
        """Release the file."""
        self._con.close()

    def begin(self, run: str, spec: str, created: str, *, services: Sequence[str] = ()) -> None:
        """Note a run; the same run again changes nothing."""
        insert = "insert or ignore into run (id, spec, created, services) values (?, ?, ?, ?)"
        self._con.execute(insert, (run, spec, created, json.dumps(list(services))))

    def keep_questions(self, run: str, questions: Iterable[Question]) -> None:
        """Keep what was asked, so that a run can be read without the file its questions came from."""
        rows = [(run, q.id, q.due.isoformat(), to_json(q)) for q in questions]
        self._con.execute("begin")
        self._con.executemany("insert or ignore into question values (?, ?, ?, ?)", rows)
        self._con.execute("commit")

    def questions(self, run: str) -> list[Question]:
        """What a run asked."""
        query = "select body from question where run = ? order by id, due"
        return [from_json(body, Question) for (body,) in self._con.execute(query, (run,))]

    def runs(self) -> list[RunRow]:
        """All runs, the newest first."""
        query = """select id, spec, created, services, count(forecast), count(failure)
                   from run left join cell on run.id = cell.run group by run.id order by created desc"""
        return [
            RunRow(
                id=i,
                spec=json.loads(spec),
                created=created,
                services=tuple(json.loads(services)),
                done=done,
                failed=failed,
            )
            for i, spec, created, services, done, failed in self._con.execute(query)
        ]

    def finished(self, run: str) -> set[tuple[str, str, int]]:
        """Cells that have a forecast: they are never run again. Failures are tried anew."""
        query = "select question, due, trial from cell where run = ? and forecast is not null"
        return set(self._con.execute(query, (run,)).fetchall())

    def start_cell(self, key: CellKey) -> None:
        """Drop what an unfinished attempt left behind."""
        self._con.execute("delete from event where run = ? and question = ? and due = ? and trial = ?", key.row())

    def add_events(self, happened: Iterable[tuple[CellKey, Event]]) -> None:
        """Append events of any cells in one transaction."""
        # `vars` and not `asdict`: events hold plain JSON, and copying it took longer than writing it.
        rows = [(*key.row(), type(e).__name__, json.dumps(vars(e), ensure_ascii=False)) for key, e in happened]
        self._con.execute("begin")
        self._con.executemany(
            "insert into event (run, question, due, trial, kind, body) values (?, ?, ?, ?, ?, ?)", rows
        )
        self._con.execute("commit")

    def finish_cell(self, key: CellKey, answer: Forecast | Failure) -> None:
        """Keep the answer of a cell."""
        text = to_json(answer)
        pair = (text, None) if isinstance(answer, Forecast) else (None, text)
        self._con.execute("insert or replace into cell values (?, ?, ?, ?, ?, ?)", (*key.row(), *pair))

    def answers(self, run: str) -> Iterator[Forecast | Failure]:
        """Every answer of a run, in a fixed order."""
        query = "select forecast, failure from cell where run = ? order by question, due, trial"
        for forecast, failure in self._con.execute(query, (run,)):
            yield from_json(forecast, Forecast) if forecast else from_json(failure, Failure)

    def answers_to(self, key: CellKey) -> list[Forecast | Failure]:
        """Every answer of a run to the question of a cell, in the order of trials."""
        query = "select forecast, failure from cell where run = ? and question = ? and due = ? order by trial"
        rows = self._con.execute(query, key.row()[:3]).fetchall()
        return [from_json(said, Forecast) if said else from_json(failure, Failure) for said, failure in rows]

    def events(self, run: str, question: str | None = None, *, after: int = 0) -> Iterator[tuple[int, CellKey, Event]]:
        """Events of a run (of one question) in the order they happened; `after` continues a reading."""
        where = "run = ? and id > ?" + (" and question = ?" if question else "")
        query = f"select id, run, question, due, trial, kind, body from event where {where} order by id"
        parameters = (run, after, question) if question else (run, after)
        for i, r, q, due, trial, kind, body in self._con.execute(query, parameters):
            yield i, CellKey(run=r, question=q, due=due, trial=trial), KINDS[kind](**json.loads(body))
