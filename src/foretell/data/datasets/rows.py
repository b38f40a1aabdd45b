"""One record of a user's or publisher's file, which knows its position and so can raise precise errors."""

import csv
import gzip
import json
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from functools import lru_cache
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from foretell.data.files import open_duckdb
from foretell.data.untrusted import from_csv
from foretell.frozen import frozen
from foretell.questions.as_of import instant
from foretell.questions.codec import parse_json
from foretell.questions.errors import InputError, WrongValue, known_names, said

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FIRST_LINE = 1 << 20
"""Maximum characters of the first line that are read to recognise a file."""


@frozen
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
        message = f"{self.name}: {what}" if self.name else what
        return InputError(message, path=self.path, row=self.number or None, column=field, hint=hint)

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

    def get_datetime(self, field: str) -> datetime | None:
        """Return the field as a time in UTC; None if it is absent. A clock time without a time zone raises."""
        value = self.get(field)
        if value is None:
            return None
        if not isinstance(value, str | date):
            raise self.problem(field, f"{value!r} is not a date", "write e.g. 2026-12-31 or 2026-12-31T18:00:00Z")
        return self.reading(field, lambda: instant(value.strip() if isinstance(value, str) else value))

    def need_datetime(self, field: str, hint: str | None = None) -> datetime:
        """Return a required time."""
        value = self.get_datetime(field)
        if value is None:
            raise self.problem(field, "is missing", hint)
        return value

    def need_datetimes(self, field: str) -> list[datetime]:
        """Return a list of times; an empty entry raises."""
        return [replace(self, fields={field: value}).need_datetime(field) for value in self.items(field)]

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
            if isinstance(error, InputError) and not isinstance(error, WrongValue):
                raise
            raise self.problem(field, said(error, field)) from None

    def known_fields(self, known: tuple[str, ...]) -> None:
        """Raise on an unknown field, suggesting the one that was probably meant."""
        for field in self.fields:
            if field not in known:
                raise self.problem(field, "is not a known field", known_names(field, known))


def text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, which may be compressed by gzip; one that is not text raises `InputError`."""
    number = 1
    try:
        with _opened(path) as file:
            for number, line in enumerate(file, start=1):
                if b"\0" in line:
                    refuse_binary(path)
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        problem = f"line {number} is not UTF-8 at byte {error.start + 1}"
        raise InputError(problem, path=path, hint="save it as UTF-8") from None


def refuse_binary(path: Path) -> None:
    """Refuse a file with NUL bytes, which no text file contains and readers would treat as part of a name."""
    lines = 1
    with _opened(path) as file:
        while block := file.read(1 << 20):
            if lines == 1 and block.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                raise InputError("is not UTF-8 but UTF-16", path=path, hint="save it as UTF-8")
            if (at := block.find(b"\0")) >= 0:
                lines += block.count(b"\n", 0, at)
                hint = "is it damaged, or not a text file?"
                raise InputError(f"line {lines} contains a NUL byte", path=path, hint=hint)
            lines += block.count(b"\n")


@contextmanager
def _opened(path: Path) -> Generator[BinaryIO]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield cast("BinaryIO", file)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError("is not a complete gzip file", path=path, hint="is it cut off, or not compressed?") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path=path) from None


def begins_with_mark(path: Path) -> bool:
    """Whether a file begins with the byte order mark of UTF-8, which `text_lines` skips."""
    with _opened(path) as file:
        return file.read(len(BOM_UTF8)) == BOM_UTF8


def read_text(path: Path) -> str:
    """Read a UTF-8 file and convert line endings to newlines; the usual failures raise `InputError`."""
    return "".join(text_lines(path)).replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: Path) -> Any:
    """Parse a JSON file."""
    return _parsed(read_text(path), path)


def jsonl_rows(path: Path) -> Iterator[Row]:
    """Yield the objects of a JSONL file; blank lines are skipped but counted."""
    for number, line in enumerate(text_lines(path), start=1):
        if line.strip():
            yield record(path, number, _parsed(line, path, number))


def _parsed(text: str, path: Path, row: int | None = None) -> Any:
    try:
        return parse_json(text, object_pairs_hook=_each_field_once)
    except InputError as error:
        raise error.at(path=path, row=row) from None


def _each_field_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("appears twice in one object", column=twice, hint="remove or rename one")
    return fields


def first_fields(path: Path) -> frozenset[str]:
    """Return the fields of the first object of a JSONL file; empty for any other file. Reads only the first line."""
    if path.suffix.lower() != ".jsonl" or not path.is_file():
        return frozenset()
    try:
        with path.open(encoding="utf-8-sig") as file:
            value: Any = json.loads(file.readline(FIRST_LINE))
    except (OSError, ValueError, RecursionError):
        return frozenset()
    return frozenset(map(str, cast("dict[Any, Any]", value))) if isinstance(value, dict) else frozenset()


def csv_rows(path: Path, delimiter: str = ",") -> Iterator[Row]:
    """Yield the data rows of a CSV file with a header."""
    csv.field_size_limit(1 << 28)
    number = 0
    try:
        lines = csv.reader(StringIO(read_text(path)), strict=True, delimiter=delimiter)
        header = [from_csv(name) for name in next(lines, [])]
        for name in filter(None, map(str.strip, header)):
            if [column.strip() for column in header].count(name) > 1:
                problem = f"column {name!r} appears twice"
                raise InputError(problem, path=path, column=name, hint="remove or rename one")
        for number, cells in enumerate(filter(None, lines), start=1):
            if len(cells) != len(header):
                problem = f"the row has {len(cells)} values and the header {len(header)}"
                hint = f"quote a value that contains {delimiter!r}"
                raise InputError(problem, path=path, row=number, hint=hint)
            yield Row(path=path, number=number, fields=dict(zip(header, map(from_csv, cells), strict=True)))
    except csv.Error as error:
        what = "a quotation mark is never closed" if "end of data" in str(error) else f"is not CSV: {error}"
        raise InputError(what, path=path, row=number + 1, hint='write " inside a value as ""') from None


def record(path: Path, number: int, value: Any) -> Row:
    """Convert a parsed object to a row; anything but an object raises."""
    if not isinstance(value, dict):
        problem = f"expected an object with fields, found {str(value)[:40]!r}"
        raise InputError(problem, path=path, row=number, hint='write {"name": value, …}, one for each record')
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
            raise unreadable_table(error, path) from None


def table_rows(path: Path) -> Iterator[Row]:
    """Yield the records of a Parquet, JSONL, JSON or CSV file, counted from 1; other kinds of files raise."""
    kind = path.suffix.lower()
    if kind == ".parquet":
        with open_table(path, ()) as (con, table, _):
            found = con.execute(f"select {_as_python(con, table)} from {table}")
            names = [column for column, *_ in found.description or ()]
            number = 0
            while batch := found.fetchmany(1000):
                for values in batch:
                    number += 1
                    yield Row(path=path, number=number, fields=dict(zip(names, values, strict=True)))
    elif kind in (".jsonl", ".ndjson"):
        yield from jsonl_rows(path)
    elif kind == ".json":
        value = read_json(path)
        if not isinstance(value, list):
            raise InputError("expected a list of records", path=path)
        for number, item in enumerate(cast(list[Any], value), start=1):
            yield record(path, number, item)
    elif kind == ".csv":
        yield from csv_rows(path)
    else:
        raise InputError(f"{kind or 'no ending'} is not a kind of table", path=path, hint=", ".join(TABLES))


TABLES = (".csv", ".json", ".jsonl", ".ndjson", ".parquet")
"""Endings of the files that `table_rows` reads."""


def _as_python(con: "DuckDBPyConnection", table: str) -> str:
    """SQL for all columns, with times in a zone as text: DuckDB needs another package to convert them."""
    zoned = [name for name, kind, *_ in con.execute(f"describe select * from {table}").fetchall() if "ZONE" in kind]
    quoted = ('"' + str(name).replace('"', '""') + '"' for name in zoned)
    times = ", ".join(f"strftime({name} at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ') as {name}" for name in quoted)
    return f"* replace ({times})" if times else "*"


def columns_of(path: Path) -> frozenset[str]:
    """Return the columns of a table, to recognise its format; empty if it is none or cannot be read."""
    if path.suffix.lower() not in TABLES or not path.is_file():
        return frozenset()
    state = path.stat()
    return _columns_of(path.absolute(), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=16)  # Every format looks at the same file.
def _columns_of(path: Path, changed: int, size: int) -> frozenset[str]:
    try:
        return frozenset(next(table_rows(path)).fields)
    except (StopIteration, InputError):
        return frozenset()


def unreadable_table(error: Exception, path: Path) -> InputError:
    """Explain why DuckDB cannot read a file: its own message counts lines wrongly and mentions its options."""
    if path.is_file():
        try:
            check_lines(path)
        except InputError as problem:
            return problem
    if "magic bytes" in str(error):
        return InputError("is not a complete Parquet file", path=path, hint="is it cut off? write it again")
    message = str(error).splitlines()[0].removeprefix("Invalid Input Error: ").replace(f' "{path}"', "")
    return InputError(message, path=path, hint="is it a well-formed table?")


def check_lines(path: Path) -> None:
    """Read a CSV, TSV or JSONL file line by line, and raise the `InputError` of the first malformed line."""
    kind = Path(path.stem if path.suffix == ".gz" else path).suffix.lower()
    if kind in (".jsonl", ".ndjson"):
        for row in jsonl_rows(path):
            _refuse_half_characters(row)
    elif kind in (".csv", ".tsv"):
        header = next(text_lines(path), "")
        if kind == ".tsv" and "\t" not in header and "," in header:
            raise InputError("has no tabs", path=path, hint="name it .csv if commas separate the values")
        for _ in csv_rows(path, "\t" if kind == ".tsv" else max(",;\t|", key=header.count)):
            pass


def _refuse_half_characters(row: Row) -> None:
    """Refuse an escaped character that lacks its second half, which Python reads and DuckDB does not."""
    for name, value in row.fields.items():
        try:
            f"{name}{value}".encode()
        except UnicodeEncodeError:
            hint = "write it as UTF-8, or escape both halves"
            raise row.problem(name, "contains half a character", hint) from None
