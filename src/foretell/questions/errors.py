"""Errors for users, with the location of the problem and a hint."""

import errno
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from foretell.frozen import frozen

SETTINGS_FILES = (".yaml", ".yml", ".json", ".toml")


@frozen
class InputProblem:
    """One problem of a table and the rows that have it."""

    problem: str
    row: int | None = None
    """The first of these rows."""
    column: str | None = None
    hint: str | None = None
    count: int = 1
    """Number of rows."""
    more: tuple[int, ...] = ()
    """The next few rows after the first."""

    def text(self) -> str:
        """Return the problem and its other rows."""
        others = self.count - 1
        if others < 1:
            return self.problem
        rows = ", ".join(map(str, self.more)) + (", …" if others > len(self.more) else "")
        return f"{self.problem}, and {others:,} more row{'s' * (others > 1)}: {rows}"


class InputError(ValueError):
    """Input that cannot be used, in one line with its place and a remedy. Commands print it and exit with 2.

    Args:
        problem: What is wrong.
        path: The file or table.
        row: The row in it, counted from 1 without the header; the line of a text.
        column: The column, field or parameter.
        hint: What to do about it.

    >>> print(InputError("1.2 is outside [0, 1]", path="f.csv", row=17, column="p", hint="write 0.12 for 12 %"))
    f.csv, row 17, column p: 1.2 is outside [0, 1] (write 0.12 for 12 %)
    >>> print(InputError("is not a number", path="run.yaml", column="budget.run"))
    run.yaml, field budget.run: is not a number

    Several problems of one table are listed together, each with its number of rows:

    >>> p = InputProblem(problem="abc is not a number", row=7, column="p", count=3, more=(12, 19))
    >>> y = InputProblem(problem="won is not an outcome", row=2, column="outcome", hint="write 0 or 1")
    >>> print(InputError.of((p,), path="f.csv"))
    f.csv, row 7, column p: abc is not a number, and 2 more rows: 12, 19
    >>> print(InputError.of((p, y), path="f.csv"))
    2 problems in f.csv: row 7, column p: abc is not a number, and 2 more rows: 12, 19; row 2, column outcome: won is \
    not an outcome (write 0 or 1)
    """

    exit_code = 2
    table_problems: tuple[InputProblem, ...] = ()
    """All problems of the table, if the problem is in its rows."""

    def __init__(
        self,
        problem: str,
        *,
        path: str | Path | None = None,
        row: int | None = None,
        column: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem = problem
        self.path = path
        self.row = row
        """Data row counted from 1, without the header; the line number for JSONL and text files."""
        self.column = column
        self.hint = hint
        super().__init__(problem)

    @classmethod
    def of(cls, problems: Sequence[InputProblem], path: str | Path | None = None) -> "InputError":
        """Return one error for all problems of a table."""
        first = problems[0]
        error = cls(first.problem, path=path, row=first.row, column=first.column, hint=first.hint)
        error.table_problems = tuple(problems)
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        """Let the error pass between processes, whatever the parameters of its class are."""
        return _made_again, (type(self), self.args), self.__dict__

    def lines(self) -> list[str]:
        """Return a line for each of several problems of a table; empty if there is only one."""
        return (
            [self._line([], table_problem) for table_problem in self.table_problems]
            if len(self.table_problems) > 1
            else []
        )

    def __str__(self) -> str:
        """One line: place, problem, remedy."""
        path = [] if self.path is None else [str(self.path)]
        if lines := self.lines():
            return f"{len(lines)} problems{f' in {self.path}' if path else ''}: {'; '.join(lines)}"
        shown = InputProblem(problem=self.problem, row=self.row, column=self.column, hint=self.hint)
        if self.table_problems:
            shown = replace(shown, count=self.table_problems[0].count, more=self.table_problems[0].more)
        return self._line(path, shown)

    def _line(self, place: Sequence[str], problem: InputProblem) -> str:
        where = [*place, *([f"row {problem.row}"] if problem.row is not None else [])]
        if problem.column is not None:
            where.append(
                problem.column if problem.column.startswith("-") else f"{self._column_word()} {problem.column}"
            )
        text = ": ".join(filter(None, [", ".join(where), problem.text()]))
        return " ".join((text + (f" ({problem.hint})" if problem.hint else "")).split())

    def _column_word(self) -> str:
        """Return "column" for tables and "field" for settings files and requests."""
        if self.row is not None:
            return "column"
        return "field" if self.path is None or Path(self.path).suffix.lower() in SETTINGS_FILES else "column"

    def at(self, *, path: str | Path | None = None, row: int | None = None, column: str | None = None) -> "InputError":
        """Return the same problem with a location that the caller knows."""
        error = InputError(
            self.problem,
            path=self.path or path,
            row=self.row if self.row is not None else row,
            column=column or self.column,
            hint=self.hint,
        )
        error.table_problems = self.table_problems
        return error


def _made_again(kind: type[InputError], arguments: tuple[Any, ...]) -> InputError:
    return kind.__new__(kind, *arguments)


class WrongValue(InputError):
    """A value of a `Question`, `Forecast` or other class that its field does not take.

    Args:
        kind: The class.
        field: The field.
        problem: What is wrong, with the value.
        expected: What the field takes, if the problem does not say it.

    >>> wrong = WrongValue("Forecast", "p", "probability of 'yes' is 20", "a number from 0 to 1")
    >>> print(wrong)
    Forecast, field p: probability of 'yes' is 20; expected a number from 0 to 1
    >>> print(wrong.at(path="f.csv", row=3))
    f.csv, row 3, column p: probability of 'yes' is 20; expected a number from 0 to 1
    """

    def __init__(self, kind: str, field: str, problem: str, expected: str = "") -> None:
        super().__init__(f"{problem}; expected {expected}" if expected else problem, column=field)
        self.kind = kind
        self.field = field

    def __str__(self) -> str:
        """One line: class, field, problem."""
        return f"{self.kind}, {super().__str__()}"


def said(error: Exception, column: str | None = None) -> str:
    """Return what an error says, for an error that names its place: without the class of a `WrongValue`.

    Its field is left out too, if it is the column that the new error names.

    >>> wrong = WrongValue("Snapshot", "last_price", "is 20")
    >>> said(wrong, "last_price"), said(wrong, "price"), said(ValueError("not a number"))
    ('is 20', 'last_price is 20', 'not a number')
    """
    if not isinstance(error, WrongValue):
        return str(error)
    without_subject = error.field != column and error.problem.startswith("is ")
    return f"{error.field} {error.problem}" if without_subject else error.problem


def validator_error(errors: Sequence[Mapping[str, Any]]) -> InputError | None:
    """Return the first `InputError` among the errors that pydantic collected; it says more than pydantic's summary.

    A `WrongValue` inside other values names the path to its field instead of its class.
    """
    for error in errors:
        raised = error.get("ctx", {}).get("error")
        if isinstance(raised, WrongValue):
            return InputError(raised.problem, column=".".join([*map(str, error["loc"]), raised.field]))
        if isinstance(raised, InputError):
            return raised
    return None


def plain_problem(error: Mapping[str, Any]) -> str:
    """Return pydantic's problem with a value in plain words that can follow the name of the field.

    >>> plain_problem({"type": "less_than_equal", "ctx": {"le": 1.0}, "input": 40.0, "msg": "…"})
    'must be at most 1, not 40'
    >>> plain_problem({"type": "string_too_short", "ctx": {"min_length": 1}, "input": "", "msg": "…"})
    'is empty'
    """
    kind, value, message = error["type"], error.get("input"), str(error["msg"]).removeprefix("Value error, ")
    limits = [
        f"{limit:,g}" if isinstance(limit, int | float) else str(limit) for limit in error.get("ctx", {}).values()
    ]
    if kind in ("string_too_short", "too_short") and "1" in limits:
        return "is empty"
    if kind not in PROBLEMS:
        return message
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    repeated = isinstance(value, int | float | str) and "string" not in kind and 0 < len(shown) <= SHOWN
    return PROBLEMS[kind].format(*limits) + (f", not {shown}" if repeated else "")


SHOWN = 40
"""Maximum length of a wrong value that a message repeats."""
PROBLEMS = {
    "missing": "is missing",
    "string_too_short": "is too short: it needs at least {} characters",
    "string_too_long": "is too long: at most {} characters",
    "string_type": "must be text",
    "less_than": "must be less than {}",
    "less_than_equal": "must be at most {}",
    "greater_than": "must be more than {}",
    "greater_than_equal": "must be at least {}",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_parsing": "must be yes or no",
    "bool_type": "must be yes or no",
    "literal_error": "must be {}",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "path_type": "must be a path",
    "dict_type": "must have fields, each written as NAME: VALUE",
    "dataclass_type": "must have fields, each written as NAME: VALUE",
}
"""Message by type of a pydantic error."""


class MissingExtra(InputError):
    """An optional part of the package is needed and not installed."""

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs an optional part", hint=f"pip install 'foretell[{extra}]'")


class NoAnswer(InputError):
    """The request was correct, but there is no answer. The command line exits with 3, as for a failed run."""

    exit_code = 3


def known_names(name: str, known: Sequence[str]) -> str:
    """Return a hint for an unknown name: one or two similar names, or all names.

    >>> known_names("lable", ["claim", "label"]), known_names("x", ["claim", "label"])
    ('did you mean label?', 'known: claim, label')
    """
    similar = get_close_matches(name, known, n=2)
    return f"did you mean {' or '.join(similar)}?" if similar else f"known: {', '.join(known)}"


# Errors of disks and databases.

FULL_HINT = "free some space; foretell doctor shows how much there is"
READ_ONLY_HINT = "what is stored can still be read; set FORETELL_HOME to a folder that can be written to"
DAMAGED_HINT = "foretell doctor shows how to restore it"


class StorageError(InputError):
    """A file or database in the home cannot be used."""


class DiskFull(StorageError):
    """The disk is full; nothing was written."""


class NoRoom(DiskFull):
    """The disk is almost full, so nothing was requested."""


class DamagedFile(StorageError):
    """A file does not contain what was written to it."""


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# SQLite reports a full disk only for ENOSPC. A quota or a limit is reported as a failed write.
_FULL_CODES = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
_DAMAGED_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# A missing column, or text that is not UTF-8 or JSON, means that a page is damaged, because only we write the tables.
_DAMAGED_WORDS = ("Could not decode to UTF-8", "malformed JSON", "no such column")


def storage_error(error: BaseException, path: str | Path | None = None) -> StorageError | None:
    """Convert an error of a disk or database to a `StorageError` with a hint; None for other errors.

    >>> print(storage_error(OSError(28, "No space left on device"), "a.db"))
    a.db: the disk is full (free some space; foretell doctor shows how much there is)
    """
    if isinstance(error, StorageError):
        return error
    if isinstance(error, OSError):
        return _from_system(error, path or error.filename)
    if not isinstance(error, sqlite3.DatabaseError):
        return None
    code = getattr(error, "sqlite_errorcode", None) or 0
    if code in _FULL_CODES:
        return DiskFull("the disk is full", path=path, hint=FULL_HINT)
    if code & 0xFF in _DAMAGED_CODES or str(error).startswith(_DAMAGED_WORDS):
        return DamagedFile(f"the file is damaged: {str(error)[:120]}", path=path, hint=DAMAGED_HINT)
    if code & 0xFF == sqlite3.SQLITE_READONLY:
        return StorageError("it cannot be written to", path=path, hint=READ_ONLY_HINT)
    if code & 0xFF == sqlite3.SQLITE_CANTOPEN:
        return StorageError("it cannot be opened or created", path=path, hint="foretell doctor shows more")
    if code & 0xFF == sqlite3.SQLITE_IOERR:
        return StorageError(f"the disk has errors: {error}", path=path, hint="foretell doctor shows more")
    if code & 0xFF == sqlite3.SQLITE_BUSY:
        return StorageError("another process has been writing to it for too long", path=path, hint="try again")
    return None


def _from_system(error: OSError, path: str | Path | None) -> StorageError | None:
    if error.errno in _FULL:
        return DiskFull("the disk is full", path=path, hint=FULL_HINT)
    if error.errno == errno.EROFS:
        return StorageError("it cannot be written to: the file system is read-only", path=path, hint=READ_ONLY_HINT)
    if error.errno in (errno.EACCES, errno.EPERM):
        return StorageError(f"{error.strerror}", path=path, hint="change its permissions, or use another path")
    if error.errno == errno.EIO:
        return StorageError("the disk has errors", path=path, hint="foretell doctor shows more")
    return None


def storage_error_in(error: BaseException) -> StorageError | None:
    """Return the first storage problem in an error, which may be a group of errors."""
    if isinstance(error, BaseExceptionGroup):
        problems = (storage_error_in(inner) for inner in error.exceptions)
        return next((problem for problem in problems if problem is not None), None)
    return storage_error(error)
