"""All practice services at once, read by the clients that runs use."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from foretell.data.http import AsyncHttpClient, HttpLimits
from foretell.data.markets.market import MarketRef
from foretell.data.service_limits import ServiceAccess
from foretell.plugins import PAIR
from foretell.practice.services import (
    DBNOMICS_ID,
    FRED_ID,
    KALSHI_ID,
    KEY,
    MANIFOLD_ID,
    METACULUS_ID,
    POLYMARKET_ID,
    PORTS,
    TICKER,
    ServiceOptions,
    all_services,
)
from foretell.practice.web import sample_world
from foretell.questions.as_of import AsOf, instant
from foretell.questions.question import SeriesRef
from foretell.runs.services import SEARCH_ENGINES, Services, open_services
from foretell.runs.settings import KEYS, Settings

T = TypeVar("T")
NOW = instant("2026-11-01T15:00:00Z")
LIVE = AsOf(at=NOW, mode="live")
JULY = AsOf.day("2026-07-01")
QUICK = HttpLimits(attempts=1, wait_seconds=0.0, total_seconds=10.0)
ACCESS = ServiceAccess(contact="me@example.org")


def with_services(use: Callable[[Services, dict[str, str]], Awaitable[T]], *engines: str) -> T:
    async def main() -> T:
        async with (
            all_services(ServiceOptions(now=NOW)) as addresses,
            AsyncHttpClient(limits=QUICK, access=ACCESS) as client,
        ):
            keys = {part: KEY for names in KEYS.values() for name in names for part in name.split(PAIR)}
            settings = Settings(home=Path(), keys=keys, addresses=addresses)
            return await use(open_services(settings, client, engines), addresses)

    return asyncio.run(main())


@pytest.mark.parametrize("engine", [name for name in SEARCH_ENGINES if name != "local"])
def test_every_engine_finds_pages_of_the_practice_site(engine: str):
    async def use(services: Services, addresses: dict[str, str]) -> list[str]:
        assert services.engine is not None
        hits = await services.engine.search("central bank rate", LIVE)
        assert all(hit.url.startswith(addresses["pages"]) for hit in hits)
        return [hit.title for hit in hits]

    assert "Norges Bank holds rates" in with_services(use, engine)


def test_live_and_archived_pages_and_articles_are_served():
    async def use(services: Services, addresses: dict[str, str]) -> None:
        url = f"{addresses['pages']}/rates-held"
        assert url.startswith("http://localhost:")
        assert "kept its rate at four" in (await services.live_pages.fetch(url, LIVE)).text
        assert "First version." in (await services.stored_pages.fetch(url, JULY)).text
        assert "held its rate" in (await services.wikipedia.revision("Norges Bank", JULY)).wikitext

    with_services(use)


@pytest.mark.parametrize(("provider", "id"), [("fred", FRED_ID), ("yfinance", TICKER), ("dbnomics", DBNOMICS_ID)])
def test_every_series_ends_yesterday_or_at_the_cutoff(provider: str, id: str):
    async def use(services: Services, _: dict[str, str]) -> tuple[str, str]:
        ref = SeriesRef(provider=provider, id=id)
        live, past = await services.series.fetch(ref, LIVE), await services.series.fetch(ref, JULY)
        assert len(live.days) > 600
        return str(live.days[-1]), str(past.days[-1])

    live, past = with_services(use)
    assert live in ("2026-10-30", "2026-10-31")  # A Friday; a Saturday for daily series.
    assert "2026-06-28" <= past <= "2026-07-01"


@pytest.mark.parametrize(
    ("platform", "id"),
    [("kalshi", KALSHI_ID), ("manifold", MANIFOLD_ID), ("polymarket", POLYMARKET_ID), ("metaculus", METACULUS_ID)],
)
def test_every_market_serves_its_prices(platform: str, id: str):
    async def use(services: Services, _: dict[str, str]) -> list[tuple[str, float]]:
        points = await services.prices[platform].prices(MarketRef(platform=platform, id=id), LIVE, 30)
        return [(point.at.date().isoformat(), point.p) for point in points]

    prices = with_services(use)
    assert len(prices) >= 28
    assert 0.2 < dict(prices)["2026-10-20"] < 0.6


def test_services_use_consecutive_ports_and_a_latency():
    async def main() -> None:
        first = _free_ports()
        async with all_services(ServiceOptions(now=NOW, port=first, latency=0.01)) as addresses:
            ports = {int(url.split(":")[2].split("/")[0]) for url in addresses.values()}
            assert ports == set(range(first, first + PORTS))
            async with AsyncHttpClient(limits=QUICK) as client:
                assert (await client.get(f"{addresses['pages']}/rates-held")).status == 200
        with pytest.raises(OSError, match=r"refused|fail"):
            await asyncio.open_connection("127.0.0.1", first)

    asyncio.run(main())


def _free_ports() -> int:
    for first in range(21000, 60000, 97):
        try:
            for port in range(first, first + PORTS):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise AssertionError("no free ports in a row")


def test_the_sample_world_is_the_same_on_another_site():
    here, there = sample_world(NOW), sample_world(NOW, "http://localhost:1")
    assert [page.path for page in here.pages] == [page.path for page in there.pages]
    assert all(page.url == f"http://localhost:1{page.path}" for page in there.pages)
    assert all(page.published is None or page.published <= NOW for page in here.pages)
