"""The JSON API for people: every address with what it is for."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response

from foretell.app.web.rendering import page

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One thing that can be asked of the API."""

    method: str
    path: str
    told: str


@router.get("/api")
def show_api(request: Request) -> Response:
    """The list."""
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    found = [
        Operation(method=method.upper(), path=path, told=str(operation.get("description", "")))
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]
    return page(request, "api.html", found)
