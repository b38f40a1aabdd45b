"""A source of time series."""

import numpy as np

from foretell.data.series.series import Series
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef


class ExampleSeries:
    """The numbers 0 to 9 on ten days of January 2025."""

    description = "ten numbers, for tests"

    def __init__(self, config: ServiceConfig) -> None:
        self._http = config.http

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        """Return the series as known at the cutoff."""
        days = np.datetime64("2025-01-01") + np.arange(10)
        return Series(id=ref.id, days=days, values=np.arange(10.0)).until(as_of)
