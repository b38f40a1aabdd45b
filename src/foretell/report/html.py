"""One-file web pages: no request leaves them, they work without scripts, in the dark, on a phone and on paper."""

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from foretell.report.charts.svg import Chart
from foretell.report.markup import Markup, clean, element, join
from foretell.report.theme import figure_rules, variables

PAGE_RULES = """
*{box-sizing:border-box}
body{margin:0;font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;
background:var(--ft-paper);color:var(--ft-ink)}
main{max-width:72rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .75rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.5rem 0 .5rem}h3{font-size:1rem;margin:1.5rem 0 .4rem}
p,li,dd{max-width:46rem;overflow-wrap:anywhere}
.lead{font-size:1.2rem;line-height:1.4;margin:.5rem 0;padding:.8rem 1rem;background:var(--ft-panel);
border-left:4px solid var(--ft-a);max-width:60rem}
.quiet{color:var(--ft-muted);font-size:.9rem}
a{color:var(--ft-a)}nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem;margin:1rem 0;font-size:.9rem}
:focus-visible{outline:2px solid var(--ft-a);outline-offset:2px}
.scroll{overflow-x:auto;position:relative}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--ft-muted);padding:.2rem 0}
th,td{padding:.3rem .6rem;text-align:left;border-bottom:1px solid var(--ft-grid);white-space:nowrap}
th{color:var(--ft-muted);font-weight:600;vertical-align:bottom}
.n{text-align:right}.ci{color:var(--ft-muted);font-size:.8rem}.good{color:var(--ft-a);font-weight:600}
.bad{color:var(--ft-b);font-weight:600}.name{white-space:normal;min-width:15rem;max-width:26rem;overflow-wrap:anywhere}
.long{white-space:normal;min-width:16rem;max-width:30rem}
tr.anchor td{background:var(--ft-anchor)}tr.reference td{border-bottom:2px solid var(--ft-axis)}
.tag{font-size:.75rem;color:var(--ft-muted);border:1px solid var(--ft-axis);border-radius:3px;
padding:0 .3em;margin-left:.4em;display:inline-block;white-space:nowrap}
th button{font:inherit;color:inherit;background:none;border:0;padding:0;cursor:pointer;text-align:inherit}
th button:hover{color:var(--ft-ink)}th[aria-sort=ascending] button::after{content:' ▲'}
th[aria-sort=descending] button::after{content:' ▼'}
.grid{display:grid;gap:1.5rem;grid-template-columns:repeat(auto-fill,minmax(min(100%,19rem),1fr))}
.pair{display:grid;gap:1.5rem;grid-template-columns:repeat(auto-fill,minmax(min(100%,28rem),1fr))}
figure{margin:.75rem 0;overflow-x:auto}figure svg{display:block;height:auto;max-width:100%}
figure.wide svg{max-width:none}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;font-size:.9rem;margin:.5rem 0}
dt{color:var(--ft-muted)}dd{margin:0}
.narrow{display:none}
@media(max-width:40rem){.narrow{display:block}.roomy{display:none}
h1{font-size:1.35rem}.lead{font-size:1.05rem}main{padding:1rem .75rem 3rem}
.name{min-width:9rem;max-width:12rem}th,td{padding:.3rem .4rem}}
@media print{.narrow{display:none}.roomy{display:block}
main{max-width:none;padding:0}nav{display:none}.scroll,figure{overflow:visible}
figure,tr{break-inside:avoid}h2,h3{break-after:avoid}figure.wide svg{max-width:100%}
body{font-size:11pt}table{font-size:7.5pt}th,td{padding:.15rem .3rem}.name{min-width:8rem}}
"""

SORT_SCRIPT = """
for (const table of document.querySelectorAll('table.sort')) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const last = head.getAttribute('aria-sort');
      const way = last ? (last === 'ascending' ? -1 : 1) : (head.className === 'n' ? -1 : 1);
      heads.forEach(other => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', way === 1 ? 'ascending' : 'descending');
      const key = row => row.cells[column].dataset.v ?? row.cells[column].textContent;
      const order = (a, b) => {
        const x = key(a), y = key(b);
        if (x === '' || y === '') return (x === '') - (y === '');
        return way * (isNaN(x - y) ? x.localeCompare(y) : x - y);
      };
      body.append(...[...body.rows].sort(order));
    });
  });
}
"""


PLAIN_NUMBER = re.compile(r"^(\d+(\.\d+)?)?$")


@dataclass(frozen=True, kw_only=True)
class HtmlCell:
    """One cell of a table."""

    shown: str | Markup
    value: float | str | None = None
    """What to sort by, where it is not the text; NaN sorts last."""
    style: str | None = None


@dataclass(frozen=True, kw_only=True)
class HtmlColumn:
    """One column of a table."""

    label: str
    numeric: bool = False
    tip: str | None = None


@dataclass(frozen=True, kw_only=True)
class HtmlRow:
    """One row of a table."""

    cells: Sequence[HtmlCell]
    style: str | None = None


def number_cell(shown: str | Markup, value: float | None, style: str = "n") -> HtmlCell:
    """A right-aligned number that sorts by its value."""
    return HtmlCell(shown=shown, value=math.nan if value is None else value, style=style)


def table(heads: Sequence[HtmlColumn], lines: Sequence[HtmlRow], caption: str) -> Markup:
    """A sortable table inside a region that scrolls sideways and can be reached by keyboard."""
    top = [
        element("th", head.label, scope="col", class_="n" if head.numeric else None, title=head.tip) for head in heads
    ]
    body = [element("tr", *(_cell(cell) for cell in row.cells), class_=row.style) for row in lines]
    inner = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *top)),
        element("tbody", *body),
        class_="sort",
    )
    return element("div", inner, class_="scroll", role="region", tabindex="0", aria_label=caption)


def _cell(cell: HtmlCell) -> Markup:
    value = cell.value
    if isinstance(value, float | int):
        value = f"{value:.6g}" if math.isfinite(value) else ""
        # The text itself will do where it is a plain number: a page has thousands of cells.
        value = None if PLAIN_NUMBER.match(cell.shown) else value
    return element("td", cell.shown, class_=cell.style, data_v=value)


def name(text: str) -> Markup:
    """A forecaster's or question's own name, kept from turning the direction of the text around it."""
    return element("bdi", clean(text))


def shown(figure: Chart, style: str | None = None) -> Markup:
    """A figure on the page; style "narrow" shows it on phones only, "roomy" everywhere else."""
    told = " ".join(filter(None, ("wide" if figure.wide else None, style)))
    return element("figure", figure.svg, class_=told or None)


def section(title: str, *children: Markup | None, anchor: str) -> Markup:
    """A titled part of the page that the contents point to."""
    return element("section", element("h2", title), *children, id=anchor)


def paragraph(text: str | Markup, style: str | None = None) -> Markup:
    """A paragraph."""
    return element("p", text, class_=style)


def definitions(pairs: Sequence[tuple[str, str]]) -> Markup:
    """Names with their values."""
    return element("dl", *(join(element("dt", a), element("dd", b)) for a, b in pairs))


def contents(titles: Sequence[tuple[str, str]]) -> Markup:
    """Links to sections, as (anchor, title)."""
    return element("nav", *(element("a", title, href=f"#{anchor}") for anchor, title in titles), aria_label="Contents")


def page(title: str, *parts: Markup | None) -> str:
    """The whole document. Its policy allows its own style and script by their hashes and nothing else."""
    style, script = variables() + figure_rules() + PAGE_RULES, SORT_SCRIPT
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(style)),
    )
    body = element("body", element("main", element("h1", title), *parts), element("script", Markup(script)))
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en") + "\n"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
