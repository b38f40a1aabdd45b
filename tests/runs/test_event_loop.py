"""The event loop leaves the garbage collector as it found it."""

import asyncio
import gc
import weakref

from foretell.runs.event_loop import runner


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
