"""A stand-in for FRED and its archive of vintages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from foretell.fakes.server import FakeServer, Request, Response, json_response

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

    def server(self) -> FakeServer:
        """A server that answers so."""
        server = FakeServer()
        server.route("GET", "*", self._respond)
        return server

    def _respond(self, request: Request) -> Response:
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
