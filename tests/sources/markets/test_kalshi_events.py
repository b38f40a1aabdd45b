"""Kalshi events in both notations, over sockets."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from fakes.faults import FieldDrift, MarketFaults, ServerFault, busy, cut_off, failing, garbled
from fakes.markets import FakeKalshi
from foretell.data.http import SourceError
from foretell.data.markets.kalshi import KalshiClient, KalshiEvents
from foretell.data.markets.listing import EventSource, ListedEvent, ListingFilter, ListingReport, LiveOnly
from foretell.data.markets.prices import MarketRef, market_ref
from foretell.data.payload import MalformedPayload
from foretell.practice.markets.kalshi import KalshiCatalogue, SampleKalshiEvent, SampleKalshiMarket, kalshi_event_body
from foretell.questions.as_of import AsOf, instant

NOW = AsOf(at="2026-11-01T12:00:00Z", mode="live")
FED = SampleKalshiEvent(
    ticker="KXFED-26DEC",
    series="KXFED",
    title="Fed decision in December?",
    period="In Dec 2026",
    exclusive=True,
    markets=(
        SampleKalshiMarket(
            ticker="KXFED-26DEC-CUT",
            label="Cut",
            bid=0.41,
            ask=0.44,
            last=0.42,
            volume=1200,
            volume_24h=30,
            open_interest=700,
            liquidity=12.5,
            closes="2027-01-15T00:00:00Z",
            expected="2026-12-10T19:00:00Z",
            rules="If the bank cuts.",
        ),
        SampleKalshiMarket(ticker="KXFED-26DEC-HOLD", label="Hold", volume=300, rules="If the bank holds."),
    ),
)
EGGS = SampleKalshiEvent(
    ticker="KXEGGS",
    series="KXEGGS",
    title="Eggs above $4?",
    category="Food",
    markets=(SampleKalshiMarket(ticker="KXEGGS-26-4", label="Above $4", bid=0.2, ask=0.3, rules="If eggs cost more."),),
)


def server(*events: SampleKalshiEvent, schema: Literal["dollars", "cents"] = "dollars", **options: Any) -> Any:
    trouble = options.pop("trouble", None)
    catalogue = KalshiCatalogue([kalshi_event_body(event, schema) for event in events or (FED, EGGS)], **options)
    return FakeKalshi({}).having(catalogue, trouble).server()


def make(http: Any, url: str) -> EventSource:
    return KalshiEvents(KalshiClient(http=http, host=f"{url}/trade-api/v2", per_second=1e4))


def listing(ask: Any, fake: Any, *, faults: Any = None, **wish: Any) -> tuple[Any, ListingReport]:
    async def use(http: Any, url: str) -> Any:
        found = make(http, url).events(ListingFilter(as_of=NOW, **wish))
        return await found.all(), found.ledger

    return ask.run(fake, use, faults=faults)


def one(ask: Any, fake: Any, id: str, as_of: AsOf = NOW, faults: Any = None) -> ListedEvent:
    return ask.run(fake, lambda http, url: make(http, url).event(id, as_of), faults=faults)


@pytest.mark.parametrize("schema", ["dollars", "cents"])
def test_an_event_in_either_notation(ask: Any, schema: Any) -> None:
    (fed, eggs), ledger = listing(ask, server(schema=schema))
    question, (cut, hold) = fed.question, fed.question.targets
    assert (question.id, question.source, question.text) == (
        "kalshi/KXFED-26DEC",
        "kalshi",
        "Fed decision in December? (In Dec 2026)",
    )
    assert (question.exclusive, question.due, question.subtype) == (True, NOW.at, "KXFED")
    assert question.criteria == "Cut: If the bank cuts.\nHold: If the bank holds."
    assert eggs.question.criteria == "If eggs cost more."
    assert question.closes_at == fed.closes_at == instant("2027-01-01")
    assert (cut.id, cut.label, cut.resolves_at) == ("KXFED-26DEC-CUT", "Cut", instant("2026-12-10T19:00:00Z"))
    quotes = cut.snapshot
    assert quotes is not None
    assert (quotes.yes_bid, quotes.yes_ask, quotes.no_ask, quotes.last_price) == pytest.approx((0.41, 0.44, 0.59, 0.42))
    assert (quotes.at, quotes.volume) == (NOW.at, 1200)
    # A book without orders and a market never traded say nothing.
    assert hold.snapshot is not None
    assert (hold.snapshot.price, hold.snapshot.yes_ask, hold.snapshot.volume) == (None, None, 300)
    assert (fed.volume, fed.volume_24h, fed.open_interest, fed.unit) == (1500, 30, 700, "USD")
    assert fed.liquidity == (12.5 if schema == "cents" else None)
    assert (fed.recurrence, fed.category, fed.status, fed.platform) == ("KXFED", "Economics", "open", "kalshi")
    assert (ledger.notes(), ledger.complete) == ((), True)


def test_every_target_leads_to_its_own_market(ask: Any) -> None:
    """Also of an event with a single market, whose ticker is not the event's."""
    (fed, eggs), _ = listing(ask, server())
    assert market_ref(fed.question, fed.question.targets[1]) == MarketRef(platform="kalshi", id="KXFED-26DEC-HOLD")
    assert market_ref(eggs.question) == MarketRef(platform="kalshi", id="KXEGGS-26-4")
    assert market_ref(fed.question) is None


def test_pages_are_followed_to_the_end(ask: Any) -> None:
    many = [
        SampleKalshiEvent(
            ticker=f"KXA-{n}",
            series="KXA",
            title=f"{n}?",
            markets=(SampleKalshiMarket(ticker=f"KXA-{n}-T", label="T"),),
        )
        for n in range(7)
    ]
    found, ledger = listing(ask, server(*many, page=3))
    assert [event.question.id for event in found] == [f"kalshi/KXA-{n}" for n in range(7)]
    assert (ledger.pages, ledger.complete) == (3, True)
    queries = [request.query for request in ask.server.requests]
    assert [("cursor" in query) for query in queries] == [False, True, True]
    assert {(query["status"], query["limit"], query["with_nested_markets"]) for query in queries} == {
        ("open", "200", "true")
    }
    assert len(listing(ask, server(*many, page=3), pages=2)[0]) == 6


def test_the_wish_is_passed_on_and_checked_again(ask: Any) -> None:
    found, ledger = listing(ask, server(), closes_after="2026-12-01", closes_before="2026-12-31")
    assert (found, dict(ledger.left_out)) == ([], {"closes after the window": 2})
    assert ask.server.requests[0].query["min_close_ts"] == str(int(instant("2026-12-01").timestamp()))
    assert [e.category for e in listing(ask, server(), category="food")[0]] == ["Food"]
    assert [e.volume for e in listing(ask, server(), minimum_volume=1000)[0]] == [1500]
    listing(ask, server(), status="resolved")
    assert ask.server.requests[0].query["status"] == "settled"


def test_markets_that_are_over_are_no_targets(ask: Any) -> None:
    names = ("A", "B", "C", "D")
    states = (("active", ""), ("initialized", ""), ("finalized", "no"), ("determined", "yes"))
    markets = tuple(
        SampleKalshiMarket(ticker=f"KXN-1-{name}", label=name, status=status, result=result, volume=10)
        for name, (status, result) in zip(names, states, strict=True)
    )
    event = SampleKalshiEvent(ticker="KXN-1", series="KXN", title="Who?", exclusive=True, markets=markets)
    (found,), _ = listing(ask, server(event))
    assert [target.label for target in found.question.targets] == ["A", "B"]
    assert found.finished == ("KXN-1-C", "KXN-1-D")
    assert (found.question.exclusive, found.volume) == (False, 40)
    lost = SampleKalshiEvent(ticker="KXN-1", series="KXN", title="Who?", exclusive=True, markets=markets[:3])
    assert listing(ask, server(lost))[0][0].question.exclusive


def test_scalar_markets_are_left_out(ask: Any) -> None:
    scalar = SampleKalshiMarket(ticker="KXS-1-X", label="X", kind="scalar")
    mixed = SampleKalshiEvent(ticker="KXS-1", series="KXS", title="How much?", markets=(scalar, EGGS.markets[0]))
    only = SampleKalshiEvent(ticker="KXS-2", series="KXS", title="How much?", markets=(scalar,))
    (found,), ledger = listing(ask, server(mixed, only))
    assert [target.id for target in found.question.targets] == ["KXEGGS-26-4"]
    assert [(skipped.id, skipped.kind) for skipped in ledger.skipped] == [("KXS-2", "unsupported")]


def test_categories_and_tags_of_the_series(ask: Any) -> None:
    bare = SampleKalshiEvent(ticker="KXB-1", series="KXB", title="?", category=None, markets=EGGS.markets)
    again = SampleKalshiEvent(ticker="KXB-2", series="KXB", title="?", category=None, markets=FED.markets)
    lost = SampleKalshiEvent(ticker="KXC-1", series="KXC", title="?", category=None, markets=FED.markets)
    series = {"KXB": {"ticker": "KXB", "category": "Food", "tags": ["Eggs", "Prices"]}}
    found, _ = listing(ask, server(bare, again, lost, series=series), category="eggs")
    assert [(event.category, event.tags) for event in found] == [("Food", ("Eggs", "Prices"))] * 2
    assert [request.path.rpartition("v2")[2] for request in ask.server.requests[1:]] == ["/series/KXB", "/series/KXC"]


def test_one_event_by_its_ticker_also_from_the_archive(ask: Any) -> None:
    assert one(ask, server(), "KXFED-26DEC").question.exclusive
    settled = SampleKalshiEvent(
        ticker="KXOLD-25",
        series="KXOLD",
        title="Old?",
        markets=(
            SampleKalshiMarket(
                ticker="KXOLD-25-A", label="A", status="finalized", result="yes", closes="2025-01-01T00:00:00Z"
            ),
        ),
    )
    old = one(ask, server(settled, archived=["KXOLD-25-A"]), "KXOLD-25")
    assert (old.status, old.closes_at) == ("resolved", instant("2025-01-01"))
    assert [request.path.rpartition("v2")[2] for request in ask.server.requests] == [
        "/events/KXOLD-25",
        "/historical/markets",
    ]
    with pytest.raises(SourceError, match="kalshi event KXNOPE-1 is not there"):
        one(ask, server(), "KXNOPE-1")
    empty = SampleKalshiEvent(ticker="KXE-1", series="KXE", title="?", markets=())
    with pytest.raises(SourceError, match="kalshi event KXE-1 cannot be asked"):
        one(ask, server(empty), "KXE-1")


def test_a_backtest_is_refused_before_anything_is_asked(ask: Any) -> None:
    with pytest.raises(LiveOnly):
        one(ask, server(), "KXFED-26DEC", AsOf(at=NOW.at))
    assert not ask.server.requests


@pytest.mark.parametrize(
    ("path", "change", "reason"),
    [
        ("events.0.title", "drop", "kalshi event KXFED-26DEC: field events[0].title is missing"),
        ("events.0.title", "retype", "events[0].title is not a text"),
        ("events.0.mutually_exclusive", "rename", "events[0].mutually_exclusive is missing"),
        ("events.0.mutually_exclusive", "retype", "mutually_exclusive is not true or false"),
        ("events.0.series_ticker", "drop", "series_ticker is missing"),
        ("events.0.markets", "drop", "events[0].markets is missing"),
        ("events.0.markets", "retype", "events[0].markets is not a list"),
        ("events.0.markets.1.ticker", "drop", "events[0].markets[1].ticker is missing"),
        ("events.0.markets.1.status", "drop", "markets[1].status is missing"),
        ("events.0.markets.0.close_time", "drop", "markets[0].close_time is missing"),
        ("events.0.markets.0.yes_ask_dollars", "drop", "markets[0].yes_ask_dollars is missing"),
        ("events.0.markets.0.yes_ask_dollars", "retype", "yes_ask_dollars is not dollars in a text, nor whole cents"),
        ("events.0.markets.0.last_price_dollars", "rename", "last_price_dollars is missing"),
        ("events.0.markets.0.volume_fp", "drop", "markets[0].volume_fp is missing"),
        ("events.0.markets.0.rules_primary", "drop", "rules_primary is missing"),
        ("events.0.markets.0.yes_sub_title", "drop", "yes_sub_title is missing"),
    ],
)
def test_drift_names_platform_event_and_field_and_spares_the_rest(
    ask: Any, path: str, change: Any, reason: str
) -> None:
    fake = server(trouble=MarketFaults(drifts=(FieldDrift(path=path, change=change),)))
    found, ledger = listing(ask, fake)
    assert [event.question.id for event in found] == ["kalshi/KXEGGS"]
    (skipped,) = ledger.skipped
    assert (skipped.platform, skipped.id, skipped.kind) == ("kalshi", "KXFED-26DEC", "malformed")
    assert skipped.reason.startswith("kalshi event KXFED-26DEC: field ")
    assert reason in skipped.reason


def test_a_drift_of_everything_and_a_wrong_page_are_errors(ask: Any) -> None:
    everywhere = MarketFaults(drifts=(FieldDrift(path="events.*.markets.*.yes_bid_dollars", change="rename"),))
    with pytest.raises(
        MalformedPayload, match=r"none of 2 entries .* kalshi event KXFED-26DEC: .*yes_bid_dollars is missing"
    ):
        listing(ask, server(trouble=everywhere))
    for path, told in (("events", "events is missing"), ("cursor", "cursor is missing")):
        with pytest.raises(MalformedPayload, match=f"kalshi list: field {told}"):
            listing(ask, server(trouble=MarketFaults(drifts=(FieldDrift(path=path),))))
    single = MarketFaults(drifts=(FieldDrift(path="event.markets.0.status"),))
    with pytest.raises(
        MalformedPayload, match=r"kalshi event KXFED-26DEC: field event\.markets\[0\]\.status is missing"
    ):
        one(ask, server(trouble=single), "KXFED-26DEC")


def test_new_fields_are_ignored_and_noted(ask: Any) -> None:
    drifts = (
        FieldDrift(path="events.*.brand_new", change="add"),
        FieldDrift(path="events.*.markets.*.newer", change="add"),
    )
    found, ledger = listing(ask, server(trouble=MarketFaults(drifts=drifts)))
    assert len(found) == 2
    assert ledger.notes() == (
        "3 × unknown field ignored: market.newer",
        "2 × unknown field ignored: event.brand_new",
    )


def test_an_unknown_status_and_broken_numbers_are_told(ask: Any, edited: Callable[..., ServerFault]) -> None:
    def spoil(body: Any) -> None:
        body["events"][0]["markets"][0]["status"] = "hibernating"
        body["events"][1]["markets"][0]["yes_ask_dollars"] = "1.7"

    with pytest.raises(MalformedPayload, match=r"none of 2 entries could be read; .*status is not a status we know"):
        listing(ask, server(), faults=[edited(spoil)])


def test_busy_broken_and_partly_down(ask: Any) -> None:
    assert len(listing(ask, server(), faults=[busy(), cut_off()])[0]) == 2
    assert len(listing(ask, server(), faults=[failing(503), failing(500)])[0]) == 2
    with pytest.raises(SourceError, match="429"):
        listing(ask, server(), faults=[busy()] * 3)
    with pytest.raises(SourceError, match="429"):
        listing(ask, server(), faults=[busy("3600")])
    with pytest.raises(MalformedPayload, match="kalshi list: the answer is not JSON"):
        listing(ask, server(), faults=[garbled()])
    with pytest.raises(SourceError, match="503"):
        listing(ask, server(trouble=MarketFaults(down=("/events",))))
    bare = SampleKalshiEvent(ticker="KXB-1", series="KXB", title="?", category=None, markets=EGGS.markets)
    with pytest.raises(SourceError, match=r"series/KXB.*503"):
        listing(ask, server(bare, trouble=MarketFaults(down=("/series",))))


@pytest.mark.shared_data
def test_every_real_event_of_the_old_notation(ask: Any, shared_data: Path) -> None:
    """65 events with 622 markets as the exchange sent them in 2025."""
    raw = json.loads((shared_data / "kalshi" / "events_old_schema.json").read_text())
    fake = FakeKalshi({}).having(KalshiCatalogue(raw, page=20))
    settled, ledger = listing(ask, fake.server(), status="resolved", limit=1000)
    opened, other = listing(ask, fake.server(), status="open")
    found = {event.question.id.removeprefix("kalshi/"): event for event in [*settled, *opened]}
    assert not ledger.skipped
    assert not other.skipped
    assert not ledger.unknown_fields
    # The one event that is partly open was met among the settled ones too.
    assert dict(ledger.left_out) == {"open, not resolved": 1}
    assert set(found) == {event["event_ticker"] for event in raw}
    assert sum(len(event.question.targets) + len(event.finished) for event in found.values()) == 622
    for event in raw:
        mine = found[event["event_ticker"]]
        assert mine.volume == pytest.approx(event["volume"])
        assert mine.question.exclusive == (event["mutually_exclusive"] and len(event["markets"]) > 1)
        quotes = {market["ticker"]: market for market in event["markets"]}
        for target in mine.question.targets:
            market, snapshot = quotes[target.id], target.snapshot
            assert snapshot is not None
            assert (snapshot.last_price or 0) * 100 == pytest.approx(market["last_price"])
            if snapshot.yes_ask is not None:
                assert snapshot.yes_ask * 100 == pytest.approx(market["yes_ask"])
                assert market["rules_primary"].strip() in mine.question.criteria
    assert len(found["KXWHVISIT-25"].finished) == 2
