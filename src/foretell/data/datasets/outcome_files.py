"""Tables of how questions came out."""

from pathlib import Path

from foretell.data.datasets.rows import Row, csv_rows, jsonl_rows
from foretell.questions.errors import InputError
from foretell.questions.resolution import Resolution

ONLY_TARGET = "yes"
"""The target of a row that names none."""
OUTCOME_READERS = {".csv": csv_rows, ".jsonl": jsonl_rows}


def read_outcomes(file: Path) -> tuple[Resolution, ...]:
    """The outcomes of a table with the columns question, target, outcome and, where it matters, due."""
    if not file.exists():
        raise InputError("no such file", path=file)
    reader = OUTCOME_READERS.get(file.suffix.lower())
    if reader is None:
        raise InputError("is no table of outcomes", path=file, hint="use .csv or .jsonl")
    return tuple(map(_resolution, reader(file)))


def _resolution(row: Row) -> Resolution:
    outcome = row.real("outcome")
    if outcome not in (0, 1, None):
        raise row.problem("outcome", f"{outcome:g} is neither 0 nor 1")
    try:
        return Resolution(
            question_id=str(row.need("question")),
            target_id=row.text("target") or ONLY_TARGET,
            outcome=None if outcome is None else int(outcome),
            due=row.text("due") or None,  # pyright: ignore[reportArgumentType] - read by the value itself
        )
    except ValueError as error:
        raise row.problem("due", str(error)) from None
