"""`foretell arena`: a living benchmark, stage by stage or as one service."""

from importlib import import_module

import click

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


class LazyArena(click.Group):
    """Lists commands from the table and imports a command's module when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        return getattr(import_module(module), attribute)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table as it stands, without loading any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in COMMANDS.items()])


@click.group(cls=LazyArena)
def arena() -> None:
    """A living benchmark: real events in, everybody on the same context, forecasts on a schedule, results, a board.

    An arena is a file, arena.yaml. Every stage can be run by itself, as often as you like; `run` does all of them.
    """
