"""The journal around series that a forecaster reads without a tool: fetched once, the same in every replay."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from foretell.llm.canonical import content_key
from foretell.llm.journal import Journal
from foretell.questions.clock import AsOf
from foretell.questions.question import SeriesRef
from foretell.sources.http import SourceError
from foretell.sources.series import Series, SeriesSource, SeriesUnavailable


@dataclass(frozen=True, kw_only=True)
class KeptSeries:
    """A source of series whose answers, refusals among them, are in the journal before anyone sees them."""

    source: SeriesSource
    journal: Journal

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """The series as it was first read for this cutoff."""
        asked = ["series", ref.provider, ref.id, as_of.at.isoformat(), as_of.mode]

        async def produce() -> dict[str, Any]:
            try:
                found = await self.source.fetch(ref, as_of)
            except (SeriesUnavailable, SourceError) as error:
                return {"failed": str(error)}
            return {"id": found.id, "days": found.days.astype(str).tolist(), "values": found.values.tolist()}

        kept = await self.journal.once_json(content_key(asked), "series", produce)
        if "failed" in kept:
            raise SeriesUnavailable(kept["failed"])
        days = np.array(kept["days"], dtype="M8[D]")
        return Series(id=kept["id"], days=days, values=np.array(kept["values"], dtype=np.float64))
