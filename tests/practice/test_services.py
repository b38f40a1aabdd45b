"""All fakes at once, asked by the real sources that a run is equipped with."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from foretell.data import AsyncHttpClient, HttpLimits, ServiceAccess
from foretell.data.markets import MarketRef
from foretell.plugins import PAIR
from foretell.practice import (
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
    sample_world,
)
from foretell.questions import AsOf, SeriesRef, instant
from foretell.runs import KEYS, SEARCH_ENGINES, Services, Settings, open_services

T = TypeVar("T")
NOW = instant("2026-11-01T15:00:00Z")
LIVE = AsOf(at=NOW, mode="live")
JULY = AsOf.day("2026-07-01")
QUICK = HttpLimits(attempts=1, wait_seconds=0.0, total_seconds=10.0)
ACCESS = ServiceAccess(contact="me@example.org")


def equipped(use: Callable[[Services, dict[str, str]], Awaitable[T]], *engines: str) -> T:
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
def test_every_engine_finds_pages_of_the_fake_site(engine: str):
    async def use(equipment: Services, addresses: dict[str, str]) -> list[str]:
        assert equipment.engine is not None
        hits = await equipment.engine.search("central bank rate", LIVE)
        assert all(hit.url.startswith(addresses["pages"]) for hit in hits)
        return [hit.title for hit in hits]

    assert "Norges Bank holds rates" in equipped(use, engine)


def test_pages_live_and_stored_and_articles():
    async def use(equipment: Services, addresses: dict[str, str]) -> None:
        url = f"{addresses['pages']}/rates-held"
        assert url.startswith("http://localhost:")
        assert "kept its rate at four" in (await equipment.live_pages.fetch(url, LIVE)).text
        assert "First version." in (await equipment.stored_pages.fetch(url, JULY)).text
        assert "held its rate" in (await equipment.wikipedia.revision("Norges Bank", JULY)).wikitext

    equipped(use)


@pytest.mark.parametrize(("provider", "id"), [("fred", FRED_ID), ("yfinance", TICKER), ("dbnomics", DBNOMICS_ID)])
def test_every_series_ends_yesterday_or_at_the_cutoff(provider: str, id: str):
    async def use(equipment: Services, _: dict[str, str]) -> tuple[str, str]:
        ref = SeriesRef(provider=provider, id=id)
        live, past = await equipment.series.fetch(ref, LIVE), await equipment.series.fetch(ref, JULY)
        assert len(live.days) > 600
        return str(live.days[-1]), str(past.days[-1])

    live, past = equipped(use)
    assert live in ("2026-10-30", "2026-10-31")  # A Friday; a Saturday for what is measured every day.
    assert "2026-06-28" <= past <= "2026-07-01"


@pytest.mark.parametrize(
    ("platform", "id"),
    [("kalshi", KALSHI_ID), ("manifold", MANIFOLD_ID), ("polymarket", POLYMARKET_ID), ("metaculus", METACULUS_ID)],
)
def test_every_market_has_the_same_prices(platform: str, id: str):
    async def use(equipment: Services, _: dict[str, str]) -> list[tuple[str, float]]:
        points = await equipment.prices[platform].prices(MarketRef(platform=platform, id=id), LIVE, 30)
        return [(point.at.date().isoformat(), point.p) for point in points]

    found = equipped(use)
    assert len(found) >= 28
    assert 0.2 < dict(found)["2026-10-20"] < 0.6


def test_ports_in_a_row_and_an_answer_that_takes_its_time():
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


def test_the_world_moves_to_another_site_and_stays_the_same():
    here, there = sample_world(NOW), sample_world(NOW, "http://localhost:1")
    assert [page.path for page in here.pages] == [page.path for page in there.pages]
    assert all(page.url == f"http://localhost:1{page.path}" for page in there.pages)
    assert all(page.published is None or page.published <= NOW for page in here.pages)
