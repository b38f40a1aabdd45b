"""Files, sockets and processes left behind by hostile notebooks."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.tools.notebook.conftest import Canaries, Loop

from foretell.questions.as_of import AsOf
from foretell.tools.notebook.notebook import PythonCell
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.process import PREFIX, CollectedFiles, sweep
from foretell.tools.notebook.session import CellResult, open_notebook
from foretell.tools.notebook.watchdog import descendants, is_running

CUTOFF = AsOf.day("2025-10-26")


def run(loop: Loop, pool: KernelPool, *sources: str) -> tuple[list[CellResult], CollectedFiles]:
    async def running() -> tuple[list[CellResult], CollectedFiles]:
        async with open_notebook(pool, CUTOFF) as session:
            results = [(await session.run([PythonCell(source=source)])).results[-1] for source in sources]
            return results, await asyncio.to_thread(session.collect)

    return loop.run(running())


def test_links_pipes_and_sockets_are_never_followed(tight_pool: KernelPool, loop: Loop, canaries: Canaries) -> None:
    attack = f"""
import os, socket
open('honest.csv', 'w').write('a,b')
os.symlink({str(canaries.secret)!r}, 'secret.txt')
os.symlink({str(canaries.secret.parent)!r}, 'folder')
os.symlink('/proc/self/environ', 'environment')
os.symlink('honest.csv', 'inner')
os.link('honest.csv', 'twin')
os.mkfifo('pipe')
socket.socket(socket.AF_UNIX).bind('door')
os.makedirs('a/b/c')
open('a/b/c/deep.txt', 'w').write('deep')
open('sparse', 'wb').truncate(7_000_000)
open('locked', 'w').write('x')
os.chmod('locked', 0)
os.mkdir('closed'); os.chmod('closed', 0)
open('bad \\udcff name', 'w').write('n')
print('done')
"""
    (result,), collected = run(loop, tight_pool, attack)
    assert result.ok, result.report
    expected = {"a/b/c/deep.txt": b"deep", "bad ? name": b"n"}
    assert expected.items() <= collected.files.items()
    assert {
        "secret.txt",
        "folder",
        "environment",
        "inner",
        "pipe",
        "door",
        "honest.csv",
        "twin",
    } <= collected.skipped.keys()
    assert not any(b"secret" in content or b"canary" in content for content in collected.files.values())
    canaries.check()


def test_sockets_swapped_for_links_are_not_connected_to(tight_pool: KernelPool, loop: Loop, canaries: Canaries) -> None:
    attack = f"""
import json, os
for name in os.listdir('/wire'):
    os.unlink('/wire/' + name)
for number in range(1, 6):
    os.symlink({str(canaries.unix_path)!r}, f'/wire/kernel-{{number}}')
open('/wire/connection.json', 'w').write(json.dumps({{'ip': '/', 'key': ''}}))
"""
    results, _ = run(loop, tight_pool, attack, "print(6 * 7)")
    assert [result.ok for result in results] == [True, True]
    assert results[1].report == "42"
    canaries.check()


DAEMON = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        time.sleep(3600)
    os._exit(0)
time.sleep(0.3)
"""


@pytest.mark.parametrize("last", ["print('over')", "os._exit(0)", "os.kill(os.getpid(), 11)"])
def test_daemons_end_with_their_notebook(last: str, tight_pool: KernelPool, loop: Loop) -> None:
    async def running() -> list[int]:
        async with open_notebook(tight_pool, CUTOFF) as session:
            await session.run([PythonCell(source=DAEMON)])
            process = session._kernel._confined._process.pid  # pyright: ignore[reportPrivateUsage]
            inside = descendants(process, most=1_000)
            await session.run([PythonCell(source=last)])
            return inside

    inside = loop.run(running())
    assert len(inside) >= 4
    assert not any(map(is_running, inside))


HOST = """
import asyncio, sys
from foretell.questions.as_of import AsOf
from foretell.tools.notebook.notebook import PythonCell
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.process import PREFIX, sweep
from foretell.tools.notebook.session import open_notebook

async def main():
    async with KernelPool(warm=1, preload=()) as pool, open_notebook(pool, AsOf.day("2025-10-26")) as session:
        await session.run([PythonCell(source="import subprocess; subprocess.Popen(['sleep', '3600'])")])
        print("ready", flush=True)
        await session.run([PythonCell(source="import time; time.sleep(3600)")])

asyncio.run(main())
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory for temporary files with a short path that all users can traverse."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_host_leaves_no_processes_and_directories(
    number: int, sandboxed: None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**os.environ, "TMPDIR": str(folder)}
    host = subprocess.Popen([sys.executable, "-c", HOST], stdout=subprocess.PIPE, text=True, env=environment)
    assert host.stdout is not None
    try:
        assert host.stdout.readline() == "ready\n"
        inside = [pid for pid in descendants(host.pid, most=1_000) if pid != host.pid]
    finally:
        host.send_signal(number)
        host.wait()
        host.stdout.close()
    assert len(inside) >= 4
    for _ in range(100):
        if not any(map(is_running, inside)):
            break
        time.sleep(0.05)
    assert not any(map(is_running, inside))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    leftovers = list(folder.glob(f"{PREFIX}*"))
    assert len(leftovers) >= 2
    sweep()
    assert len(list(folder.iterdir())) == len(leftovers), "they are too young"
    for path in leftovers:
        os.utime(path, (0, 0))
    sweep()
    assert list(folder.iterdir()) == []


def test_dead_kernel_does_not_lose_earlier_cells(tight_pool: KernelPool, loop: Loop) -> None:
    async def running() -> list[Any]:
        async with open_notebook(tight_pool, CUTOFF) as session:
            await session.run([PythonCell(source="x = 5"), PythonCell(source="1 / 0")])
            died = await session.correct(PythonCell(source="import os; os._exit(1)"))
            again = await session.correct(PythonCell(source="print(x)"))
            return [died, again, session.notebook]

    died, again, notebook = loop.run(running())
    assert died.failed is not None
    assert died.failed.how == "dead"
    assert "exit code 1" in again.notice
    assert again.results[0].report == "5"
    assert [attempt.source for attempt in notebook.cells[-1].attempts] == ["1 / 0", "import os; os._exit(1)"]


def test_working_directory_is_private(tight_pool: KernelPool, loop: Loop) -> None:
    async def running() -> tuple[Path, set[str]]:
        async with open_notebook(tight_pool, CUTOFF) as session:
            run = session._kernel.run  # pyright: ignore[reportPrivateUsage]
            return run.top, {oct(path.stat().st_mode & 0o777) for path in (run.work, run.sockets, run.api)}

    top, modes = loop.run(running())
    assert modes == {"0o700"}
    assert not top.exists()
