"""Tables and results of studies in the terminal, as Markdown, as a web page, and as files of every kind."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from foretell.metrics.comparison import Comparison
from foretell.questions.errors import InputError
from foretell.report.html import HtmlBlock, Section, advice_blocks, page, render_blocks, settings_text
from foretell.report.markup import Markup, clean, markdown_text
from foretell.report.numbers import CellValue
from foretell.report.numbers import value_text as value_text
from foretell.report.outputs import write_outputs
from foretell.report.study import StudyChart, StudyColumn, StudyResult, StudyRow, StudyTable
from foretell.report.terminal import GAP, distinct, rich_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable


LEAST_NAME, MOST_NAME = 18, 34
"""Characters of a row's name that are shown in any case, and even where it means fewer columns."""
WRAP = 40
"""Characters after which a column of text is wrapped."""
STUDY_ADVICE = (
    "BI is the Brier index 100·(1 − √Brier) of all targets together: 50 is always-0.5, 100 is perfect. Overall is the "
    "mean of the kinds (market, dataset).",
    "Δ is a paired difference: both sides are recomputed on the same resamples of whole questions, so what makes a "
    "question hard drops out. One star means p < 0.05, two p < 0.01, three p < 0.001, two-sided, without correction "
    "for the number of lines.",
    "Questions that resolve on one day hang together as well. Δ two-way resamples resolution days beside questions; "
    "where the two intervals disagree, believe the wider one.",
)


# In a terminal.


def print_study(study: StudyResult, console: "Console") -> None:
    """The sentences, every table in as many columns as there is room for, and the notes."""
    from rich.text import Text

    for sentence in study.sentences:
        console.print(Text(clean(sentence), style="bold"))
    for one in study.tables:
        console.print()
        console.print(Text(clean(one.title), style="bold"))
        console.print(rich_study_table(one, console.width))
        if one.caption:
            console.print(Text(clean(one.caption), style="dim"))
    console.print()
    for note in study.notes:
        console.print(Text(clean(note), style="dim"))


def rich_study_table(table: StudyTable, width: int, name_width: int = MOST_NAME) -> "RichTable":
    """A table no wider than `width`: without intervals, and at last without its last columns, where it has to be.

    Names are shortened to `name_width` before anything else is left out.
    """
    from rich.text import Text

    longest = max((len(row.name) for row in table.rows), default=0)
    columns, lines = _fitted(table, width - min(longest, name_width))
    widths = _widths(columns, lines)
    room = max(LEAST_NAME, width - sum(widths) - GAP * len(columns))
    shown = rich_table()
    shown.add_column(table.row_header, no_wrap=True)
    for i, (column, wide) in enumerate(zip(columns, widths, strict=True)):
        wraps = any(len(line[i]) > wide for line in lines)
        justify = "left" if wraps else "right"
        shown.add_column(column.label, justify=justify, no_wrap=not wraps, min_width=wide, overflow="fold")
    names = distinct([row.name for row in table.rows], room)
    for row, short, line in zip(table.rows, names, lines, strict=True):
        style = {"anchor": "italic yellow", "reference": "bold"}.get(row.style, "")
        cells = zip(line, row.values, columns, strict=False)
        texts = [Text(cell, style=_colour(value, column) or style) for cell, value, column in cells]
        shown.add_row(Text(short, style=style), *texts)
    return shown


def _colour(value: CellValue, column: StudyColumn) -> str:
    if not isinstance(value, Comparison) or not value.stars:
        return ""
    return "green" if (value.diff < 0) == column.low_is_better else "red"


def _fitted(table: StudyTable, room: int) -> tuple[Sequence[StudyColumn], list[list[str]]]:
    """The columns that are shown, and their cells."""
    columns = table.columns

    def needed(lines: Sequence[Sequence[str]]) -> int:
        return sum(wide + GAP for wide in _widths(columns, lines))

    lines = [_cells(row, columns) for row in table.rows]
    if needed(lines) > room:
        lines = [_cells(row, columns, brief=True) for row in table.rows]
    while len(columns) > 1 and needed(lines) > room:
        columns, lines = columns[:-1], [line[:-1] for line in lines]
    return columns, lines


def _widths(columns: Sequence[StudyColumn], lines: Sequence[Sequence[str]]) -> list[int]:
    """Of every column: its longest cell, or where it is wrapped if it holds long text."""
    longest = [max(map(len, (column.label, *(line[i] for line in lines)))) for i, column in enumerate(columns)]
    return [wide if column.numeric else min(wide, WRAP) for wide, column in zip(longest, columns, strict=True)]


def _cells(row: StudyRow, columns: Sequence[StudyColumn], *, brief: bool = False) -> list[str]:
    return [
        value_text(value, column.decimals, brief=brief or column.brief)
        for value, column in zip(row.values, columns, strict=True)
    ]


# As Markdown.


def markdown_study(study: StudyResult) -> str:
    """The study as GitHub-flavoured Markdown."""
    parts = [f"## {markdown_text(study.title)}", *map(markdown_text, study.sentences)]
    for one in study.tables:
        parts += markdown_table(one)
    parts += [markdown_text(note) for note in study.notes]
    return "\n\n".join(parts) + "\n"


def markdown_table(table: StudyTable) -> list[str]:
    """The paragraphs of one table: its title, its rows and its caption."""
    heads = [table.row_header or " ", *(column.label for column in table.columns)]
    rule = ["---", *("---:" if column.numeric else "---" for column in table.columns)]
    lines = [[markdown_text(head) for head in heads], rule]
    for row in table.rows:
        plain = markdown_text(row.name)
        styled = {"anchor": f"*{plain}*", "reference": f"**{plain}**"}.get(row.style, plain)
        lines.append([styled, *(markdown_text(cell) for cell in _cells(row, table.columns))])
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return [f"### {markdown_text(table.title)}", rows, *([markdown_text(table.caption)] if table.caption else [])]


# As a page.


def study_page(study: StudyResult, how_to_read: Sequence[str] = ()) -> str:
    """A whole HTML document that needs no network; `how_to_read` replaces what the study says about reading it."""
    return page(study.title, _sections(study, how_to_read), lead=study.text)


def study_parts(study: StudyResult, how_to_read: Sequence[str] = ()) -> list[tuple[str, str, Markup]]:
    """Anchor, title and HTML of every section, for a page that is made elsewhere."""
    return [(anchor, title, render_blocks(blocks)) for anchor, title, blocks in _sections(study, how_to_read)]


def _sections(study: StudyResult, how_to_read: Sequence[str]) -> list[Section]:
    """Tables, charts after the first of them, and how to read it all."""
    sections: list[Section] = [
        (f"table-{i}", one.title, [HtmlBlock(table=one)]) for i, one in enumerate(study.tables, 1)
    ]
    if study.charts:
        sections.insert(1, ("charts", "Charts", _charts(study.charts)))
    settings = [(key, settings_text(value)) for key, value in study.settings.items()]
    settings += [("cost", str(study.cost))] if study.cost is not None else []
    reading = advice_blocks(how_to_read or study.how_to_read or STUDY_ADVICE, ("Settings", settings), notes=study.notes)
    return [*sections, ("reading", "How to read this", reading)]


def _charts(charts: Sequence[StudyChart]) -> list[HtmlBlock]:
    """Wide ones below each other, the others side by side."""
    blocks: list[HtmlBlock] = []
    for one in charts:
        if one.chart.wide:
            blocks += [HtmlBlock(heading=one.title), HtmlBlock(charts=[one.chart])]
    narrow = [one.chart for one in charts if not one.chart.wide]
    return blocks + ([HtmlBlock(charts=narrow, style="grid")] if narrow else [])


# As files.


def write_study(study: StudyResult, path: Path) -> list[Path]:
    """Write the result to a file whose ending says the format, or in every text format into a folder.

    CSV and Parquet hold one row per cell of every table. Where there are several charts, a file of a chart gets the
    chart's name before its ending. Returns the files written.
    """
    if path.is_dir() or not path.suffix:
        path.mkdir(parents=True, exist_ok=True)
        endings = (".html", ".md", ".json", *([".svg"] if study.charts else []))
        return [one for ending in endings for one in write_study(study, path / f"{study.name}{ending}")]
    if path.suffix in (".svg", ".png", ".pdf"):
        if not study.charts:
            raise InputError("this study has no chart", path=path)
        several = len(study.charts) > 1
        names = [path.with_stem(f"{path.stem}-{one.name}") if several else path for one in study.charts]
        return [one.chart.save(name) for one, name in zip(study.charts, names, strict=True)]
    if path.suffix in (".csv", ".jsonl", ".parquet") and not study.rows():
        raise InputError("this study has no table", path=path)
    return write_outputs(study, [path])
