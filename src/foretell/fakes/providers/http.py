"""Just enough HTTP/1.1 to be a provider, fast enough that the fake is never what a benchmark measures."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request, read to its end."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What to send back, and how badly."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    after: float = 0.0
    """Seconds to wait before the first byte."""
    cut: int | None = None
    """Send only so many bytes of the body, then hang up; 0 hangs up without a word."""


class Connection(asyncio.Protocol):
    """One client; requests on a connection are answered one after the other."""

    def __init__(self, answer: Callable[[Asked], Answered], done: Callable[[bool], None]) -> None:
        """`done` hears of every answer whether the client was still there to get it."""
        self._answer = answer
        self._done = done
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of asyncio's.

    def data_received(self, data: bytes) -> None:
        """Answer every complete request."""
        self._buffer += data
        while (asked := self._next()) is not None:
            answered = self._answer(asked)
            if answered.after > 0:
                asyncio.get_running_loop().call_later(answered.after, self._send, answered)
            else:
                self._send(answered)

    def _next(self) -> Asked | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        size = end + 4 + int(headers.get("content-length", "0"))
        if len(self._buffer) < size:
            return None
        method, path, _ = lines[0].split(" ", 2)
        body = bytes(self._buffer[end + 4 : size])
        del self._buffer[:size]
        return Asked(method=method, path=path, headers=headers, body=body)

    def _send(self, answered: Answered) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            self._done(False)
            return
        body = answered.body if answered.cut is None else answered.body[: answered.cut]
        if answered.cut != 0:
            head = [f"HTTP/1.1 {answered.status} Fake", "Content-Type: application/json"]
            head += [f"Content-Length: {len(answered.body)}"]
            head += [f"{name}: {value}" for name, value in answered.headers.items()]
            transport.write("\r\n".join([*head, "", ""]).encode("latin-1") + body)
        if answered.cut is not None:
            transport.close()
        self._done(True)
