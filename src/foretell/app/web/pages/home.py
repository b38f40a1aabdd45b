"""The first page."""

from fastapi import APIRouter, Request, Response

from foretell.app.web.rendering import page
from foretell.app.web.serving import Here
from foretell.app.web.views.home import Home, home

router = APIRouter()


@router.get("/api/home", tags=["home"])
def read_home(here: Here) -> Home:
    """What is on this machine: runs, trees, arenas, studies."""
    return home(here.store, here.settings)


@router.get("/", include_in_schema=False)
def show_home(request: Request, here: Here) -> Response:
    """The first page."""
    return page(request, "home.html", home(here.store, here.settings))
