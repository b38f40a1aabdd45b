"""The practice world: every outside service at once, on this machine."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, repeat

from foretell.practice.markets.kalshi import PracticeKalshi
from foretell.practice.markets.manifold import PracticeManifold
from foretell.practice.markets.metaculus import MetaculusInbox, PracticeMetaculus
from foretell.practice.markets.polymarket import PracticePolymarket
from foretell.practice.markets.prophet_arena import PracticeProphetArena
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
    polymarket_events,
    polymarket_trades,
    sample_world,
    shares,
    temperatures,
)
from foretell.practice.search import search_server
from foretell.practice.series import PracticeDbnomics, PracticeFred, PracticeYahoo
from foretell.practice.server import PracticeServer, PracticeService, ServerResponse, json_response
from foretell.practice.web import wayback_server, web_server, wikipedia_server

KEY = "practice"
"""Taken by every service that wants a key."""
ENGINES = ("brave", "exa", "tavily", "serper", "asknews", "gdelt")
PORTS = 13
"""Servers that are started: requests are paced by host and port, so every service has its own."""
STOP = "/practice/stop"


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """How the services are started."""

    now: datetime
    """The day it is in the practice world."""
    port: int = 0
    """The first of `PORTS` ports in a row; 0 takes free ones."""
    latency: float = 0.0
    """Seconds before every answer."""


@asynccontextmanager
async def all_services(
    options: ServiceOptions, stop: Callable[[], None] | None = None
) -> AsyncGenerator[dict[str, str]]:
    """Serves while in use; hands over the base address of each service by its name.

    Args:
        options: How they are started.
        stop: Called when somebody posts to `STOP` at the address of the models.
    """
    ports = count(options.port) if options.port else repeat(0)
    async with AsyncExitStack() as stack:

        async def start(server: PracticeServer) -> str:
            server.port, server.latency = next(ports), options.latency
            return (await stack.enter_async_context(server)).url

        provider = PracticeModels(arena_script)
        provider.route("POST", STOP, lambda _request: _stopped(stop))
        models = await start(provider)
        # Pages are named, not numbered: the fence refuses hosts that are only a number.
        pages = (await start(web_server(sample_world(options.now)))).replace("127.0.0.1", "localhost")
        world = sample_world(options.now, pages)
        search = await start(search_server(world, KEY))
        others = {"wikipedia": wikipedia_server(world), "wayback": wayback_server(world)}
        others |= {name: service.server() for name, service in _data_services(options.now).items()}
        yield {
            "openai": f"{models}/v1",
            "openrouter": f"{models}/api/v1",
            "anthropic": models,
            "google": models,
            **{engine: f"{search}/{engine}" for engine in ENGINES},
            "pages": pages,
            **{name: await start(server) for name, server in others.items()},
        }


def _stopped(stop: Callable[[], None] | None) -> ServerResponse:
    if stop is None:
        return json_response({"error": "this world is stopped by whoever started it"}, 405)
    stop()
    return json_response({"stopped": True})


def _data_services(now: datetime) -> dict[str, PracticeService]:
    """Series and markets. Their data begin and end around a moment; inboxes go by the real clock."""
    today = now.date()
    inbox = MetaculusInbox(now=lambda: datetime.now(UTC))
    return {
        "fred": PracticeFred(fred_series(today), key=KEY, today=today),
        "yahoo": PracticeYahoo(shares(today)),
        "dbnomics": PracticeDbnomics(temperatures(today)),
        "kalshi": PracticeKalshi(kalshi_books(now), catalogue=kalshi_events(now)),
        "manifold": PracticeManifold(manifold_bets(now), catalogue=manifold_events(now)),
        "polymarket": PracticePolymarket(polymarket_events(now), polymarket_trades(now)),
        "metaculus": PracticeMetaculus(metaculus_events(now), token=KEY, inbox=inbox),
        "prophet_arena": PracticeProphetArena(arena_events(now), key=KEY),
    }
