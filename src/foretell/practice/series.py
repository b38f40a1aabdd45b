"""A stand-in for FRED and its archive of vintages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse, json_response

# A stand-in for DBnomics.


@dataclass(frozen=True, kw_only=True)
class FakePeriods:
    """A series by the first days of its periods; None is a missing value."""

    values: tuple[tuple[date, float | None], ...]
    frequency: str | None = "daily"


class FakeDbnomics:
    """Answers `/series/<provider>/<dataset>/<series>`."""

    def __init__(self, series: Mapping[str, FakePeriods]) -> None:
        self.series = series

    def server(self) -> PracticeServer:
        """A server that answers so."""
        server = PracticeServer()
        server.route("GET", "*", self._respond)
        return server

    def _respond(self, request: ServerRequest) -> ServerResponse:
        status, body = self.answer(request.path, request.query)
        return json_response(body, status)

    def answer(self, path: str, query: Mapping[str, str]) -> tuple[int, Any]:
        """Status and body."""
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
class FakeObservation:
    """A value of a day, and the days during which it was the one known."""

    day: date
    value: float | None
    since: date
    until: date = FOREVER


@dataclass(frozen=True, kw_only=True)
class FakeFredSeries:
    """All that was ever known of a series."""

    observations: tuple[FakeObservation, ...]
    archived_since: date | None = date(1776, 7, 4)
    """None: the archive never had it."""


class FakeFred:
    """Answers `series/observations`. It can misbehave: serve other vintages than asked for, or repeat the key."""

    def __init__(
        self,
        series: Mapping[str, FakeFredSeries],
        *,
        key: str,
        today: date,
        careless: bool = False,
        page: int = 100_000,
    ) -> None:
        """`careless` ignores the vintage and the last day asked for, as a server does with unknown parameters."""
        self.series = series
        self.key = key
        self.today = today
        self.careless = careless
        self.page = page

    def server(self) -> PracticeServer:
        """A server that answers so."""
        server = PracticeServer()
        server.route("GET", "*", self._respond)
        return server

    def _respond(self, request: ServerRequest) -> ServerResponse:
        status, body = self.answer(request.path, request.query)
        return json_response(body, status)

    def answer(self, path: str, query: Mapping[str, str]) -> tuple[int, Any]:
        """Status and body."""
        if not path.endswith("/series/observations"):
            return 404, {"error_code": 404, "error_message": "Not Found."}
        if query.get("api_key") != self.key:
            told = f"Bad Request.  The value for variable api_key ({query.get('api_key')}) is not registered."
            return 400, {"error_code": 400, "error_message": told}
        vintage = date.fromisoformat(query["realtime_start"]) if "realtime_start" in query else None
        series = self.series.get(query.get("series_id", ""))
        if series is None or not _archived(series, vintage):
            told = "Bad Request.  The series does not exist." if vintage is None else NOT_ARCHIVED
            return 400, {"error_code": 400, "error_message": told}
        return 200, self._page(series, vintage, query)

    def _page(self, series: FakeFredSeries, vintage: date | None, query: Mapping[str, str]) -> Any:
        day = self.today if vintage is None or self.careless else vintage
        last = FOREVER if self.careless else date.fromisoformat(query.get("observation_end", FOREVER.isoformat()))
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


def _archived(series: FakeFredSeries, vintage: date | None) -> bool:
    return vintage is None or (series.archived_since is not None and series.archived_since <= vintage)


def _row(one: FakeObservation, day: date) -> dict[str, str]:
    return {
        "realtime_start": day.isoformat(),
        "realtime_end": day.isoformat(),
        "date": one.day.isoformat(),
        "value": "." if one.value is None else repr(one.value),
    }


# A stand-in for Yahoo's chart service: it restates past closes for every split, like the real one.

NEVER = -1.0e9
"""Stands where dividend-adjusted closes stand, which nobody should read."""


@dataclass(frozen=True, kw_only=True)
class FakeSplit:
    """`numerator` new shares for `denominator` old ones, from a session's opening on."""

    at: datetime
    numerator: float
    denominator: float


@dataclass(frozen=True, kw_only=True)
class FakeShare:
    """A share's sessions with the prices that were really paid."""

    sessions: tuple[tuple[datetime, float | None], ...]
    """Opening, and the close as traded; None where the service lost it."""
    splits: tuple[FakeSplit, ...] = ()
    zone: str = "America/New_York"
    hours: timedelta | None = timedelta(hours=6.5)
    quote: tuple[datetime, float] | None = None
    """The last trade."""


class FakeYahoo:
    """Answers `/v8/finance/chart/<ticker>` with everything it has, whatever the period asked for."""

    def __init__(self, shares: Mapping[str, FakeShare]) -> None:
        self.shares = shares

    def server(self) -> PracticeServer:
        """A server that answers so."""
        server = PracticeServer()
        server.route("GET", "*", self._respond)
        return server

    def _respond(self, request: ServerRequest) -> ServerResponse:
        status, body = self.answer(request.path, request.query)
        return json_response(body, status)

    def answer(self, path: str, query: Mapping[str, str]) -> tuple[int, Any]:
        """Status and body."""
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


def _restated(share: FakeShare, opened: datetime, close: float | None) -> float | None:
    if close is None:
        return None
    for split in share.splits:
        if opened < split.at:
            close *= split.denominator / split.numerator
    return close


def _splits(share: FakeShare) -> dict[str, Any]:
    return {
        str(int(split.at.timestamp())): {
            "date": int(split.at.timestamp()),
            "numerator": split.numerator,
            "denominator": split.denominator,
            "splitRatio": f"{split.numerator:g}:{split.denominator:g}",
        }
        for split in share.splits
    }


def _meta(share: FakeShare) -> dict[str, Any]:
    last = share.sessions[-1][0] if share.sessions else None
    meta: dict[str, Any] = {"currency": "USD", "exchangeTimezoneName": share.zone, "gmtoffset": -18000}
    if share.quote is not None:
        at, price = share.quote
        meta |= {"regularMarketTime": int(at.timestamp()), "regularMarketPrice": price}
    if share.hours is not None and last is not None:
        end = int((last + share.hours).timestamp())
        meta["currentTradingPeriod"] = {"regular": {"start": int(last.timestamp()), "end": end}}
    return meta
