"""Time to the first result of a notebook: cold, warm, and without a sandbox, compared with a bare start of Python.

Prints ratios to `python -c pass` on the same machine, the minimum of several turns each, and megabytes. A notebook is
opened and its setup cell and one more cell are run; the warm one uses a waiting kernel with numpy and pandas loaded,
the cold one has to load pandas itself.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

from foretell.questions.as_of import AsOf
from foretell.tools.notebook.kernel import Kernel
from foretell.tools.notebook.notebook import PythonCell
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.session import open_notebook
from foretell.tools.notebook.watchdog import descendants, fair_share

TURNS = 7
CUTOFF = AsOf.day("2025-10-26")
FIRST = [PythonCell(source="import pandas\npandas.Series([1, 2]).sum()")]
PLAIN = [PythonCell(source="1 + 1")]


def bare() -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
    return time.perf_counter() - start


async def first_result(pool: KernelPool, cells: list[PythonCell]) -> float:
    start = time.perf_counter()
    async with open_notebook(pool, CUTOFF) as session:
        step = await session.run(cells)
        if step.failed is not None:
            raise SystemExit(step.failed.report)
        return time.perf_counter() - start


async def least(turn: Callable[[], Awaitable[float]]) -> float:
    return min([await turn() for _ in range(TURNS)])


async def opened(*, warm: int, unsandboxed: bool = False) -> tuple[float, float]:
    """Return the seconds to a plain first result, and to one that needs pandas."""
    preload = ("numpy", "pandas") if warm else ()
    async with KernelPool(warm=warm, most=1, preload=preload, unsandboxed=unsandboxed) as pool:

        async def turn(cells: list[PythonCell]) -> float:
            while pool.waiting < warm:
                await asyncio.sleep(0.02)
            return await first_result(pool, cells)

        return await least(lambda: turn(PLAIN)), await least(lambda: turn(FIRST))


async def round_trip() -> float:
    async with KernelPool(warm=0) as pool, open_notebook(pool, CUTOFF) as session:

        async def turn() -> float:
            start = time.perf_counter()
            await session.run(PLAIN)
            return time.perf_counter() - start

        return await least(turn)


def shared_out(kernel: Kernel) -> float:
    """Return megabytes, with pages that several processes share divided among them."""
    pid = kernel._confined._process.pid
    return sum(map(fair_share, descendants(pid, most=100))) / 1e6


async def memory(preload: tuple[str, ...], count: int) -> str:
    async with KernelPool(warm=0, most=count, preload=preload) as pool:
        kernels = [await pool.take() for _ in range(count)]
        share = sum(map(shared_out, kernels)) / count
        return f"{kernels[0].memory / 1e6:5.0f} MB resident, {share:4.0f} MB each of {count} with shared pages divided"


async def main() -> None:
    start = min(bare() for _ in range(TURNS))
    print(f"a bare start of Python takes {start * 1000:.0f} ms; in units of it, to the first result of a notebook:")
    for name, options in {
        "cold": {"warm": 0},
        "cold, no sandbox": {"warm": 0, "unsandboxed": True},
        "warm": {"warm": 1},
    }.items():
        plain, first = await opened(**options)
        print(f"  {name:17} {plain / start:6.1f} plain {first / start:6.1f} with pandas")
    print(f"  {'one more cell':17} {await round_trip() / start:6.2f}")
    print(f"memory of a kernel: {await memory((), 4)}")
    print(f"  with numpy, pandas {await memory(('numpy', 'pandas'), 4)}")


if __name__ == "__main__":
    asyncio.run(main())
