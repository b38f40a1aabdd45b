"""A stand-in for Prophet Arena's list of events."""

from collections.abc import Iterable, Mapping
from typing import Any

from foretell.fakes.markets.trouble import Trouble
from foretell.fakes.server import FakeServer, Request, Response


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


class FakeArena:
    """Answers `/events` with cursors, and `/events/<slug>`."""

    def __init__(self, events: Iterable[Mapping[str, Any]], *, key: str, page: int = 100) -> None:
        self.events = [dict(event) for event in events]
        self.key = key
        self.page = page
        self.trouble = Trouble()

    def server(self) -> FakeServer:
        """A server that answers so."""
        server = FakeServer()
        server.route("GET", "*", self._respond)
        return server

    def _respond(self, request: Request) -> Response:
        return self.trouble.response(request, *self.answer(request))

    def answer(self, request: Request) -> tuple[int, Any]:
        """Status and body."""
        if request.headers.get("authorization") != f"Bearer {self.key}":
            return 401, {"error": "unknown key"}
        name = request.path.strip("/").rpartition("/")[2]
        if name != "events":
            found = next((event for event in self.events if event.get("slug") == name), None)
            return (200, {"data": found}) if found is not None else (404, {"error": "not found"})
        fitting = [event for event in self.events if event.get("status") == request.query.get("status", "open")]
        start = int(request.query.get("cursor", "0"))
        end = start + min(int(request.query.get("limit", "50")), self.page)
        return 200, {"data": fitting[start:end], "next_cursor": str(end) if end < len(fitting) else None}
