"""Results with rows: as a pandas or Polars data frame, and as a table in a notebook."""

from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from foretell.questions.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from pandas import DataFrame


class Tabular:
    """Base of results that are tables."""

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
