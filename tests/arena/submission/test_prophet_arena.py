"""Forecasts for Prophet Arena, over sockets."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from foretell.arena.ledger import Ledger
from foretell.arena.submission.prophet_arena import ArenaSubmitter, Entrant, look
from foretell.arena.submission.sending import Patience, Sending
from foretell.arena.submission.submission import Submission
from foretell.fakes.markets import Drift, FakeArena, arena_body
from foretell.questions.clock import AsOf
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.http import Limits
from foretell.sources.markets.prophet_arena import ArenaClient
from foretell.sources.posting.poster import ONCE
from foretell.sources.posting.prophet_arena import ArenaDesk

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
KEY = "pa_live_canary_2"
QUICK = Limits(attempts=2, wait_seconds=0.0, max_wait_seconds=1.0, total_seconds=5.0)


@pytest.fixture
def arena() -> FakeArena:
    events = [
        arena_body("who-wins", "Who wins?", {"Ann": None, "Bob": None}),
        arena_body("over", "Over?", {"Yes": None}, close_at="2026-10-01T00:00:00Z"),
        arena_body("settled", "Settled?", {"Yes": "yes"}, status="settled"),
    ]
    fake = FakeArena(events, key=KEY)
    fake.agents = {"my-agent"}
    return fake


def used(
    arena: FakeArena, forecasts: list[Any], use: Callable[[Any], Awaitable[Any]], **entrant: Any
) -> tuple[Any, Any]:
    async def main() -> Any:
        server = arena.server()
        async with (
            server,
            AsyncHttpClient(limits=QUICK, transport=httpx2.AsyncHTTPTransport(verify=False)) as reading,
            AsyncHttpClient(limits=ONCE, transport=httpx2.AsyncHTTPTransport(verify=False)) as writing,
        ):
            fast: Any = {"host": f"{server.url}/api/v1", "per_second": 1e4}
            client = ArenaClient(http=reading, key=KEY, **fast)
            desk = ArenaDesk(client=client, http=writing, key=KEY, wait_seconds=0.0, **fast)
            seen = await look(desk, forecasts)
            made = Entrant(**{"agent": "my-agent", **entrant})
            return await use(ArenaSubmitter(desk=desk, entrant=made, seen=seen, now=NOW)), server.requests

    return asyncio.run(main())


def planned(arena: FakeArena, forecasts: list[Any], **entrant: Any) -> Submission:
    async def plan(submitter: Any) -> Submission:
        return submitter.plan(forecasts, ())

    found, requests = used(arena, forecasts, plan, **entrant)
    assert {request.method for request in requests} <= {"GET"}
    return found


def handed_in(arena: FakeArena, ledger: Ledger, forecasts: list[Any], **entrant: Any) -> tuple[list[str], int]:
    async def use(submitter: Any) -> Any:
        sending = Sending(submitter, ledger, lambda: NOW, Patience(pause=0.0))
        return await sending.hand_in(submitter.plan(forecasts, ()))

    handed, requests = used(arena, forecasts, use, **entrant)
    return [one.fate for one in handed], sum(request.method == "POST" for request in requests)


def test_outcomes_as_the_arena_spells_them_and_never_scaled(arena: FakeArena, said: Any):
    found = planned(arena, [said("prophet_arena/who-wins", {"BOB": 0.5, "ann": 0.7})])
    assert found.ready[0].content == {
        "agent": "my-agent",
        "event": "who-wins",
        "probabilities": {"Ann": 0.7, "Bob": 0.5},
    }
    told = planned(arena, [said("prophet_arena:who-wins", {"Ann": 1, "Bob": 0})], rationale=True, window="w3")
    assert (told.ready[0].content["rationale"], told.ready[0].content["window"]) == ("Because.", "w3")


@pytest.mark.parametrize(
    ("question", "fields", "told"),
    [
        ("prophet_arena/who-wins", {"p": {"Ann": 0.7}}, "the outcome 'Bob' has no probability"),
        ("prophet_arena/who-wins", {"p": {"Ann": 0.7, "Bob": 0.1, "Cat": 0.2}}, "'Cat' is not an outcome"),
        ("prophet_arena/who-wins", {"p": {"Ann": 0.7, "ann": 0.1, "Bob": 0.2}}, "'ann' is there twice"),
        ("prophet_arena/over", {"p": {"Yes": 0.5}}, "takes no forecasts: it is closed"),
        ("prophet_arena/settled", {"p": {"Yes": 0.5}}, "takes no forecasts: its status is settled"),
        ("prophet_arena/nothing", {"p": {"Yes": 0.5}}, "has no event nothing"),
        ("metaculus/101", {}, "it is no event here"),
        ("prophet_arena/who-wins", {"p": {"Ann": 0.7, "Bob": 0.3}, "as_of": AsOf.day("2026-10-01")}, "backtest"),
    ],
)
def test_what_is_refused(arena: FakeArena, said: Any, question: str, fields: dict[str, Any], told: str):
    (item,) = planned(arena, [said(question, **fields)]).refused
    assert told in "; ".join(item.problems)


def test_sent_once_with_the_arenas_receipt_on_record(arena: FakeArena, ledger: Ledger, said: Any):
    forecasts = [said("prophet_arena/who-wins", {"Ann": 0.7, "Bob": 0.3})]
    assert handed_in(arena, ledger, forecasts) == (["sent"], 1)
    _, receipt = ledger.entries()
    assert receipt.account == "my-agent"
    assert receipt.content["answer"]["receipt"]["seal"]
    assert handed_in(arena, ledger, forecasts) == (["already"], 0)
    assert KEY not in ledger.path.read_text()


@pytest.mark.parametrize(("mishap", "fate", "posts"), [("lost answer", "found", 1), ("lost request", "sent", 2)])
def test_lost(arena: FakeArena, ledger: Ledger, said: Any, mishap: Any, fate: str, posts: int):
    arena.mishaps.coming = [mishap]
    assert handed_in(arena, ledger, [said("prophet_arena/who-wins", {"Ann": 0.7, "Bob": 0.3})]) == ([fate], posts)
    assert len(arena.forecasts) == 1


def test_where_reading_back_makes_no_sense_sending_again_replaces(arena: FakeArena, ledger: Ledger, said: Any):
    arena.mishaps.coming = ["lost answer"]
    arena.trouble.drifts = (Drift(path="data.*.probabilities", change="rename"),)
    assert handed_in(arena, ledger, [said("prophet_arena/who-wins", {"Ann": 0.7, "Bob": 0.3})]) == (["sent"], 2)
    assert arena.forecasts[-1]["probabilities"] == arena.forecasts[0]["probabilities"]


def test_an_unknown_agent_is_refused(arena: FakeArena, ledger: Ledger, said: Any):
    forecasts = [said("prophet_arena/who-wins", {"Ann": 0.7, "Bob": 0.3})]
    assert handed_in(arena, ledger, forecasts, agent="stranger") == (["refused"], 1)
