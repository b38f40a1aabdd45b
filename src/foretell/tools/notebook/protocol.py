"""The subset of ZMTP 3.0, ZeroMQ's wire protocol, that a Jupyter client needs, written for an untrusted peer.

A library client collects the parts of a message without a limit and reconnects to a path that may have been replaced.
Here every size is checked before anything is read, and a connection is made once, before notebook code runs.
"""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from foretell.frozen import frozen

GREETING = b"\xff" + b"\0" * 8 + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + b"\0" * 32
MORE, LONG, COMMAND = 1, 2, 4
MAX_PARTS = 64
PART = 256
"""Bytes charged for each part besides its content, so that a flood of empty parts also hits the limit."""
PATIENCE = 10.0
"""Seconds a peer may take to make room for data sent to it."""
SocketKind = Literal["DEALER", "SUB"]
SUBSCRIBE_TO_ALL = b"\x01"


class ZmtpBroken(Exception):
    """The peer has disconnected or violates the protocol. Nothing more can be received from it."""


class PeerHungUp(ZmtpBroken):
    """The peer closed the connection, or pretends to have done so."""


class PeerAbsent(ZmtpBroken):
    """No connection could be made, perhaps because it is too early."""


class ZmtpConnection:
    """A connection to one of a kernel's sockets."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: int) -> None:
        self._reader = reader
        self._writer = writer
        self._most = most
        self.allowance = most
        """Bytes that may still be received; a caller that expects more raises it."""

    @classmethod
    async def connect(cls, path: Path, kind: SocketKind, *, most: int) -> "ZmtpConnection":
        """Connect and perform the handshake; `most` is the maximum size of one message in bytes."""
        try:
            reader, writer = await asyncio.open_unix_connection(str(path))
        except OSError as error:
            raise PeerAbsent(f"no connection to the kernel: {error}") from None
        connection = cls(reader, writer, most)
        try:
            await connection._shake_hands(kind)
        except BaseException:
            connection.close()
            raise
        return connection

    async def send(self, parts: Sequence[bytes]) -> None:
        """Send one message."""
        data = b"".join(_frame(part, MORE if place < len(parts) else 0) for place, part in enumerate(parts, start=1))
        await self._write(data)

    async def receive(self) -> list[bytes]:
        """Return the parts of the next message. If this is cancelled, the connection can no longer be used."""
        parts: list[bytes] = []
        remaining = self._most
        while True:
            flags, body = await self._part(remaining)
            if flags & COMMAND:
                continue
            remaining -= len(body)
            parts.append(body)
            if not flags & MORE:
                return parts
            if len(parts) == MAX_PARTS:
                raise ZmtpBroken(f"the kernel sent a message of more than {MAX_PARTS} parts")

    def close(self) -> None:
        """Close the connection without waiting for unsent data."""
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
    """Return one part of a message as a frame."""
    if len(body) < 256:
        return bytes([flags, len(body)]) + body
    return bytes([flags | LONG]) + len(body).to_bytes(8, "big") + body


def _property(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value


# Messages of the Jupyter protocol.

DELIMITER = b"<IDS|MSG>"
VERSION = "5.4"


@frozen
class JupyterMessage:
    """A message from a kernel. Signatures are not checked: notebook code knows the key as well as its kernel does."""

    kind: str
    parent: str
    """The id of the request it responds to."""
    content: Mapping[str, Any]

    def text(self, name: str) -> str:
        """Return a field that should be a string, or an empty string if it is something else."""
        value = self.content.get(name)
        return value if isinstance(value, str) else ""


def jupyter_request(kind: str, name: str, content: Mapping[str, Any], key: bytes) -> list[bytes]:
    """Return the parts of a signed request with the given id."""
    header = {"msg_id": name, "msg_type": kind, "session": "foretell", "username": "foretell", "version": VERSION}
    parts = [json.dumps(part).encode() for part in (header, {}, {}, content)]
    signature = hmac.new(key, b"".join(parts), hashlib.sha256).hexdigest().encode()
    return [DELIMITER, signature, *parts]


def read_message(parts: Sequence[bytes]) -> JupyterMessage:
    """Parse the parts of a message; raise `ZmtpBroken` if they are not a Jupyter message."""
    try:
        start = parts.index(DELIMITER)
        header, parent, content = (_table(parts[start + offset]) for offset in (2, 3, 5))
        return JupyterMessage(kind=str(header.get("msg_type")), parent=str(parent.get("msg_id", "")), content=content)
    except (ValueError, IndexError, RecursionError):
        raise ZmtpBroken("the kernel sent something that is no Jupyter message") from None


def _table(part: bytes) -> dict[str, Any]:
    table = json.loads(part)
    if not isinstance(table, dict):
        raise ValueError("not a table")
    return cast("dict[str, Any]", table)
