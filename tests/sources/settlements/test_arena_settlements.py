"""How Prophet Arena's events came out."""

from typing import Any

import pytest

from fakes.faults import FieldDrift, MarketFaults, failing
from fakes.markets import FakeProphetArena
from foretell.data.http import SourceError
from foretell.data.markets.prophet_arena import ProphetArenaClient
from foretell.data.settlements.prophet_arena import ProphetArenaSettlements
from foretell.practice.markets.prophet_arena import prophet_arena_body
from foretell.questions.as_of import instant

KEY = "pa_live_canary"
RACE = prophet_arena_body(
    "race",
    "Who?",
    {"Ann": "yes", "Bob": "NO", "Cat": "void", "Dee": None, "Eve": "unresolved", "Fay": "maybe"},
    status="resolved",
    resolved_at="2026-12-11T00:00:00Z",
)


def make(http: Any, url: str, tell: Any) -> ProphetArenaSettlements:
    return ProphetArenaSettlements(ProphetArenaClient(http=http, key=KEY, host=url, per_second=1e4), tell=tell)


def server(trouble: MarketFaults | None = None) -> Any:
    fake = FakeProphetArena([RACE], key=KEY)
    fake.faults = trouble or fake.faults
    return fake.server()


def test_yes_no_void_and_open(settled: Any, asked: Any) -> None:
    names = ("ann", "Bob", "Cat", "Dee", "Eve", "Fay", "Zoe")
    found = settled(
        server(), make, [asked("prophet_arena/race", *names), asked("prophet_arena/nope"), asked("kalshi/KX-1")]
    )
    assert {name: one.outcome for name, one in found.items()} == {"ann": 1, "Bob": 0, "Cat": None}
    assert found["ann"].resolved_at == instant("2026-12-11")
    assert settled.reasons == {
        "race#Fay": "prophet_arena market race#Fay: field data.outcomes[5].resolution is not yes, no or void",
        "race#Zoe": "the event has no outcome 'Zoe'",
        "nope#yes": "the platform knows no such market",
    }


def test_drift_and_outages(settled: Any, asked: Any) -> None:
    question = asked("prophet_arena/race", "Ann", "Bob")
    assert (
        settled(server(MarketFaults(drifts=(FieldDrift(path="data.outcomes.0.resolution"),))), make, [question])[
            "Bob"
        ].outcome
        == 0
    )
    assert "data.outcomes[0].resolution is missing" in settled.reasons["race#Ann"]
    with pytest.raises(SourceError, match="500"):
        settled(server(), make, [question], faults=[failing()] * 3)
