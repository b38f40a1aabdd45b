"""A study in the terminal, as Markdown and as one web page."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from foretell.metrics.bootstrap import Interval
from foretell.metrics.comparison import Comparison
from foretell.report.html import (
    HtmlBlock,
    HtmlCell,
    HtmlColumn,
    HtmlRow,
    Section,
    advice_blocks,
    number_cell,
    page,
    render_blocks,
    settings_text,
    table_block,
)
from foretell.report.leaderboard_page import value_cell
from foretell.report.leaderboard_text import markdown_text
from foretell.report.markup import Markup, clean
from foretell.report.numbers import bracket, number, signed
from foretell.report.study import CellValue, StudyChart, StudyColumn, StudyResult, StudyRow, StudyTable
from foretell.report.terminal import distinct, rich_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable


STUDY_LEAST_NAME, STUDY_MOST_NAME = 18, 34
"""Characters of a line's name that are shown even where it means fewer columns."""
STUDY_GAP = 2
"""Blanks between columns."""


def value_text(value: CellValue, decimals: int, *, brief: bool = False) -> str:
    """A value as text; `brief` leaves intervals out.

    >>> value_text(Interval(estimate=71.25, low=69.0, high=73.5, se=1.1, n_clusters=40, draws=100), 1)
    '71.2 [69.0, 73.5]'
    >>> value_text(None, 1), value_text(1234, 0), value_text("past only", 1)
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


def print_study(study: StudyResult, console: "Console") -> None:
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


def _rich(grid: StudyTable, width: int) -> "RichTable":
    from rich.text import Text

    columns, lines = _fitted(grid, width)
    widths = [max(len(line[i]) for line in (columns, *lines)) for i in range(len(columns))]
    room = max(STUDY_LEAST_NAME, width - sum(widths) - STUDY_GAP * len(columns))
    table = rich_table()
    table.add_column(grid.head, no_wrap=True)
    for label, wide in zip(columns, widths, strict=True):
        table.add_column(label, justify="right", no_wrap=True, min_width=wide)
    names = distinct([entry.name for entry in grid.entries], room)
    for entry, short, line in zip(grid.entries, names, lines, strict=True):
        style = {"anchor": "italic yellow", "reference": "bold"}.get(entry.style, "")
        cells = [Text(cell, style=_colour(value) or style) for cell, value in zip(line, entry.values, strict=False)]
        table.add_row(Text(short, style=style), *cells)
    return table


def _colour(value: CellValue) -> str:
    if not isinstance(value, Comparison) or not value.stars:
        return ""
    return "green" if value.diff > 0 else "red"


def _fitted(grid: StudyTable, width: int) -> tuple[list[str], list[list[str]]]:
    """Labels and cells with intervals where they fit; else without, and at last with columns left out at the end."""
    labels = [column.label for column in grid.columns]
    room = width - min(max((len(entry.name) for entry in grid.entries), default=0), STUDY_MOST_NAME)
    lines: list[list[str]] = []
    for brief in (False, True):
        lines = [cells(entry, grid.columns, brief=brief) for entry in grid.entries]
        if _needed(labels, lines) <= room:
            return labels, lines
    while len(labels) > 1 and _needed(labels, lines) > room:
        labels, lines = labels[:-1], [line[:-1] for line in lines]
    return labels, lines


def _needed(labels: Sequence[str], lines: Sequence[Sequence[str]]) -> int:
    return sum(max(len(line[i]) for line in (labels, *lines)) + STUDY_GAP for i in range(len(labels)))


def cells(entry: StudyRow, columns: Sequence[StudyColumn], *, brief: bool = False) -> list[str]:
    """The values of a line as text."""
    return [
        value_text(value, column.decimals, brief=brief) for value, column in zip(entry.values, columns, strict=True)
    ]


def markdown_study(study: StudyResult) -> str:
    """The study as GitHub-flavoured Markdown."""
    parts = [f"## {markdown_text(study.title)}", markdown_text(study.finding)]
    for grid in study.grids:
        parts += [f"### {markdown_text(grid.title)}", markdown_grid(grid)]
        parts += [markdown_text(grid.caption)] if grid.caption else []
    parts += [markdown_text(note) for note in study.notes]
    return "\n\n".join(parts) + "\n"


def markdown_grid(grid: StudyTable) -> str:
    """One table as Markdown."""
    heads = [grid.head or " ", *(column.label for column in grid.columns)]
    rule = ["---", *("---:" if column.numeric else "---" for column in grid.columns)]
    lines = [[markdown_text(head) for head in heads], rule]
    for entry in grid.entries:
        name = markdown_text(entry.name)
        told_name = f"*{name}*" if entry.style == "anchor" else f"**{name}**" if entry.style == "reference" else name
        lines.append([told_name, *(markdown_text(cell) for cell in cells(entry, grid.columns))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# A study as one web page: the finding, every table, the pictures, and how to read them.

STUDY_ADVICE = (
    "BI is the Brier index 100·(1 − √Brier) of all targets together: 50 is always-0.5, 100 is perfect. Overall is the "
    "mean of the kinds (market, dataset).",
    "Δ is a paired difference: both sides are recomputed on the same resamples of whole questions, so what makes a "
    "question hard drops out. One star means p < 0.05, two p < 0.01, three p < 0.001, one-sided, without correction "
    "for the number of lines.",
    "Questions that resolve on one day hang together as well. Δ two-way resamples resolution days beside questions; "
    "where the two intervals disagree, believe the wider one.",
)


def study_page(study: StudyResult, advice: Sequence[str] = ()) -> str:
    """A whole HTML document that needs no network; `advice` says how to read it, else the study does."""
    return page(study.title, study_sections(study, advice), lead=study.finding)


def study_parts(study: StudyResult, advice: Sequence[str] = ()) -> list[tuple[str, str, Markup]]:
    """Anchor, title and HTML of every section, for a page that is made elsewhere."""
    return [(anchor, title, render_blocks(blocks)) for anchor, title, blocks in study_sections(study, advice)]


def study_sections(study: StudyResult, advice: Sequence[str] = ()) -> list[Section]:
    """Tables, pictures after the first of them, and how to read it all."""
    sections: list[Section] = [(f"table-{i}", grid.title, [study_table(grid)]) for i, grid in enumerate(study.grids, 1)]
    if study.pictures:
        sections.insert(1, ("pictures", "Pictures", _pictures(study.pictures)))
    settings = [(key, settings_text(value)) for key, value in study.settings.items()]
    reading = advice_blocks(advice or study.advice or STUDY_ADVICE, ("Settings", settings), notes=study.notes)
    return [*sections, ("reading", "How to read this", reading)]


def _pictures(pictures: Sequence[StudyChart]) -> list[HtmlBlock]:
    """Wide ones below each other, the others side by side."""
    blocks: list[HtmlBlock] = []
    for one in pictures:
        if one.figure.wide:
            blocks += [HtmlBlock(heading=one.title), HtmlBlock(charts=[one.figure])]
    narrow = [one.figure for one in pictures if not one.figure.wide]
    return blocks + ([HtmlBlock(charts=narrow, style="grid")] if narrow else [])


def study_table(grid: StudyTable) -> HtmlBlock:
    """A table of a study as one of a page."""
    columns = [HtmlColumn(label=grid.head or " ")]
    columns += [HtmlColumn(label=c.label, numeric=c.numeric, tip=c.tip) for c in grid.columns]
    rows = [_html_row(entry, grid.columns) for entry in grid.entries]
    return table_block(columns, rows, grid.caption or grid.title)


def _html_row(entry: StudyRow, columns: tuple[StudyColumn, ...]) -> HtmlRow:
    cells = [_html_cell(value, column) for value, column in zip(entry.values, columns, strict=True)]
    return HtmlRow(cells=[HtmlCell(text=entry.name, style="name", is_name=True), *cells], style=entry.style)


def _html_cell(value: CellValue, column: StudyColumn) -> HtmlCell:
    if isinstance(value, Interval | Comparison):
        return value_cell(value, column.decimals)
    text = value_text(value, column.decimals)
    if isinstance(value, int | float):
        return number_cell(text, float(value))
    return HtmlCell(text=text, style="n" if column.numeric else "")
