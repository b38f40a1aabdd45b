"""Chance that belongs to moments: a world can be given another future without a change to its past."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from foretell.fakes.exchange.settings import WorldSettings

Floats = npt.NDArray[np.float64]
HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Chance:
    """Draws by name and moment. What is drawn for a moment up to the turn never depends on what comes after it."""

    seed: int
    turn: float = math.inf
    """A Unix second."""
    other: int = 0

    @classmethod
    def of(cls, settings: WorldSettings) -> "Chance":
        """That of a world."""
        turn = math.inf if settings.turn is None else settings.turn.timestamp()
        return cls(seed=settings.seed, turn=turn, other=settings.other)

    def at(self, moment: float | datetime, *names: str | int) -> np.random.Generator:
        """A generator for what is decided at a moment."""
        second = moment.timestamp() if isinstance(moment, datetime) else moment
        return self._named(second > self.turn, *names)

    def moment(self, draw: Callable[[np.random.Generator], float | None], *names: str | int) -> float | None:
        """A Unix second to come, or None for never. A turn changes it only where both the old and the new lie after.

        >>> Chance(seed=1, turn=50.0, other=2).moment(lambda rng: 40.0, "end")
        40.0
        >>> Chance(seed=1, turn=50.0, other=2).moment(lambda rng: 40.0 if rng.random() < 0.5 else 60.0, "end")
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
        >>> one, other = Chance(seed=1), Chance(seed=1, turn=3600.0, other=5)
        >>> (one.hourly(hours, "x") == other.hourly(hours, "x")).tolist()
        [True, True, False, False]
        """
        past = self._drawn(len(hours), normal, self._named(False, *names))
        after = hours > self.turn
        if not after.any():
            return past
        return np.where(after, self._drawn(len(hours), normal, self._named(True, *names)), past)

    def _drawn(self, count: int, normal: bool, rng: np.random.Generator) -> Floats:
        return rng.standard_normal(count) if normal else rng.random(count)

    def _named(self, turned: bool, *names: str | int) -> np.random.Generator:
        world = f"{self.seed} turned {self.other}" if turned else str(self.seed)
        digest = blake2b("\0".join([world, *map(str, names)]).encode(), digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest, "big"))
