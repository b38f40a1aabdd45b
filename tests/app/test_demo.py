"""The first minute, as a stranger has it: a real process, no network, a real result."""

import subprocess
import sys
from pathlib import Path

import pytest

import foretell


def test_demo_then_score_its_tables(tmp_path: Path):
    pytest.importorskip("statsmodels")
    command = [sys.executable, "-m", "foretell.cli.main", "demo", "--out", "demo.html", "--tables", "run"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    assert "auto leads" in result.stdout
    assert "<html" in (tmp_path / "demo.html").read_text(encoding="utf-8")
    board = foretell.score(tmp_path / "run" / "forecasts.csv", tmp_path / "run" / "outcomes.csv")
    overall = {s.forecaster: s.metrics["bi"] for s in board.scores if dict(s.group) == {"kind": "overall"}}
    best_other = max(value.estimate for name, value in overall.items() if name != "auto")
    assert overall["auto"].low > best_other


def test_backtest_writes_what_score_reads(tmp_path: Path):
    pytest.importorskip("statsmodels")
    command = [sys.executable, "-m", "foretell.cli.main", "backtest", "demo", "-F", "always:p=0.4", "--tables", "run"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    assert "Wrote run" in result.stdout
    board = foretell.score(tmp_path / "run" / "forecasts.csv", tmp_path / "run" / "outcomes.csv")
    assert "always 0.4" in {s.forecaster for s in board.scores}
