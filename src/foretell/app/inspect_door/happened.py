"""How one's own questions came out: a table of question, target, outcome beside the file that asks."""

from pathlib import Path

from foretell.questions.problems import InputError
from foretell.questions.resolution import Resolution
from foretell.sources.datasets.row import Row, csv_rows, jsonl_rows

READERS = {".csv": csv_rows, ".jsonl": jsonl_rows}


def read_outcomes(path: str | Path) -> tuple[Resolution, ...]:
    """The outcomes of a table with the columns question, target, outcome and, where it matters, due."""
    file = Path(path)
    if not file.exists():
        raise InputError("no such file", path=file)
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise InputError("is no table of outcomes", path=file, hint="use .csv or .jsonl")
    return tuple(_resolution(row) for row in reader(file))


def _resolution(row: Row) -> Resolution:
    outcome = row.real("outcome")
    if outcome not in (0, 1, None):
        raise row.problem("outcome", f"{outcome:g} is neither 0 nor 1")
    try:
        return Resolution(
            question_id=str(row.need("question")),
            target_id=row.text("target") or "yes",
            outcome=None if outcome is None else int(outcome),
            due=row.text("due") or None,  # pyright: ignore[reportArgumentType] - read by the value itself
        )
    except ValueError as error:
        raise row.problem("due", str(error)) from None
