"""Detects when a machine's clock is set back or forward while a program runs.

Waiting uses a steady clock that cannot be set. The wall clock is only used for dates.
"""

import time
from datetime import timedelta

from foretell.frozen import frozen

TOLERANCE = 5.0
"""Seconds by which two clocks may differ."""
DRIFT = 1e-3
"""Tolerance as a share of the time passed, for clocks that run slightly fast or slow."""
_COUNTS_SLEEP = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def steady_seconds() -> float:
    """Return seconds since this machine was started, including sleep. All processes share this clock."""
    return time.monotonic() if _COUNTS_SLEEP is None else time.clock_gettime(_COUNTS_SLEEP)


@frozen(kw_only=False)
class ClockReading:
    """Both clocks at one time."""

    wall: float
    """Seconds since 1970 on the wall clock."""
    steady: float

    @classmethod
    def now(cls) -> "ClockReading":
        """Read both clocks now."""
        return cls(time.time(), steady_seconds())

    def jump_to(self, later: "ClockReading") -> float:
        """Return the seconds by which the wall clock was set between two readings, negative if it was set back.

        Across a restart the time off is unknown, so only a clock that was set back is detected.

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
    """Describe a jump.

    >>> jump_text(-86_400.0)
    "this machine's clock was set back by 1 day, 0:00:00"
    """
    way = "back" if jump < 0 else "forward"
    return f"this machine's clock was set {way} by {timedelta(seconds=round(abs(jump)))}"
