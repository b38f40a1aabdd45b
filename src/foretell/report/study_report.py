"""The result of a study in the terminal, as Markdown, as a web page, and as files of every kind."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from foretell.data.atomic_file import write_atomically
from foretell.metrics.bootstrap import Interval
from foretell.metrics.comparison import Comparison
from foretell.questions.errors import InputError
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
from foretell.scoring.long_tables import write_rows

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable


STUDY_LEAST_NAME, STUDY_MOST_NAME = 18, 34
"""Characters of a line's name that are shown even where it means fewer columns."""
STUDY_GAP = 2
"""Blanks between columns."""


STUDY_WRAP = 40
"""Characters after which a column of text is wrapped."""


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
    if path.suffix in (".csv", ".parquet"):
        return [_write_cells(study, path)]
    texts = {".html": study.to_html, ".md": study.to_markdown, ".json": study.to_json}
    if path.suffix not in texts:
        known = ".html .md .json .csv .parquet .svg .png .pdf"
        raise InputError("a study cannot be written so", path=path, hint=f"use one of {known}, or a folder")
    write_atomically(path, texts[path.suffix]().encode())
    return [path]


def _write_cells(study: StudyResult, path: Path) -> Path:
    cells = study.rows()
    if not cells:
        raise InputError("this study has no table", path=path)
    if path.suffix == ".csv":
        return write_rows(cells, path)
    import duckdb

    with duckdb.connect(":memory:") as con:
        con.execute(
            'create table cells ("table" text, "row" text, "column" text, value double, low double, high double,'
            " text text)"
        )
        con.executemany("insert into cells values (?, ?, ?, ?, ?, ?, ?)", [list(cell.values()) for cell in cells])
        target = str(path).replace("'", "''")
        con.execute(f"copy cells to '{target}' (format parquet)")
    return path


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
    """The sentences, every table in as many columns as there is room for, and the notes."""
    from rich.text import Text

    for sentence in study.sentences:
        console.print(Text(clean(sentence), style="bold"))
    for one in study.tables:
        console.print()
        console.print(Text(clean(one.title), style="bold"))
        console.print(_rich(one, console.width))
        if one.caption:
            console.print(Text(clean(one.caption), style="dim"))
    console.print()
    for note in study.notes:
        console.print(Text(clean(note), style="dim"))


def _rich(table: StudyTable, width: int) -> "RichTable":
    from rich.text import Text

    labels, lines = _fitted(table, width)
    widths = _widths(labels, lines, table.columns)
    room = max(STUDY_LEAST_NAME, width - sum(widths) - STUDY_GAP * len(labels))
    shown = rich_table()
    shown.add_column(table.row_header, no_wrap=True)
    for i, (label, wide) in enumerate(zip(labels, widths, strict=True)):
        wraps = any(len(line[i]) > wide for line in lines)
        shown.add_column(
            label, justify="left" if wraps else "right", no_wrap=not wraps, min_width=wide, overflow="fold"
        )
    names = distinct([row.name for row in table.rows], room)
    for row, short, line in zip(table.rows, names, lines, strict=True):
        style = {"anchor": "italic yellow", "reference": "bold"}.get(row.style, "")
        cells = [Text(cell, style=_colour(value) or style) for cell, value in zip(line, row.values, strict=False)]
        shown.add_row(Text(short, style=style), *cells)
    return shown


def _colour(value: CellValue) -> str:
    if not isinstance(value, Comparison) or not value.stars:
        return ""
    return "green" if value.diff > 0 else "red"


def _fitted(table: StudyTable, width: int) -> tuple[list[str], list[list[str]]]:
    """Labels and cells with intervals where they fit; else without, and at last with columns left out at the end."""
    labels = [column.label for column in table.columns]
    room = width - min(max((len(row.name) for row in table.rows), default=0), STUDY_MOST_NAME)
    lines: list[list[str]] = []
    for brief in (False, True):
        lines = [cells(row, table.columns, brief=brief) for row in table.rows]
        if _needed(labels, lines, table.columns) <= room:
            return labels, lines
    while len(labels) > 1 and _needed(labels, lines, table.columns) > room:
        labels, lines = labels[:-1], [line[:-1] for line in lines]
    return labels, lines


def _needed(labels: Sequence[str], lines: Sequence[Sequence[str]], columns: Sequence[StudyColumn]) -> int:
    return sum(wide + STUDY_GAP for wide in _widths(labels, lines, columns))


def _widths(labels: Sequence[str], lines: Sequence[Sequence[str]], columns: Sequence[StudyColumn]) -> list[int]:
    """Of every column: its longest cell, or where it is wrapped if it holds long text."""
    longest = [max(len(line[i]) for line in (labels, *lines)) for i in range(len(labels))]
    return [wide if column.numeric else min(wide, STUDY_WRAP) for wide, column in zip(longest, columns, strict=False)]


def cells(row: StudyRow, columns: Sequence[StudyColumn], *, brief: bool = False) -> list[str]:
    """The values of a row as text."""
    return [value_text(value, column.decimals, brief=brief) for value, column in zip(row.values, columns, strict=True)]


def markdown_study(study: StudyResult) -> str:
    """The study as GitHub-flavoured Markdown."""
    parts = [f"## {markdown_text(study.title)}", *map(markdown_text, study.sentences)]
    for one in study.tables:
        parts += [f"### {markdown_text(one.title)}", markdown_grid(one)]
        parts += [markdown_text(one.caption)] if one.caption else []
    parts += [markdown_text(note) for note in study.notes]
    return "\n\n".join(parts) + "\n"


def markdown_grid(table: StudyTable) -> str:
    """One table as Markdown."""
    heads = [table.row_header or " ", *(column.label for column in table.columns)]
    rule = ["---", *("---:" if column.numeric else "---" for column in table.columns)]
    lines = [[markdown_text(head) for head in heads], rule]
    for row in table.rows:
        plain = markdown_text(row.name)
        styled = {"anchor": f"*{plain}*", "reference": f"**{plain}**"}.get(row.style, plain)
        lines.append([styled, *(markdown_text(cell) for cell in cells(row, table.columns))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


STUDY_ADVICE = (
    "BI is the Brier index 100·(1 − √Brier) of all targets together: 50 is always-0.5, 100 is perfect. Overall is the "
    "mean of the kinds (market, dataset).",
    "Δ is a paired difference: both sides are recomputed on the same resamples of whole questions, so what makes a "
    "question hard drops out. One star means p < 0.05, two p < 0.01, three p < 0.001, one-sided, without correction "
    "for the number of lines.",
    "Questions that resolve on one day hang together as well. Δ two-way resamples resolution days beside questions; "
    "where the two intervals disagree, believe the wider one.",
)


def study_page(study: StudyResult, how_to_read: Sequence[str] = ()) -> str:
    """A whole HTML document that needs no network; `how_to_read` replaces what the study says about reading it."""
    return page(study.title, study_sections(study, how_to_read), lead=study.text)


def study_parts(study: StudyResult, how_to_read: Sequence[str] = ()) -> list[tuple[str, str, Markup]]:
    """Anchor, title and HTML of every section, for a page that is made elsewhere."""
    return [(anchor, title, render_blocks(blocks)) for anchor, title, blocks in study_sections(study, how_to_read)]


def study_sections(study: StudyResult, how_to_read: Sequence[str] = ()) -> list[Section]:
    """Tables, pictures after the first of them, and how to read it all."""
    sections: list[Section] = [(f"table-{i}", one.title, [study_table(one)]) for i, one in enumerate(study.tables, 1)]
    if study.charts:
        sections.insert(1, ("charts", "Charts", _charts(study.charts)))
    settings = [(key, settings_text(value)) for key, value in {**study.settings, **_cost(study)}.items()]
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


def study_table(table: StudyTable) -> HtmlBlock:
    """A table of a study as one of a page."""
    columns = [HtmlColumn(label=table.row_header or " ")]
    columns += [HtmlColumn(label=c.label, numeric=c.numeric, tip=c.tip) for c in table.columns]
    rows = [_html_row(row, table.columns) for row in table.rows]
    return table_block(columns, rows, table.caption or table.title)


def _html_row(row: StudyRow, columns: tuple[StudyColumn, ...]) -> HtmlRow:
    cells = [_html_cell(value, column) for value, column in zip(row.values, columns, strict=True)]
    return HtmlRow(cells=[HtmlCell(text=row.name, style="name", is_name=True), *cells], style=row.style)


def _html_cell(value: CellValue, column: StudyColumn) -> HtmlCell:
    if isinstance(value, Interval | Comparison):
        return value_cell(value, column.decimals)
    text = value_text(value, column.decimals)
    if isinstance(value, int | float):
        return number_cell(text, float(value))
    return HtmlCell(text=text, style="n" if column.numeric else "")


def _cost(study: StudyResult) -> dict[str, str]:
    return {} if study.cost is None else {"cost": str(study.cost)}
