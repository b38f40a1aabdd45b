"""Kills a process repeatedly at chosen points of its progress, and lets it finish at last.

The process writes one line to a progress file for every finished piece of work and does not repeat finished work. The
caller checks the invariants after each kill.
"""

import random
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Lives:
    """The outcome."""

    kills: int
    """Number of processes that were killed before they finished."""
    code: int
    """Exit code of the last process."""


def kill_points(total: int, kills: int, rng: random.Random) -> list[int]:
    """Lines of progress after which to kill, anywhere in the run."""
    return sorted(rng.randrange(1, total) for _ in range(kills))


def live_and_die(
    command: Sequence[str],
    progress: Path,
    points: Sequence[int],
    *,
    rng: random.Random,
    after_kill: Callable[[], None] = lambda: None,
    patience: float = 60.0,
) -> Lives:
    """Run a command to each point and kill it there with SIGKILL; run it a last time to its end."""
    kills = 0
    for point in points:
        child = subprocess.Popen(command)
        reached = _reached(child, progress, point, patience)
        time.sleep(rng.uniform(0, 0.01))
        kills += reached and child.poll() is None
        child.kill()
        child.wait()
        after_kill()
    return Lives(kills=kills, code=subprocess.run(command, timeout=patience).returncode)


def lines(progress: Path) -> list[str]:
    """Complete lines written so far."""
    return progress.read_text().split("\n")[:-1] if progress.exists() else []


def _reached(child: subprocess.Popen[bytes], progress: Path, point: int, patience: float) -> bool:
    until = time.monotonic() + patience
    while time.monotonic() < until and child.poll() is None:
        if len(lines(progress)) >= point:
            return True
        time.sleep(0.002)
    return False
