"""The command line: its conventions, what it prints and writes, and what it refuses."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from foretell.cli import moved
from foretell.cli.main import COMMANDS, cli, main
from foretell.questions.errors import InputError

DOCS = Path(__file__).parents[2] / "docs"
SERVICES = {"serve", "mcp", "worker", "practice"}
"""Commands that run until they are stopped."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Ended]:
    """Call the entry point as a shell would, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str | Path) -> Ended:
        monkeypatch.setattr(sys, "argv", ["foretell", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return Ended(int(end.value.code or 0), *capsys.readouterr())

    return call


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    f, o = tmp_path / "f.csv", tmp_path / "o.csv"
    f.write_text("forecaster,question,target,p\nA,q1,yes,0.2\nA,q2,yes,0.9\nB,q1,yes,0.4\nB,q2,yes,0.7\n")
    o.write_text("question,target,outcome,price\nq1,yes,0,0.3\nq2,yes,1,0.8\n")
    return f, o


def test_help_loads_no_command_and_nothing_heavy():
    code = (
        "import sys; sys.argv = ['foretell', '--help']\n"
        "from foretell.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'duckdb', 'pydantic', 'rich', 'aiohttp', 'yaml', 'statsmodels', 'pandas'}\n"
        "print('LOADED', sorted(heavy & set(sys.modules)), sorted(m for m in sys.modules if 'foretell.cli.' in m))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "LOADED [] ['foretell.cli.main']" in out
    assert all(name in out for name in COMMANDS)


def test_score_prints_and_writes(run: Callable[..., Ended], tables: tuple[Path, Path], tmp_path: Path):
    f, o = tables
    result = run("score", "-f", f, "-o", o, "--out", tmp_path / "s.json", "--out", tmp_path / "s.html")
    assert result.returncode == 0, result.stderr
    assert "market price" in result.stdout
    data = json.loads((tmp_path / "s.json").read_text())
    best = data["scores"][0]
    assert best["forecaster"] == "A"
    assert best["metrics"]["brier"]["estimate"] == pytest.approx(0.025)
    assert "<html" in (tmp_path / "s.html").read_text()


def test_score_to_standard_output_is_pure_json(run: Callable[..., Ended], tables: tuple[Path, Path]):
    result = run("score", "-f", tables[0], "-o", tables[1], "--json")
    assert json.loads(result.stdout)["schema"] == "foretell/score/3"


def test_bad_input_is_one_line_exit_2_and_nothing_written(
    run: Callable[..., Ended], tables: tuple[Path, Path], tmp_path: Path
):
    f, o = tables
    f.write_text(f.read_text().replace("0.9", "1.9"))
    result = run("score", "-f", f, "-o", o, "--out", tmp_path / "s.json", "--out", tmp_path / "s.html")
    assert result.returncode == 2
    assert result.stderr.strip().count("\n") == 0
    assert "f.csv, row 2, column p: 1.9 is outside [0, 1]" in result.stderr
    assert not (tmp_path / "s.json").exists()
    assert not (tmp_path / "s.html").exists()


def test_compare_errors_and_power(run: Callable[..., Ended], tables: tuple[Path, Path], tmp_path: Path):
    both = ["-f", tables[0], "-o", tables[1]]
    compared = run("compare", "A", "B", *both, "--json")
    assert json.loads(compared.stdout)["verdicts"][0]["diff"] > 0
    assert run("compare", "A", "B", *both).returncode == 0
    assert run("compare", "A", "C", *both).returncode == 2
    assert run("compare", "A", "B", *both, "--out", "page.html").returncode == 0
    assert "Too few to tell A from B" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert run("score", *both, "--errors", "A", "--reference", "B", "--out", "e.html", "--out", "e.md").returncode == 0
    assert "Error analysis of A" in (tmp_path / "e.html").read_text(encoding="utf-8")
    assert "A scores" in (tmp_path / "e.md").read_text(encoding="utf-8")
    planned = run("compare", "--detect", "1", "--sd", "0.1")
    assert "a gain of 1 point of Brier index" in planned.stdout
    assert run("compare", "--detect", "1").returncode == 2


def test_errors_for_wrong_names_list_valid_ones(run: Callable[..., Ended], tables: tuple[Path, Path]):
    assert run("scoer").returncode == 2
    result = run("score", "-f", tables[0], "-o", tables[1], "--by", "colour")
    assert result.returncode == 2
    assert "columns to group by" in result.stderr


# Conventions of all commands.


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


LEAVES = dict(walk(cli))
# Options of studies are checked by `test_study.py`.
OWN = {path: command for path, command in LEAVES.items() if path.split()[0] != "study"}


def options(command: click.Command) -> Iterator[click.Option]:
    return (param for param in command.params if isinstance(param, click.Option))


@pytest.mark.parametrize("path", OWN)
def test_every_command_keeps_to_the_conventions(path: str):
    spelled = {flag for option in options(OWN[path]) for flag in option.opts}
    assert not spelled & {"--html", "--markdown", "--output", "-O", "--at-once", "--every"}
    for option in options(OWN[path]):
        if "--json" in option.opts:
            assert option.is_flag
        if "--out" in option.opts:
            assert option.multiple or path == "submit"
        if "--by" in option.opts:
            assert option.metavar == "COLUMNS"
        if "--forecasts" in option.opts:
            assert "-f" in option.opts
        if "--outcomes" in option.opts:
            assert "-o" in option.opts
    assert path in SERVICES or "--json" in spelled
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


def test_a_typo_gets_a_suggestion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert "Did you mean 'ask'?" in refused("aks", "Will it rain?")
    assert "--help lists all commands" in refused("zzz")
    assert "Put quotes around a text" in refused("ask", "Will", "it", "rain?")
    monkeypatch.chdir(tmp_path)
    for text, message in (
        ("questions: [", "is not YAML"),
        ("", "bad.yaml: must have fields, each written as NAME: VALUE"),
        ("questions: demo\ntrials: x", "field trials: must be a whole number, not x"),
        (None, "bad.yaml: no such file (foretell init run writes one)"),
    ):
        Path("bad.yaml").unlink(missing_ok=True)
        if text is not None:
            Path("bad.yaml").write_text(text)
        with pytest.raises(InputError) as wrong:
            CliRunner().invoke(cli, ["run", "bad.yaml"], catch_exceptions=False)
        assert message in str(wrong.value)


def test_a_former_spelling_names_the_new_one():
    assert "use --out x.json" in refused("score", "-f", "f.csv", "-o", "o.csv", "--json", "x.json")
    for old, new in moved.COMMANDS.items():
        assert f"`foretell {old}` is now `foretell {new}`" in refused(*old.split())
    for old, new in moved.OPTIONS.items():
        *command, option = old.split()
        if command:
            assert f"{option} is no longer an option here; use {new}" in refused(*command, option)


def test_an_unknown_suffix_is_refused_before_anything_is_read():
    assert "should end in .json, .csv, .parquet, .html or .md" in refused(
        "score", "-f", "no", "-o", "no", "--out", "a.doc"
    )
