"""An arena whose forecasts are made by workers on a shared PostgreSQL."""

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
import yaml

from fakes.markets import FakeKalshi
from fakes.models import BackgroundModels
from foretell.practice.markets.kalshi import KalshiCatalogue, SampleKalshiEvent, SampleKalshiMarket, kalshi_event_body
from foretell.questions.as_of import instant
from foretell.runs.store import RunStore

START = instant("2026-11-01T00:00:00Z")
EVENTS = 4


@pytest.fixture(scope="module")
def provider() -> Iterator[BackgroundModels]:
    with BackgroundModels(script="foretell.practice.models.scripts:arena_script", latency=0.05) as fake:
        yield fake


def catalogue() -> KalshiCatalogue:
    closes = (START + timedelta(days=4)).isoformat()
    events = [
        SampleKalshiEvent(
            ticker=f"KXW{n}-26NOV",
            series=f"KXW{n}",
            title=f"Is number {n} approved?",
            markets=(
                SampleKalshiMarket(ticker=f"KXW{n}-26NOV-Y", label="Yes", bid=0.4, ask=0.44, volume=500, closes=closes),
            ),
        )
        for n in range(EVENTS)
    ]
    return KalshiCatalogue([kalshi_event_body(event) for event in events])


def test_workers_answer_the_trials_of_an_arena(
    provider: BackgroundModels, postgres: str, build_workspace: Callable[..., Any]
):
    provider.reset()
    workspace = build_workspace(provider.url)
    clock = workspace.folder / "clock"
    clock.write_text(START.isoformat())
    entries = {"market": "market", "prompt": {"model": "openai:one", "trials": 2}, "other": {"model": "openai:two"}}
    arena = {"name": "shared", "entries": entries, "select": {"volume": 1}}
    (workspace.folder / "arena.yaml").write_text(yaml.safe_dump(arena))

    async def main() -> None:
        async with FakeKalshi({}).having(catalogue()).server() as server:
            at = workspace.with_environment(
                FORETELL_KALSHI_URL=server.url, FORETELL_CLOCK=f"file:{clock}", FORETELL_DATABASE_URL=postgres
            )
            worker = at.start("worker")
            try:
                for stage in ("collect", "context", "forecast"):
                    done = await asyncio.to_thread(at.foretell, "arena", "run", "--once", "--stage", stage)
                    assert done.returncode == 0, done.stderr
                assert f"{4 * EVENTS} forecasts, 0 failed" in done.stdout
                thread = await asyncio.to_thread(at.foretell, "arena", "show", "--json")
            finally:
                worker.send_signal(signal.SIGTERM)
                await asyncio.to_thread(worker.wait)
        status = json.loads(thread.stdout)
        assert {name: entry["forecasts"] for name, entry in status["entries"].items()} == {
            "market": EVENTS,
            "prompt": 2 * EVENTS,
            "other": EVENTS,
        }
        assert status["waiting"] == 0

    asyncio.run(main())
    billed = provider.stats()["billed"]
    assert set(billed.values()) == {1}
    with closing(RunStore(postgres)) as store:
        assert len(store.runs()) == 3
