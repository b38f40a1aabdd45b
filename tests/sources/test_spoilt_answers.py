"""Any field of any answer replaced by rubbish: the number sources answer, refuse or complain, and never crash."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import inject
from fakes.markets import FakeFred, FakeKalshi, FakeManifold, FakeMetaculus, FakePolymarket, PolymarketListing
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.markets.kalshi import KalshiClient, KalshiPrices
from foretell.data.markets.manifold import ManifoldClient, ManifoldPrices
from foretell.data.markets.metaculus import MetaculusClient, MetaculusPrices
from foretell.data.markets.polymarket import PolymarketClient, PolymarketHosts, PolymarketPrices
from foretell.data.markets.prices import MarketRef, PricesUnavailable
from foretell.data.series.dbnomics import DbnomicsSeries
from foretell.data.series.fred import FredSeries
from foretell.data.series.series import SeriesUnavailable
from foretell.data.series.yahoo import YahooSeries
from foretell.data.service import ServiceConfig
from foretell.practice.markets.kalshi import SampleKalshiBook
from foretell.practice.markets.manifold import SampleManifoldBet
from foretell.practice.markets.metaculus import SampleCommunityPrediction, SampleMetaculusQuestion
from foretell.practice.series import (
    PracticeDbnomics,
    PracticeYahoo,
    SampleDbnomicsSeries,
    SampleFredSeries,
    SampleFredValue,
    SampleShare,
    SampleShareSplit,
)
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef

NOW = AsOf.day("2026-02-10")
START = datetime(2026, 2, 8, 14, 30, tzinfo=UTC)
SECOND = int(START.timestamp())
QUICK = HttpLimits(attempts=1, total_seconds=5.0)
FAST = 1e5

FAKES: dict[str, tuple[Any, Callable[[AsyncHttpClient, str], Any]]] = {
    "fred": (
        FakeFred(
            {
                "x": SampleFredSeries(
                    observations=(SampleFredValue(day=date(2026, 1, 1), value=1.0, since=date(2026, 1, 2)),)
                )
            },
            key="k",
            today=date(2026, 3, 1),
        ),
        lambda http, url: FredSeries(ServiceConfig(http=http, key="k", address=f"{url}/fred", per_second=FAST)),
    ),
    "yahoo": (
        PracticeYahoo(
            {
                "x": SampleShare(
                    sessions=((START, 5.0), (START + timedelta(days=1), None)),
                    splits=(SampleShareSplit(at=START + timedelta(days=9), numerator=2, denominator=1),),
                    quote=(START + timedelta(days=1), 6.0),
                )
            }
        ),
        lambda http, url: YahooSeries(ServiceConfig(http=http, address=url, per_second=FAST)),
    ),
    "dbnomics": (
        PracticeDbnomics({"x/y/z": SampleDbnomicsSeries(values=((date(2026, 1, 1), 1.0), (date(2026, 1, 2), None)))}),
        lambda http, url: DbnomicsSeries(ServiceConfig(http=http, address=url, per_second=FAST)),
    ),
    "kalshi": (
        FakeKalshi({"x": SampleKalshiBook(quotes=((SECOND, 0.2, 0.4),))}),
        lambda http, url: KalshiPrices(KalshiClient(http=http, host=url, per_second=FAST)),
    ),
    "polymarket": (
        FakePolymarket(
            {
                "x": PolymarketListing(
                    slug="s", outcomes=("Yes", "No"), tokens=("1", "2"), trades={"1": ((SECOND, 0.3),)}
                )
            }
        ),
        lambda http, url: PolymarketPrices(
            PolymarketClient(
                http=http,
                hosts=PolymarketHosts(**{n: f"{url}/{n}" for n in ("gamma", "data", "clob")}),
                per_second=FAST,
            )
        ),
    ),
    "manifold": (
        FakeManifold({"x": (SampleManifoldBet(id="b", at_ms=SECOND * 1000, after=0.3),)}),
        lambda http, url: ManifoldPrices(ManifoldClient(http=http, host=url, per_second=FAST)),
    ),
    "metaculus": (
        FakeMetaculus(
            {
                "7": (
                    SampleMetaculusQuestion(
                        title="?", id=1, history=(SampleCommunityPrediction(since=SECOND, centers=(0.3,)),)
                    ),
                )
            },
            token="t",
        ),
        lambda http, url: MetaculusPrices(
            MetaculusClient(http=http, host=url, token="t", per_second=FAST, retry_seconds=0.0)
        ),
    ),
}
IDS = {"dbnomics": "x/y/z", "metaculus": "7"}
RUBBISH = st.sampled_from(
    [
        None,
        True,
        -1,
        0.5,
        10**400,
        1e300,
        -1e300,
        3e10,
        "",
        "x",
        "0.5",
        "9999-12-31",
        "0001-01-01",
        [],
        [[]],
        {},
        {"a": 1},
    ]
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of the answer with every key in it."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


@pytest.mark.parametrize("provider", list(FAKES))
@settings(deadline=None, max_examples=30)
@given(nth=st.integers(0, 2), place=st.integers(0, 10**6), rubbish=RUBBISH)
def test_rubbish_anywhere(provider: str, nth: int, place: int, rubbish: Any) -> None:
    fake, make = FAKES[provider]

    def spoil(good: Any) -> Any:
        body = json.loads(good.body)
        if found := places(body):
            container, key = found[place % len(found)]
            container[key] = rubbish
        return replace(good, body=json.dumps(body).encode())

    async def use() -> None:
        server = fake.server()
        inject(server, *[*[lambda good: good] * nth, spoil])
        transport = httpx2.AsyncHTTPTransport(verify=False)
        async with server, AsyncHttpClient(limits=QUICK, transport=transport) as http:
            source, one = make(http, server.url), IDS.get(provider, "x")
            if hasattr(source, "prices"):
                points = await source.prices(MarketRef(platform=provider, id=one), NOW)
                assert all(NOW.admits(point.at) and 0 <= point.p <= 1 for point in points)
            else:
                series = await source.fetch(SeriesRef(provider=provider, id=one), NOW)
                assert all(NOW.admits_day(day) for day in series.days.tolist())

    with contextlib.suppress(SourceError, SeriesUnavailable, PricesUnavailable):
        asyncio.run(use())
