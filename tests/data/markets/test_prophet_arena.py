"""Prophet Arena: events and results."""

from typing import Any

import pytest

from fakes.faults import FieldDrift, MarketFaults, busy, failing
from fakes.market_reader import KEY, NOW, Reader, asked
from fakes.markets import FakeProphetArena
from fakes.samples import prophet_arena_body, weekly_event_body, weekly_release_body
from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.listing import ListingFilter, LiveOnly
from foretell.data.markets.prophet_arena import ProphetArenaClient, ProphetArenaWeekly, ProphetArenaWindows
from foretell.data.payload import MalformedPayload
from foretell.questions.as_of import AsOf, instant

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
    arena_fake = FakeProphetArena(events or (RACE, OTHER), key=key, page=2)
    arena_fake.faults = trouble or arena_fake.faults
    return arena_fake


def drift(path: str) -> MarketFaults:
    return MarketFaults(drifts=(FieldDrift(path=path),))


def test_an_event_has_the_market_prices_of_its_outcomes() -> None:
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


def test_all_pages_are_read() -> None:
    many = [prophet_arena_body(f"e{n}", "?", {"A": None}) for n in range(5)]
    listed, ledger = arena.listing(fake(*many), category="politics")
    assert (len(listed), ledger.pages) == (5, 3)
    assert [request.query.get("cursor") for request in arena.server.requests] == [None, "2", "4"]
    assert {request.query["category"] for request in arena.server.requests} == {"politics"}


def test_refusals_and_changed_fields_are_reported() -> None:
    with pytest.raises(LiveOnly):
        arena.event(fake(), "race", AsOf(at=NOW.at))
    for events, slug, problem in (
        (fake(), "nope", "prophet_arena event nope does not exist"),
        (fake(EMPTY), "empty", "cannot be used: it has no outcome"),
        (fake(key="another"), "race", "401"),
    ):
        with pytest.raises(SourceError, match=problem):
            arena.event(events, slug)
    for path in ("title", "outcomes", "close_at"):
        listed, ledger = arena.listing(fake(trouble=drift(f"data.0.{path}")))
        assert [event.question.id for event in listed] == ["prophet_arena/other"]
        assert ledger.skipped[0].reason == f"prophet_arena event race: field data[0].{path} is missing"
    with pytest.raises(MalformedPayload, match="prophet_arena list: field data is missing"):
        arena.listing(fake(trouble=drift("data")))
    assert len(arena.listing(fake(), faults=[busy()])[0]) == 2
    assert KEY not in repr(ProphetArenaClient(http=AsyncHttpClient(), key=KEY))


def test_outcomes_resolve_to_yes_no_or_void() -> None:
    names = ("ann", "Bob", "Cat", "Dee", "Eve", "Fay", "Zoe")
    questions = [asked("prophet_arena/over", *names), asked("prophet_arena/nope"), asked("kalshi/KX-1")]
    resolutions = arena.settle(fake(SETTLED), questions)
    assert {name: resolution.outcome for name, resolution in resolutions.items()} == {"ann": 1, "Bob": 0, "Cat": None}
    assert resolutions["ann"].resolved_at == instant("2026-12-11")
    assert arena.reasons == {
        "over#Fay": "prophet_arena market over#Fay: field outcomes[5].resolution is not yes, no or void",
        "over#Zoe": "the event has no outcome 'Zoe'",
        "nope#yes": "the platform has no such market",
    }
    spoilt = fake(SETTLED, trouble=drift("outcomes.0.name"))
    assert arena.settle(spoilt, [asked("prophet_arena/over", "Ann", "Bob")]) == {}
    assert "outcomes[0].name is missing" in arena.reasons["over#Ann"]
    with pytest.raises(SourceError, match="500"):
        arena.settle(fake(SETTLED), questions, faults=[failing()] * 3)


def test_a_weekly_release_has_one_deadline_and_rules_for_each_outcome() -> None:
    yes_no = {"Yes": "If so.", "No": "If so."}
    tiers = {"5": "More than 5.", "10": "More than 10."}
    settled = weekly_event_body("old", "KX-OLD", "Done?", yes_no)
    settled["outcomes"][0]["resolution"] = "yes"
    questions = (
        weekly_event_body("rate", "KX-RATE", "Cut?", yes_no),
        weekly_event_body("snow", "KX-SNOW", "Snow?", tiers),
    )
    release = weekly_release_body("2026-11-01", "2026-11-07T23:59:00-05:00", *questions, settled)
    arena_fake = FakeProphetArena([], key=KEY, release=release)

    async def read(client: ProphetArenaClient) -> Any:
        listing = ProphetArenaWeekly(client).events(ListingFilter(as_of=NOW))
        listed = await listing.all()
        event = await ProphetArenaWeekly(client, "2026-11-01").event("kx-snow", NOW)
        closed = AsOf(at="2026-11-09", mode="live")
        return listed, event, await ProphetArenaWeekly(client).event("rate", closed), listing.ledger

    (rate, snow), named, closed, ledger = arena.run(arena_fake, read)
    assert (rate.question.id, rate.question.criteria, rate.question.exclusivity) == (
        "prophet_arena/rate",
        "If so.",
        "exactly one",
    )
    assert (snow.question.criteria, named) == ("5: More than 5.\n10: More than 10.", snow)
    assert (rate.closes_at, rate.question.targets[0].resolves_at) == (
        instant("2026-11-08T04:59:00Z"),
        instant("2027-01-01"),
    )
    assert (closed.status, ledger.notes()) == ("closed", ("1 × left out: resolved, not open",))


def test_windows_list_open_rounds_that_an_agent_has_not_answered() -> None:
    arena_fake = fake(RACE, OTHER)

    async def read(client: ProphetArenaClient) -> Any:
        everything = await ProphetArenaWindows(client).events(ListingFilter(as_of=NOW)).all()
        arena_fake.forecasts.append({"agent": "me", "event": "race"})
        listing = ProphetArenaWindows(client, "me").events(ListingFilter(as_of=NOW))
        return everything, await listing.all(), await ProphetArenaWindows(client).event("race", NOW), listing.ledger

    both, left, named, ledger = arena.run(arena_fake, read)
    assert [event.question.id for event in both] == ["prophet_arena/race", "prophet_arena/other"]
    assert ([event.question.id for event in left], named) == (["prophet_arena/other"], both[0])
    assert [target.snapshot.last_price for target in named.question.targets] == [0.35, 0.6]
    assert (named.question.criteria, ledger.notes()) == ("As reported.", ())
