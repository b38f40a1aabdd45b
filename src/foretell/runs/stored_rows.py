"""Rows of the run store: their columns, how they are read and verified, and which of them are damaged."""

import json
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from foretell.models.database.integrity import CheckedTable, text_or_bytes
from foretell.models.database.interface import SqlRow, Statements
from foretell.models.database.sqlite import open_read_only
from foretell.questions import trace as events
from foretell.questions.codec import from_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution

TRIAL_COLUMNS = ("run", "question", "due", "trial", "forecast", "failure", "degraded", "checksum")
EVENT_KINDS = {kind.__name__: kind for kind in events.TraceEvent.__args__}


class DamagedRow(InputError):
    """A stored row was altered. It is reported and not used."""

    def __init__(self, what: str, fault: str, place: str | Path | None) -> None:
        hint = "foretell doctor --repair moves it aside and restores what it can"
        super().__init__(f"the stored {what} is not used: {fault}", path=place, hint=hint)


UNREADABLE = (InputError, ValueError, KeyError, TypeError, AttributeError)
"""Exceptions that reading a damaged row may raise."""


def answer_checksum(row: SqlRow) -> str:
    """Return the checksum of a stored answer: its key, its content, and whether it is a fallback forecast."""
    return blake2b(repr(tuple(row[:7])).encode(), digest_size=16).hexdigest()


def answer_fault(row: SqlRow) -> str:
    """Return what is wrong with a stored answer; empty if nothing is. Without a checksum it only has to be readable."""
    if row[7] is not None:
        return "" if answer_checksum(row) == row[7] else "it was changed after it was stored"
    try:
        _read_answer(row)
    except UNREADABLE:
        return "it cannot be read"
    return ""


ANSWERS = CheckedTable(
    file="runs.db",
    name="cell",
    columns=TRIAL_COLUMNS,
    fault=answer_fault,
    rows="answers",
    described=lambda row: f"run {row[0]}, {row[1]}, trial {row[3]}",
)


def _read_answer(row: SqlRow) -> Forecast | Failure:
    return from_json(row[4], Forecast) if row[4] else from_json(row[5], Failure)


def stored_answer(row: SqlRow, place: str | Path | None = None) -> Forecast | Failure:
    """Return the answer of a trial from its row, after verifying its checksum."""
    if fault := answer_fault(row):
        raise DamagedRow(f"answer to {row[1]}, trial {row[3]} of run {row[0]},", fault, place)
    return _read_answer(row)


def _read_event(kind: str, body: str) -> Any:
    fields: dict[str, Any] = json.loads(body)
    fields.pop("replayed", None)  # A field of earlier versions that was never set.
    return EVENT_KINDS[kind](**fields)


ROW_READERS: Mapping[str, tuple[str, Callable[[SqlRow], Any]]] = {
    "run": ("id, spec, services, tags", lambda row: [dict(json.loads(row[1])), *map(list, map(json.loads, row[2:]))]),
    "question": ("run, id, due, body", lambda row: from_json(row[3], Question)),
    "event": ("run, id, kind, body", lambda row: _read_event(row[2], row[3])),
    "run_outcome": ("run, question, due, target, outcome, payoff, resolved_at", lambda row: _resolution(*row[1:])),
}
"""Columns of each table and how to read a row of them; the first two columns name the row."""
TABLE_NOUNS = {"run": "runs", "question": "questions", "event": "steps", "run_outcome": "outcomes"}


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
        noun = "outcome of" if table == "run_outcome" else TABLE_NOUNS[table].removesuffix("s")
        named = f"run {row[0]}" if table == "run" else f"{noun} {row[1]} of run {row[0]}"
        raise DamagedRow(named, "it cannot be read", place) from None


# Checks of a file of runs.


def run_ids(path: Path) -> set[str]:
    """Return the ids of the runs in a file, which may be empty or older than this version."""
    with closing(open_read_only(path)) as con:
        known = con.execute("select 1 from sqlite_master where name = 'run'").fetchone()
        return {row[0] for row in con.execute("select id from run")} if known else set()


def unreadable_rows(path: Path) -> dict[str, list[SqlRow]]:
    """Return the runs, questions, steps and outcomes that cannot be read although the file is sound, by table."""
    unreadable: dict[str, list[SqlRow]] = {}
    with closing(open_read_only(path)) as con:
        if not con.execute("select 1 from pragma_table_info('cell') where name = 'checksum'").fetchone():
            return {}  # An older version, whose tables are not migrated yet.
        con.text_factory = text_or_bytes
        for table, (columns, read) in ROW_READERS.items():
            for row in con.execute(f"select {columns} from {table}"):
                try:
                    if any(isinstance(value, bytes) for value in row):
                        raise ValueError("text that cannot be decoded")
                    read(row)
                except UNREADABLE:
                    unreadable.setdefault(table, []).append(row)
    return unreadable


def remove_unreadable(statements: Statements, table: str, row: SqlRow) -> None:
    """Remove an unreadable row. A run with a readable spec only loses its services and tags."""
    if table == "run":
        with suppress(*UNREADABLE):
            dict(json.loads(row[1]))
            statements.write("update run set services = '[]', tags = '[]' where id = ?", row[:1])
            return
        statements.write("delete from run where id = ?", row[:1])
    elif table == "event":
        statements.write("delete from event where id = ?", row[1:2])
    else:
        key = ROW_READERS[table][0].split(", ")[: 3 if table == "question" else 4]
        where = " and ".join(f"{column} = ?" for column in key)
        statements.write(f"delete from {table} where {where}", row[: len(key)])
