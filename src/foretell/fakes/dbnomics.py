"""A stand-in for DBnomics."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from foretell.fakes.server import FakeServer, Request, Response, json_response


@dataclass(frozen=True, kw_only=True)
class FakePeriods:
    """A series by the first days of its periods; None is a missing value."""

    values: tuple[tuple[date, float | None], ...]
    frequency: str | None = "daily"


class FakeDbnomics:
    """Answers `/series/<provider>/<dataset>/<series>`."""

    def __init__(self, series: Mapping[str, FakePeriods]) -> None:
        self.series = series

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
