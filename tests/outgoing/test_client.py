"""Connections over real sockets: requests, size limits and errors."""

import asyncio
import gzip
import ssl
import zlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from foretell.outgoing.client import (
    AnswerTooLarge,
    ConnectionBroke,
    Connections,
    HttpRequest,
    NotConnected,
    OutgoingError,
    UnreadableBody,
    Unsendable,
    address_of,
)

Use = Callable[[str, list[str]], Awaitable[object]]


def served(answer: bytes | None, use: Use, *, tls: ssl.SSLContext | None = None) -> list[str]:
    """Run something against a server that sends these bytes, or nothing, and return the heads of its requests."""
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                if answer is None:
                    await asyncio.sleep(60)
                writer.write(answer or b"")
                await writer.drain()
                if answer is None or b"Content-Length" not in answer:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
        async with server:
            await use(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads)
            server.close()

    asyncio.run(main())
    return heads


async def read(url: str, longest: int = 1_000_000, **options: object) -> bytes:
    """Return the body of an address."""
    connections = Connections(**options)  # pyright: ignore[reportArgumentType]
    try:
        async with connections.send(HttpRequest("GET", address_of(url))) as answer:
            return await answer.read(longest)
    finally:
        await connections.close()


def whole(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", ConnectionBroke),
        (b"this is no HTTP at all\r\n\r\n", ConnectionBroke),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", ConnectionBroke),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", ConnectionBroke),
        (None, ConnectionBroke),
        (whole(b"no gzip", "Content-Encoding: gzip"), UnreadableBody),
        (whole(b"x", "Content-Encoding: br"), OutgoingError),
        (whole(b"x", "Content-Encoding: gzip, snappy"), UnreadableBody),
        (whole(gzip.compress(gzip.compress(b"x", mtime=0), mtime=0), "Content-Encoding: gzip, gzip"), UnreadableBody),
        (whole(b"x" * 1001), AnswerTooLarge),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"x" * 1001, AnswerTooLarge),
    ],
)
def test_every_failure_of_an_answer_is_an_outgoing_error(answer: bytes | None, kind: type[OutgoingError]) -> None:
    async def use(url: str, heads: list[str]) -> None:
        with pytest.raises(kind):
            await read(url, 1000, read_seconds=0.2)

    # An endless answer has no length.
    assert len(served(answer, use)) == 1


def test_refused_connection_sends_nothing() -> None:
    with pytest.raises(NotConnected, match=r"127\.0\.0\.1:1"):
        asyncio.run(read("http://127.0.0.1:1/"))


def test_invalid_requests_are_rejected_before_sending() -> None:
    async def use(url: str, heads: list[str]) -> None:
        connections = Connections()
        with pytest.raises(Unsendable):
            async with connections.send(HttpRequest("GET", address_of(url), {"X-Key": "a\nb"})):
                pass
        await connections.close()

    assert served(whole(b"ok"), use) == []
    for wrong in ("", "no address", "http://", "http://[::1", "http://a:port/", "https://" + "a" * 70_000):
        with pytest.raises(Unsendable, match="cannot read the address"):
            address_of(wrong)


@pytest.mark.parametrize("packed", [gzip.compress, zlib.compress])
def test_decompressed_size_of_an_answer_is_limited(
    packed: Callable[[bytes], bytes],
) -> None:
    name = "gzip" if packed is gzip.compress else "deflate"
    bomb = packed(bytes(50_000_000))
    assert len(bomb) < 100_000
    beginnings: list[int] = []

    async def use(url: str, heads: list[str]) -> None:
        assert await read(url, 50_000_000) == bytes(50_000_000)
        with pytest.raises(AnswerTooLarge, match="larger than 1,000,000 bytes") as caught:
            await read(url, 1_000_000)
        beginnings.append(len(caught.value.beginning))

    served(whole(bomb, f"Content-Encoding: {name}"), use)
    assert 1_000_000 < beginnings[0] < 2_000_000


def test_cookies_are_not_kept_and_redirects_are_not_followed() -> None:
    async def use(url: str, heads: list[str]) -> None:
        connections = Connections(headers={"X-Mine": "1"})
        for _ in range(2):
            async with connections.send(HttpRequest("GET", address_of(url))) as answer:
                assert (answer.status, answer.reason, answer.headers["LOCATION"]) == (302, "Found", "/elsewhere")
                await answer.read(10)
        await connections.close()

    heads = served(whole(b"", "Set-Cookie: a=b", "Location: /elsewhere", status="302 Found"), use)
    assert len(heads) == 2
    assert not any("cookie" in head.lower() for head in heads)
    assert all("X-Mine: 1" in head and "Accept-Encoding: gzip, deflate" in head for head in heads)


def test_proxy_from_the_environment_is_used_except_for_excluded_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(url: str, heads: list[str]) -> None:
        monkeypatch.setenv("http_proxy", url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert await read("http://somewhere.invalid/a?b=c") == b"ok"
        assert await read(f"{url}/direct") == b"ok"

    proxied, direct = served(whole(b"ok"), use)
    assert proxied.startswith("GET http://somewhere.invalid/a?b=c HTTP/1.1\r\nHost: somewhere.invalid\r\n")
    assert direct.startswith("GET /direct HTTP/1.1")


def test_check_runs_after_connecting_and_before_sending() -> None:
    class Stopped(Exception):
        pass

    def stop() -> None:
        raise Stopped

    async def use(url: str, heads: list[str]) -> None:
        with pytest.raises(Stopped):
            await read(url, check=stop)

    assert served(whole(b"ok"), use) == []


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Return a certificate of its own authority for a name, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]), datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / f"{name}.pem", folder / f"{name}.key"
    files[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain)
    )
    return files


def test_fixed_address_must_have_a_certificate_for_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cryptography")
    files = certificate(tmp_path, "public.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(files[0]))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*files)

    async def use(url: str, heads: list[str]) -> None:
        port = url.rpartition(":")[2]
        connections = Connections()
        request = HttpRequest("GET", address_of(f"https://public.example:{port}/a"), address="127.0.0.1")
        async with connections.send(request) as answer:
            assert await answer.read(10) == b"ok"
        other = request._replace(url=address_of(f"https://other.example:{port}/a"))
        with pytest.raises(NotConnected, match=r"(?i)certificate"):
            async with connections.send(other):
                pass
        with pytest.raises(NotConnected, match=r"(?i)certificate"):
            await read(f"https://127.0.0.1:{port}/")
        await connections.close()

    (head,) = served(whole(b"ok"), use, tls=tls)
    assert head.startswith("GET /a HTTP/1.1\r\nHost: public.example:")
    assert "Connection: close" in head


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("http://Example.ORG", "http://example.org/"),
        ("https://example.org:443/a?b=c#d", "https://example.org/a?b=c#d"),
        ("http://a.org/%7Eme/%2F/x y/é?q=%41+b|c", "http://a.org/%7Eme/%2F/x%20y/%C3%A9?q=%41+b%7Cc"),
        ("http://a.org/web/2020id_/https://b.org/c?d=e&f", "http://a.org/web/2020id_/https://b.org/c?d=e&f"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://[2606:4700::1111]:8080/", "http://[2606:4700::1111]:8080/"),
    ],
)
def test_address_is_sent_unchanged_where_possible(url: str, sent: str) -> None:
    assert str(address_of(url)) == sent
