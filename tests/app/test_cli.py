"""The command line as a user meets it: real processes, real files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from foretell.cli.main import COMMANDS, cli

DOCS = Path(__file__).parents[2] / "docs"


def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "foretell.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, check=False)


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
        "heavy = {'numpy', 'scipy', 'duckdb', 'pydantic', 'rich', 'httpx2', 'yaml', 'statsmodels', 'pandas'}\n"
        "print('LOADED', sorted(heavy & set(sys.modules)), sorted(m for m in sys.modules if 'foretell.cli.' in m))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "LOADED [] ['foretell.cli.main']" in out
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str):
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert "Usage:" in result.output


def test_command_reference_is_up_to_date():
    """Refresh with: foretell --reference > docs/commands.md."""
    # A process of its own: click keeps the help option of a command that another test has called before.
    command = [sys.executable, "-m", "foretell.cli.main", "--reference"]
    pages = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    assert (DOCS / "commands.md").read_text(encoding="utf-8") == pages


def test_score_prints_and_writes(tables: tuple[Path, Path], tmp_path: Path):
    f, o = tables
    result = run("score", "-f", f, "-o", o, "--out", tmp_path / "s.json", "--out", tmp_path / "s.html")
    assert result.returncode == 0, result.stderr
    assert "crowd price" in result.stdout
    data = json.loads((tmp_path / "s.json").read_text())
    best = data["scores"][0]
    assert best["forecaster"] == "A"
    assert best["metrics"]["brier"]["estimate"] == pytest.approx(0.025)
    assert "<html" in (tmp_path / "s.html").read_text()


def test_score_to_standard_output_is_pure_json(tables: tuple[Path, Path]):
    result = run("score", "-f", tables[0], "-o", tables[1], "--json")
    assert json.loads(result.stdout)["schema"] == "foretell/score/1"


def test_bad_input_is_one_line_exit_2_and_nothing_written(tables: tuple[Path, Path], tmp_path: Path):
    f, o = tables
    f.write_text(f.read_text().replace("0.9", "1.9"))
    result = run("score", "-f", f, "-o", o, "--out", tmp_path / "s.json", "--out", tmp_path / "s.html")
    assert result.returncode == 2
    assert result.stderr.strip().count("\n") == 0
    assert "f.csv, row 2, column p: 1.9 is outside [0, 1]" in result.stderr
    assert not (tmp_path / "s.json").exists()
    assert not (tmp_path / "s.html").exists()


def test_compare_errors_and_plan(tables: tuple[Path, Path], tmp_path: Path):
    both = ["-f", tables[0], "-o", tables[1]]
    compared = run("compare", "A", "B", *both, "--json")
    assert json.loads(compared.stdout)["differences"][0]["comparison"]["diff"] > 0
    assert run("compare", "A", "B", *both).returncode == 0
    assert run("compare", "A", "C", *both).returncode == 2
    assert run("errors", "A", *both, "--reference", "B", "--out", "errors.html", cwd=tmp_path).returncode == 0
    assert (tmp_path / "errors.html").exists()
    planned = run("plan", "--gain", "1", "--sd", "0.1")
    assert "targets to see 1 points" in planned.stdout
    assert run("plan", "--gain", "1").returncode == 2


def test_wrong_words_are_told_what_is_right(tables: tuple[Path, Path]):
    assert run("scoer").returncode == 2
    result = run("score", "-f", tables[0], "-o", tables[1], "--by", "colour")
    assert result.returncode == 2
    assert "columns to group by" in result.stderr
