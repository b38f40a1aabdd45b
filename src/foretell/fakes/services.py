"""Every outside service at once, on this machine: models, search, pages, archives, series and markets."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from foretell.fakes.dbnomics import FakeDbnomics
from foretell.fakes.fred import FakeFred
from foretell.fakes.made_up import (
    fred_series,
    kalshi_books,
    made_up_world,
    manifold_bets,
    metaculus_posts,
    polymarket_listings,
    shares,
    temperatures,
)
from foretell.fakes.made_up_events import (
    arena_events,
    kalshi_events,
    manifold_events,
    metaculus_events,
    polymarket_events,
)
from foretell.fakes.markets import FakeArena, FakeKalshi, FakeManifold, FakeMetaculus, FakePolymarket
from foretell.fakes.markets.trouble import query_of
from foretell.fakes.providers.arena import arena
from foretell.fakes.providers.server import FakeProviders
from foretell.fakes.search import search_server
from foretell.fakes.server import FakeServer, Request, Response, json_response
from foretell.fakes.web import wayback_server, web_server
from foretell.fakes.wikipedia import wikipedia_server
from foretell.fakes.yahoo import FakeYahoo

KEY = "fake"
"""Taken by every service that wants a key."""
ENGINES = ("brave", "exa", "tavily", "serper", "asknews", "gdelt")
POLYMARKET = {"/v2/prices-history": "/data", "/prices-history": "/clob"}
"""The three services of Polymarket on one address, as a proxy would offer them; all else is for the first."""
NOT_FOUND = 404
PORTS = 13
"""Servers that are started."""


@dataclass(frozen=True, kw_only=True)
class Listening:
    """How the services are started."""

    now: datetime
    """The day it is in the made-up world."""
    port_base: int = 0
    """The first of `PORTS` ports in a row; 0 takes free ones."""
    latency: float = 0.0
    """Seconds before every answer."""


@asynccontextmanager
async def all_services(listening: Listening) -> AsyncGenerator[dict[str, str]]:
    """Serves while in use; hands over the base address of each service by its name."""
    async with AsyncExitStack() as stack:
        start = _Starter(stack, listening)
        models = await start.providers()
        # Pages are named, not numbered: a fence refuses hosts that are only a number.
        pages = (await start.server(web_server(made_up_world(listening.now)))).replace("127.0.0.1", "localhost")
        world = made_up_world(listening.now, pages)
        search = await start.server(search_server(world, KEY))
        found = {"wikipedia": wikipedia_server(world), "wayback": wayback_server(world), **_numbers(listening.now)}
        addresses = {name: await start.server(server) for name, server in found.items()}
        yield {
            "openai": f"{models}/v1",
            "openrouter": f"{models}/api/v1",
            "anthropic": models,
            "google": models,
            **{engine: f"{search}/{engine}" for engine in ENGINES},
            "pages": pages,
            **addresses,
        }


class _Starter:
    """Starts servers one after the other, each on the next port."""

    def __init__(self, stack: AsyncExitStack, listening: Listening) -> None:
        self._stack = stack
        self._listening = listening
        self._next = listening.port_base

    def _port(self) -> int:
        port = self._next
        self._next += 1 if port else 0
        return port

    async def server(self, server: FakeServer) -> str:
        server.port, server.latency = self._port(), self._listening.latency
        return (await self._stack.enter_async_context(server)).url

    async def providers(self) -> str:
        fake = FakeProviders(arena, latency=self._listening.latency)
        await fake.start(self._port())
        self._stack.push_async_callback(fake.stop)
        return fake.url


def _numbers(now: datetime) -> dict[str, FakeServer]:
    today = now.date()
    return {
        "fred": FakeFred(fred_series(today), key=KEY, today=today).server(),
        "yahoo": FakeYahoo(shares(today)).server(),
        "dbnomics": FakeDbnomics(temperatures(today)).server(),
        "kalshi": FakeKalshi(kalshi_books(now)).having(kalshi_events(now)).server(),
        "manifold": FakeManifold(manifold_bets(now)).having(manifold_events(now)).server(),
        "polymarket": _polymarket(now),
        "metaculus": FakeMetaculus(metaculus_posts(now), token=KEY).having(metaculus_events(now)).server(),
        "prophet_arena": FakeArena(arena_events(now), key=KEY).server(),
    }


def _polymarket(now: datetime) -> FakeServer:
    """Prices of one market, and events beside it."""
    priced = FakePolymarket(polymarket_listings(now))
    listing = FakePolymarket({}).having(polymarket_events(now))

    def answer(request: Request) -> Response:
        path, query = POLYMARKET.get(request.path, "/gamma") + request.path, query_of(request)
        status, body = priced.answer(path, query)
        if status == NOT_FOUND or not body:
            status, body = listing.answer(path, query)
        return json_response(body, status)

    server = FakeServer()
    server.route("GET", "*", answer)
    return server
