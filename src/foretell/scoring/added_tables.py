"""Several tables as one: stored runs and the user's own."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from foretell.frozen import frozen
from foretell.questions.errors import InputError
from foretell.scoring.join import COST_COLUMNS, FACTS, Difference, difference_notes, log_tables, table_rows
from foretell.scoring.long_tables import Row, day_text
from foretell.scoring.role_columns import ColumnNames
from foretell.scoring.table_input import TableSource


@frozen
class RunRows:
    """Stored runs, and tables of the user, over their questions as two long tables."""

    forecasts: list[Row]
    outcomes: list[Row]
    combined: list[Row]
    """Answers of runs whose trials were combined with price and base rate by a tested rule."""
    names: tuple[str, ...]
    """Names of the forecasters, in the order of the runs."""
    texts: Mapping[str, str]
    """Question texts, by question id."""
    notes: tuple[str, ...] = ()
    """What failed in the runs, and how the user's own tables were read."""


def add_tables(
    run: RunRows, forecasts: TableSource | None, outcomes: TableSource | None, columns: ColumnNames | None = None
) -> RunRows:
    """Add the user's own tables to stored runs: a single table, or several by name.

    A table of forecasts may leave out what is unambiguous: the target of a question that has only one, and the date of
    a question that was asked once. Without a column `forecaster`, the forecaster has the name of the table. Outcomes,
    also those in a column of the forecasts, are added to the known ones.
    """
    known = {(row["question"], row["target"], row["due"]): row for row in run.outcomes}
    differences: list[Difference] = []
    by_question: dict[str, list[Row]] = {}
    for row in run.outcomes:
        by_question.setdefault(row["question"], []).append(row)

    def add_outcome(row: Row) -> None:
        key = (row.get("question"), row.get("target"), row.get("due"))
        if key not in known:
            by_question.setdefault(str(key[0]), []).append(row)
            known[key] = {"due": None, **row}
            return
        # A later outcome replaces an earlier one, as where a run is scored with the user's own outcomes.
        known[key] = joined_row(known[key], row, differences, newer=("outcome",))

    added, notes = list[Row](), list[str]()

    def read(table: TableSource, name: str, *, forecasts: bool) -> list[Row]:
        rows, new_notes = table_rows(table, name, columns, forecasts=forecasts)
        notes.extend(new_notes)
        return [_filled(row, by_question) for row in rows]

    tables = [(name, *log_tables(table, None)) for name, table in named_tables(forecasts).items()]
    answers = [("outcomes", outcomes), *((name, inside) for name, _, inside in tables)]
    for row in (row for name, table in answers if table is not None for row in read(table, name, forecasts=False)):
        add_outcome(row)
    taken = {row["forecaster"] for row in run.forecasts}
    for name, table, _ in tables:
        for row in read(table, name, forecasts=True):
            forecaster = row["forecaster"]
            full = row | {"forecaster": f"{forecaster} (table)" if forecaster in taken else forecaster}
            added.append({column: full[column] for column in FORECAST_COLUMNS if full.get(column) is not None})
            if "outcome" in full:
                add_outcome(
                    {
                        column: value
                        for column, value in full.items()
                        if column not in ("forecaster", "p", "trial", *COST_COLUMNS)
                    }
                )
    notes += difference_notes(differences)
    return replace(run, forecasts=[*run.forecasts, *added], outcomes=list(known.values()), notes=(*run.notes, *notes))


def joined_row(first: Row, second: Row, differences: list[Difference], newer: Collection[str] = ()) -> Row:
    """Return two rows about one target as one, with the values of the first, or of the second in the columns `newer`.

    Values that are missing come from the other row. Facts in which the rows differ are added to `differences`.
    """
    stated = {column: value for column, value in second.items() if value is not None}
    joined = {**first, **{c: value for c, value in stated.items() if first.get(c) is None or c in newer}}
    for column in FACTS:
        values = {float(row[column]) for row in (first, stated) if row.get(column) is not None}
        if len(values) > 1:
            used = float(joined[column])
            (other,) = values - {used}
            question, target = str(joined["question"]), str(joined.get("target") or "yes")
            differences.append(Difference(column=column, question=question, target=target, used=used, other=other))
    return joined


FORECAST_COLUMNS = ("forecaster", "question", "target", "due", "trial", "p", *COST_COLUMNS)


def named_tables(forecasts: Any) -> dict[str, TableSource]:
    """Return tables by name: those of a mapping, a single one by the name of its file, or none."""
    if forecasts is None or isinstance(forecasts, Mapping):
        return dict(cast("Mapping[str, TableSource]", forecasts or {}))
    return {str(forecasts) if isinstance(forecasts, str | Path) else "forecasts": forecasts}


def _filled(row: Mapping[str, Any], by_question: Mapping[str, Sequence[Row]]) -> Row:
    """Fill in the target and the date of a row's question, if they are missing and there is only one."""
    known = by_question.get(str(row.get("question")), ())
    full = dict(row)
    for column in ("target", "due"):
        if full.get(column) is None and len(values := {other[column] for other in known}) == 1:
            full[column] = values.pop()
    with suppress(ValueError, TypeError, InputError):  # Invalid dates are reported when tables are checked.
        full["due"] = day_text(full["due"]) if full.get("due") else None
    return full | {"target": full.get("target") or "yes"}
