"""A time series as it was known at a cutoff, and whoever can supply one."""

from dataclasses import dataclass
from datetime import date
from typing import Protocol

import numpy as np
import numpy.typing as npt

from foretell.questions.clock import AsOf
from foretell.questions.question import SeriesRef

Days = npt.NDArray[np.datetime64]
Values = npt.NDArray[np.float64]


class SeriesUnavailable(Exception):
    """The source has no such series, or nothing of it was known at the cutoff."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """Observations by calendar day, oldest first, no gaps filled, no missing values.

    >>> s = Series(id="x", days=np.array(["2020-01-01", "2020-01-03"], "M8[D]"), values=np.array([1.0, 2.0]))
    >>> s.at(np.datetime64("2020-01-02")), len(s.until(AsOf.day("2020-01-02")))
    (1.0, 1)
    """

    id: str
    days: Days
    values: Values

    def __post_init__(self) -> None:
        if len(self.days) != len(self.values):
            raise ValueError(f"series {self.id}: {len(self.days)} days but {len(self.values)} values")
        if not np.isfinite(self.values).all():
            raise ValueError(f"series {self.id} holds values that are not finite")
        if len(self.days) > 1 and not (np.diff(self.days) > np.timedelta64(0, "D")).all():
            raise ValueError(f"series {self.id}: days must increase, each once")

    def __len__(self) -> int:
        return len(self.days)

    def until(self, as_of: AsOf) -> "Series":
        """What of it was known at the cutoff."""
        known = int(np.searchsorted(self.days, _last_admitted_day(as_of), side="right"))
        return Series(id=self.id, days=self.days[:known], values=self.values[:known])

    def at(self, day: np.datetime64 | date) -> float | None:
        """The last value on or before a day."""
        index = int(np.searchsorted(self.days, np.asarray(day, "M8[D]"), side="right")) - 1
        return float(self.values[index]) if index >= 0 else None


def _last_admitted_day(as_of: AsOf) -> np.datetime64:
    day = np.datetime64(as_of.at.date(), "D")
    return day if as_of.admits_day(as_of.at.date()) else day - np.timedelta64(1, "D")


class SeriesSource(Protocol):
    """Supplies series as of a cutoff. Returning anything later is a leak, so callers clamp again."""

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """The series as known at the cutoff, or `SeriesUnavailable`."""
        ...
