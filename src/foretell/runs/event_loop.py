"""How this application waits: the fastest event loop at hand, and a garbage collector that leaves long runs alone."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def runner() -> "asyncio.Runner":
    """A loop for one or several pieces of work, to be used in a `with` block; on uvloop where it is installed."""
    # Thousands of messages in flight make every full collection slow and free nothing (measured: a tenth of the time).
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, on uvloop where it is installed."""
    with runner() as loop:
        return loop.run(main)


def run_sync(work: Coroutine[Any, Any, T], run: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run) -> T:
    """The result. Where a loop is running already, as in a notebook, the work gets a thread and a loop of its own.

    >>> run_sync(asyncio.sleep(0, "done"))
    'done'
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run(work)
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(run, work).result()
