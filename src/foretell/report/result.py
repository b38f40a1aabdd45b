"""What an operation returns: a value that can be printed, saved as JSON, and turned into rows or a data frame."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import wraps
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, cast

from foretell.data.untrusted import for_json, for_terminal
from foretell.frozen import frozen
from foretell.python_calls import in_python
from foretell.questions.codec import plain_data
from foretell.questions.tabular import Tabular
from foretell.report.provenance import running_command
from foretell.report.terminal import TextColumn, console, show_text, text_table

if TYPE_CHECKING:
    from rich.console import Console

    from foretell.report.document import ReportDocument
    from foretell.report.study_result import StudyResult


class Result(Tabular):
    """Base of all results, which are dataclasses. A result defines its text either by `__str__` or by `print`.

    Other formats than JSON come from further methods: `rows` for .csv and .parquet, `to_html` for .html and
    `to_markdown` for .md.
    """

    lines: ClassVar[str] = ""
    """The field with the rows of the result's table; without one, the result is a single row."""
    command: str = ""
    """The command that its pages name, if they are written after the operation has ended."""
    in_python: bool = False
    """Whether a Python program asked for it. Its text then names calls and parameters instead of commands and flags."""

    @property
    def warnings(self) -> Sequence[str]:
        """Notes for the user: the fields `cautions` and `notes`, if the result has them."""
        return (*getattr(self, "cautions", ()), *getattr(self, "notes", ()))

    @property
    def ok(self) -> bool:
        """Whether everything requested could be done."""
        return True

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0; 1 if something could not be done; 3 if an answer is a fallback."""
        return 0 if self.ok else 1

    def __init_subclass__(cls, **options: Any) -> None:
        """Remove terminal control characters from the text of the result."""
        super().__init_subclass__(**options)
        words: Callable[[Result], str] | None = cls.__dict__.get("__str__")
        if words is not None:

            @wraps(words)
            def harmless(self: Result) -> str:
                text = for_terminal(words(self))
                return self._in_python(text) if self.in_python else text

            cls.__str__ = harmless
        for name in ("to_html", "to_markdown"):
            if name in cls.__dict__:
                setattr(cls, name, _naming_command(cls.__dict__[name]))

    def to_dict(self) -> Any:
        """Return the fields as plain data, unless a result defines something else."""
        return {field.name: plain_data(getattr(self, field.name)) for field in fields(cast("Any", self))}

    def to_json(self) -> str:
        """Return the result as JSON; NaN and infinity become null."""
        return for_json(json.dumps(plain_data(self.to_dict()), ensure_ascii=False, indent=1, default=str))

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per row of the result's table."""
        if self.lines:
            return [dict(line) if isinstance(line, Mapping) else asdict(line) for line in getattr(self, self.lines)]
        data = self.to_dict()
        return data if isinstance(data, list) else [data]

    def print(self, console: "Console") -> None:
        """Print the result to a terminal."""
        show_text(console, f"{self}\n")

    def __str__(self) -> str:
        """Return the text for a terminal of 80 columns, without colour."""
        if type(self).print is Result.print:
            return self.to_json()
        return self._in_python(self._printed(80)) if self.in_python else self._printed(80)

    def _in_python(self, text: str) -> str:
        """Return a text that names calls instead of commands. What is in a field, such as a command line, stays."""
        if not ("foretell " in text or "--" in text):
            return text
        own = [value for value in _texts(plain_data(self.to_dict())) if "foretell " in value or "--" in value]
        own = [value for value in dict.fromkeys(own) if value in text and value not in self.warnings]
        for place, value in enumerate(own):
            text = text.replace(value, f"\0{place}\0")
        text = in_python(text)
        for place, value in enumerate(own):
            text = text.replace(f"\0{place}\0", value)
        return text

    def _printed(self, width: int) -> str:
        from io import StringIO

        text = StringIO()
        self.print(console(file=text, width=width, no_color=True, force_terminal=False))
        return text.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        """Return the text for a terminal of 120 columns, and the notes that it lacks, for a notebook."""
        text = self._in_python(str(self) if type(self).print is Result.print else self._printed(120))
        notes = [note for note in map(for_terminal, self.warnings) if note not in text]
        return f"<pre>{escape(text)}</pre>" + "".join(f"<p>{escape(note)}</p>" for note in notes)


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        parts: Any = value.values() if isinstance(value, Mapping) else value
        for part in parts:
            yield from _texts(part)


def _naming_command(method: Callable[[Result], str]) -> Callable[[Result], str]:
    @wraps(method)
    def wrapper(self: Result) -> str:
        with running_command(self.command):
            return method(self)

    return wrapper


@frozen
class ReportResult(Result):
    """A report of a lower package as a result, with its own data and text."""

    report: Any

    def to_dict(self) -> Any:
        """Return the report's own data."""
        return self.report.to_dict() if hasattr(self.report, "to_dict") else plain_data(self.report)

    def __str__(self) -> str:
        return str(self.report)


class DocumentResult(Result):
    """A result that can be written as a report."""

    @property
    def document(self) -> "ReportDocument | StudyResult":
        """The report."""
        raise NotImplementedError

    def to_html(self) -> str:
        """Return the report as one HTML file."""
        return self.document.to_html()

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        return self.document.to_markdown()


def show_table(
    console: "Console", rows: Iterable[Any], columns: Mapping[TextColumn, str | Callable[[Any], object]]
) -> None:
    """Print rows as a table no wider than the terminal; columns name a key of a row, or a function of it."""
    cells = [[row[cell] if isinstance(cell, str) else cell(row) for cell in columns.values()] for row in rows]
    lines = [["" if cell is None else cell for cell in line] for line in cells]
    show_text(console, f"{text_table(list(columns), lines, console.width)}\n")
