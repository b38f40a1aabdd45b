"""Daily closes from Yahoo's chart service, on the share basis of the cutoff.

Yahoo restates past closes for every split up to today, so a history read now tells of splits that came after the
cutoff. Those are undone; splits up to the cutoff stay in, so that the series has no jumps. Dividends are never
adjusted for: that would rewrite the past with every future payment.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from http import HTTPStatus
from urllib.parse import quote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.payload import Payload, fetch_payload
from foretell.data.series.series import FetchedSeries, SeriesUnavailable, WebSeries, known_series
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf
from foretell.questions.question import SeriesRef

HOST = "https://query2.finance.yahoo.com"
FAR_FUTURE = "9999999999"
"""Splits of any later day are needed too, to undo them."""
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
"""The same share under its present symbol; Yahoo serves no history under the old one."""


@dataclass(frozen=True, kw_only=True)
class _Session:
    """One trading day: when it was over, and its close, if there is one."""

    day: date
    closed: datetime
    close: float | None


class YahooSeries(WebSeries):
    """Closing prices by ticker, without a key. The service is unofficial: expect it to change and to refuse."""

    description = "daily closes of shares, indices, currencies and commodities by Yahoo symbol, such as ^GSPC, EURUSD=X"

    def __init__(
        self,
        *,
        http: AsyncHttpClient,
        renames: Mapping[str, str] = RENAMES,
        host: str = HOST,
        per_second: float = 2.0,
        user_agent: str | None = None,
    ) -> None:
        self._renames = renames
        self._host = host
        self._per_second = per_second
        self._headers = {"User-Agent": user_agent} if user_agent else None
        super().__init__(http=http)

    @classmethod
    def open(cls, config: ServiceConfig) -> "YahooSeries":
        """As the registry opens it."""
        return cls(http=config.http, host=config.address or HOST)

    def _introduce(self, http: AsyncHttpClient) -> None:
        http.pace(self._host, per_second=self._per_second)

    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        """Closes of the sessions that were over at the cutoff."""
        chart = await self._chart(ref)
        factor = _later_splits(chart, as_of)
        closes = {
            session.day: session.close * factor
            for session in _sessions(chart)
            if session.close is not None and as_of.admits(session.closed)
        }
        return FetchedSeries(series=known_series(ref, closes, as_of))

    async def _chart(self, ref: SeriesRef) -> Payload:
        ticker = self._renames.get(ref.id, ref.id)
        query = {"period1": "0", "period2": FAR_FUTURE, "interval": "1d", "events": "div,splits"}
        url = f"{self._host}/v8/finance/chart/{quote(ticker, safe='')}"
        try:
            answer = await fetch_payload(self._http, url, params=query, headers=self._headers)
        except SourceError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                raise SeriesUnavailable(f"Yahoo has no ticker {ticker!r}") from None
            raise
        results = answer.need("chart").get("result")
        if results is None or not results.items():
            raise SeriesUnavailable(f"Yahoo has no prices of {ticker!r}")
        return results.items()[0]


def _later_splits(chart: Payload, as_of: AsOf) -> float:
    """What to multiply Yahoo's closes by to undo the splits after the cutoff: 2 for a later two-for-one."""
    events = chart.get("events")
    splits = events.get("splits") if events is not None else None
    factor = 1.0
    for split in splits.members() if splits is not None else ():
        new, old = split.need("numerator"), split.need("denominator")
        for part in (new, old):
            if part.number() <= 0:
                part.wrong("positive")
        if not as_of.admits(split.need("date").moment()):
            factor *= new.number() / old.number()
    return factor


def _sessions(chart: Payload) -> Iterator[_Session]:
    meta = chart.need("meta")
    zone, hours = _zone(meta), _hours(meta)
    times = chart.get("timestamp")
    stamps = times.items() if times is not None else []
    quotes = chart.need("indicators").need("quote").items()
    closes = quotes[0].need("close").items() if stamps and quotes else []
    if len(closes) != len(stamps):
        chart.need("indicators").wrong("as long as timestamp")
    for stamp, close in zip(stamps, closes, strict=True):
        day = stamp.moment().astimezone(zone).date()
        price = close.number() if close.value is not None else _quoted(meta, day, zone)
        yield _Session(day=day, closed=_closed(stamp.moment(), zone, hours), close=price)


def _closed(stamp: datetime, zone: tzinfo, hours: tuple[datetime, datetime] | None) -> datetime:
    """When a session was over. It is stamped with its opening; the newest, though, with its last trade."""
    if hours is None:
        return stamp + WHOLE_DAY
    start, end = hours
    return end if start.astimezone(zone).date() == stamp.astimezone(zone).date() else stamp + (end - start)


def _quoted(meta: Payload, day: date, zone: tzinfo) -> float | None:
    """The last trade, where it is of that day: Yahoo sometimes leaves the newest session without its close."""
    at, price = meta.get("regularMarketTime"), meta.get("regularMarketPrice")
    if at is None or price is None or at.moment().astimezone(zone).date() != day:
        return None
    return price.number()


def _zone(meta: Payload) -> tzinfo:
    """The exchange's time zone by name, which knows its summers; by its present offset where the name is unknown."""
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
    """Start and end of the present session, where they are told."""
    period = meta.get("currentTradingPeriod")
    regular = period.get("regular") if period is not None else None
    if regular is None:
        return None
    start, end = regular.need("start").moment(), regular.need("end").moment()
    return (start, end) if timedelta(0) < end - start <= WHOLE_DAY else None
