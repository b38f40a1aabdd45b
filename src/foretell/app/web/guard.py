"""Around every request: the host it names, the size of what it brings, who may read; and the headers of answers."""

from typing import Any

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foretell.app.web.problem import refusal
from foretell.app.web.security import Access, has_token

BODY = 1_000_000
"""Bytes of the largest request."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
OPEN = ("/login", "/static/")
"""What a stranger may see where reading needs the token."""


class TooLarge(HTTPException):
    """A request that brings more than it may; as an HTTP error it is not taken for one of the reader's own."""

    def __init__(self) -> None:
        super().__init__(413, f"a request may bring {BODY:,} bytes at most")


class Guard:
    """Lets requests through that may come through, and marks every answer."""

    def __init__(self, app: ASGIApp, *, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        refused = self._refused(request)
        marked = _Marked(send)
        if refused is not None:
            await refusal(request, *refused)(scope, receive, marked)
            return
        try:
            await self._app(scope, _limited(receive), marked)
        except Exception:  # whatever broke is logged by the server; whoever asked learns only that
            if not marked.started:
                told = "something broke in foretell; the server's log has it"
                await refusal(request, 500, told)(scope, receive, marked)
            raise

    def _refused(self, request: Request) -> tuple[int, str] | None:
        if not self._access.admits_host(request.headers.get("host", "")):
            return 421, "this server does not go by that name"
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > BODY:
            return 413, TooLarge().detail
        if self._access.private or request.url.path.startswith(OPEN) or has_token(request, self._access):
            return None
        return 401, "reading this server from elsewhere needs its token: open /login"


class _Marked:
    """Sends, with our headers on every answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
        await self._send(message)


def _limited(receive: Receive) -> Receive:
    seen = 0

    async def limited() -> Any:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > BODY:
            raise TooLarge
        return message

    return limited
