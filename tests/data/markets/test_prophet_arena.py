"""Prophet Arena: events, and how they came out."""

from typing import Any

import pytest

from fakes.faults import FieldDrift, MarketFaults, busy, failing
from fakes.market_reader import KEY, NOW, Reader, asked
from fakes.markets import FakeProphetArena
from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.listing import LiveOnly
from foretell.data.markets.prophet_arena import ProphetArenaClient
from foretell.data.payload import MalformedPayload
from foretell.practice.markets.prophet_arena import prophet_arena_body
from foretell.questions.as_of import AsOf, instant

arena = Reader("prophet_arena")
WINDOWS = [
    {"round": 1, "taken_at": "2026-10-01T00:00:00Z", "crowd": {"Ann": 0.2, "Bob B.": 0.8}},
    {"round": 2, "taken_at": "2026-10-20T00:00:00Z", "crowd": {"Ann": 0.35, "Bob B.": 0.6}},
    {"round": 3, "taken_at": "2026-11-20T00:00:00Z", "crowd": {"Ann": 0.99}},
]
RACE = prophet_arena_body("race", "Who wins?", {"Ann": None, "Bob B.": None}, windows=WINDOWS)
OTHER = prophet_arena_body("other", "Which?", {"A": None}, mutually_exclusive=False)
EMPTY = prophet_arena_body("empty", "?", {})
SETTLED = prophet_arena_body(
    "over",
    "Who?",
    {"Ann": "yes", "Bob": "NO", "Cat": "void", "Dee": None, "Eve": "unresolved", "Fay": "maybe"},
    status="resolved",
    resolved_at="2026-12-11T00:00:00Z",
)


def fake(*events: Any, trouble: MarketFaults | None = None, key: str = KEY) -> FakeProphetArena:
    made = FakeProphetArena(events or (RACE, OTHER), key=key, page=2)
    made.faults = trouble or made.faults
    return made


def drift(path: str) -> MarketFaults:
    return MarketFaults(drifts=(FieldDrift(path=path),))


def test_an_event_with_the_newest_crowd() -> None:
    (race, other), ledger = arena.listing(fake())
    question = race.question
    assert (question.id, question.source, question.exclusivity) == (
        "prophet_arena/race",
        "prophet_arena",
        "at most one",
    )
    assert [(t.id, t.snapshot.last_price) for t in question.targets] == [("Ann", 0.35), ("Bob B.", 0.6)]
    assert (race.closes_at, race.status, question.criteria) == (instant("2027-01-01"), "open", "As reported.")
    assert (other.question.exclusivity, other.question.targets[0].snapshot) == ("independent", None)
    assert (ledger.notes(), ledger.complete) == ((), True)
    assert arena.event(fake(), "race") == race


def test_pages() -> None:
    many = [prophet_arena_body(f"e{n}", "?", {"A": None}) for n in range(5)]
    found, ledger = arena.listing(fake(*many), category="politics")
    assert (len(found), ledger.pages) == (5, 3)
    assert [request.query.get("cursor") for request in arena.server.requests] == [None, "2", "4"]
    assert {request.query["category"] for request in arena.server.requests} == {"politics"}


def test_refusals_and_drift() -> None:
    with pytest.raises(LiveOnly):
        arena.event(fake(), "race", AsOf(at=NOW.at))
    for events, slug, problem in (
        (fake(), "nope", "prophet_arena event nope is not there"),
        (fake(EMPTY), "empty", "cannot be asked: it has no outcome"),
        (fake(key="another"), "race", "401"),
    ):
        with pytest.raises(SourceError, match=problem):
            arena.event(events, slug)
    for path in ("title", "outcomes", "close_at", "criteria"):
        found, ledger = arena.listing(fake(trouble=drift(f"data.0.{path}")))
        assert [event.question.id for event in found] == ["prophet_arena/other"]
        assert ledger.skipped[0].reason == f"prophet_arena event race: field data[0].{path} is missing"
    for path in ("data", "next_cursor"):
        with pytest.raises(MalformedPayload, match=f"prophet_arena list: field {path} is missing"):
            arena.listing(fake(trouble=drift(path)))
    assert len(arena.listing(fake(), faults=[busy()])[0]) == 2
    assert KEY not in repr(ProphetArenaClient(http=AsyncHttpClient(), key=KEY))


def test_yes_no_void_and_open() -> None:
    names = ("ann", "Bob", "Cat", "Dee", "Eve", "Fay", "Zoe")
    questions = [asked("prophet_arena/over", *names), asked("prophet_arena/nope"), asked("kalshi/KX-1")]
    found = arena.settle(fake(SETTLED), questions)
    assert {name: one.outcome for name, one in found.items()} == {"ann": 1, "Bob": 0, "Cat": None}
    assert found["ann"].resolved_at == instant("2026-12-11")
    assert arena.reasons == {
        "over#Fay": "prophet_arena market over#Fay: field data.outcomes[5].resolution is not yes, no or void",
        "over#Zoe": "the event has no outcome 'Zoe'",
        "nope#yes": "the platform knows no such market",
    }
    spoilt = fake(SETTLED, trouble=drift("data.outcomes.0.resolution"))
    assert arena.settle(spoilt, [asked("prophet_arena/over", "Ann", "Bob")])["Bob"].outcome == 0
    assert "data.outcomes[0].resolution is missing" in arena.reasons["over#Ann"]
    with pytest.raises(SourceError, match="500"):
        arena.settle(fake(SETTLED), questions, faults=[failing()] * 3)
