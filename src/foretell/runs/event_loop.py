"""The event loop of the application (uvloop if installed) and a garbage collector tuned for long runs."""

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that ask a process to end."""


@contextmanager
def runner() -> Generator[asyncio.Runner]:
    """Yield an event loop for one or several coroutines. It is uvloop if that is installed."""
    # With thousands of messages in flight, a full collection is slow and frees nothing (measured: 10 % of the time).
    thresholds = gc.get_threshold()
    gc.set_threshold(100_000, 50, 100)
    try:
        import uvloop

        factory = uvloop.new_event_loop
    except ImportError:
        factory = None
    try:
        with asyncio.Runner(loop_factory=factory) as loop:
            yield loop
    finally:
        gc.set_threshold(*thresholds)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, on uvloop if it is installed."""
    with runner() as loop:
        return loop.run(main)


def run_sync(work: Coroutine[Any, Any, T], run: Callable[[Coroutine[Any, Any, T]], T] = asyncio.run) -> T:
    """Run a coroutine and return its result, in a thread if a loop is already running, as in a notebook.

    >>> run_sync(asyncio.sleep(0, "done"))
    'done'
    """
    if not _in_event_loop():
        return run(work)
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(copy_context().run, run, work).result()


def _in_event_loop() -> bool:
    # A function of its own: what `run` raised within `except` would show "no running event loop" above its traceback.
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def on_signals(stop: Callable[[], None]) -> None:
    """Call a function when the process receives SIGINT or SIGTERM."""
    for sign in SIGNALS:
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(sign, stop)
