"""The first page."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from foretell.operations.saved_studies import open_study, saved_studies
from foretell.report.study_report import study_parts
from foretell.web.rendering import html_page, link_to
from foretell.web.security import COOKIE, AccessRules, TokenRequired, access_of, form_of
from foretell.web.state import CurrentState, WebState
from foretell.web.views.home import HomeView, StudyList, home_view, list_studies

# The JSON API for people: every address with what it is for.

api_router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, kw_only=True)
class ApiOperation:
    """One thing that can be asked of the API."""

    method: str
    path: str
    told: str


@api_router.get("/api")
def show_api(request: Request) -> Response:
    """The list."""
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    found = [
        ApiOperation(method=method.upper(), path=path, told=str(operation.get("description", "")))
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]
    return html_page(request, "api.html", found)


home_router = APIRouter()


@home_router.get("/api/home", tags=["home"])
def read_home(here: CurrentState) -> HomeView:
    """What is on this machine: runs, trees, arenas, studies."""
    return home_view(here.store, here.settings)


@home_router.get("/", include_in_schema=False)
def show_home(request: Request, here: CurrentState) -> Response:
    """The first page."""
    return html_page(request, "home.html", home_view(here.store, here.settings))


# Coming in: the link that `foretell serve` printed, or its token typed into a form.

login_router = APIRouter(include_in_schema=False)


@login_router.get("/login")
def login(request: Request, token: str = "") -> Response:
    """With the token, straight in; without, a form that asks for it."""
    return _entered(access_of(request), token) if token else html_page(request, "login.html", None)


@login_router.post("/login")
async def login_by_form(request: Request) -> Response:
    """The form, sent."""
    return _entered(access_of(request), (await form_of(request)).get("token", [""])[0].strip())


@login_router.post("/logout")
def logout(_: TokenRequired) -> Response:
    """Forget the session."""
    answer = RedirectResponse(link_to("home"), status_code=303)
    answer.delete_cookie(COOKIE)
    return answer


def _entered(access: AccessRules, token: str) -> Response:
    if not access.holds(token):
        raise HTTPException(403, "that is not the token of this server; it was printed when the server was started")
    answer = RedirectResponse(link_to("home"), status_code=303)
    answer.set_cookie(COOKIE, access.new_session(), httponly=True, samesite="strict", path="/")
    return answer


# Studies that were kept: tables with intervals, and pictures.

studies_router = APIRouter(tags=["studies"])
STUDY_RESPONSES: dict[int | str, dict[str, Any]] = {404: {"description": "No such study was kept."}}


@studies_router.get("/api/studies")
def read_studies(here: CurrentState) -> StudyList:
    """Every study, and whether a result of it was kept."""
    return list_studies(here.settings)


@studies_router.get("/studies", include_in_schema=False)
def show_studies(request: Request, here: CurrentState) -> Response:
    """The list."""
    return html_page(request, "studies.html", list_studies(here.settings))


@studies_router.get("/api/studies/{name}", responses=STUDY_RESPONSES)
def read_study(here: CurrentState, name: str) -> dict[str, Any]:
    """A study that was kept: finding, tables, notes."""
    _require_study(here, name)
    return open_study(here.settings, name)[0].to_dict()


@studies_router.get("/studies/{name}", include_in_schema=False)
def show_study(request: Request, here: CurrentState, name: str) -> Response:
    """The page of a study."""
    _require_study(here, name)
    study, _ = open_study(here.settings, name)
    return html_page(request, "study.html", study, parts=study_parts(study))


def _require_study(here: WebState, name: str) -> None:
    if name not in saved_studies(here.settings):
        raise HTTPException(404, f"no study {name[:80]!r} was kept; foretell study NAME --keep keeps one")
