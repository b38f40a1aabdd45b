"""A simulated month of an arena. It needs no key and no network."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import yaml
from rich.console import Console

from foretell.arena.forecast import make_forecasts
from foretell.arena.live import LiveArena
from foretell.arena.opening import ArenaParts, open_arena
from foretell.arena.score_data import read_arena_table
from foretell.arena.select import Schedule, SelectionRules, slot
from foretell.arena.spec import FILE_NAME, ArenaSpec, CollectSpec, ContextSpec, EntrySpec, ResolveSpec
from foretell.arena.stages import collect, make_contexts, settle
from foretell.data.files import write_atomically
from foretell.data.http import AsyncHttpClient
from foretell.data.markets.kalshi import KalshiClient, KalshiEvents
from foretell.data.service_limits import ServiceAccess
from foretell.data.settlements.kalshi import KalshiSettlements
from foretell.forecasters.forecaster import Context
from foretell.frozen import frozen
from foretell.practice.exchange.events import SimulationSettings
from foretell.practice.exchange.forecasters import OracleForecaster, news_reader
from foretell.practice.exchange.server import KALSHI, FileClock, SimulatedExchange
from foretell.practice.exchange.server import KEY as EXCHANGE_KEY
from foretell.practice.exchange.world import SimulatedWorld
from foretell.practice.models.server import PracticeModels
from foretell.questions.forecast import Forecast
from foretell.questions.trace import EmitEvent
from foretell.report.arena_report import arena_report
from foretell.report.document import markdown_study, print_study
from foretell.report.result import ReportResult, Result
from foretell.report.terminal import show_text
from foretell.runs.executor import AnswerTrial
from foretell.runs.settings import KEYS, Settings
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunTrial
from foretell.scoring.baselines import ALWAYS_HALF, MARKET_PRICE

ORACLE, KNOWING = "oracle (knows the truth)", "oracle"
"""The name of the upper bound in the table, and its forecaster."""
BOTH, NEWS = "reader, news and price", "reader, news only"
HASTY, BOLD = "hasty reader", "bold reader"
PROVIDER, DEMO_ENGINE = "openai", "tavily"
"""The provider and engine that the scripted models and the news imitate."""
COLUMNS, WIDE_COLUMNS = ("Brier", "market − entry"), ("Brier", "market − entry", "ECE", "events")
"""The most important columns, for 80 characters and for wide terminals."""
OUTSIDE_ENTRY = "outside view"
STEP = timedelta(hours=3)
"""Simulated time advances in multiples of this step, to the next step with something due."""
GRACE = timedelta(days=6)
"""Time after the last event closes until every result is known."""
CLOCK = "clock.txt"
"""File in the home of a simulation with its current time."""
WIDE = 110


@frozen
class ArenaSeason:
    """The size of a simulated season."""

    days: int = 30
    """Days on which new events are selected."""
    events_per_day: int = 8
    seed: int = 0
    """Another seed makes another world."""


def demo_world(season: ArenaSeason) -> SimulatedWorld:
    """Return the simulated world; more events open per day than are selected."""
    opening = 1.6 * season.events_per_day
    return SimulatedWorld(SimulationSettings(seed=season.seed, days=season.days, events_per_day=opening))


def demo_spec(season: ArenaSeason, name: str = "demo") -> ArenaSpec:
    """Return the arena as its file describes it, without the oracle."""
    per_day = season.events_per_day
    readers = {BOTH: ("reader", "both"), NEWS: ("reader", "sources"), HASTY: ("hasty", "both"), BOLD: ("bold", "both")}
    return ArenaSpec(
        name=name,
        select=SelectionRules(closes_after_hours=30, closes_within_days=14, volume=500, per_day=per_day),
        schedule=Schedule(minimum_gap_hours=12),
        context=ContextSpec(search=(DEMO_ENGINE,), queries=2, per_query=10),
        collect=CollectSpec(every_hours=24),
        resolve=ResolveSpec(every_hours=12),
        entries={
            MARKET_PRICE: EntrySpec(forecaster="market"),
            ALWAYS_HALF: EntrySpec(forecaster="constant"),
            OUTSIDE_ENTRY: EntrySpec(forecaster="outside-view"),
            **{
                name: EntrySpec(options={"view": view}, models={"agent": f"{PROVIDER}:{model}"})
                for name, (model, view) in readers.items()
            },
        },
    )


@dataclass(kw_only=True)
class SimulatedDay:
    """What happened on a simulated day."""

    at: datetime
    listed: int = 0
    taken_up: int = 0
    asked: int = 0
    forecasts: int = 0
    calls: int = 0
    failed: int = 0
    settled: int = 0
    problems: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        """Return one line of text."""
        line = (
            f"{self.at:%d %b}  {self.listed:4} listed  {self.taken_up:3} taken up  {self.asked:4} asked  "
            f"{self.forecasts:5} forecasts  {self.settled:3} settled"
        )
        return "; ".join([line, *([f"{self.failed} failed"] if self.failed else []), *self.problems[:2]])


@frozen
class SimulatedArena:
    """An open arena with the clock that drives it."""

    arena: LiveArena
    clock: FileClock
    until: datetime
    """New events are selected until this time; the selected ones are then followed to their end."""

    async def days(self) -> AsyncIterator[SimulatedDay]:
        """Simulate day after day until all events have resolved."""
        day = SimulatedDay(at=self.clock())
        while (now := self.clock()) < self.until + timedelta(days=14) + GRACE:
            if now.date() > day.at.date():
                yield day
                day = SimulatedDay(at=now)
            await self._look(now, day)
            following = await self._next(now)
            if following is None:
                break
            self.clock.set(following)
        yield day

    async def _look(self, now: datetime, day: SimulatedDay) -> None:
        """Run all stages at one time."""
        arena = self.arena
        if now < self.until and now == slot(now, arena.spec.collect.every_hours):
            listed = await collect(arena, now)
            day.listed, day.taken_up = listed.listed, day.taken_up + len(listed.chosen)
            day.problems += listed.problems
        contexts = await make_contexts(arena, now)
        forecasts = await make_forecasts(arena, now)
        day.asked += contexts.made
        day.forecasts, day.failed = day.forecasts + forecasts.made, day.failed + forecasts.failed
        day.calls += forecasts.calls
        day.problems += [*contexts.problems, *contexts.notes, *forecasts.reasons]
        if now == slot(now, arena.spec.resolve.every_hours):
            results = await settle(arena, now)
            day.settled += results.settled
            day.problems += results.problems

    async def _next(self, now: datetime) -> datetime | None:
        """Return the next step with something due; None at the end."""
        store, spec = self.arena.records, self.arena.spec
        due: list[datetime] = []
        if (planned := await store.db.aside(store.forecast_times.next_due)) is not None:
            due.append(planned)
        if await store.db.aside(store.selected, unsettled=True):
            due.append(slot(now, spec.resolve.every_hours) + timedelta(hours=spec.resolve.every_hours))
        collecting = slot(now, spec.collect.every_hours) + timedelta(hours=spec.collect.every_hours)
        if collecting < self.until:
            due.append(collecting)
        if not due:
            return None
        begun = slot(min(due), STEP / timedelta(hours=1))
        return max(now + STEP, begun if begun == min(due) else begun + STEP)


@asynccontextmanager
async def open_simulation(
    season: ArenaSeason, home: Path, name: str = "demo", *, oracle: bool = True
) -> AsyncGenerator[SimulatedArena]:
    """Open exchange, model provider and arena on this machine; `oracle` adds a forecaster that knows the truth."""
    home.mkdir(parents=True, exist_ok=True)
    world, clock = demo_world(season), FileClock(home / CLOCK)
    clock.set(world.settings.start)
    opening = ArenaParts(markets=True, contexts=True, forecasts=True, here=True)
    async with (
        PracticeModels(news_reader) as provider,
        SimulatedExchange(world, clock).server() as server,
        AsyncHttpClient(access=ServiceAccess(simulated=True)) as http,
    ):
        addresses = {
            PROVIDER: f"{provider.url}/v1",
            # Another host name: rate limits are per host, and a search engine has another limit than a market.
            DEMO_ENGINE: f"{server.url.replace('127.0.0.1', 'localhost')}/{DEMO_ENGINE}",
            "kalshi": f"{server.url}{KALSHI}",
        }
        client = KalshiClient(http=http, host=addresses["kalshi"])
        keys = {KEYS[service][0]: EXCHANGE_KEY for service in (PROVIDER, DEMO_ENGINE)}
        settings = Settings(home=home, keys=keys, addresses=addresses, clock=f"file:{clock.path}")
        async with open_arena(demo_spec(season, name), settings, opening) as plain:

            async def truth(trial: RunTrial, emit: EmitEvent) -> Forecast:
                context = Context(as_of=trial.question.as_of_in("live"))
                return await OracleForecaster(world=world, name=ORACLE).forecast(trial.question, context)

            @asynccontextmanager
            async def answers(run: RunSpec) -> AsyncGenerator[AnswerTrial]:
                """Yield the arena's answers, and those of the oracle, which cannot be set in a file."""
                if run.forecaster == KNOWING:
                    yield truth
                    return
                async with plain.prepare(run) as answer:
                    yield answer

            entries = {**({ORACLE: EntrySpec(forecaster=KNOWING)} if oracle else {}), **plain.spec.entries}
            arena = replace(
                plain,
                spec=replace(plain.spec, entries=entries),
                prepare=answers,
                events={"kalshi": KalshiEvents(client)},
                settlements={"kalshi": KalshiSettlements(client)},
            )
            await arena.store.aside(arena.open)
            yield SimulatedArena(arena=arena, clock=clock, until=world.settings.ends)


@frozen
class ArenaDemoResult(ReportResult):
    """The leaderboard of a simulated season."""

    home: Path

    def __str__(self) -> str:
        return Result.__str__(self)

    def print(self, console: Console) -> None:
        """Print the leaderboard, with as many columns as fit, and how to open it."""
        study, shown = self.report.study(), WIDE_COLUMNS if console.width >= WIDE else COLUMNS
        board = study.tables[0]
        places = [place for place, column in enumerate(board.columns) if column.label in shown]
        rows = tuple(replace(row, values=tuple(row.values[place] for place in places)) for row in board.rows)
        narrow = replace(board, columns=tuple(board.columns[place] for place in places), rows=rows)
        print_study(replace(study, tables=(narrow,)), console)
        show_text(console, f"Its runs and {FILE_NAME} are in {self.home}\nOpen it:  foretell demo --arena --open\n")

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per table cell."""
        return self.report.study().rows()

    def to_html(self) -> str:
        """Return the leaderboard as a page, with charts."""
        return self.report.page()

    def to_markdown(self) -> str:
        """Return the tables as Markdown."""
        return markdown_study(self.report.study())

    def write_folder(self, path: Path) -> list[Path]:
        """Write the leaderboard into a folder in every text format."""
        return self.report.study(pictures=True).write_folder(path)


async def arena_demo(season: ArenaSeason, home: Path, tell: Callable[[str], None] = lambda _: None) -> ArenaDemoResult:
    """Simulate a season of an arena in an empty folder, and score it."""
    began = monotonic()
    async with open_simulation(season, home) as run:
        entries = len(run.arena.spec.entries)
        tell(f"{season.days} days of a made-up exchange, {season.events_per_day} events a day, {entries} entries")
        questions = calls = 0
        async for day in run.days():
            questions, calls = questions + day.asked, calls + day.calls
            tell(str(day))
        tell(f"{questions} questions asked, {calls} calls of models, {monotonic() - began:.0f} seconds\n")
        report = arena_report(read_arena_table(run.arena.store.database, run.arena.name))
    spec = json.loads(demo_spec(season).to_json())
    write_atomically(home / FILE_NAME, yaml.safe_dump(spec, sort_keys=False, allow_unicode=True).encode())
    return ArenaDemoResult(report=report, home=home)
