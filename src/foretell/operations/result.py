"""What operations return: values that print as a table, show themselves in a notebook, and turn into JSON or frames."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH = 60
"""Characters of a cell in a printed table."""


class OperationResult:
    """The base of results: a subclass says what its JSON and its rows are."""

    def to_json(self) -> dict[str, Any]:
        """The whole result as plain JSON values, the same through every door."""
        raise NotImplementedError

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The result as a table."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """The table as a pandas frame."""
        try:
            import pandas
        except ImportError:
            from foretell.questions.errors import MissingExtra

            raise MissingExtra("to_frame()", "pandas") from None
        return pandas.DataFrame([dict(row) for row in self.rows()])

    def __str__(self) -> str:
        return "\n".join(text_table(self.rows()))

    def _repr_html_(self) -> str:
        return html_table(self.rows())


def text_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows as lines with aligned columns.

    >>> text_table([{"target": "yes", "p": 0.25}])
    ['target  p   ', 'yes     0.25']
    """
    heads = _heads(rows)
    cells = [heads, *([_cell(row.get(head)) for head in heads] for row in rows)]
    widths = [max(len(line[n]) for line in cells) for n in range(len(heads))]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in cells]


def html_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as an HTML table; every text in it is escaped."""
    heads = _heads(rows)
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(_cell(row.get(name)))}</td>' for name in heads)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _heads(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
