"""Simulated time in a file: whoever drives the simulation sets it, everybody else reads it."""

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from foretell.questions.clock import instant

Clock = Callable[[], datetime]


class FileClock:
    """The moment that a file holds, read anew at every call."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __call__(self) -> datetime:
        """The moment it is."""
        return instant(self.path.read_text(encoding="utf-8").strip())

    def set(self, at: datetime) -> None:
        """Make it another moment. Readers see the old one or the new one, never half of it."""
        new = self.path.with_name(f"{self.path.name}.new")
        new.write_text(instant(at).isoformat(), encoding="utf-8")
        os.replace(new, self.path)


def clock_of(given: str | Clock) -> Clock:
    """A clock from `file:PATH`, or the one that was given."""
    if not isinstance(given, str):
        return given
    kind, _, path = given.partition(":")
    if kind != "file" or not path:
        raise ValueError(f"{given!r} is no clock; write file:PATH")
    return FileClock(path)
