"""ZMTP connections with real ZeroMQ sockets and with hostile peers."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from foretell.tools.notebook.protocol import GREETING, PeerHungUp, SocketKind, ZmtpBroken, ZmtpConnection

zmq: Any = pytest.importorskip("zmq")


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "s"


def test_dealer_exchanges_messages_with_a_router(path: Path) -> None:
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.bind(f"ipc://{path}")

    async def talk() -> list[bytes]:
        connection = await ZmtpConnection.connect(path, "DEALER", most=10_000_000)
        connection.allowance = 10_000_000
        await connection.send([b"hello", b"", b"x" * 100_000])
        who, *parts = await asyncio.to_thread(router.recv_multipart)
        assert parts == [b"hello", b"", b"x" * 100_000]
        router.send_multipart([who, b"answer", b"y" * 300, b"z" * 1_000_000])
        received = await connection.receive()
        connection.close()
        return received

    assert asyncio.run(talk()) == [b"answer", b"y" * 300, b"z" * 1_000_000]
    context.destroy(linger=0)


def test_subscriber_receives_from_a_publisher(path: Path) -> None:
    context = zmq.Context()
    publisher = context.socket(zmq.XPUB)
    publisher.bind(f"ipc://{path}")

    async def listen() -> list[bytes]:
        connection = await ZmtpConnection.connect(path, "SUB", most=1_000)
        assert await asyncio.to_thread(publisher.recv) == b"\x01"
        publisher.send_multipart([b"topic", b"news"])
        received = await connection.receive()
        connection.close()
        return received

    assert asyncio.run(listen()) == [b"topic", b"news"]
    context.destroy(linger=0)


def receive_from(path: Path, data: bytes, *, most: int = 1_000, kind: SocketKind = "DEALER") -> list[bytes]:
    """Return the message received from a peer that sends fixed bytes."""

    gone = asyncio.Event()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        writer.write_eof()
        with suppress(ConnectionError):
            await reader.read()
        writer.close()
        gone.set()

    async def meet() -> list[bytes]:
        server = await asyncio.start_unix_server(peer, path)
        try:
            connection = await ZmtpConnection.connect(path, kind, most=most)
            try:
                return await connection.receive()
            finally:
                connection.close()
        finally:
            await gone.wait()
            server.close()

    return asyncio.run(meet())


HELLO = GREETING + b"\x04\x06\x05READY"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "hung up"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 64, "does not speak ZMTP"),
        (b"\xff" + b"\0" * 8 + b"\x7f\x01" + b"\0" * 53, "does not speak ZMTP"),
        (GREETING[:12] + b"PLAIN".ljust(52, b"\0"), "does not speak ZMTP"),
        (GREETING + b"\x00\x01x", "did not finish the handshake"),
        (GREETING + b"\x06" + (10**12).to_bytes(8, "big"), "more than"),
        (HELLO, "hung up"),
        (HELLO + b"\x00\x05ab", "hung up"),
        (HELLO + b"\x02" + (2**63).to_bytes(8, "big"), "more than 1,000 bytes"),
        (HELLO + b"\x01\xf0" + b"x" * 240 + b"\x01\xf0" + b"x" * 240 + b"\x01\xf0" + b"x" * 240, "during one cell"),
        (HELLO + b"\x01\x00" * 65, "during one cell"),
        (HELLO + b"\x04\x00" * 10_000, "during one cell"),
    ],
)
def test_peer_that_violates_the_protocol_raises_zmtp_broken(path: Path, data: bytes, message: str) -> None:
    with pytest.raises(ZmtpBroken, match=message):
        receive_from(path, data)


def test_parts_and_their_number_are_bounded(path: Path) -> None:
    assert receive_from(path, HELLO + b"\x01\x02ab\x04\x03cmd\x00\x01c", most=10_000) == [b"ab", b"c"]
    with pytest.raises(ZmtpBroken, match="more than 64 parts"):
        receive_from(path, HELLO + b"\x01\x00" * 65, most=100_000)
    with pytest.raises(ZmtpBroken, match="more than 5,000 bytes"):
        receive_from(
            path,
            HELLO + b"\x03" + (3_000).to_bytes(8, "big") + b"x" * 3_000 + b"\x02" + (3_000).to_bytes(8, "big"),
            most=5_000,
        )


def test_send_to_a_peer_that_does_not_read_times_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foretell.tools.notebook.protocol.PATIENCE", 0.1)
    over = asyncio.Event()

    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HELLO)
        await over.wait()
        writer.transport.abort()

    async def talk() -> None:
        server = await asyncio.start_unix_server(deaf, path)
        connection = await ZmtpConnection.connect(path, "DEALER", most=1_000)
        try:
            await connection.send([b"x" * 10_000_000])
        finally:
            over.set()
            connection.close()
            server.close()

    with pytest.raises(ZmtpBroken, match="does not listen"):
        asyncio.run(talk())


def test_missing_socket_raises_zmtp_broken(path: Path) -> None:
    with pytest.raises(ZmtpBroken, match="no connection"):
        asyncio.run(ZmtpConnection.connect(path, "SUB", most=10))
    assert issubclass(PeerHungUp, ZmtpBroken)
