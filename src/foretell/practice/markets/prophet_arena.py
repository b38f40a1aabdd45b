"""A stand-in for Prophet Arena: its list of events, and its counter for forecasts."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from foretell.practice.markets.faults import InboxFaults, MarketFaults
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse


def arena_body(slug: str, title: str, outcomes: Mapping[str, str | None], **more: Any) -> dict[str, Any]:
    """An event as sent; `outcomes` leads from names to how they came out, None while that is open."""
    body: dict[str, Any] = {
        "slug": slug,
        "title": title,
        "category": "Politics",
        "criteria": "As reported.",
        "mutually_exclusive": True,
        "close_at": "2027-01-01T00:00:00Z",
        "status": "open",
        "outcomes": [{"name": name, "resolution": told} for name, told in outcomes.items()],
    }
    return body | more


class FakeProphetArena:
    """Answers `/events` with cursors, `/events/<slug>` and its forecasts, and takes forecasts from known agents."""

    def __init__(self, events: Iterable[Mapping[str, Any]], *, key: str, page: int = 100) -> None:
        self.events = [dict(event) for event in events]
        self.key = key
        self.page = page
        self.trouble = MarketFaults()
        self.agents: set[str] = set()
        """Who may forecast."""
        self.forecasts: list[dict[str, Any]] = []
        """Every forecast that was taken, in order."""
        self.now = datetime(2026, 11, 1, 12, tzinfo=UTC)
        self.mishaps = InboxFaults()

    def server(self) -> PracticeServer:
        """A server that answers so."""
        server = PracticeServer()
        server.route("GET", "*", self._respond)
        server.route("POST", "*", lambda request: self.mishaps.response(request, self.take))
        return server

    def _respond(self, request: ServerRequest) -> ServerResponse:
        return self.trouble.response(request, *self.answer(request))

    def answer(self, request: ServerRequest) -> tuple[int, Any]:
        """Status and body."""
        if request.headers.get("authorization") != f"Bearer {self.key}":
            return 401, {"error": "unknown key"}
        path, _, name = request.path.strip("/").rpartition("/")
        if name == "forecasts":
            slug, agent = path.rpartition("/")[2], request.query.get("agent")
            mine = [one for one in self.forecasts if one["event"] == slug and agent in (None, one["agent"])]
            return 200, {"data": mine, "next_cursor": None}
        if name != "events":
            found = next((event for event in self.events if event.get("slug") == name), None)
            return (200, {"data": found}) if found is not None else (404, {"error": "not found"})
        fitting = [event for event in self.events if event.get("status") == request.query.get("status", "open")]
        start = int(request.query.get("cursor", "0"))
        end = start + min(int(request.query.get("limit", "50")), self.page)
        return 200, {"data": fitting[start:end], "next_cursor": str(end) if end < len(fitting) else None}

    def take(self, request: ServerRequest) -> tuple[int, Any]:
        """Status and body for something sent: probabilities are taken as they are, or not at all."""
        if request.headers.get("authorization") != f"Bearer {self.key}":
            return 401, {"error": "unknown key"}
        if not request.path.endswith("/forecasts"):
            return 404, {"error": "not found"}
        body = cast("dict[str, Any]", request.json())
        event = next((one for one in self.events if one["slug"] == body.get("event")), None)
        if body.get("agent") not in self.agents or event is None:
            return 404, {"error": "no such agent or event"}
        if problem := self._problem(event, body.get("probabilities")):
            return 422, {"error": problem}
        before = any((one["agent"], one["event"]) == (body["agent"], body["event"]) for one in self.forecasts)
        kept = body | {"received_at": f"{self.now.isoformat()}#{len(self.forecasts):06}"}
        self.forecasts.append(kept)
        seal = hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()
        receipt = {"seal": seal, "recorded_at": self.now.isoformat(), "key": "fake", "signature": seal[:16]}
        return 200, {"received_at": kept["received_at"], "replaces_previous": before, "receipt": receipt}

    def _problem(self, event: Mapping[str, Any], told: Any) -> str:
        if event.get("status") != "open" or datetime.fromisoformat(event["close_at"]) <= self.now:
            return "the event is closed"
        if not isinstance(told, dict):
            return "probabilities must be an object"
        given = cast("dict[str, Any]", told)
        names = sorted(name.casefold() for name in given)
        if names != sorted(outcome["name"].casefold() for outcome in event["outcomes"]):
            return "every outcome exactly once"
        good = all(isinstance(p, int | float) and 0 <= p <= 1 for p in given.values())
        return "" if good else "probabilities must lie in [0, 1]"
