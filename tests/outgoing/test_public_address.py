"""Private addresses in all their spellings are not fetched, also not by a redirect."""

import asyncio

import pytest

from fakes.answers import respond
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.pages import PageUnavailable, PublicAddressGuard
from foretell.outgoing.client import Answer, FunctionTransport, HttpRequest
from foretell.outgoing.public_address import is_public, leads_inside

INSIDE = (
    "http://127.0.0.1/", "http://127.8.8.8/", "http://127.1/", "http://0/", "http://0.0.0.0/", "http://2130706433/",
    "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://017700000001/", "http://localhost/",
    "http://localhost./", "http://LOCALHOST/", "http://a.localhost/", "http://[::1]/", "http://[0:0:0:0:0:0:0:1]/",
    "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/", "http://[::7f00:1]/",
    "http://[64:ff9b::7f00:1]/", "http://[64:ff9b:1::7f00:1]/", "http://[64:ff9b:1:ffff::a00:1]/", "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::80ff:fffe]/", "http://[fec0::1]/", "http://[fe80::1]/", "http://[fe80::1%25eth0]/",
    "http://[fd00::1]/", "http://[ff02::1]/", "http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.1.1/",
    "http://100.64.0.1/", "http://169.254.169.254/", "http://198.18.0.1/", "http://224.0.0.1/", "http://240.0.0.1/",
    "http://255.255.255.255/", "http://192.0.2.1/", "http://[::ffff:169.254.169.254]/", "http://[::ffff:10.0.0.1]/",
    "http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/", "http://[::ffff:0:127.0.0.1]/", "http://[3fff::1]/", "http://[5f00::1]/",
    "http://[100:0:0:1::1]/", "http://192.88.99.1/", "http://[2606:4700::5efe:7f00:1]/", "http://168.63.129.16/",
    "http://[2606:4700::200:5efe:169.254.169.254]/", "http://[4000::1]/",
)  # fmt: skip
OUTSIDE = ("93.184.216.34", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")


def test_address_lists_are_complete() -> None:
    assert len(INSIDE) >= 37


@pytest.mark.parametrize("url", INSIDE)
def test_private_address_is_not_fetched(url: str) -> None:
    with pytest.raises(PageUnavailable, match=r"not on the public web|not known|cannot be read|no address"):
        asyncio.run(PublicAddressGuard().admit(url))


@pytest.mark.parametrize("address", OUTSIDE)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)
    assert not leads_inside(address)


@pytest.mark.parametrize("url", [url for url in INSIDE if "localhost" not in url.lower()][:12])
def test_redirect_to_a_private_address_is_not_followed(url: str) -> None:
    """The site represents a public one and is served by this machine."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(f"HTTP/1.1 302 Found\r\nLocation: {url}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, AsyncHttpClient(limits=HttpLimits(attempts=1)) as client:

            async def admit(url: str) -> str:
                return "127.0.0.1"

            with pytest.raises(SourceError, match=r"from the public web into a private network|Invalid IPv4 address"):
                await client.get(f"http://public.example:{port}/", admit=admit)

    asyncio.run(main())
    assert len(asked) == 1


NAMES = {"public.example": ["93.184.216.34"], "inner.example": ["10.0.0.7"], "mixed.example": ["8.8.8.8", "127.0.0.1"],
         "other.example": ["2606:4700::1111", "8.8.8.8"], "home.example": ["192.168.0.9"]}  # fmt: skip


@pytest.mark.parametrize(
    ("start", "target", "asked"),
    [
        ("public.example", "inner.example", None),
        ("public.example", "mixed.example", None),
        ("unknown.example", "inner.example", None),
        ("public.example", "other.example", "8.8.8.8"),
        ("home.example", "inner.example", "inner.example"),
        ("public.example", "unknown.example", "unknown.example"),
    ],
)
def test_redirect_to_a_host_uses_the_checked_address(start: str, target: str, asked: str | None) -> None:
    """A host with a private address is rejected like the address, and is not resolved again for the connection."""
    seen: list[str] = []

    def answer(request: HttpRequest) -> Answer:
        seen.append(request.address or request.url.host or "")
        moved = {"location": f"http://{target}/b"}
        return respond(200, content=b"ok") if len(seen) > 1 else respond(302, headers=moved)

    async def resolve(host: str, port: int) -> list[str]:
        if host not in NAMES:
            raise OSError("no such name")
        return NAMES[host]

    async def main() -> bytes:
        async with AsyncHttpClient(transport=FunctionTransport(answer), resolve=resolve) as client:
            return (await client.get(f"http://{start}/a")).body

    if asked is None:
        with pytest.raises(SourceError, match="into a private network"):
            asyncio.run(main())
        assert seen == [start]
    else:
        assert asyncio.run(main()) == b"ok"
        assert seen == [start, asked]
