"""Markets asked over real sockets, by servers that plant a canary wherever the future would show."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from fakes.faults import ServerFault, inject
from foretell.data.http import AsyncHttpClient, HttpLimits
from foretell.data.markets.prices import MarketRef, PricePoint, PriceSource
from foretell.practice.server import PracticeServer
from foretell.questions.as_of import AsOf

QUICK = HttpLimits(attempts=3, wait_seconds=0.0, max_wait_seconds=1.0, total_seconds=5.0)
CANARY = "canary-of-the-future"


class Asked:
    """Runs something against a fake server and remembers what was requested."""

    def __init__(self) -> None:
        self.server = PracticeServer()

    def __call__(
        self,
        server: PracticeServer,
        make: Callable[[AsyncHttpClient, str], PriceSource],
        market: str,
        as_of: AsOf,
        *,
        days: int = 60,
        faults: list[ServerFault] | None = None,
    ) -> list[PricePoint]:
        async def use(http: AsyncHttpClient, url: str) -> list[PricePoint]:
            source = make(http, url)
            return await source.prices(MarketRef(platform=source.platform, id=market), as_of, days)

        points = self.run(server, use, faults=faults)
        assert CANARY not in repr(points)
        assert all(as_of.admits(point.at) and 0 <= point.p <= 1 for point in points)
        assert [point.at.date() for point in points] == sorted({point.at.date() for point in points})
        return points

    def run(
        self,
        server: PracticeServer,
        use: Callable[[AsyncHttpClient, str], Awaitable[Any]],
        *,
        faults: list[ServerFault] | None = None,
    ) -> Any:
        self.server = server
        inject(server, *(faults or []))

        async def served() -> Any:
            transport = httpx2.AsyncHTTPTransport(verify=False)
            async with server, AsyncHttpClient(limits=QUICK, transport=transport) as http:
                return await use(http, server.url)

        return asyncio.run(served())


@pytest.fixture(scope="session")
def ask() -> Asked:
    return Asked()


@pytest.fixture(scope="session")
def canary() -> str:
    return CANARY


@pytest.fixture(scope="session")
def edited() -> Callable[[Callable[[Any], None]], ServerFault]:
    """A fault that changes the JSON of an answer."""

    def fault(change: Callable[[Any], None]) -> ServerFault:
        def spoil(good: Any) -> Any:
            body = json.loads(good.body)
            change(body)
            return replace(good, body=json.dumps(body).encode())

        return spoil

    return fault
