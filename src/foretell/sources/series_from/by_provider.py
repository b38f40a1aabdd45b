"""One source of series for all providers: each reference goes to whoever supplies it."""

from collections.abc import Mapping

from foretell.questions.clock import AsOf
from foretell.questions.question import SeriesRef
from foretell.sources.series import Series, SeriesSource, SeriesUnavailable
from foretell.sources.series_from.fetched import FetchedSeries, WebSeries


class ByProvider:
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
