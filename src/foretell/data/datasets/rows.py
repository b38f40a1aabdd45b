"""One record of a user's or publisher's file, which knows its position and so can raise precise errors."""

import csv
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from foretell.data.files import open_duckdb
from foretell.data.untrusted import from_csv
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError, known_names

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FIRST_LINE = 1 << 20
"""Maximum characters of the first line that are read to recognise a file."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """Fields of one record. A missing field, null and an empty string all count as absent."""

    path: Path
    number: int
    """Counted from 1: line of a JSONL file, data row of a CSV file, position in a list; 0 for the head of a file."""
    fields: Mapping[str, Any]
    name: str = ""
    """What the record is about, once that is known, e.g. 'question fred/DAAA'."""

    def problem(self, field: str | None, what: str, hint: str | None = None) -> InputError:
        """Return the error to raise about a field of this row."""
        told = f"{self.name}: {what}" if self.name else what
        return InputError(told, path=self.path, row=self.number or None, column=field, hint=hint)

    def get(self, field: str) -> Any:
        """Return the raw value, or None if it is absent."""
        value = self.fields.get(field)
        return None if isinstance(value, str) and not value.strip() else value

    def need(self, field: str) -> Any:
        """Return the raw value of a required field."""
        value = self.get(field)
        if value is None:
            raise self.problem(field, "is missing")
        return value

    def named(self, name: str) -> "Row":
        """Return the same record with a name for its errors."""
        return replace(self, name=name)

    def part(self, field: str, value: Any) -> "Row":
        """Return an object inside the record as a row whose errors name the record."""
        if not isinstance(value, dict):
            raise self.problem(field, f"expected an object, found {str(value)[:40]!r}")
        return replace(self, fields=cast(dict[str, Any], value))

    def need_text(self, field: str) -> str:
        """Return a required text."""
        return self.text(field) or str(self.need(field))

    def text(self, field: str) -> str:
        """Return the field as text; numbers and booleans are converted, an absent field is ''."""
        value = self.get(field)
        if isinstance(value, dict | list):
            raise self.problem(field, f"expected a text, found {json.dumps(value, default=str)[:60]}")
        return "" if value is None else str(value).strip()

    def real(self, field: str) -> float | None:
        """Return the field as a finite number; None if it is absent."""
        value = self.get(field)
        if value is None:
            return None
        try:
            number = float("nan") if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not isfinite(number):
            raise self.problem(field, f"{value!r} is not a number")
        return number

    def moment(self, field: str) -> datetime | None:
        """Return the field as a time in UTC; None if it is absent. A clock time without a time zone raises."""
        value = self.get(field)
        if value is None:
            return None
        if not isinstance(value, str | date):
            raise self.problem(field, f"{value!r} is not a date", "write e.g. 2026-12-31 or 2026-12-31T18:00:00Z")
        return self.reading(field, lambda: instant(value.strip() if isinstance(value, str) else value))

    def need_moment(self, field: str, hint: str | None = None) -> datetime:
        """Return a required time."""
        moment = self.moment(field)
        if moment is None:
            raise self.problem(field, "is missing", hint)
        return moment

    def moments(self, field: str) -> list[datetime]:
        """Return a list of times; an empty entry raises."""
        return [replace(self, fields={field: value}).need_moment(field) for value in self.items(field)]

    def need_flag(self, field: str, hint: str | None = None) -> bool:
        """Return a required boolean."""
        flag = self.flag(field)
        if flag is None:
            raise self.problem(field, "is missing", hint)
        return flag

    def flag(self, field: str) -> bool | None:
        """Return the field as a boolean: true/false, yes/no, 1/0; None if it is absent."""
        value = self.get(field)
        if value is None or isinstance(value, bool):
            return value
        known = {"true": True, "yes": True, "1": True, "1.0": True, "false": False, "no": False, "0": False}
        answer = {**known, "0.0": False}.get(str(value).strip().lower())
        if answer is None:
            raise self.problem(field, f"{value!r} is neither true nor false")
        return answer

    def items(self, field: str) -> list[Any]:
        """Return the field as a list; empty if it is absent."""
        value = self.get(field)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.problem(field, f"expected a list, found {str(value)[:60]!r}")
        return cast(list[Any], value)

    def reading(self, field: str | None, make: Callable[[], Any]) -> Any:
        """Call `make` and convert its `ValueError` into an error about this field."""
        try:
            return make()
        except ValueError as error:
            raise self.problem(field, str(error)) from None

    def known_fields(self, known: tuple[str, ...]) -> None:
        """Raise on an unknown field, suggesting the one that was probably meant."""
        for field in self.fields:
            if field not in known:
                raise self.problem(field, "is not a known field", known_names(field, known))


def read_text(path: Path) -> str:
    """Read a UTF-8 file; the usual failures raise `InputError`."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path=path) from None
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 at byte {error.start}", path=path, hint="save it as UTF-8") from None


def read_json(path: Path) -> Any:
    """Parse a JSON file."""
    try:
        return json.loads(read_text(path))
    except ValueError as error:
        raise InputError(f"is not JSON: {error}", path=path) from None


def jsonl_rows(path: Path) -> Iterator[Row]:
    """Yield the objects of a JSONL file; blank lines are skipped but counted."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            try:
                value = json.loads(line)
            except ValueError as error:
                raise InputError(f"is not JSON: {error}", path=path, row=number) from None
            yield record(path, number, value)


def first_fields(path: Path) -> frozenset[str]:
    """Return the fields of the first object of a JSONL file; empty for any other file. Reads only the first line."""
    if path.suffix.lower() != ".jsonl" or not path.is_file():
        return frozenset()
    try:
        with path.open(encoding="utf-8-sig") as file:
            value: Any = json.loads(file.readline(FIRST_LINE))
    except (OSError, ValueError):
        return frozenset()
    return frozenset(map(str, cast("dict[Any, Any]", value))) if isinstance(value, dict) else frozenset()


def csv_rows(path: Path) -> Iterator[Row]:
    """Yield the data rows of a CSV file with a header."""
    csv.field_size_limit(1 << 28)
    reader = csv.DictReader(StringIO(read_text(path)), strict=True)
    try:
        for number, fields in enumerate(reader, start=1):
            if None in fields:
                raise InputError("has more cells than the header has columns", path=path, row=number)
            if None in fields.values():
                raise InputError("has fewer cells than the header has columns", path=path, row=number)
            cells = {from_csv(name): from_csv(cell) for name, cell in fields.items()}
            yield Row(path=path, number=number, fields=cells)
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", path=path, row=reader.line_num) from None


def record(path: Path, number: int, value: Any) -> Row:
    """Convert a parsed object to a row; anything but an object raises."""
    if not isinstance(value, dict):
        raise InputError(f"expected an object with fields, found {str(value)[:40]!r}", path=path, row=number)
    fields = cast(dict[Any, Any], value)
    return Row(path=path, number=number, fields={str(k): v for k, v in fields.items()})


@contextmanager
def open_table(path: Path, needed: Sequence[str]) -> Generator[tuple["DuckDBPyConnection", str, list[str]]]:
    """Open a Parquet or CSV file with these columns for SQL: the connection, the table expression and all columns."""
    import duckdb

    name = "'" + str(path).replace("'", "''") + "'"
    table = f"read_csv({name}, all_varchar = true, header = true)" if path.suffix == ".csv" else f"read_parquet({name})"
    with open_duckdb() as con:
        try:
            columns = [str(column) for column, *_ in con.execute(f"describe select * from {table}").fetchall()]
            if missing := [column for column in needed if column not in columns]:
                raise InputError("is missing", path=path, column=missing[0], hint=f"columns here: {', '.join(columns)}")
            yield con, table, columns
        except duckdb.Error as error:
            raise InputError(str(error).splitlines()[0], path=path, hint="is it a well-formed table?") from None
