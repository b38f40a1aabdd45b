"""How fast a provider may be asked: so many requests and tokens in any minute."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

WINDOW = 60.0
BURST = 5.0
"""Seconds' worth of the limit that may pass at once."""


class Bucket:
    """At most `limit` units in any 60 seconds, handed out in the order of asking.

    A bucket that starts full lets a burst and a minute's refill through together; refilling a little more slowly than
    the limit keeps the two within it. Only one who takes more at once than a burst may exceed it, by the difference.

    >>> bucket = Bucket(60, clock=lambda: 0.0)
    >>> [round(bucket.take(1), 2) for _ in range(7)]
    [0.0, 0.0, 0.0, 0.0, 0.0, 1.09, 2.18]
    """

    def __init__(self, limit: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._room = max(1.0, limit * BURST / WINDOW)
        # Units handed out one by one at even distances need no allowance for a burst.
        self._rate = (limit - self._room if self._room > 1 else limit) / WINDOW
        self._level = self._room
        self._clock = clock
        self._seen = clock()

    def take(self, amount: float) -> float:
        """Take units, on credit if need be; the seconds to wait before using them."""
        now = self._clock()
        self._level = min(self._room, self._level + (now - self._seen) * self._rate) - amount
        self._seen = now
        return max(0.0, -self._level / self._rate)

    def give_back(self, amount: float) -> None:
        """Return units that were not used; a negative amount takes more without waiting."""
        self._level = min(self._room, self._level + amount)


class Pace(Protocol):
    """Says when the next request may leave. One per provider; a limiter shared by many machines fits here too."""

    async def turn(self, tokens: int) -> None:
        """Wait until a request of about so many tokens may leave."""
        ...

    def used(self, estimate: int, actual: int) -> None:
        """Correct the estimate."""
        ...

    def hold(self, seconds: float) -> None:
        """The provider asked for a pause: nobody leaves before it is over."""
        ...


class LocalPace:
    """The pace within one process."""

    def __init__(self, *, requests: float | None = None, tokens: float | None = None) -> None:
        """Limits per minute; None for none."""
        self._requests = Bucket(requests) if requests else None
        self._tokens = Bucket(tokens) if tokens else None
        self._closed_until = 0.0

    async def turn(self, tokens: int) -> None:
        """Wait for both buckets, then for the end of a pause."""
        wait = self._requests.take(1) if self._requests else 0.0
        if self._tokens:
            wait = max(wait, self._tokens.take(tokens))
        if wait > 0:
            await asyncio.sleep(wait)
        while (closed := self._closed_until - time.monotonic()) > 0:
            await asyncio.sleep(closed)

    def used(self, estimate: int, actual: int) -> None:
        """Give back what was not needed."""
        if self._tokens:
            self._tokens.give_back(estimate - actual)

    def hold(self, seconds: float) -> None:
        """Pause everybody."""
        self._closed_until = max(self._closed_until, time.monotonic() + seconds)
