"""Polymarket: prices of two services, events of the catalogue, and results."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import FieldDrift, MarketFaults, busy, cut_off, failing
from fakes.market_reader import CANARY, NOW, Reader, asked, edited
from fakes.markets import FakePolymarket, PolymarketListing
from fakes.samples import SamplePolymarketEvent, SamplePolymarketMarket, polymarket_event_body
from foretell.data.http import SourceError
from foretell.data.markets.listing import LiveOnly
from foretell.data.markets.market import MarketRef, PricesUnavailable, market_ref
from foretell.data.payload import MalformedPayload
from foretell.practice.markets.polymarket import PolymarketCatalogue
from foretell.practice.server import json_response
from foretell.questions.as_of import AsOf, instant

polymarket = Reader("polymarket")


CONDITION = "0x" + "5c" * 32
CUTOFF = AsOf(at="2026-02-10T18:30:00Z")
YES, NO = "1001", "1002"


def second(text: str) -> int:
    return int(instant(text).timestamp())


TRADES = (
    (second("2025-10-01"), 0.05),
    (second("2026-01-05T06:00:00Z"), 0.20),
    (second("2026-01-05T13:00:00Z"), 0.25),
    (second("2026-02-10T17:00:00Z"), 0.40),
    (second("2026-02-10T19:00:00Z"), 0.95),
    (second("2026-02-12"), 1.0),
)


def listing(trades: Any = TRADES, **options: Any) -> PolymarketListing:
    other = tuple((at, 1 - p) for at, p in trades)
    fields: dict[str, Any] = {"slug": "will-it", "outcomes": ("No", "Yes"), "tokens": (NO, YES), **options}
    return PolymarketListing(trades={YES: tuple(trades), NO: other}, **fields)


def fake(trades: Any = TRADES, *, closed: bool = False, **options: Any) -> FakePolymarket:
    return FakePolymarket({CONDITION: listing(trades, closed=closed)}, **options)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_the_price_of_yes_is_found_at_any_position_in_the_list(closed: bool, nested: bool) -> None:
    server = fake(closed=closed, nested=nested, canary=CANARY).server()
    points = polymarket.prices(server, CONDITION, CUTOFF)
    # The trade of 17:00 is known when its bucket is over.
    assert (points[-1].at, points[-1].p) == (instant("2026-02-10T18:00:00Z"), 0.40)
    assert points[0].p == 0.25
    closed_params = [
        request.query.get("closed") for request in polymarket.server.requests if request.path == "/gamma/markets"
    ]
    assert closed_params == (["false", "true"] if closed else ["false"])


def test_a_bucket_still_open_at_the_cutoff_is_not_read() -> None:
    """The fake stamps buckets with their start: the one of 18:00 has the price of 19:00."""
    assert max(p.p for p in polymarket.prices(fake(careless=True), CONDITION, CUTOFF)) == 0.40


def test_prices_are_found_by_outcome_and_slug_and_unknown_markets_raise() -> None:
    assert polymarket.prices(fake(), f"{CONDITION}#no", CUTOFF)[-1].p == pytest.approx(0.60)
    assert polymarket.prices(fake(), "slug:will-it", CUTOFF)[-1].p == 0.40
    with pytest.raises(PricesUnavailable, match="lists no market 0xdead"):
        polymarket.prices(fake(), "0xdead", CUTOFF)
    teams = FakePolymarket({CONDITION: listing(outcomes=("Up", "Down"))})
    with pytest.raises(PricesUnavailable, match=r"no outcome 'yes'; name one with .*#<outcome>"):
        polymarket.prices(teams, CONDITION, CUTOFF)


def test_windows_are_short_and_pages_are_followed() -> None:
    many = tuple((second("2026-01-01") + 10_800 * i, 0.3 + i / 1000) for i in range(300))
    points = polymarket.prices(fake(many, page=50), CONDITION, CUTOFF)
    whole = polymarket.prices(fake(many), CONDITION, CUTOFF)
    assert points == whole
    *windows, at_cutoff = [
        request.query for request in polymarket.server.requests if request.path == "/data/v2/prices-history"
    ]
    assert len(windows) == 5
    assert at_cutoff == {"token_id": YES, "as_of": str(second("2026-02-10T18:30:00Z"))}
    assert all(int(window["end"]) - int(window["start"]) <= 15 * 86400 for window in windows)
    assert int(windows[-1]["end"]) == second("2026-02-10T18:30:00Z") + 1


def test_a_market_without_recent_trades_has_its_last_price() -> None:
    points = polymarket.prices(fake(TRADES[:1], canary=CANARY), CONDITION, CUTOFF)
    assert [(p.at, p.p) for p in points] == [(instant("2025-10-01"), 0.05)]
    assert polymarket.server.requests[-1].query["as_of"] == str(second("2026-02-10T18:30:00Z"))


@pytest.mark.parametrize("closed", [False, True])
def test_without_the_data_service_half_daily_prices_come_from_the_order_book(closed: bool) -> None:
    server = fake(data_service=False, closed=closed, canary=CANARY, careless=True).server()
    points = polymarket.prices(server, CONDITION, CUTOFF)
    assert [p.p for p in points[-2:]] == [0.25, 0.40]
    windows = [request.query for request in polymarket.server.requests if request.path == "/clob/prices-history"]
    assert all(int(window["endTs"]) - int(window["startTs"]) <= 14 * 86400 for window in windows)
    assert {window["fidelity"] for window in windows} == {"720"}


def test_prices_come_from_the_order_book_if_the_data_service_is_down() -> None:
    same = edited(lambda body: None)
    assert polymarket.prices(fake(), CONDITION, CUTOFF, faults=[same, *[failing()] * 3])[-1].p in (0.25, 0.40)
    assert any(request.path == "/clob/prices-history" for request in polymarket.server.requests)
    with pytest.raises(SourceError, match="500"):
        polymarket.prices(fake(), CONDITION, CUTOFF, faults=[same, *[failing()] * 6])
    assert polymarket.prices(fake(), CONDITION, CUTOFF, faults=[busy(), same, busy()])[-1].p == 0.40


def test_before_the_first_trade_there_are_no_prices() -> None:
    with pytest.raises(PricesUnavailable, match="shows no price"):
        polymarket.prices(fake(), CONDITION, AsOf.day("2025-09-01"))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda body: body[0].pop("outcomes"), r"\[0\]\.outcomes is missing"),
        (lambda body: body[0].pop("clobTokenIds"), "clobTokenIds is missing"),
        (lambda body: body[0].update(outcomes="[Yes"), "outcomes is not JSON inside a string"),
        (lambda body: body[0].update(clobTokenIds='["1"]'), "clobTokenIds is not as long as outcomes"),
    ],
)
def test_an_error_about_a_changed_catalogue_names_the_field(change: Callable[[Any], None], field: str) -> None:
    with pytest.raises(SourceError, match=field) as caught:
        polymarket.prices(fake(canary=CANARY), CONDITION, CUTOFF, faults=[edited(change)])
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda body: body["data"][0].pop("price"), "data[0].price is missing"),
        (lambda body: body["data"][0].pop("timestamp"), "data[0].timestamp is missing"),
        (lambda body: body["data"][0].update(price=40), "price is not a probability"),
    ],
)
def test_one_unreadable_price_is_reported_and_the_rest_is_read(change: Callable[[Any], None], field: str) -> None:
    same = edited(lambda body: None)
    busy_market = tuple((second("2025-12-13") + 86_400 * i, 0.5) for i in range(30))
    points = polymarket.prices(fake(busy_market), CONDITION, CUTOFF, faults=[same, edited(change)])
    assert len(points) == 29
    (skipped,) = polymarket.skipped
    assert skipped.reason.startswith("1 of 32 entries could not be read; polymarket")
    assert field in skipped.reason


def test_a_changed_history_raises_instead_of_using_the_order_book() -> None:
    same = edited(lambda body: None)
    busy_market = tuple((second("2025-12-13") + 86_400 * i, 0.5) for i in range(30))

    def spoil(body: Any) -> None:
        for row in body["data"]:
            row["cost"] = row.pop("price")

    faults = [same, edited(lambda body: body.pop("data"))]
    with pytest.raises(SourceError, match="data is missing"):
        polymarket.prices(fake(busy_market), CONDITION, CUTOFF, faults=faults)
    with pytest.raises(MalformedPayload, match=r"32 of 32 entries could not be read; .*price is missing"):
        polymarket.prices(fake(busy_market), CONDITION, CUTOFF, faults=[same, *[edited(spoil)] * 5])


def test_the_price_at_the_cutoff_itself_is_requested() -> None:
    """The bucket of 18:00 is still open at 18:30, but the price at that time can be requested."""
    trades = ((second("2026-02-10T15:00:00Z"), 0.2), (second("2026-02-10T18:10:00Z"), 0.3))
    points = polymarket.prices(fake(trades), CONDITION, CUTOFF)
    assert (points[-1].at, points[-1].p) == (instant("2026-02-10T18:10:00Z"), 0.3)


def test_a_catalogue_list_inside_an_object_is_read() -> None:
    server = fake().server()
    catalogue = fake()

    def enveloped(request: Any) -> Any:
        return json_response({"markets": catalogue.get(request)[1], "next_cursor": None})

    server.route("GET", "/gamma/markets", enveloped)
    assert polymarket.prices(server, CONDITION, CUTOFF)[-1].p == 0.40


@settings(max_examples=15)
@given(
    trades=st.lists(
        st.tuples(st.integers(0, 90 * 24 * 60), st.integers(0, 100)), max_size=12, unique_by=lambda t: t[0]
    ),
    minutes=st.integers(0, 90 * 24 * 60),
    data_service=st.booleans(),
)
def test_trades_after_the_cutoff_do_not_change_prices(
    trades: list[tuple[int, int]], minutes: int, data_service: bool
) -> None:
    start = second("2026-01-01")
    all_trades = tuple((start + 60 * at, p / 100) for at, p in sorted(trades))
    end = start + 60 * minutes + 30
    cutoff = AsOf(at=instant("2026-01-01").fromtimestamp(end, instant("2026-01-01").tzinfo))
    answers = []
    for known in (all_trades, tuple(trade for trade in all_trades if trade[0] <= end)):
        server = fake(known, data_service=data_service, careless=known is all_trades and not data_service).server()
        try:
            answers.append(polymarket.prices(server, CONDITION, cutoff))
        except PricesUnavailable:
            answers.append([])
    assert answers[0] == answers[1]


A, B, C = ("0x" + digit * 64 for digit in "abc")
RACE = SamplePolymarketEvent(
    id="101",
    title="Who wins the race?",
    negative_risk=True,
    series="race",
    tags=("All", "Politics", "Elections"),
    figures={"volume": 5000.5, "volume24hr": 12, "liquidity": 70, "openInterest": 900},
    markets=(
        SamplePolymarketMarket(
            condition=A, question="Will Ann win?", label="Ann", bid=0.55, ask=0.6, last=0.58, volume=4000
        ),
        SamplePolymarketMarket(
            condition=B, question="Will Bob win?", label="Bob", outcomes=("No", "Yes"), bid=0.55, ask=0.6, last=0.57
        ),
    ),
)
GAME = SamplePolymarketEvent(
    id="202",
    title="Lions vs. Bears",
    tags=("Sports",),
    markets=(
        SamplePolymarketMarket(
            condition=C, question="Lions vs. Bears", outcomes=("Lions", "Bears"), bid=0.3, ask=0.4, volume=10
        ),
    ),
)


def server(*groups: SamplePolymarketEvent, **options: Any) -> Any:
    trouble = options.pop("trouble", None)
    catalogue = PolymarketCatalogue(map(polymarket_event_body, groups or (RACE, GAME)))
    return FakePolymarket({}, **options).having(catalogue, trouble).server()


def test_a_negative_risk_event_has_exactly_one_winner() -> None:
    (race, _), ledger = polymarket.listing(server())
    question, (ann, bob) = race.question, race.question.targets
    assert (question.id, question.text, question.exclusivity) == (
        "polymarket/101",
        "Who wins the race?",
        "exactly one",
    )
    assert (ann.id, ann.label, bob.label) == (A, "Ann", "Bob")
    assert ann.snapshot is not None
    assert bob.snapshot is not None
    assert (ann.snapshot.yes_bid, ann.snapshot.yes_ask, ann.snapshot.no_ask) == (0.55, 0.6, 0.45)
    # Quotes are those of the first outcome, which for Bob is no.
    assert (bob.snapshot.yes_bid, bob.snapshot.yes_ask, bob.snapshot.no_ask) == (0.4, 0.45, 0.6)
    assert (ann.snapshot.last_price, bob.snapshot.last_price, ann.snapshot.volume) == (0.58, 0.43, 4000)
    assert (race.volume, race.volume_24h, race.liquidity, race.open_interest) == (5000.5, 12, 70, 900)
    assert (race.recurrence, race.category, race.tags) == ("race", "Politics", ("Politics", "Elections"))
    assert (race.status, race.closes_at, question.url) == (
        "open",
        instant("2027-01-01"),
        "https://polymarket.com/event/event-101",
    )
    assert question.criteria == "This market resolves to yes if it happens."
    assert ledger.notes() == ()


def test_an_event_with_named_outcomes_has_them_as_targets() -> None:
    (_, game), _ = polymarket.listing(server())
    lions, bears = game.question.targets
    assert (lions.id, bears.id, game.question.exclusivity) == (f"{C}#Lions", f"{C}#Bears", "exactly one")
    assert lions.snapshot is not None
    assert bears.snapshot is not None
    assert (lions.snapshot.yes_ask, bears.snapshot.yes_ask, bears.snapshot.yes_bid) == (0.4, 0.7, 0.6)
    # Without a last trade, the price is that of the catalogue.
    assert lions.snapshot.last_price == 0.5
    spread = SamplePolymarketMarket(condition=A, question="Spread: Lions (-3.5)", outcomes=("Lions", "Bears"))
    many = SamplePolymarketEvent(id="3", title="Lions vs. Bears", markets=(*GAME.markets, spread))
    (both,), _ = polymarket.listing(server(many))
    assert [target.label for target in both.question.targets] == [
        "Lions vs. Bears: Lions",
        "Spread: Lions (-3.5): Lions",
    ]
    assert (both.question.exclusivity, both.volume) == ("independent", 10)
    assert both.recurrence == "lions vs. bears"


def test_targets_refer_to_markets_with_prices() -> None:
    (race, game), _ = polymarket.listing(server())
    refs = [market_ref(event.question, target) for event in (race, game) for target in event.question.targets]
    assert refs == [MarketRef(platform="polymarket", id=id) for id in (A, B, f"{C}#Lions", f"{C}#Bears")]
    lone = SamplePolymarketEvent(id="4", title="Ann?", markets=RACE.markets[:1])
    (single,), _ = polymarket.listing(server(lone))
    assert market_ref(single.question) == MarketRef(platform="polymarket", id=A)
    assert single.question.exclusivity == "independent"


def test_pages_are_read_by_cursor_or_on_older_servers_by_offset() -> None:
    many = [
        SamplePolymarketEvent(
            id=str(n), title=f"{n}?", markets=(SamplePolymarketMarket(condition=f"0x{n:064x}", question=f"{n}?"),)
        )
        for n in range(120)
    ]
    listed, ledger = polymarket.listing(server(*many), limit=1000)
    assert ([event.question.id for event in listed], ledger.pages) == ([f"polymarket/{n}" for n in range(120)], 3)
    requests = [(request.path, request.query.get("after_cursor")) for request in polymarket.server.requests]
    assert requests == [("/gamma/events/keyset", cursor) for cursor in (None, "c50", "c100")]
    assert {request.query["closed"] for request in polymarket.server.requests} == {"false"}
    older, _ = polymarket.listing(server(*many, cursors=False), limit=1000)
    assert older == listed
    assert [request.query.get("offset") for request in polymarket.server.requests] == [None, "0", "50", "100"]


def test_a_server_that_ignores_the_cursor_raises() -> None:
    many = [SamplePolymarketEvent(id=str(n), title="?", markets=RACE.markets) for n in range(70)]
    fake = FakePolymarket({}).having(PolymarketCatalogue(map(polymarket_event_body, many)))
    heeded = fake.catalogue.answer
    fake.catalogue.answer = lambda path, query: heeded(path, {k: v for k, v in query.items() if k != "after_cursor"})
    with pytest.raises(MalformedPayload, match="polymarket list: the cursor leads back"):
        polymarket.listing(fake.server(), limit=1000)


def test_the_window_is_sent_to_the_server() -> None:
    listed, _ = polymarket.listing(server(), closes_after="2026-12-01", closes_before="2026-12-31", status="resolved")
    query = polymarket.server.requests[0].query
    assert (query["end_date_min"], query["end_date_max"]) == ("2026-12-01T00:00:00Z", "2026-12-31T00:00:00Z")
    assert (listed, query["closed"]) == ([], "true")
    assert [event.category for event in polymarket.listing(server(), category="elections")[0]] == ["Politics"]


@pytest.mark.parametrize(
    ("bob", "exclusivity"),
    [
        ({"closed": True, "prices": ("0", "1")}, "exactly one"),
        ({"closed": True, "prices": ("0", "1"), "stage": "resolved"}, "exactly one"),
        ({"closed": True, "prices": ("0", "1"), "stage": "disputed"}, "at most one"),
        ({"closed": True, "prices": ("1", "0")}, "at most one"),
        ({"accepting": False}, "at most one"),
    ],
)
def test_finished_markets_are_not_targets(bob: dict[str, Any], exclusivity: str) -> None:
    over = SamplePolymarketMarket(condition=B, question="Will Bob win?", label="Bob", **bob)
    third = SamplePolymarketMarket(condition=C, question="Will Cat win?", label="Cat")
    group = SamplePolymarketEvent(id="5", title="Who?", negative_risk=True, markets=(RACE.markets[0], over, third))
    (listed,), _ = polymarket.listing(server(group))
    assert ([target.label for target in listed.question.targets], listed.finished) == (["Ann", "Cat"], (B,))
    assert listed.question.exclusivity == exclusivity


def test_placeholder_markets_of_augmented_events_are_not_targets() -> None:
    place = SamplePolymarketMarket(condition=C, question="Will Person A win?", label="Person A", active=False)
    growing = SamplePolymarketEvent(
        id="6", title="Who?", negative_risk=True, augmented=True, markets=(*RACE.markets, place)
    )
    plain = SamplePolymarketEvent(id="7", title="Who?", negative_risk=True, markets=(*RACE.markets, place))
    (augmented, whole), _ = polymarket.listing(server(growing, plain))
    assert ([t.label for t in augmented.question.targets], augmented.question.exclusivity) == (
        ["Ann", "Bob"],
        "at most one",
    )
    assert [t.label for t in whole.question.targets] == ["Ann", "Bob", "Person A"]


def test_one_event_is_read_by_number_or_slug() -> None:
    assert polymarket.event(server(), "101") == polymarket.event(server(), "slug:event-101")
    assert [request.path for request in polymarket.server.requests] == ["/gamma/events/slug/event-101"]
    done = SamplePolymarketMarket(condition=A, question="Done?", closed=True, prices=("1", "0"), stage="resolved")
    assert polymarket.event(server(SamplePolymarketEvent(id="8", title="?", markets=(done,))), "8").status == "resolved"
    with pytest.raises(SourceError, match="polymarket event 999 does not exist"):
        polymarket.event(server(), "999")
    with pytest.raises(SourceError, match="polymarket event 9 cannot be used: it has no market"):
        polymarket.event(server(SamplePolymarketEvent(id="9", title="?", markets=())), "9")
    with pytest.raises(LiveOnly):
        polymarket.event(server(), "101", AsOf(at=NOW.at))


def test_lists_that_are_not_strings_and_books_without_orders_are_read() -> None:
    body = polymarket_event_body(
        SamplePolymarketEvent(
            id="1", title="?", markets=(SamplePolymarketMarket(condition=A, question="?", bid=0, ask=1, prices=None),)
        )
    )
    body["markets"][0]["outcomes"] = json.loads(body["markets"][0]["outcomes"])
    fake = FakePolymarket({}).having(PolymarketCatalogue([body])).server()
    snapshot = polymarket.listing(fake)[0][0].question.targets[0].snapshot
    assert (snapshot.yes_bid, snapshot.yes_ask, snapshot.price) == (None, None, None)


@pytest.mark.parametrize(
    ("path", "change", "reason"),
    [
        ("events.0.title", "drop", "field events[0].title is missing"),
        ("events.0.slug", "drop", "field events[0].slug is missing"),
        ("events.0.markets", "rename", "field events[0].markets is missing"),
        ("events.0.markets.1.conditionId", "drop", "events[0].markets[1].conditionId is missing"),
        ("events.0.markets.1.closed", "retype", "closed is not true or false"),
        ("events.0.markets.0.outcomes", "drop", "outcomes is missing"),
        ("events.0.markets.0.outcomes", "retype", "outcomes is not a list"),
        ("events.0.markets.0.bestAsk", "retype", "bestAsk is not a number"),
        ("events.0.markets.0.description", "drop", "description is missing"),
        ("events.0.markets.0.question", "drop", "question is missing"),
    ],
)
def test_an_error_about_a_changed_field_names_platform_event_and_field(path: str, change: Any, reason: str) -> None:
    listed, ledger = polymarket.listing(server(trouble=MarketFaults(drifts=(FieldDrift(path=path, change=change),))))
    assert [event.question.id for event in listed] == ["polymarket/202"]
    (skipped,) = ledger.skipped
    assert skipped.reason.startswith("polymarket event 101: field ")
    assert reason in skipped.reason


def test_an_event_that_does_not_state_exclusivity_is_noted() -> None:
    """Old events do not state it, so the markets count as independent and prices are not normalised."""
    silent = SamplePolymarketEvent(id="11", title="?", negative_risk=None, markets=RACE.markets)
    listed, ledger = polymarket.listing(server(silent, GAME))
    assert [event.question.exclusivity for event in listed] == ["independent", "exactly one"]
    assert ledger.notes() == ("1 × event of several markets that does not say whether they exclude each other",)


def test_a_list_that_may_grow_is_exhaustive_only_with_the_market_other() -> None:
    other = SamplePolymarketMarket(condition=C, question="Someone else?", label="Other", other=True)
    group = {"title": "Who?", "negative_risk": True, "augmented": True}
    with_other = SamplePolymarketEvent(id="12", markets=(*RACE.markets, other), **group)
    without = SamplePolymarketEvent(id="13", markets=RACE.markets, **group)
    asleep = SamplePolymarketEvent(id="14", markets=(*RACE.markets, replace(other, active=False)), **group)
    gone = SamplePolymarketEvent(id="15", markets=(*RACE.markets, replace(other, active=False, archived=True)), **group)
    listed, _ = polymarket.listing(server(with_other, without, asleep, gone))
    assert [(len(event.question.targets), event.question.exclusivity) for event in listed] == [
        (3, "exactly one"),
        (2, "at most one"),
        (2, "at most one"),
        (2, "at most one"),
    ]


def test_markets_with_three_outcomes_or_malformed_lists_are_skipped() -> None:
    def spoilt(**fields: Any) -> Any:
        body = polymarket_event_body(RACE)
        body["markets"][0].update(fields)
        return FakePolymarket({}).having(PolymarketCatalogue([body, polymarket_event_body(GAME)])).server()

    cases = (
        ({"outcomes": '["A", "B", "C"]', "outcomePrices": '["0", "0", "1"]'}, "a market has 3 outcomes, not two"),
        ({"outcomePrices": '["0.5"]'}, "outcomePrices is not as long as outcomes"),
        ({"outcomes": "[Yes"}, "outcomes is not JSON inside a string"),
    )
    for fields, reason in cases:
        assert reason in polymarket.listing(spoilt(**fields))[1].skipped[0].reason
    drifts = tuple(
        FieldDrift(path=f"events.0.markets.0.{n}") for n in ("bestBid", "bestAsk", "lastTradePrice", "outcomePrices")
    )
    assert (
        "outcomePrices is missing"
        in polymarket.listing(server(trouble=MarketFaults(drifts=drifts)))[1].skipped[0].reason
    )


def test_malformed_pages_and_outages_raise() -> None:
    with pytest.raises(MalformedPayload, match="polymarket list: field events is missing"):
        polymarket.listing(server(trouble=MarketFaults(drifts=(FieldDrift(path="events"),))))
    with pytest.raises(SourceError, match="503"):
        polymarket.listing(server(trouble=MarketFaults(down=("/gamma",))))
    assert len(polymarket.listing(server(), faults=[busy(), cut_off()])[0]) == 2
    new = MarketFaults(drifts=(FieldDrift(path="events.0.markets.*.brandNew", change="add"),))
    assert polymarket.listing(server(trouble=new))[1].notes() == ()


DONE: dict[str, Any] = {"closed": True, "stage": "resolved", "closed_at": "2026-12-11 10:00:00+00"}
STATES: dict[str, dict[str, Any]] = {
    "yes": {**DONE, "prices": ("1", "0")},
    "no": {**DONE, "prices": ("0", "1")},
    "flipped": {**DONE, "outcomes": ("No", "Yes"), "prices": ("0", "1")},
    "open": {"prices": ("1", "0")},
    "proposed": {**DONE, "stage": "proposed", "prices": ("1", "0")},
    "disputed": {**DONE, "stage": "disputed", "prices": ("1", "0")},
    "last": {**DONE, "stage": None, "prices": ("0.97", "0.03")},
    "half": {**DONE, "prices": ("0.5", "0.5")},
    "split": {**DONE, "stage": None, "prices": ("0.5", "0.5")},
    "old": {**DONE, "prices": ("0.9999989", "0.0000011")},
    "named": {**DONE, "outcomes": ("Lions", "Bears"), "prices": ("0", "1")},
    "unsaid": {**DONE, "stage": None, "prices": ("0", "1")},
    "legacy": {**DONE, "stage": None, "prices": ("0", "0"), "book": False},
    "blank": {**DONE, "stage": None, "prices": ("0", "0")},
    "nothing": {**DONE, "prices": ("0", "0"), "book": False},
    "number": {**DONE, "stage": None, "prices": ("0.584", "0.416"), "book": False, "kind": "scalar"},
    "oracle": {**DONE, "stage": None, "prices": ("0.6", "0.4")},
    "tie": {**DONE, "stage": None, "prices": ("0", "0")},
    "challenged": {**DONE, "stage": "challenged", "prices": ("1", "0")},
}
VERDICTS = {"oracle": (0.0, 1.0), "tie": (0.5, 0.5)}
ID = {name: f"0x{n + 1:064x}" for n, name in enumerate(STATES)}
MARKETS = tuple(SamplePolymarketMarket(condition=ID[name], question=name, **state) for name, state in STATES.items())


def settled_server(*, trouble: MarketFaults | None = None, markets: Any = MARKETS, **options: Any) -> Any:
    body = polymarket_event_body(SamplePolymarketEvent(id="1", title="?", markets=markets))
    catalogue = PolymarketCatalogue([body], page=options.pop("page", 500))
    verdicts = {ID[name]: pays for name, pays in VERDICTS.items()}
    return FakePolymarket({}, verdicts=verdicts, **options).having(catalogue, trouble).server()


def targets() -> list[str]:
    return [ID[name] for name in ID if name != "named"] + [f"{ID['named']}#Lions", f"{ID['named']}#bears"]


@pytest.mark.parametrize("cursors", [True, False])
def test_outcomes_and_payoffs_follow_from_what_a_share_was_worth(cursors: bool) -> None:
    resolutions = polymarket.settle(settled_server(cursors=cursors), [asked("polymarket/1", *targets())])
    names = {id: name for name, id in ID.items()}
    assert {
        names[id.partition("#")[0]] + id[66:]: (resolution.outcome, resolution.payoff)
        for id, resolution in resolutions.items()
    } == {
        "yes": (1, None),
        "no": (0, None),
        "flipped": (1, None),
        "half": (None, 0.5),
        "old": (1, None),
        "named#Lions": (0, None),
        "named#bears": (1, None),
        "unsaid": (0, None),
        # Zero for both sides is not a result; fractions of an old scalar market are payoffs.
        "legacy": (None, None),
        "nothing": (None, None),
        "number": (None, 0.584),
        # The catalogue has no result, but the oracle has decided.
        "oracle": (0, None),
        "tie": (None, 0.5),
    }
    assert resolutions[ID["yes"]].resolved_at == instant("2026-12-11T10:00:00Z")
    assert ID["yes"] in resolutions[ID["yes"]].provenance
    assert not polymarket.skipped
    lists = [request for request in polymarket.server.requests if request.path.startswith("/gamma")]
    assert all(request.query["closed"] == "true" for request in lists)
    (resolutions,) = [request.query for request in polymarket.server.requests if request.path == "/data/v2/resolutions"]
    assert sorted(names[id] for id in resolutions["condition_id"].split(",")) == sorted(
        ("last", "split", "legacy", "blank", "oracle", "tie")
    )
    books = [
        names[request.path.rpartition("/")[2]]
        for request in polymarket.server.requests
        if "/clob/markets/" in request.path
    ]
    assert sorted(books) == ["blank", "last", "legacy", "split"]


def test_newer_markets_state_their_resolution_in_another_field() -> None:
    question = asked("polymarket/1", ID["split"], ID["unsaid"])

    def saying(word: str) -> Any:
        return edited(lambda body: [market.update(resolutionStatus=word) for market in body["markets"]])

    for word, settled in (("resolved", {ID["split"]: (None, 0.5), ID["unsaid"]: (0, None)}), ("active", {})):
        resolutions = polymarket.settle(settled_server(), [question], faults=[saying(word)])
        assert {id: (resolution.outcome, resolution.payoff) for id, resolution in resolutions.items()} == settled


def test_failures_of_fallback_services_do_not_affect_other_results() -> None:
    question = asked("polymarket/1", *(ID[name] for name in ("yes", "oracle", "tie")))
    for place, read in (("/data/v2/resolutions", 1), ("/clob/markets", 3)):
        resolutions = polymarket.settle(settled_server(trouble=MarketFaults(down=(place,))), [question])
        assert len(resolutions) == read
        assert any("503" in entry.reason for entry in polymarket.skipped) == (read == 1)
    wrong = MarketFaults(drifts=(FieldDrift(path="data.0.status"),))
    assert len(polymarket.settle(settled_server(trouble=wrong), [question])) == 2
    assert "data[0].status is missing" in polymarket.reasons["resolutions"]


def test_results_are_found_by_condition_id_or_address() -> None:
    slug = f"market-{ID['no'][-6:]}"
    by_address = replace(asked("mine/1"), url=f"https://polymarket.com/market/{slug}")
    assert polymarket.settle(settled_server(), [by_address])["yes"].outcome == 0
    assert polymarket.settle(settled_server(), [asked(f"polymarket/{ID['yes']}")])["yes"].outcome == 1
    assert polymarket.settle(settled_server(), [asked("polymarket/5", f"{ID['yes']}#Draw")]) == {}
    assert polymarket.reasons == {f"{ID['yes']}#Draw": "the market has no outcome 'Draw'"}


def test_results_of_many_markets_take_few_requests() -> None:
    many = tuple(
        SamplePolymarketMarket(condition=f"0x{n:064x}", question="?", prices=("1", "0"), closed=True)
        for n in range(120)
    )
    question = asked("polymarket/9", *(market.condition for market in many))
    assert len(polymarket.settle(settled_server(markets=many), [question])) == 120
    assert len(polymarket.server.requests) == 3
    assert len(polymarket.settle(settled_server(markets=many, page=30), [question])) == 120
    assert len(polymarket.server.requests) == 5


def test_one_unreadable_result_is_skipped_and_malformed_pages_raise() -> None:
    question = asked("polymarket/1", ID["yes"], ID["no"])
    trouble = MarketFaults(drifts=(FieldDrift(path="markets.0.outcomePrices"),))
    assert list(polymarket.settle(settled_server(trouble=trouble), [question])) == [ID["no"]]
    assert "field markets[0].outcomePrices is missing" in polymarket.reasons[ID["yes"]]
    nameless = MarketFaults(drifts=(FieldDrift(path="markets.0.conditionId"),))
    assert list(polymarket.settle(settled_server(trouble=nameless), [question])) == [ID["no"]]
    assert polymarket.reasons == {
        "at markets[0]": "polymarket market at markets[0]: field markets[0].conditionId is missing"
    }
    with pytest.raises(SourceError, match="field markets is missing"):
        polymarket.settle(settled_server(trouble=MarketFaults(drifts=(FieldDrift(path="markets"),))), [question])
    assert len(polymarket.settle(settled_server(), [question], faults=[busy(), cut_off()])) == 2
    with pytest.raises(SourceError, match="503"):
        polymarket.settle(settled_server(trouble=MarketFaults(down=("/gamma",))), [question])
