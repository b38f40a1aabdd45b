"""Hostile notebooks are contained, the host is unharmed, and the report describes how the cell ended."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tools.notebook.conftest import Canaries, Loop
from tests.tools.notebook.hostile_notebooks import DESTROYERS, PROBES, Attack
from tests.tools.notebook.test_outputs import assert_inert

from foretell.questions.as_of import AsOf
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.session import CellResult, NotebookSession, open_notebook
from foretell.tools.notebook.watchdog import descendants, is_running

CUTOFF = AsOf.day("2025-10-26")


@pytest.fixture(scope="module")
def shared(loop: Loop, roomy_pool: KernelPool) -> Iterator[NotebookSession]:
    """One notebook for all attacks that do not damage their kernel."""
    opening = open_notebook(roomy_pool, CUTOFF)
    yield loop.run(opening.__aenter__())
    loop.run(opening.__aexit__(None, None, None))


def judge(attack: Attack, result: CellResult) -> None:
    assert attack.fault(result) is None
    assert len(result.report) < 20_000
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", result.report)


@pytest.mark.parametrize("attack", PROBES, ids=lambda attack: attack.name)
def test_probe_finds_nothing(attack: Attack, shared: NotebookSession, loop: Loop, canaries: Canaries) -> None:
    step = loop.run(shared.run([attack.cell(canaries.names)]))
    judge(attack, step.results[-1])
    canaries.check()
    for output in step.results[-1].cell.outputs:
        assert_inert(getattr(output, "html", ""))


@pytest.mark.parametrize("attack", DESTROYERS, ids=lambda attack: attack.name)
def test_destroyer_is_contained(attack: Attack, tight_pool: KernelPool, loop: Loop, canaries: Canaries) -> None:
    async def attacked() -> tuple[CellResult, list[int], Path]:
        async with open_notebook(tight_pool, CUTOFF) as session:
            first = (await session.run([attack.cell(canaries.names)], seconds=attack.seconds)).results[-1]
            kernel = session._kernel  # pyright: ignore[reportPrivateUsage]
            inside = descendants(kernel._confined._process.pid, most=10_000)  # pyright: ignore[reportPrivateUsage]
            return first, inside, kernel.run.top

    first, inside, top = loop.run(attacked())
    judge(attack, first)
    canaries.check()
    assert not any(map(is_running, inside))
    assert not top.exists()


HARMLESS_EVEN_OUTSIDE = {
    *("the host's own server", "a socket of the host by its path", "a socket of the host without a path"),
    *("a secret file whose path is known", "variables of the host"),
}


@pytest.mark.parametrize(
    "attack", [attack for attack in PROBES if attack.name in HARMLESS_EVEN_OUTSIDE], ids=lambda attack: attack.name
)
def test_attacks_would_succeed_without_a_sandbox(
    attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORETELL_CANARY_KEY", "sk-canary")
    canaries = Canaries(tmp_path, name="outside")
    try:
        source = attack.cell(canaries.names).source
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    finally:
        canaries.close()
    assert "ESCAPED" in done.stdout


def test_number_of_attacks_is_large_enough() -> None:
    assert len(PROBES) + len(DESTROYERS) >= 40
    names = [attack.name for attack in (*PROBES, *DESTROYERS)]
    assert len(set(names)) == len(names)
