"""What goes wrong, told the same way everywhere: problem JSON for programs (RFC 9457), a page for people."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from foretell.questions.problems import InputError

MEDIA = "application/problem+json"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why a request was not answered."""

    title: str
    """The status in words."""
    status: int
    detail: str
    """What is wrong, and where it helps, what to do."""
    field: str | None = None
    """The field at fault, if it is one."""


def refusal(request: Request, status: int, detail: str, field: str | None = None) -> Response:
    """An answer that says no."""
    problem = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, field=field)
    if _for_programs(request):
        return JSONResponse(asdict(problem), status_code=status, media_type=MEDIA)
    from foretell.app.web.rendering import page

    return page(request, "problem.html", problem, status=status)


def _for_programs(request: Request) -> bool:
    return request.url.path.startswith(("/api/", "/openapi.json", "/static/"))


def handle_problems(app: FastAPI) -> None:
    """Have every error of the app end in a refusal."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(InputError, _input)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = refusal(request, error.status_code, str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    told, field = invalid(error.errors())
    return refusal(request, 422, told, field or None)


def invalid(errors: Sequence[Any]) -> tuple[str, str]:
    """The first of several faults in words, and the field it is in."""
    first = errors[0]
    field = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    told = str(first["msg"]).removeprefix("Value error, ")
    return f"{field}: {told}" if field else told, field


def _input(request: Request, error: Exception) -> Response:
    assert isinstance(error, InputError)
    return refusal(request, 422, str(error), error.column)
