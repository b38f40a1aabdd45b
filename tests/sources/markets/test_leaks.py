"""Whatever tells the future has no place to stand in what these modules hand on."""

import contextlib
import dataclasses
import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fakes.markets import FakeKalshi, FakeManifold, FakeMetaculus, FakePolymarket, PolymarketListing
from foretell.data.markets import kalshi, manifold, metaculus, polymarket
from foretell.data.markets.kalshi import CandleWindow, KalshiClient, KalshiPrices
from foretell.data.markets.manifold import ManifoldClient
from foretell.data.markets.metaculus import MetaculusClient, MetaculusPrices
from foretell.data.markets.polymarket import PolymarketClient, PolymarketHosts
from foretell.data.markets.prices import MarketRef, PricesUnavailable
from foretell.practice.markets.kalshi import SampleKalshiBook
from foretell.practice.markets.manifold import SampleManifoldBet
from foretell.practice.markets.metaculus import SampleCommunityPrediction, SampleMetaculusQuestion
from foretell.questions.as_of import AsOf, instant

TELLING = {"status", "result", "resolved", "resolution", "outcome_prices", "closed", "active", "close_time", "volume"}
TELLING |= {"is_resolved", "closed_time", "liquidity", "open_interest", "last_price", "settlement", "updated_time"}
START = int(instant("2026-01-01").timestamp())


@pytest.mark.parametrize("module", [kalshi, polymarket, manifold, metaculus])
def test_no_parsed_value_has_a_field_for_the_future(module: ModuleType) -> None:
    values = [
        one for _, one in inspect.getmembers(module, dataclasses.is_dataclass) if one.__module__ == module.__name__
    ]
    assert values
    for value in values:
        assert not {field.name for field in dataclasses.fields(value)} & TELLING


def test_the_canary_is_served_by_every_market_and_handed_on_by_none(ask: Any, canary: str) -> None:
    """The clients themselves, one step closer to the wire than the price sources."""
    book = SampleKalshiBook(quotes=((START, 0.2, 0.4),))
    archived = SampleKalshiBook(quotes=((START, 0.2, 0.4),), archived=True)
    listing = PolymarketListing(slug="s", outcomes=("Yes", "No"), tokens=("1", "2"), trades={"1": ((START, 0.3),)})
    bets = (SampleManifoldBet(id="b", at_ms=START * 1000, after=0.3),)
    crowd = SampleMetaculusQuestion(id=1, title="?", history=(SampleCommunityPrediction(since=START, centers=(0.3,)),))
    window = CandleWindow(start=START, end=START + 86400, minutes=60)

    async def kalshi_reads(http: Any, url: str) -> Any:
        client = KalshiClient(http=http, host=url)
        return await client.live_prices("A-1", window), await client.archived_prices("B-1", window)

    async def polymarket_reads(http: Any, url: str) -> Any:
        client = PolymarketClient(
            http=http,
            hosts=PolymarketHosts(gamma=f"{url}/gamma", data=f"{url}/data", clob=f"{url}/clob"),
            per_second=1e4,
        )
        span = (START, START + 86400)
        points = [await client.history("1", *span), await client.price_at("1", START), await client.sampled("1", *span)]
        return await client.token("0x1", "yes"), points

    async def manifold_reads(http: Any, url: str) -> Any:
        return await ManifoldClient(http=http, host=url).bets("m", None, START * 1000 + 1)

    async def metaculus_reads(http: Any, url: str) -> Any:
        source = MetaculusPrices(MetaculusClient(http=http, host=url, token="t", per_second=1e4))
        return await source.prices(MarketRef(platform="metaculus", id="7"), AsOf.day("2026-01-03"))

    servers = [
        (FakeKalshi({"A-1": book, "B-1": archived}, canary=canary), kalshi_reads),
        (FakePolymarket({"0x1": listing}, canary=canary), polymarket_reads),
        (FakeManifold({"m": bets}, canary=canary), manifold_reads),
        (FakeMetaculus({"7": (crowd,)}, token="t", canary=canary), metaculus_reads),
    ]
    for fake, use in servers:
        sent: list[str] = []
        server = fake.server()
        server.middleware = _overheard(server.middleware, sent)
        handed_on = repr(ask.run(server, use))
        assert canary in "".join(sent), "the fake does not test anything"
        assert "0.3" in handed_on or "0.2" in handed_on
        assert canary not in handed_on


def _overheard(inner: Any, sent: list[str]) -> Any:
    def respond(request: Any, handler: Any) -> Any:
        response = inner(request, handler)
        sent.append(response.body.decode())
        return response

    return respond


@pytest.mark.shared_data
@pytest.mark.parametrize("schema", ["cents", "dollars"])
def test_real_quotes_of_both_notations(ask: Any, shared_data: Path, schema: Any) -> None:
    """Quotes of real markets as they were sent; those with an empty book have no price."""
    quotes = dict(_old(shared_data) if schema == "cents" else _new(shared_data))
    books = {ticker: SampleKalshiBook(quotes=((START, bid, ask_),)) for ticker, (bid, ask_) in quotes.items()}
    refs = [MarketRef(platform="kalshi", id=ticker) for ticker in books]

    async def use(http: Any, url: str) -> Any:
        source, found = KalshiPrices(KalshiClient(http=http, host=url, per_second=1e4)), {}
        for ref in refs:
            with contextlib.suppress(PricesUnavailable):
                found[ref] = await source.prices(ref, AsOf.day("2026-01-03"), 1)
        return found

    found = {ref.id: points[-1].p for ref, points in ask.run(FakeKalshi(books, schema=schema).server(), use).items()}
    told = {ticker: (bid + ask_) / 2 for ticker, (bid, ask_) in quotes.items() if (bid, ask_) != (0.0, 1.0)}
    assert found == pytest.approx(told)
    assert len(quotes) - len(told) == (0 if schema == "cents" else 130)


def _old(shared_data: Path) -> Any:
    for event in json.loads((shared_data / "kalshi" / "events_old_schema.json").read_text()):
        for market in event["markets"]:
            yield market["ticker"], (market["yes_bid"] / 100, market["yes_ask"] / 100)


def _new(shared_data: Path) -> Any:
    for line in (shared_data / "kalshi" / "resolved_markets.jsonl").read_text().splitlines():
        row = json.loads(line)
        quotes = row["market_snapshot"]
        yield row["event"]["market_ticker"], (float(quotes["yes_bid_dollars"]), float(quotes["yes_ask_dollars"]))
