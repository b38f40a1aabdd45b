"""Web series over real sockets."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from fakes.faults import ServerFault, inject
from foretell.data.http import AsyncHttpClient, HttpLimits
from foretell.data.series.series import FetchedSeries, WebSeries
from foretell.outgoing.client import Connections
from foretell.practice.server import PracticeServer
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef

QUICK = HttpLimits(attempts=3, wait_seconds=0.0, max_wait_seconds=1.0, total_seconds=5.0)
Make = Callable[[AsyncHttpClient, str], WebSeries]


class Asked:
    """Runs a source against a fake server and records the requests."""

    def __init__(self) -> None:
        self.server = PracticeServer()

    def __call__(
        self, server: PracticeServer, make: Make, series_id: str, as_of: AsOf, faults: list[ServerFault] | None = None
    ) -> FetchedSeries:
        self.server = server

        async def use(http: AsyncHttpClient) -> FetchedSeries:
            return await make(http, server.url).fetch_with_provenance(SeriesRef(provider="x", id=series_id), as_of)

        return asyncio.run(_served(server, use, faults or []))


async def _served(
    server: PracticeServer, use: Callable[[AsyncHttpClient], Awaitable[FetchedSeries]], faults: list[ServerFault]
) -> FetchedSeries:
    inject(server, *(faults or []))
    async with server, AsyncHttpClient(limits=QUICK, transport=Connections()) as http:
        return await use(http)


@pytest.fixture(scope="session")
def ask() -> Asked:
    return Asked()


@pytest.fixture(scope="session")
def edited() -> Callable[[Callable[[Any], None]], ServerFault]:
    """Return a fault that changes the JSON of a response."""

    def fault(change: Callable[[Any], None]) -> ServerFault:
        def spoil(good: Any) -> Any:
            body = json.loads(good.body)
            change(body)
            return replace(good, body=json.dumps(body).encode())

        return spoil

    return fault
