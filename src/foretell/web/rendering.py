"""Rendering of templates. Escaping is always on; only sanitised Markdown and our own figures pass as markup."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment

from foretell.report.html import make_environment
from foretell.report.markup import sanitise_text
from foretell.report.provenance import Provenance
from foretell.web.formatting import FILTERS
from foretell.web.forms import form_value
from foretell.web.security import Visitor, visitor_of
from foretell.web.static_files import icon_address, static_address, style_sheet

ViewFunction = TypeVar("ViewFunction", bound=Callable[..., Any])

# Where everything is. Templates know kinds of places and ids; only this table knows addresses.

ROUTES: Mapping[str, str] = {
    "home": "/",
    "login": "/login",
    "logout": "/logout",
    "ask": "/ask",
    "find": "/find",
    "runs": "/runs",
    "run": "/runs/{}",
    "stop": "/runs/{}/stop",
    "resume": "/runs/{}/resume",
    "again": "/runs/{}/again",
    "labels": "/runs/{}/labels",
    "remove": "/runs/{}/remove",
    "resolve": "/runs/{}/resolve",
    "selected": "/runs/selected/{}",
    "answers": "/api/runs/{}/answers.csv",
    "question": "/runs/{}/questions/{}",
    "raw": "/runs/{}/raw/{}",
    "preview": "/runs/{}/preview.png",
    "report": "/api/runs/{}/report.{}",
    "run-stream": "/api/runs/{}/stream",
    "question-stream": "/api/runs/{}/questions/{}/stream",
    "arenas": "/arena",
    "arena": "/arena/{}",
    "arena-part": "/arena/{}/part/{}",
    "events": "/arena/{}/events",
    "event": "/arena/{}/event/{}",
    "entry": "/arena/{}/entry/{}",
    "tournaments": "/tournaments",
    "compare": "/compare",
    "board": "/board",
    "grids": "/grids",
    "grid": "/grids/{}",
    "trees": "/trees",
    "tree": "/trees/view/{}",
    "claim": "/trees/claim/{}/{}",
    "notebook": "/trees/notebook/{}/{}",
    "tree-scenario": "/trees/scenario/{}",
    "tree-edit": "/trees/edit/{}/{}",
    "tree-keep": "/trees/keep/{}",
    "tree-history": "/trees/history/{}",
    "tree-restore": "/trees/restore/{}",
    "tree-update": "/trees/update/{}",
    "tree-work": "/trees/job/{}",
    "tree-stop": "/trees/stop/{}",
    "tree-export": "/api/tree/export/{}/{}",
    "models": "/models",
    "doctor": "/doctor",
    "api": "/api",
    "openapi": "/openapi.json",
}
"""Maps each kind of page to its path, with a placeholder per id. Ids may contain any character and are fully quoted."""

NAVIGATION: tuple[tuple[str, str], ...] = (
    ("home", "Home"),
    ("ask", "Ask"),
    ("runs", "Runs"),
    ("trees", "Trees"),
    ("arenas", "Arenas"),
    ("compare", "Compare"),
)
"""Kind and title of the links in the header of every page, in order."""


def link_to(kind: str, *ids: object, **query: object) -> str:
    """Return the path of a page on this server; query parameters that are None are left out.

    >>> link_to("question", "3f2a", "own/1", due="2026-07-01")
    '/runs/3f2a/questions/own%2F1?due=2026-07-01'
    """
    path = ROUTES[kind].format(*(quote(str(one), safe="") for one in ids))
    given = {name: str(value) for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment() -> Environment:
    """Return the Jinja environment with the web app's templates and, as report/NAME, those shared with reports."""
    return make_environment(TEMPLATES, plain=sanitise_text, filters={**FILTERS, "form_value": form_value})


def render(name: str, view: Any, *, visitor: Visitor | None = None, made: Provenance | None = None, **more: Any) -> str:
    """Render the named template with its data; the footer of a page says what `made` it."""
    visitor = visitor or Visitor()
    values = {
        "made": made or Provenance.now(),
        "view": view,
        "href": link_to,
        "static": static_address,
        "sheet": partial(style_sheet, still=visitor.still),
        "icon": icon_address(),
        "nav": NAVIGATION,
        **more,
    }
    return environment().get_template(name).render(values, visitor=visitor)


def html_page(request: Request, name: str, view: Any, *, status: int = 200, **more: Any) -> HTMLResponse:
    """Render a template as an HTML response for this visitor."""
    text = render(name, view, visitor=visitor_of(request), here=request.url.path, **more)
    return HTMLResponse(text, status_code=status)


def json_and_page(
    router: APIRouter, api: str, page: str, template: str, **described: Any
) -> Callable[[ViewFunction], ViewFunction]:
    """Register a function at two addresses: as JSON for programs, and as a page for people."""

    def register(make_view: ViewFunction) -> ViewFunction:
        def show(request: Request, view: Annotated[Any, Depends(make_view)]) -> HTMLResponse:
            return html_page(request, template, view)

        router.get(api, **described)(make_view)
        router.get(page, include_in_schema=False)(show)
        return make_view

    return register
