"""Market clients over real sockets, with servers that plant a canary wherever the future would show."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from fakes.faults import ServerFault, inject
from foretell.data.http import AsyncHttpClient, HttpLimits
from foretell.data.markets.kalshi import KalshiClient, KalshiEvents, KalshiPrices
from foretell.data.markets.listing import ListedEvent, ListingFilter, ListingReport, SkippedEntry
from foretell.data.markets.manifold import ManifoldClient, ManifoldEvents, ManifoldPrices
from foretell.data.markets.market import MarketRef, PricePoint
from foretell.data.markets.metaculus import MetaculusClient, MetaculusEvents, MetaculusPrices
from foretell.data.markets.polymarket import PolymarketClient, PolymarketEvents, PolymarketHosts, PolymarketPrices
from foretell.data.markets.prophet_arena import ProphetArenaClient, ProphetArenaListing
from foretell.data.settlements.kalshi import KalshiSettlements
from foretell.data.settlements.manifold import ManifoldSettlements
from foretell.data.settlements.metaculus import MetaculusSettlements
from foretell.data.settlements.polymarket import PolymarketSettlements
from foretell.data.settlements.prophet_arena import ProphetArenaSettlements
from foretell.outgoing.client import Connections
from foretell.practice.server import PracticeServer
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution

QUICK = HttpLimits(attempts=3, wait_seconds=0.0, max_wait_seconds=1.0, total_seconds=5.0)
CANARY = "canary-of-the-future"
KEY = "canary-key-77"
NOW = AsOf(at="2026-11-01T12:00:00Z", mode="live")
READERS: dict[str, tuple[Any, ...]] = {
    "kalshi": (KalshiEvents, KalshiSettlements, KalshiPrices),
    "manifold": (ManifoldEvents, ManifoldSettlements, ManifoldPrices),
    "metaculus": (MetaculusEvents, MetaculusSettlements, MetaculusPrices),
    "polymarket": (PolymarketEvents, PolymarketSettlements, PolymarketPrices),
    "prophet_arena": (ProphetArenaListing, ProphetArenaSettlements),
}


def client(platform: str, http: AsyncHttpClient, url: str, key: str = KEY) -> Any:
    """Return the platform's client for a test server, without rate limits and pauses."""
    if platform == "polymarket":
        hosts = PolymarketHosts(gamma=f"{url}/gamma", data=f"{url}/data", clob=f"{url}/clob")
        return PolymarketClient(http=http, hosts=hosts)
    if platform == "metaculus":
        return MetaculusClient(http=http, token=key, host=f"{url}/api", retry_seconds=0.0)
    if platform == "prophet_arena":
        return ProphetArenaClient(http=http, key=key, host=f"{url}/api/v1")
    if platform == "kalshi":
        return KalshiClient(http=http, host=f"{url}/trade-api/v2")
    return ManifoldClient(http=http, host=f"{url}/v0")


class Reader:
    """Reads one platform from a fake server, and remembers what was requested and what was skipped."""

    def __init__(self, platform: str) -> None:
        self.platform = platform
        self.server = PracticeServer()
        self.skipped: list[SkippedEntry] = []
        self.settled: list[Resolution] = []

    def run(
        self, fake: Any, use: Callable[[Any], Awaitable[Any]], faults: Sequence[ServerFault] = (), key: str = KEY
    ) -> Any:
        """Return the result of using the platform's client."""
        self.server = fake if isinstance(fake, PracticeServer) else fake.server()
        inject(self.server, *faults)

        async def served() -> Any:
            transport = Connections()
            async with self.server, AsyncHttpClient(limits=QUICK, transport=transport) as http:
                return await use(client(self.platform, http, self.server.url, key))

        return asyncio.run(served())

    def prices(self, fake: Any, market: str, as_of: AsOf, *, days: int = 60, **options: Any) -> list[PricePoint]:
        """Return a price history and check that nothing in it is after the cutoff."""
        ref = MarketRef(platform=self.platform, id=market)
        with logged_entries() as self.skipped:
            points = self.run(
                fake, lambda client: READERS[self.platform][2](client).prices(ref, as_of, days), **options
            )
        assert CANARY not in repr(points)
        assert all(as_of.admits(point.at) and 0 <= point.p <= 1 for point in points)
        assert [point.at.date() for point in points] == sorted({point.at.date() for point in points})
        return points

    def listing(
        self, fake: Any, *, faults: Sequence[ServerFault] = (), key: str = KEY, tournaments: Any = (), **wish: Any
    ) -> tuple[list[ListedEvent], ListingReport]:
        """Return what is listed, and the problems on the way."""

        async def use(client: Any) -> Any:
            options = {"tournaments": tournaments} if tournaments else {}
            events = READERS[self.platform][0](client, **options).events(ListingFilter(as_of=NOW, **wish))
            return await events.all(), events.ledger

        return self.run(fake, use, faults, key)

    def event(self, fake: Any, id: str, as_of: AsOf = NOW, key: str = KEY) -> ListedEvent:
        """Return one event."""
        return self.run(fake, lambda client: READERS[self.platform][0](client).event(id, as_of), key=key)

    def settle(
        self, fake: Any, questions: Sequence[Question], faults: Sequence[ServerFault] = ()
    ) -> dict[str, Resolution]:
        """Return the resolutions of the targets, by id."""

        async def use(client: Any) -> Any:
            source = READERS[self.platform][1](client)
            self.skipped = source.skipped
            return await source.settlements(questions)

        self.settled = self.run(fake, use, faults)
        assert all(resolution.provenance.startswith("http") for resolution in self.settled)
        return {resolution.target_id: resolution for resolution in self.settled}

    @property
    def reasons(self) -> dict[str, str]:
        """Return the reasons why targets were skipped, by id."""
        return {market.id: market.reason for market in self.skipped}


@contextmanager
def logged_entries() -> Iterator[list[SkippedEntry]]:
    """Yield the entries that are logged as skipped meanwhile."""
    entries: list[SkippedEntry] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            platform, id, reason = cast("tuple[str, str, str]", record.args)
            entries.append(SkippedEntry(platform=platform, id=id, reason=reason))

    log, listener = logging.getLogger("foretell.data.markets.listing"), Listener()
    level, log.disabled = log.level, False
    log.addHandler(listener)
    log.setLevel(logging.WARNING)
    try:
        yield entries
    finally:
        log.removeHandler(listener)
        log.setLevel(level)


def asked(id: str, *targets: str, due: Any = "2026-01-01") -> Question:
    """Return a question of a market platform."""
    named = tuple(Target(id=target) for target in targets or ("yes",))
    return Question(id=id, source=id.partition("/")[0], text="?", due=due, targets=named)


def edited(change: Callable[[Any], Any]) -> ServerFault:
    """Return a fault that changes the JSON of a response."""

    def spoil(good: Any) -> Any:
        body = json.loads(good.body)
        change(body)
        return replace(good, body=json.dumps(body).encode())

    return spoil
