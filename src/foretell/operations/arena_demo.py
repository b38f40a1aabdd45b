"""A season of an arena in simulated time: all of its stages, from one due moment to the next."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.arena.spec import ArenaSpec, CollectSpec, ContextSpec, EntrySpec, ResolveSpec
from foretell.operations.requests import ArenaDemoRequest
from foretell.operations.result import Result
from foretell.questions.errors import InputError
from foretell.scoring.table import ALWAYS_HALF, CROWD

if TYPE_CHECKING:
    from rich.console import Console

    from foretell.arena.live import LiveArena, PrepareEntry
    from foretell.practice.exchange.server import FileClock
    from foretell.practice.exchange.world import SimulatedWorld
    from foretell.questions.forecast import Forecast
    from foretell.questions.trace import EmitEvent
    from foretell.report.arena_report import ArenaReport
    from foretell.report.study import StudyResult
    from foretell.runs.executor import AnswerCell
    from foretell.runs.settings import Settings
    from foretell.runs.spec import RunSpec
    from foretell.runs.store import RunCell

ORACLE, KNOWING = "oracle (knows the truth)", "oracle"
"""The row of the upper bound, named so that nobody takes it for a competitor; and its forecaster."""
BOTH, NEWS = "reader, news and price", "reader, news only"
HASTY, BOLD = "hasty reader", "bold reader"
OUTSIDE_ENTRY = "outside view"
STEP = timedelta(hours=3)
"""Simulated time goes on in steps of this length, straight to the next one in which something is due."""
GRACE = timedelta(days=6)
"""After the last event has closed; by then every result is out."""
PROVIDER, ENGINE = "openai", "tavily"
"""Whose wires the scripted models and the news are spoken to by."""


@dataclass(frozen=True, kw_only=True)
class ArenaSimulation:
    """What is simulated."""

    days: int = 30
    events_per_day: int = 8
    seed: int = 0

    def world(self) -> "SimulatedWorld":
        """The world in which it takes place; some more opens there in a day than is taken up."""
        from foretell.practice.exchange.chance import SimulationSettings
        from foretell.practice.exchange.world import SimulatedWorld

        return SimulatedWorld(
            SimulationSettings(seed=self.seed, days=self.days, events_per_day=1.6 * self.events_per_day)
        )

    def spec(self) -> ArenaSpec:
        """The arena as its file describes it; the oracle is no part of it."""
        from foretell.arena.schedule import Schedule
        from foretell.arena.select import SelectionRules

        return ArenaSpec(
            name="demo",
            select=SelectionRules(
                closes_after_hours=30, closes_within_days=14, volume=500, per_day=self.events_per_day
            ),
            schedule=Schedule(minimum_gap_hours=12),
            context=ContextSpec(search=(ENGINE,), queries=2, per_query=10),
            collect=CollectSpec(every_hours=24),
            resolve=ResolveSpec(every_hours=12),
            entries={
                CROWD: EntrySpec(forecaster="market"),
                ALWAYS_HALF: EntrySpec(forecaster="always"),
                OUTSIDE_ENTRY: EntrySpec(forecaster="outside"),
                BOTH: _reading("reader", "both"),
                NEWS: _reading("reader", "sources"),
                HASTY: _reading("hasty", "both"),
                BOLD: _reading("bold", "both"),
            },
        )


def _reading(model: str, view: str) -> EntrySpec:
    return EntrySpec(options={"view": view}, models={"agent": f"{PROVIDER}:{model}"})


@dataclass(kw_only=True)
class SimulatedDay:
    """What happened on a simulated day."""

    at: datetime
    listed: int = 0
    taken_up: int = 0
    asked: int = 0
    sources: int = 0
    forecasts: int = 0
    calls: int = 0
    failed: int = 0
    settled: int = 0
    problems: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        """One line for people."""
        told = (
            f"{self.at:%d %b}  {self.listed:4} listed  {self.taken_up:3} taken up  {self.asked:4} asked  "
            f"{self.forecasts:5} forecasts  {self.settled:3} settled"
        )
        return "; ".join([told, *([f"{self.failed} failed"] if self.failed else []), *self.problems[:2]])


@dataclass(frozen=True, kw_only=True)
class SimulatedArena:
    """An open arena with the clock that drives it."""

    arena: "LiveArena"
    clock: "FileClock"
    until: datetime
    """New events are taken up until here; then what was taken up is seen through."""

    async def days(self) -> AsyncIterator[SimulatedDay]:
        """Every simulated day, until everything has come out."""
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
        """All stages at a moment."""
        from foretell.arena.collect import collect
        from foretell.arena.context import make_contexts
        from foretell.arena.forecast import make_forecasts
        from foretell.arena.schedule import slot
        from foretell.arena.settle import settle

        arena = self.arena
        if now < self.until and now == slot(now, arena.spec.collect.every_hours):
            found = await collect(arena, now)
            day.listed, day.taken_up = found.listed, day.taken_up + len(found.chosen)
            day.problems += found.problems
        asked = await make_contexts(arena, now)
        said = await make_forecasts(arena, now)
        day.asked, day.sources = day.asked + asked.made, day.sources + asked.sources
        day.forecasts, day.failed = day.forecasts + said.made, day.failed + said.failed
        day.calls += said.calls
        day.problems += [*asked.problems, *said.reasons]
        if now == slot(now, arena.spec.resolve.every_hours):
            results = await settle(arena, now)
            day.settled += results.settled
            day.problems += results.problems

    async def _next(self, now: datetime) -> datetime | None:
        """The next step in which something is due; None when all is over."""
        from foretell.arena.schedule import slot

        book, spec = self.arena.book, self.arena.spec
        due: list[datetime] = []
        if (planned := await book.db.aside(book.moments.next_due)) is not None:
            due.append(planned)
        if await book.db.aside(book.selected, unsettled=True):
            due.append(slot(now, spec.resolve.every_hours) + timedelta(hours=spec.resolve.every_hours))
        collecting = slot(now, spec.collect.every_hours) + timedelta(hours=spec.collect.every_hours)
        if collecting < self.until:
            due.append(collecting)
        return max(now + STEP, _on_a_step(min(due))) if due else None


def _on_a_step(at: datetime) -> datetime:
    """The first step that is not earlier."""
    from foretell.arena.schedule import slot

    begun = slot(at, STEP / timedelta(hours=1))
    return begun if begun == at else begun + STEP


@asynccontextmanager
async def open_simulation(season: ArenaSimulation, home: Path) -> "AsyncGenerator[SimulatedArena]":
    """The exchange, the provider and the arena, all on this machine; closed together."""
    from foretell.data.http import AsyncHttpClient
    from foretell.data.markets.kalshi import KalshiClient, KalshiEvents
    from foretell.data.settlements.kalshi import KalshiSettlements
    from foretell.operations.arena import ArenaParts, open_arena
    from foretell.practice.exchange.forecasters import news_reader
    from foretell.practice.exchange.server import KALSHI, KEY, FileClock, SimulatedExchange
    from foretell.practice.models.server import PracticeModels

    home.mkdir(parents=True, exist_ok=True)
    world = season.world()
    clock = FileClock(home / "clock.txt")
    clock.set(world.settings.start)
    opening = ArenaParts(markets=True, contexts=True, forecasts=True, here=True)
    async with (
        PracticeModels(news_reader) as provider,
        SimulatedExchange(world, clock).server() as server,
        AsyncHttpClient() as http,
    ):
        addresses = {
            PROVIDER: f"{provider.url}/v1",
            # By another name of this machine: requests are paced by host, and a market's pace is not a search's.
            ENGINE: f"{server.url.replace('127.0.0.1', 'localhost')}/{ENGINE}",
            "kalshi": f"{server.url}{KALSHI}",
        }
        # The public exchange is asked ten times a second; this one is our own.
        client = KalshiClient(http=http, host=addresses["kalshi"], per_second=10_000.0)
        settings = _settings(home, addresses, clock, KEY)
        async with open_arena(season.spec(), settings, opening) as plain:
            arena = replace(
                plain,
                spec=_with_oracle(plain.spec),
                furnish=_AnswersWithOracle(plain.furnish, world),
                events={"kalshi": KalshiEvents(client)},
                settlements={"kalshi": KalshiSettlements(client)},
            )
            await arena.store.aside(arena.open)
            yield SimulatedArena(arena=arena, clock=clock, until=world.settings.ends)


def _settings(home: Path, addresses: dict[str, str], clock: "FileClock", key: str) -> "Settings":
    from foretell.runs.settings import KEYS, Settings

    keys = {KEYS[service][0]: key for service in (PROVIDER, ENGINE)}
    return Settings(home=home, keys=keys, addresses=addresses, clock=f"file:{clock.path}")


def _with_oracle(spec: ArenaSpec) -> ArenaSpec:
    return replace(spec, entries={ORACLE: EntrySpec(forecaster=KNOWING), **spec.entries})


class _AnswersWithOracle:
    """What the arena furnishes; and the oracle, which no file can name."""

    def __init__(self, furnish: "PrepareEntry", world: "SimulatedWorld") -> None:
        self._furnish = furnish
        self._world = world

    @asynccontextmanager
    async def __call__(self, run: "RunSpec") -> "AsyncGenerator[AnswerCell]":
        if run.forecaster == KNOWING:
            yield self._truth
            return
        async with self._furnish(run) as answer:
            yield answer

    async def _truth(self, cell: "RunCell", emit: "EmitEvent") -> "Forecast":
        from foretell.forecasters.forecaster import Context
        from foretell.practice.exchange.forecasters import OracleForecaster

        context = Context(as_of=cell.question.as_of_in("live"))
        return await OracleForecaster(world=self._world, name=ORACLE).forecast(cell.question, context)


# What `foretell arena demo` does.

PAGE, HOME = "leaderboard.html", "home"
COLUMNS, WIDE_COLUMNS = ("Brier", "crowd − entry"), ("Brier", "crowd − entry", "ECE", "events")
"""The numbers that matter most, so that their intervals have room: in 80 columns, and in more."""
WIDE = 110


@dataclass(frozen=True, kw_only=True)
class ArenaDemoResult(Result):
    """The leaderboard of a simulated season."""

    report: "ArenaReport"
    page: Path
    hints: str = ""
    """How to look into what was kept."""

    def to_dict(self) -> Any:
        """The report's own data."""
        return self.report.to_dict()

    def print(self, console: "Console") -> None:
        """The leaderboard alone."""
        from foretell.report.study_report import print_study

        columns = WIDE_COLUMNS if console.width >= WIDE else COLUMNS
        print_study(_narrowed(self.report.study(), columns), console)
        console.file.write(f"Wrote {self.page}\n{self.hints}")


def arena_demo(request: ArenaDemoRequest, tell: Callable[[str], None]) -> ArenaDemoResult:
    """Play a season of an arena on a made-up exchange, and score it.

    Args:
        request: How long, and where the page goes.
        tell: Is given a line for every simulated day.
    """
    import shutil

    from foretell.runs import event_loop

    home = (request.folder / HOME).absolute()
    if home.exists():
        raise InputError("an earlier demo is kept here", path=home, hint="name another folder with --folder")
    season = ArenaSimulation(days=request.days, events_per_day=request.events_per_day, seed=request.seed)
    try:
        result = event_loop.run(_play(season, request.folder, tell))
        return replace(result, hints=_keep(season, request.folder)) if request.keep else result
    finally:
        if not request.keep:
            shutil.rmtree(home, ignore_errors=True)


async def _play(season: ArenaSimulation, folder: Path, tell: Callable[[str], None]) -> ArenaDemoResult:
    from time import monotonic

    from foretell.arena.score_data import read_arena_table
    from foretell.data.atomic_file import write_atomically
    from foretell.report.arena_report import arena_report

    began = monotonic()
    async with open_simulation(season, (folder / HOME).absolute()) as run:
        entries = len(run.arena.spec.entries)
        tell(f"{season.days} days of a made-up exchange, {season.events_per_day} events a day, {entries} entries")
        asked = calls = 0
        async for day in run.days():
            asked, calls = asked + day.asked, calls + day.calls
            tell(str(day))
        tell(f"{asked} questions asked, {calls} calls of models, {monotonic() - began:.0f} seconds\n")
        report = arena_report(read_arena_table(run.arena.store.database, run.arena.name))
    write_atomically(folder / PAGE, report.page().encode())
    return ArenaDemoResult(report=report, page=folder / PAGE)


def _narrowed(study: "StudyResult", columns: tuple[str, ...]) -> "StudyResult":
    """The leaderboard alone, and of it some columns."""
    board = study.tables[0]
    kept = [place for place, column in enumerate(board.columns) if column.label in columns]
    entries = tuple(replace(one, values=tuple(one.values[place] for place in kept)) for one in board.rows)
    narrow = replace(board, columns=tuple(board.columns[place] for place in kept), rows=entries)
    return replace(study, tables=(narrow,))


def _keep(season: ArenaSimulation, folder: Path) -> str:
    """Write the arena's file, and say how to look around."""
    import json

    import yaml

    from foretell.arena.spec import FILE_NAME
    from foretell.data.atomic_file import write_atomically

    spec = json.loads(season.spec().to_json())
    write_atomically(folder / FILE_NAME, yaml.safe_dump(spec, sort_keys=False, allow_unicode=True).encode())
    home = (folder / HOME).absolute()
    return (
        f"\nTo look into it:\n  export FORETELL_HOME={home} FORETELL_CLOCK=file:{home / 'clock.txt'}\n"
        f"  foretell arena status {folder}\n  foretell runs\n"
    )
