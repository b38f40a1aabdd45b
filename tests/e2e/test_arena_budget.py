"""An arena with a budget, killed in the middle of its forecasts: no overspending, no reply bought twice, all done."""

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
from foretell.models import Journal
from foretell.practice.markets import KalshiCatalogue, SampleKalshiEvent, SampleKalshiMarket, kalshi_event_body
from foretell.practice.models import arena_script
from foretell.questions import instant
from foretell.runs import load_settings

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
def test_killed_in_the_middle_of_paid_forecasts(
    request: Any, build_house: Callable[..., Any], where: str, budget: float
):
    """Two processes with one budget are killed while they wait for replies; commands that end at once go on."""
    with Background(lambda: BillingModels(arena_script, wants=300, latency=0.15)) as models:
        house = build_house(models.url)
        if where == "server":
            house = house.with_environment(FORETELL_DATABASE_URL=request.getfixturevalue("postgres"))
        paid = {"model": MODEL, "trials": TRIALS, "budget": {"run": budget}, "sampling": {"max_tokens": 600}}
        arena = {"name": "paid", "entries": {"market": "market", "paid": paid}, "select": {"volume": 1}}
        (house.folder / "arena.yaml").write_text(yaml.safe_dump(arena))
        house = house.with_environment(FORETELL_CLOCK=f"file:{house.folder / 'clock'}")
        found = asyncio.run(story(house, models.server))
        status, bill = found["show"]["entries"]["paid"], models.server
        again = bill.billed.total() - len(bill.billed)
    at_most = status["money"]["billed"] + status["money"]["unknown"]
    assert bill.bill <= at_most + 1e-9
    assert at_most <= budget + 1e-9
    # Only what was on the wire at a kill is sent again: every reply that arrived is kept, once.
    assert again <= found["maybe_paid"] <= 2 * KILLS * AT_ONCE
    board = found["score"]["counts"]
    assert (board["resolved"], board["forecasts"]) == (EVENTS, EVENTS + status["forecasts"])
    if budget == 0.3:
        assert (status["forecasts"], status["failed"], status["open"]) == (EVENTS * TRIALS, 0, 0)
        assert found["kept"] == len(bill.billed)
    else:
        assert status["forecasts"] < EVENTS * TRIALS
        assert "the budget of the run allows 0.05 dollars" in found["told"]


async def story(house: Any, bill: BillingModels) -> dict[str, Any]:
    """From the listing to the board, with kills in between."""
    exchange = catalogue()

    async def foretell(*arguments: str) -> str:
        done = await asyncio.to_thread(house.foretell, "arena", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def at(hours: float) -> None:
        (house.folder / "clock").write_text((START + timedelta(hours=hours)).isoformat())

    async with FakeKalshi({}).having(exchange).server() as server:
        house = house.with_environment(FORETELL_KALSHI_URL=server.url)
        at(0)
        await foretell("run", "--once", "--stage", "collect", "--stage", "context")
        forecast = ("run", "--once", "--stage", "forecast", "--where", "here", "--concurrency", str(AT_ONCE))
        for _ in range(KILLS):
            both = [house.start("arena", *forecast) for _ in range(2)]
            wanted, until = bill.billed.total() + 3, time.monotonic() + 8
            while bill.billed.total() < wanted and time.monotonic() < until:
                await asyncio.sleep(0.01)
            for process in both:
                process.send_signal(signal.SIGKILL)
                await asyncio.to_thread(process.wait)
        until = time.monotonic() + PATIENCE
        while "at work elsewhere" in (told := await foretell(*forecast)):
            assert time.monotonic() < until, "the work of dead processes stays theirs"
            await asyncio.sleep(2)
        at(97)
        exchange.events = catalogue("yes").events
        await foretell("run", "--once", "--stage", "resolve")
        found = {name: json.loads(await foretell(name, "--json")) for name in ("show", "score")}
    settings = load_settings(house.whole_environment)
    with closing(Journal(settings.journal)) as journal:
        kept = sum(spend.calls for spend in journal.spent().values())
        return {**found, "told": told, "maybe_paid": journal.maybe_paid(), "kept": kept}
