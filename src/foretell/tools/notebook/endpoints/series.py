"""Time series of any provider, as they were known at the cutoff."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from foretell.questions.clock import AsOf
from foretell.questions.event import Emit, LeakBlocked, ignore
from foretell.questions.question import SeriesRef
from foretell.sources.http import SourceError
from foretell.sources.series import Series, SeriesSource, SeriesUnavailable
from foretell.sources.series_from.fetched import FetchedSeries
from foretell.tools.clamp import clamp_series
from foretell.tools.notebook.endpoint import EndpointFailed, Parameter
from foretell.tools.refusal import Refusal, Refused
from foretell.tools.series import WithProvenance

MOST = 20_000


@dataclass(frozen=True, kw_only=True)
class SeriesObservations:
    """Reads series. Those corrected after the cutoff are refused in a backtest, as everywhere."""

    source: WithProvenance | SeriesSource
    """A source without provenance counts as one whose values may have been corrected."""
    providers: Mapping[str, str]
    """Who can be asked, and a line on what they have and how they name it."""
    allow_revised: frozenset[str] = frozenset()
    """Providers whose values may have been corrected since, and are read nevertheless."""
    emit: Emit = ignore

    path = "/series/observations"

    @property
    def documentation(self) -> str:
        """As shown to the notebook."""
        known = "\n".join(f"  {name}: {line}" for name, line in self.providers.items())
        return (
            "Observations of an economic or financial time series, by day, oldest first.\n"
            f"Providers:\n{known}\n"
            'Answer: {"provider", "id", "rows": [{"date": "2025-10-24", "value": 4.02}, …]}; to_frame(answer) makes a '
            f"table of it. At most the newest {MOST:,} observations."
        )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What it takes."""
        return (
            Parameter(name="provider", meaning=f"one of {', '.join(self.providers)}", needed=True),
            Parameter(name="id", meaning="the provider's name of the series", needed=True),
            Parameter(name="start", meaning="first day", kind="date"),
            Parameter(name="end", meaning="last day", kind="date"),
        )

    async def call(self, params: Mapping[str, Any], as_of: AsOf) -> dict[str, Any]:
        """What of the series was known."""
        if params["provider"] not in self.providers:
            raise EndpointFailed(f"there is no provider {params['provider']!r}; providers: {', '.join(self.providers)}")
        ref = SeriesRef(provider=params["provider"], id=params["id"])
        try:
            fetched = await self._fetch(ref, as_of)
        except (SeriesUnavailable, SourceError) as error:
            raise EndpointFailed(f"the series cannot be read: {error}") from error
        if fetched.revised and as_of.mode == "backtest" and ref.provider not in self.allow_revised:
            raise Refused(
                "this series is only known as corrected later, so it is closed here",
                Refusal(layer="data", reason=f"{ref.provider}/{ref.id} may hold values corrected after the cutoff"),
            )
        known = self._clamped(ref, fetched.series, as_of)
        return {"provider": ref.provider, "id": ref.id, "rows": _rows(known, params.get("start"), params.get("end"))}

    async def _fetch(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        if isinstance(self.source, WithProvenance):
            return await self.source.fetch_with_provenance(ref, as_of)
        return FetchedSeries(series=await self.source.fetch(ref, as_of), revised=True)

    def _clamped(self, ref: SeriesRef, series: Series, as_of: AsOf) -> Series:
        known, late = clamp_series(series, as_of)
        if late:
            name = f"{ref.provider}/{ref.id}"
            self.emit(LeakBlocked(layer="data", reason=f"{late} points of {name} after the cutoff", title=name))
        if not len(known):
            raise EndpointFailed("nothing of the series was known at the cutoff")
        return known


def _rows(series: Series, start: date | None, end: date | None) -> list[dict[str, Any]]:
    first = 0 if start is None else int(np.searchsorted(series.days, np.datetime64(start, "D")))
    last = len(series) if end is None else int(np.searchsorted(series.days, np.datetime64(end, "D"), side="right"))
    days = series.days[first:last][-MOST:].astype(str).tolist()
    values = series.values[first:last][-MOST:].tolist()
    return [{"date": day, "value": value} for day, value in zip(days, values, strict=True)]
