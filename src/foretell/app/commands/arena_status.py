"""foretell arena status: how an arena stands."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.app.commands.arena_options import ARENA, AS_JSON, with_arena

if TYPE_CHECKING:
    from foretell.arena.live.arena import LiveArena
    from foretell.arena.live.status import Status


@click.command()
@ARENA
@AS_JSON
def status(file: Path, as_json: bool) -> None:
    """Events, moments and forecasts by state, the next moment, what was spent, what was missed and why."""
    from foretell.app.live_arena import Opening

    found = with_arena(file, Opening(), _status)
    click.echo(json.dumps(found.to_dict(), ensure_ascii=False, indent=1) if as_json else str(found))


async def _status(arena: "LiveArena") -> "Status":
    from foretell.arena.live.status import status

    return await arena.store.aside(status, arena, arena.clock())
