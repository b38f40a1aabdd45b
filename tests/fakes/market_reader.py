"""Markets asked over real sockets, by servers that plant a canary wherever the future would show."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from fakes.faults import ServerFault, inject
from foretell.data import AsyncHttpClient, HttpLimits
from foretell.data.markets import (
    KalshiClient,
    KalshiEvents,
    KalshiPrices,
    ListedEvent,
    ListingFilter,
    ListingReport,
    ManifoldClient,
    ManifoldEvents,
    ManifoldPrices,
    MarketRef,
    MetaculusClient,
    MetaculusEvents,
    MetaculusPrices,
    PolymarketClient,
    PolymarketEvents,
    PolymarketHosts,
    PolymarketPrices,
    PricePoint,
    ProphetArenaClient,
    ProphetArenaListing,
    SkippedEntry,
)
from foretell.data.settlements import (
    KalshiSettlements,
    ManifoldSettlements,
    MetaculusSettlements,
    PolymarketSettlements,
    ProphetArenaSettlements,
)
from foretell.outgoing import Connections
from foretell.practice import PracticeServer
from foretell.questions import AsOf, Question, Resolution, Target

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
    """The platform's client against a server of ours, in no hurry and with no pause."""
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
        """What comes of using the platform's client."""
        self.server = fake if isinstance(fake, PracticeServer) else fake.server()
        inject(self.server, *faults)

        async def served() -> Any:
            transport = Connections()
            async with self.server, AsyncHttpClient(limits=QUICK, transport=transport) as http:
                return await use(client(self.platform, http, self.server.url, key))

        return asyncio.run(served())

    def prices(self, fake: Any, market: str, as_of: AsOf, *, days: int = 60, **options: Any) -> list[PricePoint]:
        """A history, of which nothing may be after the cutoff."""
        ref, self.skipped = MarketRef(platform=self.platform, id=market), []
        told = {} if self.platform == "metaculus" else {"tell": self.skipped.append}
        points = self.run(fake, lambda one: READERS[self.platform][2](one, **told).prices(ref, as_of, days), **options)
        assert CANARY not in repr(points)
        assert all(as_of.admits(point.at) and 0 <= point.p <= 1 for point in points)
        assert [point.at.date() for point in points] == sorted({point.at.date() for point in points})
        return points

    def listing(
        self, fake: Any, *, faults: Sequence[ServerFault] = (), key: str = KEY, tournaments: Any = (), **wish: Any
    ) -> tuple[list[ListedEvent], ListingReport]:
        """What is listed, and what was met on the way."""

        async def use(one: Any) -> Any:
            options = {"tournaments": tournaments} if tournaments else {}
            found = READERS[self.platform][0](one, **options).events(ListingFilter(as_of=NOW, **wish))
            return await found.all(), found.ledger

        return self.run(fake, use, faults, key)

    def event(self, fake: Any, id: str, as_of: AsOf = NOW, key: str = KEY) -> ListedEvent:
        """One event."""
        return self.run(fake, lambda one: READERS[self.platform][0](one).event(id, as_of), key=key)

    def settle(
        self, fake: Any, questions: Sequence[Question], faults: Sequence[ServerFault] = ()
    ) -> dict[str, Resolution]:
        """How the targets came out, by id."""
        self.skipped = []

        def use(one: Any) -> Any:
            return READERS[self.platform][1](one, tell=self.skipped.append).settlements(questions)

        self.settled = self.run(fake, use, faults)
        assert all(one.provenance.startswith("http") for one in self.settled)
        return {one.target_id: one for one in self.settled}

    @property
    def reasons(self) -> dict[str, str]:
        """Why targets were skipped."""
        return {one.id: one.reason for one in self.skipped}


def asked(id: str, *targets: str, due: Any = "2026-01-01") -> Question:
    """A question of a market platform."""
    named = tuple(Target(id=target) for target in targets or ("yes",))
    return Question(id=id, source=id.partition("/")[0], text="?", due=due, targets=named)


def edited(change: Callable[[Any], Any]) -> ServerFault:
    """A fault that changes the JSON of an answer."""

    def spoil(good: Any) -> Any:
        body = json.loads(good.body)
        change(body)
        return replace(good, body=json.dumps(body).encode())

    return spoil
