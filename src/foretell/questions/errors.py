"""The error that users see for bad input: where it is, what is wrong, what to do."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

SETTINGS_FILES = (".yaml", ".yml", ".json", ".toml")


class InputError(Exception):
    """Something a person handed us cannot be used. The command line prints it as one line and exits with 2.

    >>> print(InputError("1.2 is outside [0, 1]", path="f.csv", row=17, column="p", hint="write 0.12 for 12 %"))
    f.csv, row 17, column p: 1.2 is outside [0, 1] (write 0.12 for 12 %)
    >>> print(InputError("is not a number", path="run.yaml", column="budget.run"))
    run.yaml, field budget.run: is not a number
    """

    exit_code = 2

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

    def __str__(self) -> str:
        """One line: place, problem, remedy."""
        place = [str(self.path)] if self.path is not None else []
        place += [f"row {self.row}"] if self.row is not None else []
        if self.column is not None:
            place.append(self.column if self.column.startswith("-") else f"{self._column_word()} {self.column}")
        text = ": ".join(filter(None, [", ".join(place), self.problem]))
        return " ".join((text + (f" ({self.hint})" if self.hint else "")).split())

    def _column_word(self) -> str:
        """Tables have columns; settings files and requests have fields."""
        if self.row is not None:
            return "column"
        return "field" if self.path is None or Path(self.path).suffix.lower() in SETTINGS_FILES else "column"

    def at(self, *, path: str | Path | None = None, row: int | None = None, column: str | None = None) -> "InputError":
        """The same problem with its location added by a caller that knows the file or the user's spelling."""
        return InputError(
            self.problem,
            path=self.path or path,
            row=self.row if self.row is not None else row,
            column=column or self.column,
            hint=self.hint,
        )


def plain_problem(error: Mapping[str, Any]) -> str:
    """What pydantic found wrong with a value, in plain words that can follow the name of the field.

    >>> plain_problem({"type": "less_than_equal", "ctx": {"le": 1.0}, "input": 40.0, "msg": "…"})
    'must be at most 1, not 40'
    >>> plain_problem({"type": "string_too_short", "ctx": {"min_length": 1}, "input": "", "msg": "…"})
    'is empty'
    """
    kind, given, message = error["type"], error.get("input"), str(error["msg"]).removeprefix("Value error, ")
    limits = [
        f"{limit:,g}" if isinstance(limit, int | float) else str(limit) for limit in error.get("ctx", {}).values()
    ]
    if kind == "string_too_short" and limits == ["1"]:
        return "is empty"
    if kind not in PROBLEMS:
        return message
    shown = f"{given:g}" if isinstance(given, float) else str(given)
    repeated = isinstance(given, int | float | str) and "string" not in kind and 0 < len(shown) <= SHOWN
    return PROBLEMS[kind].format(*limits) + (f", not {shown}" if repeated else "")


SHOWN = 40
"""Characters of a wrong value that a message repeats."""
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
    "dict_type": "must hold fields, each written as NAME: VALUE",
    "dataclass_type": "must hold fields, each written as NAME: VALUE",
}
"""Kind of a pydantic error → what to say instead of its own message."""


class MissingExtra(InputError):
    """An optional part of the package is needed and not installed."""

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs an optional part", hint=f"pip install 'foretell[{extra}]'")


class NoAnswer(InputError):
    """Everything was asked correctly, and no answer came: the command line exits with 3, as for a failed run."""

    exit_code = 3


def known_names(given: str, known: Sequence[str]) -> str:
    """A hint for a name that does not exist: the one or two that were probably meant, or else all names.

    >>> known_names("lable", ["claim", "label"]), known_names("x", ["claim", "label"])
    ('did you mean label?', 'known: claim, label')
    """
    near = get_close_matches(given, known, n=2)
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
