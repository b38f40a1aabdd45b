"""Series for practice: DBnomics, FRED with its archive of vintages, and Yahoo's chart service."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from foretell.practice.server import PracticeService, ServerRequest, StatusAndBody


@dataclass(frozen=True, kw_only=True)
class SampleDbnomicsSeries:
    """A series by the first days of its periods; None is a missing value."""

    values: tuple[tuple[date, float | None], ...]
    frequency: str | None = "daily"


class PracticeDbnomics(PracticeService):
    """Answers `/series/<provider>/<dataset>/<series>`."""

    def __init__(self, series: Mapping[str, SampleDbnomicsSeries]) -> None:
        self.series = series

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Status and body."""
        path, query = request.path, request.query
        series_id = path.partition("/series/")[2]
        found = self.series.get(series_id)
        if found is None:
            return 404, {"message": "Series not found", "errors": []}
        provider, dataset, code = series_id.split("/")
        document = {
            "provider_code": provider,
            "dataset_code": dataset,
            "series_code": code,
            "period": [day.isoformat() for day, _ in found.values],
            "period_start_day": [day.isoformat() for day, _ in found.values],
            "value": ["NA" if value is None else value for _, value in found.values],
        }
        if found.frequency is not None:
            document["@frequency"] = found.frequency
        if query.get("observations") != "1":
            del document["period"], document["period_start_day"], document["value"]
        return 200, {"series": {"num_found": 1, "limit": 1000, "offset": 0, "docs": [document]}}


FOREVER = date(9999, 12, 31)
NOT_ARCHIVED = (
    "Bad Request.  The series does not exist in ALFRED but may exist in FRED.  Try setting realtime_start and "
    "realtime_end to today's date or removing the realtime_start and realtime_end variables."
)


@dataclass(frozen=True, kw_only=True)
class SampleFredValue:
    """A value of a day, and the days during which it was the one known."""

    day: date
    value: float | None
    since: date
    until: date = FOREVER


@dataclass(frozen=True, kw_only=True)
class SampleFredSeries:
    """All that was ever known of a series."""

    observations: tuple[SampleFredValue, ...]
    archived_since: date | None = date(1776, 7, 4)
    """None: the archive never had it."""


class PracticeFred(PracticeService):
    """Answers `series/observations`. An unknown key is repeated in the error, as the real service does."""

    def __init__(self, series: Mapping[str, SampleFredSeries], *, key: str, today: date, page: int = 100_000) -> None:
        self.series = series
        self.key = key
        self.today = today
        self.page = page

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Status and body."""
        path, query = request.path, request.query
        if not path.endswith("/series/observations"):
            return 404, {"error_code": 404, "error_message": "Not Found."}
        if query.get("api_key") != self.key:
            message = f"Bad Request.  The value for variable api_key ({query.get('api_key')}) is not registered."
            return 400, {"error_code": 400, "error_message": message}
        vintage = date.fromisoformat(query["realtime_start"]) if "realtime_start" in query else None
        series = self.series.get(query.get("series_id", ""))
        if series is None or not _archived(series, vintage):
            message = "Bad Request.  The series does not exist." if vintage is None else NOT_ARCHIVED
            return 400, {"error_code": 400, "error_message": message}
        return 200, self._page(series, vintage, query)

    def _page(self, series: SampleFredSeries, vintage: date | None, query: Mapping[str, str]) -> Any:
        day = self.today if vintage is None else vintage
        last = date.fromisoformat(query.get("observation_end", FOREVER.isoformat()))
        known = [one for one in series.observations if one.since <= day < one.until and one.day <= last]
        start, size = int(query.get("offset", "0")), min(self.page, int(query.get("limit", "100000")))
        return {
            "realtime_start": day.isoformat(),
            "realtime_end": day.isoformat(),
            "units": "lin",
            "output_type": 1,
            "count": len(known),
            "offset": start,
            "observations": [_row(one, day) for one in known[start : start + size]],
        }


def _archived(series: SampleFredSeries, vintage: date | None) -> bool:
    return vintage is None or (series.archived_since is not None and series.archived_since <= vintage)


def _row(one: SampleFredValue, day: date) -> dict[str, str]:
    return {
        "realtime_start": day.isoformat(),
        "realtime_end": day.isoformat(),
        "date": one.day.isoformat(),
        "value": "." if one.value is None else repr(one.value),
    }


NEVER = -1.0e9
"""Stands where dividend-adjusted closes stand, which nobody should read."""


@dataclass(frozen=True, kw_only=True)
class SampleShareSplit:
    """`numerator` new shares for `denominator` old ones, from a session's opening on."""

    at: datetime
    numerator: float
    denominator: float


@dataclass(frozen=True, kw_only=True)
class SampleShare:
    """A share's sessions with the prices that were really paid."""

    sessions: tuple[tuple[datetime, float | None], ...]
    """Opening, and the close as traded; None where the service lost it."""
    splits: tuple[SampleShareSplit, ...] = ()
    zone: str = "America/New_York"
    hours: timedelta | None = timedelta(hours=6.5)
    quote: tuple[datetime, float] | None = None
    """The last trade."""


class PracticeYahoo(PracticeService):
    """Answers `/v8/finance/chart/<ticker>` with everything it has, whatever the period asked for.

    Past closes are restated for every split, as the real service does.
    """

    def __init__(self, shares: Mapping[str, SampleShare]) -> None:
        self.shares = shares

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Status and body."""
        path, query = request.path, request.query
        share = self.shares.get(path.rpartition("/")[2])
        if "/v8/finance/chart/" not in path or share is None:
            error = {"code": "Not Found", "description": "No data found, symbol may be delisted"}
            return 404, {"chart": {"result": None, "error": error}}
        events = {"splits": _splits(share)} if "split" in query.get("events", "") and share.splits else None
        result = {
            "meta": _meta(share),
            "timestamp": [int(opened.timestamp()) for opened, _ in share.sessions],
            **({"events": events} if events else {}),
            "indicators": {
                "quote": [{"close": [_restated(share, *session) for session in share.sessions]}],
                "adjclose": [{"adjclose": [NEVER for _ in share.sessions]}],
            },
        }
        return 200, {"chart": {"result": [result], "error": None}}


def _restated(share: SampleShare, opened: datetime, close: float | None) -> float | None:
    if close is None:
        return None
    for split in share.splits:
        if opened < split.at:
            close *= split.denominator / split.numerator
    return close


def _splits(share: SampleShare) -> dict[str, Any]:
    return {
        str(int(split.at.timestamp())): {
            "date": int(split.at.timestamp()),
            "numerator": split.numerator,
            "denominator": split.denominator,
            "splitRatio": f"{split.numerator:g}:{split.denominator:g}",
        }
        for split in share.splits
    }


def _meta(share: SampleShare) -> dict[str, Any]:
    last = share.sessions[-1][0] if share.sessions else None
    meta: dict[str, Any] = {"currency": "USD", "exchangeTimezoneName": share.zone, "gmtoffset": -18000}
    if share.quote is not None:
        at, price = share.quote
        meta |= {"regularMarketTime": int(at.timestamp()), "regularMarketPrice": price}
    if share.hours is not None and last is not None:
        end = int((last + share.hours).timestamp())
        meta["currentTradingPeriod"] = {"regular": {"start": int(last.timestamp()), "end": end}}
    return meta
