"""Every command line that the README and the docs show can be typed: its commands and options are there."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from foretell.cli import cli

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ENDS = {"|", "&&", ";", ">", ">>", "||", "&"}
BLOCK = re.compile(r"^```(?:console|bash|sh|shell)\n(.*?)^```", re.S | re.M)


def written(text: str) -> Iterator[str]:
    """The lines of a page's console blocks; one that ends in a backslash goes on."""
    for block in BLOCK.findall(text):
        lines = block.replace("\\\n", " ").splitlines()
        yield from (line for line in lines if re.search(r"\bforetell\b", line))


def calls(line: str) -> Iterator[list[str]]:
    """The words of each foretell in a line, without what the shell takes away; `practice -- foretell …` is two."""
    found: list[str] | None = None
    for word in [*shlex.split(line.removeprefix("$ "), comments=True), ";"]:
        if word in ENDS or word == "--":
            if found is not None:
                yield found
            found = None
        elif found is None:
            found = [] if word == "foretell" else None
        else:
            found.append(word)


def problem(words: list[str]) -> str | None:
    """What is wrong with a call, if anything."""
    command: click.Command = cli
    context = click.Context(command, info_name="foretell")
    left = list(words)
    while left:
        word = left.pop(0)
        options = {name: option for option in options_of(command, context) for name in option}
        name = word.partition("=")[0]
        if isinstance(command, click.Group) and name not in options:
            # `foretell tree "CLAIM"` grows one, and `foretell runs --tag autumn` lists them.
            there = command.get_command(context, word)
            unsaid = next((one for one in ("grow", "list") if one in command.list_commands(context)), None)
            if there is None and unsaid is None:
                return None if word in ("…", "NAME") else f"{context.command_path} has no command {word!r}"
            next_name = unsaid if there is None and unsaid else word
            command = there or command.get_command(context, next_name) or command
            context = click.Context(command, parent=context, info_name=next_name)
            left = [word, *left] if there is None else left
        elif word.startswith("-") and word != "-":
            if name not in options:
                return f"{context.command_path} has no option {name}"
            takes_value = next(takes for option, takes in options_of(command, context).items() if name in option)
            left = left[1:] if takes_value and "=" not in word else left
    return None


def options_of(command: click.Command, context: click.Context) -> dict[tuple[str, ...], bool]:
    """The spellings of each option of a command, and whether a value follows."""
    return {
        (*option.opts, *option.secondary_opts): not (option.is_flag or option.count)
        for option in command.get_params(context)
        if isinstance(option, click.Option)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_can_be_typed(page: Path):
    found = {line: problem(words) for line in written(page.read_text(encoding="utf-8")) for words in calls(line)}
    assert {line: said for line, said in found.items() if said} == {}
