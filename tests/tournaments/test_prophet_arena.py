"""Forecasts for Prophet Arena, over sockets."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.faults import FieldDrift
from fakes.markets import FakeProphetArena
from fakes.samples import prophet_arena_body, weekly_event_body, weekly_release_body
from foretell.data.http import AsyncHttpClient, HttpLimits
from foretell.data.markets.prophet_arena import ProphetArenaClient
from foretell.data.payload import Payload
from foretell.outgoing.client import Connections
from foretell.questions.as_of import AsOf
from foretell.tournaments.ledger import SubmissionLedger
from foretell.tournaments.prophet_arena import (
    ProphetArenaOptions,
    ProphetArenaSubmitter,
    ProphetArenaWriter,
    read_events,
    seal_fits,
)
from foretell.tournaments.submission import SEND_ONCE, SendOptions, SubmissionPlan, SubmissionSender

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
KEY = "pa_live_canary_2"
QUICK = HttpLimits(attempts=2, wait_seconds=0.0, max_wait_seconds=1.0, total_seconds=5.0)


@pytest.fixture
def arena() -> FakeProphetArena:
    events = [
        prophet_arena_body("who-wins", "Who wins?", {"Ann": None, "Bob": None}),
        prophet_arena_body("over", "Over?", {"Yes": None}, close_at="2026-10-01T00:00:00Z"),
        prophet_arena_body("settled", "Settled?", {"Yes": "yes"}, state="resolved"),
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
            AsyncHttpClient(limits=QUICK, transport=Connections()) as reading,
            AsyncHttpClient(limits=SEND_ONCE, transport=Connections()) as writing,
        ):
            fast: Any = {"host": f"{server.url}/api/v1"}
            client = ProphetArenaClient(http=reading, key=KEY, **fast)
            writer = ProphetArenaWriter(client=client, http=writing, key=KEY, wait_seconds=0.0, **fast)
            seen = await read_events(writer, forecasts)
            options = ProphetArenaOptions(**{"agent": "my-agent", **entrant})
            return await use(ProphetArenaSubmitter(writer=writer, entrant=options, seen=seen, now=NOW)), server.requests

    return asyncio.run(main())


def planned(arena: FakeProphetArena, forecasts: list[Any], **entrant: Any) -> SubmissionPlan:
    async def make_plan(submitter: Any) -> SubmissionPlan:
        return submitter.plan(forecasts, ())

    plan, requests = used(arena, forecasts, make_plan, **entrant)
    assert {request.method for request in requests} <= {"GET"}
    return plan


def handed_in(
    arena: FakeProphetArena, ledger: SubmissionLedger, forecasts: list[Any], **entrant: Any
) -> tuple[list[str], int]:
    async def use(submitter: Any) -> Any:
        sending = SubmissionSender(submitter, ledger, lambda: NOW, SendOptions(pause=0.0))
        return await sending.hand_in(submitter.plan(forecasts, ()))

    handed, requests = used(arena, forecasts, use, **entrant)
    return [result.fate for result in handed], sum(request.method == "POST" for request in requests)


def test_outcomes_are_spelled_as_in_the_arena_and_not_scaled(arena: FakeProphetArena, make_forecast: Any):
    plan = planned(arena, [make_forecast("prophet_arena/who-wins", {"BOB": 0.5, "ann": 0.7})])
    assert plan.ready[0].content == {
        "agent": "my-agent",
        "event": "who-wins",
        "probabilities": {"Ann": 0.7, "Bob": 0.5},
    }
    body = planned(arena, [make_forecast("prophet_arena:who-wins", {"Ann": 1, "Bob": 0})], rationale=True, window=3)
    assert (body.ready[0].content["rationale"], body.ready[0].content["window"]) == ("Because.", 3)


@pytest.mark.parametrize(
    ("question", "fields", "message"),
    [
        ("prophet_arena/who-wins", {"p": {"Ann": 0.7}}, "the outcome 'Bob' has no probability"),
        ("prophet_arena/who-wins", {"p": {"Ann": 0.7, "Bob": 0.1, "Cat": 0.2}}, "'Cat' is not an outcome"),
        ("prophet_arena/who-wins", {"p": {"Ann": 0.7, "ann": 0.1, "Bob": 0.2}}, "'ann' occurs twice"),
        ("prophet_arena/over", {"p": {"Yes": 0.5}}, "accepts no forecasts: it is closed"),
        ("prophet_arena/settled", {"p": {"Yes": 0.5}}, "accepts no forecasts: it is resolved"),
        ("prophet_arena/nothing", {"p": {"Yes": 0.5}}, "has no event nothing"),
        ("metaculus/101", {}, "it is not an event here"),
        ("prophet_arena/who-wins", {"p": {"Ann": 0.7, "Bob": 0.3}, "as_of": AsOf.day("2026-10-01")}, "backtest"),
    ],
)
def test_invalid_input_is_rejected_with_its_reason(
    arena: FakeProphetArena, make_forecast: Any, question: str, fields: dict[str, Any], message: str
):
    (item,) = planned(arena, [make_forecast(question, **fields)]).refused
    assert message in "; ".join(item.problems)


def test_forecast_is_sent_once_and_its_receipt_recorded(
    arena: FakeProphetArena, ledger: SubmissionLedger, make_forecast: Any
):
    forecasts = [make_forecast("prophet_arena/who-wins", {"Ann": 0.7, "Bob": 0.3})]
    assert handed_in(arena, ledger, forecasts) == (["sent"], 1)
    _, receipt = ledger.entries()
    assert receipt.account == "my-agent"
    assert receipt.content["answer"]["receipt"]["seal"]
    assert handed_in(arena, ledger, forecasts) == (["already"], 0)
    assert KEY not in ledger.path.read_text()


@pytest.mark.parametrize(("mishap", "fate", "posts"), [("lost answer", "found", 1), ("lost request", "sent", 2)])
def test_lost_answer_is_read_back_from_the_arena(
    arena: FakeProphetArena, ledger: SubmissionLedger, make_forecast: Any, mishap: Any, fate: str, posts: int
):
    arena.inbox_faults.coming = [mishap]
    assert handed_in(arena, ledger, [make_forecast("prophet_arena/who-wins", {"Ann": 0.7, "Bob": 0.3})]) == (
        [fate],
        posts,
    )
    assert len(arena.forecasts) == 1


def test_unreadable_read_back_sends_again(arena: FakeProphetArena, ledger: SubmissionLedger, make_forecast: Any):
    arena.inbox_faults.coming = ["lost answer"]
    arena.faults.drifts = (FieldDrift(path="*.probabilities", change="rename"),)
    assert handed_in(arena, ledger, [make_forecast("prophet_arena/who-wins", {"Ann": 0.7, "Bob": 0.3})]) == (
        ["sent"],
        2,
    )
    assert arena.forecasts[-1]["probabilities"] == arena.forecasts[0]["probabilities"]


def test_unknown_agent_is_refused(arena: FakeProphetArena, ledger: SubmissionLedger, make_forecast: Any):
    forecasts = [make_forecast("prophet_arena/who-wins", {"Ann": 0.7, "Bob": 0.3})]
    assert handed_in(arena, ledger, forecasts, agent="stranger") == (["refused"], 1)


def test_weekly_question_is_sent_with_its_window_until_the_deadline(
    arena: FakeProphetArena, ledger: SubmissionLedger, make_forecast: Any
):
    rules = {"Yes": "If so.", "No": "If so."}
    settled = weekly_event_body("done", "KX-DONE", "Done?", rules)
    settled["outcomes"][0]["resolution"] = "no"
    question = weekly_event_body("cut", "KX-CUT", "Cut?", rules, window=4)
    arena.release = weekly_release_body("2026-11-01", "2026-11-08T04:59:00Z", question, settled)
    both = [make_forecast(f"prophet_arena/{slug}", {"Yes": 0.7, "No": 0.3}) for slug in ("cut", "done")]
    plan = planned(arena, both)
    assert [item.content["window"] for item in plan.ready] == [4]
    assert "it is settled" in plan.refused[0].problems[0]
    assert handed_in(arena, ledger, both) == (["sent"], 1)
    answer = list(ledger.entries())[-1].content["answer"]
    assert (answer["listed"], answer["window"], "receipt" in answer) == (True, 4, False)
    arena.release = weekly_release_body("2026-11-01", "2026-10-31T04:59:00Z", question)
    assert "it is closed" in planned(arena, both[:1]).refused[0].problems[0]


def test_receipt_is_checked_against_its_seal(arena: FakeProphetArena, ledger: SubmissionLedger, make_forecast: Any):
    assert handed_in(arena, ledger, [make_forecast("prophet_arena/who-wins", {"Ann": 0.7, "Bob": 0.3})])[0] == ["sent"]
    assert list(ledger.entries())[-1].content["answer"]["seal_fits"] is True
    receipt = arena.forecasts[0]["receipt"]
    assert seal_fits(Payload(url="", value=receipt))
    assert not seal_fits(Payload(url="", value=receipt | {"seal": "0" * 64}))
    assert not seal_fits(Payload(url="", value=receipt | {"key": "pa-receipt-1.x"}))


def test_items_above_the_daily_quota_are_refused_and_not_resent(
    arena: FakeProphetArena, ledger: SubmissionLedger, make_forecast: Any
):
    arena.quota = 0
    fates, posts = handed_in(arena, ledger, [make_forecast("prophet_arena/who-wins", {"Ann": 0.7, "Bob": 0.3})])
    assert (fates, posts) == (["refused"], 1)
