"""Addresses of version 0.2 and what replaces them. For this version only."""

from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

MOVED: dict[str, str] = {
    "/api": "/openapi.json",
    "/arena/{arena}/events": "/arena/{arena}?view=events",
    "/arena/{arena}/part/{part}": "/arena/{arena}?view={part}",
    "/board": "/compare",
    "/doctor": "/setup",
    "/find": "/runs",
    "/grids": "/runs",
    "/grids/{name:path}": "/runs?grid={name}",
    "/models": "/setup",
    "/runs/{run}/preview.png": "/runs/{run}",
    "/runs/{run}/raw/{what}": "/runs/{run}",
    "/studies": "/",
    "/studies/{name}": "/",
    "/tournaments": "/#tournaments",
    "/trees/do/{what}/{name:path}": "/trees/update/{name}",
    "/trees/job/{work}": "/trees",
    "/api/ask/outside": "/api/ask",
    "/api/board": "/api/compare",
    "/api/tree/diff/{name:path}": "/api/tree/log/{name}",
    "/api/tree/history/{name:path}": "/api/tree/log/{name}",
}
"""Old path → new address. The query of the old address is kept."""
RENAMED = {"words": "find", "claim": "claims"}
"""Old query parameter → new one."""
router = APIRouter()


def _redirect(request: Request) -> Response:
    """Redirect to the address that replaces this one."""
    target = MOVED[request.scope["route"].path]
    address, _, anchor = target.format(**{
        name: quote(str(value), safe="") for name, value in request.path_params.items()
    }).partition("#")  # fmt: skip
    given = [(RENAMED.get(name, name), value) for name, value in request.query_params.multi_items()]
    if given:
        address += ("&" if "?" in address else "?") + urlencode(given)
    return RedirectResponse(f"{address}#{anchor}" if anchor else address, status_code=301)


for _path in MOVED:
    router.get(_path, include_in_schema=False)(_redirect)
