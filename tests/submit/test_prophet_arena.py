"""Forecasts for Prophet Arena, over sockets."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from fakes.faults import FieldDrift
from fakes.markets import FakeProphetArena
from foretell.data.http import AsyncHttpClient, HttpLimits
from foretell.data.markets.prophet_arena import ProphetArenaClient
from foretell.practice.markets.prophet_arena import prophet_arena_body
from foretell.questions.as_of import AsOf
from foretell.submit.ledger import SubmissionLedger
from foretell.submit.prophet_arena import ProphetArenaOptions, ProphetArenaSubmitter, ProphetArenaWriter, read_events
from foretell.submit.sending import SEND_ONCE, SendOptions, SubmissionSender
from foretell.submit.submission import SubmissionPlan

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
KEY = "pa_live_canary_2"
QUICK = HttpLimits(attempts=2, wait_seconds=0.0, max_wait_seconds=1.0, total_seconds=5.0)


@pytest.fixture
def arena() -> FakeProphetArena:
    events = [
        prophet_arena_body("who-wins", "Who wins?", {"Ann": None, "Bob": None}),
        prophet_arena_body("over", "Over?", {"Yes": None}, close_at="2026-10-01T00:00:00Z"),
        prophet_arena_body("settled", "Settled?", {"Yes": "yes"}, status="settled"),
    ]
    fake = FakeProphetArena(events, key=KEY)
    fake.agents = {"my-agent"}
    return fake


def used(
    arena: FakeProphetArena, forecasts: list[Any], use: Callable[[Any], Awaitable[Any]], **entrant: Any
) -> tuple[Any, Any]:
    async def main() -> Any:
        server = arena.server()
        async with (
            server,
            AsyncHttpClient(limits=QUICK, transport=httpx2.AsyncHTTPTransport(verify=False)) as reading,
            AsyncHttpClient(limits=SEND_ONCE, transport=httpx2.AsyncHTTPTransport(verify=False)) as writing,
        ):
            fast: Any = {"host": f"{server.url}/api/v1", "per_second": 1e4}
            client = ProphetArenaClient(http=reading, key=KEY, **fast)
            desk = ProphetArenaWriter(client=client, http=writing, key=KEY, wait_seconds=0.0, **fast)
            seen = await read_events(desk, forecasts)
            made = ProphetArenaOptions(**{"agent": "my-agent", **entrant})
            return await use(ProphetArenaSubmitter(desk=desk, entrant=made, seen=seen, now=NOW)), server.requests

    return asyncio.run(main())


def planned(arena: FakeProphetArena, forecasts: list[Any], **entrant: Any) -> SubmissionPlan:
    async def plan(submitter: Any) -> SubmissionPlan:
        return submitter.plan(forecasts, ())

    found, requests = used(arena, forecasts, plan, **entrant)
    assert {request.method for request in requests} <= {"GET"}
    return found


def handed_in(
    arena: FakeProphetArena, ledger: SubmissionLedger, forecasts: list[Any], **entrant: Any
) -> tuple[list[str], int]:
    async def use(submitter: Any) -> Any:
        sending = SubmissionSender(submitter, ledger, lambda: NOW, SendOptions(pause=0.0))
        return await sending.hand_in(submitter.plan(forecasts, ()))

    handed, requests = used(arena, forecasts, use, **entrant)
    return [one.fate for one in handed], sum(request.method == "POST" for request in requests)


def test_outcomes_as_the_arena_spells_them_and_never_scaled(arena: FakeProphetArena, said: Any):
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
def test_what_is_refused(arena: FakeProphetArena, said: Any, question: str, fields: dict[str, Any], told: str):
    (item,) = planned(arena, [said(question, **fields)]).refused
    assert told in "; ".join(item.problems)


def test_sent_once_with_the_arenas_receipt_on_record(arena: FakeProphetArena, ledger: SubmissionLedger, said: Any):
    forecasts = [said("prophet_arena/who-wins", {"Ann": 0.7, "Bob": 0.3})]
    assert handed_in(arena, ledger, forecasts) == (["sent"], 1)
    _, receipt = ledger.entries()
    assert receipt.account == "my-agent"
    assert receipt.content["answer"]["receipt"]["seal"]
    assert handed_in(arena, ledger, forecasts) == (["already"], 0)
    assert KEY not in ledger.path.read_text()


@pytest.mark.parametrize(("mishap", "fate", "posts"), [("lost answer", "found", 1), ("lost request", "sent", 2)])
def test_lost(arena: FakeProphetArena, ledger: SubmissionLedger, said: Any, mishap: Any, fate: str, posts: int):
    arena.inbox_faults.coming = [mishap]
    assert handed_in(arena, ledger, [said("prophet_arena/who-wins", {"Ann": 0.7, "Bob": 0.3})]) == ([fate], posts)
    assert len(arena.forecasts) == 1


def test_where_reading_back_makes_no_sense_sending_again_replaces(
    arena: FakeProphetArena, ledger: SubmissionLedger, said: Any
):
    arena.inbox_faults.coming = ["lost answer"]
    arena.faults.drifts = (FieldDrift(path="data.*.probabilities", change="rename"),)
    assert handed_in(arena, ledger, [said("prophet_arena/who-wins", {"Ann": 0.7, "Bob": 0.3})]) == (["sent"], 2)
    assert arena.forecasts[-1]["probabilities"] == arena.forecasts[0]["probabilities"]


def test_an_unknown_agent_is_refused(arena: FakeProphetArena, ledger: SubmissionLedger, said: Any):
    forecasts = [said("prophet_arena/who-wins", {"Ann": 0.7, "Bob": 0.3})]
    assert handed_in(arena, ledger, forecasts, agent="stranger") == (["refused"], 1)
