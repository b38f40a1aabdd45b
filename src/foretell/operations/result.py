"""What an operation returns: a value that can be printed, saved as JSON, and turned into rows or a data frame."""

import json
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Console


class Result:
    """Base of all results. A result says `to_dict`, and how it reads: either by `__str__` or by `print`.

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
        """Plain data."""
        raise NotImplementedError

    def to_json(self) -> str:
        """The result as JSON; numbers that do not exist are null."""
        return json.dumps(_plain(self.to_dict()), ensure_ascii=False, indent=1, default=str)

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


def _plain(value: Any) -> Any:
    """Data that JSON can hold."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value.item() if hasattr(value, "item") and not isinstance(value, str | bytes) else value
