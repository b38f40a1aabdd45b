"""The machine's clock is set back and forward by a day under a real process."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from foretell.questions.clock_jump import ClockReading

HERE = Path(__file__).parent


@pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="a clock is set by a preloaded library")
def test_changed_clock_is_reported_and_delays_nothing(tmp_path: Path) -> None:
    library = tmp_path / "set_clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, HERE / "set_clock.c"], check=True)
    paths = os.pathsep.join([str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    moved = {"LD_PRELOAD": str(library), "CLOCK_MOVED_BY": str(tmp_path / "moved_by"), "PYTHONPATH": paths}
    child = subprocess.run(
        [sys.executable, str(HERE / "clock_child.py"), str(tmp_path)],
        env=os.environ | moved,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    result = json.loads(child.stdout)
    # The rest of half a minute is left, not a day more or nothing.
    assert all(0 < result["waits"][way] <= 31 for way in ("back", "forward", "home"))
    assert result["waits"]["paused"] <= 0.2
    assert result["done"] == 2
    assert "this machine's clock was set back by 1 day" in child.stderr
    assert "the run continues" in child.stderr


def test_clock_jumps_are_distinguished_from_drift() -> None:
    before = ClockReading(1_000_000.0, 5_000.0)
    assert before.jump_to(ClockReading(1_000_000.0 + 3600, 5_000.0 + 3600)) == 0.0
    assert before.jump_to(ClockReading(1_000_000.0 + 8 * 3600, 5_000.0 + 8 * 3600 - 20)) == 0.0
    assert before.jump_to(ClockReading(1_000_000.0 - 60, 5_000.0 + 60)) == -120.0
    assert before.jump_to(ClockReading(1_000_000.0 + 86_460, 5_000.0 + 60)) == 86_400.0
    # After a restart only a clock that was set back is detected.
    assert before.jump_to(ClockReading(1_000_000.0 + 9e5, 3.0)) == 0.0
    assert before.jump_to(ClockReading(1_000_000.0 - 9e5, 3.0)) == -9e5
