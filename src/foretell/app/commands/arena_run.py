"""foretell arena run: all stages as one service."""

import asyncio
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.app.commands.arena_options import ARENA, CONCURRENCY, HERE, with_arena

if TYPE_CHECKING:
    from foretell.arena.live.arena import LiveArena
    from foretell.arena.live.service import Tell

SIMULATED_LOOK = 0.1
"""Seconds between two looks at a clock that may leap."""


@click.command()
@ARENA
@CONCURRENCY
@HERE
@click.option("--look", type=click.FloatRange(0.01), metavar="SECONDS", help="Between two looks at the clock.")
@click.option("--once", is_flag=True, help="Do what is due now, then leave: for cron.")
def run(file: Path, concurrency: int, here: bool, look: float | None, once: bool) -> None:
    """Collect, gather, forecast and resolve, each in its time, until Ctrl-C.

    Start it as often as you like, also on other machines with a shared database: whatever is due is done once. Kill it
    at any moment: another one, or the next start, goes on where it was and pays for no reply twice.
    """
    from foretell.app.live_arena import EVERYTHING
    from foretell.app.settings import load_settings
    from foretell.arena.live.service import LOOK

    usual = SIMULATED_LOOK if load_settings().clock else LOOK

    async def serve(arena: "LiveArena") -> None:
        from foretell.arena.live.service import Service

        service = Service(arena=arena, look=look or usual, tell=_teller(arena))
        if once:
            await service.once()
            return
        stop = asyncio.Event()
        for sign in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(sign, stop.set)
        click.echo(f"arena {arena.name}: {len(arena.spec.entries)} entries; Ctrl-C to leave", err=True)
        await service.run(stop)

    with_arena(file, replace(EVERYTHING, here=here, concurrency=concurrency), serve)


def _teller(arena: "LiveArena") -> "Tell":
    """A line with the time for every stage that did something."""

    def told(stage: str, report: object) -> None:
        first, *more = str(report).splitlines()
        click.echo(f"{arena.clock().isoformat(timespec='seconds')} {stage}: {first}")
        for line in more:
            click.echo(f"  {line.strip()}")

    return told
