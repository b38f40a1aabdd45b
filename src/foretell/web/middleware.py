"""Checks on every request (host, size, read access), security headers on every response, and error responses."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foretell.data import connections
from foretell.data.connections import (
    MAX_HEADER_BYTES,
    TWO_LENGTHS,
    BodyTooLarge,
    LimitedReceive,
    OpenConnections,
    ReaderTooSlow,
    ReplyTooLarge,
    has_two_lengths,
    send_in_time,
)
from foretell.questions.errors import InputError, StorageError, plain_problem, validator_error
from foretell.request import OperationRequest, name_fields
from foretell.web.rendering import html_page
from foretell.web.security import HIDDEN_TYPES, AccessRules, has_token
from foretell.web.static_files import sheet_hashes

# Error responses: problem JSON (RFC 9457) for the API, an HTML page for browsers.

PROBLEM_MEDIA_TYPE = "application/problem+json"
PAGE_TITLES: Mapping[int, str] = {
    401: "The token is needed",
    403: "Not allowed",
    404: "Not found",
    409: "Not possible now",
    413: "Too large",
    422: "The request is not valid",
    431: "The address is too long",
    503: "Not possible now",
}
"""Titles of pages about errors, where the phrase of HTTP is not plain."""


ADVICE: Mapping[int, str] = {
    404: "It may have been deleted or renamed, or the address is not complete.",
    409: "Reload the page to see the state as it is now.",
    500: "The log of the server has the details. What was saved is still there: go back and try again.",
    503: "Nothing was lost: reload the page in a few seconds.",
}
"""What to do about an error, where its text does not say it."""
DAMAGED_TITLE = "The file cannot be read"
DAMAGED_ADVICE = "Mend the file, put a copy of it in its place or remove it, then reload this page."


def problem_response(
    request: Request, status: int, detail: str, field: str | None = None, *, damaged: bool = False
) -> Response:
    """Return an error response that says what is wrong and in which field: problem JSON for the API, else a page.

    With `damaged`, a file on this machine is wrong and not the request.
    """
    problem = {"title": HTTPStatus(status).phrase, "status": status, "detail": detail, "field": field}
    if request.url.path.startswith(("/api/", "/openapi.json", "/static/")):
        return JSONResponse(problem, status_code=status, media_type=PROBLEM_MEDIA_TYPE)
    title, advice = PAGE_TITLES.get(status, problem["title"]), ADVICE.get(status, "")
    if damaged:
        title, advice = DAMAGED_TITLE, DAMAGED_ADVICE
    if status == HTTPStatus.NOT_FOUND and detail == HTTPStatus.NOT_FOUND.phrase:
        problem["detail"] = "there is no page at this address"
    page = {**problem, "title": title, "advice": advice}
    return html_page(request, "problem.html", page, status=status)


def handle_problems(app: FastAPI) -> None:
    """Register exception handlers that turn the app's errors into problem responses."""
    for kind in (HTTPException, RequestValidationError, InputError):
        app.add_exception_handler(kind, _on_error)


def _on_error(request: Request, error: Exception) -> Response:
    match error:
        case HTTPException():
            answer = problem_response(request, error.status_code, str(error.detail))
            answer.headers.update(error.headers or {})
            return answer
        case RequestValidationError():
            if own := validator_error(error.errors()):
                return _on_error(request, own)
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
            message = name_fields(plain_problem(first), OperationRequest)
            return problem_response(request, 422, f"{field}: {message}" if field else message, field or None)
        case StorageError():
            return problem_response(request, 503, str(error))
        case InputError():
            damaged = error.path is not None and request.method == "GET"
            return problem_response(request, 422, str(error), error.column, damaged=damaged)
        case _:
            raise error


# The OpenAPI document, with the error responses of this module.

PROBLEM_SCHEMA: dict[str, Any] = {
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
TOKEN_SCHEME = {"token": {"type": "http", "scheme": "bearer", "description": "Printed by foretell serve."}}
PROBLEM_STATUSES = {
    "400": "The body cannot be read.",
    "401": "The token is needed.",
    "403": "The form did not come from this server.",
    "404": "Not found.",
    "408": "The request did not arrive in time.",
    "409": "The request conflicts with the current state.",
    "413": "The request or the answer is too large.",
    "421": "The Host header does not name this server.",
    "422": "The request is not valid.",
    "431": "Address or headers are too long.",
    "503": "Too many streams are open, or the disk cannot be used now; try again later.",
}


def describe_api(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, built on first use."""
    if app.openapi_schema is None:
        openapi = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        parts = openapi.setdefault("components", {})
        parts.setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
        for name in ("HTTPValidationError", "ValidationError"):
            parts["schemas"].pop(name, None)
        parts["securitySchemes"] = TOKEN_SCHEME
        content = {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        problems = {code: {"description": text, "content": content} for code, text in PROBLEM_STATUSES.items()}
        for methods in openapi["paths"].values():
            for method, operation in methods.items():
                operation["responses"] |= problems
                if method == "post":
                    operation["security"] = [{"token": []}]
        app.openapi_schema = openapi
    return app.openapi_schema


MAX_BODY_BYTES = 1_000_000
"""Maximum size of a request body in bytes."""
CONTENT_POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' {sheet_hashes()}; "
    "img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
OWN_NAVIGATION = ("none", "same-origin")
"""Values of Sec-Fetch-Site for pages that the user opened from outside the web, or from a page of this server."""
OPEN_PATHS = ("/login", "/static/")
"""Paths that can be read without the token even if reading requires it."""


def response_headers(request: Request) -> dict[str, str]:
    """Return the headers for the response to a request.

    A page that another site opens is cut off from its opener. For that the browser starts a new process, which delays
    the first paint, so pages that no other site can have opened go without it.
    """
    if request.headers.get("sec-fetch-site") in OWN_NAVIGATION:
        return HEADERS
    return HEADERS | {"Cross-Origin-Opener-Policy": "same-origin"}


class GuardedSend:
    """Sends a response with our headers, unless it is too large or the client reads it too slowly.

    With `hide`, texts pass through this function, which removes what strangers do not see.
    """

    def __init__(self, send: Send, headers: Mapping[str, str], hide: Callable[[bytes], bytes] | None = None) -> None:
        self._send = send
        self._headers = headers
        self._hide = hide
        self._start: Message | None = None
        """The beginning of a response whose length is not known until its text was filtered."""
        self.started = False

    async def __call__(self, message: Message) -> None:
        """Send the next message of the response."""
        if message["type"] == "http.response.body" and self._hide is not None:
            message = {**message, "body": self._hide(message.get("body", b""))}
            if self._start is not None:
                headers = MutableHeaders(scope=self._start)
                if "content-length" in headers:
                    headers["content-length"] = str(len(message["body"]))
                await send_in_time(self._send, self._start)
                self._start = None
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if int(headers.get("content-length", "0")) > connections.MAX_REPLY_BYTES:
                raise ReplyTooLarge
            self.started = True
            for name, value in self._headers.items():
                headers.setdefault(name, value)
            if not headers.get("content-type", "").startswith(HIDDEN_TYPES):
                self._hide = None
            if self._hide is not None:
                self._start = message
                return
        await send_in_time(self._send, message)


class RequestGuard:
    """Middleware that refuses requests that are not allowed and puts our headers on every response."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        access: AccessRules,
        open_connections: OpenConnections,
        hide: Callable[[bytes], bytes],
    ) -> None:
        self._app = app
        self._access = access
        self._connections = open_connections
        self._hide = hide

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._connections.request_begins(scope.get("client"))
        try:
            request = Request(scope)
            hide = None if has_token(request, self._access) else self._hide
            await self._answer(scope, receive, GuardedSend(send, response_headers(request), hide))
        finally:
            self._connections.request_ends(scope.get("client"))

    async def _answer(self, scope: Scope, receive: Receive, send: GuardedSend) -> None:
        request = Request(scope)
        if (refused := self._refused(request)) is not None:
            answer = problem_response(request, *refused)
            if refused[0] == HTTPStatus.BAD_REQUEST:  # It is not certain where the next request begins.
                answer.headers["Connection"] = "close"
            await answer(scope, receive, send)
            return
        try:
            await self._app(scope, LimitedReceive(receive, MAX_BODY_BYTES), send)
        except (ReaderTooSlow, ClientDisconnect):
            return  # The server closes the connection of an incomplete response.
        except ReplyTooLarge:
            most = f"{connections.MAX_REPLY_BYTES:,} bytes"
            message = f"the answer is longer than {most}: ask for less of it, or use the command line"
            await problem_response(request, 413, message)(scope, receive, send)
        except Exception:  # The server logs the error; the client gets no details.
            if not send.started:
                message = "internal error in foretell; see the server's log"
                await problem_response(request, 500, message)(scope, receive, send)
            raise

    def _refused(self, request: Request) -> tuple[int, str] | None:
        if not self._access.admits_host(request.headers.get("host", "")):
            return 421, "the Host header does not name this server"
        if has_two_lengths(request.scope):
            return 400, TWO_LENGTHS
        address = len(request.scope.get("raw_path") or b"") + len(request.scope["query_string"])
        if address + sum(len(name) + len(value) for name, value in request.headers.raw) > MAX_HEADER_BYTES:
            return 431, f"address and headers of a request may have {MAX_HEADER_BYTES:,} bytes at most"
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            return 413, BodyTooLarge(MAX_BODY_BYTES).detail
        if self._access.private or request.url.path.startswith(OPEN_PATHS) or has_token(request, self._access):
            return None
        return 401, "reading this server from elsewhere needs its token: open /login"
