"""A real kernel in a real sandbox."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tools.notebook.conftest import Loop

from foretell.tools.notebook.kernel import ExecutionEnd, Kernel
from foretell.tools.notebook.limits import KernelLimits, OutputCaps
from foretell.tools.notebook.notebook import DisplayOutput, ErrorOutput, Output, StreamOutput
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.process import new_run, remove_directory
from foretell.tools.notebook.sandbox import SandboxUnavailable

Events = list[Output | ExecutionEnd]


@pytest.fixture(scope="module")
def kernel(loop: Loop, roomy_pool: KernelPool) -> Iterator[Kernel]:
    kernel = loop.run(roomy_pool.take())
    yield kernel
    loop.run(roomy_pool.give_back(kernel))
    assert not kernel.alive
    assert not kernel.run.top.exists()


def run(loop: Loop, kernel: Kernel, source: str, seconds: float = 60.0) -> Events:
    async def events() -> Events:
        return [event async for event in kernel.execute(source, seconds=seconds)]

    return loop.run(events())


def count(loop: Loop, kernel: Kernel) -> int:
    """Run a cell and return its execution count. Tests share a kernel and run in any order."""
    (ended,) = run(loop, kernel, "pass")
    assert isinstance(ended, ExecutionEnd)
    assert ended.count is not None
    return ended.count


def test_outputs_come_in_order_and_the_end_comes_last(loop: Loop, kernel: Kernel) -> None:
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\ndisplay('shown')\n6 * 7"
    before = count(loop, kernel)
    *outputs, ended = run(loop, kernel, code)
    assert StreamOutput(stream="stdout", text="out\n") in outputs
    assert StreamOutput(stream="stderr", text="err\n") in outputs
    assert outputs[-1] == DisplayOutput(text="42", result=True)
    assert isinstance(ended, ExecutionEnd)
    assert ended.how == "done"
    assert ended.count == before + 1


def test_executions_are_counted_and_share_their_variables(loop: Loop, kernel: Kernel) -> None:
    before = count(loop, kernel)
    run(loop, kernel, "x = 20")
    *outputs, ended = run(loop, kernel, "x + 1")
    assert outputs == [DisplayOutput(text="21", result=True)]
    assert isinstance(ended, ExecutionEnd)
    assert ended.count == before + 2


def test_tables_and_figures_are_displayed(loop: Loop, kernel: Kernel) -> None:
    before = count(loop, kernel)
    table, ended = run(loop, kernel, "import pandas\npandas.DataFrame({'a': [1, 2]})")
    assert isinstance(table, DisplayOutput)
    assert "<td>2</td>" in table.html
    assert "style" not in table.html
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()"
    figure, ended = run(loop, kernel, code)
    assert isinstance(figure, DisplayOutput)
    assert figure.image.startswith(b"\x89PNG")
    assert ended == ExecutionEnd(how="done", count=before + 2)


def test_exceptions(loop: Loop, kernel: Kernel) -> None:
    raised, ended = run(loop, kernel, "{}['k']")
    assert isinstance(raised, ErrorOutput)
    assert raised.name == "KeyError"
    assert "{}['k']" in raised.text
    assert isinstance(ended, ExecutionEnd)
    assert ended.how == "failed"
    *_, ended = run(loop, kernel, "def broken(:")
    assert isinstance(ended, ExecutionEnd)
    assert ended.how == "failed"


def test_a_cell_out_of_time_is_interrupted_and_variables_stay(loop: Loop, kernel: Kernel) -> None:
    run(loop, kernel, "kept = 'kept'")
    raised, ended = run(loop, kernel, "import time\ntime.sleep(60)", seconds=0.5)
    assert isinstance(raised, ErrorOutput)
    assert raised.name == "KeyboardInterrupt"
    assert isinstance(ended, ExecutionEnd)
    assert (ended.how, ended.reason) == ("interrupted", "it ran for more than 0.5 s")
    assert run(loop, kernel, "kept")[0] == DisplayOutput(text="'kept'", result=True)


def test_await_threads_and_processes_work(loop: Loop, kernel: Kernel) -> None:
    assert run(loop, kernel, "import asyncio\nawait asyncio.sleep(0, 5)")[0] == DisplayOutput(text="5", result=True)
    code = "import subprocess\nprint(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout)"
    assert run(loop, kernel, code)[0] == StreamOutput(stream="stdout", text="child\n\n")
    code = """
from concurrent.futures import ThreadPoolExecutor
list(ThreadPoolExecutor(4).map(abs, [-1, -2]))
"""
    assert run(loop, kernel, code)[0] == DisplayOutput(text="[1, 2]", result=True)


def test_files_and_temporary_files_can_be_written(loop: Loop, kernel: Kernel) -> None:
    code = """
import tempfile
with tempfile.TemporaryFile() as file: file.write(b'y')
open('a.txt', 'w').write('x')
open('a.txt').read()
"""
    assert run(loop, kernel, code)[0] == DisplayOutput(text="'x'", result=True)
    assert (kernel.run.work / "a.txt").read_text(encoding="utf-8") == "x"
    assert kernel.memory > 10_000_000


def test_dead_kernel_reports_its_exit_for_every_cell(loop: Loop, tight_pool: KernelPool) -> None:
    async def dying() -> list[Events]:
        kernel = await tight_pool.take()
        try:
            return [[event async for event in kernel.execute(code)] for code in ("import os; os._exit(3)", "1")]
        finally:
            await tight_pool.give_back(kernel)

    first, second = loop.run(dying())
    dead = ExecutionEnd(how="dead", reason="the kernel process ended by itself with exit code 3")
    assert first == [dead]
    assert second == [dead]


def test_abandoned_cell_makes_its_kernel_unusable(loop: Loop, tight_pool: KernelPool) -> None:
    async def giving_up() -> tuple[str | None, bool]:
        kernel = await tight_pool.take()

        async def run() -> None:
            async for _ in kernel.execute("import time; time.sleep(60)", seconds=60):
                pass

        try:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(run(), 0.3)
            return kernel.death, kernel.alive
        finally:
            await tight_pool.give_back(kernel)

    assert loop.run(giving_up()) == ("the cell was given up", False)


def test_failed_kernel_start_reports_the_reason(loop: Loop, sandboxed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foretell.tools.notebook.kernel.kernel_program", lambda *_, **__: ["/bin/sh", "-c", "oops"])

    async def starting() -> None:
        await Kernel.start(None, limits=KernelLimits(start_seconds=20), caps=OutputCaps())

    with pytest.raises(SandboxUnavailable, match=r"exit code 127.*oops"):
        loop.run(starting())


def test_unresponsive_kernel_start_times_out(loop: Loop, sandboxed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foretell.tools.notebook.kernel.kernel_program", lambda *_, **__: ["/bin/sleep", "60"])

    async def starting() -> None:
        await Kernel.start(None, limits=KernelLimits(start_seconds=0.2), caps=OutputCaps())

    with pytest.raises(SandboxUnavailable, match=r"did not answer within 0.2 s"):
        loop.run(starting())


def test_socket_paths_are_short_for_any_temporary_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    directory = new_run(None)
    try:
        assert len(str(directory.sockets / "kernel-5")) <= 103
        assert list(long.iterdir()) == []
    finally:
        remove_directory(directory.top)
