"""One set of conventions for every command: what options are called, what they print, how wide, and what is refused."""

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from foretell.cli.commands import OLD_SPELLINGS
from foretell.cli.main import MOVED, cli

SERVICES = {"serve", "mcp", "worker", "arena run", "practice"}
"""Commands that run until they are stopped."""


def walk(
    command: click.Command, path: str = "", parent: click.Context | None = None
) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(command, info_name=path.rpartition(" ")[2] or "foretell", parent=parent)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from walk(inner, f"{path} {name}".strip(), context)
    else:
        yield path, command


COMMANDS = dict(walk(cli))
# Options of studies are checked by `test_study.py`; a tree is exported to the only file that is named.
OWN = {path: command for path, command in COMMANDS.items() if path.split()[0] != "study"}


def options(command: click.Command) -> Iterator[click.Option]:
    return (one for one in command.params if isinstance(one, click.Option))


@pytest.mark.parametrize("path", OWN)
def test_no_old_spelling_is_left(path: str):
    spelled = {flag for option in options(OWN[path]) for flag in option.opts}
    assert not spelled & {"--html", "--markdown", "--output", "-O", "--at-once", "--every"}
    for option in options(OWN[path]):
        if "--json" in option.opts:
            assert option.is_flag
        if "--out" in option.opts:
            assert option.multiple or path in ("run", "tree export")
        if "--by" in option.opts:
            assert option.metavar == "COLUMNS"
        if "--forecasts" in option.opts:
            assert "-f" in option.opts
        if "--outcomes" in option.opts:
            assert "-o" in option.opts


@pytest.mark.parametrize("path", sorted(set(OWN) - SERVICES))
def test_every_result_can_be_had_as_json(path: str):
    assert any("--json" in option.opts for option in options(OWN[path]))


@pytest.mark.parametrize("path", OWN)
def test_help_is_sentences_of_80_columns(path: str):
    result = CliRunner().invoke(cli, [*path.split(), "--help"], terminal_width=80)
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 80 + 20, "only a long list of choices may be wider"
    for option in options(OWN[path]):
        text = re.sub(r"\s*\[(default|env).*", "", option.help or "")
        assert text, f"{option.opts} has no help"
        assert text[0].isupper() or text.startswith("provider:"), text
        assert text.endswith("."), text


def refused(*words: str) -> str:
    result = CliRunner().invoke(cli, list(words))
    assert result.exit_code == 2, result.output
    return " ".join(result.output.split())


def test_an_old_spelling_is_answered_with_the_new_one():
    tables = ("-f", "f.csv", "-o", "o.csv")
    assert "--out FILE.html" in refused("score", *tables, "--html", "board.html")
    assert "--combine-trials" in refused("score", *tables, "--trials", "mean")
    assert "--out x.json" in refused("score", *tables, "--json", "x.json")
    assert "--out FILE" in refused("calibrate", "fit", *tables, "-O", "rule.json")
    assert "--interval HOURS" in refused("init", "bot", "x", "--every", "8")
    assert "--tables FOLDER" not in refused("score", *tables, "--out", "board.txt")
    assert "--folder FOLDER" in refused("arena", "collect", "--out", "x")
    for old, new in MOVED.items():
        assert new in refused(old)
    assert all(new.strip() for new in OLD_SPELLINGS.values())


def test_an_unknown_suffix_is_refused_before_anything_is_read():
    assert "should end in .json, .csv, .parquet, .html or .md" in refused(
        "score", "-f", "no", "-o", "no", "--out", "a.doc"
    )
