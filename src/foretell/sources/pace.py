"""How fast a server may be asked: so many requests a second, with a little allowance for bursts."""

import asyncio
import time
from collections.abc import Callable


class Pace:
    """A token bucket. Callers are let through in the order they came; nobody spins while waiting.

    >>> now = [0.0]
    >>> pace = Pace(per_second=2.0, burst=2, clock=lambda: now[0])
    >>> [pace.reserve() for _ in range(4)]
    [0.0, 0.0, 0.5, 1.0]
    """

    def __init__(self, *, per_second: float, burst: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError("per_second must be positive and burst at least 1")
        self._gap = 1.0 / per_second
        self._slack = (burst - 1) * self._gap
        self._clock = clock
        self._next = float("-inf")

    def reserve(self) -> float:
        """Take the next free place and return the seconds until it."""
        now = self._clock()
        place = max(self._next, now - self._slack)
        self._next = place + self._gap
        return max(0.0, place - now)

    async def wait(self) -> None:
        """Return when it is this caller's turn."""
        if (seconds := self.reserve()) > 0:
            await asyncio.sleep(seconds)
