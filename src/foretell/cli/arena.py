"""foretell arena: a living benchmark, stage by stage or as one service."""

import asyncio
import signal
from typing import TYPE_CHECKING

import click

from foretell.cli.lazy_group import LazyGroup
from foretell.cli.options import prints_result
from foretell.cli.request_options import request_options
from foretell.operations.requests import (
    ArenaForecastRequest,
    ArenaInitRequest,
    ArenaRequest,
    ArenaRunRequest,
    ArenaScoreRequest,
    ArenaShowRequest,
)

if TYPE_CHECKING:
    from foretell.arena.live import LiveArena
    from foretell.operations.result import Result


ARENA_COMMANDS = {
    "init": ("foretell.cli.arena:init", "Write the file of a new arena, with every field explained."),
    "demo": ("foretell.cli.arena_demo:demo", "A month of a made-up exchange in a minute, offline."),
    "collect": ("foretell.cli.arena:collect", "Read the platforms, choose events, plan moments."),
    "context": ("foretell.cli.arena:context", "Ask what is due, and gather what everybody is shown."),
    "forecast": ("foretell.cli.arena:forecast", "Let every entry answer what is ready."),
    "resolve": ("foretell.cli.arena:resolve", "Read how events came out."),
    "score": ("foretell.cli.arena:score", "The leaderboard, with the market in it."),
    "status": ("foretell.cli.arena:status", "What waits, was forecast, was spent and was missed."),
    "show": ("foretell.cli.arena:show", "One event: its prices, its moments, and every forecast."),
    "run": ("foretell.cli.arena:run", "All stages as one service, until Ctrl-C."),
}
"""Command name → (module:attribute, one line of help), as in the table of all commands."""


@click.group(cls=LazyGroup, table=ARENA_COMMANDS)
def arena() -> None:
    """A living benchmark: real events in, everybody on the same context, forecasts on a schedule, results, a board.

    An arena is a file, arena.yaml. Every stage can be run by itself, as often as you like, also by several processes
    at once; `run` does all of them.
    """


@click.command()
@request_options(ArenaInitRequest)
@prints_result()
def init(request: ArenaInitRequest) -> "Result":
    """Write arena.yaml, with every field explained, into the folder PLACE; or PLACE itself, if it ends in .yaml.

    As it stands it needs no key: Kalshi's public events, forecasters without models, and the market to beat.
    """
    from foretell.operations.arena import init_arena

    return init_arena(request)


@click.command()
@request_options(ArenaRequest)
@prints_result()
def collect(request: ArenaRequest) -> "Result":
    """Read the platforms of an arena, choose among their events by its rules, and refresh those taken up before.

    Every rejection is counted with its reason. Done again the same day it takes up what the day's places still allow.
    """
    from foretell.operations.arena import collect_events

    return collect_events(request)


@click.command()
@request_options(ArenaRequest)
@prints_result()
def context(request: ArenaRequest) -> "Result":
    """Ask about every event whose moment has come: fresh quotes, then the material that everybody is shown.

    What could not be asked before the next moment was due, or before the event closed, is noted as missed.
    """
    from foretell.cli.run import progress_of_run
    from foretell.operations.arena import build_contexts

    with progress_of_run() as watch:
        return build_contexts(request, watch)


@click.command()
@request_options(ArenaForecastRequest)
@prints_result()
def forecast(request: ArenaForecastRequest) -> "Result":
    """Let every entry answer every moment that is ready and that it has not answered.

    With FORETELL_DATABASE_URL set, forecasts that ask models are queued there for every `foretell worker`, and this
    command waits for them.
    """
    from foretell.cli.run import progress_of_run
    from foretell.operations.arena import forecast_events

    with progress_of_run() as watch:
        return forecast_events(request, watch)


@click.command()
@request_options(ArenaRequest)
@prints_result()
def resolve(request: ArenaRequest) -> "Result":
    """Read how events came out whose close has passed, or that have left the list of open ones."""
    from foretell.operations.arena import resolve_events

    return resolve_events(request)


@click.command()
@request_options(ArenaScoreRequest)
@prints_result(".json", ".html")
def score(request: ArenaScoreRequest) -> "Result":
    """Rank everybody on what has come out so far; the market, the base rate and 0.5 stand in every table."""
    from foretell.operations.arena import score_arena

    return score_arena(request)


@click.command()
@request_options(ArenaRequest)
@prints_result()
def status(request: ArenaRequest) -> "Result":
    """Events, moments and forecasts by state, the next moment, what was spent, what was missed and why."""
    from foretell.operations.arena import status_of_arena

    return status_of_arena(request)


@click.command()
@request_options(ArenaShowRequest)
@prints_result()
def show(request: ArenaShowRequest) -> "Result":
    """Show the prices of EVENT, the moments at which it was asked, every forecast, and how it came out.

    EVENT is its id, or the end of it: kalshi/KXFED-26DEC or KXFED-26DEC.
    """
    from foretell.operations.arena import show_event

    return show_event(request)


@click.command()
@request_options(ArenaRunRequest)
def run(request: ArenaRunRequest) -> None:
    """Collect, gather, forecast and resolve, each in its time, until Ctrl-C.

    Start it as often as you like, also on other machines with a shared database: whatever is due is done once. Kill it
    at any moment: another one, or the next start, goes on where it was and pays for no reply twice.
    """
    from foretell.operations.arena import run_arena

    def begin(arena: "LiveArena", stop: asyncio.Event) -> None:
        for sign in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(sign, stop.set)
        click.echo(f"arena {arena.name}: {len(arena.spec.entries)} entries; Ctrl-C to leave", err=True)

    run_arena(request, click.echo, begin)
