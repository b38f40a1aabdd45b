"""Whatever stands anywhere in a catalogue's answer: it is read, skipped, or refused with a clear error."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import inject
from fakes.markets import FakeKalshi, FakeManifold, FakeMetaculus, FakePolymarket, FakeProphetArena
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.markets.kalshi import KalshiClient, KalshiEvents
from foretell.data.markets.listing import ListingFilter
from foretell.data.markets.manifold import ManifoldClient, ManifoldEvents
from foretell.data.markets.metaculus import MetaculusClient, MetaculusEvents
from foretell.data.markets.polymarket import PolymarketClient, PolymarketEvents, PolymarketHosts
from foretell.data.markets.prophet_arena import ProphetArenaClient, ProphetArenaListing
from foretell.data.settlements.kalshi import KalshiSettlements
from foretell.data.settlements.manifold import ManifoldSettlements
from foretell.data.settlements.metaculus import MetaculusSettlements
from foretell.data.settlements.polymarket import PolymarketSettlements
from foretell.data.settlements.prophet_arena import ProphetArenaSettlements
from foretell.practice.markets.kalshi import KalshiCatalogue, SampleKalshiEvent, SampleKalshiMarket, kalshi_event_body
from foretell.practice.markets.manifold import (
    ManifoldCatalogue,
    SampleManifoldAnswer,
    SampleManifoldMarket,
    manifold_market_body,
)
from foretell.practice.markets.metaculus import MetaculusCatalogue, SampleMetaculusQuestion, metaculus_post_body
from foretell.practice.markets.polymarket import (
    PolymarketCatalogue,
    SamplePolymarketEvent,
    SamplePolymarketMarket,
    polymarket_event_body,
)
from foretell.practice.markets.prophet_arena import prophet_arena_body
from foretell.questions.as_of import AsOf

NOW = AsOf(at="2026-11-01T12:00:00Z", mode="live")
QUICK = HttpLimits(attempts=1, total_seconds=5.0)
FAST = 1e5
A, B = (f"0x{digit * 64}" for digit in "ab")
CHOICE = SampleManifoldMarket(
    id="choice0001",
    question="Who?",
    kind="MULTIPLE_CHOICE",
    answers=(
        SampleManifoldAnswer(id="annanswer1", text="Ann", p=0.7),
        SampleManifoldAnswer(id="bobanswer1", text="Bob", p=0.3, resolution="NO"),
    ),
)
MARKETS = (
    SampleKalshiMarket(ticker="KXA-1-B", label="B", bid=0.4, ask=0.5, last=0.45, volume=10),
    SampleKalshiMarket(ticker="KXA-1-C", label="C", status="finalized", result="no", paid=0.0),
)
BINARIES = (
    SamplePolymarketMarket(condition=A, question="A?", label="A", bid=0.4, ask=0.5, last=0.45),
    SamplePolymarketMarket(condition=B, question="B?", label="B", closed=True, prices=("0", "1"), stage="resolved"),
)
ASKED = (
    SampleMetaculusQuestion(id=21, title="?", label="a", centers=(0.4,)),
    SampleMetaculusQuestion(id=22, title="?", label="b", status="resolved", resolution="yes"),
)


def kalshi(http: AsyncHttpClient, url: str) -> Any:
    client = KalshiClient(http=http, host=url, per_second=FAST)
    return KalshiEvents(client), KalshiSettlements(client)


def polymarket(http: AsyncHttpClient, url: str) -> Any:
    client = PolymarketClient(http=http, hosts=PolymarketHosts(gamma=f"{url}/gamma"), per_second=FAST)
    return PolymarketEvents(client), PolymarketSettlements(client)


def manifold(http: AsyncHttpClient, url: str) -> Any:
    client = ManifoldClient(http=http, host=url, per_second=FAST)
    return ManifoldEvents(client), ManifoldSettlements(client)


def metaculus(http: AsyncHttpClient, url: str) -> Any:
    client = MetaculusClient(http=http, host=url, token="t", per_second=FAST, retry_seconds=0.0)
    return MetaculusEvents(client), MetaculusSettlements(client)


def arena(http: AsyncHttpClient, url: str) -> Any:
    client = ProphetArenaClient(http=http, host=url, key="k", per_second=FAST)
    return ProphetArenaListing(client), ProphetArenaSettlements(client)


def event(schema: Any) -> Any:
    whole = SampleKalshiEvent(ticker="KXA-1", series="KXA", title="?", exclusive=True, markets=MARKETS)
    return FakeKalshi({}).having(KalshiCatalogue([kalshi_event_body(whole, schema)]))


GROUP = polymarket_event_body(SamplePolymarketEvent(id="1", title="?", tags=("X",), series="s", markets=BINARIES))
POST = metaculus_post_body(2, "?", *ASKED)
PLATFORMS: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "kalshi, dollars": (kalshi, event("dollars"), "KXA-1"),
    "kalshi, cents": (kalshi, event("cents"), "KXA-1"),
    "polymarket": (polymarket, FakePolymarket({}).having(PolymarketCatalogue([GROUP])), "1"),
    "manifold": (
        manifold,
        FakeManifold({}).having(ManifoldCatalogue([manifold_market_body(CHOICE)])),
        "choice0001",
    ),
    "metaculus": (metaculus, FakeMetaculus({}, token="t").having(MetaculusCatalogue([POST])), "2"),
    "prophet_arena": (
        arena,
        FakeProphetArena(
            [
                prophet_arena_body(
                    "race", "?", {"Ann": None, "Bob": "no"}, windows=[{"taken_at": "2026-10-01", "crowd": {"Ann": 0.3}}]
                )
            ],
            key="k",
        ),
        "race",
    ),
}
RUBBISH = st.sampled_from(
    [None, True, -1, 0.5, 10**400, 1e300, -1e300, 3e10, "", "x", "0.5", "9999-12-31", "0001-01-01", "2", [], [[]], {}]
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of the answer with every key in it."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


@pytest.mark.parametrize("platform", list(PLATFORMS))
@settings(deadline=None, max_examples=25)
@given(nth=st.integers(0, 1), place=st.integers(0, 10**6), rubbish=RUBBISH, whole=st.booleans())
def test_rubbish_anywhere(platform: str, nth: int, place: int, rubbish: Any, whole: bool) -> None:
    make, fake, id = PLATFORMS[platform]

    def spoil(good: Any) -> Any:
        body = json.loads(good.body)
        found = places(body)
        container, key = found[place % len(found)]
        container[key] = rubbish
        return replace(good, body=json.dumps(body).encode())

    async def use() -> None:
        server = fake.server()
        transport = httpx2.AsyncHTTPTransport(verify=False)
        async with server, AsyncHttpClient(limits=QUICK, transport=transport) as http:
            source, settlement = make(http, server.url)
            question = (await source.event(id, NOW)).question
            for reading in (
                lambda: source.event(id, NOW),
                lambda: source.events(ListingFilter(as_of=NOW)).all(),
                lambda: settlement.settlements([question]),
            ):
                inject(server, *([spoil] * 2 if whole else [*[lambda good: good] * nth, spoil]))
                with contextlib.suppress(SourceError):
                    await reading()
                inject(server)

    asyncio.run(use())


@pytest.mark.parametrize("platform", list(PLATFORMS))
def test_unspoilt_they_are_read(platform: str) -> None:
    make, fake, id = PLATFORMS[platform]

    async def use() -> None:
        server = fake.server()
        transport = httpx2.AsyncHTTPTransport(verify=False)
        async with server, AsyncHttpClient(limits=QUICK, transport=transport) as http:
            source, settlement = make(http, server.url)
            listing = source.events(ListingFilter(as_of=NOW))
            (found,) = await listing.all()
            assert found == await source.event(id, NOW)
            assert listing.ledger.notes() == ()
            assert settlement.platform == source.platform == found.platform
            assert {one.outcome for one in await settlement.settlements([found.question])} <= {0, 1}

    asyncio.run(use())
