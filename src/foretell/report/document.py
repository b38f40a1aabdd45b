"""Write results to a terminal, Markdown, HTML and other files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from foretell.data.files import open_duckdb, write_atomically
from foretell.data.untrusted import rows_as_csv
from foretell.frozen import frozen
from foretell.questions.errors import InputError
from foretell.report.charts.svg import export_figure
from foretell.report.html import (
    HtmlBlock,
    LinkItem,
    OutlineItem,
    Section,
    advice_blocks,
    page,
    render_blocks,
    settings_text,
)
from foretell.report.markup import Markup, clean, markdown_text, quoted_markdown
from foretell.report.numbers import CellValue
from foretell.report.numbers import value_text as value_text
from foretell.report.provenance import Provenance
from foretell.report.study import StudyChart, StudyColumn, StudyContent, StudyRow, StudyTable
from foretell.report.terminal import GAP, distinct, left_out_note, rich_table
from foretell.scoring.verdict import Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

LEAST_NAME, MOST_NAME = 18, 34
"""Minimum length of a row's name, and the length that is kept at the cost of columns."""
WRAP = 40
"""Characters after which a column of text is wrapped."""
STUDY_ADVICE = (
    "BI is the Brier index 100·(1 − √Brier) of all targets together: 50 is always-0.5, 100 is perfect. Overall is the "
    "mean of the kinds (market, dataset).",
    "Δ is a paired difference: both sides are recomputed on the same resamples of whole questions, so the difficulty "
    "of questions cancels. One star means p < 0.05, two p < 0.01, three p < 0.001, two-sided, without correction "
    "for the number of lines.",
    "Questions that resolve on one day are correlated as well. Δ two-way resamples resolution days besides questions; "
    "if the two intervals differ, use the wider one.",
)


# In a terminal.


def print_study(study: StudyContent, console: "Console") -> None:
    """Print the sentences, every table with as many columns as fit, and the notes."""
    from rich.text import Text

    for sentence in study.sentences:
        console.print(Text(clean(sentence), style="bold"))
    for table in study.tables:
        console.print()
        console.print(Text(clean(table.title), style="bold"))
        console.print(rich_study_table(table, console.width))
        if table.caption:
            console.print(Text(clean(table.caption), style="dim"))
    console.print()
    for note in study.notes:
        console.print(Text(clean(note), style="dim"))


def rich_study_table(table: StudyTable, width: int, name_width: int = MOST_NAME) -> "RichTable":
    """Build a table no wider than `width`, if necessary without intervals and then without its last columns.

    Names are shortened to `name_width` before anything else is left out.
    """
    from rich.text import Text

    longest = max((len(row.name) for row in table.rows), default=0)
    columns, lines, note = _fitted(table, width - min(longest, name_width))
    widths = _widths(columns, lines)
    room = max(LEAST_NAME, width - sum(widths) - GAP * len(columns))
    shown = rich_table()
    shown.caption, shown.caption_justify = note or None, "left"
    shown.add_column(table.row_header, no_wrap=True)
    for i, (column, wide) in enumerate(zip(columns, widths, strict=True)):
        wraps = any(len(line[i]) > wide for line in lines)
        justify = "left" if wraps else "right"
        shown.add_column(column.label, justify=justify, no_wrap=not wraps, min_width=wide, overflow="fold")
    names = distinct([row.name for row in table.rows], room)
    for row, short, line in zip(table.rows, names, lines, strict=True):
        style = {"baseline": "italic yellow", "reference": "bold"}.get(row.style, "")
        cells = zip(line, row.values, strict=False)
        texts = [Text(cell, style=_colour(value) or style) for cell, value in cells]
        shown.add_row(Text(short, style=style), *texts)
    return shown


def _colour(value: CellValue) -> str:
    return {"better": "green", "worse": "red"}.get(value.says, "") if isinstance(value, Verdict) else ""


def _fitted(table: StudyTable, room: int) -> tuple[Sequence[StudyColumn], list[list[str]], str]:
    """Return the columns that fit, their cells, and the note on what is left out."""
    columns = table.columns

    def needed(lines: Sequence[Sequence[str]]) -> int:
        return sum(wide + GAP for wide in _widths(columns, lines))

    whole = lines = [_cells(row, columns) for row in table.rows]
    if needed(lines) > room:
        lines = [_cells(row, columns, brief=True) for row in table.rows]
    brief = lines != whole
    while len(columns) > 1 and needed(lines) > room:
        columns, lines = columns[:-1], [line[:-1] for line in lines]
    missing = [column.label for column in table.columns[len(columns) :]]
    return columns, lines, left_out_note(missing, intervals=brief)


def _widths(columns: Sequence[StudyColumn], lines: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of every column: its longest cell, or the wrapping width for long text."""
    longest = [max(map(len, (column.label, *(line[i] for line in lines)))) for i, column in enumerate(columns)]
    return [wide if column.numeric else min(wide, WRAP) for wide, column in zip(longest, columns, strict=True)]


def _cells(row: StudyRow, columns: Sequence[StudyColumn], *, brief: bool = False) -> list[str]:
    return [
        value_text(value, column.decimals, brief=brief or column.brief, gain=column.gain, unit=column.unit)
        for value, column in zip(row.values, columns, strict=True)
    ]


# As Markdown.


def markdown_study(study: StudyContent) -> str:
    """Return the study as GitHub-flavoured Markdown."""
    parts = [f"## {markdown_text(study.title)}", *map(markdown_text, study.sentences)]
    for table in study.tables:
        parts += markdown_table(table)
    parts += [markdown_text(note) for note in study.notes]
    return "\n\n".join([*parts, study.made().to_markdown()])


def markdown_table(table: StudyTable) -> list[str]:
    """Return the paragraphs of one table: its title, its rows and its caption."""
    heads = [table.row_header or " ", *(column.label for column in table.columns)]
    rule = ["---", *("---:" if column.numeric else "---" for column in table.columns)]
    lines = [[markdown_text(head) for head in heads], rule]
    for row in table.rows:
        plain = markdown_text(row.name)
        styled = {"baseline": f"*{plain}*", "reference": f"**{plain}**"}.get(row.style, plain)
        lines.append([styled, *(markdown_text(cell) for cell in _cells(row, table.columns))])
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return [f"### {markdown_text(table.title)}", rows, *([markdown_text(table.caption)] if table.caption else [])]


# As a page.


def study_page(study: StudyContent) -> str:
    """Return a complete HTML document that needs no network."""
    return page(study.title, _sections(study), lead=study.text, made=study.made())


def study_parts(study: StudyContent, how_to_read: Sequence[str] = ()) -> list[tuple[str, str, Markup]]:
    """Return anchor, title and HTML of every section, for a page of the web application.

    `how_to_read` replaces the study's own advice on how to read it.
    """
    return [(anchor, title, render_blocks(blocks)) for anchor, title, blocks in _sections(study, how_to_read)]


def _sections(study: StudyContent, how_to_read: Sequence[str] = ()) -> list[Section]:
    """Return the sections: the tables, the charts after the first table, and advice on how to read them."""
    sections: list[Section] = [
        (f"table-{i}", table.title, [HtmlBlock(table=table, style="titled")]) for i, table in enumerate(study.tables, 1)
    ]
    if study.charts:
        sections.insert(1, ("charts", "Charts", _charts(study.charts)))
    settings = [(key, settings_text(value)) for key, value in study.settings.items()]
    settings += [("cost", str(study.cost))] if study.cost is not None else []
    reading = advice_blocks(how_to_read or study.how_to_read or STUDY_ADVICE, ("Settings", settings), notes=study.notes)
    return [*sections, ("reading", "How to read this", reading)]


def _charts(charts: Sequence[StudyChart]) -> list[HtmlBlock]:
    """Arrange charts: wide ones below each other, others side by side."""
    blocks: list[HtmlBlock] = []
    for chart in charts:
        if chart.chart.wide:
            blocks += [HtmlBlock(heading=chart.title), HtmlBlock(charts=[chart.chart])]
    narrow = [chart.chart for chart in charts if not chart.chart.wide]
    return blocks + ([HtmlBlock(charts=narrow, style="grid")] if narrow else [])


# Results as files: the suffix of a file's name determines the format.


class Writable(Protocol):
    """A result that can be written to files; `to_html`, `to_markdown` and `to_svg` are optional."""

    def to_json(self) -> str: ...  # noqa: D102

    def rows(self) -> list[dict[str, Any]]: ...  # noqa: D102


CHARTS = (".svg", ".png")
"""Suffixes of charts; `write_charts` of a result with several writes a file for each."""


def write_outputs(result: Writable, paths: Sequence[Path]) -> list[Path]:
    """Write a result to files in the formats of their suffixes; writes nothing if one is not supported.

    A path without a suffix is a folder: the result's `write_folder` writes its tables there and returns their paths.
    """
    files = list[Path]()
    for path in paths:
        if not can_write(result, path.suffix):
            known = ", ".join(suffix for suffix in WRITERS if can_write(result, suffix))
            raise InputError("cannot write this kind of file", path=path, hint=f"known suffixes are {known}")
    for path in paths:
        if path.parent != Path():
            path.parent.mkdir(parents=True, exist_ok=True)
        if not path.suffix:
            files += cast("Any", result).write_folder(path)
        elif path.suffix in CHARTS and hasattr(result, "write_charts"):
            files += cast("Any", result).write_charts(path)
        else:
            WRITERS[path.suffix](result, path)
            files.append(path)
    return files


def can_write(result: Writable, suffix: str) -> bool:
    """Whether a result can be written with this suffix.

    >>> from foretell.report.result import Result
    >>> can_write(Result(), ".csv"), can_write(Result(), ".html")
    (True, False)
    """
    if not suffix:
        return hasattr(result, "write_folder")
    if suffix in CHARTS and hasattr(result, "write_charts"):
        return True
    method = _METHODS.get(suffix)
    return suffix in WRITERS and (method is None or hasattr(result, method))


def _text(method: str) -> Callable[[Any, Path], None]:
    def write(result: Any, path: Path) -> None:
        text: str = getattr(result, method)()
        write_atomically(path, text.encode())

    return write


def _csv(result: Any, path: Path) -> None:
    write_atomically(path, rows_as_csv(result.rows()).encode())


def _jsonl(result: Any, path: Path) -> None:
    import json

    lines = (json.dumps(row, ensure_ascii=False, default=str) for row in result.rows())
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


def _parquet(result: Any, path: Path) -> None:
    """Write Parquet via CSV, so that DuckDB infers the column types."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder, open_duckdb() as con:
        csv, parquet = Path(folder) / "rows.csv", Path(folder) / "rows.parquet"
        csv.write_text(rows_as_csv(result.rows(), let_out=lambda cell: cell), encoding="utf-8")
        con.read_csv(str(csv), header=True).write_parquet(str(parquet))
        write_atomically(path, parquet.read_bytes())


def _figure(result: Any, path: Path) -> None:
    export_figure(result.to_svg(), path)


def _json(result: Any, path: Path) -> None:
    """Write JSON, with the result's `write_json` if it has one."""
    write = getattr(result, "write_json", None) or partial(_text("to_json"), result)
    write(path)


_METHODS: Mapping[str, str] = {
    ".html": "to_html",
    ".md": "to_markdown",
    ".svg": "to_svg",
    ".png": "to_svg",
    ".dot": "to_dot",
    ".bif": "to_bif",
    ".pl": "to_problog",
}
"""The method needed for each suffix that not every result supports."""
WRITERS: Mapping[str, Callable[[Any, Path], None]] = {
    ".json": _json,
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".parquet": _parquet,
    **{suffix: _text(method) for suffix, method in _METHODS.items()},
    ".png": _figure,
}
"""Maps each suffix to the function that writes such a file."""


# A report as one document: the same sections as a web page in one file, as Markdown, and on paper.


@frozen
class ReportDocument:
    """A report: title, summary and sections."""

    title: str
    lead: str
    sections: Sequence[Section]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings of its numbers; `seed` and `draws` are named in the footer."""

    def to_html(self) -> str:
        """Return the report as a self-contained HTML page that works without scripts, in dark mode and on paper."""
        return page(self.title, self.sections, lead=self.lead, made=Provenance.now(self.settings))

    def to_markdown(self) -> str:
        """Return the report as GitHub-flavoured Markdown, without the charts."""
        parts = [f"# {markdown_text(self.title)}", f"**{markdown_text(self.lead)}**"]
        for _, heading, blocks in self.sections:
            texts = [text for block in blocks for text in _markdown(block)]
            parts += [f"## {markdown_text(heading)}", *texts] if texts else []
        return "\n\n".join([*parts, Provenance.now(self.settings).to_markdown()])


def _markdown(block: HtmlBlock) -> Iterator[str]:
    """Yield the paragraphs of a block."""
    if block.heading:
        yield f"### {markdown_text(block.heading)}"
    elif block.table is not None:
        yield from markdown_table(block.table)
    elif block.definitions:
        yield "\n".join(f"- {markdown_text(name)}: {markdown_text(value)}" for name, value in block.definitions)
    elif block.bullets:
        yield "\n".join(f"- {markdown_text(bullet)}" for bullet in block.bullets)
    elif block.prose:
        yield quoted_markdown(block.prose)
    elif block.links:
        yield "\n".join(f"- {_link(link)}" for link in block.links)
    elif block.outline:
        yield "\n".join(map(_outline_line, block.outline))
    elif block.text:
        yield markdown_text(block.text)


def _link(item: LinkItem) -> str:
    # An address in angle brackets must not contain angle brackets or line breaks; `web_address` rejects them.
    text = f"[{markdown_text(item.text)}](<{item.address}>)" if item.address else markdown_text(item.text)
    return f"{text} {markdown_text(item.detail)}".rstrip()


def _outline_line(item: OutlineItem) -> str:
    tags = f" *({markdown_text('; '.join(item.tags))})*" if item.tags else ""
    return f"{'  ' * item.depth}- **{markdown_text(item.name)}** {item.value} {markdown_text(item.text)}{tags}"
