"""The first page, coming in, studies, and the JSON API for people."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from foretell.operations.studies import open_study, saved_studies
from foretell.plugins import names
from foretell.report.study import StudyResult
from foretell.report.study_report import study_parts
from foretell.runs.settings import KEYS, Settings
from foretell.studies.registry import study_questions
from foretell.web.pages.arena import arena_rows
from foretell.web.rendering import html_page, json_and_page, link_to
from foretell.web.run_rows import list_runs
from foretell.web.security import COOKIE, AccessRules, TokenRequired, access_of, form_of
from foretell.web.state import CurrentState

router = APIRouter()
MODEL_PROVIDERS = ("openai", "anthropic", "google", "openrouter")
NEWEST_RUNS = 8
NO_STUDY: dict[int | str, dict[str, Any]] = {404: {"description": "No such study was kept."}}


def model_keys(settings: Settings) -> dict[str, list[str]]:
    """Providers of models that there is a key for, and the environment variables that would bring the others."""
    providers = [name for name in MODEL_PROVIDERS if name in settings.services]
    return {"providers": providers, "missing": [KEYS[name][0] for name in MODEL_PROVIDERS if name not in providers]}


@json_and_page(router, "/api/home", "/", "home.html", tags=["home"])
def home(here: CurrentState) -> dict[str, Any]:
    """What is on this machine: runs, trees, arenas, studies."""
    runs = list_runs(here.store, limit=NEWEST_RUNS)
    return {
        "runs": runs.runs,
        "run_count": runs.total,
        "trees": sum(1 for _ in (here.settings.home / "trees").rglob("*.json")),
        "arenas": len(arena_rows(here.store)),
        "studies": len(names("studies")),
        **model_keys(here.settings),
    }


@router.get("/api", include_in_schema=False)
def show_api(request: Request) -> Response:
    """Every address of the API with what it is for."""
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    operations = [
        {"method": method.upper(), "path": path, "description": operation.get("description", "")}
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]
    return html_page(request, "api.html", operations)


# Coming in: the link that `foretell serve` printed, or its token typed into a form.


@router.get("/login", include_in_schema=False)
def login(request: Request, token: str = "") -> Response:
    """With the token, straight in; without, a form that asks for it."""
    return _enter(access_of(request), token) if token else html_page(request, "login.html", None)


@router.post("/login", include_in_schema=False)
async def login_by_form(request: Request) -> Response:
    """The form, sent."""
    return _enter(access_of(request), (await form_of(request)).get("token", [""])[0].strip())


@router.post("/logout", include_in_schema=False)
def logout(_: TokenRequired) -> Response:
    """Forget the session."""
    answer = RedirectResponse(link_to("home"), status_code=303)
    answer.delete_cookie(COOKIE)
    return answer


def _enter(access: AccessRules, token: str) -> Response:
    if not access.holds(token):
        raise HTTPException(403, "that is not the token of this server; it was printed when the server was started")
    answer = RedirectResponse(link_to("home"), status_code=303)
    answer.set_cookie(COOKIE, access.new_session(), httponly=True, samesite="strict", path="/")
    return answer


# Studies that were kept: tables with intervals, and pictures.


def study_rows(settings: Settings) -> list[dict[str, Any]]:
    """Every registered study, after what was kept; one that is no study of this version has no command."""
    kept, asks, registered = saved_studies(settings), study_questions(), names("studies")
    return [
        {
            "name": name,
            "asks": asks.get(name, ""),
            "kept": name in kept,
            "command": f"foretell study {name} --keep" if name in registered else "",
        }
        for name in dict.fromkeys([*kept, *asks])
    ]


@json_and_page(router, "/api/studies", "/studies", "studies.html", tags=["studies"])
def list_studies(here: CurrentState) -> dict[str, Any]:
    """Every study, and whether a result of it was kept."""
    return {"studies": study_rows(here.settings)}


def kept_study(here: CurrentState, name: str) -> StudyResult:
    """The study that the address names."""
    if name not in saved_studies(here.settings):
        raise HTTPException(404, f"no study {name[:80]!r} was kept; foretell study NAME --keep keeps one")
    return open_study(here.settings, name)[0]


KeptStudy = Annotated[StudyResult, Depends(kept_study)]


@router.get("/api/studies/{name}", tags=["studies"], responses=NO_STUDY)
def read_study(study: KeptStudy) -> dict[str, Any]:
    """A study that was kept: finding, tables, notes."""
    return study.to_dict()


@router.get("/studies/{name}", include_in_schema=False)
def show_study(request: Request, study: KeptStudy) -> Response:
    """The page of a study."""
    return html_page(request, "study.html", study, parts=study_parts(study))
