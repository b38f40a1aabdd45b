"""Tables in a terminal: they fit its width, names stay distinct, and piped output is plain."""

import sys
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from foretell.data.untrusted import for_terminal
from foretell.frozen import frozen
from foretell.number_text import percent, percent_range
from foretell.report.markup import clean, shorten

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console
    from rich.segment import Segment
    from rich.table import Table as RichTable

GAP = 2
"""Number of spaces between columns."""


@frozen
class TextColumn:
    """A column of a table."""

    head: str
    right: bool = False
    """Whether cells are right-aligned, as for numbers."""
    shrink: int | None = None
    """Minimum number of characters to which cells may be shortened; None if they may not."""
    drop: int = 0
    """Columns with higher numbers are left out first if there is no room; those with 0 never are."""


def text_table(columns: Sequence[TextColumn], rows: Iterable[Sequence[object]], width: int = 80) -> str:
    """Format a table as plain text.

    If it is too wide, less important columns are left out first, and a last line names them; then the widest cells that
    may be shortened are shortened in the middle, so that different names never look alike.

    >>> print(text_table([TextColumn(head="name", shrink=8), TextColumn(head="n", right=True)],
    ...                  [("a-very-long-name-1", 12), ("a-very-long-name-2", 3)], width=16))
    name           n
    a-very…ame-1  12
    a-very…ame-2   3
    """
    lines, note = text_lines(columns, rows, width)
    return "\n".join([*lines, *filter(None, [note])])


def text_lines(
    columns: Sequence[TextColumn], rows: Iterable[Sequence[object]], width: int = 80
) -> tuple[list[str], str]:
    """Return the lines of `text_table`, the head first, and the note on columns that were left out."""
    lines = [[clean(str(cell)) for cell in row] for row in rows]
    chosen = list(range(len(columns)))
    while _least(columns, lines, chosen) > width and any(columns[i].drop for i in chosen):
        chosen.remove(max((i for i in chosen if columns[i].drop), key=lambda i: (columns[i].drop, i)))
    cells = {i: [line[i] for line in lines] for i in chosen}
    widths = {i: max(map(len, (columns[i].head, *cells[i]))) for i in chosen}
    for i in sorted((i for i in chosen if columns[i].shrink is not None), key=lambda i: -widths[i]):
        excess = sum(widths.values()) + GAP * (len(chosen) - 1) - width
        if excess > 0:
            room = max(widths[i] - excess, columns[i].shrink or 1, len(columns[i].head))
            cells[i] = distinct(cells[i], room)
            widths[i] = max(map(len, (columns[i].head, *cells[i])))
    heads = [columns[i].head for i in chosen]
    body = [heads, *([cells[i][place] for i in chosen] for place in range(len(lines)))]
    shapes = [(widths[i], columns[i].right) for i in chosen]
    missing = [column.head for i, column in enumerate(columns) if i not in chosen]
    return [_line(line, shapes) for line in body], "\n".join(wrap(left_out_note(missing), width))


def left_out_note(columns: Sequence[str], *, intervals: bool = False) -> str:
    """Return the sentence on what a table leaves out for lack of width; empty if nothing.

    >>> left_out_note(["cost", "n"], intervals=True)
    'Not shown for lack of width: intervals, cost, n.'
    """
    missing = [*(["intervals"] if intervals else []), *columns]
    return f"Not shown for lack of width: {', '.join(missing)}." if missing else ""


def distinct(names: Sequence[str], width: int) -> list[str]:
    """Shorten names to at most `width` characters in the middle; different names stay different.

    If the ends of two names are alike, the second shows a number instead of the ellipsis.

    >>> distinct(["gpt-5-mini-high", "gpt-5-nano-high"], 9)
    ['gpt-…high', 'gpt~2high']
    """
    shown: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        if name in shown:
            continue
        short = shorten(name, width)
        number = 2
        while short in taken:
            mark = f"~{number}"
            half = max(1, (width - len(mark)) // 2)
            short = f"{name[:half]}{mark}{name[len(name) - (width - half - len(mark)) :]}"
            number += 1
        shown[name] = short
        taken.add(short)
    return [shown[name] for name in names]


def rich_table() -> "RichTable":
    """Return an empty table: in a terminal with a line under its header, and as text only if output is piped."""
    from rich import box
    from rich.table import Table as RichTable

    shape = box.SIMPLE_HEAD if sys.stdout.isatty() else None
    return RichTable(box=shape, padding=(0, 1, 0, 0) if shape else (0, 2, 0, 0), pad_edge=False, show_edge=False)


def console(**options: Any) -> "Console":
    """Return a console for untrusted text: standard output by default, as wide as the terminal or 80 columns.

    Redirected output is not wrapped, so that a command in it can be copied.
    """
    from rich.console import Console
    from rich.text import Text

    class HarmlessConsole(Console):
        """Passes our own colours and cursor movements through, but no control characters contained in text."""

        def print(self, *objects: Any, **kwargs: Any) -> None:
            redirected = "file" not in options and not self.is_terminal
            if redirected and all(isinstance(part, str | Text) for part in objects):
                kwargs.setdefault("soft_wrap", True)
            super().print(*objects, **kwargs)

        def render(self, *args: Any, **kwargs: Any) -> "Iterable[Segment]":
            for segment in super().render(*args, **kwargs):
                yield segment if segment.control else segment._replace(text=for_terminal(segment.text))

    # Square brackets and colons in a text are not markup.
    return HarmlessConsole(markup=False, emoji=False, **options)


def show_text(console: "Console", text: str) -> None:
    """Write text to a console as it is, neither wrapped nor styled, without terminal control characters."""
    console.file.write(for_terminal(text))


def show_answer(
    console: "Console",
    values: Sequence[tuple[str, float, tuple[float, float] | None]],
    reasoning: Sequence[str],
    *,
    apart: bool,
) -> None:
    """Print the probability of every outcome with its range, and what it rests on.

    If tree and direct estimate stay apart, the line with both, the first of `reasoning`, comes before the probability.
    """
    from rich.text import Text

    first = reasoning[:1] if apart else ()
    for line in first:
        console.print(Text(line, style="bold"))
    for outcome, p, ends in values:
        interval = "" if ends is None else f"   range {percent_range(*ends)}"
        console.print(Text.assemble((percent(p), "bold"), f"  {outcome}{interval}"))
    for line in reasoning[len(first) :]:
        console.print(Text(line))


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a line to standard output or standard error, without terminal control characters."""
    import click

    click.echo(for_terminal(text), err=err, nl=nl)


def show_exception(kind: type[BaseException], error: BaseException, at: "TracebackType | None") -> None:
    """Print a traceback to standard error, without terminal control characters from untrusted error messages."""
    import traceback

    sys.stderr.write(for_terminal("".join(traceback.format_exception(kind, error, at))))


def _least(columns: Sequence[TextColumn], lines: Sequence[Sequence[str]], chosen: Sequence[int]) -> int:
    """Return the minimum width of a table with these columns."""
    width = 0
    for i in chosen:
        widest = max(map(len, (columns[i].head, *(line[i] for line in lines))))
        least = columns[i].shrink
        width += widest if least is None else max(min(least, widest), len(columns[i].head))
    return width + GAP * (len(chosen) - 1)


def _line(cells: Sequence[str], shapes: Sequence[tuple[int, bool]]) -> str:
    padded = [
        cell.rjust(width) if right else cell.ljust(width) for cell, (width, right) in zip(cells, shapes, strict=True)
    ]
    return (" " * GAP).join(padded).rstrip()
