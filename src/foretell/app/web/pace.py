"""How fast a run goes, from what was seen of it: the store keeps no clock times."""

import threading
from collections import deque

WINDOW = 600.0
"""Seconds that are looked back on."""
FEWEST = 3.0
"""Seconds that must have passed before a guess is made."""


class Pace:
    """Sightings of how many cells of each run were done, and when."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, int]]] = {}
        self._lock = threading.Lock()

    def left(self, run: str, *, done: int, total: int, now: float) -> float | None:
        """Seconds until the run is finished at the pace of the last minutes; None where that is not known yet.

        >>> pace = Pace()
        >>> pace.left("r", done=0, total=10, now=0.0), pace.left("r", done=2, total=10, now=20.0)
        (None, 80.0)
        """
        with self._lock:
            seen = self._seen.setdefault(run, deque())
            if not seen or seen[-1][1] != done:
                seen.append((now, done))
            while len(seen) > 2 and now - seen[0][0] > WINDOW:
                seen.popleft()
            began, at_first = seen[0]
        if done >= total:
            return 0.0
        gained, passed = done - at_first, now - began
        return (total - done) * passed / gained if gained > 0 and passed >= FEWEST else None
