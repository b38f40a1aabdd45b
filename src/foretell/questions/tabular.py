"""Results with rows: as a pandas or Polars data frame, and as a table in a notebook."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from foretell.questions.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from pandas import DataFrame


SCREEN_LINES = 24


class Tabular:
    """Base of results, which are dataclasses and tables. They are equal if all values are; NaN is equal to NaN."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Set methods that the dataclass decorator would otherwise create."""
        super().__init_subclass__(**options)
        cls.__repr__, cls.__eq__ = Tabular.__repr__, Tabular.__eq__

    def __repr__(self) -> str:
        """Return the text of `str`, so that an interactive session shows the table, but no more than a screen of it."""
        lines = str(self).split("\n")
        if len(lines) <= SCREEN_LINES:
            return "\n".join(lines)
        shown = SCREEN_LINES - 1
        return "\n".join([*lines[:shown], f"… {len(lines) - shown} more lines: print() shows them"])

    def __eq__(self, other: object) -> bool:
        return same_values(self, other) if type(self) is type(other) else NotImplemented

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per row."""
        raise NotImplementedError

    def to_pandas(self) -> "DataFrame":
        """Return the rows as a pandas data frame."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise MissingExtra("a data frame", "notebook") from None
        return DataFrame(self.rows())

    def to_polars(self) -> Any:
        """Return the rows as a Polars data frame."""
        try:
            polars: Any = import_module("polars")
        except ImportError:
            raise InputError("a Polars data frame needs the package polars", hint="pip install polars") from None
        return polars.DataFrame(self.rows(), infer_schema_length=None)

    def _repr_html_(self) -> str:
        """Return the rows as a table in a notebook, with all text escaped."""
        return rows_as_html(self.rows())


def same_values(a: Any, b: Any) -> bool:
    """Return whether two values are equal, also within dataclasses, where NaN is equal to NaN.

    >>> same_values([{"p": float("nan")}], [{"p": float("nan")}]), same_values([1], [2])
    (True, False)
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return bool(a == b)
    if is_dataclass(a):
        return all(same_values(getattr(a, part.name), getattr(b, part.name)) for part in fields(a) if part.compare)
    if isinstance(a, Mapping):
        first, second = cast("Mapping[Any, Any]", a), cast("Mapping[Any, Any]", b)
        return first.keys() == second.keys() and all(same_values(first[key], second[key]) for key in first)
    if isinstance(a, list | tuple):
        return len(cast("list[Any]", a)) == len(b) and all(map(same_values, cast("list[Any]", a), b))
    if hasattr(a, "dtype"):  # An array or number of NumPy.
        return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
    return bool(a == b or (a != a and b != b))


def rows_as_html(rows: list[dict[str, Any]]) -> str:
    """Format rows as a plain HTML table; all text is escaped.

    >>> rows_as_html([{"by": "<b>", "p": 0.25}])
    '<table><thead><tr><th>by</th><th>p</th></tr></thead><tbody><tr><td>&lt;b&gt;</td><td>0.25</td></tr></tbody></table>'
    """
    names, lines = cells(rows)
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def cells(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns, and the cells of every row as text."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    values = [["" if row.get(name) is None else row[name] for name in names] for row in rows]
    return names, [[f"{value:.4g}" if isinstance(value, float) else str(value) for value in line] for line in values]
