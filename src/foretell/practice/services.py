"""Every outside service at once, on this machine: models, search, pages, archives, series and markets."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from foretell.practice.markets.faults import query_of
from foretell.practice.markets.kalshi import FakeKalshi
from foretell.practice.markets.manifold import FakeManifold
from foretell.practice.markets.metaculus import FakeMetaculus
from foretell.practice.markets.polymarket import FakePolymarket
from foretell.practice.markets.prophet_arena import FakeProphetArena
from foretell.practice.models.scripts import arena_script
from foretell.practice.models.server import PracticeModels
from foretell.practice.sample_data import (
    arena_events,
    fred_series,
    kalshi_books,
    kalshi_events,
    manifold_bets,
    manifold_events,
    metaculus_events,
    metaculus_posts,
    polymarket_events,
    polymarket_listings,
    sample_world,
    shares,
    temperatures,
)
from foretell.practice.search import search_server
from foretell.practice.series import FakeDbnomics, FakeFred, FakeYahoo
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse, json_response
from foretell.practice.web import wayback_server, web_server, wikipedia_server

KEY = "fake"
"""Taken by every service that wants a key."""
ENGINES = ("brave", "exa", "tavily", "serper", "asknews", "gdelt")
POLYMARKET = {"/v2/prices-history": "/data", "/prices-history": "/clob"}
"""The three services of Polymarket on one address, as a proxy would offer them; all else is for the first."""
NOT_FOUND = 404
PORTS = 13
"""Servers that are started."""


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """How the services are started."""

    now: datetime
    """The day it is in the made-up world."""
    port_base: int = 0
    """The first of `PORTS` ports in a row; 0 takes free ones."""
    latency: float = 0.0
    """Seconds before every answer."""


@asynccontextmanager
async def all_services(listening: ServiceOptions) -> AsyncGenerator[dict[str, str]]:
    """Serves while in use; hands over the base address of each service by its name."""
    async with AsyncExitStack() as stack:
        start = _Starter(stack, listening)
        models = await start.providers()
        # Pages are named, not numbered: a fence refuses hosts that are only a number.
        pages = (await start.server(web_server(sample_world(listening.now)))).replace("127.0.0.1", "localhost")
        world = sample_world(listening.now, pages)
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

    def __init__(self, stack: AsyncExitStack, listening: ServiceOptions) -> None:
        self._stack = stack
        self._listening = listening
        self._next = listening.port_base

    def _port(self) -> int:
        port = self._next
        self._next += 1 if port else 0
        return port

    async def server(self, server: PracticeServer) -> str:
        server.port, server.latency = self._port(), self._listening.latency
        return (await self._stack.enter_async_context(server)).url

    async def providers(self) -> str:
        fake = PracticeModels(arena_script, latency=self._listening.latency)
        await fake.start(self._port())
        self._stack.push_async_callback(fake.stop)
        return fake.url


def _numbers(now: datetime) -> dict[str, PracticeServer]:
    today = now.date()
    return {
        "fred": FakeFred(fred_series(today), key=KEY, today=today).server(),
        "yahoo": FakeYahoo(shares(today)).server(),
        "dbnomics": FakeDbnomics(temperatures(today)).server(),
        "kalshi": FakeKalshi(kalshi_books(now)).having(kalshi_events(now)).server(),
        "manifold": FakeManifold(manifold_bets(now)).having(manifold_events(now)).server(),
        "polymarket": _polymarket(now),
        "metaculus": FakeMetaculus(metaculus_posts(now), token=KEY).having(metaculus_events(now)).server(),
        "prophet_arena": FakeProphetArena(arena_events(now), key=KEY).server(),
    }


def _polymarket(now: datetime) -> PracticeServer:
    """Prices of one market, and events beside it."""
    priced = FakePolymarket(polymarket_listings(now))
    listing = FakePolymarket({}).having(polymarket_events(now))

    def answer(request: ServerRequest) -> ServerResponse:
        path, query = POLYMARKET.get(request.path, "/gamma") + request.path, query_of(request)
        status, body = priced.answer(path, query)
        if status == NOT_FOUND or not body:
            status, body = listing.answer(path, query)
        return json_response(body, status)

    server = PracticeServer()
    server.route("GET", "*", answer)
    return server
