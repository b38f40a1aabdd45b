"""A program that uses foretell ends without a line on stderr: nothing is left open and nothing warns."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROWS = [
    {"forecaster": name, "question": question, "p": p, "outcome": 1}
    for name, p in (("bold", 0.9), ("shy", 0.6))
    for question in ("q1", "q2")
]
FIRST = f"import foretell; rows = {ROWS!r}; "
PROGRAMS = {
    "score, then ask": "foretell.score(rows); foretell.ask('Will it rain?', closes='2099-01-01', price=0.4)",
    "compare": "foretell.compare(rows, None, 'bold', 'shy'); foretell.ask('Will it rain?', price=0.4)",
    "backtest": "foretell.score(foretell.backtest(['knn', 'prior'], 'demo'))",
    "in a running loop": (
        "import asyncio\nasync def main():\n foretell.score(rows); foretell.ask('Will it rain?', price=0.4)\n"
        "asyncio.run(main())"
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_leaves_nothing_on_stderr(name: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.toml").write_text("network = false\n", encoding="utf-8")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FORETELL_")}
    done = subprocess.run(
        [sys.executable, "-c", FIRST + PROGRAMS[name]],
        cwd=tmp_path, env={**kept, "FORETELL_HOME": str(home)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
