"""A tiny HTTP/1.1 server with a table of routes, and ways to go wrong on purpose."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

MAX_HEAD = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class ServerRequest:
    """What a client sent."""

    method: str
    path: str
    """Decoded; the part of the address as sent is in `target`."""
    target: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes = b""

    def json(self) -> Any:
        """The body read as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True, kw_only=True)
class ServerResponse:
    """What to send back."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    stream: AsyncIterator[bytes] | None = None
    """Pieces to send one by one instead of a body."""
    delay: float = 0.0
    cut: bool = False
    """Break off in the middle of the body."""


Handler = Callable[[ServerRequest], ServerResponse | Awaitable[ServerResponse]]
ServerFault = Callable[[ServerResponse], ServerResponse]
"""Turns a good answer into a bad one."""


def json_response(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> ServerResponse:
    """An answer in JSON."""
    body = json.dumps(data, ensure_ascii=False).encode()
    return ServerResponse(status=status, body=body, headers={"Content-Type": "application/json", **(headers or {})})


def html_response(text: str, status: int = 200) -> ServerResponse:
    """An answer in HTML."""
    return ServerResponse(status=status, body=text.encode(), headers={"Content-Type": "text/html; charset=utf-8"})


def busy(retry_after: str = "0") -> ServerFault:
    """429, with the wait it asks for."""
    return lambda _: json_response({"error": "slow down"}, 429, {"Retry-After": retry_after})


def failing(status: int = 500) -> ServerFault:
    """An error of the server."""
    return lambda _: json_response({"error": "it broke"}, status)


def cut_off() -> ServerFault:
    """The connection ends in the middle of the body."""
    return lambda good: replace(good, cut=True)


def garbled() -> ServerFault:
    """Half of the body, declared whole: JSON that does not parse."""
    return lambda good: replace(good, body=good.body[: len(good.body) // 2])


def slow(seconds: float) -> ServerFault:
    """The right answer, late."""
    return lambda good: replace(good, delay=seconds)


class PracticeServer:
    """Serves on a port of this machine while used as an async context manager.

    A route is a method and a path; a path ending in `*` takes everything that begins so, the longest first.
    Faults are used up one per request, in order.
    """

    def __init__(self, *, latency: float = 0.0, port: int = 0) -> None:
        self.requests: list[ServerRequest] = []
        self.faults: list[ServerFault] = []
        self.latency = latency
        self.port = port
        """Where to listen; 0 takes a free one."""
        self._routes: dict[tuple[str, str], Handler] = {}
        self._server: asyncio.Server | None = None
        self._port: int | None = None
        self._connections: set[asyncio.Task[None]] = set()

    def route(self, method: str, path: str, handler: Handler) -> None:
        """Answer this method and path by the handler."""
        self._routes[method, path] = handler

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        if self._port is None:
            raise RuntimeError("the server is not running; use it with `async with`")
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> "PracticeServer":
        """Start listening."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, limit=MAX_HEAD, backlog=1024)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop, and end what is under way."""
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        try:
            while (request := await _received(reader)) is not None:
                if not await self._serve(request, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _serve(self, request: ServerRequest, writer: asyncio.StreamWriter) -> bool:
        """Answer, and tell whether the connection may be used again."""
        self.requests.append(request)
        fault = self.faults.pop(0) if self.faults else None
        found = self._handler(request)(request)
        response = found if isinstance(found, ServerResponse) else await found
        if fault is not None:
            response = fault(response)
        if wait := self.latency + response.delay:
            await asyncio.sleep(wait)
        await _sent(response, request, writer)
        return not response.cut and request.headers.get("connection", "").lower() != "close"

    def _handler(self, request: ServerRequest) -> Handler:
        exact = self._routes.get((request.method, request.path))
        if exact is not None:
            return exact
        fits = [
            (len(path), handler)
            for (method, path), handler in self._routes.items()
            if method == request.method and path.endswith("*") and request.path.startswith(path[:-1])
        ]
        return max(fits, key=lambda one: one[0])[1] if fits else _nothing_here


def _nothing_here(request: ServerRequest) -> ServerResponse:
    return json_response({"error": f"nothing at {request.method} {request.path}"}, 404)


async def _received(reader: asyncio.StreamReader) -> ServerRequest | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    first, *lines = head.split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return ServerRequest(
        method=method, path=unquote(parts.path), target=target, query=query, headers=headers, body=body
    )


async def _sent(response: ServerResponse, request: ServerRequest, writer: asyncio.StreamWriter) -> None:
    headers = dict(response.headers)
    if response.stream is not None:
        headers["Transfer-Encoding"] = "chunked"
    else:
        headers["Content-Length"] = str(len(response.body))
    phrase = HTTPStatus(response.status).phrase
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {response.status} {phrase}\r\n{head}\r\n".encode("latin-1"))
    if response.stream is not None:
        async for piece in response.stream:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
    elif request.method != "HEAD":
        writer.write(response.body[: len(response.body) // 2] if response.cut else response.body)
    await writer.drain()
