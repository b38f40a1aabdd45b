"""Several jobs at once, none of them left behind."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def side_by_side(jobs: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What the jobs come to, in their order; where one fails for good, the others are given up."""
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        return [await task for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
