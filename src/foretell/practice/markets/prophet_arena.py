"""Prophet Arena for practice: a list of events, and an inbox for forecasts."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from foretell.practice.server import PracticeService, ServerRequest, StatusAndBody


def prophet_arena_body(slug: str, title: str, outcomes: Mapping[str, str | None], **more: Any) -> dict[str, Any]:
    """An event as sent; `outcomes` leads from names to how they came out, None while that is open."""
    body: dict[str, Any] = {
        "slug": slug,
        "title": title,
        "category": "Politics",
        "criteria": "As reported.",
        "mutually_exclusive": True,
        "close_at": "2027-01-01T00:00:00Z",
        "status": "open",
        "outcomes": [{"name": name, "resolution": result} for name, result in outcomes.items()],
    }
    return body | more


class PracticeProphetArena(PracticeService):
    """Answers `/events` with cursors, `/events/<slug>` and its forecasts, and takes forecasts."""

    def __init__(
        self,
        events: Iterable[Mapping[str, Any]],
        *,
        key: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        page: int = 100,
    ) -> None:
        self.events = [dict(event) for event in events]
        self.key = key
        self.now = now
        self.page = page
        self.agents: set[str] | None = None
        """Who may forecast; None for everybody."""
        self.forecasts: list[dict[str, Any]] = []
        """Every forecast that was taken, in order."""

    def get(self, request: ServerRequest) -> StatusAndBody:
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

    def post(self, request: ServerRequest) -> StatusAndBody:
        """Take a forecast as it is, or not at all."""
        if request.headers.get("authorization") != f"Bearer {self.key}":
            return 401, {"error": "unknown key"}
        if not request.path.endswith("/forecasts"):
            return 404, {"error": "not found"}
        body = cast("dict[str, Any]", request.json())
        event = next((one for one in self.events if one["slug"] == body.get("event")), None)
        if event is None or (self.agents is not None and body.get("agent") not in self.agents):
            return 404, {"error": "no such agent or event"}
        if problem := self._problem(event, body.get("probabilities")):
            return 422, {"error": problem}
        before = any((one["agent"], one["event"]) == (body["agent"], body["event"]) for one in self.forecasts)
        now = self.now()
        stored = body | {"received_at": f"{now.isoformat()}#{len(self.forecasts):06}"}
        self.forecasts.append(stored)
        seal = hashlib.sha256(json.dumps(stored, sort_keys=True).encode()).hexdigest()
        receipt = {"seal": seal, "recorded_at": now.isoformat(), "key": "practice", "signature": seal[:16]}
        return 200, {"received_at": stored["received_at"], "replaces_previous": before, "receipt": receipt}

    def _problem(self, event: Mapping[str, Any], probabilities: Any) -> str:
        if event.get("status") != "open" or datetime.fromisoformat(event["close_at"]) <= self.now():
            return "the event is closed"
        if not isinstance(probabilities, dict):
            return "probabilities must be an object"
        given = cast("dict[str, Any]", probabilities)
        names = sorted(name.casefold() for name in given)
        if names != sorted(outcome["name"].casefold() for outcome in event["outcomes"]):
            return "every outcome exactly once"
        good = all(isinstance(p, int | float) and 0 <= p <= 1 for p in given.values())
        return "" if good else "probabilities must lie in [0, 1]"
