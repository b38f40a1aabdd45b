"""A group of commands by a table: each is imported only when it is called, and --help imports none."""

from collections.abc import Mapping
from importlib import import_module
from itertools import pairwise
from typing import Any

import click

Table = Mapping[str, tuple[str, str]]
"""Command name → (module:attribute, one line of help), in the order a newcomer meets them."""

OLD_SPELLINGS = {
    "--html": "--out FILE.html",
    "--markdown": "--out FILE.md",
    "--out": "--folder FOLDER, or --tables FOLDER where tables are written",
    "--output": "--out FILE",
    "-O": "--out FILE",
    "--at-once": "--concurrency N",
    "--work": "--where both",
    "--by": "--closes DATE for a date; --by names columns where tables are grouped",
    "--trials": "--combine-trials RULE for how trials are joined; --trials N is how many there are",
    "--every": "--interval HOURS",
    "--due": "--as-of DATE",
    "--dest": "--folder FOLDER",
    "--cast": "--roles FILE",
    "--pilot": "two names as arguments: foretell plan FIRST SECOND",
    "--level": "--index POINTS for the Brier index of a plan",
}
"""An option of earlier versions → its spelling now, told where a command does not know the old one."""


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
            formatter.write_dl([(name, help) for name, (_, help) in self.table.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant; the words after it are kept for what `new_spelling` says."""
        ctx.meta["foretell.words"] = list(args)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an old spelling of an option is answered with the new one."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if (message := new_spelling(error, ctx.meta.get("foretell.words", []))) is None:
                raise
            raise click.UsageError(message, error.ctx) from None


def new_spelling(error: click.UsageError, words: list[str]) -> str | None:
    """What to type instead of the old spelling that an error is about; None where it is about something else.

    >>> new_spelling(click.NoSuchOption("--html"), ["score", "--html", "x.html"])
    '--html is no longer an option here; the new spelling is --out FILE.html'
    """
    if isinstance(error, click.NoSuchOption) and (new := OLD_SPELLINGS.get(error.option_name)):
        return f"{error.option_name} is no longer an option here; the new spelling is {new}"
    after = [second for first, second in pairwise(words) if first == "--json"]
    if after and "extra argument" in error.message and after[0] in error.message:
        return f"--json takes no file: it prints JSON; the new spelling is --out {after[0]}".replace(
            "; the new spelling is --out -", " to standard output by itself"
        )
    return None
