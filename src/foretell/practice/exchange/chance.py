"""Chance that belongs to moments: a world can be given another future without a change to its past."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from foretell.questions.as_of import UtcDatetime, instant

# What decides a simulated world.

START = instant("2027-03-01")
"""A Monday."""


@dataclass(frozen=True, kw_only=True)
class SimulationSettings:
    """The same settings make the same world."""

    seed: int = 0
    start: UtcDatetime = START
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
    turn: UtcDatetime | None = None
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
    def begins(self) -> UtcDatetime:
        """When the first events are announced."""
        return self.start - timedelta(days=self.warm_up)

    @property
    def ends(self) -> UtcDatetime:
        """When the last events are announced."""
        return self.start + timedelta(days=self.days)


Floats = npt.NDArray[np.float64]
HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class SeededChance:
    """Draws by name and moment. What is drawn for a moment up to the turn never depends on what comes after it."""

    seed: int
    turn: float = math.inf
    """A Unix second."""
    other: int = 0

    @classmethod
    def of(cls, settings: SimulationSettings) -> "SeededChance":
        """That of a world."""
        turn = math.inf if settings.turn is None else settings.turn.timestamp()
        return cls(seed=settings.seed, turn=turn, other=settings.other)

    def at(self, moment: float | datetime, *names: str | int) -> np.random.Generator:
        """A generator for what is decided at a moment."""
        second = moment.timestamp() if isinstance(moment, datetime) else moment
        return self._named(second > self.turn, *names)

    def moment(self, draw: Callable[[np.random.Generator], float | None], *names: str | int) -> float | None:
        """A Unix second to come, or None for never. A turn changes it only where both the old and the new lie after.

        >>> SeededChance(seed=1, turn=50.0, other=2).moment(lambda rng: 40.0, "end")
        40.0
        >>> SeededChance(seed=1, turn=50.0, other=2).moment(lambda rng: 40.0 if rng.random() < 0.5 else 60.0, "end")
        60.0
        """
        past = draw(self._named(False, *names))
        if math.isinf(self.turn) or (past is not None and past <= self.turn):
            return past
        future = draw(self._named(True, *names))
        return future if future is not None and future > self.turn else None

    def hourly(self, hours: Floats, *names: str | int, normal: bool = True) -> Floats:
        """One number for each hour, given as Unix seconds in rising order; standard normal, else from 0 to 1.

        >>> hours = 3600.0 * np.arange(4)
        >>> one, other = SeededChance(seed=1), SeededChance(seed=1, turn=3600.0, other=5)
        >>> (one.hourly(hours, "x") == other.hourly(hours, "x")).tolist()
        [True, True, False, False]
        """

        def draw(turned: bool) -> Floats:
            rng = self._named(turned, *names)
            return rng.standard_normal(len(hours)) if normal else rng.random(len(hours))

        after = hours > self.turn
        return np.where(after, draw(True), draw(False)) if after.any() else draw(False)

    def _named(self, turned: bool, *names: str | int) -> np.random.Generator:
        world = f"{self.seed} turned {self.other}" if turned else str(self.seed)
        digest = blake2b("\0".join([world, *map(str, names)]).encode(), digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest, "big"))


# The hidden truth: probabilities that follow what is known so far, and end in 0 or 1.
#
# What decides an event is a Gaussian walk W that runs from 0 to 1 in *information time* τ. At τ the walk's past is
# known and its rest is not, so that the probability of every outcome is exact, is a martingale, and is what an ideal
# forecaster would say. At τ = 1 it is 0 or 1.

NODES = 60
"""Of the quadrature; the error is below 1e-6 for races of up to a dozen."""
SURE = 1e-12
"""Information left, below which everything is decided."""


def above(walk: Floats, left: Floats, thresholds: Floats) -> Floats:
    """P(end > k) for every threshold k: Φ((w − k) / √left), one row for each threshold.

    >>> above(np.array([0.0, 0.5]), np.array([1.0, 0.0]), np.array([0.0, 1.0])).round(3).tolist()
    [[0.5, 1.0], [0.159, 0.0]]
    """
    from scipy.special import ndtr

    distance = walk[None, :] - thresholds[:, None]
    spread = np.sqrt(np.maximum(left, SURE))[None, :]
    return np.where(left[None, :] > SURE, ndtr(distance / spread), (distance > 0).astype(np.float64))


def first(walks: Floats, left: Floats) -> Floats:
    """P(i ends first) for walks that go on independently: ∫ φ(x) ∏ Φ(x + (w_i − w_j)/√left) dx, a row for each walk.

    >>> first(np.array([[0.0], [0.0], [0.0]]), np.array([1.0])).round(4).ravel().tolist()
    [0.3333, 0.3333, 0.3333]
    """
    from scipy.special import ndtr

    nodes, weights = _normal_nodes()
    spread = np.sqrt(np.maximum(left, SURE))
    gaps = (walks[:, None, :] - walks[None, :, :]) / spread
    beats = ndtr(nodes[:, None, None, None] + gaps)
    own = np.arange(len(walks))
    beats[:, own, own, :] = 1.0
    p = np.einsum("k,kit->it", weights, beats.prod(axis=2))
    decided = (walks == walks.max(axis=0)).astype(np.float64)
    return np.where(left > SURE, p / p.sum(axis=0), decided)


@cache
def _normal_nodes() -> tuple[Floats, Floats]:
    """Places and weights of the Gauss rule for a standard normal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return np.asarray(nodes, dtype=np.float64), np.asarray(weights / weights.sum(), dtype=np.float64)


def logit(p: Floats, edge: float = 0.004) -> Floats:
    """ln(p / (1 − p)), with p kept away from 0 and 1."""
    inside = np.clip(p, edge, 1 - edge)
    return np.log(inside / (1 - inside))
