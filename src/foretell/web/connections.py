"""Bounds on connections: how many, how long a request may take to arrive, how much it may bring, how long one idles."""

import asyncio
from collections import Counter
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 900
"""Open at once: below the 1,024 files that a process may usually have open."""
HEADER_SECONDS = 10.0
"""From a connection's beginning, or the end of its last request, until the next request's header is there."""
KEEP_ALIVE_SECONDS = 5
"""A connection without a request is closed after that."""
MAX_HEADER_BYTES = 32_768
"""Address, cookies and all other headers of a request together."""
BACKLOG = 512
Peer = tuple[str, int]


def _refusal(status: str, message: str, *headers: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(message)}",
        *headers,
    ]
    return "\r\n".join([*lines, "Connection: close", "", message]).encode("ascii")


TOO_SLOW = _refusal("408 Request Timeout", f"the header of a request must be here within {HEADER_SECONDS:g} seconds")
FULL = _refusal("503 Service Unavailable", f"{MAX_CONNECTIONS} connections are open already", "Retry-After: 5")


class OpenConnections:
    """The connections of a server: those with a request under way, and those that wait for one or hold one half."""

    def __init__(self) -> None:
        self.half_open: dict[Peer, BoundedConnection] = {}
        """Without a whole request, the one that has been so for longest first."""
        self.busy: dict[Peer, BoundedConnection] = {}
        self._requests: Counter[Peer] = Counter()
        """Of those that are busy: a pipelined one may begin before the one ahead of it has quite ended."""

    def admits(self) -> bool:
        """Whether there is room for one more; who has sent no whole request for longest makes room."""
        if len(self.half_open) + len(self.busy) < MAX_CONNECTIONS:
            return True
        if not self.half_open:
            return False
        self.half_open[next(iter(self.half_open))].shed()
        return True

    def request_begins(self, peer: Peer | None) -> None:
        """A whole header has come over the connection of a peer."""
        if peer is None:
            return
        if (connection := self.half_open.pop(peer, None)) is not None:
            self.busy[peer] = connection
            connection.stop_waiting()
        if peer in self.busy:
            self._requests[peer] += 1

    def request_ends(self, peer: Peer | None) -> None:
        """It was answered; the connection waits for the next request."""
        if peer is None or peer not in self.busy:
            return
        self._requests[peer] -= 1
        if self._requests[peer] <= 0:
            connection = self.half_open[peer] = self.busy[peer]
            self.forget_request(peer)
            connection.wait_for_header()

    def forget_request(self, peer: Peer) -> None:
        """Nothing is under way on that connection any more."""
        self.busy.pop(peer, None)
        self._requests.pop(peer, None)


class BoundedConnection(H11Protocol):
    """A connection of the server that ends where no whole request comes in time."""

    open_connections: OpenConnections

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """It begins, unless there are too many."""
        super().connection_made(transport)
        self._peer: Peer | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._unsent: int | None = None
        """Bytes of an answer that nobody took in at the last look."""
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
        """It ended."""
        self._forget()
        super().connection_lost(exc)

    def wait_for_header(self) -> None:
        """Give up after a while; bytes that drip in do not prolong it."""
        self.stop_waiting()
        self._waiting = self.loop.call_later(HEADER_SECONDS, self._too_slow)

    def stop_waiting(self) -> None:
        """A request is here, or none will come."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def shed(self) -> None:
        """Make room for another."""
        self._forget()
        self.transport.abort()

    def _too_slow(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent and (self._unsent is None or unsent < self._unsent):  # The last answer is still being taken in.
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


def server_config(app: FastAPI, **options: Any) -> uvicorn.Config:
    """How the application is served: within bounds, without a log of addresses (the login link carries the token)."""
    bounded = type("BoundedConnection", (BoundedConnection,), {"open_connections": app.state.serving.connections})
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
