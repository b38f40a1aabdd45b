"""What the commands of an arena share: its file, and opening it."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from foretell.app import loop

if TYPE_CHECKING:
    from foretell.app.live_arena import Opening
    from foretell.arena.live.arena import LiveArena

T = TypeVar("T")

ARENA = click.argument("file", type=click.Path(path_type=Path), default=Path(), metavar="[ARENA]")
"""An arena's file, or the folder it is in: by default this one."""
CONCURRENCY = click.option(
    "--concurrency", type=click.IntRange(1, 2000), default=50, show_default=True, help="Forecasts at once."
)
HERE = click.option("--here", is_flag=True, help="With a shared database: answer in this process, without workers.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON on standard output.")


def with_arena(file: Path, opening: "Opening", work: "Callable[[LiveArena], Awaitable[T]]") -> T:
    """Open the arena that a file describes and do something with it."""
    from foretell.app.live_arena import live_arena
    from foretell.app.settings import load_settings
    from foretell.arena.live.spec import read_arena
    from foretell.questions.problems import InputError

    spec, settings = read_arena(file), load_settings()

    async def opened() -> Any:
        async with live_arena(spec, settings, opening) as arena:
            return await work(arena)

    try:
        return loop.run(opened())
    except InputError as error:
        raise error.at(path=file) from None
