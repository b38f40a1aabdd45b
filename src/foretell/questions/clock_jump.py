"""Detects when a machine's clock is set back or forward while a program runs.

Waiting uses a clock that nobody can set. The wall clock is only data: a date on a forecast.
"""

import time
from dataclasses import dataclass
from datetime import timedelta

TOLERANCE = 5.0
"""Seconds by which two clocks may differ."""
DRIFT = 1e-3
"""Tolerance as a share of the time passed: a clock that runs slightly fast or slow was not set."""
_COUNTS_SLEEP = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def steady_seconds() -> float:
    """Seconds since this machine was started, awake or asleep; the same in all processes, and nobody can set it."""
    return time.monotonic() if _COUNTS_SLEEP is None else time.clock_gettime(_COUNTS_SLEEP)


@dataclass(frozen=True)
class ClockReading:
    """Both clocks at one moment."""

    wall: float
    """Seconds since 1970 on the wall clock."""
    steady: float

    @classmethod
    def now(cls) -> "ClockReading":
        """Read both clocks now."""
        return cls(time.time(), steady_seconds())

    def jump_to(self, later: "ClockReading") -> float:
        """Seconds that the wall clock was set forward (or, negative, back) between two readings; 0 where it was not.

        Over a restart nobody knows how long the machine was off, so only a clock set back is seen.

        >>> ClockReading(1000.0, 10.0).jump_to(ClockReading(1060.0, 70.0))
        0.0
        >>> ClockReading(90_000.0, 10.0).jump_to(ClockReading(3660.0, 70.0))
        -86400.0
        """
        went, passed = later.wall - self.wall, later.steady - self.steady
        if passed < 0:
            return min(0.0, went)
        jump = went - passed
        return jump if abs(jump) > max(TOLERANCE, DRIFT * passed) else 0.0


def jump_text(jump: float) -> str:
    """The jump in words.

    >>> jump_text(-86_400.0)
    "this machine's clock was set back by 1 day, 0:00:00"
    """
    way = "back" if jump < 0 else "forward"
    return f"this machine's clock was set {way} by {timedelta(seconds=round(abs(jump)))}"
