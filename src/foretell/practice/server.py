"""A small HTTP/1.1 server with a table of routes; every practice service uses one."""

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from email.utils import formatdate
from html import escape
from http import HTTPStatus
from typing import Any, Self, cast
from urllib.parse import parse_qsl, unquote

from foretell.data.service_limits import PRACTICE_HEADER
from foretell.frozen import frozen

REMEMBERED = 1000
"""Minimum number of recent requests kept for inspection."""


@frozen
class ServerRequest:
    """A request that a client sent."""

    method: str
    path: str
    """The decoded path; `target` is the path and query as sent."""
    target: str
    query: Mapping[str, str]
    """Query parameters; the values of a repeated name are joined by commas."""
    headers: Mapping[str, str]
    """Headers, with names in lower case."""
    body: bytes = b""

    def json(self) -> Any:
        """Parse the body as JSON."""
        return json.loads(self.body)


@frozen
class ServerResponse:
    """A response to send."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0
    """Seconds to wait before the first byte."""
    cut: int | None = None
    """Send only this many bytes of the body, then close the connection; 0 closes it without any response."""


Handler = Callable[[ServerRequest], ServerResponse | Awaitable[ServerResponse]]
Middleware = Callable[[ServerRequest, Handler], ServerResponse | Awaitable[ServerResponse]]
"""Wraps a handler: it may change the request or the response, or respond in the handler's place."""
StatusAndBody = tuple[int, Any]
"""An HTTP status and the body to send as JSON."""


def json_response(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> ServerResponse:
    """Create a JSON response."""
    body = json.dumps(data, ensure_ascii=False).encode()
    return ServerResponse(status=status, body=body, headers={"Content-Type": "application/json", **(headers or {})})


def html_response(text: str, status: int = 200) -> ServerResponse:
    """Create an HTML response."""
    return ServerResponse(status=status, body=text.encode(), headers={"Content-Type": "text/html; charset=utf-8"})


def sent_page(title: str, text: str, sent: Sequence[tuple[str, str]]) -> ServerResponse:
    """Return the page of a made-up question with everything that was sent for it, each with its kind."""
    items = "".join(f"<h2>{escape(kind)}</h2><pre>{escape(what)}</pre>" for kind, what in sent)
    nothing = "<p>Nothing was sent for it yet.</p>"
    style = (
        ":root{color-scheme:light dark}pre{white-space:pre-wrap}"
        "body{font:16px/1.5 sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    )
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    note = "<p>A made-up question for practice, on this machine only: nobody else sees what is sent here.</p>"
    body = f"{note}<h1>{escape(title)}</h1><p>{escape(text)}</p>{items or nothing}"
    return html_response(f'<!DOCTYPE html><html lang="en">{head}<style>{style}</style><body>{body}</body></html>')


class PracticeServer:
    """An HTTP server that listens on a local port while used as an async context manager.

    A route is a method and a path; a path ending in `*` matches every path with that prefix, and the longest match
    wins.
    """

    def __init__(self, *, latency: float = 0.0, port: int = 0, middleware: Middleware | None = None) -> None:
        self.requests: list[ServerRequest] = []
        """The most recent requests."""
        self.latency = latency
        """Seconds to wait before every response."""
        self.port = port
        """Port to listen on; 0 picks a free one."""
        self.middleware = middleware
        self.practice = True
        """Whether responses declare that this is a practice server without rate limits."""
        self.connections: set[asyncio.Transport] = set()
        self._routes: dict[tuple[str, str], Handler] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._url = ""

    def route(self, method: str, path: str, handler: Handler) -> None:
        """Register the handler for a method and path."""
        self._routes[method, path] = handler

    @property
    def url(self) -> str:
        """The server's address, without a trailing slash."""
        if not self._url:
            raise RuntimeError("the server is not running; use it with `async with`")
        return self._url

    async def __aenter__(self) -> Self:
        """Start listening."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port, backlog=2048)
        self._url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop, closing connections and cancelling requests in progress."""
        if self._server is not None:
            self._server.close()
        for transport in list(self.connections):
            transport.abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def answer(self, request: ServerRequest, send: Callable[[ServerResponse], None]) -> None:
        """Handle a request and send its response, at once if the handler is synchronous and there is no delay."""
        self.requests.append(request)
        if len(self.requests) > 2 * REMEMBERED:
            del self.requests[:REMEMBERED]
        handler = self._handler(request)
        try:
            response = handler(request) if self.middleware is None else self.middleware(request, handler)
        except Exception as error:
            logging.getLogger(__name__).exception("no answer to %s %s", request.method, request.target)
            response = json_response({"error": f"the practice server could not answer: {error!r}"}, 500)
        if isinstance(response, ServerResponse):
            self._send_after_delay(response, send)
            return

        async def wait() -> None:
            self._send_after_delay(await response, send)

        task = asyncio.get_running_loop().create_task(wait())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _send_after_delay(self, response: ServerResponse, send: Callable[[ServerResponse], None]) -> None:
        if delay := self.latency + response.delay:
            asyncio.get_running_loop().call_later(delay, send, response)
        else:
            send(response)

    def _handler(self, request: ServerRequest) -> Handler:
        exact = self._routes.get((request.method, request.path))
        if exact is not None:
            return exact
        fits = [
            (len(path), handler)
            for (method, path), handler in self._routes.items()
            if method == request.method and path.endswith("*") and request.path.startswith(path[:-1])
        ]
        return max(fits, key=lambda fit: fit[0])[1] if fits else _not_found


class PracticeService(ABC):
    """A service that answers every request in JSON."""

    def server(self, middleware: Middleware | None = None) -> PracticeServer:
        """Create a server for this service; the middleware may intercept every request."""
        server = PracticeServer(middleware=middleware)
        server.route("GET", "*", lambda request: _as_json(self.get(request)))
        server.route("POST", "*", lambda request: _as_json(self.post(request)))
        return server

    @abstractmethod
    def get(self, request: ServerRequest) -> StatusAndBody:
        """Answer a GET request."""

    def post(self, request: ServerRequest) -> StatusAndBody:
        """Answer a POST request."""
        return 405, {"error": "this service does not accept POST requests"}


def _as_json(answer: StatusAndBody) -> ServerResponse:
    return json_response(answer[1], answer[0])


def _not_found(request: ServerRequest) -> ServerResponse:
    return json_response({"error": f"nothing at {request.method} {request.path}"}, 404)


_PHRASES = {int(status): status.phrase for status in HTTPStatus}


class _Connection(asyncio.Protocol):
    """One client connection; a protocol, not streams, so that a benchmark measures the client and not the server."""

    def __init__(self, server: PracticeServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport is not a subclass.
        self._server.connections.add(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._server.connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (request := self._next()) is not None:
            self._server.answer(request, lambda response, request=request: self._send(request, response))

    def _next(self) -> ServerRequest | None:
        """Parse the next request; None until it is complete."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = end + 4 + int(headers.get("content-length", "0"))
        if len(self._buffer) < size:
            return None
        body = bytes(self._buffer[end + 4 : size])
        del self._buffer[:size]
        method, target, _ = first.split(" ", 2)
        path, _, query_string = target.partition("?")
        query: dict[str, str] = {}
        for name, value in parse_qsl(query_string, keep_blank_values=True):
            query[name] = f"{query[name]},{value}" if name in query else value
        return ServerRequest(method=method, path=unquote(path), target=target, query=query, headers=headers, body=body)

    def _send(self, request: ServerRequest, response: ServerResponse) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if response.cut != 0:
            mark = {PRACTICE_HEADER: "yes"} if self._server.practice else {}
            headers = {**mark, "Date": formatdate(usegmt=True), **response.headers}
            if "Transfer-Encoding" not in headers:
                headers["Content-Length"] = str(len(response.body))
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            head = f"HTTP/1.1 {response.status} {_PHRASES.get(response.status, 'Practice')}\r\n{lines}\r\n"
            body = b"" if request.method == "HEAD" else response.body[: response.cut]
            transport.write(head.encode("latin-1") + body)
        if response.cut is not None or request.headers.get("connection", "").lower() == "close":
            transport.close()
