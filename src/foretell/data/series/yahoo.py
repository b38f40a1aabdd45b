"""Daily closes from Yahoo's chart service, on the share basis of the cutoff.

Yahoo adjusts past closes for every split up to today, so a history read now reveals splits after the cutoff. Those are
undone; splits up to the cutoff stay in, so that the series has no jumps. Closes are never adjusted for dividends,
because that would rewrite the past with every future payment.
"""

from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone, tzinfo
from urllib.parse import quote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from foretell.data.http import NotFound, SourceError
from foretell.data.payload import Payload, readable
from foretell.data.series.series import FetchedSeries, Publication, SeriesUnavailable, WebSeries, known_series
from foretell.data.service import JsonService, ServiceConfig
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef

HOST = "https://query2.finance.yahoo.com"
FAR_FUTURE = "9999999999"
"""End of the requested period: splits of any later day are needed too, to undo them."""
WHOLE_DAY = timedelta(days=1)
RENAMES: Mapping[str, str] = {
    "ABC": "COR",
    "ANTM": "ELV",
    "BF.B": "BF-B",
    "BK": "BNY",
    "BLL": "BALL",
    "BRK.B": "BRK-B",
    "CDAY": "DAY",
    "FB": "META",
    "FI": "FISV",
    "FLT": "CPAY",
    "GPS": "GAP",
    "MMC": "MRSH",
    "PEAK": "DOC",
    "PKI": "RVTY",
    "RE": "EG",
    "SQ": "XYZ",
    "WLTW": "WTW",
}
"""Former symbol to present symbol of the same share; Yahoo has no history under the old one."""


class YahooSeries(WebSeries):
    """Closing prices by ticker, without a key. The service is unofficial: expect changes and refused requests."""

    facts = "recorded responses of October 2025, reports of refused clients up to 2026-02"
    description = "daily closes of shares, indices, currencies and commodities by Yahoo symbol, such as ^GSPC, EURUSD=X"
    publication = Publication(weekdays=True)

    def __init__(self, config: ServiceConfig) -> None:
        self._service = JsonService(config, HOST)

    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """Return the closes of the sessions that were over at the cutoff."""
        chart = await self._chart(RENAMES.get(ref.id, ref.id))
        factor = _later_splits(chart, as_of)
        sessions, notes = read_sessions(chart)
        closes = {day: close * factor for day, ended, close in sessions if as_of.admits(ended)}
        return FetchedSeries(series=known_series(ref, closes, as_of), notes=notes)

    async def _chart(self, ticker: str) -> Payload:
        query = {"period1": "0", "period2": FAR_FUTURE, "interval": "1d", "events": "div,splits"}
        try:
            answer = await self._service.read(f"/v8/finance/chart/{quote(ticker, safe='')}", query)
        except NotFound:
            raise SeriesUnavailable(f"Yahoo has no ticker {ticker!r}") from None
        results = answer.need("chart").rows("result")
        if not results:
            raise SeriesUnavailable(f"Yahoo has no prices of {ticker!r}")
        return results[0]


def _later_splits(chart: Payload, as_of: AsOf) -> float:
    """Return the factor by which to multiply closes to undo the splits after the cutoff: 2 for a later two-for-one."""
    splits = chart.get("events", "splits")
    factor = 1.0
    for split in splits.members().values() if splits is not None else ():
        new, old = split.need("numerator"), split.need("denominator")
        for part in (new, old):
            if part.number() <= 0:
                part.wrong("positive")
        if not as_of.admits(split.need("date").unix_time()):
            factor *= new.number() / old.number()
    return factor


DAILY = "1d"


def read_sessions(chart: Payload) -> tuple[list[tuple[date, datetime, float]], tuple[str, ...]]:
    """Return each trading day with a close and the end of its session, and notes on rows that cannot be read.

    Yahoo sometimes returns a coarser interval than requested; such a chart raises `SourceError`.
    """
    meta = chart.need("meta")
    if (granularity := meta.optional_text("dataGranularity")) and granularity != DAILY:
        raise SourceError(f"the chart has steps of {granularity}, not of a day", url=chart.url)
    zone, hours = _zone(meta), _hours(meta)
    stamps = chart.rows("timestamp")
    quotes = chart.need("indicators", "quote").items()
    closes = quotes[0].need("close").items() if stamps and quotes else []
    if len(closes) != len(stamps):
        chart.need("indicators").wrong("as long as timestamp")

    def session(row: tuple[Payload, Payload]) -> tuple[date, datetime, float | None]:
        stamp, close = row
        day = stamp.unix_time().astimezone(zone).date()
        price = close.number() if close.value is not None else _quoted(meta, day, zone)
        return day, _closed(stamp.unix_time(), zone, hours), price

    sessions, notes = readable(list(zip(stamps, closes, strict=True)), session)
    return [(day, ended, price) for day, ended, price in sessions if price is not None], notes


def _closed(stamp: datetime, zone: tzinfo, hours: tuple[datetime, datetime] | None) -> datetime:
    """Return when a session ended. Its timestamp is the opening or, for the newest session, the last trade."""
    if hours is None:
        return stamp + WHOLE_DAY
    start, end = hours
    return end if start.astimezone(zone).date() == stamp.astimezone(zone).date() else stamp + (end - start)


def _quoted(meta: Payload, day: date, zone: tzinfo) -> float | None:
    """Return the last trade if it is of that day: Yahoo sometimes omits the close of the newest session."""
    at, price = meta.get("regularMarketTime"), meta.get("regularMarketPrice")
    if at is None or price is None or at.unix_time().astimezone(zone).date() != day:
        return None
    return price.number()


def _zone(meta: Payload) -> tzinfo:
    """Return the exchange's time zone by name, which includes daylight saving; by its current offset if unknown."""
    name = meta.get("exchangeTimezoneName")
    if name is not None:
        try:
            return ZoneInfo(name.text())
        except (ZoneInfoNotFoundError, ValueError):
            pass
    offset = meta.need("gmtoffset")
    if abs(offset.number()) >= WHOLE_DAY.total_seconds():
        offset.wrong("less than a day")
    return timezone(timedelta(seconds=offset.number()))


def _hours(meta: Payload) -> tuple[datetime, datetime] | None:
    """Return start and end of the current session, if stated."""
    regular = meta.get("currentTradingPeriod", "regular")
    if regular is None:
        return None
    start, end = regular.need("start").unix_time(), regular.need("end").unix_time()
    return (start, end) if timedelta(0) < end - start <= WHOLE_DAY else None
