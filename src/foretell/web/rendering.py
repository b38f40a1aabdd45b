"""Rendering of templates. Escaping is always on; only sanitised Markdown and our own figures pass as markup."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment

from foretell.report.html import make_environment
from foretell.report.markup import Markup, sanitise_text
from foretell.report.provenance import Provenance
from foretell.web.formatting import FILTERS
from foretell.web.forms import form_value
from foretell.web.security import Visitor, visitor_of
from foretell.web.static_files import icon_address, static_address, style_sheets

# Addresses. Templates use kinds of pages and ids; only this table contains paths.

ROUTES: Mapping[str, str] = {
    "home": "/",
    "login": "/login",
    "logout": "/logout",
    "ask": "/ask",
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
    "report": "/api/runs/{}/report.{}",
    "run-stream": "/api/runs/{}/stream",
    "arenas": "/arena",
    "arena": "/arena/{}",
    "event": "/arena/{}/event/{}",
    "entry": "/arena/{}/entry/{}",
    "compare": "/compare",
    "record": "/record",
    "standing": "/record/{}",
    "trees": "/trees",
    "tree": "/trees/view/{}",
    "claim": "/trees/claim/{}/{}",
    "notebook": "/trees/notebook/{}/{}",
    "tree-scenario": "/trees/scenario/{}",
    "tree-edit": "/trees/edit/{}/{}",
    "tree-keep": "/trees/keep/{}",
    "tree-history": "/trees/history/{}",
    "tree-data": "/api/tree/view/{}",
    "tree-restore": "/trees/restore/{}",
    "tree-update": "/trees/update/{}",
    "tree-export": "/api/tree/export/{}/{}",
    "run-events": "/api/runs/{}/events",
    "question-data": "/api/runs/{}/questions/{}",
    "setup": "/setup",
    "openapi": "/openapi.json",
}
"""Maps each kind of page to its path, with a placeholder per id. Ids may contain any character and are fully quoted."""

NAVIGATION: tuple[tuple[str, str], ...] = (
    ("home", "Home"),
    ("ask", "Ask"),
    ("record", "Record"),
    ("runs", "Runs"),
    ("trees", "Trees"),
    ("arenas", "Arenas"),
    ("compare", "Compare"),
)
"""Kind and title of the links in the header of every page, in order."""


def link_to(kind: str, *ids: object, **query: object) -> str:
    """Return the path of a page on this server; query parameters that are None are left out, lists are repeated.

    >>> link_to("question", "3f2a", "own/1", due="2026-07-01"), link_to("compare", run=["a", "b"])
    ('/runs/3f2a/questions/own%2F1?due=2026-07-01', '/compare?run=a&run=b')
    """
    path = ROUTES[kind].format(*(quote(str(id), safe="") for id in ids))
    parameters = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(parameters, doseq=True)}" if parameters else path


TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment(*, hide_money: bool = False) -> Environment:
    """Return the Jinja environment with the web app's templates and, as report/NAME, those shared with reports."""
    filters = {**FILTERS, "form_value": form_value}
    if hide_money:
        filters["dollars"] = _hidden
    return make_environment(TEMPLATES, plain=sanitise_text, filters=filters)


def _hidden(amount: float | None) -> str:
    """Stand in for an amount on the pages of visitors who may not see what was spent."""
    return "–"


SHEETS_PLACE = Markup("<!-- style sheets -->")
"""Where a page has its style sheets, which are known once the rest of it is."""


def render(name: str, view: Any, *, visitor: Visitor | None = None, made: Provenance | None = None, **more: Any) -> str:
    """Render the named template with its data; the footer of a page says what `made` it."""
    visitor = visitor or Visitor()
    values = {
        "made": made or Provenance.now(),
        "view": view,
        "href": link_to,
        "static": static_address,
        "sheets": SHEETS_PLACE,
        "icon": icon_address(),
        "nav": NAVIGATION,
        **more,
    }
    text = environment(hide_money=not visitor.may_write).get_template(name).render(values, visitor=visitor)
    if SHEETS_PLACE not in text:
        return text  # A part of another page.
    return text.replace(SHEETS_PLACE, style_sheets(text, still=visitor.still), 1)


def html_page(request: Request, name: str, view: Any, *, status: int = 200, **more: Any) -> HTMLResponse:
    """Render a template as an HTML response for this visitor."""
    text = render(name, view, visitor=visitor_of(request), here=request.url.path, **more)
    return HTMLResponse(text, status_code=status)
