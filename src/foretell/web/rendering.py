"""Templates to text. Escaping is always on; only sanitised Markdown and our own figures pass as markup."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment

from foretell.report.html import make_environment
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
    """The templates of the web app, and those it shares with reports as report/NAME."""
    ours = {"markdown": markdown, "excerpt": excerpt, "web": web_address, "form_value": form_value}
    filters = {**ours, **formatting.FILTERS}
    return make_environment(TEMPLATES, plain=sanitise_text, filters=filters)


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
