"""Prophet Arena's events, over sockets."""

from typing import Any

import pytest

from fakes.faults import FieldDrift, MarketFaults, busy
from fakes.markets import FakeProphetArena
from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.listing import EventSource, ListingFilter, ListingReport, LiveOnly
from foretell.data.markets.prophet_arena import ProphetArenaClient, ProphetArenaListing
from foretell.data.payload import MalformedPayload
from foretell.practice.markets.prophet_arena import prophet_arena_body
from foretell.questions.as_of import AsOf, instant

KEY = "pa_live_canary"
NOW = AsOf(at="2026-11-01T12:00:00Z", mode="live")
WINDOWS = [
    {"round": 1, "taken_at": "2026-10-01T00:00:00Z", "crowd": {"Ann": 0.2, "Bob B.": 0.8}},
    {"round": 2, "taken_at": "2026-10-20T00:00:00Z", "crowd": {"Ann": 0.35, "Bob B.": 0.6}},
    {"round": 3, "taken_at": "2026-11-20T00:00:00Z", "crowd": {"Ann": 0.99}},
]
RACE = prophet_arena_body("race", "Who wins?", {"Ann": None, "Bob B.": None}, windows=WINDOWS)
OTHER = prophet_arena_body("other", "Which?", {"A": None}, mutually_exclusive=False)


def make(http: Any, url: str) -> EventSource:
    return ProphetArenaListing(ProphetArenaClient(http=http, key=KEY, host=f"{url}/api/v1", per_second=1e4))


def listing(
    ask: Any, *events: Any, trouble: MarketFaults | None = None, faults: Any = None, **wish: Any
) -> tuple[Any, ListingReport]:
    async def use(http: Any, url: str) -> Any:
        found = make(http, url).events(ListingFilter(as_of=NOW, **wish))
        return await found.all(), found.ledger

    fake = FakeProphetArena(events or (RACE, OTHER), key=KEY, page=2)
    fake.faults = trouble or fake.faults
    return ask.run(fake.server(), use, faults=faults)


def one(ask: Any, slug: str, as_of: AsOf = NOW, key: str = KEY) -> Any:
    fake = FakeProphetArena((RACE, prophet_arena_body("empty", "?", {})), key=key)
    return ask.run(fake.server(), lambda http, url: make(http, url).event(slug, as_of))


def test_an_event_with_the_newest_crowd(ask: Any) -> None:
    (race, other), ledger = listing(ask)
    question = race.question
    assert (question.id, question.source, question.exclusive) == ("prophet_arena/race", "prophet_arena", True)
    assert [(t.id, t.snapshot.last_price) for t in question.targets] == [("Ann", 0.35), ("Bob B.", 0.6)]
    assert (race.closes_at, race.status, question.criteria) == (instant("2027-01-01"), "open", "As reported.")
    assert (other.question.exclusive, other.question.targets[0].snapshot) == (False, None)
    assert (ledger.notes(), ledger.complete) == ((), True)
    assert one(ask, "race") == race


def test_pages(ask: Any) -> None:
    many = [prophet_arena_body(f"e{n}", "?", {"A": None}) for n in range(5)]
    found, ledger = listing(ask, *many, category="politics")
    assert (len(found), ledger.pages) == (5, 3)
    assert [request.query.get("cursor") for request in ask.server.requests] == [None, "2", "4"]
    assert {request.query["category"] for request in ask.server.requests} == {"politics"}


def test_refusals_and_drift(ask: Any) -> None:
    with pytest.raises(LiveOnly):
        one(ask, "race", AsOf(at=NOW.at))
    with pytest.raises(SourceError, match="prophet_arena event nope is not there"):
        one(ask, "nope")
    with pytest.raises(SourceError, match="cannot be asked: it has no outcome"):
        one(ask, "empty")
    with pytest.raises(SourceError, match="401"):
        one(ask, "race", key="another")
    for path in ("title", "outcomes", "close_at", "criteria", "mutually_exclusive"):
        found, ledger = listing(ask, trouble=MarketFaults(drifts=(FieldDrift(path=f"data.0.{path}"),)))
        assert [event.question.id for event in found] == ["prophet_arena/other"]
        assert ledger.skipped[0].reason == f"prophet_arena event race: field data[0].{path} is missing"
    for path in ("data", "next_cursor"):
        with pytest.raises(MalformedPayload, match=f"prophet_arena list: field {path} is missing"):
            listing(ask, trouble=MarketFaults(drifts=(FieldDrift(path=path),)))
    assert len(listing(ask, faults=[busy()])[0]) == 2
    assert KEY not in repr(ProphetArenaClient(http=AsyncHttpClient(), key=KEY))
