"""What every series from the web has in common: where it stands in time."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np

from foretell.questions.clock import AsOf
from foretell.questions.question import SeriesRef
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.series import Series, SeriesUnavailable


@dataclass(frozen=True, kw_only=True)
class FetchedSeries:
    """A series with its provenance."""

    series: Series
    vintage: date | None = None
    """The day whose state of knowledge this is; None where the provider keeps no such states."""
    revised: bool = False
    """Whether values may have been corrected after the cutoff: such a series is a small leak in a backtest."""


class WebSeries(ABC):
    """A provider of series. Whatever it reads, nothing after the cutoff comes out."""

    def __init__(self, *, http: AsyncHttpClient) -> None:
        self._http = http
        self._introduce(http)

    @abstractmethod
    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """The series as known at the cutoff, or `SeriesUnavailable`; `SourceError` where the server fails."""

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """The same without its provenance."""
        return (await self.fetch_with_provenance(ref, as_of)).series

    @abstractmethod
    def _introduce(self, http: AsyncHttpClient) -> None:
        """Tell the client the provider's pace, and what to hide."""


def known_series(ref: SeriesRef, values: Mapping[date, float], as_of: AsOf) -> Series:
    """Observations by day as a series that ends at the cutoff, or `SeriesUnavailable` if nothing is left."""
    days = sorted(values)
    series = Series(
        id=ref.id,
        days=np.array(days, dtype="M8[D]"),
        values=np.array([values[day] for day in days], dtype=np.float64),
    ).until(as_of)
    if not len(series):
        raise SeriesUnavailable(f"nothing of {ref.provider}/{ref.id} was known at {as_of}")
    return series
