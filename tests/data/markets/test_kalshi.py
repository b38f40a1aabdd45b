"""Kalshi: candlesticks in all notations, events in both notations, and results."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import FieldDrift, MarketFaults, busy, cut_off, failing, garbled
from fakes.market_reader import CANARY, NOW, Reader, asked, edited
from fakes.markets import FakeKalshi
from foretell.data.http import SourceError
from foretell.data.markets.listing import LiveOnly
from foretell.data.markets.market import MarketRef, PricesUnavailable, market_ref
from foretell.data.payload import MalformedPayload
from foretell.practice.markets.kalshi import (
    KalshiCatalogue,
    SampleKalshiBook,
    SampleKalshiEvent,
    SampleKalshiMarket,
    kalshi_event_body,
)
from foretell.questions.as_of import AsOf, instant

kalshi = Reader("kalshi")


TICKER = "KXFED-26MAR-T4.25"
CUTOFF = AsOf(at="2026-02-10T18:30:00Z")


def second(text: str) -> int:
    return int(instant(text).timestamp())


QUOTES = (
    (second("2025-11-01"), 0.10, 0.14),
    (second("2026-02-01"), 0.30, 0.34),
    (second("2026-02-10T17:10:00Z"), 0.40, 0.44),
    (second("2026-02-10T18:10:00Z"), 0.70, 0.74),
    (second("2026-02-11"), 0.99, 1.00),
)


def fake(*, quotes: Any = QUOTES, archived: bool = False, **options: Any) -> FakeKalshi:
    return FakeKalshi({TICKER: SampleKalshiBook(quotes=quotes, archived=archived)}, **options)


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("schema", ["dollars", "cents"])
def test_a_price_is_the_mid_price_up_to_the_last_hour(schema: Literal["dollars", "cents"], archived: bool) -> None:
    server = fake(schema=schema, archived=archived, canary=CANARY, careless=True).server()
    points = kalshi.prices(server, TICKER, CUTOFF)
    # The quotes of 18:10 are in no candle that was complete at 18:30.
    assert (points[-1].at, points[-1].p) == (instant("2026-02-10T18:00:00Z"), pytest.approx(0.42))
    assert [round(p.p, 6) for p in points if p.at < instant("2026-02-01")][-1] == 0.12
    assert len(points) == 60


def test_settled_markets_are_first_requested_from_the_archive() -> None:
    old = second("2026-06-01")
    kalshi.prices(fake(archived=True, cutoff=old), TICKER, CUTOFF)
    assert [request.path.removeprefix("/trade-api/v2") for request in kalshi.server.requests] == [
        "/historical/cutoff",
        f"/historical/markets/{TICKER}/candlesticks",
        f"/historical/markets/{TICKER}/candlesticks",
    ]
    kalshi.prices(fake(cutoff=old), TICKER, CUTOFF)
    assert [request.path.rpartition("v2")[2] for request in kalshi.server.requests[-2:]] == [
        "/markets/candlesticks"
    ] * 2


def test_requested_windows_end_at_the_cutoff() -> None:
    kalshi.prices(fake(), TICKER, CUTOFF, days=10)
    coarse, fine = (request.query for request in kalshi.server.requests[1:])
    assert int(coarse["end_ts"]) == int(fine["end_ts"]) == second("2026-02-10T18:30:00Z")
    assert int(coarse["start_ts"]) == second("2026-01-31T18:30:00Z")
    assert (coarse["period_interval"], fine["period_interval"]) == ("1440", "60")
    assert coarse["include_latest_before_start"] == "true"


def test_an_empty_book_gives_no_price() -> None:
    quotes = ((second("2026-01-01"), 0.2, 0.3), (second("2026-02-05"), 0.0, 1.0))
    points = kalshi.prices(fake(quotes=quotes), TICKER, CUTOFF)
    assert points[-1].at < instant("2026-02-06")
    assert points[-1].p == pytest.approx(0.25)
    with pytest.raises(PricesUnavailable, match="no price history"):
        kalshi.prices(fake(quotes=quotes[1:]), TICKER, CUTOFF)


def test_a_side_without_a_quote_is_left_out() -> None:
    quotes = ((second("2026-01-01"), 0.2, 0.3), (second("2026-02-05"), None, 0.9))
    assert kalshi.prices(fake(quotes=quotes), TICKER, CUTOFF)[-1].p == pytest.approx(0.25)


def test_unknown_and_unopened_markets_have_no_prices() -> None:
    with pytest.raises(PricesUnavailable, match="no price history of KXNOPE-1"):
        kalshi.prices(fake(), "KXNOPE-1", CUTOFF)
    with pytest.raises(PricesUnavailable):
        kalshi.prices(fake(), TICKER, AsOf.day("2025-10-01"))


def test_a_busy_server_is_retried_and_a_missing_archive_cutoff_ignored() -> None:
    assert kalshi.prices(fake(), TICKER, CUTOFF, faults=[busy(), busy()])[-1].p == pytest.approx(0.42)
    # The archive's cutoff only decides where to look first.
    assert kalshi.prices(fake(), TICKER, CUTOFF, faults=[failing()] * 3)[-1].p == pytest.approx(0.42)
    with pytest.raises(SourceError, match="500"):
        kalshi.prices(fake(), TICKER, CUTOFF, faults=[failing()] * 6)


def first_candle(body: Any) -> dict[str, Any]:
    """Return the first real candle; before it comes one that the server has made up."""
    return body["markets"][0]["candlesticks"][1]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda body: body.pop("markets"), "markets is missing"),
        (lambda body: body["markets"][0].pop("market_ticker"), r"markets\[0\]\.market_ticker is missing"),
        (lambda body: body["markets"][0].pop("candlesticks"), r"markets\[0\]\.candlesticks is missing"),
    ],
)
def test_an_error_about_a_changed_response_names_the_field(change: Callable[[Any], None], field: str) -> None:
    same = edited(lambda body: None)
    with pytest.raises(SourceError, match=field) as caught:
        kalshi.prices(fake(canary=CANARY), TICKER, CUTOFF, faults=[same, edited(change)])
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda candle: candle.pop("end_period_ts"), "candlesticks[1].end_period_ts is missing"),
        (lambda candle: candle["yes_ask"].update(close_dollars="1.5"), "close_dollars is not a probability"),
        (lambda candle: candle["yes_ask"].update(close_dollars=0.5), "close_dollars is not dollars in a string"),
        (lambda candle: candle.update(yes_bid=[]), "candlesticks[1].yes_bid is not an object"),
        # A missing quote has no field.
        (lambda candle: candle.pop("yes_bid"), ""),
        (lambda candle: candle["yes_ask"].pop("close_dollars"), ""),
        (lambda candle: candle["yes_ask"].update(close_dollars=None), ""),
    ],
)
def test_one_unreadable_candle_is_reported_and_the_rest_is_read(change: Callable[[Any], None], reason: str) -> None:
    spoil = edited(lambda body: change(first_candle(body)))
    points = kalshi.prices(fake(canary=CANARY), TICKER, CUTOFF, faults=[edited(lambda body: None), spoil])
    assert (len(points), points[-1].p) == (59, pytest.approx(0.42))
    reasons = [(entry.id, entry.reason) for entry in kalshi.skipped]
    assert [id for id, _ in reasons] == ([TICKER] if reason else [])
    assert all(
        reason_text.startswith("1 of 134 entries could not be read") and reason in reason_text
        for _, reason_text in reasons
    )
    assert CANARY not in str(reasons)


def test_only_unreadable_candles_raise() -> None:
    def spoil(body: Any) -> None:
        for candle in body["markets"][0]["candlesticks"]:
            candle["when"] = candle.pop("end_period_ts")

    faults = [edited(lambda body: None), edited(spoil), edited(spoil)]
    with pytest.raises(MalformedPayload, match=r"134 of 134 entries could not be read.*end_period_ts is missing"):
        kalshi.prices(fake(), TICKER, CUTOFF, faults=faults)


def test_a_changed_archive_cutoff_or_a_truncated_response_raises() -> None:
    with pytest.raises(MalformedPayload, match="market_settled_ts is missing"):
        kalshi.prices(fake(), TICKER, CUTOFF, faults=[edited(lambda body: body.clear())])
    with pytest.raises(MalformedPayload, match="market_settled_ts is not a time"):
        kalshi.prices(fake(), TICKER, CUTOFF, faults=[edited(lambda body: body.update(market_settled_ts="x"))])
    number = edited(lambda body: body.update(market_settled_ts=5))
    assert kalshi.prices(fake(), TICKER, CUTOFF, faults=[number])
    with pytest.raises(MalformedPayload, match="not JSON"):
        kalshi.prices(fake(), TICKER, CUTOFF, faults=[garbled()])


@settings(max_examples=15)
@given(
    quotes=st.lists(
        st.tuples(st.integers(0, 90 * 24), st.integers(0, 100), st.integers(0, 100)),
        max_size=12,
        unique_by=lambda q: q[0],
    ),
    hours=st.integers(0, 90 * 24),
    archived=st.booleans(),
)
def test_quotes_after_the_cutoff_do_not_change_prices(
    quotes: list[tuple[int, int, int]], hours: int, archived: bool
) -> None:
    start = second("2026-01-01")
    all_quotes = tuple((start + 3600 * at + 60, bid / 100, ask_ / 100) for at, bid, ask_ in sorted(quotes))
    cutoff = AsOf(at=instant("2026-01-01").fromtimestamp(start + 3600 * hours + 600, instant("2026-01-01").tzinfo))
    past = tuple(quote for quote in all_quotes if quote[0] <= cutoff.at.timestamp())
    answers = []
    for known in (all_quotes, past):
        server = fake(quotes=known, archived=archived, careless=known is all_quotes).server()
        try:
            answers.append(kalshi.prices(server, TICKER, cutoff))
        except PricesUnavailable:
            answers.append([])
    assert answers[0] == answers[1]


def test_zero_days_raises_value_error() -> None:
    with pytest.raises(ValueError, match="days must be at least 1"):
        kalshi.prices(fake(), TICKER, CUTOFF, days=0)


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


@pytest.mark.parametrize("schema", ["dollars", "cents"])
def test_an_event_is_the_same_in_both_notations(schema: Any) -> None:
    (fed, eggs), ledger = kalshi.listing(server(schema=schema))
    question, (cut, hold) = fed.question, fed.question.targets
    assert (question.id, question.source, question.text) == (
        "kalshi/KXFED-26DEC",
        "kalshi",
        "Fed decision in December? (In Dec 2026)",
    )
    assert (question.exclusivity, question.due, question.subtype) == ("at most one", NOW.at, "KXFED")
    assert question.criteria == "Cut: If the bank cuts.\nHold: If the bank holds."
    assert eggs.question.criteria == "If eggs cost more."
    assert question.closes_at == fed.closes_at == instant("2027-01-01")
    assert (cut.id, cut.label, cut.resolves_at) == ("KXFED-26DEC-CUT", "Cut", instant("2026-12-10T19:00:00Z"))
    quotes = cut.snapshot
    assert quotes is not None
    assert (quotes.yes_bid, quotes.yes_ask, quotes.no_ask, quotes.last_price) == pytest.approx((0.41, 0.44, 0.59, 0.42))
    assert (quotes.at, quotes.volume) == (NOW.at, 1200)
    # An empty book and a market that was never traded have no price.
    assert hold.snapshot is not None
    assert (hold.snapshot.price, hold.snapshot.yes_ask, hold.snapshot.volume) == (None, None, 300)
    assert (fed.volume, fed.volume_24h, fed.open_interest, fed.unit) == (1500, 30, 700, "USD")
    assert fed.liquidity == (12.5 if schema == "cents" else None)
    assert (fed.recurrence, fed.category, fed.status, fed.platform) == ("KXFED", "Economics", "open", "kalshi")
    assert (ledger.notes(), ledger.complete) == ((), True)


def test_every_target_refers_to_its_own_market() -> None:
    """This includes an event with a single market, whose ticker differs from the event's."""
    (fed, eggs), _ = kalshi.listing(server())
    assert market_ref(fed.question, fed.question.targets[1]) == MarketRef(platform="kalshi", id="KXFED-26DEC-HOLD")
    assert market_ref(eggs.question) == MarketRef(platform="kalshi", id="KXEGGS-26-4")
    assert market_ref(fed.question) is None


def test_pages_are_followed_to_the_end() -> None:
    many = [
        SampleKalshiEvent(
            ticker=f"KXA-{n}",
            series="KXA",
            title=f"{n}?",
            markets=(SampleKalshiMarket(ticker=f"KXA-{n}-T", label="T"),),
        )
        for n in range(7)
    ]
    listed, ledger = kalshi.listing(server(*many, page=3))
    assert [event.question.id for event in listed] == [f"kalshi/KXA-{n}" for n in range(7)]
    assert (ledger.pages, ledger.complete) == (3, True)
    queries = [request.query for request in kalshi.server.requests]
    assert [("cursor" in query) for query in queries] == [False, True, True]
    assert {(query["status"], query["limit"], query["with_nested_markets"]) for query in queries} == {
        ("open", "200", "true")
    }
    assert len(kalshi.listing(server(*many, page=3), pages=2)[0]) == 6


def test_the_filter_is_sent_to_the_server_and_applied_again() -> None:
    listed, ledger = kalshi.listing(server(), closes_after="2026-12-01", closes_before="2026-12-31")
    assert (listed, dict(ledger.left_out)) == ([], {"closes after the window": 2})
    assert kalshi.server.requests[0].query["min_close_ts"] == str(int(instant("2026-12-01").timestamp()))
    assert [e.category for e in kalshi.listing(server(), category="food")[0]] == ["Food"]
    assert [e.volume for e in kalshi.listing(server(), minimum_volume=1000)[0]] == [1500]
    kalshi.listing(server(), status="resolved")
    assert kalshi.server.requests[0].query["status"] == "settled"


def test_finished_markets_are_not_targets() -> None:
    names = ("A", "B", "C", "D")
    states = (("active", ""), ("initialized", ""), ("finalized", "no"), ("determined", "yes"))
    markets = tuple(
        SampleKalshiMarket(ticker=f"KXN-1-{name}", label=name, status=status, result=result, volume=10)
        for name, (status, result) in zip(names, states, strict=True)
    )
    event = SampleKalshiEvent(ticker="KXN-1", series="KXN", title="Who?", exclusive=True, markets=markets)
    (listed,), _ = kalshi.listing(server(event))
    assert [target.label for target in listed.question.targets] == ["A", "B"]
    assert listed.finished == ("KXN-1-C", "KXN-1-D")
    assert (listed.question.exclusivity, listed.volume) == ("at most one", 40)
    lost = SampleKalshiEvent(ticker="KXN-1", series="KXN", title="Who?", exclusive=True, markets=markets[:3])
    assert kalshi.listing(server(lost))[0][0].question.exclusivity == "at most one"


def test_scalar_markets_are_left_out() -> None:
    scalar = SampleKalshiMarket(ticker="KXS-1-X", label="X", kind="scalar")
    mixed = SampleKalshiEvent(ticker="KXS-1", series="KXS", title="How much?", markets=(scalar, EGGS.markets[0]))
    only = SampleKalshiEvent(ticker="KXS-2", series="KXS", title="How much?", markets=(scalar,))
    (listed,), ledger = kalshi.listing(server(mixed, only))
    assert [target.id for target in listed.question.targets] == ["KXEGGS-26-4"]
    assert [(skipped.id, skipped.kind) for skipped in ledger.skipped] == [("KXS-2", "unsupported")]


def test_categories_and_tags_come_from_the_series() -> None:
    bare = SampleKalshiEvent(ticker="KXB-1", series="KXB", title="?", category=None, markets=EGGS.markets)
    again = SampleKalshiEvent(ticker="KXB-2", series="KXB", title="?", category=None, markets=FED.markets)
    lost = SampleKalshiEvent(ticker="KXC-1", series="KXC", title="?", category=None, markets=FED.markets)
    series = {"KXB": {"ticker": "KXB", "category": "Food", "tags": ["Eggs", "Prices"]}}
    listed, _ = kalshi.listing(server(bare, again, lost, series=series), category="eggs")
    assert [(event.category, event.tags) for event in listed] == [("Food", ("Eggs", "Prices"))] * 2
    assert [request.path.rpartition("v2")[2] for request in kalshi.server.requests[1:]] == [
        "/series/KXB",
        "/series/KXC",
    ]


def test_one_event_is_read_by_its_ticker_also_from_the_archive() -> None:
    assert kalshi.event(server(), "KXFED-26DEC").question.exclusivity == "at most one"
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
    old = kalshi.event(server(settled, archived=["KXOLD-25-A"]), "KXOLD-25")
    assert (old.status, old.closes_at) == ("resolved", instant("2025-01-01"))
    assert [request.path.rpartition("v2")[2] for request in kalshi.server.requests] == [
        "/events/KXOLD-25",
        "/historical/markets",
    ]
    # The exchange leaves out empty lists; markets of settled events are then read from the archive.
    for dropped, single in (("event.markets", True), ("events.0.markets", False)):
        bare = MarketFaults(drifts=(FieldDrift(path=dropped),))
        again = server(settled, archived=["KXOLD-25-A"], trouble=bare)
        assert (kalshi.event(again, "KXOLD-25") if single else kalshi.listing(again, status="resolved")[0][0]) == old
    with pytest.raises(SourceError, match="kalshi event KXNOPE-1 does not exist"):
        kalshi.event(server(), "KXNOPE-1")
    empty = SampleKalshiEvent(ticker="KXE-1", series="KXE", title="?", markets=())
    with pytest.raises(SourceError, match="kalshi event KXE-1 cannot be used"):
        kalshi.event(server(empty), "KXE-1")


def test_a_backtest_is_refused_before_any_request() -> None:
    with pytest.raises(LiveOnly):
        kalshi.event(server(), "KXFED-26DEC", AsOf(at=NOW.at))
    assert not kalshi.server.requests


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
        ("events.0.markets.0.yes_ask_dollars", "retype", "yes_ask_dollars is not dollars in a string or whole cents"),
        ("events.0.markets.0.volume_fp", "drop", "markets[0].volume_fp is missing"),
        ("events.0.markets.0.rules_primary", "drop", "rules_primary is missing"),
        ("events.0.markets.0.yes_sub_title", "drop", "yes_sub_title is missing"),
    ],
)
def test_an_event_with_a_changed_field_is_skipped_with_platform_event_and_field(
    path: str, change: Any, reason: str
) -> None:
    fake = server(trouble=MarketFaults(drifts=(FieldDrift(path=path, change=change),)))
    listed, ledger = kalshi.listing(fake)
    assert [event.question.id for event in listed] == ["kalshi/KXEGGS"]
    (skipped,) = ledger.skipped
    assert (skipped.platform, skipped.id, skipped.kind) == ("kalshi", "KXFED-26DEC", "malformed")
    assert skipped.reason.startswith("kalshi event KXFED-26DEC: field ")
    assert reason in skipped.reason


def test_changed_fields_in_all_events_and_malformed_pages_raise() -> None:
    everywhere = MarketFaults(drifts=(FieldDrift(path="events.*.markets.*.close_time", change="rename"),))
    with pytest.raises(
        MalformedPayload, match=r"none of 2 entries .* kalshi event KXFED-26DEC: .*close_time is missing"
    ):
        kalshi.listing(server(trouble=everywhere))
    for path, problem in (("events", "events is missing"), ("cursor", "cursor is missing")):
        with pytest.raises(MalformedPayload, match=f"kalshi list: field {problem}"):
            kalshi.listing(server(trouble=MarketFaults(drifts=(FieldDrift(path=path),))))
    single = MarketFaults(drifts=(FieldDrift(path="event.markets.0.status"),))
    with pytest.raises(
        MalformedPayload, match=r"kalshi event KXFED-26DEC: field event\.markets\[0\]\.status is missing"
    ):
        kalshi.event(server(trouble=single), "KXFED-26DEC")


@pytest.mark.parametrize("schema", ["dollars", "cents"])
def test_a_market_without_quote_fields_has_no_price(schema: Any) -> None:
    """The exchange leaves out such fields; the market is then read without a price."""
    fields = ("yes_bid", "yes_ask", "no_bid", "no_ask", "last_price")
    drifts = tuple(
        FieldDrift(path=f"events.0.markets.0.{name}{'_dollars' if schema == 'dollars' else ''}") for name in fields
    )
    (fed, _), ledger = kalshi.listing(server(schema=schema, trouble=MarketFaults(drifts=drifts)))
    snapshot = fed.question.targets[0].snapshot
    assert snapshot is not None
    assert (snapshot.price, snapshot.yes_bid, snapshot.yes_ask, snapshot.volume) == (None, None, None, 1200)
    assert ledger.notes() == ()
    only_last = kalshi.listing(server(schema=schema, trouble=MarketFaults(drifts=drifts[:4])))[0][0]
    assert only_last.question.targets[0].snapshot.price == pytest.approx(0.42)


def test_markets_on_other_parts_of_the_exchange_are_noted() -> None:
    body = kalshi_event_body(FED)
    body |= {"exchange_index": 0}
    body["markets"][0] |= {"exchange_index": 0}
    body["markets"][1] |= {"exchange_index": 2}
    _, ledger = kalshi.listing(FakeKalshi({}).having(KalshiCatalogue([body])).server())
    assert ledger.notes() == ("1 × market of exchange_index 2",)


def test_new_fields_are_ignored() -> None:
    drifts = (
        FieldDrift(path="events.*.brand_new", change="add"),
        FieldDrift(path="events.*.markets.*.newer", change="add"),
    )
    listed, ledger = kalshi.listing(server(trouble=MarketFaults(drifts=drifts)))
    assert len(listed) == 2
    assert ledger.notes() == ()


def test_an_unknown_status_and_malformed_numbers_raise() -> None:
    def spoil(body: Any) -> None:
        body["events"][0]["markets"][0]["status"] = "hibernating"
        body["events"][1]["markets"][0]["yes_ask_dollars"] = "1.7"

    with pytest.raises(MalformedPayload, match=r"none of 2 entries could be read; .*status is not a known status"):
        kalshi.listing(server(), faults=[edited(spoil)])


def test_a_listing_survives_busy_servers_but_not_malformed_lists_or_outages() -> None:
    assert len(kalshi.listing(server(), faults=[busy(), cut_off()])[0]) == 2
    assert len(kalshi.listing(server(), faults=[failing(503), failing(500)])[0]) == 2
    with pytest.raises(SourceError, match="429"):
        kalshi.listing(server(), faults=[busy()] * 3)
    with pytest.raises(SourceError, match="429"):
        kalshi.listing(server(), faults=[busy("3600")])
    with pytest.raises(MalformedPayload, match="kalshi list: the response is not JSON"):
        kalshi.listing(server(), faults=[garbled()])
    with pytest.raises(SourceError, match="503"):
        kalshi.listing(server(trouble=MarketFaults(down=("/events",))))
    bare = SampleKalshiEvent(ticker="KXB-1", series="KXB", title="?", category=None, markets=EGGS.markets)
    with pytest.raises(SourceError, match=r"series/KXB.*503"):
        kalshi.listing(server(bare, trouble=MarketFaults(down=("/series",))))


@pytest.mark.shared_data
def test_every_real_event_in_the_old_notation_is_read(shared_data: Path) -> None:
    """65 events with 622 markets as the exchange sent them in 2025."""
    raw = json.loads((shared_data / "kalshi" / "events_old_schema.json").read_text())
    fake = FakeKalshi({}).having(KalshiCatalogue(raw, page=20))
    settled, ledger = kalshi.listing(fake.server(), status="resolved", limit=1000)
    opened, other = kalshi.listing(fake.server(), status="open")
    by_ticker = {event.question.id.removeprefix("kalshi/"): event for event in [*settled, *opened]}
    assert not ledger.skipped
    assert not other.skipped
    # The one event that is partly open was also among the settled ones.
    assert dict(ledger.left_out) == {"open, not resolved": 1}
    assert set(by_ticker) == {event["event_ticker"] for event in raw}
    assert sum(len(event.question.targets) + len(event.finished) for event in by_ticker.values()) == 622
    for event in raw:
        mine = by_ticker[event["event_ticker"]]
        assert mine.volume == pytest.approx(event["volume"])
        excluding = event["mutually_exclusive"] and len(event["markets"]) > 1
        assert mine.question.exclusivity == ("at most one" if excluding else "independent")
        quotes = {market["ticker"]: market for market in event["markets"]}
        for target in mine.question.targets:
            market, snapshot = quotes[target.id], target.snapshot
            assert snapshot is not None
            assert (snapshot.last_price or 0) * 100 == pytest.approx(market["last_price"])
            if snapshot.yes_ask is not None:
                assert snapshot.yes_ask * 100 == pytest.approx(market["yes_ask"])
                assert market["rules_primary"].strip() in mine.question.criteria
    assert len(by_ticker["KXWHVISIT-25"].finished) == 2


def exclusive(*markets: tuple[str, tuple[str, float | None, float | None]], **options: Any) -> str:
    """Return the exclusivity of an event whose markets the exchange marks as mutually exclusive."""
    samples = tuple(
        SampleKalshiMarket(ticker=f"KXZ-1-{n}", label=label, strike=strike, **options)
        for n, (label, strike) in enumerate(markets)
    )
    event = SampleKalshiEvent(ticker="KXZ-1", series="KXZ", title="?", exclusive=True, markets=samples)
    return kalshi.listing(server(event))[0][0].question.exclusivity


NONE = ("custom", None, None)


@pytest.mark.parametrize(
    ("label", "whole"),
    [
        ("Other", True),
        ("Any other candidate", True),
        ("Another party", True),
        ("Someone else", True),
        ("None of the above", True),
        ("The field", True),
        ("Mother Teresa", False),
        ("No one before 2027", False),
        ("Another One Bites the Dust", False),
    ],
)
def test_named_markets_are_exhaustive_only_with_one_for_all_others(label: str, whole: bool) -> None:
    assert exclusive(("Ann", NONE), ("Bob", NONE), (label, NONE)) == ("exactly one" if whole else "at most one")


@pytest.mark.parametrize(
    ("strikes", "whole"),
    [
        # A day's temperature, in whole degrees.
        ([("less", None, 61), ("between", 61, 62), ("between", 63, 64), ("greater", 64, None)], True),
        ([("greater", 64, None), ("between", 61, 64), ("less", None, 61)], True),
        # A rate that is cut, held or raised.
        ([("less", None, 0), ("between", 0, 0), ("greater", 0, None)], True),
        # The price of a coin, in cents.
        ([("less", None, 70000), ("between", 70000, 70249.99), ("greater_or_equal", 70250, None)], True),
        ([("less_or_equal", None, 9.9), ("between", 10, 14.9), ("greater", 14.9, None)], True),
        # Inflation in 2023: 10.0 % was in no market. The AfD's share: 9.9 % was in none.
        ([("less", None, 1), ("between", 1, 9.9), ("greater", 10, None)], False),
        ([("less", None, 9.9), ("between", 10, 30), ("greater", 30, None)], False),
        ([("between", 0, 0), ("between", 1, 1), ("greater", 1, None)], False),
        ([("less", None, 61), ("between", 61, 62), ("greater", 63, None)], False),
        ([("less", None, 61), ("greater", 61, None)], False),
        ([("less", None, 61), ("between", 61, 62)], False),
        ([("less", None, 61), ("greater", 60, None), NONE], False),
        ([("less", None, None), ("greater", 60, None)], False),
    ],
)
def test_ranges_are_exhaustive_only_without_a_gap(strikes: Any, whole: bool) -> None:
    exclusivity = exclusive(*((f"range {n}", strike) for n, strike in enumerate(strikes)))
    assert exclusivity == ("exactly one" if whole else "at most one")


OVER = {"status": "finalized", "settled": "2026-12-11T00:00:00Z"}
MARKETS = (
    SampleKalshiMarket(ticker="KXA-1-YES", label="a", result="yes", paid=1.0, **OVER),
    SampleKalshiMarket(ticker="KXA-1-NO", label="b", result="no", paid=0.0, **OVER),
    SampleKalshiMarket(ticker="KXA-1-OPEN", label="c"),
    SampleKalshiMarket(ticker="KXA-1-CLOSED", label="d", status="closed"),
    SampleKalshiMarket(ticker="KXA-1-DETERMINED", label="e", status="determined", result="yes"),
    SampleKalshiMarket(ticker="KXA-1-DISPUTED", label="f", status="disputed", result="yes"),
    SampleKalshiMarket(ticker="KXA-1-AMENDED", label="g", status="amended", result="no"),
    SampleKalshiMarket(ticker="KXA-1-HALF", label="h", result="", paid=0.5, **OVER),
    SampleKalshiMarket(ticker="KXA-1-VOID", label="i", result="void", **OVER),
    SampleKalshiMarket(ticker="KXA-1-PART", label="j", result="yes", paid=0.4, **OVER),
    SampleKalshiMarket(ticker="KXA-1-ODD", label="k", result="maybe", **OVER),
    SampleKalshiMarket(ticker="KXA-1-TIE", label="l", result="scalar", paid=0.5, **OVER),
    SampleKalshiMarket(ticker="KXA-1-RAIN", label="m", result="scalar", paid=0.01, **OVER),
    SampleKalshiMarket(ticker="KXA-1-UNPAID", label="n", result="scalar", **OVER),
    SampleKalshiMarket(ticker="KXA-1-NOTYET", label="o", result="", **OVER),
)
EVENT = SampleKalshiEvent(ticker="KXA-1", series="KXA", title="?", markets=MARKETS)
TICKERS = [market.ticker for market in MARKETS]


def settled_server(schema: Any = "dollars", trouble: MarketFaults | None = None, **options: Any) -> Any:
    return FakeKalshi({}).having(KalshiCatalogue([kalshi_event_body(EVENT, schema)], **options), trouble).server()


@pytest.mark.parametrize("schema", ["dollars", "cents"])
@pytest.mark.parametrize("archived", [False, True])
def test_only_finalized_markets_have_an_outcome(schema: Any, archived: bool) -> None:
    question = asked("kalshi/KXA-1", *TICKERS)
    resolutions = kalshi.settle(settled_server(schema, archived=TICKERS if archived else ()), [question])
    assert {ticker[6:]: (resolution.outcome, resolution.payoff) for ticker, resolution in resolutions.items()} == {
        "YES": (1, None),
        "NO": (0, None),
        "HALF": (None, 0.5),
        "VOID": (None, None),
        "PART": (None, 0.4),
        "TIE": (None, 0.5),
        "RAIN": (None, 0.01),
        "UNPAID": (None, None),
    }
    first = resolutions["KXA-1-YES"]
    assert (first.question_id, first.due) == ("kalshi/KXA-1", question.due)
    # The older notation only states when trading ended.
    assert first.resolved_at == instant("2026-12-11" if schema == "dollars" else "2027-01-01")
    assert first.provenance.endswith(f"/trade-api/v2{'/historical' if archived else ''}/markets/KXA-1-YES")
    assert kalshi.reasons == {
        "KXA-1-ODD": "kalshi market KXA-1-ODD: field markets[10].result is not yes, no or nothing"
    }
    paths = [request.path.rpartition("v2")[2] for request in kalshi.server.requests]
    assert paths == (["/markets", "/historical/markets"] if archived else ["/markets"])


def test_results_by_market_ticker_cover_every_asking_and_skip_other_platforms() -> None:
    questions = [
        asked("kalshi/KXA-1-YES"),
        asked("kalshi/KXA-1-YES", due="2026-02-01"),
        asked("kalshi/KXA-1-YES"),
        asked("manifold/abcdefgh12"),
        asked("kalshi/KXNOPE-1"),
    ]
    kalshi.settle(settled_server(), questions)
    assert [(resolution.due, resolution.outcome) for resolution in kalshi.settled] == [
        (questions[0].due, 1),
        (questions[1].due, 1),
    ]
    assert kalshi.reasons == {"KXNOPE-1": "the platform has no such market"}
    assert kalshi.settle(settled_server(), []) == {}
    assert not kalshi.server.requests


def test_results_of_many_markets_take_few_requests() -> None:
    markets = tuple(SampleKalshiMarket(ticker=f"KXM-1-{n}", label=str(n), result="yes", **OVER) for n in range(250))
    event = kalshi_event_body(SampleKalshiEvent(ticker="KXM-1", series="KXM", title="?", markets=markets))
    fake = FakeKalshi({}).having(KalshiCatalogue([event], page=40)).server()
    resolutions = kalshi.settle(fake, [asked("kalshi/KXM-1", *(market.ticker for market in markets))])
    assert len(resolutions) == 250
    assert len(kalshi.server.requests) == 3 + 3 + 2


def test_one_unreadable_result_does_not_affect_the_others() -> None:
    question = asked("kalshi/KXA-1", "KXA-1-YES", "KXA-1-NO")
    nameless = MarketFaults(drifts=(FieldDrift(path="markets.0.ticker"),))
    assert list(kalshi.settle(settled_server(trouble=nameless), [question])) == ["KXA-1-NO"]
    assert kalshi.reasons == {
        "at markets[0]": "kalshi market at markets[0]: field markets[0].ticker is missing",
        "KXA-1-YES": "the platform has no such market",
    }
    for change, problem in (("drop", "is missing"), ("retype", "is not a text")):
        trouble = MarketFaults(drifts=(FieldDrift(path="markets.0.result", change=change),))
        assert list(kalshi.settle(settled_server(trouble=trouble), [question])) == ["KXA-1-NO"]
        assert kalshi.reasons == {"KXA-1-YES": f"kalshi market KXA-1-YES: field markets[0].result {problem}"}
    with pytest.raises(SourceError, match="field markets is missing"):
        kalshi.settle(settled_server(trouble=MarketFaults(drifts=(FieldDrift(path="markets"),))), [question])


def test_results_survive_busy_servers_but_not_outages() -> None:
    question = asked("kalshi/KXA-1", "KXA-1-YES")
    assert kalshi.settle(settled_server(), [question], faults=[busy(), cut_off()])["KXA-1-YES"].outcome == 1
    with pytest.raises(SourceError, match="500"):
        kalshi.settle(settled_server(), [question], faults=[failing()] * 3)
    with pytest.raises(SourceError, match="503"):
        kalshi.settle(settled_server(archived=["KXA-1-YES"], trouble=MarketFaults(down=("/historical",))), [question])
    with pytest.raises(SourceError, match=r"historical/markets.*503"):
        kalshi.settle(settled_server(trouble=MarketFaults(down=("/historical",))), [asked("kalshi/KXNOPE-1")])


def test_a_batch_refused_because_of_one_ticker_is_split() -> None:
    catalogue = KalshiCatalogue([kalshi_event_body(EVENT)])
    known = catalogue.answer

    def strict(path: str, query: Any) -> Any:
        return (400, {"error": {"code": "bad_ticker"}}) if "KXBAD-1" in query.get("tickers", "") else known(path, query)

    catalogue.answer = strict
    question = asked("kalshi/KXA-1", "KXA-1-YES", "KXBAD-1", "KXA-1-NO")
    resolutions = kalshi.settle(FakeKalshi({}).having(catalogue).server(), [question])
    assert {ticker: resolution.outcome for ticker, resolution in resolutions.items()} == {"KXA-1-YES": 1, "KXA-1-NO": 0}
    assert "bad_ticker" in kalshi.reasons["KXBAD-1"]


@pytest.mark.shared_data
@pytest.mark.parametrize("archived", [False, True])
def test_real_results_in_the_old_notation_are_read(shared_data: Path, archived: bool) -> None:
    """609 finalized markets as sent in 2025; the 13 still active are absent."""
    raw = json.loads((shared_data / "kalshi" / "events_old_schema.json").read_text())
    results = {market["ticker"]: market["result"] for event in raw for market in event["markets"]}
    questions = [
        asked(f"kalshi/{event['event_ticker']}", *(market["ticker"] for market in event["markets"])) for event in raw
    ]
    fake = FakeKalshi({}).having(KalshiCatalogue(raw, archived=results if archived else ()))
    resolutions = kalshi.settle(fake, questions)
    assert not kalshi.skipped
    assert len(resolutions) == 609
    expected = {ticker: {"yes": 1, "no": 0}[result] for ticker, result in results.items() if result}
    assert {ticker: resolution.outcome for ticker, resolution in resolutions.items()} == expected
    assert all(resolution.resolved_at is not None and resolution.payoff is None for resolution in resolutions.values())


@pytest.mark.shared_data
def test_real_results_in_the_new_notation_are_read(shared_data: Path) -> None:
    """267 markets of 2026, quoted while open and resolved since."""
    lines = (shared_data / "kalshi" / "resolved_markets.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    events: dict[str, dict[str, Any]] = {}
    for row in rows:
        event = events.setdefault(
            row["event"]["event_ticker"], {"event_ticker": row["event"]["event_ticker"], "markets": []}
        )
        names = {"ticker": row["event"]["market_ticker"], "event_ticker": row["event"]["event_ticker"]}
        event["markets"].append(
            {
                **row["market_snapshot"],
                **names,
                "status": "finalized",
                "result": row["result"],
                "close_time": row["event"]["close_time"],
            }
        )
    still_open = [
        {**event, "markets": [{**m, "status": "active", "result": ""} for m in event["markets"]]}
        for event in events.values()
    ]
    questions = [
        asked(f"kalshi/{ticker}", *(m["ticker"] for m in event["markets"])) for ticker, event in events.items()
    ]
    resolutions = kalshi.settle(FakeKalshi({}).having(KalshiCatalogue(events.values())), questions)
    assert {t: resolution.outcome for t, resolution in resolutions.items()} == {
        row["event"]["market_ticker"]: int(row["result"] == "yes") for row in rows
    }
    assert kalshi.settle(FakeKalshi({}).having(KalshiCatalogue(still_open)), questions) == {}
    assert not kalshi.skipped


def test_one_market_is_listed_priced_and_settled() -> None:
    still = SampleKalshiMarket(ticker="KXRAIN-26NOV05-Y", label="Rain", bid=0.6, ask=0.64)
    over = replace(still, status="finalized", result="yes", settled="2026-11-06T00:00:00Z")
    quotes = SampleKalshiBook(quotes=((second("2026-10-20"), 0.6, 0.64),))

    def during(market: SampleKalshiMarket) -> FakeKalshi:
        event = SampleKalshiEvent(ticker="KXRAIN-26NOV05", series="KXRAIN", title="Rain?", markets=(market,))
        return FakeKalshi({still.ticker: quotes}).having(KalshiCatalogue([kalshi_event_body(event)]))

    (listed,), _ = kalshi.listing(during(still))
    ref = market_ref(listed.question, listed.question.targets[0])
    assert ref is not None
    assert kalshi.prices(during(still), ref.id, AsOf(at="2026-10-30T00:00:00Z"), days=5)[-1].p == 0.62
    assert kalshi.settle(during(still), [listed.question]) == {}
    resolution = kalshi.settle(during(over), [listed.question])[still.ticker]
    assert (resolution.outcome, resolution.resolved_at) == (1, instant("2026-11-06"))
