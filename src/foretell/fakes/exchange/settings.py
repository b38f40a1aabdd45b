"""What decides a simulated world."""

from dataclasses import dataclass
from datetime import timedelta

from foretell.questions.clock import Moment, instant

START = instant("2027-03-01")
"""A Monday."""


@dataclass(frozen=True, kw_only=True)
class WorldSettings:
    """The same settings make the same world."""

    seed: int = 0
    start: Moment = START
    days: int = 30
    """How long new events keep opening after the start."""
    warm_up: int = 12
    """Days before the start during which events opened already: the first listing is not empty."""
    events_per_day: float = 20.0
    longest: float = 12.0
    """Days that the longest events are open."""
    void: float = 0.02
    """Share of events that are called off."""
    early: float = 0.08
    """Share of events whose answer is known before the announced close."""
    thin: float = 0.12
    """Share of events that hardly anybody trades."""
    turn: Moment | None = None
    """From here on chance is drawn anew, from `other`: the same past with another future."""
    other: int = 0

    def __post_init__(self) -> None:
        for name in ("start", "turn"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, instant(getattr(self, name)))
        if self.days < 1 or self.warm_up < 0 or self.events_per_day <= 0 or self.longest < 1:
            raise ValueError("a world needs at least one day, some events a day, and room for them to be open")
        if not all(0 <= share <= 1 for share in (self.void, self.early, self.thin)):
            raise ValueError("void, early and thin are shares from 0 to 1")

    @property
    def begins(self) -> Moment:
        """When the first events are announced."""
        return self.start - timedelta(days=self.warm_up)

    @property
    def ends(self) -> Moment:
        """When the last events are announced."""
        return self.start + timedelta(days=self.days)
