"""foretell study as a user runs it: list, run on own tables and on published ones, write every form."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.arena.studies.made_trials import made, write_long

from foretell.app.commands.study import study
from foretell.arena.studies.catalog import STUDIES
from foretell.questions import InputError


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(study, [str(a) for a in arguments])


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    return write_long({"x": made(rounds=2, size=12), "y": made(rounds=2, size=12, method_seed=5)}, tmp_path)


def test_without_a_name_the_studies_are_listed():
    result = run()
    assert result.exit_code == 0
    assert all(name in result.output for name in STUDIES)


@pytest.mark.parametrize("name", ["trials", "aggregation", "calibration", "variance"])
def test_own_tables(name: str, tables: tuple[Path, Path], tmp_path: Path):
    f, o = tables
    out = tmp_path / "out"
    result = run(name, "-f", f, "-o", o, "--draws", "100", "--out", out)
    assert result.exit_code == 0, result.output
    written = {path.name for path in out.iterdir()}
    assert {f"{name}.html", f"{name}.md", f"{name}.json"} <= written
    assert any(path.endswith(".svg") for path in written)
    assert json.loads((out / f"{name}.json").read_text())["settings"]["seed"] == 0


def test_one_page_json_and_markdown(tables: tuple[Path, Path], tmp_path: Path):
    f, o = tables
    page = tmp_path / "t.html"
    result = run("trials", "-f", f, "-o", o, "--config", "y", "--draws", "100", "--html", page, "--json", "-")
    assert json.loads(result.stdout)["settings"]["configurations"] == ["y"]
    assert page.read_text().startswith("<!DOCTYPE html>")
    result = run("trials", "-f", f, "-o", o, "--draws", "100", "--markdown")
    assert result.stdout.startswith("## What another trial brings")


def test_the_same_seed_the_same_bytes(tables: tuple[Path, Path]):
    f, o = tables
    first, second = (run("trials", "-f", f, "-o", o, "--draws", "100", "--json", "-").stdout for _ in range(2))
    other = run("trials", "-f", f, "-o", o, "--draws", "100", "--seed", "7", "--json", "-").stdout
    assert first == second != other


def test_a_name_that_is_none_and_no_trials(tables: tuple[Path, Path]):
    f, o = tables
    result = run("trails", "-f", f, "-o", o)
    assert isinstance(result.exception, InputError)
    assert "did you mean 'trials'" in str(result.exception)
    result = run("trials")
    assert isinstance(result.exception, InputError)
    assert "--data" in str(result.exception)
    result = run("trials", "-f", f, "-o", o, "--config", "z")
    assert "no configuration is called 'z'" in str(result.exception)


@pytest.mark.shared_data
def test_published_tables(shared_data: Path, tmp_path: Path):
    config = "pro-high-brave-c0-t1"
    data = shared_data / "tables"
    result = run("trials", "--data", data, "--config", config, "--draws", "100", "--paper-outcomes", "--json", "-")
    assert result.exit_code == 0, result.output
    curve = json.loads(result.stdout)["grids"][0]["entries"][0]
    assert curve["name"] == config
    assert curve["k=5"] == pytest.approx(69.67, abs=0.01)
