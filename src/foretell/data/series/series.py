"""A time series as it was known at a cutoff, and whoever can supply one."""

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


# What every series from the web has in common: where it stands in time.


@dataclass(frozen=True, kw_only=True)
class FetchedSeries:
    """A series with its provenance."""

    series: Series
    vintage: date | None = None
    """The day whose state of knowledge this is; None where the provider keeps no such states."""
    revised: bool = False
    """Whether values may have been corrected after the cutoff: such a series is a small leak in a backtest."""
    notes: tuple[str, ...] = ()
    """What somebody who checks the numbers should know: rows that could not be read, how they were bounded."""


class WebSeries(ABC):
    """A provider of series. Whatever it reads, nothing after the cutoff comes out."""

    @abstractmethod
    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """The series as known at the cutoff, or `SeriesUnavailable`; `SourceError` where the server fails."""

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """The same without its provenance."""
        return (await self.fetch_with_provenance(ref, as_of)).series

    async def ahead(self, ref: SeriesRef, as_of: AsOf) -> tuple[str, ...]:
        """What was known at the cutoff about the days after it, in lines: forecasts, scheduled releases."""
        return ()


def series_of(id: str, values: Mapping[date, float]) -> Series:
    """Observations by day as a series."""
    days = sorted(values)
    return Series(
        id=id,
        days=np.array(days, dtype="M8[D]"),
        values=np.array([values[day] for day in days], dtype=np.float64),
    )


def known_series(ref: SeriesRef, values: Mapping[date, float], as_of: AsOf) -> Series:
    """Observations by day as a series that ends at the cutoff, or `SeriesUnavailable` if nothing is left."""
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
        """Whether anybody here knows the provider."""
        return ref.provider in self._sources

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """The series as known at the cutoff."""
        return (await self.fetch_with_provenance(ref, as_of)).series

    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """The same with what is known of its vintage; a local source is taken for a faithful record."""
        source = self._sources.get(ref.provider)
        if source is None:
            raise SeriesUnavailable(f"nobody here supplies {ref.provider}")
        if isinstance(source, WebSeries):
            return await source.fetch_with_provenance(ref, as_of)
        return FetchedSeries(series=await source.fetch(ref, as_of))

    async def ahead(self, ref: SeriesRef, as_of: AsOf) -> tuple[str, ...]:
        """What the provider knew at the cutoff about the days after it."""
        source = self._sources.get(ref.provider)
        return await source.ahead(ref, as_of) if isinstance(source, WebSeries) else ()


# Series that are already here.


@dataclass(frozen=True, kw_only=True)
class SeriesInMemory:
    """Hands out series by id, whatever provider is asked for."""

    series: Mapping[str, Series]

    def ids(self) -> tuple[str, ...]:
        """The ids it knows."""
        return tuple(self.series)

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """The series as known at the cutoff."""
        if ref.id not in self.series:
            raise SeriesUnavailable(f"no series is called {ref.id!r}")
        return self.series[ref.id].until(as_of)
