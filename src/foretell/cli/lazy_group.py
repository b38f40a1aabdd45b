"""A group of commands by a table: each is imported only when it is called, and --help imports none."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

Table = Mapping[str, tuple[str, str]]
"""Command name → (module:attribute, one line of help), in the order a newcomer meets them."""


class LazyGroup(click.Group):
    """Lists commands from its table and imports a command's module when it is needed."""

    def __init__(self, *args: Any, table: Table, moved: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        """`moved` leads from the old name of a command to the new one."""
        super().__init__(*args, **kwargs)
        self.table = table
        self.moved = moved or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported."""
        if cmd_name in self.moved:
            ctx.fail(f"`{ctx.command_path} {cmd_name}` is now `{ctx.command_path} {self.moved[cmd_name]}`.")
        if cmd_name not in self.table:
            return None
        module, attribute = self.table[cmd_name][0].split(":")
        return getattr(import_module(module), attribute)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table as it stands, without loading any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, told) for name, (_, told) in self.table.items()])
