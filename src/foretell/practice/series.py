"""Time series for practice: DBnomics, FRED with its vintages, Yahoo's charts, Open-Meteo and ACLED."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

from foretell.frozen import frozen
from foretell.practice.server import PracticeService, ServerRequest, StatusAndBody


@frozen
class SampleDbnomicsSeries:
    """A series with the first day of each period; None is a missing value."""

    values: tuple[tuple[date, float | None], ...]
    frequency: str | None = "daily"


class PracticeDbnomics(PracticeService):
    """Serves `/series/<provider>/<dataset>/<series>`."""

    def __init__(self, series: Mapping[str, SampleDbnomicsSeries]) -> None:
        self.series = series

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Return the status and body of the answer."""
        path, query = request.path, request.query
        series_id = path.partition("/series/")[2]
        series = self.series.get(series_id)
        if series is None:
            return 404, {"message": "Series not found", "errors": []}
        provider, dataset, code = series_id.split("/")
        document = {
            "provider_code": provider,
            "dataset_code": dataset,
            "series_code": code,
            "period": [day.isoformat() for day, _ in series.values],
            "period_start_day": [day.isoformat() for day, _ in series.values],
            "value": ["NA" if value is None else value for _, value in series.values],
        }
        if series.frequency is not None:
            document["@frequency"] = series.frequency
        if query.get("observations") != "1":
            del document["period"], document["period_start_day"], document["value"]
        return 200, {"series": {"num_found": 1, "limit": 1000, "offset": 0, "docs": [document]}}


FOREVER = date(9999, 12, 31)
NOT_ARCHIVED = (
    "Bad Request.  The series does not exist in ALFRED but may exist in FRED.  Try setting realtime_start and "
    "realtime_end to today's date or removing the realtime_start and realtime_end variables."
)


@frozen
class SampleFredValue:
    """The value of a day, and the dates between which it was the known value."""

    day: date
    value: float | None
    since: date
    until: date = FOREVER


@frozen
class SampleFredSeries:
    """All values of a series that were ever known."""

    observations: tuple[SampleFredValue, ...]
    archived_since: date | None = date(1776, 7, 4)
    """Start of the archive's record of the series; None if the archive never had it."""


class PracticeFred(PracticeService):
    """Serves `series/observations`. An unknown key is repeated in the error, as by the real service."""

    def __init__(self, series: Mapping[str, SampleFredSeries], *, key: str, today: date, page: int = 100_000) -> None:
        self.series = series
        self.key = key
        self.today = today
        self.page = page

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Return the status and body of the answer."""
        path, query = request.path, request.query
        if query.get("api_key") != self.key:
            message = f"Bad Request.  The value for variable api_key ({query.get('api_key')}) is not registered."
            return 400, {"error_code": 400, "error_message": message}
        if path.endswith("/series/release"):
            return 200, {"releases": [{"id": 18, "name": "Daily figures", "press_release": False}]}
        if path.endswith("/release/dates"):
            # Every weekday, and the next two weeks as scheduled.
            days = [self.today + timedelta(days=n) for n in range(14, -30, -1)]
            dates = [{"release_id": 18, "date": day.isoformat()} for day in days if day.weekday() < 5]
            return 200, {"count": len(dates), "release_dates": dates}
        if not path.endswith("/series/observations"):
            return 404, {"error_code": 404, "error_message": "Not Found."}
        vintage = date.fromisoformat(query["realtime_end"]) if "realtime_end" in query else None
        series = self.series.get(query.get("series_id", ""))
        if series is None or not _archived(series, vintage):
            message = "Bad Request.  The series does not exist." if vintage is None else NOT_ARCHIVED
            return 400, {"error_code": 400, "error_message": message}
        if query.get("output_type") == "4":
            return 200, _first_published(series, date.fromisoformat(query["realtime_end"]))
        return 200, self._page(series, vintage, query)

    def _page(self, series: SampleFredSeries, vintage: date | None, query: Mapping[str, str]) -> Any:
        day = self.today if vintage is None else vintage
        last = date.fromisoformat(query.get("observation_end", FOREVER.isoformat()))
        known = [
            observation
            for observation in series.observations
            if observation.since <= day < observation.until and observation.day <= last
        ]
        start, size = int(query.get("offset", "0")), min(self.page, int(query.get("limit", "100000")))
        return {
            "realtime_start": day.isoformat(),
            "realtime_end": day.isoformat(),
            "units": "lin",
            "output_type": 1,
            "count": len(known),
            "offset": start,
            "observations": [_row(observation, day) for observation in known[start : start + size]],
        }


def _first_published(series: SampleFredSeries, last: date) -> Any:
    """Return each day's first value, among those published by a date."""
    first: dict[date, SampleFredValue] = {}
    for observation in sorted(series.observations, key=lambda observation: observation.since):
        if observation.since <= last:
            first.setdefault(observation.day, observation)
    rows = [
        {
            "realtime_start": observation.since.isoformat(),
            "realtime_end": observation.until.isoformat(),
            "date": observation.day.isoformat(),
            "value": "." if observation.value is None else repr(observation.value),
        }
        for observation in first.values()
    ]
    return {"output_type": 4, "count": len(rows), "observations": rows}


def _archived(series: SampleFredSeries, vintage: date | None) -> bool:
    return vintage is None or (series.archived_since is not None and series.archived_since <= vintage)


def _row(observation: SampleFredValue, day: date) -> dict[str, str]:
    return {
        "realtime_start": day.isoformat(),
        "realtime_end": day.isoformat(),
        "date": observation.day.isoformat(),
        "value": "." if observation.value is None else repr(observation.value),
    }


NEVER = -1.0e9
"""Placeholder for dividend-adjusted closes, which no client should read."""


@frozen
class SampleShareSplit:
    """A split into `numerator` new shares for `denominator` old ones, from a session's opening on."""

    at: datetime
    numerator: float
    denominator: float


@frozen
class SampleShare:
    """A share's sessions with the prices actually paid."""

    sessions: tuple[tuple[datetime, float | None], ...]
    """Opening time and close as traded; the close is None if the service lost it."""
    splits: tuple[SampleShareSplit, ...] = ()
    zone: str = "America/New_York"
    hours: timedelta | None = timedelta(hours=6.5)
    quote: tuple[datetime, float] | None = None
    """Time and price of the last trade."""


class PracticeYahoo(PracticeService):
    """Serves `/v8/finance/chart/<ticker>` with all data, whatever period is requested.

    Past closes are adjusted for every split, as by the real service.
    """

    def __init__(self, shares: Mapping[str, SampleShare]) -> None:
        self.shares = shares

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Return the status and body of the answer."""
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


class PracticeOpenMeteo(PracticeService):
    """Serves the same weather everywhere: observed up to five days ago, and forecast.

    A forecast's error grows with its lead time.
    """

    def __init__(
        self,
        weather: Callable[[date], float],
        *,
        today: date,
        offset: timedelta = timedelta(0),
        persists: bool = False,
    ) -> None:
        """`persists`: a forecast is the weather of the day on which it is made, so it knows nothing of later days."""
        self.weather = weather
        self.persists = persists
        self.today = today
        self.offset = offset

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Return the status and body of the answer."""
        query = request.query
        if request.path.endswith("/v1/search"):
            # Every name except "Nowhere" is a place, so that both answers can be tested.
            place = {"id": 1, "name": query.get("name", ""), "latitude": 59.91, "longitude": 10.75, "country": "Norway"}
            return 200, {"generationtime_ms": 0.1} | ({} if query.get("name") == "Nowhere" else {"results": [place]})
        try:
            first, last = (date.fromisoformat(query[name]) for name in ("start_date", "end_date"))
        except (KeyError, ValueError):
            return 400, {"error": True, "reason": "Invalid date"}
        if "latitude" not in query or "longitude" not in query or (last - first).days < 0:
            return 400, {
                "error": True,
                "reason": "Parameter 'latitude' and 'longitude' must have the same number of elements",
            }
        days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
        if request.path.endswith("/v1/archive"):
            last_observed = self.today - timedelta(days=5)
            column = [self.weather(day) if day <= last_observed else None for day in days]
            return 200, self._body("daily", [day.isoformat() for day in days], {query["daily"]: column})
        hours = [f"{day}T{hour:02d}:00" for day in days for hour in range(24)]
        columns = {
            name: [self._forecast(day, name) for day in days for _ in range(24)] for name in query["hourly"].split(",")
        }
        return 200, self._body("hourly", hours, columns)

    def _forecast(self, day: date, column: str) -> float | None:
        """Return the forecast for a day, off by 0.1 per day of lead time; None if it has not been made yet."""
        _, previous, lead = column.partition("_previous_day")
        ahead = int(lead) if previous else max(0, (day - self.today).days)
        issued = day - timedelta(days=ahead)
        if issued > self.today or ahead > 16:
            return None
        return round(self.weather(issued if self.persists else day) + ahead / 10, 3)

    def _body(self, block: str, times: list[str], columns: Mapping[str, Sequence[float | None]]) -> Any:
        return {
            "latitude": 59.9, "longitude": 10.75, "timezone": "Practice/World", "elevation": 1.0,
            "utc_offset_seconds": int(self.offset.total_seconds()),
            f"{block}_units": {"time": "iso8601", **dict.fromkeys(columns, "°C")},
            block: {"time": times, **columns},
        }  # fmt: skip


@frozen
class SampleConflictEvent:
    """A row of ACLED: an event, and when the row was last changed."""

    id: str
    day: date
    changed: datetime
    country: str = "Iraq"
    kind: str = "Protests"
    fatalities: int = 0


class PracticeAcled(PracticeService):
    """Serves events and deletions to clients with a token, which any user name with the right password gets."""

    def __init__(
        self, events: Sequence[SampleConflictEvent], *, password: str, deleted: Mapping[str, datetime] | None = None
    ) -> None:
        self.events = tuple(events)
        self.password = password
        self.deleted = dict(deleted or {})
        self.token = f"token-of-{password}"

    def post(self, request: ServerRequest) -> StatusAndBody:
        """Return a token."""
        form = dict(parse_qsl(request.body.decode()))
        credentials = (form.get("grant_type"), form.get("client_id"), form.get("password"))
        if not request.path.endswith("/oauth/token") or credentials != ("password", "acled", self.password):
            return 400, {"error": "invalid_grant", "message": "The user credentials were incorrect."}
        return 200, {"token_type": "Bearer", "expires_in": 86_400, "access_token": self.token, "refresh_token": "r"}

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Return the status and body of the answer."""
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return 401, {"message": "The resource owner or authorization server denied the request."}
        query = request.query
        if request.path.endswith("/api/deleted/read"):
            since = float(query["deleted_timestamp"])
            rows: list[dict[str, Any]] = [
                {"event_id_cnty": id, "deleted_timestamp": int(at.timestamp())}
                for id, at in self.deleted.items()
                if at.timestamp() >= since
            ]
        else:
            first, last = query["event_date"].split("|")
            rows = [
                {"event_id_cnty": event.id, "event_date": event.day.isoformat(), "event_type": event.kind,
                 "fatalities": str(event.fatalities), "timestamp": str(int(event.changed.timestamp()))}
                for event in self.events
                if (event.country, event.kind) == (query["country"], query["event_type"])
                and first <= event.day.isoformat() <= last
            ]  # fmt: skip
        size, page = int(query["limit"]), int(query["page"])
        shown = rows[(page - 1) * size : page * size]
        return 200, {"status": 200, "success": True, "count": len(shown), "data": shown}
