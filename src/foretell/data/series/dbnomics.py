"""DBnomics series. There are no vintages, so a value counts as known only some time after its period ended."""

from calendar import monthrange
from collections.abc import Mapping
from datetime import date, timedelta
from urllib.parse import quote

from foretell.data.http import NotFound
from foretell.data.payload import Payload, readable
from foretell.data.series.series import FetchedSeries, SeriesUnavailable, WebSeries, known_series
from foretell.data.service import JsonService, ServiceConfig
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef

HOST = "https://api.db.nomics.world/v22"
MISSING = "NA"
DAYS_IN = {"daily": 1, "weekly": 7}
MONTHS_IN = {"monthly": 1, "bi-monthly": 2, "quarterly": 3, "bi-annual": 6, "annual": 12}
LAGS: Mapping[str, int] = {
    "daily": 1,
    "weekly": 7,
    "monthly": 45,
    "bi-monthly": 60,
    "quarterly": 90,
    "bi-annual": 120,
    "annual": 180,
}
"""Days from the end of a period until its value counts as published: a rule of thumb that is rather too long."""


class DbnomicsSeries(WebSeries):
    """Series by `provider/dataset/series`. Values may have been corrected since, which the provenance always states."""

    facts = "DBnomics's API v22 as of 2026-11-15; never checked against a recorded response"
    description = "official statistics of many countries by DBnomics id, provider/dataset/series"

    def __init__(self, config: ServiceConfig, *, lag_days: int | None = None) -> None:
        """`lag_days` replaces the rule of thumb in `LAGS`, for all frequencies."""
        if lag_days is not None and lag_days < 0:
            raise ValueError(f"lag_days must not be negative, got {lag_days}")
        self._lag_days = lag_days
        self._service = JsonService(config, HOST)

    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """Return the values whose publication lag was over at the cutoff; live, all values."""
        document = await self._document(ref)
        frequency = document.optional_text("@frequency")
        observed, notes = _values(document)
        values = {
            day: value
            for day, value in observed
            if as_of.mode == "live" or as_of.admits_day(self._published(day, frequency))
        }
        known = known_series(ref, values, as_of)
        return FetchedSeries(series=known, revised=as_of.mode == "backtest", notes=notes)

    def _published(self, start: date, frequency: str) -> date:
        """Return the day on which a period's value counts as known; unknown frequencies get the longest lag."""
        lag = LAGS.get(frequency, LAGS["annual"]) if self._lag_days is None else self._lag_days
        return _last_day(start, frequency) + timedelta(days=lag)

    async def _document(self, ref: SeriesRef) -> Payload:
        try:
            answer = await self._service.read(f"/series/{quote(ref.id)}", {"observations": "1", "metadata": "0"})
            documents = answer.need("series", "docs").items()
        except NotFound:
            documents = []
        if not documents:
            raise SeriesUnavailable(f"DBnomics has no series {ref.id!r}")
        return documents[0]


def _values(document: Payload) -> tuple[list[tuple[date, float]], tuple[str, ...]]:
    days, values = document.need("period_start_day"), document.need("value")
    if len(days.items()) != len(values.items()):
        values.wrong("as long as period_start_day")
    pairs = zip(days.items(), values.items(), strict=True)
    stated = [(day, value) for day, value in pairs if value.value is not None and value.value != MISSING]
    return readable(stated, lambda pair: (pair[0].day(), pair[1].number()))


def _last_day(start: date, frequency: str) -> date:
    """Return the last day of the period that starts on a day.

    >>> _last_day(date(2024, 2, 1), "monthly").isoformat(), _last_day(date(2025, 1, 1), "annual").isoformat()
    ('2024-02-29', '2025-12-31')
    """
    if frequency in DAYS_IN:
        return start + timedelta(days=DAYS_IN[frequency] - 1)
    last = start.year * 12 + start.month - 1 + MONTHS_IN.get(frequency, MONTHS_IN["annual"]) - 1
    year, month = last // 12, last % 12 + 1
    return date(year, month, monthrange(year, month)[1])
