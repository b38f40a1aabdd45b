"""Prophet Arena: events, and how they came out."""

from typing import Any

import pytest

from fakes.faults import FieldDrift, MarketFaults, busy, failing
from fakes.market_reader import KEY, NOW, Reader, asked
from fakes.markets import FakeProphetArena
from fakes.samples import prophet_arena_body, weekly_event_body, weekly_release_body
from foretell.data import AsyncHttpClient, MalformedPayload, SourceError
from foretell.data.markets import ListingFilter, LiveOnly, ProphetArenaClient, ProphetArenaWeekly, ProphetArenaWindows
from foretell.questions import AsOf, instant

arena = Reader("prophet_arena")
RACE = prophet_arena_body("race", "Who wins?", {"Ann": None, "Bob B.": None}, crowd={"Ann": 0.35, "Bob B.": 0.6})
OTHER = prophet_arena_body("other", "Which?", {"A": None}, criteria=None)
del OTHER["mutually_exclusive"]
EMPTY = prophet_arena_body("empty", "?", {})
SETTLED = prophet_arena_body(
    "over",
    "Who?",
    {"Ann": "yes", "Bob": "NO", "Cat": "void", "Dee": None, "Eve": "pending", "Fay": "maybe"},
    state="resolved",
    resolved_at="2026-12-11T00:00:00Z",
)


def fake(*events: Any, trouble: MarketFaults | None = None, key: str = KEY) -> FakeProphetArena:
    made = FakeProphetArena(events or (RACE, OTHER), key=key, page=2)
    made.faults = trouble or made.faults
    return made


def drift(path: str) -> MarketFaults:
    return MarketFaults(drifts=(FieldDrift(path=path),))


def test_an_event_with_its_crowd() -> None:
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
    for path in ("title", "outcomes", "close_at"):
        found, ledger = arena.listing(fake(trouble=drift(f"data.0.{path}")))
        assert [event.question.id for event in found] == ["prophet_arena/other"]
        assert ledger.skipped[0].reason == f"prophet_arena event race: field data[0].{path} is missing"
    with pytest.raises(MalformedPayload, match="prophet_arena list: field data is missing"):
        arena.listing(fake(trouble=drift("data")))
    assert len(arena.listing(fake(), faults=[busy()])[0]) == 2
    assert KEY not in repr(ProphetArenaClient(http=AsyncHttpClient(), key=KEY))


def test_yes_no_void_and_open() -> None:
    names = ("ann", "Bob", "Cat", "Dee", "Eve", "Fay", "Zoe")
    questions = [asked("prophet_arena/over", *names), asked("prophet_arena/nope"), asked("kalshi/KX-1")]
    found = arena.settle(fake(SETTLED), questions)
    assert {name: one.outcome for name, one in found.items()} == {"ann": 1, "Bob": 0, "Cat": None}
    assert found["ann"].resolved_at == instant("2026-12-11")
    assert arena.reasons == {
        "over#Fay": "prophet_arena market over#Fay: field outcomes[5].resolution is not yes, no or void",
        "over#Zoe": "the event has no outcome 'Zoe'",
        "nope#yes": "the platform knows no such market",
    }
    spoilt = fake(SETTLED, trouble=drift("outcomes.0.name"))
    assert arena.settle(spoilt, [asked("prophet_arena/over", "Ann", "Bob")]) == {}
    assert "outcomes[0].name is missing" in arena.reasons["over#Ann"]
    with pytest.raises(SourceError, match="500"):
        arena.settle(fake(SETTLED), questions, faults=[failing()] * 3)


def test_a_week_with_one_deadline_and_rules_for_each_outcome() -> None:
    yes_no = {"Yes": "If so.", "No": "If so."}
    tiers = {"5": "More than 5.", "10": "More than 10."}
    settled = weekly_event_body("old", "KX-OLD", "Done?", yes_no)
    settled["outcomes"][0]["resolution"] = "yes"
    questions = (
        weekly_event_body("rate", "KX-RATE", "Cut?", yes_no),
        weekly_event_body("snow", "KX-SNOW", "Snow?", tiers),
    )
    release = weekly_release_body("2026-11-01", "2026-11-07T23:59:00-05:00", *questions, settled)
    made = FakeProphetArena([], key=KEY, release=release)

    async def read(client: ProphetArenaClient) -> Any:
        listing = ProphetArenaWeekly(client).events(ListingFilter(as_of=NOW))
        found = await listing.all()
        one = await ProphetArenaWeekly(client, "2026-11-01").event("kx-snow", NOW)
        late = AsOf(at="2026-11-09", mode="live")
        return found, one, await ProphetArenaWeekly(client).event("rate", late), listing.ledger

    (rate, snow), one, late, ledger = arena.run(made, read)
    assert (rate.question.id, rate.question.criteria, rate.question.exclusivity) == (
        "prophet_arena/rate",
        "If so.",
        "exactly one",
    )
    assert (snow.question.criteria, one) == ("5: More than 5.\n10: More than 10.", snow)
    assert (rate.closes_at, rate.question.targets[0].resolves_at) == (
        instant("2026-11-08T04:59:00Z"),
        instant("2027-01-01"),
    )
    assert (late.status, ledger.notes()) == ("closed", ("1 × left out: resolved, not open",))


def test_rounds_that_are_open_and_unanswered() -> None:
    made = fake(RACE, OTHER)

    async def read(client: ProphetArenaClient) -> Any:
        everything = await ProphetArenaWindows(client).events(ListingFilter(as_of=NOW)).all()
        made.forecasts.append({"agent": "me", "event": "race"})
        listing = ProphetArenaWindows(client, "me").events(ListingFilter(as_of=NOW))
        return everything, await listing.all(), await ProphetArenaWindows(client).event("race", NOW), listing.ledger

    both, left, one, ledger = arena.run(made, read)
    assert [event.question.id for event in both] == ["prophet_arena/race", "prophet_arena/other"]
    assert ([event.question.id for event in left], one) == (["prophet_arena/other"], both[0])
    assert [target.snapshot.last_price for target in one.question.targets] == [0.35, 0.6]
    assert (one.question.criteria, ledger.notes()) == ("As reported.", ())
