"""Series that are already here."""

from collections.abc import Mapping
from dataclasses import dataclass

from foretell.questions.clock import AsOf
from foretell.questions.question import SeriesRef
from foretell.sources.series import Series, SeriesUnavailable


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
