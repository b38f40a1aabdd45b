"""`foretell arena`: a living benchmark, stage by stage or as one service."""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, TypeVar

import click

from foretell.cli.lazy_group import LazyGroup
from foretell.runs import event_loop

if TYPE_CHECKING:
    from rich.console import Console

    from foretell.arena.collect import CollectReport
    from foretell.arena.forecast import ForecastReport
    from foretell.arena.live import LiveArena
    from foretell.arena.service import StageCallback
    from foretell.arena.status import ArenaEventHistory, ArenaStatus
    from foretell.operations.arena import ArenaParts
    from foretell.report.arena_report import ArenaReport


ARENA_COMMANDS = {
    "init": ("foretell.cli.arena:init", "Write the file of a new arena, with every field explained."),
    "demo": ("foretell.cli.arena_demo:demo", "A month of a made-up exchange in a minute, offline."),
    "collect": ("foretell.cli.arena:collect", "Read the platforms, choose events, plan moments."),
    "context": ("foretell.cli.arena:context", "Ask what is due, and gather what everybody is shown."),
    "forecast": ("foretell.cli.arena:forecast", "Let every entry answer what is ready."),
    "resolve": ("foretell.cli.arena:resolve", "Read how events came out."),
    "score": ("foretell.cli.arena:score", "The leaderboard, with the market in it."),
    "status": ("foretell.cli.arena:status", "What waits, was said, was spent and was missed."),
    "show": ("foretell.cli.arena:show", "One event: its prices, its moments, and what was said."),
    "run": ("foretell.cli.arena:run", "All stages as one service, until Ctrl-C."),
}
"""Command name → (module:attribute, one line of help), as in the table of all commands."""


@click.group(cls=LazyGroup, table=ARENA_COMMANDS)
def arena() -> None:
    """A living benchmark: real events in, everybody on the same context, forecasts on a schedule, results, a board.

    An arena is a file, arena.yaml. Every stage can be run by itself, as often as you like; `run` does all of them.
    """


# foretell arena init: the file of a new arena.


@click.command()
@click.argument("place", type=click.Path(path_type=Path), default=Path())
@click.option("--name", help="Of the arena (default: that of its folder).")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
def init(place: Path, name: str | None, force: bool) -> None:
    """Write arena.yaml, with every field explained, into the folder PLACE; or PLACE itself, if it ends in .yaml.

    As it stands it needs no key: Kalshi's public events, forecasters without models, and the market to beat.
    """
    from foretell.arena.spec import FILE_NAME, read_arena
    from foretell.cli.options import write_text
    from foretell.questions.errors import InputError

    file = place if place.suffix in (".yaml", ".yml") else place / FILE_NAME
    if file.exists() and not force:
        raise InputError("there is one already", path=file, hint="--force overwrites it")
    file.parent.mkdir(parents=True, exist_ok=True)
    text = files("foretell.cli").joinpath("arena.yaml").read_text(encoding="utf-8")
    write_text(file, Template(text).substitute(name=name or _without_comments(file)))
    spec = read_arena(file)
    click.echo(f"Wrote {file}: arena {spec.name} with {', '.join(spec.entries)}")
    click.echo(f"next: foretell arena run {file.parent}", err=True)


def _without_comments(file: Path) -> str:
    """A name out of where the file is.

    >>> _without_comments(Path("/srv/My Arena/arena.yaml")), _without_comments(Path("/srv/x/cup.yaml"))
    ('my-arena', 'cup')
    """
    import re

    told = file.resolve().parent.name if file.stem == "arena" else file.stem
    return re.sub(r"[^a-z0-9_-]+", "-", told.casefold()).strip("-_") or "arena"


# What the commands of an arena share: its file, and opening it.

Result = TypeVar("Result")

ARENA_OPTION = click.argument("file", type=click.Path(path_type=Path), default=Path(), metavar="[ARENA]")
"""An arena's file, or the folder it is in: by default this one."""
CONCURRENCY_OPTION = click.option(
    "--concurrency", type=click.IntRange(1, 2000), default=50, show_default=True, help="Forecasts at once."
)
HERE_OPTION = click.option(
    "--here", is_flag=True, help="With a shared database: answer in this process, without workers."
)
JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="As JSON on standard output.")


def with_arena(file: Path, opening: "ArenaParts", work: "Callable[[LiveArena], Awaitable[Result]]") -> Result:
    """Open the arena that a file describes and do something with it."""
    from foretell.arena.spec import read_arena
    from foretell.operations.arena import open_arena
    from foretell.questions.errors import InputError
    from foretell.runs.settings import load_settings

    spec, settings = read_arena(file), load_settings()

    async def opened() -> Any:
        async with open_arena(spec, settings, opening) as arena:
            return await work(arena)

    try:
        return event_loop.run(opened())
    except InputError as error:
        raise error.at(path=file) from None


# foretell arena run: all stages as one service.

SIMULATED_LOOK = 0.1
"""Seconds between two looks at a clock that may leap."""


@click.command()
@ARENA_OPTION
@CONCURRENCY_OPTION
@HERE_OPTION
@click.option("--look", type=click.FloatRange(0.01), metavar="SECONDS", help="Between two looks at the clock.")
@click.option("--once", is_flag=True, help="Do what is due now, then leave: for cron.")
def run(file: Path, concurrency: int, here: bool, look: float | None, once: bool) -> None:
    """Collect, gather, forecast and resolve, each in its time, until Ctrl-C.

    Start it as often as you like, also on other machines with a shared database: whatever is due is done once. Kill it
    at any moment: another one, or the next start, goes on where it was and pays for no reply twice.
    """
    from foretell.arena.service import LOOK_SECONDS
    from foretell.operations.arena import ALL_PARTS
    from foretell.runs.settings import load_settings

    usual = SIMULATED_LOOK if load_settings().clock else LOOK_SECONDS

    async def serve(arena: "LiveArena") -> None:
        from foretell.arena.service import ArenaService

        service = ArenaService(arena=arena, look=look or usual, tell=_progress_printer(arena))
        if once:
            await service.once()
            return
        stop = asyncio.Event()
        for sign in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(sign, stop.set)
        click.echo(f"arena {arena.name}: {len(arena.spec.entries)} entries; Ctrl-C to leave", err=True)
        await service.run(stop)

    with_arena(file, replace(ALL_PARTS, here=here, concurrency=concurrency), serve)


def _progress_printer(arena: "LiveArena") -> "StageCallback":
    """A line with the time for every stage that did something."""

    def told(stage: str, report: object) -> None:
        first, *more = str(report).splitlines()
        click.echo(f"{arena.clock().isoformat(timespec='seconds')} {stage}: {first}")
        for line in more:
            click.echo(f"  {line.strip()}")

    return told


# foretell arena score: the board of an arena.


@click.command()
@ARENA_OPTION
@click.option(
    "--by", multiple=True, metavar="WHAT", help="More numbers by category, platform or lead time; repeatable."
)
@click.option(
    "--choice",
    type=click.Choice(["mean", "last", "first", "every"]),
    default="mean",
    show_default=True,
    help="How the moments of an event count.",
)
@click.option("--draws", type=click.IntRange(100), default=1000, show_default=True, help="Bootstrap draws.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write a page, with figures.")
@JSON_OPTION
def score(file: Path, html: Path | None, as_json: bool, **options: Any) -> None:
    """Rank everybody on what has come out so far; the market, the base rate and 0.5 stand in every table."""
    from foretell.operations.arena import ArenaParts

    async def scored(arena: "LiveArena") -> "ArenaReport":
        from foretell.arena.score_data import read_arena_table
        from foretell.report.arena_report import arena_report
        from foretell.runs.settings import load_settings

        kept = load_settings().home / "standings"
        standings = await arena.store.aside(read_arena_table, arena.store.database, arena.name, keep=kept)
        return arena_report(standings, **options)

    found = with_arena(file, ArenaParts(), scored)
    if html is not None:
        from foretell.cli.options import write_text

        write_text(html, found.page())
        click.echo(f"Wrote {html}", err=True)
    if as_json:
        import json

        click.echo(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        from rich.console import Console

        found.print(Console(), by=options["by"])


# foretell arena show: one event, from its first price to its result.


@click.command()
@click.argument("event")
@click.option("--arena", "file", type=click.Path(path_type=Path), default=Path(), help="The arena's file or folder.")
@JSON_OPTION
def show(event: str, file: Path, as_json: bool) -> None:
    """Show the prices of EVENT, the moments at which it was asked, what everybody said, and how it came out.

    EVENT is its id, or the end of it: kalshi/KXFED-26DEC or KXFED-26DEC.
    """
    from rich.console import Console

    from foretell.operations.arena import ArenaParts

    async def read(arena: "LiveArena") -> "ArenaEventHistory":
        from foretell.arena.status import event_history

        return await arena.store.aside(event_history, arena.book, event)

    found = with_arena(file, ArenaParts(), read)
    if as_json:
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False, indent=1))
    else:
        _print_event(found, Console())


def _print_event(found: "ArenaEventHistory", console: "Console") -> None:
    from rich.table import Column, Table
    from rich.text import Text

    console.print(Text(f"{found.question.text}  ({found.event}, {found.status})", style="bold"))
    if found.question.url:
        console.print(Text(found.question.url))
    for target, prices in found.prices.items():
        path = " → ".join(f"{price:.2f}" for _, price in _thinned(prices))
        came = f"  came out {found.outcomes[target]}" if target in found.outcomes else ""
        console.print(Text(f"{found.labels[target]}: {path or 'no price'}{came}"))
    table = Table("", "asked at (UTC)", "to close", "state", "who", Column("said", overflow="fold"), box=None)
    for moment in found.moments:
        head = (str(moment.number), f"{moment.at:%Y-%m-%d %H:%M}", moment.to_close, moment.state)
        rows = [(name, _numbers(p, found.labels)) for name, p in moment.said.items()] or [("", moment.reason)]
        for place, (name, told) in enumerate(rows):
            table.add_row(*(head if not place else ("", "", "", "")), Text(name), Text(told))
    console.print(table)


def _thinned(prices: list[tuple[str, float]], most: int = 12) -> list[tuple[str, float]]:
    """The first, the last and some between."""
    if len(prices) <= most:
        return prices
    return [prices[round(place * (len(prices) - 1) / (most - 1))] for place in range(most)]


def _numbers(said: dict[str, float], labels: dict[str, str]) -> str:
    return ", ".join(f"{labels.get(target, target)} {p:.0%}" for target, p in said.items())


# The stages of an arena, one command each. All of them can be run again at any time, and by several at once.

POLL_SECONDS = 1.0
"""Seconds between two looks at what workers have done."""


@click.command()
@ARENA_OPTION
def collect(file: Path) -> None:
    """Read the platforms of an arena, choose among their events by its rules, and refresh those taken up before.

    Every rejection is counted with its reason. Done again the same day it takes up what the day's places still allow.
    """
    from foretell.operations.arena import ArenaParts

    click.echo(str(with_arena(file, ArenaParts(markets=True), _run_collect)))


async def _run_collect(arena: "LiveArena") -> "CollectReport":
    from foretell.arena.collect import collect
    from foretell.arena.schedule import slot
    from foretell.runs.claims import ClaimTable

    now = arena.clock()
    found = await collect(arena, now)
    if found.listed or not found.problems:
        # A service that runs as well need not read the platforms again in this stretch of time.
        due = slot(now, arena.spec.collect.every_hours).isoformat()
        once = ClaimTable(arena.store.database)
        await arena.store.aside(once.take, f"collect {arena.name}", due)
        await arena.store.aside(once.done, f"collect {arena.name}", due)
    return found


@click.command()
@ARENA_OPTION
def context(file: Path) -> None:
    """Ask about every event whose moment has come: fresh quotes, then the material that everybody is shown.

    What could not be asked before the next moment was due, or before the event closed, is noted as missed.
    """
    from foretell.arena.context import make_contexts
    from foretell.cli.run import progress_of_run
    from foretell.operations.arena import ArenaParts

    with progress_of_run() as watch:
        found = with_arena(
            file,
            ArenaParts(markets=True, contexts=True, watch=watch),
            lambda arena: make_contexts(arena, arena.clock()),
        )
    click.echo(str(found))


@click.command()
@ARENA_OPTION
@click.option("--entry", "entries", multiple=True, metavar="NAME", help="Only this entry; may be repeated.")
@CONCURRENCY_OPTION
@HERE_OPTION
def forecast(file: Path, entries: tuple[str, ...], concurrency: int, here: bool) -> None:
    """Let every entry answer every moment that is ready and that it has not answered.

    With FORETELL_DATABASE_URL set, forecasts that ask models are queued there for every `foretell worker`, and this
    command waits for them.
    """
    from foretell.arena.spec import read_arena
    from foretell.cli.run import progress_of_run
    from foretell.operations.arena import ArenaParts
    from foretell.questions.errors import InputError

    unknown = [name for name in entries if name not in read_arena(file).entries]
    if unknown:
        raise InputError(f"no entry is called {unknown[0]!r}", path=file, column="--entry")
    with progress_of_run() as watch:
        opening = ArenaParts(forecasts=True, here=here, concurrency=concurrency, watch=watch)
        found = with_arena(file, opening, lambda arena: _run_forecast(arena, entries))
    click.echo(str(found))


async def _run_forecast(arena: "LiveArena", entries: tuple[str, ...]) -> "ForecastReport":
    from dataclasses import replace

    from foretell.arena.forecast import make_forecasts

    found = await make_forecasts(arena, arena.clock(), entries=entries)
    while found.sent:
        await asyncio.sleep(POLL_SECONDS)
        found = replace(found, sent=0) + await make_forecasts(arena, arena.clock(), entries=entries)
    return found


@click.command()
@ARENA_OPTION
def resolve(file: Path) -> None:
    """Read how events came out whose close has passed, or that have left the list of open ones."""
    from foretell.arena.settle import settle
    from foretell.operations.arena import ArenaParts

    click.echo(str(with_arena(file, ArenaParts(markets=True), lambda arena: settle(arena, arena.clock()))))


# foretell arena status: how an arena stands.


@click.command()
@ARENA_OPTION
@JSON_OPTION
def status(file: Path, as_json: bool) -> None:
    """Events, moments and forecasts by state, the next moment, what was spent, what was missed and why."""
    from foretell.operations.arena import ArenaParts

    found = with_arena(file, ArenaParts(), _read_status)
    click.echo(json.dumps(found.to_dict(), ensure_ascii=False, indent=1) if as_json else str(found))


async def _read_status(arena: "LiveArena") -> "ArenaStatus":
    from foretell.arena.status import arena_status

    return await arena.store.aside(arena_status, arena, arena.clock())
