"""Self-contained HTML pages that work without scripts, in dark mode, on phones and on paper.

A page is a list of sections, a section a list of blocks (text, tables, charts, definitions). The templates in
`report/templates` turn them into HTML, with escaping always on.
"""

import base64
import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.report.charts.svg import Chart
from foretell.report.figure_page import figure_sheet, static_text
from foretell.report.markup import clean, markdown
from foretell.report.numbers import CellValue, column_heading, interval_ends, value_text
from foretell.report.provenance import Provenance
from foretell.report.study import StudyColumn, StudyRow, StudyTable, cell_number
from foretell.report.theme import colour_variables
from foretell.scoring.verdict import Verdict

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent
PLAIN_PAGE = "report/page.html"
PLAIN_NUMBER = pattern(r"^(\d+(\.\d+)?)?$")


class HtmlCell(NamedTuple):
    """A table cell for the template."""

    text: str
    style: str
    sort_key: str | None
    """Sort key; None to sort by the text, which saves space in large tables."""
    mark: str = ""
    """CSS class of the text itself: good, bad."""
    detail: str = ""
    """Small text after the value, such as an interval."""


def row_cells(row: StudyRow, columns: Sequence[StudyColumn]) -> Iterator[HtmlCell]:
    """Yield the cells of a row after its name."""
    for value, column in zip(row.values, columns, strict=True):
        yield html_cell(value, column)


def html_cell(value: CellValue, column: StudyColumn) -> HtmlCell:
    """Return a cell as the template shows it: its text, its interval, and the number it is sorted by."""
    if isinstance(value, str):
        return HtmlCell(text=value, style="n" if column.numeric else "long", sort_key=None)
    text = value_text(value, column.decimals, brief=True, gain=column.gain, unit=column.unit)
    detail = "" if column.brief else interval_ends(value, column.decimals, gain=column.gain, unit=column.unit)
    mark = {"better": "good", "worse": "bad"}.get(value.says, "") if isinstance(value, Verdict) else ""
    number = cell_number(value, gain=column.gain)
    key = (f"{number:.6g}" if math.isfinite(number) else "") if detail or not PLAIN_NUMBER.match(text) else None
    return HtmlCell(text=text, style="n" if column.numeric else "", sort_key=key, mark=mark, detail=detail)


@frozen
class HtmlBlock:
    """A piece of a section; its kind is determined by the field that is set."""

    text: str = ""
    """A paragraph."""
    style: str = ""
    """Style of the paragraph, or layout of charts: "grid" and "pair" side by side, "" below each other.

    A table is "titled" if its title is already shown above it.
    """
    heading: str = ""
    table: StudyTable | None = None
    """A sortable table inside a region that scrolls sideways and can be reached by keyboard."""
    charts: Sequence[Chart] = ()
    definitions: Sequence[tuple[str, str]] = ()
    bullets: Sequence[str] = ()
    prose: str = ""
    """Untrusted Markdown, sanitised."""
    links: Sequence["LinkItem"] = ()
    outline: Sequence["OutlineItem"] = ()
    anchor: str = ""
    """Anchor of a heading."""


class LinkItem(NamedTuple):
    """A source, as a link if it has a web address."""

    text: str
    address: str = ""
    detail: str = ""
    """Date of publication."""


class OutlineItem(NamedTuple):
    """A line of an outline, with its depth and a link to details."""

    depth: int
    name: str
    value: str
    text: str
    anchor: str
    tags: Sequence[str] = ()


Section = tuple[str, str, Sequence[HtmlBlock]]
"""Anchor, title and blocks of a section; sections without blocks are left out."""


def advice_blocks(
    advice: Sequence[str], *parts: tuple[str, Sequence[tuple[str, str]]], notes: Iterable[str]
) -> list[HtmlBlock]:
    """Return the blocks on how to read a page: paragraphs, lists of definitions with headings, and notes."""
    blocks = [HtmlBlock(text=paragraph) for paragraph in advice]
    for heading, pairs in parts:
        if pairs:
            blocks += [HtmlBlock(heading=heading), HtmlBlock(definitions=pairs)]
    bullets = list(notes)
    return blocks + ([HtmlBlock(heading="Notes"), HtmlBlock(bullets=bullets)] if bullets else [])


def settings_text(value: object) -> str:
    """Format a setting on one line.

    >>> settings_text(["market", "dataset"]), settings_text(None), settings_text(0.95)
    ('market, dataset', 'none', '0.95')
    """
    if value is None:
        return "none"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(str(item) for item in value) or "none"  # pyright: ignore[reportUnknownVariableType]
    return str(value)


def page(
    title: str,
    sections: Sequence[Section] = (),
    *,
    lead: str = "",
    notes: Sequence[str] = (),
    made: Provenance | None = None,
) -> str:
    """Render a document: a summary, sections with links to them, and a footer with its provenance."""
    shown = [section for section in sections if section[2]]
    return render_page(PLAIN_PAGE, made=made, title=title, lead=lead, notes=notes, sections=shown)


def render_page(template: str, *, made: Provenance | None = None, **values: Any) -> str:
    """Render a document with its own template, and a footer with its provenance.

    Its content policy allows only its own styles and scripts, by hash.
    """
    style = colour_variables() + figure_sheet() + static_text("page.css")
    # A page without sections needs no script.
    bare = template == PLAIN_PAGE and not values.get("sections")
    script = "" if bare else static_text("sorting.js") + static_text("figures.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    template_file = environment().get_template(template)
    made = made or Provenance.now()
    return template_file.render(style=Markup(style), script=Markup(script), policy=policy, made=made, **values)


def render_blocks(blocks: Sequence[HtmlBlock]) -> Markup:
    """Render blocks for another page or a notebook."""
    macros: Any = environment().get_template("report/blocks.html").module
    return macros.all_blocks(blocks)


def chart_html(chart: Chart, style: str = "") -> Markup:
    """Return a chart as HTML; its texts are already escaped."""
    if not isinstance(chart, Chart):  # pyright: ignore[reportUnnecessaryIsInstance] - templates are not checked
        raise TypeError(f"expected a Chart, got {type(chart).__name__}")
    return chart.to_html(style)


def make_environment(
    folder: Path | None = None, *, plain: Any = clean, filters: Mapping[str, Any] | None = None
) -> "Environment":
    """Create a Jinja environment with the report templates as report/NAME, and those of `folder` if given.

    Strings that a template outputs go through `plain`. Escaping is always on, and an undefined name is an error.
    """
    from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined

    from foretell.report.compiled_templates import CompiledTemplates

    def finalize(value: Any) -> Any:
        return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    own = PrefixLoader({"report": FileSystemLoader(FOLDER / "templates")})
    options: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(
        loader=ChoiceLoader([own, FileSystemLoader(folder)]) if folder else own,
        undefined=StrictUndefined,
        finalize=finalize,
        auto_reload=False,  # Templates are read from disk only once.
        bytecode_cache=CompiledTemplates(repr(options)),
        **options,
    )
    own_filters: dict[str, Any] = {
        "figure": chart_html,
        "row_cells": row_cells,
        "prose": markdown,
        "heading": column_heading,
    }
    environment.filters.update(own_filters | dict(filters or {}))
    return environment


@cache
def environment() -> "Environment":
    """Return the environment with the templates of reports."""
    return make_environment()


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
