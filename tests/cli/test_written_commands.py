"""Every command line in the README and the docs uses existing commands and options."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from foretell.cli.main import cli

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ENDS = {"|", "&&", ";", ">", ">>", "||", "&"}
BLOCK = re.compile(r"^```(?:console|bash|sh|shell)\n(.*?)^```", re.S | re.M)


def console_lines(text: str) -> Iterator[str]:
    """Yield the lines of a page's console blocks, with continued lines joined."""
    for block in BLOCK.findall(text):
        lines = block.replace("\\\n", " ").splitlines()
        yield from (line for line in lines if re.search(r"\bforetell\b", line))


def calls(line: str) -> Iterator[list[str]]:
    """Yield the arguments of each call of foretell in a line; `practice -- foretell …` is two calls."""
    words: list[str] | None = None
    for word in [*shlex.split(line.removeprefix("$ "), comments=True), ";"]:
        if word in ENDS or word == "--":
            if words is not None:
                yield words
            words = None
        elif words is None:
            words = [] if word == "foretell" else None
        else:
            words.append(word)


def problem(words: list[str]) -> str | None:
    """Return what is wrong with a call, if anything."""
    command: click.Command = cli
    context = click.Context(command, info_name="foretell")
    left = list(words)
    while left:
        word = left.pop(0)
        options = {name: option for option in options_of(command, context) for name in option}
        name = word.partition("=")[0]
        if isinstance(command, click.Group) and name not in options:
            # `foretell tree "CLAIM"` means grow, and `foretell runs --tag autumn` means list.
            there = command.get_command(context, word)
            implied = next((default for default in ("grow", "list") if default in command.list_commands(context)), None)
            if there is None and implied is None:
                return None if word in ("…", "NAME") else f"{context.command_path} has no command {word!r}"
            next_name = implied if there is None and implied else word
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
    """Return the spellings of each option of a command, and whether a value follows."""
    return {
        (*option.opts, *option.secondary_opts): not (option.is_flag or option.count)
        for option in command.get_params(context)
        if isinstance(option, click.Option)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_shown_in_docs_exist(page: Path):
    problems = {
        line: problem(words) for line in console_lines(page.read_text(encoding="utf-8")) for words in calls(line)
    }
    assert {line: text for line, text in problems.items() if text} == {}
