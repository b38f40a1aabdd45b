"""The event loop of the application (uvloop if installed) and a garbage collector tuned for long runs."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


def runner() -> "asyncio.Runner":
    """An event loop for one or several coroutines, as a context manager; uvloop if it is installed."""
    # Thousands of messages in flight make every full collection slow and free nothing (measured: a tenth of the time).
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, on uvloop if it is installed."""
    with runner() as loop:
        return loop.run(main)


def run_sync(work: Coroutine[Any, Any, T], run: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run) -> T:
    """Run a coroutine and return its result, in a thread if a loop is already running, as in a notebook.

    >>> run_sync(asyncio.sleep(0, "done"))
    'done'
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run(work)
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(copy_context().run, run, work).result()
