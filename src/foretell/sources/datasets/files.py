"""A person's own questions in JSONL, JSON, CSV or YAML. Such a file asks; it never holds the answers.

Outcomes go into a table of their own with the columns question, target, outcome.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from foretell.questions.codec import from_dict
from foretell.questions.problems import InputError
from foretell.questions.question import Question
from foretell.sources.datasets.plain import FIELDS, plain_question
from foretell.sources.datasets.question_set import Asked, QuestionSet, asked
from foretell.sources.datasets.row import Row, csv_rows, hint_for, jsonl_rows, read_json, read_text, record

ANSWERS = ("answer", "outcome", "outcomes", "label", "payoff", "resolution", "resolved", "resolved_to", "result")


def read_questions(path: str | Path, *, asked_at: datetime | None = None) -> QuestionSet:
    """Read questions from a file of any of the four kinds, told by its ending.

    Args:
        path: A `.jsonl`, `.json`, `.csv`, `.yaml` or `.yml` file. Rows are either plain (see `plain.FIELDS`) or whole
            questions as `to_json` writes them.
        asked_at: When the questions are asked, for rows that do not say so in `due`; without it, such rows are refused.
    """
    file = Path(path)
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        kinds = ", ".join(sorted(READERS))
        raise InputError(f"{file.suffix or 'no ending'} is not a kind of question file", path=file, hint=kinds)
    seen: dict[Asked, int] = {}
    questions: list[Question] = []
    for row in reader(file):
        question = _question(row, asked_at)
        if asked(question) in seen:
            first = seen[asked(question)]
            raise row.problem("id", f"question {question.id} is already in row {first}", "give each row its own id")
        seen[asked(question)] = row.number
        questions.append(question)
    if not questions:
        raise InputError("holds no question", path=file)
    return QuestionSet(name=file.stem, questions=tuple(questions))


def _question(row: Row, asked_at: datetime | None) -> Question:
    for field in ANSWERS:
        if field in row.fields:
            raise row.problem(
                field, "questions hold no answers", "put outcomes into a table with columns question,target,outcome"
            )
    if "targets" in row.fields or "schema" in row.fields:
        return _whole(row)
    row.known_fields(FIELDS)
    return plain_question(row, asked_at)


def _whole(row: Row) -> Question:
    """A question as `to_json` writes it."""
    try:
        return from_dict(dict(row.fields), Question)
    except InputError as error:
        raise error.at(path=row.path, row=row.number) from None


def _json_rows(path: Path) -> Iterator[Row]:
    yield from _listed(path, read_json(path))


def _yaml_rows(path: Path) -> Iterator[Row]:
    import yaml

    try:
        value = yaml.safe_load(read_text(path))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(f"is not YAML: {error.problem}", path=path, row=line) from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"is not YAML: {error}", path=path) from None
    yield from _listed(path, value)


def _listed(path: Path, value: Any) -> Iterator[Row]:
    """The rows of a list, or of the list under `questions`."""
    if isinstance(value, dict) and "questions" in value:
        body = cast(dict[str, Any], value)
        extra = [key for key in body if key != "questions"]
        if extra:
            raise InputError("stands beside the list of questions", path=path, column=str(extra[0]))
        value = body["questions"]
    if not isinstance(value, list):
        raise InputError("expected a list of questions", path=path, hint=hint_for([], ("a list", "questions: a list")))
    for number, item in enumerate(cast(list[Any], value), start=1):
        yield record(path, number, item)


def _csv_rows(path: Path) -> Iterator[Row]:
    """CSV rows with lists spelled out: options and dates are separated by semicolons."""
    for row in csv_rows(path):
        fields = {field.strip(): value for field, value in row.fields.items() if value.strip()}
        for field in ("options", "dates"):
            if field in fields:
                fields[field] = [part.strip() for part in fields[field].split(";") if part.strip()]
        yield replace(row, fields=fields)


READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".csv": _csv_rows,
    ".json": _json_rows,
    ".jsonl": jsonl_rows,
    ".yaml": _yaml_rows,
    ".yml": _yaml_rows,
}
