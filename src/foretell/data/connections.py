"""Limits of every server here: number of connections, and size and speed of requests and responses."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 900
"""Maximum open connections: below the usual limit of 1,024 open files per process."""
HEADER_SECONDS = 10.0
"""Seconds from the start of a connection, or the end of its last request, until the next header must have arrived."""
KEEP_ALIVE_SECONDS = 5
"""Seconds after which an idle connection is closed."""
MAX_HEADER_BYTES = 32_768
"""Maximum size of all headers of a request, with its address and cookies."""
BACKLOG = 512
BODY_SECONDS = 20.0
"""Seconds in which the whole body of a request must arrive."""
MAX_REPLY_BYTES = 64_000_000
"""Maximum size of a response. Event streams, which last long, are limited in number instead."""
READ_SECONDS = 60.0
"""Seconds in which the client must read the next part of a response."""
MAX_STREAMS = 100
"""Maximum number of streams on which a tool server may wait for something to send."""
Peer = tuple[str, int]


def _refusal(status: str, message: str, *headers: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(message)}",
        *headers,
    ]
    return "\r\n".join([*lines, "Connection: close", "", message]).encode("ascii")


TOO_SLOW = _refusal("408 Request Timeout", f"the header of a request must arrive within {HEADER_SECONDS:g} seconds")
FULL = _refusal("503 Service Unavailable", f"{MAX_CONNECTIONS} connections are already open", "Retry-After: 5")


class OpenConnections:
    """The connections of a server: those with a request in progress, and idle or half-open ones."""

    def __init__(self) -> None:
        self.half_open: dict[Peer, BoundedConnection] = {}
        """Connections without a complete request, oldest first."""
        self.busy: dict[Peer, BoundedConnection] = {}
        self._requests: Counter[Peer] = Counter()
        """Requests per busy connection: a pipelined request may begin before the previous one has ended."""

    def admits(self) -> bool:
        """Whether there is room for one more connection; the oldest half-open one makes room."""
        if len(self.half_open) + len(self.busy) < MAX_CONNECTIONS:
            return True
        if not self.half_open:
            return False
        self.half_open[next(iter(self.half_open))].shed()
        return True

    def request_begins(self, peer: Peer | None) -> None:
        """Record that a complete header has arrived on a connection."""
        if peer is None:
            return
        if (connection := self.half_open.pop(peer, None)) is not None:
            self.busy[peer] = connection
            connection.stop_waiting()
        if peer in self.busy:
            self._requests[peer] += 1

    def request_ends(self, peer: Peer | None) -> None:
        """Record that a request was answered; the connection waits for the next one."""
        if peer is None or peer not in self.busy:
            return
        self._requests[peer] -= 1
        if self._requests[peer] <= 0:
            connection = self.half_open[peer] = self.busy[peer]
            self.forget_request(peer)
            connection.wait_for_header()

    def forget_request(self, peer: Peer) -> None:
        """Record that no request is in progress on that connection any more."""
        self.busy.pop(peer, None)
        self._requests.pop(peer, None)


class BoundedConnection(H11Protocol):
    """A server connection that is closed if no complete request arrives in time."""

    open_connections: OpenConnections

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Accept the connection unless there are too many."""
        super().connection_made(transport)
        self._peer: Peer | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._unsent: int | None = None
        """Bytes of a response that were unread at the last check."""
        if not self.open_connections.admits():
            transport.write(FULL)
            transport.close()
            return
        name = transport.get_extra_info("peername")
        if name:
            self._peer = (str(name[0]), int(name[1]))
            self.open_connections.half_open[self._peer] = self
        self.wait_for_header()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._forget()
        super().connection_lost(exc)

    def wait_for_header(self) -> None:
        """Start the time limit for a header; single bytes that drip in do not extend it."""
        self.stop_waiting()
        self._waiting = self.loop.call_later(HEADER_SECONDS, self._too_slow)

    def stop_waiting(self) -> None:
        """Stop the time limit."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def shed(self) -> None:
        """Close the connection to make room for another."""
        self._forget()
        self.transport.abort()

    def _too_slow(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent and (self._unsent is None or unsent < self._unsent):  # The client is still reading the last response.
            self._unsent = unsent
            self.wait_for_header()
        elif unsent:
            self.shed()
        else:
            self._forget()
            self.transport.write(TOO_SLOW)
            self.transport.close()

    def _forget(self) -> None:
        self.stop_waiting()
        if self._peer is not None:
            self.open_connections.half_open.pop(self._peer, None)
            self.open_connections.forget_request(self._peer)
            self._peer = None


TWO_LENGTHS = "a request must not have both Content-Length and Transfer-Encoding"


def has_two_lengths(scope: Scope) -> bool:
    """Whether a request has both a content length and chunks, which proxies may read differently."""
    return {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}


class BodyTooLarge(HTTPException):
    """The request's body is larger than allowed. An HTTP error, so that handlers do not treat it as their own."""

    def __init__(self, most: int) -> None:
        super().__init__(413, f"a request may have {most:,} bytes at most")


class BodyTooSlow(HTTPException):
    """The request's body does not arrive in time."""

    def __init__(self) -> None:
        super().__init__(408, f"the body of a request must arrive within {BODY_SECONDS:g} seconds")


class ReplyTooLarge(Exception):
    """The response is larger than allowed."""


class ReaderTooSlow(OSError):
    """The client does not read the response; treated like a broken connection."""


class LimitedReceive:
    """Receives a request's body as long as it is neither too large nor too slow."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._until = asyncio.get_running_loop().time() + BODY_SECONDS
        self._received = 0
        self._whole = False

    async def __call__(self) -> Message:
        """Return the next part of the body; after the last part, wait for the disconnect."""
        if self._whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise BodyTooSlow from None
        self._received += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._received > self._most:
            raise BodyTooLarge(self._most)
        return message


async def send_in_time(send: Send, message: Message) -> None:
    """Send the next part of a response if the client reads it in time."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            await send(message)
    except TimeoutError:
        raise ReaderTooSlow from None


class BoundedTools:
    """A tool server behind a token, within the limits of all servers.

    A request is received completely before a tool sees it; without the token, its body is not read.
    """

    def __init__(self, app: ASGIApp, *, max_body: int, knows_token: Callable[[bytes], bool]) -> None:
        self.connections = OpenConnections()
        self._app = app
        self._max_body = max_body
        self._knows_token = knows_token
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        waiting = scope["method"] == "GET"
        self.connections.request_begins(scope.get("client"))
        self._streams += waiting
        try:
            await self._answer(scope, receive, send)
        except (ReaderTooSlow, ReplyTooLarge):
            return  # The server closes the connection if a response is incomplete.
        finally:
            self._streams -= waiting
            self.connections.request_ends(scope.get("client"))

    def _refused(self, scope: Scope) -> tuple[int, str, str] | None:
        """Return status, text and header with which to refuse a request; None if it is allowed."""
        headers = dict(scope["headers"])
        if not self._knows_token(headers.get(b"authorization", b"")):
            return 401, "a valid token is needed", "WWW-Authenticate: Bearer"
        if has_two_lengths(scope):
            return 400, TWO_LENGTHS, "Connection: close"
        if self._streams > MAX_STREAMS:
            return 503, f"{MAX_STREAMS} streams are already open", "Retry-After: 5"
        size = sum(len(name) + len(value) for name, value in scope["headers"])
        if size + len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_HEADER_BYTES:
            return 431, f"address and headers may have {MAX_HEADER_BYTES:,} bytes at most", ""
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._max_body:
            return 413, BodyTooLarge(self._max_body).detail, ""
        return None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent = 0

        async def limited(message: Message) -> None:
            nonlocal sent
            sent += len(message.get("body", b""))
            if sent > MAX_REPLY_BYTES:
                raise ReplyTooLarge
            await send_in_time(send, message)

        if (refused := self._refused(scope)) is not None:
            await _refuse(limited, *refused)
            return
        coming = LimitedReceive(receive, self._max_body)
        parts: list[Message] = []
        try:
            while not parts or parts[-1].get("more_body", False):
                parts.append(await coming())
        except HTTPException as error:
            await _refuse(limited, error.status_code, error.detail, "")
            return
        body: Message = {"type": "http.request", "body": b"".join(part.get("body", b"") for part in parts)}
        ahead = [parts[-1] if parts[-1]["type"] == "http.disconnect" else body]

        async def receive_body() -> Message:
            return ahead.pop() if ahead else await receive()

        await self._app(scope, receive_body, limited)


async def _refuse(send: Send, status: int, words: str, header: str) -> None:
    """Send a plain-text refusal."""
    name, _, value = header.partition(": ")
    head = [(b"content-type", b"text/plain; charset=utf-8")]
    head += [(name.lower().encode(), value.encode())] if name else []
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": words.encode()})


def server_config(app: ASGIApp, connections: OpenConnections, **options: Any) -> uvicorn.Config:
    """Return a server configuration with these limits and without an access log (the login link contains the token)."""
    bounded = type("BoundedConnection", (BoundedConnection,), {"open_connections": connections})
    defaults: dict[str, Any] = {
        "log_level": "warning",
        "access_log": False,
        "timeout_graceful_shutdown": 2,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "h11_max_incomplete_event_size": MAX_HEADER_BYTES,
        "backlog": BACKLOG,
        "http": bounded,
        "ws": "none",
        "server_header": False,
    }
    return uvicorn.Config(app, **{**defaults, **options})
