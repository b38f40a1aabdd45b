"""The command reference as Markdown, made from the commands: python -m foretell.cli.help_pages > docs/commands.md."""

from collections.abc import Iterator

import click

from foretell.cli.main import COMMANDS, cli

INTRO = """# Commands

Every command and option, as `--help` prints it. Input that cannot be used ends in one line on standard error and exit
code 2; nothing is written then.
"""


def pages() -> str:
    """The whole reference."""
    root = click.Context(cli, info_name="foretell", **cli.context_settings)
    return "\n".join(
        [INTRO, *(part for name in COMMANDS for part in _command(cli.get_command(root, name), name, root))]
    )


def _command(command: click.Command | None, name: str, parent: click.Context) -> Iterator[str]:
    assert command is not None
    context = click.Context(command, info_name=name, parent=parent, terminal_width=100)
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            yield from _command(command.get_command(context, inner), inner, context)


if __name__ == "__main__":
    click.echo(pages(), nl=False)
