"""The first minute, as a stranger has it: no network, a real result."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import foretell
from foretell.cli.main import cli


def test_demo_then_score_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("statsmodels")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["demo", "--out", "demo.html", "--tables", "run"])
    assert result.exit_code == 0, result.output
    assert "auto leads" in result.stdout
    assert "<html" in (tmp_path / "demo.html").read_text(encoding="utf-8")
    board = foretell.score(tmp_path / "run" / "forecasts.csv", tmp_path / "run" / "outcomes.csv")
    overall = {s.forecaster: s.metrics["bi"] for s in board.scores if dict(s.group) == {"kind": "overall"}}
    best_other = max(value.estimate for name, value in overall.items() if name != "auto")
    assert overall["auto"].low > best_other


def test_backtest_writes_what_score_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("statsmodels")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["backtest", "demo", "-F", "always:p=0.4", "--tables", "run"])
    assert result.exit_code == 0, result.output
    assert "Wrote run" in result.stdout
    board = foretell.score(tmp_path / "run" / "forecasts.csv", tmp_path / "run" / "outcomes.csv")
    assert "always 0.4" in {s.forecaster for s in board.scores}
