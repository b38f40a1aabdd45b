"""The frame all ForecastBench files share: an object with a due date and one long list."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from foretell.questions.problems import InputError
from foretell.sources.datasets.row import Row, read_json, record


@dataclass(frozen=True, kw_only=True)
class Document:
    """A published file: the round it belongs to, and its rows."""

    path: Path
    head: Row
    due: datetime
    rows: tuple[Row, ...]

    @property
    def day(self) -> str:
        """The round's due date as published."""
        return self.due.date().isoformat()


def read_document(path: Path, list_name: str) -> Document:
    """Read the frame of a file and check it; rows are checked by whoever reads them."""
    body: Any = read_json(path)
    if not isinstance(body, dict) or not isinstance(body.get(list_name), list):
        raise InputError(
            f"has no list named {list_name!r}", path=path, hint="is this the ForecastBench file you meant?"
        )
    head = Row(path=path, number=0, fields={k: v for k, v in body.items() if k != list_name})
    rows = tuple(record(path, number, value) for number, value in enumerate(body[list_name], start=1))
    return Document(path=path, head=head, due=_due(head), rows=rows)


def _due(head: Row) -> datetime:
    """The due date, named outright or by the question set's file name."""
    told = head.text("forecast_due_date")
    named = head.text("question_set")[:10]
    field = "forecast_due_date" if told else "question_set"
    if told and named and told[:10] != named:
        problem = f"forecast_due_date {told} and question_set {named} name two rounds"
        raise InputError(problem, path=head.path, column="question_set")
    try:
        due = Row(path=head.path, number=0, fields={field: told or named}).moment(field)
    except InputError as error:
        raise InputError(error.problem, path=head.path, column=field) from None
    if due is None:
        raise InputError("names no forecast due date", path=head.path, column="forecast_due_date")
    return due


def identity(row: Row) -> tuple[str, Row] | None:
    """The question's id as '<source>/<id>' and the row that says so in its errors; None for a combination."""
    if isinstance(row.need("id"), list):
        return None
    question_id = f"{row.text('source') or row.need('source')}/{row.text('id')}"
    return question_id, Row(path=row.path, number=row.number, fields=row.fields, name=f"question {question_id}")
