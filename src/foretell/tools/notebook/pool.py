"""A pool of warm kernels, so that notebooks need not wait for one. Each kernel serves one notebook and is discarded."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import cache_from_source, find_spec
from pathlib import Path

from foretell.questions.errors import InputError
from foretell.tools.notebook.kernel import ExecutionEnd, Kernel
from foretell.tools.notebook.limits import KernelLimits, OutputCaps
from foretell.tools.notebook.process import sweep
from foretell.tools.notebook.sandbox import Sandbox, spare_user
from foretell.tools.notebook.sandbox_check import check_sandbox, require_linux, weaknesses

# Caches that a kernel would otherwise rebuild at every start: compiled modules and the list of fonts.
#
# A sandbox cannot write them to a shared place, so they are filled once outside: Python and matplotlib write their own
# caches when they are first used.

KERNEL_PACKAGES = ("ipykernel", "IPython", "pandas", "matplotlib")
IMPORTS = ("ipykernel.kernelapp", "pandas", "matplotlib.pyplot", "matplotlib_inline.backend_inline")
PATIENCE = 120.0


async def prepare_kernel_cache() -> Path | None:
    """Fill the caches as far as this user may write them; return the path of the font list, if there is one."""
    packages = [spec for name in KERNEL_PACKAGES if (spec := find_spec(name)) is not None]
    compiled = all(spec.origin is not None and Path(cache_from_source(spec.origin)).exists() for spec in packages)
    if not compiled or (find_spec("matplotlib") is not None and font_list() is None):
        # A failure here only makes kernels start more slowly.
        lines = "\n".join(f"try: import {name}\nexcept ImportError: pass" for name in IMPORTS)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-c", lines), stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, cwd="/"
        )
        try:
            async with asyncio.timeout(PATIENCE):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
    return font_list()


def font_list() -> Path | None:
    """Return the path of matplotlib's cached list of this machine's fonts, the newest if there are several."""
    own = os.environ.get("MPLCONFIGDIR")
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    glob = (Path(own) if own else Path(cache) / "matplotlib").glob("fontlist-*.json")
    return max(glob, key=lambda path: path.stat().st_mtime, default=None)


PRELOAD = ("numpy", "pandas")
UNSANDBOXED = "NO SANDBOX: this code ran with all the rights of the user who started it"


class KernelPool:
    """A pool of at most `most` working kernels, plus `warm` idle ones that have the usual libraries loaded.

    `async with KernelPool() as pool` tests the sandbox and raises if there is none. With `unsandboxed=True`, notebooks
    may do whatever the user may do, and every notebook carries a warning.
    """

    def __init__(
        self,
        *,
        warm: int = 2,
        most: int = 4,
        limits: KernelLimits | None = None,
        caps: OutputCaps | None = None,
        preload: Iterable[str] = PRELOAD,
        unsandboxed: bool = False,
    ) -> None:
        if warm < 0 or most < 1:
            raise InputError(f"a pool cannot have {warm} waiting and {most} working kernels")
        self.limits = limits or KernelLimits()
        self.caps = caps or OutputCaps()
        self._warm = warm
        self._preload = tuple(preload)
        self._unsandboxed = unsandboxed
        self._sandbox: Sandbox | None = None
        self._ready: deque[Kernel] = deque()
        self._working: set[Kernel] = set()
        self._places = asyncio.Semaphore(most)
        self._wanted = asyncio.Event()
        self._filling: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "KernelPool":
        require_linux()
        self._sandbox = None if self._unsandboxed else await check_sandbox(self.limits)
        await asyncio.to_thread(sweep)
        fonts = await prepare_kernel_cache()
        if self._sandbox is not None:
            self._sandbox = replace(self._sandbox, fonts=fonts)
        self._wanted.set()
        self._filling = asyncio.create_task(self._fill())
        return self

    async def __aexit__(self, *problem: object) -> None:
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.gather(self._filling, return_exceptions=True)
            self._filling = None
        await asyncio.gather(*(kernel.close() for kernel in (*self._ready, *self._working)))
        self._ready.clear()
        self._working.clear()

    @property
    def protection(self) -> dict[str, str]:
        """How its notebooks are confined, as recorded in each of them."""
        if self._sandbox is None:
            return {"sandbox": "none", "warning": UNSANDBOXED}
        lacking = "; ".join(weaknesses())
        return {"sandbox": "bubblewrap", **({"warning": lacking} if lacking else {})}

    @property
    def waiting(self) -> int:
        """The number of kernels that are ready."""
        return len(self._ready)

    async def take(self) -> Kernel:
        """Return an unused kernel as soon as there is room for one; pass it to `give_back` afterwards."""
        if self._filling is None:
            raise InputError("the pool is closed")
        await self._places.acquire()
        try:
            kernel = await self._fresh()
        except BaseException:
            self._places.release()
            raise
        return kernel

    async def give_back(self, kernel: Kernel) -> None:
        """Close a kernel and free its slot."""
        self._working.discard(kernel)
        try:
            await kernel.close()
        finally:
            self._places.release()

    async def exchange(self, dead: Kernel) -> Kernel:
        """Close a dead kernel and return a new one that takes over its slot."""
        self._working.discard(dead)
        await dead.close()
        return await self._fresh()

    async def _fresh(self) -> Kernel:
        kernel = None
        while kernel is None and self._ready:
            kernel = self._ready.popleft()
            if not kernel.alive:
                await kernel.close()
                kernel = None
        self._wanted.set()
        kernel = kernel or await self._started()
        self._working.add(kernel)
        return kernel

    async def _fill(self) -> None:
        """Keep the pool filled, one kernel at a time: starting several at once would slow down the working ones."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            while len(self._ready) < self._warm:
                try:
                    kernel = await self._started()
                except (InputError, OSError):
                    break  # `take` raises the error.
                self._ready.append(kernel)

    async def _started(self) -> Kernel:
        sandbox = self._sandbox and replace(self._sandbox, user=spare_user())
        kernel = await Kernel.start(sandbox, limits=self.limits, caps=self.caps)
        # Libraries are loaded without changing names, execution counts or outputs. Missing ones are ignored.
        lines = "\n".join(f"try: __import__({name!r})\nexcept ImportError: pass" for name in self._preload)
        try:
            async for event in kernel.execute(lines, seconds=self.limits.start_seconds, silent=True):
                if isinstance(event, ExecutionEnd) and event.how == "dead":
                    raise InputError(f"the libraries cannot be loaded: {event.reason}")
        except BaseException:
            await kernel.close()
            raise
        return kernel
