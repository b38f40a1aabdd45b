"""A time series as known at a cutoff, and the sources that supply series."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Protocol

import numpy as np
import numpy.typing as npt

from foretell.questions.as_of import AsOf
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
        """Return the part that was known at the cutoff."""
        known = int(np.searchsorted(self.days, _last_admitted_day(as_of), side="right"))
        return Series(id=self.id, days=self.days[:known], values=self.values[:known])

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


# What every series from the web has in common: where it stands in time.


@dataclass(frozen=True, kw_only=True)
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


# One source of series for all providers: each reference goes to whoever supplies it.


class SeriesByProvider:
    """Finds the source by the provider's name."""

    def __init__(self, sources: Mapping[str, SeriesSource]) -> None:
        self._sources = dict(sources)

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
            raise SeriesUnavailable(f"nobody here supplies {ref.provider}")
        if isinstance(source, WebSeries):
            return await source.fetch_with_provenance(ref, as_of)
        return FetchedSeries(series=await source.fetch(ref, as_of))

    async def ahead(self, ref: SeriesRef, as_of: AsOf) -> tuple[str, ...]:
        """Return what the provider knew at the cutoff about the days after it."""
        source = self._sources.get(ref.provider)
        return await source.ahead(ref, as_of) if isinstance(source, WebSeries) else ()


# Series that are already here.


@dataclass(frozen=True, kw_only=True)
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
