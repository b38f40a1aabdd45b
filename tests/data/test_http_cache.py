"""The HTTP cache: as long as the server allows, never with a key, never across cutoffs."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from foretell.data.http import AsyncHttpClient, HttpLimits
from foretell.data.http_cache import FOLDER, HttpCache, fresh_seconds, is_cacheable
from foretell.data.service_limits import ServiceAccess
from foretell.data.wikipedia import Wikipedia
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse
from foretell.practice.web import PageVersion, SampleWorld, wikipedia_server
from foretell.questions.as_of import AsOf, instant

QUICK = HttpLimits(attempts=1, total_seconds=5.0)
KEY = "sk-canary"


class Source:
    """Serves a body that can be changed, with the given headers."""

    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.version = 1
        self.seen: list[ServerRequest] = []

    def answer(self, request: ServerRequest) -> ServerResponse:
        self.seen.append(request)
        headers = {**self.headers, **({"etag": f'"{self.version}"'} if "etag" in self.headers else {})}
        if request.headers.get("if-none-match", "-") == headers.get("etag", ""):
            return ServerResponse(status=304, headers=headers)
        return ServerResponse(body=f"version {self.version}".encode(), headers=headers)


def reading(
    home: Path, source: Source, use: Callable[[AsyncHttpClient, str], Awaitable[None]], service: str = "dbnomics"
) -> list[ServerRequest]:
    async def run() -> list[ServerRequest]:
        server = PracticeServer()
        server.route("GET", "/*", source.answer)
        async with server:
            access = ServiceAccess(home=home, addresses={service: server.url})
            async with AsyncHttpClient(limits=QUICK, access=access) as client:
                await use(client, f"{server.url}/series")
        return source.seen

    return asyncio.run(run())


async def body(client: AsyncHttpClient, url: str, **headers: str) -> str:
    return (await client.get(url, headers=headers)).body.decode()


def test_a_fresh_response_is_reused_only_for_the_same_request(tmp_path: Path) -> None:
    source = Source(cache_control="max-age=600")

    async def use(client: AsyncHttpClient, url: str) -> None:
        assert [await body(client, url) for _ in range(3)] == ["version 1"] * 3
        source.version = 2
        assert await body(client, f"{url}?as_of=2") == "version 2"
        assert await body(client, url, Accept="text/csv") == "version 2"
        assert await body(client, url) == "version 1"

    assert len(reading(tmp_path, source, use)) == 3


def test_a_stale_response_is_revalidated(tmp_path: Path) -> None:
    source = Source(cache_control="no-cache", etag="yes")

    async def use(client: AsyncHttpClient, url: str) -> None:
        assert [await body(client, url) for _ in range(2)] == ["version 1"] * 2
        source.version = 2
        assert await body(client, url) == "version 2"
        source.headers["cache-control"] = "max-age=600"
        assert [await body(client, url) for _ in range(3)] == ["version 2"] * 3

    seen = reading(tmp_path, source, use)
    assert [request.headers.get("if-none-match", "") for request in seen] == ["", '"1"', '"1"', '"2"']


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        ({"cache_control": "no-store, max-age=600"}, {}),
        ({"cache_control": "private, max-age=600"}, {}),
        ({"cache_control": "max-age=600", "vary": "*"}, {}),
        ({"cache_control": "max-age=600", "set_cookie": "a=b"}, {}),
        ({"cache_control": "max-age=600"}, {"Authorization": f"Bearer {KEY}"}),
        ({"cache_control": "max-age=600"}, {"X-Api-Key": KEY}),
        ({}, {}),
    ],
)
def test_uncacheable_responses_are_not_stored(headers: dict[str, str], sent: dict[str, str], tmp_path: Path) -> None:
    async def use(client: AsyncHttpClient, url: str) -> None:
        for _ in range(2):
            await body(client, url, **sent)

    assert len(reading(tmp_path, Source(**headers), use)) == 2
    assert not any((tmp_path / FOLDER).glob("*"))


def test_requests_with_a_key_and_uncached_services_are_not_stored(tmp_path: Path) -> None:
    async def use(client: AsyncHttpClient, url: str) -> None:
        client.keep_secret(KEY)
        for _ in range(2):
            await client.get(url, params={"api_key": KEY})

    assert len(reading(tmp_path, Source(cache_control="max-age=600"), use)) == 2
    assert len(reading(tmp_path, Source(cache_control="max-age=600"), use, "kalshi")) == 2
    assert not any((tmp_path / FOLDER).glob("*"))


def test_a_backtest_never_gets_the_cached_response_of_another_cutoff(tmp_path: Path) -> None:
    world = SampleWorld(now=instant("2026-11-01"), articles={"A": [PageVersion(at=instant("2026-01-01"), text="old")]})

    async def run() -> list[str]:
        server = wikipedia_server(world)
        plain = server.answer

        def with_lifetime(request: ServerRequest, send: Callable[[ServerResponse], None]) -> None:
            def pass_on(response: ServerResponse) -> None:
                headers: Mapping[str, str] = {**response.headers, "Cache-Control": "max-age=600"}
                send(ServerResponse(status=response.status, body=response.body, headers=headers))

            plain(request, pass_on)

        server.answer = with_lifetime
        async with server:
            access = ServiceAccess(home=tmp_path, addresses={"wikipedia": server.url}, contact="me@example.org")
            async with AsyncHttpClient(limits=QUICK, access=access) as client:
                wiki = Wikipedia(client, server.url)
                texts = [(await wiki.revision("A", AsOf.day("2026-02-01"))).wikitext]
                world.articles["A"].append(PageVersion(at=instant("2026-03-01"), text="new"))
                for day in ("2026-04-01", "2026-02-01", "2026-02-02"):
                    texts.append((await wiki.revision("A", AsOf.day(day))).wikitext)
                return [*texts, str(len(server.requests))]

    assert asyncio.run(run()) == ["old", "new", "old", "old", "3"]


def test_freshness_follows_the_cache_headers() -> None:
    date = "Wed, 21 Oct 2026 07:28:00 GMT"
    assert fresh_seconds({"expires": "Wed, 21 Oct 2026 08:28:00 GMT", "date": date}) == 3600
    assert fresh_seconds({"expires": "0", "date": date}) == 0
    assert fresh_seconds({"cache-control": "max-age=nonsense"}) == 0
    assert fresh_seconds({"cache-control": "no-cache, max-age=9"}) == 0
    assert not is_cacheable({"cache-control": "max-age=0"})
    assert is_cacheable({"last-modified": date})


def test_the_cache_stays_within_its_size_and_ignores_damaged_files(tmp_path: Path) -> None:
    now = [1_000.0]
    cache = HttpCache(tmp_path, max_bytes=20_000, clock=lambda: now[0])
    headers = {"cache-control": "max-age=60"}
    for number in range(60):
        cache.keep(f"{number:064}", b"x" * 1_000, headers)
    sizes = [file.stat().st_size for file in tmp_path.iterdir()]
    assert sum(sizes) <= 20_000
    assert len(sizes) > 5
    newest = tmp_path / f"{59:064}"
    cached = cache.find(newest.name)
    assert cached is not None
    assert (cached.fresh(1_059.0), cached.fresh(1_061.0), cached.fresh(900.0)) == (True, False, False)
    newest.write_bytes(newest.read_bytes()[:-1])
    assert cache.find(newest.name) is None
