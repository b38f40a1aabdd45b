"""Several processes in one home at the same moment."""

import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from foretell.models import Journal
from foretell.runs import RunStore

ROUNDS, OPENERS = 10, 6


@pytest.mark.parametrize("kind", [RunStore, Journal])
def test_a_new_file_can_be_opened_by_many_at_once(tmp_path: Path, kind: Callable[[Path], Any]):
    def opened(barrier: Barrier, path: Path) -> None:
        barrier.wait()
        kind(path).close()

    with ThreadPoolExecutor(OPENERS) as pool:
        for place in range(ROUNDS):
            barrier = Barrier(OPENERS)
            waiting = [pool.submit(opened, barrier, tmp_path / f"{place}.db") for _ in range(OPENERS)]
            for one in waiting:
                one.result(timeout=60)


def test_the_same_run_started_twice_ends_well(house: Any):
    """Nobody should; but then nothing is lost and both say the same."""
    spec = house.spec(trials=3)
    both = [house.start("run", spec.name, streams={"stderr": subprocess.PIPE}) for _ in range(2)]
    for process in both:
        told = process.communicate(timeout=120)[1]
        assert process.returncode == 0, told
    run = house.run(spec)
    assert len(house.forecasts(run)) == 9
