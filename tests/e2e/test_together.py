"""Several processes in one home at the same time."""

import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from foretell.models.journal import Journal
from foretell.runs.store import RunStore

ROUNDS, OPENERS = 10, 6


@pytest.mark.parametrize("kind", [RunStore, Journal])
def test_new_store_can_be_opened_by_many_processes(tmp_path: Path, kind: Callable[[Path], Any]):
    def opened(barrier: Barrier, path: Path) -> None:
        barrier.wait()
        kind(path).close()

    with ThreadPoolExecutor(OPENERS) as pool:
        for place in range(ROUNDS):
            barrier = Barrier(OPENERS)
            waiting = [pool.submit(opened, barrier, tmp_path / f"{place}.db") for _ in range(OPENERS)]
            for process in waiting:
                process.result(timeout=60)


def test_same_run_started_twice_completes(workspace: Any):
    """Nothing is lost, and both have the same output."""
    spec = workspace.spec(trials=3)
    both = [workspace.start("run", spec.name, streams={"stderr": subprocess.PIPE}) for _ in range(2)]
    for process in both:
        errors = process.communicate(timeout=120)[1]
        assert process.returncode == 0, errors
    run = workspace.run(spec)
    assert len(workspace.forecasts(run)) == 9
