"""Price histories have no fields that could reveal the future."""

import dataclasses
import inspect
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fakes.market_reader import CANARY, KEY, Reader
from fakes.markets import FakeKalshi, FakeManifold, FakeMetaculus, FakePolymarket, PolymarketListing
from fakes.samples import SampleCommunityPrediction, SampleMetaculusQuestion
from foretell.data.markets import kalshi, manifold, metaculus, polymarket
from foretell.practice.markets.kalshi import SampleKalshiBook
from foretell.practice.markets.manifold import SampleManifoldBet
from foretell.questions.as_of import AsOf, instant

TELLING = {"status", "result", "resolved", "resolution", "outcome_prices", "closed", "active", "close_time", "volume"}
TELLING |= {"is_resolved", "closed_time", "liquidity", "open_interest", "last_price", "settlement", "updated_time"}
START = int(instant("2026-01-01").timestamp())
LATER = AsOf.day("2026-01-03")
BOOK = SampleKalshiBook(quotes=((START, 0.2, 0.4),))
LISTED = PolymarketListing(slug="s", outcomes=("Yes", "No"), tokens=("1", "2"), trades={"1": ((START, 0.3),)})
BETS = (SampleManifoldBet(id="b", at_ms=START * 1000, after=0.3),)
MARKET_PRICE = SampleMetaculusQuestion(
    id=1, title="?", history=(SampleCommunityPrediction(since=START, centers=(0.3,)),)
)


@pytest.mark.parametrize("module", [kalshi, polymarket, manifold, metaculus])
def test_no_price_class_has_a_field_that_reveals_the_future(module: ModuleType) -> None:
    values = [
        member
        for _, member in inspect.getmembers(module, dataclasses.is_dataclass)
        if member.__module__ == module.__name__
    ]
    assert values
    for value in values:
        assert not {field.name for field in dataclasses.fields(value)} & TELLING


@pytest.mark.parametrize(
    ("fake", "platform", "market"),
    [
        (FakeKalshi({"A-1": BOOK}, canary=CANARY), "kalshi", "A-1"),
        (FakeKalshi({"A-1": dataclasses.replace(BOOK, archived=True)}, canary=CANARY), "kalshi", "A-1"),
        (FakePolymarket({"0x1": LISTED}, canary=CANARY), "polymarket", "0x1"),
        (FakePolymarket({"0x1": LISTED}, canary=CANARY, data_service=False), "polymarket", "0x1"),
        (FakeManifold({"m": BETS}, canary=CANARY), "manifold", "m"),
        (FakeMetaculus({"7": (MARKET_PRICE,)}, token=KEY, canary=CANARY), "metaculus", "7"),
    ],
)
def test_a_canary_in_market_responses_never_reaches_the_prices(fake: Any, platform: str, market: str) -> None:
    sent: list[str] = []
    server = fake.server()
    inner = server.middleware

    def overheard(request: Any, handler: Any) -> Any:
        response = inner(request, handler)
        sent.append(response.body.decode())
        return response

    server.middleware = overheard
    points = Reader(platform).prices(server, market, LATER)
    assert CANARY in "".join(sent), "the fake does not test anything"
    assert points[-1].p == pytest.approx(0.3)


@pytest.mark.shared_data
@pytest.mark.parametrize("schema", ["cents", "dollars"])
def test_real_quotes_in_both_notations_give_mid_prices(shared_data: Path, schema: Any) -> None:
    """Real quotes as they were sent; an empty book gives no price."""
    quotes = list((_old if schema == "cents" else _new)(shared_data))
    # One real quote per day in one market, so that few requests read them all.
    first = START + 86_400 * 10
    sample = SampleKalshiBook(quotes=tuple((first + 86_400 * day, *pair) for day, pair in enumerate(quotes)))
    end = AsOf(at=datetime.fromtimestamp(first + 86_400 * len(quotes), UTC))
    points = Reader("kalshi").prices(FakeKalshi({"X-1": sample}, schema=schema), "X-1", end, days=len(quotes) + 2)
    middles = [(bid + ask) / 2 for bid, ask in quotes if (bid, ask) != (0.0, 1.0)]
    assert len(quotes) - len(middles) == (0 if schema == "cents" else 130)
    assert {round(point.p, 6) for point in points} == {round(middle, 6) for middle in middles}
    assert abs(len(middles) - len(points)) <= 1, "a day of the exchange may be short of an hour"


def _old(shared_data: Path) -> Iterator[tuple[float, float]]:
    for event in json.loads((shared_data / "kalshi" / "events_old_schema.json").read_text()):
        for market in event["markets"]:
            yield market["yes_bid"] / 100, market["yes_ask"] / 100


def _new(shared_data: Path) -> Iterator[tuple[float, float]]:
    for line in (shared_data / "kalshi" / "resolved_markets.jsonl").read_text().splitlines():
        row = json.loads(line)
        quotes = row["market_snapshot"]
        yield float(quotes["yes_bid_dollars"]), float(quotes["yes_ask_dollars"])
