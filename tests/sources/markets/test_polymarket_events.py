"""Polymarket events from its catalogue, over sockets."""

import json
from typing import Any

import pytest

from fakes.faults import FieldDrift, MarketFaults, busy, cut_off
from fakes.markets import FakePolymarket
from foretell.data.http import SourceError
from foretell.data.markets.listing import EventSource, ListedEvent, ListingFilter, ListingReport, LiveOnly
from foretell.data.markets.polymarket import PolymarketClient, PolymarketEvents, PolymarketHosts
from foretell.data.markets.prices import MarketRef, market_ref
from foretell.data.payload import MalformedPayload
from foretell.practice.markets.polymarket import (
    PolymarketCatalogue,
    SamplePolymarketEvent,
    SamplePolymarketMarket,
    polymarket_event_body,
)
from foretell.questions.as_of import AsOf, instant

NOW = AsOf(at="2026-11-01T12:00:00Z", mode="live")
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


def make(http: Any, url: str) -> EventSource:
    hosts = PolymarketHosts(gamma=f"{url}/gamma", data=f"{url}/data", clob=f"{url}/clob")
    return PolymarketEvents(PolymarketClient(http=http, hosts=hosts, per_second=1e4))


def listing(ask: Any, fake: Any, *, faults: Any = None, **wish: Any) -> tuple[Any, ListingReport]:
    async def use(http: Any, url: str) -> Any:
        found = make(http, url).events(ListingFilter(as_of=NOW, **wish))
        return await found.all(), found.ledger

    return ask.run(fake, use, faults=faults)


def one(ask: Any, fake: Any, id: str, as_of: AsOf = NOW) -> ListedEvent:
    return ask.run(fake, lambda http, url: make(http, url).event(id, as_of))


def test_a_group_of_which_one_comes_true(ask: Any) -> None:
    (race, _), ledger = listing(ask, server())
    question, (ann, bob) = race.question, race.question.targets
    assert (question.id, question.text, question.exclusive) == ("polymarket/101", "Who wins the race?", True)
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


def test_named_outcomes(ask: Any) -> None:
    (_, game), _ = listing(ask, server())
    lions, bears = game.question.targets
    assert (lions.id, bears.id, game.question.exclusive) == (f"{C}#Lions", f"{C}#Bears", True)
    assert lions.snapshot is not None
    assert bears.snapshot is not None
    assert (lions.snapshot.yes_ask, bears.snapshot.yes_ask, bears.snapshot.yes_bid) == (0.4, 0.7, 0.6)
    # Without a last trade the price the catalogue shows.
    assert lions.snapshot.last_price == 0.5
    spread = SamplePolymarketMarket(condition=A, question="Spread: Lions (-3.5)", outcomes=("Lions", "Bears"))
    many = SamplePolymarketEvent(id="3", title="Lions vs. Bears", markets=(*GAME.markets, spread))
    (both,), _ = listing(ask, server(many))
    assert [target.label for target in both.question.targets] == [
        "Lions vs. Bears: Lions",
        "Spread: Lions (-3.5): Lions",
    ]
    assert (both.question.exclusive, both.volume) == (False, 10)
    assert both.recurrence == "lions vs. bears"


def test_targets_lead_to_prices(ask: Any) -> None:
    (race, game), _ = listing(ask, server())
    refs = [market_ref(event.question, target) for event in (race, game) for target in event.question.targets]
    assert refs == [MarketRef(platform="polymarket", id=id) for id in (A, B, f"{C}#Lions", f"{C}#Bears")]
    lone = SamplePolymarketEvent(id="4", title="Ann?", markets=RACE.markets[:1])
    (single,), _ = listing(ask, server(lone))
    assert market_ref(single.question) == MarketRef(platform="polymarket", id=A)
    assert not single.question.exclusive


def test_pages_with_cursors_and_on_older_servers_with_offsets(ask: Any) -> None:
    many = [
        SamplePolymarketEvent(
            id=str(n), title=f"{n}?", markets=(SamplePolymarketMarket(condition=f"0x{n:064x}", question=f"{n}?"),)
        )
        for n in range(120)
    ]
    found, ledger = listing(ask, server(*many), limit=1000)
    assert ([event.question.id for event in found], ledger.pages) == ([f"polymarket/{n}" for n in range(120)], 3)
    asked = [(request.path, request.query.get("after_cursor")) for request in ask.server.requests]
    assert asked == [("/gamma/events/keyset", cursor) for cursor in (None, "c50", "c100")]
    assert {request.query["closed"] for request in ask.server.requests} == {"false"}
    older, _ = listing(ask, server(*many, cursors=False), limit=1000)
    assert older == found
    assert [request.query.get("offset") for request in ask.server.requests] == [None, "0", "50", "100"]


def test_a_cursor_that_is_not_heeded_is_no_endless_walk(ask: Any) -> None:
    many = [SamplePolymarketEvent(id=str(n), title="?", markets=RACE.markets) for n in range(70)]
    fake = FakePolymarket({}).having(PolymarketCatalogue(map(polymarket_event_body, many)))
    heeded = fake.catalogue.answer
    fake.catalogue.answer = lambda path, query: heeded(path, {k: v for k, v in query.items() if k != "after_cursor"})
    with pytest.raises(MalformedPayload, match="polymarket list: the cursor leads back"):
        listing(ask, fake.server(), limit=1000)


def test_the_window_is_asked_for(ask: Any) -> None:
    found, _ = listing(ask, server(), closes_after="2026-12-01", closes_before="2026-12-31", status="resolved")
    query = ask.server.requests[0].query
    assert (query["end_date_min"], query["end_date_max"]) == ("2026-12-01T00:00:00Z", "2026-12-31T00:00:00Z")
    assert (found, query["closed"]) == ([], "true")
    assert [event.category for event in listing(ask, server(), category="elections")[0]] == ["Politics"]


@pytest.mark.parametrize(
    ("bob", "exclusive"),
    [
        ({"closed": True, "prices": ("0", "1")}, True),
        ({"closed": True, "prices": ("0", "1"), "stage": "resolved"}, True),
        ({"closed": True, "prices": ("0", "1"), "stage": "disputed"}, False),
        ({"closed": True, "prices": ("1", "0")}, False),
        ({"accepting": False}, False),
    ],
)
def test_what_is_over_is_no_target(ask: Any, bob: dict[str, Any], exclusive: bool) -> None:
    over = SamplePolymarketMarket(condition=B, question="Will Bob win?", label="Bob", **bob)
    third = SamplePolymarketMarket(condition=C, question="Will Cat win?", label="Cat")
    group = SamplePolymarketEvent(id="5", title="Who?", negative_risk=True, markets=(RACE.markets[0], over, third))
    (found,), _ = listing(ask, server(group))
    assert ([target.label for target in found.question.targets], found.finished) == (["Ann", "Cat"], (B,))
    assert found.question.exclusive == exclusive


def test_places_kept_for_names_to_come(ask: Any) -> None:
    place = SamplePolymarketMarket(condition=C, question="Will Person A win?", label="Person A", active=False)
    kept = SamplePolymarketEvent(
        id="6", title="Who?", negative_risk=True, augmented=True, markets=(*RACE.markets, place)
    )
    plain = SamplePolymarketEvent(id="7", title="Who?", negative_risk=True, markets=(*RACE.markets, place))
    (augmented, whole), _ = listing(ask, server(kept, plain))
    assert ([t.label for t in augmented.question.targets], augmented.question.exclusive) == (["Ann", "Bob"], True)
    assert [t.label for t in whole.question.targets] == ["Ann", "Bob", "Person A"]


def test_one_event_by_number_or_slug(ask: Any) -> None:
    assert one(ask, server(), "101") == one(ask, server(), "slug:event-101")
    assert [request.path for request in ask.server.requests] == ["/gamma/events/slug/event-101"]
    done = SamplePolymarketMarket(condition=A, question="Done?", closed=True, prices=("1", "0"), stage="resolved")
    assert one(ask, server(SamplePolymarketEvent(id="8", title="?", markets=(done,))), "8").status == "resolved"
    with pytest.raises(SourceError, match="polymarket event 999 is not there"):
        one(ask, server(), "999")
    with pytest.raises(SourceError, match="polymarket event 9 cannot be asked: it has no market"):
        one(ask, server(SamplePolymarketEvent(id="9", title="?", markets=())), "9")
    with pytest.raises(LiveOnly):
        one(ask, server(), "101", AsOf(at=NOW.at))


def test_lists_that_are_no_text_and_books_without_orders(ask: Any) -> None:
    body = polymarket_event_body(
        SamplePolymarketEvent(
            id="1", title="?", markets=(SamplePolymarketMarket(condition=A, question="?", bid=0, ask=1, prices=None),)
        )
    )
    body["markets"][0]["outcomes"] = json.loads(body["markets"][0]["outcomes"])
    fake = FakePolymarket({}).having(PolymarketCatalogue([body])).server()
    snapshot = listing(ask, fake)[0][0].question.targets[0].snapshot
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
def test_drift_names_platform_event_and_field(ask: Any, path: str, change: Any, reason: str) -> None:
    found, ledger = listing(ask, server(trouble=MarketFaults(drifts=(FieldDrift(path=path, change=change),))))
    assert [event.question.id for event in found] == ["polymarket/202"]
    (skipped,) = ledger.skipped
    assert skipped.reason.startswith("polymarket event 101: field ")
    assert reason in skipped.reason


def test_nobody_telling_whether_a_group_is_exclusive_is_an_error(ask: Any) -> None:
    silent = SamplePolymarketEvent(id="11", title="?", negative_risk=None, markets=RACE.markets)
    found, ledger = listing(ask, server(silent, GAME))
    assert len(found) == 1
    assert "events[0].negRisk is missing" in ledger.skipped[0].reason


def test_three_outcomes_prices_lost_and_wrong_lists(ask: Any) -> None:
    def spoilt(**fields: Any) -> Any:
        body = polymarket_event_body(RACE)
        body["markets"][0].update(fields)
        return FakePolymarket({}).having(PolymarketCatalogue([body, polymarket_event_body(GAME)])).server()

    cases = (
        ({"outcomes": '["A", "B", "C"]', "outcomePrices": '["0", "0", "1"]'}, "a market has 3 outcomes, not two"),
        ({"outcomePrices": '["0.5"]'}, "outcomePrices is not as long as outcomes"),
        ({"outcomes": "[Yes"}, "outcomes is not JSON inside a text"),
    )
    for fields, reason in cases:
        assert reason in listing(ask, spoilt(**fields))[1].skipped[0].reason
    drifts = tuple(
        FieldDrift(path=f"events.0.markets.0.{n}") for n in ("bestBid", "bestAsk", "lastTradePrice", "outcomePrices")
    )
    assert "outcomePrices is missing" in listing(ask, server(trouble=MarketFaults(drifts=drifts)))[1].skipped[0].reason


def test_wrong_pages_and_outages(ask: Any) -> None:
    with pytest.raises(MalformedPayload, match="polymarket list: field events is missing"):
        listing(ask, server(trouble=MarketFaults(drifts=(FieldDrift(path="events"),))))
    with pytest.raises(SourceError, match="503"):
        listing(ask, server(trouble=MarketFaults(down=("/gamma",))))
    assert len(listing(ask, server(), faults=[busy(), cut_off()])[0]) == 2
    new = MarketFaults(drifts=(FieldDrift(path="events.0.markets.*.brandNew", change="add"),))
    assert listing(ask, server(trouble=new))[1].notes() == ("2 × unknown field ignored: market.brandNew",)
