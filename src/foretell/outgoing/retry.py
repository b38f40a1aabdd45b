"""When a failed request is retried. Readers of data and models share this rule."""

import random
from math import inf

from foretell.frozen import frozen

_TOO_EARLY = frozenset({408, 425, 429})
"""The server timed out, is not ready yet, or got too many requests."""


def may_pass(status: int) -> bool:
    """Return whether a retry may succeed, because the server or a proxy was busy or failed.

    >>> [status for status in (400, 404, 408, 409, 425, 429, 500, 503, 529) if may_pass(status)]
    [408, 425, 429, 500, 503, 529]
    """
    return status in _TOO_EARLY or status >= 500


@frozen
class RetryRule:
    """How often a request is sent, and how long to wait between two attempts.

    >>> rule = RetryRule(attempts=4, first_pause=1.0, longest_pause=3.0, longest_wait=10.0)
    >>> [rule.doubled(attempt) for attempt in (1, 2, 3)]
    [1.0, 2.0, 3.0]
    >>> rule.pause(4), rule.pause(1, asked=20.0), rule.pause(1, asked=0.0)
    (None, None, 0.0)
    """

    attempts: int = 5
    first_pause: float = 0.5
    """Seconds; doubles with every attempt. Each pause is drawn between half of it and all of it."""
    longest_pause: float = 60.0
    longest_wait: float = inf
    """Longest wait that a server may ask for; if it is longer, there is no further attempt."""

    def doubled(self, attempt: int) -> float:
        """Return the longest pause after this many attempts, if the server asks for none."""
        # Bounded, because a large power of two does not fit a float.
        return min(self.longest_pause, self.first_pause * 2.0 ** min(attempt - 1, 1000))

    def pause(
        self, attempt: int, *, asked: float | None = None, left: float = inf, rng: random.Random | None = None
    ) -> float | None:
        """Return the seconds until the next attempt; None if this was the last one.

        Args:
            attempt: How many attempts there were.
            asked: Seconds that the server asked us to wait.
            left: Seconds left for all further attempts with their pauses.
            rng: Draws the jitter, so that clients that failed together do not retry together.
        """
        draw = (rng or random).uniform
        if asked is None:
            pause = self.doubled(attempt) * draw(0.5, 1.0)
        else:
            pause = asked + draw(0, self.first_pause) if asked else 0.0
        over = attempt >= self.attempts or (asked or 0.0) > self.longest_wait or pause >= left
        return None if over else pause
