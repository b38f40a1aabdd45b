"""Templates to text. Escaping is always on; only sanitised Markdown and our own figures pass as markup."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from foretell.report.charts.svg import Chart
from foretell.report.markup import Markup as ReportMarkup
from foretell.web import formatting
from foretell.web.formatting import excerpt, markdown, sanitise_text, web_address
from foretell.web.forms import form_value
from foretell.web.security import Visitor, visitor_of
from foretell.web.static_files import static_address

# Where everything is. Templates know kinds of places and ids; only this table knows addresses.

ROUTES: Mapping[str, str] = {
    "home": "/",
    "login": "/login",
    "logout": "/logout",
    "ask": "/ask",
    "runs": "/runs",
    "run": "/runs/{}",
    "stop": "/runs/{}/stop",
    "resume": "/runs/{}/resume",
    "question": "/runs/{}/questions/{}",
    "raw": "/runs/{}/raw/{}",
    "run-stream": "/api/runs/{}/stream",
    "question-stream": "/api/runs/{}/questions/{}/stream",
    "arenas": "/arena",
    "arena": "/arena/{}",
    "events": "/arena/{}/events",
    "event": "/arena/{}/event/{}",
    "compare": "/compare",
    "studies": "/studies",
    "study": "/studies/{}",
    "trees": "/trees",
    "tree": "/trees/view/{}",
    "claim": "/trees/claim/{}/{}",
    "notebook": "/trees/notebook/{}/{}",
    "tree-scenario": "/trees/scenario/{}",
    "tree-export": "/api/tree/export/{}/{}",
    "api": "/api",
    "openapi": "/openapi.json",
}
"""Kind → address with one gap per id. Ids may hold slashes and anything else: they are quoted whole."""

NAVIGATION: tuple[tuple[str, str], ...] = (
    ("home", "Home"),
    ("ask", "Ask"),
    ("runs", "Runs"),
    ("trees", "Trees"),
    ("arenas", "Arenas"),
    ("studies", "Studies"),
    ("compare", "Compare"),
)
"""Kind and title of what the head of every page leads to, in this order."""


class LinkBuilder(Protocol):
    """Makes a link: the server's is `link_to`; a static site has one that leads to its own files."""

    def __call__(self, kind: str, *ids: object, **query: object) -> str:
        """The address of a place; query parameters that are None are left out."""
        ...


def link_to(kind: str, *ids: object, **query: object) -> str:
    """An address on this server.

    >>> link_to("question", "3f2a", "own/1", due="2026-07-01")
    '/runs/3f2a/questions/own%2F1?due=2026-07-01'
    """
    path = ROUTES[kind].format(*(quote(str(one), safe="") for one in ids))
    told = {name: str(value) for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(told)}" if told else path


TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment() -> Environment:
    """The one environment of templates; an undefined name is an error."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_sanitised,
    )
    made.filters |= {"markdown": markdown, "figure": figure_html, "excerpt": excerpt, "web": web_address}
    made.filters |= {"report": report_html, "form_value": form_value}
    made.filters |= formatting.FILTERS
    return made


def _sanitised(value: Any) -> Any:
    """Whatever a template writes out is plain to the eye: no turned direction, no hidden characters."""
    return sanitise_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def figure_html(figure: Chart) -> Markup:
    """A figure of ours, whose texts are escaped already; scrolls sideways where it is wide."""
    if not isinstance(figure, Chart):  # pyright: ignore[reportUnnecessaryIsInstance] - templates are not checked
        raise TypeError(f"only our own figures are shown as they are, not a {type(figure).__name__}")
    style, more = (' class="wide"', ' tabindex="0"') if figure.wide else ("", "")
    return Markup(f"<figure{style}{more}>{figure.svg}</figure>")


def report_html(part: ReportMarkup) -> Markup:
    """A part of our own reports, built with escaping throughout."""
    if not isinstance(part, ReportMarkup):  # pyright: ignore[reportUnnecessaryIsInstance] - templates are not checked
        raise TypeError(f"only parts of our own reports are shown as they are, not a {type(part).__name__}")
    return Markup(str(part))


def render(name: str, view: Any, *, href: LinkBuilder = link_to, visitor: Visitor | None = None, **more: Any) -> str:
    """The template of that name with a view; the same for a served page and for a file of a static site."""
    values: Mapping[str, Any] = {
        "view": view,
        "href": href,
        "static": static_address,
        "nav": NAVIGATION,
        "visitor": visitor or Visitor(),
        **more,
    }
    return environment().get_template(name).render(values)


def html_page(request: Request, name: str, view: Any, *, status: int = 200, **more: Any) -> HTMLResponse:
    """A served page."""
    text = render(name, view, visitor=visitor_of(request), here=request.url.path, **more)
    return HTMLResponse(text, status_code=status)
