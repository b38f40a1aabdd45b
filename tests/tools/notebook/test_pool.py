"""The kernel pool: warm kernels, one notebook per kernel, a limited number, and no leftovers."""

import asyncio
from typing import Any

import pytest
from tests.tools.notebook.conftest import TIGHT, Loop

from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.tools.notebook.kernel import ExecutionEnd, Kernel
from foretell.tools.notebook.notebook import DisplayOutput, PythonCell
from foretell.tools.notebook.pool import UNSANDBOXED, KernelPool
from foretell.tools.notebook.process import SandboxedProcess
from foretell.tools.notebook.session import open_notebook
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
            process_ids = pids(first)
            await pool.give_back(first)
            second = await pool.take()
            await until_warm(pool, 1)
            process_ids += pids(second)
            process_ids += [pid for kernel in pool._ready for pid in pids(kernel)]  # pyright: ignore[reportPrivateUsage]
            return process_ids, [first, second], value

    process_ids, (first, second), value = loop.run(using())
    assert value[0] == DisplayOutput(text="True", result=True)
    assert isinstance(value[1], ExecutionEnd)
    assert value[1].count == 1, "loading libraries does not increase the count"
    assert first is not second
    assert len(process_ids) >= 9
    assert not any(map(is_running, process_ids))
    assert not first.run.top.exists()
    assert not second.run.top.exists()


def test_pool_limits_the_number_of_kernels(loop: Loop, tight_pool: KernelPool) -> None:
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


def test_kernel_that_died_while_waiting_is_replaced(loop: Loop, sandboxed: None) -> None:
    async def dying() -> tuple[bool, Kernel, Kernel]:
        async with KernelPool(warm=1, most=1, limits=TIGHT, preload=()) as pool:
            await until_warm(pool, 1)
            waiting = pool._ready[0]  # pyright: ignore[reportPrivateUsage]
            waiting._confined._kill()  # pyright: ignore[reportPrivateUsage]
            await asyncio.wait([waiting._confined.ended])  # pyright: ignore[reportPrivateUsage]
            kernel = await pool.take()
            return kernel.alive, waiting, kernel

    alive, waiting, kernel = loop.run(dying())
    assert alive
    assert waiting is not kernel
    assert not waiting.run.top.exists()


def test_closed_pool_raises_an_error(loop: Loop) -> None:
    with pytest.raises(InputError, match="closed"):
        loop.run(KernelPool().take())


def test_closing_while_kernels_start_leaves_no_tasks_or_processes(
    sandboxed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In a loop of its own: other pools of these tests refill themselves in the shared one.
    own_loop = Loop()
    started: list[SandboxedProcess] = []
    start = SandboxedProcess.start

    async def recorded(*args: Any, **named: Any) -> SandboxedProcess:
        process = await start(*args, **named)
        if asyncio.get_running_loop() is own_loop.loop:
            started.append(process)
        return process

    async def hasty() -> list[str]:
        own = asyncio.current_task()
        async with KernelPool(warm=3, most=1, limits=TIGHT, preload=()):
            # The first process was the trial of the sandbox; the second is a kernel that does not respond yet.
            async with asyncio.timeout(60):
                while len(started) < 2:
                    await asyncio.sleep(0.01)
        return [str(task) for task in asyncio.all_tasks() if task is not own and not task.done()]

    monkeypatch.setattr(SandboxedProcess, "start", recorded)
    try:
        assert own_loop.run(hasty()) == []
    finally:
        own_loop.close()
    assert not any(process.alive for process in started)


def test_unsandboxed_notebooks_need_an_option_and_carry_a_warning(loop: Loop) -> None:
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
