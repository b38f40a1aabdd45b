"""FRED series as they stood on a day, through the archive of vintages (ALFRED).

A plain reading of FRED gives today's corrected figures, which is a leak in a backtest. The archive knows only whole
days in US Central time, so the vintage of the last day that was over at the cutoff is read.
"""

from datetime import date, timedelta, timezone
from http import HTTPStatus

from foretell.data.http import SourceError
from foretell.data.payload import Payload
from foretell.data.series.series import FetchedSeries, SeriesUnavailable, WebSeries, known_series
from foretell.data.service import JsonService, ServiceConfig
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef

HOST = "https://api.stlouisfed.org/fred"
MISSING = "."
NOT_ARCHIVED = "does not exist in ALFRED"
PAGE = 100_000
CENTRAL_WINTER = timezone(timedelta(hours=-6))
"""St. Louis without daylight saving: in summer its days then end an hour late here, which errs on the strict side."""
DAY = timedelta(days=1)


class FredSeries(WebSeries):
    """Series of the Federal Reserve Bank of St. Louis. Needs a free key, which no error shows."""

    description = "US and international economic data by FRED id, such as DGS10, UNRATE, CPIAUCSL"
    key_variables = ("FRED_API_KEY",)

    def __init__(self, config: ServiceConfig, *, allow_revised: bool = False) -> None:
        """`allow_revised`: in a backtest, read today's figures where the archive has no vintage of that day."""
        self._service = JsonService(config, HOST, per_second=2.0)
        self._key = config.key
        self._allow_revised = allow_revised

    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """The vintage of the cutoff; live, the current figures. Without a vintage a backtest is refused."""
        if as_of.mode == "live":
            return FetchedSeries(series=known_series(ref, await self._current(ref, as_of), as_of))
        vintage = last_vintage(as_of)
        values = await self._vintage(ref, vintage)
        if values is not None:
            return FetchedSeries(series=known_series(ref, values, as_of), vintage=vintage)
        current = await self._current(ref, as_of)
        if not self._allow_revised:
            raise SeriesUnavailable(
                f"FRED keeps no vintage of {ref.id} for {vintage}: only today's figures, which may have been corrected "
                "since (allow_revised=True reads them and marks the series)"
            )
        # Without vintages nobody knows when a value came out; that of the last day surely came later.
        known = {day: value for day, value in current.items() if as_of.admits_day(day + DAY)}
        return FetchedSeries(series=known_series(ref, known, as_of), revised=True)

    async def _vintage(self, ref: SeriesRef, vintage: date) -> dict[date, float] | None:
        """Values of a vintage; None where the archive has none of that day (or, just as well, no such series)."""
        day = vintage.isoformat()
        try:
            pages = await self._pages(ref, {"realtime_start": day, "realtime_end": day, "observation_end": day})
        except SourceError as error:
            if error.status == HTTPStatus.BAD_REQUEST and NOT_ARCHIVED in error.problem:
                return None
            raise
        for page in pages:
            for bound in ("realtime_start", "realtime_end"):
                if (told := page.need(bound)).text() != day:
                    told.wrong(f"the vintage asked for ({day})")
        return _values(pages)

    async def _current(self, ref: SeriesRef, as_of: AsOf) -> dict[date, float]:
        try:
            return _values(await self._pages(ref, {"observation_end": as_of.at.date().isoformat()}))
        except SourceError as error:
            if error.status == HTTPStatus.BAD_REQUEST and "series does not exist" in error.problem:
                raise SeriesUnavailable(f"FRED has no series {ref.id!r}") from None
            raise

    async def _pages(self, ref: SeriesRef, params: dict[str, str]) -> list[Payload]:
        fixed = {"series_id": ref.id, "api_key": self._key, "file_type": "json", "limit": str(PAGE)}
        pages: list[Payload] = []
        read_so_far = 0
        while True:
            query = {**fixed, **params, "offset": str(read_so_far)}
            page = await self._service.read("/series/observations", query)
            pages.append(page)
            size = len(page.need("observations").items())
            read_so_far += size
            if not size or read_so_far >= page.need("count").number():
                return pages


def last_vintage(as_of: AsOf) -> date:
    """The day whose state of knowledge belongs to a cutoff: the last that was over."""
    return as_of.at.astimezone(CENTRAL_WINTER).date() - DAY


def _values(pages: list[Payload]) -> dict[date, float]:
    values: dict[date, float] = {}
    for page in pages:
        for row in page.need("observations").items():
            day, value = row.need("date"), row.need("value")
            if value.value != MISSING:
                values[day.day()] = value.number()
    return values
