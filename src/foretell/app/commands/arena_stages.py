"""The stages of an arena, one command each. All of them can be run again at any time, and by several at once."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.app.commands.arena_options import ARENA, CONCURRENCY, HERE, with_arena

if TYPE_CHECKING:
    from foretell.arena.live.arena import LiveArena
    from foretell.arena.live.collect import Collected
    from foretell.arena.live.forecasting import Forecasted

LOOK = 1.0
"""Seconds between two looks at what workers have done."""


@click.command()
@ARENA
def collect(file: Path) -> None:
    """Read the platforms of an arena, choose among their events by its rules, and refresh those taken up before.

    Every rejection is counted with its reason. Done again the same day it takes up what the day's places still allow.
    """
    from foretell.app.live_arena import Opening

    click.echo(str(with_arena(file, Opening(markets=True), _collect)))


async def _collect(arena: "LiveArena") -> "Collected":
    from foretell.arena.live.collect import collect
    from foretell.arena.live.schedule import slot
    from foretell.arena.once import Once

    now = arena.clock()
    found = await collect(arena, now)
    if found.listed or not found.problems:
        # A service that runs as well need not read the platforms again in this stretch of time.
        due = slot(now, arena.spec.collect.every_hours).isoformat()
        once = Once(arena.store.database)
        await arena.store.aside(once.take, f"collect {arena.name}", due)
        await arena.store.aside(once.done, f"collect {arena.name}", due)
    return found


@click.command()
@ARENA
def context(file: Path) -> None:
    """Ask about every event whose moment has come: fresh quotes, then the material that everybody is shown.

    What could not be asked before the next moment was due, or before the event closed, is noted as missed.
    """
    from foretell.app.commands.run import progress_of_run
    from foretell.app.live_arena import Opening
    from foretell.arena.live.contexts import make_contexts

    with progress_of_run() as watch:
        found = with_arena(
            file,
            Opening(markets=True, contexts=True, watch=watch),
            lambda arena: make_contexts(arena, arena.clock()),
        )
    click.echo(str(found))


@click.command()
@ARENA
@click.option("--entry", "entries", multiple=True, metavar="NAME", help="Only this entry; may be repeated.")
@CONCURRENCY
@HERE
def forecast(file: Path, entries: tuple[str, ...], concurrency: int, here: bool) -> None:
    """Let every entry answer every moment that is ready and that it has not answered.

    With FORETELL_DATABASE_URL set, forecasts that ask models are queued there for every `foretell worker`, and this
    command waits for them.
    """
    from foretell.app.commands.run import progress_of_run
    from foretell.app.live_arena import Opening
    from foretell.arena.live.spec import read_arena
    from foretell.questions.problems import InputError

    unknown = [name for name in entries if name not in read_arena(file).entries]
    if unknown:
        raise InputError(f"no entry is called {unknown[0]!r}", path=file, column="--entry")
    with progress_of_run() as watch:
        opening = Opening(forecasts=True, here=here, concurrency=concurrency, watch=watch)
        found = with_arena(file, opening, lambda arena: _forecast(arena, entries))
    click.echo(str(found))


async def _forecast(arena: "LiveArena", entries: tuple[str, ...]) -> "Forecasted":
    from dataclasses import replace

    from foretell.arena.live.forecasting import forecast

    found = await forecast(arena, arena.clock(), entries=entries)
    while found.sent:
        await asyncio.sleep(LOOK)
        found = replace(found, sent=0) + await forecast(arena, arena.clock(), entries=entries)
    return found


@click.command()
@ARENA
def resolve(file: Path) -> None:
    """Read how events came out whose close has passed, or that have left the list of open ones."""
    from foretell.app.live_arena import Opening
    from foretell.arena.live.resolving import resolve

    click.echo(str(with_arena(file, Opening(markets=True), lambda arena: resolve(arena, arena.clock()))))
