"""An arena with a budget, killed during its forecasts, completes without overspending or paying twice."""

import asyncio
import json
import signal
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
import yaml

from fakes.background import Background
from fakes.billing import MODEL, BillingModels
from fakes.markets import FakeKalshi
from foretell.models.journal import Journal
from foretell.practice.markets.kalshi import KalshiCatalogue, SampleKalshiEvent, SampleKalshiMarket, kalshi_event_body
from foretell.practice.models.scripts import arena_script
from foretell.questions.as_of import instant
from foretell.runs.settings import load_settings

START = instant("2026-11-01T00:00:00Z")
EVENTS, TRIALS, AT_ONCE, KILLS = 5, 2, 4, 2
PATIENCE = 60.0


def catalogue(result: str = "") -> KalshiCatalogue:
    closes = (START + timedelta(days=4)).isoformat()
    status = "finalized" if result else "active"
    quotes: dict[str, Any] = {"bid": 0.4, "ask": 0.44, "volume": 500, "closes": closes}
    events = [
        SampleKalshiEvent(
            ticker=f"KXB{n}-26NOV",
            series=f"KXB{n}",
            title=f"Is number {n} approved?",
            markets=(
                SampleKalshiMarket(ticker=f"KXB{n}-26NOV-Y", label="Yes", status=status, result=result, **quotes),
            ),
        )
        for n in range(EVENTS)
    ]
    return KalshiCatalogue([kalshi_event_body(event) for event in events])


@pytest.mark.parametrize(
    ("where", "budget"),
    [("file", 0.3), ("file", 0.05), ("server", 0.3)],
    ids=["one machine", "one machine, too little money", "a shared server"],
)
def test_arena_killed_during_paid_forecasts_stays_within_budget(
    request: Any, build_workspace: Callable[..., Any], where: str, budget: float
):
    """Two processes with one budget are killed while they wait for replies, and later commands resume."""
    with Background(lambda: BillingModels(arena_script, wants=300, latency=0.15)) as models:
        workspace = build_workspace(models.url)
        if where == "server":
            workspace = workspace.with_environment(FORETELL_DATABASE_URL=request.getfixturevalue("postgres"))
        paid = {"model": MODEL, "trials": TRIALS, "budget": {"run": budget}, "sampling": {"max_tokens": 600}}
        arena = {"name": "paid", "entries": {"market": "market", "paid": paid}, "select": {"volume": 1}}
        (workspace.folder / "arena.yaml").write_text(yaml.safe_dump(arena))
        workspace = workspace.with_environment(FORETELL_CLOCK=f"file:{workspace.folder / 'clock'}")
        results = asyncio.run(play(workspace, models.server))
        status, bill = results["show"]["entries"]["paid"], models.server
        again = bill.billed.total() - len(bill.billed)
    at_most = status["money"]["billed"] + status["money"]["unknown"]
    assert bill.bill <= at_most + 1e-9
    assert at_most <= budget + 1e-9
    # Only requests in flight at a kill are sent again. Every reply that arrived is stored once.
    assert again <= results["lost_calls"] <= 2 * KILLS * AT_ONCE
    board = results["score"]["counts"]
    assert (board["resolved"], board["forecasts"]) == (EVENTS, EVENTS + status["forecasts"])
    if budget == 0.3:
        assert (status["forecasts"], status["failed"], status["open"]) == (EVENTS * TRIALS, 0, 0)
        assert results["kept"] == len(bill.billed)
    else:
        assert status["forecasts"] < EVENTS * TRIALS
        assert "the budget of the run allows 0.05 dollars" in results["told"]


async def play(workspace: Any, bill: BillingModels) -> dict[str, Any]:
    """Run all stages from the listing to the leaderboard, with kills in between."""
    exchange = catalogue()

    async def foretell(*arguments: str) -> str:
        done = await asyncio.to_thread(workspace.foretell, "arena", *arguments)
        assert done.returncode == (3 if "the budget of the run" in done.stdout else 0), done.stderr
        return done.stdout

    def at(hours: float) -> None:
        (workspace.folder / "clock").write_text((START + timedelta(hours=hours)).isoformat())

    async with FakeKalshi({}).having(exchange).server() as server:
        workspace = workspace.with_environment(FORETELL_KALSHI_URL=server.url)
        at(0)
        await foretell("run", "--once", "--stage", "collect", "--stage", "context")
        forecast = ("run", "--once", "--stage", "forecast", "--where", "here", "--concurrency", str(AT_ONCE))
        for _ in range(KILLS):
            both = [workspace.start("arena", *forecast) for _ in range(2)]
            wanted, until = bill.billed.total() + 3, time.monotonic() + 8
            while bill.billed.total() < wanted and time.monotonic() < until:
                await asyncio.sleep(0.01)
            for process in both:
                process.send_signal(signal.SIGKILL)
                await asyncio.to_thread(process.wait)
        until = time.monotonic() + PATIENCE
        while "in progress elsewhere" in (output := await foretell(*forecast)):
            assert time.monotonic() < until, "the work of dead processes is not taken over"
            await asyncio.sleep(2)
        at(97)
        exchange.events = catalogue("yes").events
        await foretell("run", "--once", "--stage", "resolve")
        results = {name: json.loads(await foretell(name, "--json")) for name in ("show", "score")}
    settings = load_settings(workspace.whole_environment)
    with closing(Journal(settings.journal)) as journal:
        calls = sum(spend.calls for spend in journal.spent().values())
        return {**results, "told": output, "lost_calls": journal.ledger.lost_calls(), "kept": calls}
