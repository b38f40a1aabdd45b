"""The command reference as Markdown, made from the commands themselves: foretell --reference > docs/commands.md."""

from collections.abc import Iterator

import click

INTRO = """# Commands

Every command and option, as `--help` prints it. Input that cannot be used ends in one line on standard error and exit
code 2; nothing is written then.

The same words mean the same in every command: `--json` prints the result as JSON, `--out FILE` writes it to a file
whose suffix says the format (repeat it for several), `-f` and `-o` name the tables of forecasts and outcomes, `--by`
names columns, `--closes` a date, `--concurrency` how much is done at a time and `--trials` how often a question is
asked. A spelling of an earlier version is refused with the new one.
"""


def command_reference(group: click.Group) -> str:
    """The whole reference of a group of commands."""
    root = click.Context(group, info_name="foretell", **group.context_settings)
    names = group.list_commands(root)
    return "\n".join([INTRO, *(part for name in names for part in _command(group.get_command(root, name), name, root))])


def _command(command: click.Command | None, name: str, parent: click.Context) -> Iterator[str]:
    assert command is not None
    context = click.Context(command, info_name=name, parent=parent, terminal_width=100)
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            yield from _command(command.get_command(context, inner), inner, context)
