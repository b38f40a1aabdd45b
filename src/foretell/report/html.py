"""Pages as single files: no request leaves them, they work without scripts, in the dark, on a phone and on paper.

A page is a list of sections, a section a list of blocks (text, tables, charts, definitions). The templates in
`report/templates` turn them into HTML, with escaping always on; the web app shows the same blocks with the same macros.
"""

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from foretell.report.charts.svg import Chart
from foretell.report.markup import clean, element
from foretell.report.theme import colour_variables, figure_rules

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent
PLAIN_NUMBER = re.compile(r"^(\d+(\.\d+)?)?$")


@dataclass(frozen=True, kw_only=True)
class HtmlCell:
    """One cell of a table."""

    text: str
    value: float | str | None = None
    """What to sort by, where it is not the text; NaN sorts last."""
    style: str = ""
    mark: str = ""
    """Class of the text itself: good, bad."""
    detail: str = ""
    """Written after the text in smaller letters, such as an interval."""
    tags: tuple[str, ...] = ()
    is_name: bool = False
    """A name that somebody else chose, kept from turning the direction of the text around it."""

    @property
    def sort_key(self) -> str | None:
        """The value as an attribute; None where the text itself will do: a page has thousands of cells."""
        if not isinstance(self.value, float | int):
            return self.value
        if not self.detail and PLAIN_NUMBER.match(self.text):
            return None
        return f"{self.value:.6g}" if math.isfinite(self.value) else ""


@dataclass(frozen=True, kw_only=True)
class HtmlColumn:
    """One column of a table."""

    label: str
    numeric: bool = False
    tip: str = ""


@dataclass(frozen=True, kw_only=True)
class HtmlRow:
    """One row of a table."""

    cells: Sequence[HtmlCell]
    style: str = ""


def number_cell(text: str, value: float | None, style: str = "n", **more: Any) -> HtmlCell:
    """A right-aligned number that sorts by its value."""
    return HtmlCell(text=text, value=math.nan if value is None else value, style=style, **more)


def columns_of(labels: Sequence[str], texts: int = 1) -> tuple[HtmlColumn, ...]:
    """Columns of which the first few hold text and the others numbers."""
    return tuple(HtmlColumn(label=label, numeric=i >= texts) for i, label in enumerate(labels))


@dataclass(frozen=True, kw_only=True)
class HtmlBlock:
    """A piece of a section; the field that is set says what it is."""

    text: str = ""
    """A paragraph."""
    style: str = ""
    """Of the paragraph, or how charts stand: "grid" and "pair" side by side, "" below each other."""
    heading: str = ""
    rows: Sequence[HtmlRow] | None = None
    """A sortable table."""
    columns: Sequence[HtmlColumn] = ()
    caption: str = ""
    charts: Sequence[Chart | tuple[Chart, str]] = ()
    """Charts; with "narrow" shown on phones only, with "roomy" everywhere else."""
    definitions: Sequence[tuple[str, str]] = ()
    bullets: Sequence[str] = ()


Section = tuple[str, str, Sequence[HtmlBlock]]
"""Anchor, title and blocks of a part of a page; one without blocks is left out."""


def table_block(columns: Sequence[HtmlColumn], rows: Sequence[HtmlRow], caption: str) -> HtmlBlock:
    """A sortable table inside a region that scrolls sideways and can be reached by keyboard."""
    return HtmlBlock(columns=columns, rows=rows, caption=caption)


def advice_blocks(
    advice: Sequence[str], *parts: tuple[str, Sequence[tuple[str, str]]], notes: Iterable[str]
) -> list[HtmlBlock]:
    """How to read a page: paragraphs, lists of definitions under their headings, and notes."""
    blocks = [HtmlBlock(text=one) for one in advice]
    for heading, pairs in parts:
        if pairs:
            blocks += [HtmlBlock(heading=heading), HtmlBlock(definitions=pairs)]
    told = list(notes)
    return blocks + ([HtmlBlock(heading="Notes"), HtmlBlock(bullets=told)] if told else [])


def settings_text(value: object) -> str:
    """A setting on one line.

    >>> settings_text(["market", "dataset"]), settings_text(None), settings_text(0.95)
    ('market, dataset', 'none', '0.95')
    """
    if value is None:
        return "none"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(str(item) for item in value) or "none"  # pyright: ignore[reportUnknownVariableType]
    return str(value)


def page(title: str, sections: Sequence[Section] = (), *, lead: str = "", notes: Sequence[str] = ()) -> str:
    """A whole document: a sentence or two, and sections with links to them."""
    shown = [section for section in sections if section[2]]
    return render_page("report/page.html", title=title, lead=lead, notes=notes, sections=shown)


def render_page(template: str, **values: Any) -> str:
    """A whole document by its own template. Its policy allows its own style and script by their hashes alone."""
    style = colour_variables() + figure_rules() + static_text("page.css")
    script = static_text("sorting.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    found = environment().get_template(template)
    return found.render(style=Markup(style), script=Markup(script), policy=policy, **values)


def render_blocks(blocks: Sequence[HtmlBlock]) -> Markup:
    """Blocks alone, for a page that is made elsewhere or a notebook."""
    macros: Any = environment().get_template("report/blocks.html").module
    return macros.all_blocks(blocks)


@cache
def static_text(name: str) -> str:
    """A style sheet or script of reports; the web app serves the same."""
    return (FOLDER / "static" / name).read_text(encoding="utf-8")


def chart_html(chart: Chart, style: str = "") -> Markup:
    """A chart of ours, whose texts are escaped already; scrolls sideways where it is wide."""
    if not isinstance(chart, Chart):  # pyright: ignore[reportUnnecessaryIsInstance] - templates are not checked
        raise TypeError(f"only our own charts are shown as they are, not a {type(chart).__name__}")
    classes = " ".join(filter(None, ("wide" if chart.wide else "", style)))
    return element("figure", chart.svg, class_=classes or None, tabindex="0" if chart.wide else None)


def make_environment(
    folder: Path | None = None, *, plain: Any = clean, filters: Mapping[str, Any] | None = None
) -> "Environment":
    """Templates of reports as report/NAME, beside those of a folder; what a template writes out goes through `plain`.

    Escaping is always on, and an undefined name is an error.
    """
    from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined

    def written(value: Any) -> Any:
        return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    own = PrefixLoader({"report": FileSystemLoader(FOLDER / "templates")})
    made = Environment(
        loader=ChoiceLoader([own, FileSystemLoader(folder)]) if folder else own,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=written,
    )
    made.filters.update({"figure": chart_html, **(filters or {})})
    return made


@cache
def environment() -> "Environment":
    """The templates of reports."""
    return make_environment()


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
