"""A time series as known at a cutoff, and the sources that supply series."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import date, timedelta
from math import ceil
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from foretell.data.day_cache import DayCache
from foretell.data.http import SourceError
from foretell.frozen import frozen
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef

Days = npt.NDArray[np.datetime64]
Values = npt.NDArray[np.float64]


class SeriesUnavailable(Exception):
    """The source has no such series, or nothing of it was known at the cutoff."""


class SeriesUnread(SeriesUnavailable):
    """The source may have the series, but it was not asked: its key is missing, or it failed too often."""


RECENT_STEPS = 60
"""Number of last values from which the usual interval of a series is measured."""


@frozen
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
            raise ValueError(f"series {self.id} has values that are not finite")
        if len(self.days) > 1 and not (np.diff(self.days) > np.timedelta64(0, "D")).all():
            raise ValueError(f"series {self.id}: days must increase, each once")

    def __len__(self) -> int:
        return len(self.days)

    def until(self, as_of: AsOf) -> "Series":
        """Return the part that was known at the cutoff."""
        known = int(np.searchsorted(self.days, _last_admitted_day(as_of), side="right"))
        return Series(id=self.id, days=self.days[:known], values=self.values[:known])

    @property
    def interval(self) -> float:
        """Usual number of days between its last values."""
        days = self.days[-RECENT_STEPS:].astype("M8[D]")
        return float(np.median(np.diff(days).astype(np.int64))) if len(days) > 1 else 1.0

    def at(self, day: np.datetime64 | date) -> float | None:
        """Return the last value on or before a day; None if there is none."""
        index = int(np.searchsorted(self.days, np.asarray(day, "M8[D]"), side="right")) - 1
        return float(self.values[index]) if index >= 0 else None


def _last_admitted_day(as_of: AsOf) -> np.datetime64:
    day = np.datetime64(as_of.at.date(), "D")
    return day if as_of.admits_day(as_of.at.date()) else day - np.timedelta64(1, "D")


class SeriesSource(Protocol):
    """Supplies series as of a cutoff. Returning anything later is a leak, so callers cut off again."""

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """Return the series as known at the cutoff, or raise `SeriesUnavailable`."""
        ...


# Series from the web: when they are published, and their provenance.


@frozen
class Publication:
    """How often a source publishes values, and how late.

    >>> sunday = date(2026, 11, 15)
    >>> Publication(weekdays=True).usual_age(sunday), Publication(monthly=True).usual_age(sunday)
    (2, 14)
    """

    interval: float = 1.0
    """Days between two publications."""
    delay: int = 1
    """Days from the day of a value to its publication."""
    weekdays: bool = False
    """Whether Saturdays and Sundays have no values."""
    monthly: bool = False
    """Whether values are published on the first day of a month and hold for the whole month."""

    def usual_age(self, due: date, interval: float | None = None) -> int:
        """Return how many days old the newest published value may be on a day.

        `interval` is that of the series itself. A longer period than usual is published after its end.
        """
        newest = due - timedelta(days=self.delay)
        if self.monthly:
            return (due - newest.replace(day=1)).days
        while self.weekdays and newest.weekday() > FRIDAY:
            newest -= timedelta(days=1)
        # The gap of a weekend is no longer period.
        own = self.interval if interval is None or interval <= max(self.interval, 3.0) else 2.0 * interval
        return (due - newest).days + ceil(own) - 1


FRIDAY = 4


@frozen
class FetchedSeries:
    """A series with its provenance."""

    series: Series
    vintage: date | None = None
    """Day whose state of knowledge this is; None if the provider keeps no vintages."""
    revised: bool = False
    """Whether values may have been corrected after the cutoff: such a series is a small leak in a backtest."""
    notes: tuple[str, ...] = ()
    """Notes for anyone who checks the numbers: rows that could not be read, how they were bounded."""


class WebSeries(ABC):
    """A provider of series. Whatever it reads, it returns nothing after the cutoff."""

    publication: ClassVar[Publication] = Publication()
    """When its values are published."""

    @abstractmethod
    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """Return the series as known at the cutoff, or raise `SeriesUnavailable`; `SourceError` if the server fails."""

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """Return the series without its provenance."""
        return (await self.fetch_with_provenance(ref, as_of)).series

    async def ahead(self, ref: SeriesRef, as_of: AsOf) -> tuple[str, ...]:
        """Return what was known at the cutoff about the days after it, as lines: forecasts, scheduled releases."""
        return ()


def series_of(id: str, values: Mapping[date, float]) -> Series:
    """Build a series from observations by day."""
    days = sorted(values)
    return Series(
        id=id,
        days=np.array(days, dtype="M8[D]"),
        values=np.array([values[day] for day in days], dtype=np.float64),
    )


def known_series(ref: SeriesRef, values: Mapping[date, float], as_of: AsOf) -> Series:
    """Build a series that ends at the cutoff from observations by day; raise `SeriesUnavailable` if it is empty."""
    series = series_of(ref.id, values).until(as_of)
    if not len(series):
        raise SeriesUnavailable(f"nothing of {ref.provider}/{ref.id} was known at {as_of}")
    return series


# One source of series for all providers.


class SeriesByProvider:
    """Finds the source by the provider's name."""

    def __init__(self, sources: Mapping[str, SeriesSource], daily: DayCache | None = None) -> None:
        """`daily` is where the sources store the responses of today."""
        self._sources = dict(sources)
        self._daily = daily

    def supplies(self, ref: SeriesRef) -> bool:
        """Whether a source for the provider is known."""
        return ref.provider in self._sources

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """Return the series as known at the cutoff."""
        return (await self.fetch_with_provenance(ref, as_of)).series

    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """Return the series with its vintage, if known; a local source is assumed to be a faithful record."""
        source = self._sources.get(ref.provider)
        if source is None:
            raise SeriesUnavailable(f"no source supplies {ref.provider}")
        if isinstance(source, WebSeries):
            with self._discarding():
                return await source.fetch_with_provenance(ref, as_of)
        return FetchedSeries(series=await source.fetch(ref, as_of))

    async def ahead(self, ref: SeriesRef, as_of: AsOf) -> tuple[str, ...]:
        """Return what the provider knew at the cutoff about the days after it."""
        source = self._sources.get(ref.provider)
        with self._discarding():
            return await source.ahead(ref, as_of) if isinstance(source, WebSeries) else ()

    def _discarding(self) -> AbstractContextManager[None]:
        """Discard the responses that cannot be read."""
        return nullcontext() if self._daily is None else self._daily.discarding(SourceError)


# Series in memory.


@frozen
class SeriesInMemory:
    """Returns series by id, whatever the provider."""

    series: Mapping[str, Series]

    def ids(self) -> tuple[str, ...]:
        """Return the known ids."""
        return tuple(self.series)

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """Return the series as known at the cutoff."""
        if ref.id not in self.series:
            raise SeriesUnavailable(f"no series is called {ref.id!r}")
        return self.series[ref.id].until(as_of)
