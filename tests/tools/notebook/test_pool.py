"""Kernels wait warm, serve once, are bounded in number and leave nothing behind."""

import asyncio
from typing import Any

import pytest
from tests.tools.notebook.conftest import TIGHT, Loop

from foretell.questions import AsOf, InputError
from foretell.tools.notebook import (
    UNSANDBOXED,
    DisplayOutput,
    ExecutionEnd,
    Kernel,
    KernelPool,
    PythonCell,
    open_notebook,
)
from foretell.tools.notebook.watchdog import descendants, is_running


async def until_warm(pool: KernelPool, count: int) -> None:
    async with asyncio.timeout(60):
        while pool.waiting < count:
            await asyncio.sleep(0.02)


def pids(kernel: Kernel) -> list[int]:
    return descendants(kernel._confined._process.pid, most=100)  # pyright: ignore[reportPrivateUsage]


def test_a_kernel_serves_one_notebook_and_everything_ends_with_the_pool(loop: Loop, sandboxed: None) -> None:
    async def using() -> tuple[list[int], list[Kernel], Any]:
        async with KernelPool(warm=1, most=2, limits=TIGHT, preload=("json", "no_such_library")) as pool:
            await until_warm(pool, 1)
            first = await pool.take()
            value = [event async for event in first.execute("import sys; 'json' in sys.modules")]
            seen = pids(first)
            await pool.give_back(first)
            second = await pool.take()
            await until_warm(pool, 1)
            seen += pids(second)
            seen += [pid for kernel in pool._ready for pid in pids(kernel)]  # pyright: ignore[reportPrivateUsage]
            return seen, [first, second], value

    seen, (first, second), value = loop.run(using())
    assert value[0] == DisplayOutput(text="True", result=True)
    assert isinstance(value[1], ExecutionEnd)
    assert value[1].count == 1, "loading libraries is not counted"
    assert first is not second
    assert len(seen) >= 9
    assert not any(map(is_running, seen))
    assert not first.run.top.exists()
    assert not second.run.top.exists()


def test_no_more_than_so_many_at_once(loop: Loop, tight_pool: KernelPool) -> None:
    async def crowding() -> bool:
        first, second = await tight_pool.take(), await tight_pool.take()
        third = asyncio.create_task(tight_pool.take())
        await asyncio.sleep(0.3)
        waited = not third.done()
        await tight_pool.give_back(first)
        await tight_pool.give_back(await third)
        await tight_pool.give_back(second)
        return waited

    assert loop.run(crowding())


def test_a_kernel_that_died_waiting_is_not_handed_out(loop: Loop, sandboxed: None) -> None:
    async def dying() -> tuple[bool, Kernel, Kernel]:
        async with KernelPool(warm=1, most=1, limits=TIGHT, preload=()) as pool:
            await until_warm(pool, 1)
            waiting = pool._ready[0]  # pyright: ignore[reportPrivateUsage]
            waiting._confined._kill()  # pyright: ignore[reportPrivateUsage]
            await asyncio.wait([waiting._confined.ended])  # pyright: ignore[reportPrivateUsage]
            taken = await pool.take()
            return taken.alive, waiting, taken

    alive, waiting, taken = loop.run(dying())
    assert alive
    assert waiting is not taken
    assert not waiting.run.top.exists()


def test_a_closed_pool_gives_nothing(loop: Loop) -> None:
    with pytest.raises(InputError, match="closed"):
        loop.run(KernelPool().take())


def test_closing_while_kernels_start_leaves_nothing(loop: Loop, sandboxed: None) -> None:
    async def hasty() -> int:
        before = {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}
        async with KernelPool(warm=3, most=1, limits=TIGHT, preload=()):
            await asyncio.sleep(0.15)
        after = {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}
        return len({task for task in after - before if not task.done()})

    assert loop.run(hasty()) == 0


def test_without_a_sandbox_only_if_told_and_every_notebook_says_so(loop: Loop) -> None:
    pytest.importorskip("ipykernel")

    async def trusting() -> tuple[dict[str, Any], str]:
        async with (
            KernelPool(warm=0, limits=TIGHT, preload=(), unsandboxed=True) as pool,
            open_notebook(pool, AsOf.day("2025-10-26")) as session,
        ):
            step = await session.run(
                [PythonCell(source="import os, tempfile\ntempfile.mkstemp()\nlen(os.environ) < 30")]
            )
            return dict(session.notebook.facts), step.results[0].report

    facts, report = loop.run(trusting())
    assert facts["sandbox"] == "none"
    assert facts["warning"] == UNSANDBOXED
    assert report == "True"
