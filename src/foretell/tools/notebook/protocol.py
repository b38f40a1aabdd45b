"""The part of ZMTP 3.0, the wire of ZeroMQ, that a Jupyter client speaks, written for a peer that cannot be trusted.

A library client collects the parts of a message without any bound and connects again to whatever stands at a path by
then. Here every size is bounded before anything is read, and a connection is made once, before notebook code runs.
"""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

GREETING = b"\xff" + b"\0" * 8 + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + b"\0" * 32
MORE, LONG, COMMAND = 1, 2, 4
MAX_PARTS = 64
PART = 256
"""What a part costs besides its bytes, so that a flood of empty ones ends as well."""
PATIENCE = 10.0
"""Seconds a peer may take to make room for what is sent to it."""
SocketKind = Literal["DEALER", "SUB"]
SUBSCRIBE_TO_ALL = b"\x01"


class ZmtpBroken(Exception):
    """The peer is gone or does not keep to the protocol; nothing more can come from it."""


class PeerHungUp(ZmtpBroken):
    """The peer is gone, or pretends to be."""


class PeerAbsent(ZmtpBroken):
    """No connection could be made; perhaps it is too early."""


class ZmtpConnection:
    """One connection to a socket of a kernel."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: int) -> None:
        self._reader = reader
        self._writer = writer
        self._most = most
        self.allowance = most
        """Bytes that may still be received; whoever expects more raises it."""

    @classmethod
    async def connect(cls, path: Path, kind: SocketKind, *, most: int) -> "ZmtpConnection":
        """Connect and shake hands; `most` bounds the bytes of one message."""
        try:
            reader, writer = await asyncio.open_unix_connection(str(path))
        except OSError as error:
            raise PeerAbsent(f"no connection to the kernel: {error}") from None
        wire = cls(reader, writer, most)
        try:
            await wire._shake_hands(kind)
        except BaseException:
            wire.close()
            raise
        return wire

    async def send(self, parts: Sequence[bytes]) -> None:
        """Send one message."""
        data = b"".join(_frame(part, MORE if place < len(parts) else 0) for place, part in enumerate(parts, start=1))
        await self._write(data)

    async def receive(self) -> list[bytes]:
        """The parts of the next message. Once it is cancelled the wire is of no more use."""
        parts: list[bytes] = []
        left = self._most
        while True:
            flags, body = await self._part(left)
            if flags & COMMAND:
                continue
            left -= len(body)
            parts.append(body)
            if not flags & MORE:
                return parts
            if len(parts) == MAX_PARTS:
                raise ZmtpBroken(f"the kernel sent a message of more than {MAX_PARTS} parts")

    def close(self) -> None:
        """Hang up, without waiting for what was not sent."""
        self._writer.transport.abort()

    async def _shake_hands(self, kind: str) -> None:
        await self._write(GREETING)
        greeting = await self._read(len(GREETING))
        if greeting[0] != 0xFF or greeting[10] < 3 or greeting[12:32].rstrip(b"\0") != b"NULL":
            raise ZmtpBroken("the kernel does not speak ZMTP 3")
        ready = b"\x05READY" + _property(b"Socket-Type", kind.encode()) + _property(b"Identity", b"")
        await self._write(_frame(ready, COMMAND))
        flags, body = await self._part(1024)
        if not flags & COMMAND or not body.startswith(b"\x05READY"):
            raise ZmtpBroken("the kernel did not finish the handshake")
        if kind == "SUB":
            await self._write(_frame(SUBSCRIBE_TO_ALL, 0))

    async def _part(self, most: int) -> tuple[int, bytes]:
        self.allowance -= PART
        flags, size = await self._read(2)
        if flags & LONG:
            size = int.from_bytes(bytes([size]) + await self._read(7), "big")
        if size > most:
            raise ZmtpBroken(f"the kernel sent a message of more than {self._most:,} bytes")
        return flags, await self._read(size)

    async def _read(self, size: int) -> bytes:
        self.allowance -= size
        if self.allowance < 0:
            raise ZmtpBroken("the kernel sent more than it may during one cell")
        try:
            return await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, OSError):
            raise PeerHungUp("the kernel hung up") from None

    async def _write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            async with asyncio.timeout(PATIENCE):
                await self._writer.drain()
        except TimeoutError:
            raise ZmtpBroken("the kernel does not listen") from None
        except OSError:
            raise PeerHungUp("the kernel hung up") from None


def _frame(body: bytes, flags: int) -> bytes:
    """One part of a message."""
    if len(body) < 256:
        return bytes([flags, len(body)]) + body
    return bytes([flags | LONG]) + len(body).to_bytes(8, "big") + body


def _property(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value


# Messages of the Jupyter protocol, as parts on a wire.

DELIMITER = b"<IDS|MSG>"
VERSION = "5.4"


@dataclass(frozen=True, kw_only=True)
class JupyterMessage:
    """What a kernel said. Signatures are not checked: notebook code knows the key as well as its kernel does."""

    kind: str
    parent: str
    """The id of the request it belongs to."""
    content: Mapping[str, Any]

    def text(self, name: str) -> str:
        """A field that should be a text; empty where it is something else."""
        value = self.content.get(name)
        return value if isinstance(value, str) else ""


def jupyter_request(kind: str, name: str, content: Mapping[str, Any], key: bytes) -> list[bytes]:
    """The parts of a signed request with a given id."""
    header = {"msg_id": name, "msg_type": kind, "session": "foretell", "username": "foretell", "version": VERSION}
    parts = [json.dumps(part).encode() for part in (header, {}, {}, content)]
    signature = hmac.new(key, b"".join(parts), hashlib.sha256).hexdigest().encode()
    return [DELIMITER, signature, *parts]


def read_message(parts: Sequence[bytes]) -> JupyterMessage:
    """The message in the parts that arrived, or `ZmtpBroken`."""
    try:
        start = parts.index(DELIMITER)
        header, parent, content = (_table(parts[start + offset]) for offset in (2, 3, 5))
        return JupyterMessage(kind=str(header.get("msg_type")), parent=str(parent.get("msg_id", "")), content=content)
    except (ValueError, IndexError, RecursionError):
        raise ZmtpBroken("the kernel sent something that is no Jupyter message") from None


def _table(part: bytes) -> dict[str, Any]:
    found = json.loads(part)
    if not isinstance(found, dict):
        raise ValueError("not a table")
    return cast("dict[str, Any]", found)
