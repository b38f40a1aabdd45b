"""The runs a worker has open: each with whatever answering its cells takes on this machine."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType

from foretell.arena.executor import Answer
from foretell.arena.store import RunRow, Store
from foretell.questions.problems import InputError

Furnish = Callable[[RunRow], AbstractAsyncContextManager[Answer]]
"""Surroundings for one run on this machine; an error where something is missing."""
IDLE = 60.0
"""Seconds without a cell after which a run's connections are closed."""


class OpenRun:
    """Used with `with` around every cell, so that it is not closed under it."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self._cells = 0
        self._last = time.monotonic()

    def __enter__(self) -> "OpenRun":
        """One cell more."""
        self._cells += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """One cell less."""
        self._cells -= 1
        self._last = time.monotonic()

    @property
    def idle(self) -> bool:
        """Whether nobody has used it for a while."""
        return not self._cells and time.monotonic() - self._last > IDLE


class OpenRuns:
    """Opens a run when its first cell comes, each in a task of its own, and closes it when no more do."""

    def __init__(self, store: Store, furnish: Furnish) -> None:
        self._store = store
        self._furnish = furnish
        self._ready: dict[str, asyncio.Future[OpenRun]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    async def get(self, run: str) -> OpenRun:
        """The open run; the same error for everybody where it cannot be opened."""
        if run not in self._ready:
            self._ready[run] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._keep_open(run, self._ready[run]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(self._ready[run])

    async def close(self) -> None:
        """Close all."""
        self._closing.set()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _keep_open(self, run: str, ready: asyncio.Future[OpenRun]) -> None:
        try:
            row = await self._store.aside(self._store.run, run)
            if row is None:
                raise InputError(f"there is no run {run} in this database")
            async with self._furnish(row) as answer:
                opened = OpenRun(answer)
                ready.set_result(opened)
                while not self._closing.is_set() and not opened.idle:
                    await self._a_while()
                self._ready.pop(run, None)
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)
            ready.exception()  # Nobody may be waiting any more.

    async def _a_while(self) -> None:
        try:
            async with asyncio.timeout(IDLE / 4):
                await self._closing.wait()
        except TimeoutError:
            return
