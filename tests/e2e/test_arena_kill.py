"""Two arena services on one database, killed repeatedly with SIGKILL through a simulated week.

FORETELL_ARENA_KILLS is the number of kills. The clock, the exchange and the provider belong to the test.
"""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.markets import FakeKalshi
from fakes.models import BackgroundModels
from fakes.processes import ForkedCommand
from foretell.arena.live import LiveArena
from foretell.arena.opening import ArenaParts, open_arena
from foretell.arena.spec import read_arena
from foretell.arena.status import arena_status
from foretell.arena.store import ForecastTime
from foretell.models.journal import Journal
from foretell.practice.markets.kalshi import KalshiCatalogue, SampleKalshiEvent, SampleKalshiMarket, kalshi_event_body
from foretell.questions.as_of import instant
from foretell.questions.forecast import Forecast
from foretell.runs.settings import Settings, load_settings

KILLS = int(os.environ.get("FORETELL_ARENA_KILLS", "6"))
BRAIN = "foretell.practice.models.scripts:arena_script"
START = instant("2026-11-01T00:00:00Z")
STEP = timedelta(hours=8)
STEPS = 21
GAP = 8.0
PATIENCE = 90.0
CHANCE = 0.6
"""Probability of a kill, and of another one after it, while something is due."""
ENTRIES: dict[str, Any] = {
    "market": "market",
    "twice": {"forecaster": "context", "model": "openai:two", "trials": 2, "options": {"view": "market"}},
    "agent": {"forecaster": "agent", "model": "openai:three", "context": {"tools": False}},
}
ANSWERS = 4
"""Number of forecasts at a forecast time, over all entries and trials."""


@pytest.fixture(scope="module")
def provider() -> Iterator[BackgroundModels]:
    with BackgroundModels(script=BRAIN, latency=0.02) as fake:
        yield fake


def listed(now: datetime) -> list[dict[str, Any]]:
    """Return the events of the exchange: a new one each day, which closes after some days and settles at once."""
    rows: list[dict[str, Any]] = []
    for n in range(6):
        opens, closes = START + timedelta(days=n - 1), START + timedelta(days=n + 1.3 + 0.5 * (n % 3))
        if opens > now:
            continue
        over = closes <= now
        markets = tuple(
            SampleKalshiMarket(
                ticker=f"KXDAY{n}-26NOV-{side}",
                label=f"Outcome {side}",
                bid=0.30 + 0.02 * n + 0.2 * place,
                ask=0.34 + 0.02 * n + 0.2 * place,
                last=0.32 + 0.02 * n + 0.2 * place,
                volume=1000,
                closes=closes.isoformat(),
                status="finalized" if over else "active",
                result=("yes" if place == n % 2 else "no") if over else "",
            )
            for place, side in enumerate(("A", "B"))
        )
        title = f"Will the harbour bridge number {n} be approved?"
        event = SampleKalshiEvent(
            ticker=f"KXDAY{n}-26NOV", series=f"KXDAY{n}", title=title, exclusive=n % 2 == 0, markets=markets
        )
        rows.append(kalshi_event_body(event))
    return rows


@dataclass(kw_only=True)
class Campaign:
    """Moves the clock and kills services."""

    workspace: Any
    arena: LiveArena
    exchange: KalshiCatalogue
    clock: Path
    journal: Journal
    rng: random.Random
    kills: int
    services: list[ForkedCommand] = field(default_factory=list)
    killed: int = 0

    def start(self) -> None:
        with (self.workspace.folder / f"service{len(self.services)}.log").open("ab") as log:
            streams = {"stdout": log, "stderr": log}
            self.services.append(self.workspace.start("arena", "run", "arena.yaml", "--where", "here", streams=streams))

    def kill(self) -> None:
        victim = self.services.pop(self.rng.randrange(len(self.services)))
        assert victim.poll() is None, "a service ended by itself"
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        self.killed += 1
        self.start()

    def tell(self, now: datetime) -> None:
        self.exchange.events = listed(now)
        fresh = self.clock.with_suffix(".new")
        fresh.write_text(now.isoformat())
        fresh.replace(self.clock)

    async def step(self, now: datetime) -> None:
        """Set the clock, let the services do what is due, and kill some of them meanwhile."""
        self.tell(now)
        busy = (await self.arena.store.aside(arena_status, self.arena, now)).due
        while busy and self.killed < self.kills and self.rng.random() < CHANCE:
            await self.until_sent(self.rng.randrange(12))
            self.kill()
        until = asyncio.get_running_loop().time() + PATIENCE
        while True:
            status = await self.arena.store.aside(arena_status, self.arena, now)
            if not status.waiting and not status.unresolved:
                return
            assert asyncio.get_running_loop().time() < until, f"no progress: {status}"
            await asyncio.sleep(0.1)

    async def until_sent(self, calls: int) -> None:
        """Wait until that many more requests were sent, or nothing is left to ask."""
        wanted = self.journal.sends() + calls
        until = asyncio.get_running_loop().time() + 3
        while self.journal.sends() < wanted and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.005)

    async def run(self) -> None:
        self.tell(START)
        self.start()
        self.start()
        for n in range(STEPS + 1):
            await self.step(START + n * STEP)

    def close(self) -> None:
        for child in self.services:
            child.kill()
            child.wait()


def set_up(workspace: Any, kalshi: str, **environment: str) -> Any:
    clock = workspace.folder / "clock"
    clock.write_text(START.isoformat())
    arena = {
        "name": "harbour",
        "entries": ENTRIES,
        "select": {"same_format_days": 0, "closes_after_hours": 12, "volume": 1},
        "schedule": {"minimum_gap_hours": GAP},
        "context": {"search": ["local"], "models": {"summariser": "openai:zero"}, "queries": 2},
    }
    (workspace.folder / "arena.yaml").write_text(yaml.safe_dump(arena), encoding="utf-8")
    return workspace.with_environment(FORETELL_KALSHI_URL=kalshi, FORETELL_CLOCK=f"file:{clock}", **environment)


async def campaign(workspace: Any, kills: int, seed: int, **environment: str) -> tuple[Campaign, "Books"]:
    exchange = KalshiCatalogue()
    async with FakeKalshi({}).having(exchange).server() as server:
        workspace = set_up(workspace, server.url, **environment)
        settings = load_settings(workspace.whole_environment)
        async with open_arena(read_arena(workspace.folder), settings, ArenaParts()) as arena:
            with closing(Journal(settings.journal)) as journal:
                result = Campaign(
                    workspace=workspace,
                    arena=arena,
                    exchange=exchange,
                    clock=workspace.folder / "clock",
                    journal=journal,
                    rng=random.Random(seed),
                    kills=kills,
                )
                try:
                    await result.run()
                finally:
                    result.close()
            return result, Books.read(arena, settings)


@dataclass(frozen=True, kw_only=True)
class Books:
    """Everything that was stored."""

    forecast_times: list[ForecastTime]
    answers: dict[tuple[str, str, str, int], Any]
    """By entry, event, forecast time and trial."""
    forecast_count: int
    made_events: Counter[Any]
    outcomes: int
    contexts: dict[str, Any]
    calls: int
    lost_calls: int

    @classmethod
    def read(cls, arena: LiveArena, settings: Settings) -> "Books":
        records, store = arena.records, arena.store
        answers: dict[tuple[str, str, str, int], Any] = {}
        counter: Counter[Any] = Counter()
        for entry, run in arena.entries():
            for answer in store.answers(run.id):
                answers[entry.name, answer.question_id, answer.as_of.at.isoformat(), answer.trial] = answer
            for _, key, event in store.events(run.id):
                counter[key] += type(event).__name__ == "ForecastMade"
        forecast_times = [
            forecast_time for event in records.selected() for forecast_time in records.forecast_times.of_event(event)
        ]
        with closing(Journal(settings.journal)) as journal:
            calls = sum(spend.calls for spend in journal.spent().values())
            maybe = journal.ledger.lost_calls()
        return cls(
            forecast_times=forecast_times,
            answers=answers,
            forecast_count=records.db.read("select count(*) from said")[0][0],
            made_events=counter,
            outcomes=len(records.outcomes()),
            contexts={m.context: records.context(m.context) for m in forecast_times if m.context},
            calls=calls,
            lost_calls=maybe,
        )


def check(books: Books, provider: BackgroundModels) -> int:
    """Check that all entries answered each forecast time once and paid once, and return how many calls were resent."""
    planned = expected_forecast_times(books.forecast_times)
    assert {(m.event, m.number): m.planned_at for m in books.forecast_times} == planned
    assert {m.state for m in books.forecast_times} == {"ready"}
    assert books.forecast_count == len(books.answers) == ANSWERS * len(planned)
    assert all(isinstance(answer, Forecast) for answer in books.answers.values())
    assert set(books.made_events.values()) <= {0, 1}
    for forecast_time in books.forecast_times:
        assert forecast_time.taken_at is not None
        assert forecast_time.planned_at <= forecast_time.taken_at <= forecast_time.planned_at + STEP
        context = books.contexts[forecast_time.context or ""]
        assert context.question.due == forecast_time.taken_at
        assert context.sources
    for (name, event, due, _), answer in books.answers.items():
        digests = {m.context for m in books.forecast_times if m.event == event and m.taken_at == instant(due)}
        assert name == "market" or answer.trace in {f"context {digest}" for digest in digests}
    billed = provider.stats()["billed"]
    again = sum(billed.values()) - len(billed)
    # Every billed reply is stored once. Only requests in flight at a kill are billed twice.
    assert len(billed) == books.calls
    assert again <= books.lost_calls
    return again


def expected_forecast_times(forecast_times: list[ForecastTime]) -> dict[tuple[str, int], datetime]:
    """Return t_k = close − 2⁻ᵏ·Δ, until less than the gap would be left."""
    by_event: dict[tuple[str, int], datetime] = {}
    for first in (forecast_time for forecast_time in forecast_times if forecast_time.number == 0):
        assert first.closes_at is not None
        whole, number = first.closes_at - first.planned_at, 0
        while not number or whole / 2**number >= timedelta(hours=GAP):
            by_event[first.event, number] = first.closes_at - whole / 2**number
            number += 1
    return by_event


def test_two_killed_services_answer_every_forecast_time_once(
    provider: BackgroundModels, build_workspace: Callable[..., Any], capsys: Any
):
    provider.reset()
    done, books = asyncio.run(campaign(build_workspace(provider.url), KILLS, seed=5))
    again = check(books, provider)
    assert done.killed == KILLS
    assert len({m.event for m in books.forecast_times}) >= 5
    with capsys.disabled():
        counts = f"{len(books.forecast_times)} forecast times, {books.forecast_count} forecasts, {books.calls} calls"
        summary = f"{counts}, {done.killed} kills"
        print(f"[{summary}, {again} calls re-sent]", end=" ")


def test_two_killed_services_on_postgres_answer_every_forecast_time_once(
    provider: BackgroundModels, postgres: str, build_workspace: Callable[..., Any], capsys: Any
):
    """Fewer kills, because a server takes five seconds to notice that a process is gone."""
    provider.reset()
    done, books = asyncio.run(campaign(build_workspace(provider.url), 3, seed=7, FORETELL_DATABASE_URL=postgres))
    again = check(books, provider)
    with capsys.disabled():
        print(f"[{books.forecast_count} forecasts, {done.killed} kills, {again} calls re-sent]", end=" ")
