"""Operations on a live arena: run it, score it, show it."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from foretell.arena.live import LiveArena
from foretell.arena.opening import ALL_PARTS, ArenaParts, open_arena_file
from foretell.arena.spec import read_arena
from foretell.frozen import frozen
from foretell.number_text import percent
from foretell.operations.requests.tournaments import ArenaRunRequest, ArenaScoreRequest, ArenaShowRequest
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError, known_names
from foretell.report.result import ReportResult, Result
from foretell.report.terminal import TextColumn, show_text, text_table
from foretell.runs.runner import WatchProgress
from foretell.runs.settings import load_settings

if TYPE_CHECKING:
    from rich.console import Console

SIMULATED_LOOK = 0.1
"""Seconds between two checks of a clock that may jump."""
PRICES_SHOWN = 12


@frozen
class ArenaScores(ReportResult):
    """The leaderboard of an arena."""

    by: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for every entry."""
        return self.report.rows()

    def to_html(self) -> str:
        """Return the report as a page, with figures."""
        return self.report.page()

    def print(self, console: "Console") -> None:
        """Print the tables of the report."""
        self.report.print(console, by=self.by)


async def score_arena(request: ArenaScoreRequest) -> ArenaScores:
    """Rank all entries on the resolved events."""
    from foretell.arena.score_data import read_arena_table
    from foretell.report.arena_report import arena_report

    # The engine of arenas calls this column "lead time".
    by = tuple(name.replace("lead_time", "lead time") for name in request.by)
    async with open_arena_file(request.file, ArenaParts()) as arena:
        folder = load_settings().home / "standings"
        table = await arena.store.aside(read_arena_table, arena.store.database, arena.name, keep=folder)
        report = arena_report(table, by=by, shares=request.shares, bootstrap=request.bootstrap)
    return ArenaScores(report=report, by=by)


@frozen
class ArenaEventResult(ReportResult):
    """One event of an arena, from its first price to its outcome."""

    def print(self, console: "Console") -> None:
        """Print the question, its prices, and a table of forecasts."""
        from rich.text import Text

        report = self.report
        console.print(Text(f"{report.question.text}  ({report.event}, {report.status})", style="bold"))
        if report.question.url:
            console.print(Text(report.question.url))
        for target, prices in report.prices.items():
            path = " → ".join(percent(price) for _, price in _thinned(prices))
            outcome = f"  came out {report.outcomes[target]}" if target in report.outcomes else ""
            console.print(Text(f"{report.labels[target]}: {path or 'no price'}{outcome}"))
        columns = [
            TextColumn(head="#", right=True),
            TextColumn(head="asked at (UTC)"),
            TextColumn(head="to close", drop=2),
            TextColumn(head="state", drop=1),
            TextColumn(head="entry", shrink=12),
            TextColumn(head="forecast", shrink=20),
        ]
        lines: list[tuple[str, ...]] = []
        for time in report.forecast_times:
            head = (str(time.number), f"{time.at:%Y-%m-%d %H:%M}", time.to_close, time.state)
            rows = [(name, self._numbers(p)) for name, p in time.said.items()] or [("", time.reason)]
            lines += [(*(head if not place else ("", "", "", "")), *row) for place, row in enumerate(rows)]
        show_text(console, text_table(columns, lines, console.width) + "\n")

    def _numbers(self, p: Mapping[str, float]) -> str:
        return ", ".join(f"{self.report.labels.get(target, target)} {percent(value)}" for target, value in p.items())


def _thinned(prices: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return the first and last price, and some in between."""
    if len(prices) <= PRICES_SHOWN:
        return prices
    return [prices[round(place * (len(prices) - 1) / (PRICES_SHOWN - 1))] for place in range(PRICES_SHOWN)]


async def show_arena(request: ArenaShowRequest) -> ReportResult:
    """Return the state of an arena, or of one of its events: prices, every forecast, and the outcome."""
    from foretell.arena.status import arena_status, event_history

    async with open_arena_file(request.file, ArenaParts()) as arena:
        if request.event is None:
            return ReportResult(report=await arena.store.aside(arena_status, arena, arena.clock()))
        return ArenaEventResult(report=await arena.store.aside(event_history, arena.records, request.event))


@frozen
class ArenaRunResult(Result):
    """What the stages of an arena did: the last report of each."""

    arena: str
    stages: Mapping[str, Any]
    status: Any = None
    """The state of the arena after a run in a sandbox."""

    @property
    def exit_code(self) -> int:
        """3 if a forecast failed for lack of money or a source could not be read."""
        return 3 if any(getattr(report, "problems", None) for report in self.stages.values()) else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the reports by stage."""
        status = {} if self.status is None else {"status": plain_data(self.status)}
        return {"arena": self.arena, **status, **{name: plain_data(report) for name, report in self.stages.items()}}

    def __str__(self) -> str:
        lines = [f"{stage}: {report}" for stage, report in self.stages.items()]
        if self.status is not None:
            lines += [str(self.status), f"This was the sandbox {self.arena}; its forecasts do not count."]
        return "\n".join(lines) or "nothing is due"


async def run_arena(
    request: ArenaRunRequest,
    *,
    tell: Callable[[str], None] = lambda line: None,
    begin: Callable[[LiveArena, asyncio.Event], None] = lambda arena, stop: None,
    watch: WatchProgress = lambda progress: None,
) -> ArenaRunResult:
    """Run the stages of an arena, once or as a service until it is stopped.

    `tell` is called with a line for every stage in which a service did something, `begin` with the event that stops it,
    and `watch` with the progress of contexts and forecasts.
    """
    from foretell.arena.stages import LOOK_SECONDS, STAGES, ArenaService
    from foretell.arena.status import arena_status

    entries = read_arena(request.file).entries
    if unknown := [name for name in request.entries if name not in entries]:
        hint = known_names(unknown[0], list(entries))
        raise InputError(f"no entry is called {unknown[0]!r}", path=request.file, column="--entry", hint=hint)
    stages, reports = request.stages or STAGES, dict[str, Any]()
    lasting = not (request.once or request.sandbox)
    opening = ArenaParts(
        markets=bool({"collect", "context", "resolve"} & set(stages)),
        contexts="context" in stages,
        forecasts="forecast" in stages,
        here=request.where == "here" or request.sandbox,
        concurrency=request.concurrency,
        watch=ALL_PARTS.watch if lasting else watch,
    )
    async with open_arena_file(request.file, opening, sandbox=request.sandbox) as arena:

        def report_stage(stage: str, report: object) -> None:
            reports[stage] = report
            if lasting:
                first, *more = str(report).splitlines()
                tell(f"{arena.clock().isoformat(timespec='seconds')} {stage}: {first}")
                for line in more:
                    tell(f"  {line.strip()}")

        look = SIMULATED_LOOK if load_settings().clock else LOOK_SECONDS
        service = ArenaService(
            arena=arena, stages=stages, entries=request.entries, poll_interval=look, tell=report_stage
        )
        if lasting:
            stop = asyncio.Event()
            begin(arena, stop)
            await service.run(stop)
        elif request.stages:
            await service.now()
        else:
            await service.once()
        status = await arena.store.aside(arena_status, arena, arena.clock()) if request.sandbox else None
        return ArenaRunResult(arena=arena.name, stages=reports, status=status)
