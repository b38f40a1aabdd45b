"""What an operation returns: a value that can be printed, saved as JSON, and turned into rows or a data frame."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from html import escape
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Console


class Result:
    """Base of all results, which are dataclasses. A result reads either by `__str__` or by `print`.

    Formats beside JSON are offered by further methods: `rows` for .csv and .parquet, `to_html` for .html and
    `to_markdown` for .md.
    """

    @property
    def warnings(self) -> Sequence[str]:
        """What a user should know and what is no part of the result itself."""
        return ()

    @property
    def ok(self) -> bool:
        """Whether all that was asked for could be done; where not, a command ends with exit code 1."""
        return True

    def to_dict(self) -> Any:
        """Plain data: the fields by name, unless a result says otherwise."""
        return {one.name: plain(getattr(self, one.name)) for one in fields(cast("Any", self))}

    def to_json(self) -> str:
        """The result as JSON; numbers that do not exist are null."""
        return json.dumps(plain(self.to_dict()), ensure_ascii=False, indent=1, default=str)

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each line of the result's table."""
        found = self.to_dict()
        return found if isinstance(found, list) else [found]

    def to_frame(self) -> "DataFrame":
        """The rows as a data frame of pandas."""
        from foretell.questions.errors import MissingExtra

        try:
            from pandas import DataFrame
        except ImportError:
            raise MissingExtra("a data frame", "pandas") from None
        return DataFrame(self.rows())

    def _repr_html_(self) -> str:
        """The rows as a table in a notebook; every text is escaped."""
        rows = self.rows()
        heads = list(dict.fromkeys(name for row in rows for name in row))
        head = "".join(f"<th>{escape(name)}</th>" for name in heads)
        lines = ("".join(f"<td>{escape(_cell(row.get(name)))}</td>" for name in heads) for row in rows)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def print(self, console: "Console") -> None:
        """Show it in a terminal."""
        console.file.write(f"{self}\n")

    def __str__(self) -> str:
        """The text that a terminal of 80 columns shows, without colour."""
        if type(self).print is Result.print:
            return self.to_json()
        from io import StringIO

        from rich.console import Console

        text = StringIO()
        self.print(Console(file=text, width=80, no_color=True, force_terminal=False))
        return text.getvalue().rstrip("\n")


@dataclass(frozen=True, kw_only=True)
class ReportResult(Result):
    """A report from below as a result: its own data and its own words."""

    report: Any

    def to_dict(self) -> Any:
        """The report's own data."""
        return self.report.to_dict() if hasattr(self.report, "to_dict") else plain(self.report)

    def __str__(self) -> str:
        return str(self.report)


def plain(value: Any) -> Any:
    """Data that JSON can hold; numbers that do not exist are None."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in cast("list[Any]", value)]
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    number = getattr(value, "item", None)  # numpy's scalars
    return number() if callable(number) else value


CELL_WIDTH = 60
"""Characters of a cell in a printed table."""


def text_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows as lines with aligned columns.

    >>> text_table([{"target": "yes", "p": 0.25}])
    ['target  p', 'yes     0.25']
    """
    heads = list(dict.fromkeys(name for row in rows for name in row))
    cells = [heads, *([_cell(row.get(head)) for head in heads] for row in rows)]
    widths = [max(len(line[n]) for line in cells) for n in range(len(heads))]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= CELL_WIDTH else f"{text[: CELL_WIDTH - 1]}…"
