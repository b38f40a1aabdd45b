"""Two arena services on one database, killed with SIGKILL again and again through a simulated week.

FORETELL_ARENA_KILLS says how often; the clock, the exchange and the provider belong to the test.
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
from foretell.arena import LiveArena, Moment, arena_status, read_arena
from foretell.models import Journal
from foretell.operations import ArenaParts, open_arena
from foretell.practice.markets import KalshiCatalogue, SampleKalshiEvent, SampleKalshiMarket, kalshi_event_body
from foretell.questions import Forecast, instant
from foretell.runs import Settings, load_settings

KILLS = int(os.environ.get("FORETELL_ARENA_KILLS", "6"))
BRAIN = "foretell.practice.models.scripts:arena_script"
START = instant("2026-11-01T00:00:00Z")
STEP = timedelta(hours=8)
STEPS = 21
GAP = 8.0
PATIENCE = 90.0
CHANCE = 0.6
"""Of a kill, and of another one after it, while something is due."""
ENTRIES: dict[str, Any] = {
    "market": "market",
    "twice": {"forecaster": "context", "model": "openai:two", "trials": 2, "options": {"view": "market"}},
    "agent": {"forecaster": "agent", "model": "openai:three", "context": {"tools": False}},
}
ANSWERS = 4
"""Forecasts of a moment, over all entries and trials."""


@pytest.fixture(scope="module")
def provider() -> Iterator[BackgroundModels]:
    with BackgroundModels(script=BRAIN, latency=0.02) as fake:
        yield fake


def listed(now: datetime) -> list[dict[str, Any]]:
    """What the exchange shows: a new event a day, each closing after some days and settled at once."""
    found: list[dict[str, Any]] = []
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
        found.append(kalshi_event_body(event))
    return found


@dataclass(kw_only=True)
class Campaign:
    """Moves the clock, and kills."""

    house: Any
    arena: LiveArena
    exchange: KalshiCatalogue
    clock: Path
    journal: Journal
    rng: random.Random
    kills: int
    services: list[ForkedCommand] = field(default_factory=list)
    killed: int = 0

    def start(self) -> None:
        with (self.house.folder / f"service{len(self.services)}.log").open("ab") as log:
            streams = {"stdout": log, "stderr": log}
            self.services.append(self.house.start("arena", "run", "arena.yaml", "--where", "here", streams=streams))

    def kill(self) -> None:
        victim = self.services.pop(self.rng.randrange(len(self.services)))
        assert victim.poll() is None, "a service left by itself"
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
        """Leap to a moment, let the services do what is due, and kill some of them over it."""
        self.tell(now)
        busy = (await self.arena.store.aside(arena_status, self.arena, now)).due
        while busy and self.killed < self.kills and self.rng.random() < CHANCE:
            await self.until_sent(self.rng.randrange(12))
            self.kill()
        until = asyncio.get_running_loop().time() + PATIENCE
        while True:
            found = await self.arena.store.aside(arena_status, self.arena, now)
            if not found.waiting and not found.unresolved:
                return
            assert asyncio.get_running_loop().time() < until, f"nothing goes on: {found}"
            await asyncio.sleep(0.1)

    async def until_sent(self, calls: int) -> None:
        """Until so many more requests went out, or nothing is left to ask."""
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


def furnish(house: Any, kalshi: str, **environment: str) -> Any:
    clock = house.folder / "clock"
    clock.write_text(START.isoformat())
    arena = {
        "name": "harbour",
        "entries": ENTRIES,
        "select": {"same_format_days": 0, "closes_after_hours": 12, "volume": 1},
        "schedule": {"minimum_gap_hours": GAP},
        "context": {"search": ["local"], "models": {"summariser": "openai:zero"}, "queries": 2},
    }
    (house.folder / "arena.yaml").write_text(yaml.safe_dump(arena), encoding="utf-8")
    return house.with_environment(FORETELL_KALSHI_URL=kalshi, FORETELL_CLOCK=f"file:{clock}", **environment)


async def campaign(house: Any, kills: int, seed: int, **environment: str) -> tuple[Campaign, "Books"]:
    exchange = KalshiCatalogue()
    async with FakeKalshi({}).having(exchange).server() as server:
        house = furnish(house, server.url, **environment)
        settings = load_settings(house.whole_environment)
        async with open_arena(read_arena(house.folder), settings, ArenaParts()) as arena:
            with closing(Journal(settings.journal)) as journal:
                found = Campaign(
                    house=house,
                    arena=arena,
                    exchange=exchange,
                    clock=house.folder / "clock",
                    journal=journal,
                    rng=random.Random(seed),
                    kills=kills,
                )
                try:
                    await found.run()
                finally:
                    found.close()
            return found, Books.read(arena, settings)


@dataclass(frozen=True, kw_only=True)
class Books:
    """Everything that was written down."""

    moments: list[Moment]
    answers: dict[tuple[str, str, str, int], Any]
    """By entry, event, moment and trial."""
    said: int
    forecasts_told: Counter[Any]
    outcomes: int
    contexts: dict[str, Any]
    kept: int
    maybe_paid: int

    @classmethod
    def read(cls, arena: LiveArena, settings: Settings) -> "Books":
        book, store = arena.book, arena.store
        answers: dict[tuple[str, str, str, int], Any] = {}
        told: Counter[Any] = Counter()
        for entry, run in arena.entries():
            for one in store.answers(run.id):
                answers[entry.name, one.question_id, one.as_of.at.isoformat(), one.trial] = one
            for _, key, event in store.events(run.id):
                told[key] += type(event).__name__ == "ForecastMade"
        moments = [moment for event in book.selected() for moment in book.moments.of_event(event)]
        with closing(Journal(settings.journal)) as journal:
            kept = sum(spend.calls for spend in journal.spent().values())
            maybe = journal.maybe_paid()
        return cls(
            moments=moments,
            answers=answers,
            said=book.db.read("select count(*) from said")[0][0],
            forecasts_told=told,
            outcomes=len(book.outcomes()),
            contexts={m.context: book.context(m.context) for m in moments if m.context},
            kept=kept,
            maybe_paid=maybe,
        )


def check(books: Books, provider: BackgroundModels) -> int:
    """Every moment of the schedule answered once by everybody, and nothing paid for twice; how many were re-sent."""
    planned = expected_moments(books.moments)
    assert {(m.event, m.number): m.planned_at for m in books.moments} == planned
    assert {m.state for m in books.moments} == {"ready"}
    assert books.said == len(books.answers) == ANSWERS * len(planned)
    assert all(isinstance(one, Forecast) for one in books.answers.values())
    assert set(books.forecasts_told.values()) <= {0, 1}
    for moment in books.moments:
        assert moment.taken_at is not None
        assert moment.planned_at <= moment.taken_at <= moment.planned_at + STEP
        context = books.contexts[moment.context or ""]
        assert context.question.due == moment.taken_at
        assert context.sources
    for (name, event, due, _), one in books.answers.items():
        digests = {m.context for m in books.moments if m.event == event and m.taken_at == instant(due)}
        assert name == "market" or one.trace in {f"context {digest}" for digest in digests}
    billed = provider.stats()["billed"]
    again = sum(billed.values()) - len(billed)
    # Every reply that was ever billed is kept, once; what was billed twice was on the wire when its asker was killed.
    assert len(billed) == books.kept
    assert again <= books.maybe_paid
    return again


def expected_moments(moments: list[Moment]) -> dict[tuple[str, int], datetime]:
    """By the formula t_k = close − 2⁻ᵏ·Δ, until less than the gap would be left."""
    found: dict[tuple[str, int], datetime] = {}
    for first in (moment for moment in moments if moment.number == 0):
        assert first.closes_at is not None
        whole, number = first.closes_at - first.planned_at, 0
        while not number or whole / 2**number >= timedelta(hours=GAP):
            found[first.event, number] = first.closes_at - whole / 2**number
            number += 1
    return found


def test_two_services_killed_over_a_week(provider: BackgroundModels, build_house: Callable[..., Any], capsys: Any):
    provider.reset()
    done, books = asyncio.run(campaign(build_house(provider.url), KILLS, seed=5))
    again = check(books, provider)
    assert done.killed == KILLS
    assert len({m.event for m in books.moments}) >= 5
    with capsys.disabled():
        told = f"{len(books.moments)} moments, {books.said} forecasts, {books.kept} calls, {done.killed} kills"
        print(f"[{told}, {again} calls re-sent from the wire]", end=" ")


def test_two_services_on_postgres(
    provider: BackgroundModels, postgres: str, build_house: Callable[..., Any], capsys: Any
):
    """Fewer kills: a server takes five seconds to be sure that one of them is gone."""
    provider.reset()
    done, books = asyncio.run(campaign(build_house(provider.url), 3, seed=7, FORETELL_DATABASE_URL=postgres))
    again = check(books, provider)
    with capsys.disabled():
        print(f"[{books.said} forecasts, {done.killed} kills, {again} calls re-sent]", end=" ")
