"""Many cases asked side by side: a bounded number at once, in the order given, with progress."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from foretell.report.study import StudyProgress, ignore_progress

T = TypeVar("T")
R = TypeVar("R")
AT_ONCE = 50
"""Trials have a time limit that runs while they wait for a turn: more at once would only make them late."""


async def gather_bounded(
    cases: Sequence[T],
    work: Callable[[T], Awaitable[R]],
    progress: StudyProgress = ignore_progress,
    *,
    at_once: int = AT_ONCE,
) -> list[R]:
    """What `work` makes of every case, in their order. The first that raises stops all others."""
    turns, done = asyncio.Semaphore(at_once), 0
    progress(0, len(cases))

    async def one(case: T) -> R:
        nonlocal done
        async with turns:
            found = await work(case)
        done += 1
        progress(done, len(cases))
        return found

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(case)) for case in cases]
    except BaseExceptionGroup as broken:
        raise broken.exceptions[0] from None
    return [task.result() for task in tasks]
