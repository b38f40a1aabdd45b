"""A study in the terminal and as Markdown."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from foretell.arena.report.markdown import plain
from foretell.arena.report.markup import clean, shorten
from foretell.arena.report.wording import bracket, number, signed
from foretell.arena.study import Column, Entry, Grid, Study, Value
from foretell.evaluate.intervals import Interval
from foretell.evaluate.significance import Comparison

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

LEAST_NAME, MOST_NAME = 18, 34
"""Characters of a line's name that are shown even where it means fewer columns."""
GAP = 2
"""Blanks between columns."""


def told(value: Value, decimals: int, *, brief: bool = False) -> str:
    """A value as text; `brief` leaves intervals out.

    >>> told(Interval(estimate=71.25, low=69.0, high=73.5, se=1.1, n_clusters=40, draws=100), 1)
    '71.2 [69.0, 73.5]'
    >>> told(None, 1), told(1234, 0), told("past only", 1)
    ('–', '1,234', 'past only')
    """
    if isinstance(value, Interval):
        ends = "" if brief else bracket(value.low, value.high, decimals)
        return f"{number(value.estimate, decimals)} {ends}".rstrip()
    if isinstance(value, Comparison):
        ends = "" if brief else bracket(value.low, value.high, decimals)
        return f"{signed(value.diff, decimals)}{value.stars} {ends}".rstrip()
    if isinstance(value, float):
        return number(value, decimals)
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else clean(value)


def print_study(study: Study, console: "Console") -> None:
    """The finding, every table in as many columns as there is room for, and the notes."""
    from rich.text import Text

    console.print(Text(clean(study.finding), style="bold"))
    for grid in study.grids:
        console.print()
        console.print(Text(clean(grid.title), style="bold"))
        console.print(_rich(grid, console.width))
        if grid.caption:
            console.print(Text(clean(grid.caption), style="dim"))
    console.print()
    for note in study.notes:
        console.print(Text(clean(note), style="dim"))


def _rich(grid: Grid, width: int) -> "RichTable":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    columns, lines = _fitted(grid, width)
    widths = [max(len(line[i]) for line in (columns, *lines)) for i in range(len(columns))]
    room = max(LEAST_NAME, width - sum(widths) - GAP * len(columns))
    table = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column(grid.head, no_wrap=True)
    for label, wide in zip(columns, widths, strict=True):
        table.add_column(label, justify="right", no_wrap=True, min_width=wide)
    for entry, line in zip(grid.entries, lines, strict=True):
        style = {"anchor": "italic yellow", "reference": "bold"}.get(entry.style, "")
        cells = [Text(cell, style=_colour(value) or style) for cell, value in zip(line, entry.values, strict=False)]
        table.add_row(Text(shorten(entry.name, room), style=style), *cells)
    return table


def _colour(value: Value) -> str:
    if not isinstance(value, Comparison) or not value.stars:
        return ""
    return "green" if value.diff > 0 else "red"


def _fitted(grid: Grid, width: int) -> tuple[list[str], list[list[str]]]:
    """Labels and cells with intervals where they fit; else without, and at last with columns left out at the end."""
    labels = [column.label for column in grid.columns]
    room = width - min(max((len(entry.name) for entry in grid.entries), default=0), MOST_NAME)
    lines: list[list[str]] = []
    for brief in (False, True):
        lines = [cells(entry, grid.columns, brief=brief) for entry in grid.entries]
        if _needed(labels, lines) <= room:
            return labels, lines
    while len(labels) > 1 and _needed(labels, lines) > room:
        labels, lines = labels[:-1], [line[:-1] for line in lines]
    return labels, lines


def _needed(labels: Sequence[str], lines: Sequence[Sequence[str]]) -> int:
    return sum(max(len(line[i]) for line in (labels, *lines)) + GAP for i in range(len(labels)))


def cells(entry: Entry, columns: Sequence[Column], *, brief: bool = False) -> list[str]:
    """The values of a line as text."""
    return [told(value, column.decimals, brief=brief) for value, column in zip(entry.values, columns, strict=True)]


def markdown_study(study: Study) -> str:
    """The study as GitHub-flavoured Markdown."""
    parts = [f"## {plain(study.title)}", plain(study.finding)]
    for grid in study.grids:
        parts += [f"### {plain(grid.title)}", markdown_grid(grid)]
        parts += [plain(grid.caption)] if grid.caption else []
    parts += [plain(note) for note in study.notes]
    return "\n\n".join(parts) + "\n"


def markdown_grid(grid: Grid) -> str:
    """One table as Markdown."""
    heads = [grid.head or " ", *(column.label for column in grid.columns)]
    rule = ["---", *("---:" if column.numeric else "---" for column in grid.columns)]
    lines = [[plain(head) for head in heads], rule]
    for entry in grid.entries:
        name = plain(entry.name)
        told_name = f"*{name}*" if entry.style == "anchor" else f"**{name}**" if entry.style == "reference" else name
        lines.append([told_name, *(plain(cell) for cell in cells(entry, grid.columns))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
