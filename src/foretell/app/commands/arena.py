"""`foretell arena`: a living benchmark, stage by stage or as one service."""

import click

from foretell.app.lazy_group import LazyGroup

COMMANDS = {
    "init": ("foretell.app.commands.arena_init:init", "Write the file of a new arena, with every field explained."),
    "demo": ("foretell.app.commands.arena_demo:demo", "A month of a made-up exchange in a minute, offline."),
    "collect": ("foretell.app.commands.arena_stages:collect", "Read the platforms, choose events, plan moments."),
    "context": ("foretell.app.commands.arena_stages:context", "Ask what is due, and gather what everybody is shown."),
    "forecast": ("foretell.app.commands.arena_stages:forecast", "Let every entry answer what is ready."),
    "resolve": ("foretell.app.commands.arena_stages:resolve", "Read how events came out."),
    "score": ("foretell.app.commands.arena_score:score", "The leaderboard, with the market in it."),
    "status": ("foretell.app.commands.arena_status:status", "What waits, was said, was spent and was missed."),
    "show": ("foretell.app.commands.arena_show:show", "One event: its prices, its moments, and what was said."),
    "run": ("foretell.app.commands.arena_run:run", "All stages as one service, until Ctrl-C."),
}
"""Command name → (module:attribute, one line of help), as in the table of all commands."""


@click.group(cls=LazyGroup, table=COMMANDS)
def arena() -> None:
    """A living benchmark: real events in, everybody on the same context, forecasts on a schedule, results, a board.

    An arena is a file, arena.yaml. Every stage can be run by itself, as often as you like; `run` does all of them.
    """
