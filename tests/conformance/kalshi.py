"""Kalshi: recorded answers of January to August 2026, in both notations, and its OpenAPI 3.13.0 of April 2026."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import pytest
import yaml
from jsonschema import Draft202012Validator

from conformance.reading import ONCE, body_of
from conformance.recordings import Check, answer, names, recording, replay, spec_file
from fakes.answers import respond
from fakes.market_reader import NOW, asked
from foretell.data.http import AsyncHttpClient
from foretell.data.markets.kalshi import (
    KalshiClient,
    KalshiEvents,
    KalshiPrices,
    candle_price,
    candles_by_ticker,
    market_state,
    series_filing,
    whole_event,
)
from foretell.data.markets.listing import ListedEvent, ListingFilter, ListingReport, UnsupportedEvent
from foretell.data.markets.market import MarketRef, PricesUnavailable
from foretell.data.payload import Payload
from foretell.data.settlements.kalshi import KalshiSettlements
from foretell.data.settlements.settlement import SettledOutcome, SettlementTarget
from foretell.outgoing.client import Answer, FunctionTransport, HttpRequest
from foretell.practice.markets.kalshi import (
    KalshiCatalogue,
    PracticeKalshi,
    SampleKalshiBook,
    SampleKalshiEvent,
    SampleKalshiMarket,
    kalshi_event_body,
    kalshi_series_body,
)
from foretell.questions.as_of import AsOf, instant

MARS, NATO = "KXELONMARS-99", "KXNEXTNATOSECGEN-99"
PREFIX = "/trade-api/v2"
HOST = f"https://kalshi.example{PREFIX}"
Values = tuple[float | None, ...]


def _client(transport: FunctionTransport) -> KalshiClient:
    return KalshiClient(http=AsyncHttpClient(limits=ONCE, transport=transport), host=HOST)


def _quotes(market: Payload) -> Values:
    state = market_state(market, NOW.at)
    assert state is not None
    assert state.target.snapshot is not None
    shown = state.target.snapshot
    return shown.yes_bid, shown.yes_ask, shown.last_price, shown.volume


def _settled(market: Payload) -> SettledOutcome | None:
    question = asked(f"kalshi/{market.need('ticker').text()}")
    ref = MarketRef(platform="kalshi", id=market.need("ticker").text())
    settlement_target = SettlementTarget(question=question, target=question.targets[0], ref=ref)
    return KalshiSettlements(_client(replay({}))).outcome(market, settlement_target)


async def _listed() -> None:
    transport = replay({"/events": answer("kalshi", "k26aug_events_nested")})
    listing = KalshiEvents(_client(transport)).events(ListingFilter(as_of=NOW, pages=1))
    mars, nato = await listing.all()
    assert (mars.question.text, mars.question.exclusivity, mars.category) == (
        "Will Elon Musk visit Mars in his lifetime? (Before 2099)",
        "independent",
        "World",
    )
    assert (mars.volume, mars.volume_24h, mars.open_interest, mars.liquidity) == (114461.59, 45.25, 40009.97, None)
    books = {target.label: cast("Any", target.snapshot) for target in nato.question.targets}
    prices = {label: (shown.yes_bid + shown.yes_ask) / 2 for label, shown in books.items()}
    assert (len(prices), nato.question.exclusivity) == (8, "at most one")
    assert (prices["Alexander Stubb"], prices["Klaus Iohannis"]) == pytest.approx((0.145, 0.11))
    assert sum(prices.values()) == pytest.approx(0.775)
    assert nato.question.closes_at is not None
    assert listing.ledger.notes() == ()


async def _single() -> None:
    client = _client(replay({f"/events/{MARS}": answer("kalshi", "k26jan_event_single")}))
    event = await KalshiEvents(client).event(MARS, NOW)
    (target,) = event.question.targets
    assert target.snapshot is not None
    assert (target.id, target.label, target.snapshot.yes_bid, target.snapshot.yes_ask) == (MARS, "Mars", 0.06, 0.07)
    assert (target.snapshot.last_price, event.volume, event.open_interest) == (0.06, 35001, 13679)
    assert event.liquidity == 68148.06
    metadata = body_of("kalshi", "k26jan_event_metadata")
    assert [row.need("market_ticker").text() for row in metadata.rows("market_details")] == [MARS]
    assert len(metadata.rows("settlement_sources")) == 17


def _markets() -> None:
    game = body_of("kalshi", "k26aug_market").need("market")
    assert _quotes(game) == (0.53, 0.54, 0.54, 10160.15)
    combo = body_of("kalshi", "k26jan_market_single").need("market")
    # No bids and no offers: 0 and 0 are not quotes, and a last price of 0 is not a trade.
    assert _quotes(combo) == (None, None, None, 0)
    coins = body_of("kalshi", "k26aug_markets").need("markets").items()
    assert [_quotes(coin) for coin in coins] == [(0.0, 0.01, None, 0.0)] * 3
    assert [coin.need("floor_strike").number() for coin in coins] == [74299.99, 74199.99, 74099.99]
    # `result` is an empty string while a market is unresolved.
    assert [_settled(market) for market in (game, combo, *coins)] == [None] * 5


def _series() -> None:
    assert series_filing(body_of("kalshi", "k26aug_series").need("series")) == ("Crypto", ("Hourly", "BTC"))
    co2 = series_filing(body_of("kalshi", "k26jan_series_single").need("series"))
    assert co2 == ("Climate and Weather", ("Climate change",))


async def _candles() -> None:
    transport = replay({"/markets/candlesticks": answer("kalshi", "k26jan_candlesticks_batch")})
    as_of = AsOf(at=instant("2026-01-12T22:08:10Z"))
    points = await KalshiPrices(_client(transport)).prices(MarketRef(platform="kalshi", id=MARS), as_of, 90)
    assert (len(points), points[0].p, points[-1].p) == (90, pytest.approx(0.095), pytest.approx(0.065))
    assert (points[0].at, points[-1].at) == (instant("2025-10-15T04:00:00Z"), instant("2026-01-12T05:00:00Z"))


def _event_candles() -> None:
    candles = candles_by_ticker(body_of("kalshi", "k26jan_event_candlesticks"))
    assert {ticker: len(rows) for ticker, rows in candles.items()} == {MARS: 90}
    rows = candles[MARS]
    # Twenty days have no trade and no closing price in dollars, but quotes from the order book.
    untraded = [row for row in rows if not row.need("price").has("close_dollars")]
    assert len(untraded) == 20
    prices = [point.p for row in rows if (point := candle_price(row)) is not None]
    assert len(prices) == 90
    assert (prices[0], prices[1], prices[-2], prices[-1]) == pytest.approx((0.095, 0.105, 0.065, 0.07))


# The official OpenAPI document: parameters of requests, and schemas of answers.


@cache
def _document() -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return cast("dict[str, Any]", yaml.load(spec_file("kalshi", "openapi_*.yaml").read_text(), Loader=loader))


def _resolved(value: Any) -> Any:
    while isinstance(value, dict) and "$ref" in value:
        target: Any = _document()
        for step in cast("str", value["$ref"]).removeprefix("#/").split("/"):
            target = target[step]
        value = target
    return cast("Any", value)


def _operation(path: str) -> tuple[str, dict[str, Any]]:
    """Return the declared path that matches; paths without variables come first."""
    for template in sorted(_document()["paths"], key=lambda declared: declared.count("{")):
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            return template, _document()["paths"][template]["get"]
    raise AssertionError(f"no path of the specification: {path}")


STAMPS = {
    **dict.fromkeys(("min_created_ts", "max_created_ts"), (None, "unopened", "open")),
    **dict.fromkeys(("min_close_ts", "max_close_ts"), (None, "closed")),
    **dict.fromkeys(("min_settled_ts", "max_settled_ts"), (None, "settled")),
    "min_updated_ts": (None,),
}
"""Filters of `/markets` by time, and the states that they may be combined with."""


def check_request(request: HttpRequest) -> str:
    """Check a request against the specification, and return the declared path."""
    template, operation = _operation(request.url.path.removeprefix(PREFIX))
    declared = {item["name"]: item for item in map(_resolved, operation.get("parameters", ())) if item["in"] == "query"}
    sent = dict(request.url.query)
    assert set(sent) <= set(declared), f"{template}: {set(sent) - set(declared)} are no parameters"
    assert {name for name, item in declared.items() if item.get("required")} <= set(sent), template
    for name, value in sent.items():
        schema = _resolved(declared[name]["schema"])
        if schema["type"] == "integer":
            assert schema.get("minimum", 0) <= int(value) <= schema.get("maximum", 10**12), (name, value)
        lowers = {str(value).lower() for value in schema.get("enum", ())}
        assert not lowers or value in lowers, f"{template}: {name}={value} is none of {lowers}"
        assert schema["type"] != "boolean" or value in ("true", "false")
    if template == "/historical/markets":
        assert len(sent.keys() & {"tickers", "event_ticker", "series_ticker"}) <= 1
    if template == "/markets":
        stamps = sorted(sent.keys() & STAMPS.keys())
        assert len({stamp.partition("_")[2] for stamp in stamps}) <= 1
        assert all(sent.get("status") in STAMPS[stamp] for stamp in stamps)
    assert len(sent.get("tickers", sent.get("market_tickers", "")).split(",")) <= 100
    return template


def _nullable(schema: Any) -> Any:
    """Convert a schema of OpenAPI 3.0 to JSON Schema, in which null is a type."""
    if isinstance(schema, list):
        return [_nullable(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    inner = {name: _nullable(item) for name, item in cast("dict[str, Any]", schema).items() if name != "nullable"}
    return {"anyOf": [inner, {"type": "null"}]} if schema.get("nullable") is True else inner


@cache
def _validator(template: str) -> Draft202012Validator:
    operation = _document()["paths"][template]["get"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    return Draft202012Validator(_nullable({**schema, "components": _document()["components"]}))


def check_body(template: str, body: Any) -> None:
    """Check an answer against the specification; like the real exchange, it may leave out missing prices."""
    problems = [
        f"{problem.json_path}: {problem.message}"
        for problem in _validator(template).iter_errors(body)
        if not re.fullmatch(r"'\w+_dollars' is a required property", problem.message)
    ]
    assert problems == [], (template, problems[:3])


OVER = {"status": "finalized", "settled": "2025-12-11T00:00:00Z"}
LIVE = SampleKalshiEvent(
    ticker="KXA-1",
    series="KXA",
    title="Who?",
    exclusive=True,
    category=None,
    markets=(
        SampleKalshiMarket(ticker="KXA-1-B", label="B", bid=0.1, ask=0.2, last=0.15, volume=5),
        SampleKalshiMarket(ticker="KXA-1-C", label="C", bid=None, ask=0.3, last=None),
        SampleKalshiMarket(ticker="KXA-1-D", label="D", result="no", paid=0.0, **OVER),
    ),
)
OLD = SampleKalshiEvent(
    ticker="KXB-1",
    series="KXB",
    title="Above 3?",
    markets=(
        SampleKalshiMarket(
            ticker="KXB-1-T3", label="Above 3", result="scalar", paid=0.5, strike=("greater", 3.0, None), **OVER
        ),
    ),
)
SECOND = int(instant("2026-10-01").timestamp())


def _practice(seen: list[tuple[HttpRequest, Any]]) -> FunctionTransport:
    """A transport to practice that records requests and answers."""
    catalogue = KalshiCatalogue(
        [kalshi_event_body(LIVE), kalshi_event_body(OLD)],
        series={"KXA": kalshi_series_body("KXA", "Who?", "Politics", tags=("Names",))},
        archived=["KXB-1-T3"],
        page=1,
    )
    books = {
        "KXA-1-B": SampleKalshiBook(quotes=((SECOND, 0.1, 0.2),)),
        "KXB-1-T3": SampleKalshiBook(quotes=((SECOND, 0.4, 0.5),), archived=True),
    }
    exchange = PracticeKalshi(books, catalogue=catalogue, cutoff=SECOND)

    def handle(request: HttpRequest) -> Answer:
        status, body = exchange.answer(request.url.path.removeprefix(PREFIX), dict(request.url.query))
        seen.append((request, body if status == 200 else None))
        return respond(status, json=body)

    return FunctionTransport(handle)


async def _exchanges() -> list[tuple[HttpRequest, Any]]:
    """Return all requests that the adapter sends, with the answers of practice."""
    seen: list[tuple[HttpRequest, Any]] = []
    client = _client(_practice(seen))
    events, settlements = KalshiEvents(client), KalshiSettlements(client)
    for status in ("unopened", "open", "closed", "resolved"):
        await events.events(ListingFilter(as_of=NOW, status=status, closes_after=instant("2026-11-02"))).all()
    for id in ("KXA-1", "KXB-1"):
        question = (await events.event(id, NOW)).question
        resolutions = await settlements.settlements([question])
        assert [resolution.payoff for resolution in resolutions] == ([0.5] if id == "KXB-1" else [])
    for ticker, p in (("KXA-1-B", 0.15), ("KXB-1-T3", 0.45)):
        ref = MarketRef(platform="kalshi", id=ticker)
        assert (await KalshiPrices(client).prices(ref, AsOf(at=NOW.at), 30))[-1].p == pytest.approx(p)
    with pytest.raises(PricesUnavailable):
        await KalshiPrices(client).prices(MarketRef(platform="kalshi", id="KXA-1-C"), AsOf(at=NOW.at))
    return seen


async def _requests() -> None:
    asked_for = {check_request(request) for request, _ in await _exchanges()}
    assert asked_for == {
        "/events",
        "/events/{event_ticker}",
        "/series/{series_ticker}",
        "/markets",
        "/markets/candlesticks",
        "/historical/cutoff",
        "/historical/markets",
        "/historical/markets/{ticker}/candlesticks",
    }


async def _answers() -> None:
    bodies = [(check_request(request), body) for request, body in await _exchanges() if body is not None]
    assert len({template for template, _ in bodies}) == 8
    for template, body in bodies:
        check_body(template, body)


# All other recordings.


async def _read(body: Payload) -> list[object]:
    """Read an answer with the adapter, by its shape; empty if the adapter never requests it."""
    if not isinstance(body.value, dict):
        return []
    if body.get("events") is not None:
        return [await _event(row) for row in body.rows("events")]
    if body.get("event") is not None:
        return [await _event(whole_event(body))]
    if body.has("market_candlesticks") or body.has("candlesticks"):
        return [candle_price(row) for rows in candles_by_ticker(body).values() for row in rows]
    if body.get("markets") is not None:
        if any(row.has("candlesticks") for row in body.rows("markets")):
            return [candle_price(row) for rows in candles_by_ticker(body).values() for row in rows]
        return [value for row in body.rows("markets") for value in (market_state(row, NOW.at), _settled(row))]
    if body.get("market") is not None:
        market = body.need("market")
        return [market_state(market, NOW.at), _settled(market)]
    if (series := body.get("series")) is not None:
        return [series_filing(row) for row in (series.items() if isinstance(series.value, list) else [series])]
    return [body.need("market_settled_ts").time()] if body.has("market_settled_ts") else []


async def _event(row: Payload) -> ListedEvent | str:
    """Read an event; events without markets or with scalar markets have no question."""
    whole = Payload(url=row.url, path=row.path, value={"markets": [], **row.value})
    series = cast("Mapping[str, Any]", {"series": {"category": "", "tags": []}})
    client = _client(FunctionTransport(lambda _: respond(200, json=series)))
    try:
        return await KalshiEvents(client).read(whole, NOW, ListingReport())
    except UnsupportedEvent as reason:
        return str(reason)


async def _sweep() -> None:
    for name in names("kalshi"):
        if (recording("kalshi", name)["status"] or 200) < 400:
            await _read(body_of("kalshi", name))


CHECKS = [
    Check(
        service="kalshi",
        what="listed events: quotes in dollars only, names that exclude each other without being all there are",
        recordings=("k26aug_events_nested",),
        function=_listed,
    ),
    Check(
        service="kalshi",
        what="one event in both notations, and what else is told of it",
        recordings=("k26jan_event_single", "k26jan_event_metadata"),
        function=_single,
    ),
    Check(
        service="kalshi",
        what="markets: quotes, strikes, a combination without a book, no result yet",
        recordings=("k26aug_market", "k26aug_markets", "k26jan_market_single"),
        function=_markets,
    ),
    Check(service="kalshi", what="category and tags of a series", recordings=("k*_series*",), function=_series),
    Check(
        service="kalshi",
        what="a price history from candles of several markets",
        recordings=("k26jan_candlesticks_batch",),
        function=_candles,
    ),
    Check(
        service="kalshi",
        what="candles of an event as parallel lists, with prices that have no field",
        recordings=("k26jan_event_candlesticks",),
        function=_event_candles,
    ),
    Check(service="kalshi", what="every request fits OpenAPI 3.13.0", recordings=("*",), function=_requests),
    Check(service="kalshi", what="the practice exchange's answers fit it too", recordings=("*",), function=_answers),
    Check(service="kalshi", what="whatever is recorded is read", recordings=("*",), function=_sweep),
]
