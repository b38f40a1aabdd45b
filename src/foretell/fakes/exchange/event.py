"""An event of the simulated world, from its announcement to its settlement."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import numpy as np

from foretell.fakes.exchange.chance import HOUR, Chance, Floats
from foretell.fakes.exchange.latent import above, first
from foretell.fakes.exchange.subjects import Kind


@dataclass(frozen=True, kw_only=True)
class Life:
    """The moments of an event, as Unix seconds on whole hours."""

    announced: int
    opens: int
    closes: int
    """As announced."""
    known: int
    """When the answer is out: after the close, or before it where it became known early."""
    determined: int
    finalized: int
    void: bool = False

    @property
    def early(self) -> bool:
        """Whether the answer was out before the announced close."""
        return self.known < self.closes

    @property
    def ends(self) -> int:
        """When trading ended in fact."""
        return min(self.known, self.closes)


@dataclass(frozen=True, kw_only=True)
class Wording:
    """How an event is spoken of."""

    title: str
    topic: str
    claim: str
    unit: str
    category: str
    period: str = ""


@dataclass(frozen=True, kw_only=True)
class SimEvent:
    """One event with its markets. Only the world may look at its walk."""

    number: int
    kind: Kind
    ticker: str
    series: str
    words: Wording
    labels: tuple[str, ...]
    tickers: tuple[str, ...]
    rules: tuple[str, ...]
    life: Life
    starts: tuple[float, ...]
    """Where the walks begin: one for each runner of a race, else a single one."""
    thresholds: tuple[float, ...]
    """That a single walk must end above, one for each market."""
    level: float = 0.0
    move: float = 1.0
    """A quantity stands at level + move · walk."""
    before_close: float = 0.9
    """Share of all information that comes out before the announced close; the rest comes with the answer."""
    traded: float = 10_000.0
    """Contracts of a typical market until the close."""
    thin: bool = False
    chance: Chance

    @property
    def exclusive(self) -> bool:
        """Exactly one market comes true."""
        return self.kind == "race"

    @cached_property
    def hours(self) -> Floats:
        """Unix seconds from the opening to the answer, hour by hour."""
        return np.arange(self.life.opens, self.life.known + 1, HOUR, dtype=np.float64)

    @cached_property
    def informed(self) -> Floats:
        """Information time at every hour."""
        share = (self.hours - self.life.opens) / max(self.life.closes - self.life.opens, 1)
        return np.where(self.hours >= self.life.known, 1.0, self.before_close * np.minimum(share, 1.0))

    @cached_property
    def walks(self) -> Floats:
        """What decides it, at every hour: a row for each walk."""
        steps = np.sqrt(np.diff(self.informed, prepend=0.0))
        drawn = [self.chance.hourly(self.hours, self.number, "walk", row) for row in range(len(self.starts))]
        return np.array(self.starts)[:, None] + np.cumsum(steps * np.array(drawn), axis=1)

    @cached_property
    def p(self) -> Floats:
        """What an ideal forecaster says at every hour: a row for each market. The last column is the answer."""
        left = 1.0 - self.informed
        if self.kind == "race":
            return first(self.walks, left)
        return above(self.walks[0], left, np.array(self.thresholds))

    @cached_property
    def quantity(self) -> Floats:
        """What a ladder is about, at every hour."""
        return self.level + self.move * self.walks[0]

    @property
    def outcomes(self) -> tuple[int, ...]:
        """How its markets come out, if they are not called off."""
        return tuple(int(p) for p in self.p[:, -1])

    def place(self, second: float) -> int:
        """The hour that stands for a moment: the last one not later, at least the first."""
        return int(np.clip((second - self.life.opens) // HOUR, 0, len(self.hours) - 1))


def moment(second: float) -> datetime:
    """A Unix second as a moment."""
    return datetime.fromtimestamp(second, UTC)
