"""Templates to text. Escaping is always on; only sanitised Markdown and our own figures pass as markup."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from foretell.app.web import wording
from foretell.app.web.links import NAV, Href, served
from foretell.app.web.prose import excerpt, markdown, tame, web_address
from foretell.app.web.security import Visitor, visitor_of
from foretell.app.web.statics import static_address
from foretell.arena.report.markup import Markup as ReportMarkup
from foretell.arena.report.svg import Figure

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
        finalize=_tamed,
    )
    made.filters |= {"markdown": markdown, "figure": figure_html, "excerpt": excerpt, "web": web_address}
    made.filters |= {"report": report_html}
    made.filters |= wording.FILTERS
    return made


def _tamed(value: Any) -> Any:
    """Whatever a template writes out is plain to the eye: no turned direction, no hidden characters."""
    return tame(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def figure_html(figure: Figure) -> Markup:
    """A figure of ours, whose texts are escaped already; scrolls sideways where it is wide."""
    if not isinstance(figure, Figure):  # pyright: ignore[reportUnnecessaryIsInstance] - templates are not checked
        raise TypeError(f"only our own figures are shown as they are, not a {type(figure).__name__}")
    style, more = (' class="wide"', ' tabindex="0"') if figure.wide else ("", "")
    return Markup(f"<figure{style}{more}>{figure.svg}</figure>")


def report_html(part: ReportMarkup) -> Markup:
    """A part of our own reports, built with escaping throughout."""
    if not isinstance(part, ReportMarkup):  # pyright: ignore[reportUnnecessaryIsInstance] - templates are not checked
        raise TypeError(f"only parts of our own reports are shown as they are, not a {type(part).__name__}")
    return Markup(str(part))


def render(name: str, view: Any, *, href: Href = served, visitor: Visitor | None = None, **more: Any) -> str:
    """The template of that name with a view; the same for a served page and for a file of a static site."""
    values: Mapping[str, Any] = {
        "view": view,
        "href": href,
        "static": static_address,
        "nav": NAV,
        "visitor": visitor or Visitor(),
        **more,
    }
    return environment().get_template(name).render(values)


def page(request: Request, name: str, view: Any, *, status: int = 200, **more: Any) -> HTMLResponse:
    """A served page."""
    text = render(name, view, visitor=visitor_of(request), here=request.url.path, **more)
    return HTMLResponse(text, status_code=status)
