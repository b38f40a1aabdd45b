"""The event loop leaves the garbage collector as it found it, and errors come out of it as they were raised."""

import asyncio
import gc
import weakref

import pytest

from foretell.runs.event_loop import run_sync, runner


class Node:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


def test_objects_from_before_a_loop_can_be_freed_after_it() -> None:
    thresholds, node = gc.get_threshold(), Node()
    alive = weakref.ref(node)
    with runner() as loop:
        loop.run(asyncio.sleep(0))
    del node
    gc.collect()
    assert alive() is None
    assert gc.get_threshold() == thresholds


def test_an_error_comes_without_the_search_for_a_running_loop() -> None:
    async def fail() -> None:
        raise LookupError("nothing there")

    with pytest.raises(LookupError) as raised:
        run_sync(fail())
    assert raised.value.__context__ is None
