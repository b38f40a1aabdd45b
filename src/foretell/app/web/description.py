"""The API's own description, with refusals as they really come."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from foretell.app.web.problem import MEDIA

PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "Why a request was not answered (RFC 9457).",
    "required": ["title", "status", "detail"],
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "field": {"type": ["string", "null"]},
    },
}
TOKEN = {"token": {"type": "http", "scheme": "bearer", "description": "Printed by foretell serve."}}
REFUSALS = {
    "401": "The token is needed.",
    "403": "The form did not come from this server.",
    "404": "There is no such thing.",
    "409": "Not now.",
    "413": "Too much was sent.",
    "421": "The server does not go by that name.",
    "422": "Something in the request is wrong.",
}


def described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        parts = found.setdefault("components", {})
        parts.setdefault("schemas", {})["Problem"] = PROBLEM
        for name in ("HTTPValidationError", "ValidationError"):
            parts["schemas"].pop(name, None)
        parts["securitySchemes"] = TOKEN
        for methods in found["paths"].values():
            for method, operation in methods.items():
                operation["responses"] |= {code: _refused(told) for code, told in REFUSALS.items()}
                if method == "post":
                    operation["security"] = [{"token": []}]
        app.openapi_schema = found
    return app.openapi_schema


def _refused(told: str) -> dict[str, Any]:
    return {"description": told, "content": {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
