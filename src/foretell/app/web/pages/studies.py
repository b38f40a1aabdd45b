"""Studies that were kept: tables with intervals, and pictures."""

from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response

from foretell.app.kept_studies import kept_studies, open_study
from foretell.app.web.rendering import page
from foretell.app.web.serving import Here, Serving
from foretell.app.web.views.studies import Studies, list_studies
from foretell.arena.report.study_page import study_parts

router = APIRouter(tags=["studies"])
CANNOT: dict[int | str, dict[str, Any]] = {404: {"description": "No such study was kept."}}


@router.get("/api/studies")
def read_studies(here: Here) -> Studies:
    """Every study, and whether a result of it was kept."""
    return list_studies(here.settings)


@router.get("/studies", include_in_schema=False)
def show_studies(request: Request, here: Here) -> Response:
    """The list."""
    return page(request, "studies.html", list_studies(here.settings))


@router.get("/api/studies/{name}", responses=CANNOT)
def read_study(here: Here, name: str) -> dict[str, Any]:
    """A study that was kept: finding, tables, notes."""
    _require(here, name)
    return open_study(here.settings, name)[0].to_dict()


@router.get("/studies/{name}", include_in_schema=False)
def show_study(request: Request, here: Here, name: str) -> Response:
    """The page of a study."""
    _require(here, name)
    study, _ = open_study(here.settings, name)
    return page(request, "study.html", study, parts=study_parts(study))


def _require(here: Serving, name: str) -> None:
    if name not in kept_studies(here.settings):
        raise HTTPException(404, f"no study {name[:80]!r} was kept; foretell study NAME --keep keeps one")
