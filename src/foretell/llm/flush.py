"""Getting what was written onto the disk without holding up the loop, once for everybody who waits."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


class Flush:
    """`await settled()` returns when everything written before the call is on the disk.

    Many waiters share one `fsync`, which runs in a thread. Whoever comes while one is running waits for the next: the
    running one may have started before their bytes were written.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal-flush")
        self._running: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}
        self._next: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}

    async def settled(self) -> None:
        """Wait for the disk."""
        loop = asyncio.get_running_loop()
        if loop not in self._next:
            self._next[loop] = loop.create_task(self._after(loop))
        # Shielded: one waiter that is cancelled must not take the others' flush with it.
        await asyncio.shield(self._next[loop])

    async def _after(self, loop: asyncio.AbstractEventLoop) -> None:
        running = self._running.get(loop)
        if running is not None and not running.done():
            await asyncio.wait([running])
        self._running[loop] = self._next.pop(loop)
        await loop.run_in_executor(self._thread, os.fsync, self._file)

    def close(self) -> None:
        """Finish what is running."""
        self._thread.shutdown()
        os.close(self._file)
