"""Any value anywhere in a response is read, skipped, or refused with a clear error."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import inject
from fakes.market_reader import KEY, NOW, READERS, client
from fakes.markets import (
    FakeFred,
    FakeKalshi,
    FakeManifold,
    FakeMetaculus,
    FakePolymarket,
    FakeProphetArena,
    PolymarketListing,
)
from fakes.samples import (
    SampleCommunityPrediction,
    SampleManifoldAnswer,
    SampleManifoldMarket,
    SampleMetaculusQuestion,
    SamplePolymarketEvent,
    SamplePolymarketMarket,
    manifold_market_body,
    metaculus_post_body,
    polymarket_event_body,
    prophet_arena_body,
)
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.markets.listing import ListingFilter
from foretell.data.markets.market import MarketRef, PricesUnavailable
from foretell.data.series.acled import AcledSeries
from foretell.data.series.dbnomics import DbnomicsSeries
from foretell.data.series.fred import FredSeries
from foretell.data.series.open_meteo import OpenMeteoSeries
from foretell.data.series.series import SeriesUnavailable
from foretell.data.series.yahoo import YahooSeries
from foretell.data.service import ServiceConfig
from foretell.outgoing.client import Connections
from foretell.practice.markets.kalshi import (
    KalshiCatalogue,
    SampleKalshiBook,
    SampleKalshiEvent,
    SampleKalshiMarket,
    kalshi_event_body,
)
from foretell.practice.markets.manifold import ManifoldCatalogue, SampleManifoldBet
from foretell.practice.markets.metaculus import MetaculusCatalogue
from foretell.practice.markets.polymarket import PolymarketCatalogue
from foretell.practice.series import (
    PracticeAcled,
    PracticeDbnomics,
    PracticeOpenMeteo,
    PracticeYahoo,
    SampleConflictEvent,
    SampleDbnomicsSeries,
    SampleFredSeries,
    SampleFredValue,
    SampleShare,
    SampleShareSplit,
)
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef

PAST = AsOf.day("2026-02-10")
START = datetime(2026, 2, 8, 14, 30, tzinfo=UTC)
SECOND = int(START.timestamp())
QUICK = HttpLimits(attempts=1, total_seconds=5.0)
RUBBISH = st.sampled_from(
    [None, True, -1, 0.5, 10**400, 1e300, -1e300, 3e10, "", "x", "0.5", "9999-12-31", "0001-01-01", "2", [], [[]], {}]
)
Use = Callable[[AsyncHttpClient, str], Awaitable[Any]]


def served(fake: Any, use: Use, *faults: Any) -> None:
    async def main() -> None:
        server = fake.server()
        inject(server, *faults)
        transport = Connections()
        async with server, AsyncHttpClient(limits=QUICK, transport=transport) as http:
            await use(http, server)

    asyncio.run(main())


def spoiler(place: int, rubbish: Any) -> Callable[[Any], Any]:
    """Return a fault that replaces one value of a response."""

    def places(value: Any) -> list[tuple[Any, Any]]:
        keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
        return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]

    def spoil(good: Any) -> Any:
        body = json.loads(good.body)
        if spots := places(body):
            container, key = spots[place % len(spots)]
            container[key] = rubbish
        return replace(good, body=json.dumps(body).encode())

    return spoil


FRED = SampleFredSeries(observations=(SampleFredValue(day=date(2026, 1, 1), value=1.0, since=date(2026, 1, 2)),))
SHARE = SampleShare(
    sessions=((START, 5.0), (START + timedelta(days=1), None)),
    splits=(SampleShareSplit(at=START + timedelta(days=9), numerator=2, denominator=1),),
    quote=(START + timedelta(days=1), 6.0),
)
STATED = SampleDbnomicsSeries(values=((date(2026, 1, 1), 1.0), (date(2026, 1, 2), None)))
LISTED = PolymarketListing(slug="s", outcomes=("Yes", "No"), tokens=("1", "2"), trades={"1": ((SECOND, 0.3),)})
MARKET_PRICE = SampleMetaculusQuestion(
    title="?", id=1, history=(SampleCommunityPrediction(since=SECOND, centers=(0.3,)),)
)
WEATHER = PracticeOpenMeteo(lambda day: float(day.day), today=date(2026, 2, 20))
RIOT = SampleConflictEvent(id="IRQ1", day=date(2026, 2, 1), changed=START, kind="Riots")
NUMBERS: dict[str, tuple[Any, str, Any, str]] = {
    "fred": (FakeFred({"x": FRED}, key="k", today=date(2026, 3, 1)), "x", FredSeries, "/fred"),
    "yahoo": (PracticeYahoo({"x": SHARE}), "x", YahooSeries, ""),
    "dbnomics": (PracticeDbnomics({"x/y/z": STATED}), "x/y/z", DbnomicsSeries, ""),
    "fred, first figures": (FakeFred({"x": FRED}, key="k", today=date(2026, 3, 1)), "x/initial", FredSeries, "/fred"),
    "observed weather": (WEATHER, "observed/1,2/t_max", OpenMeteoSeries, ""),
    "forecast weather": (WEATHER, "forecast2/1,2/t_max", OpenMeteoSeries, ""),
    "acled": (PracticeAcled([RIOT], password=""), "Iraq/Riots", AcledSeries, ""),
    "kalshi": (FakeKalshi({"x": SampleKalshiBook(quotes=((SECOND, 0.2, 0.4),))}), "x", None, ""),
    "polymarket": (FakePolymarket({"x": LISTED}), "x", None, ""),
    "manifold": (FakeManifold({"x": (SampleManifoldBet(id="b", at_ms=SECOND * 1000, after=0.3),)}), "x", None, ""),
    "metaculus": (FakeMetaculus({"7": (MARKET_PRICE,)}, token=KEY), "7", None, ""),
}


@pytest.mark.parametrize("provider", list(NUMBERS))
@settings(max_examples=20)
@given(nth=st.integers(0, 2), place=st.integers(0, 10**6), rubbish=RUBBISH)
def test_malformed_series_and_prices_are_read_or_refused(provider: str, nth: int, place: int, rubbish: Any) -> None:
    fake, id, series, path = NUMBERS[provider]

    async def use(http: AsyncHttpClient, server: Any) -> None:
        if series is not None:
            config = ServiceConfig(http=http, key="k", address=f"{server.url}{path}")
            fetched = await series(config).fetch(SeriesRef(provider=provider, id=id), PAST)
            assert all(PAST.admits_day(day) for day in fetched.days.tolist())
        else:
            source = READERS[provider][2](client(provider, http, server.url))
            points = await source.prices(MarketRef(platform=provider, id=id), PAST)
            assert all(PAST.admits(point.at) and 0 <= point.p <= 1 for point in points)

    with contextlib.suppress(SourceError, SeriesUnavailable, PricesUnavailable):
        served(fake, use, *[*[lambda good: good] * nth, spoiler(place, rubbish)])


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
EVENT = SampleKalshiEvent(
    ticker="KXA-1",
    series="KXA",
    title="?",
    exclusive=True,
    markets=(
        SampleKalshiMarket(ticker="KXA-1-B", label="B", bid=0.4, ask=0.5, last=0.45, volume=10),
        SampleKalshiMarket(ticker="KXA-1-C", label="C", status="finalized", result="no", paid=0.0),
    ),
)
GROUP = SamplePolymarketEvent(
    id="1",
    title="?",
    tags=("X",),
    series="s",
    markets=(
        SamplePolymarketMarket(condition=A, question="A?", label="A", bid=0.4, ask=0.5, last=0.45),
        SamplePolymarketMarket(condition=B, question="B?", label="B", closed=True, prices=("0", "1"), stage="resolved"),
    ),
)
POST = metaculus_post_body(
    2,
    "?",
    SampleMetaculusQuestion(id=21, title="?", label="a", centers=(0.4,)),
    SampleMetaculusQuestion(id=22, title="?", label="b", status="resolved", resolution="yes"),
)
RACE = prophet_arena_body("race", "?", {"Ann": None, "Bob": "no"}, crowd={"Ann": 0.3})
PLATFORMS: dict[str, tuple[Any, str]] = {
    "kalshi dollars": (FakeKalshi({}).having(KalshiCatalogue([kalshi_event_body(EVENT, "dollars")])), "KXA-1"),
    "kalshi cents": (FakeKalshi({}).having(KalshiCatalogue([kalshi_event_body(EVENT, "cents")])), "KXA-1"),
    "polymarket": (FakePolymarket({}).having(PolymarketCatalogue([polymarket_event_body(GROUP)])), "1"),
    "manifold": (FakeManifold({}).having(ManifoldCatalogue([manifold_market_body(CHOICE)])), "choice0001"),
    "metaculus": (FakeMetaculus({}, token=KEY).having(MetaculusCatalogue([POST])), "2"),
    "prophet_arena": (FakeProphetArena([RACE], key=KEY), "race"),
}


def readers(platform: str, http: AsyncHttpClient, url: str) -> tuple[Any, Any]:
    name = platform.split()[0]
    platform_client = client(name, http, url)
    return READERS[name][0](platform_client), READERS[name][1](platform_client)


@pytest.mark.parametrize("platform", list(PLATFORMS))
@settings(max_examples=20)
@given(nth=st.integers(0, 1), place=st.integers(0, 10**6), rubbish=RUBBISH, whole=st.booleans())
def test_malformed_catalogues_and_results_are_read_or_refused(
    platform: str, nth: int, place: int, rubbish: Any, whole: bool
) -> None:
    fake, id = PLATFORMS[platform]
    spoil = spoiler(place, rubbish)

    async def use(http: AsyncHttpClient, server: Any) -> None:
        source, settlement = readers(platform, http, server.url)
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

    served(fake, use)


@pytest.mark.parametrize("platform", list(PLATFORMS))
def test_the_unchanged_responses_are_read(platform: str) -> None:
    fake, id = PLATFORMS[platform]

    async def use(http: AsyncHttpClient, server: Any) -> None:
        source, settlement = readers(platform, http, server.url)
        listing = source.events(ListingFilter(as_of=NOW))
        (event,) = await listing.all()
        assert event == await source.event(id, NOW)
        assert listing.ledger.notes() == ()
        assert settlement.platform == source.platform == event.platform
        assert {resolution.outcome for resolution in await settlement.settlements([event.question])} <= {0, 1}

    served(fake, use)
