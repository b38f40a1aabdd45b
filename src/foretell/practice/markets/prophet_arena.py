"""Prophet Arena for practice: live events, a weekly release, a data set, and an inbox for forecasts.

Formats and rules follow the arena's own client, prophet-arena 0.6.0.
"""

import base64
import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from foretell.practice.server import (
    Middleware,
    PracticeServer,
    PracticeService,
    ServerRequest,
    ServerResponse,
    StatusAndBody,
    json_response,
    sent_page,
)

RECEIPT = "pa-receipt-1."
WINDOW = 1
"""The round of an event that names none."""


class PracticeProphetArena(PracticeService):
    """Serves events, windows, releases, data sets and the client's own forecasts, and accepts forecasts."""

    def __init__(
        self,
        events: Iterable[Mapping[str, Any]],
        *,
        key: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        page: int = 100,
        release: Mapping[str, Any] | None = None,
        datasets: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
    ) -> None:
        """Serve live events, the release of this week, and data sets by `SLUG@VERSION`; `key` owns every agent."""
        self.events = [dict(event) for event in events]
        self.key, self.now, self.page, self.release = key, now, page, release
        self.datasets = {name: [dict(row) for row in rows] for name, rows in (datasets or {}).items()}
        self.agents: set[str] | None = None
        """The agents that may forecast; None for all."""
        self.weekly_agent: str | None = None
        """The agent registered for the weekly track; None if there is none."""
        self.quota: int | None = None
        """Number of forecasts accepted before the rest of the day is refused; None for no limit."""
        self.forecasts: list[dict[str, Any]] = []
        """All forecasts that were accepted, in order."""
        self.attempts: list[dict[str, Any]] = []
        """Failures that agents reported."""

    def server(self, middleware: Middleware | None = None) -> PracticeServer:
        """Create the server, which also serves data sets that are not JSON."""
        server = super().server(middleware)
        server.route("GET", "*", self.download)
        return server

    def download(self, request: ServerRequest) -> ServerResponse:
        """Return a packed data set, or the JSON answer to any other request."""
        if request.path.endswith("/download") and self._known(request):
            slug, _, version = request.path.strip("/").split("/")[-4:-1]
            if (rows := self.datasets.get(f"{slug}@{version}")) is not None:
                return _packed(rows)
        if "text/html" in request.headers.get("accept", "") and request.path.startswith("/events/"):
            return self._page(request.path.strip("/").split("/")[-1])
        status, body = self.get(request)
        return json_response(body, status)

    def _page(self, slug: str) -> ServerResponse:
        """Return the page of an event, as a browser opens it: no key is needed."""
        body = self._events([slug], {})
        if body is None:
            return json_response({"error": "not found"}, 404)
        sent = [("Forecast", json.dumps(sent, ensure_ascii=False)) for sent in self.forecasts if sent["event"] == slug]
        event = cast("Mapping[str, Any]", body)
        return sent_page(str(event.get("title", slug)), str(event.get("rules", "")), sent)

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Return the status and body of the answer."""
        if not self._known(request):
            return _error(401, "unauthorized", "unknown key")
        steps, query = request.path.strip("/").split("/"), request.query
        # The path may have a prefix, such as /api/v1.
        for kind in ("events", "windows", "releases", "forecasts", "weekly", "datasets", "verify"):
            if kind in steps:
                body = getattr(self, f"_{kind}")(steps[steps.index(kind) + 1 :], query)
                return _error(404, "not_found", "not found") if body is None else (200, body)
        return _error(404, "not_found", "not found")

    def post(self, request: ServerRequest) -> StatusAndBody:
        """Accept a forecast unchanged, or reject it."""
        if not self._known(request):
            return _error(401, "unauthorized", "unknown key")
        body = cast("dict[str, Any]", request.json())
        if request.path.endswith("/forecasts/attempts"):
            self.attempts.append(body)
            return 200, {"recorded": True}
        if not request.path.endswith("/forecasts"):
            return _error(404, "not_found", "not found")
        if self.quota is not None and len(self.forecasts) >= self.quota:
            return _error(429, "quota_exceeded", "the daily quota is used up; it resets at 00:00 UTC")
        event = self._event_named(body.get("event"))
        if event is None or (self.agents is not None and body.get("agent") not in self.agents):
            return _error(404, "not_found", "no such agent or event")
        if problem := self._problem(event, body):
            return _error(422, *problem)
        return 200, self._store(event, body)

    def _known(self, request: ServerRequest) -> bool:
        return request.headers.get("authorization") == f"Bearer {self.key}"

    def _events(self, steps: list[str], query: Mapping[str, str]) -> Any:
        if steps:
            event = next((event for event in self.events if event.get("slug") == steps[0]), None)
            if event is None or steps[1:] == []:
                return event
            window = {"round": _window(event), "closes_at": event["close_at"]}
            point = {"taken_at": self.now().isoformat(), "crowd": event["crowd"]}
            return {"windows": [window], "crowd": [point], "forecasts": []}.get(steps[1])
        status = query.get("status", "open")
        fitting = [event for event in self.events if status in ("all", event.get("state"))]
        start = int(query.get("cursor", "0"))
        end = start + min(int(query.get("limit", "50")), self.page)
        return {"data": fitting[start:end], "next_cursor": str(end) if end < len(fitting) else None}

    def _windows(self, steps: list[str], query: Mapping[str, str]) -> Any:
        mine = [forecast for forecast in self.forecasts if forecast["agent"] == query.get("agent")]
        answered = {(forecast["event"], forecast.get("window") or WINDOW) for forecast in mine}
        return [
            {
                "event": event["slug"],
                "title": event["title"],
                "category": event["category"],
                "round": _window(event),
                "closes_at": event["close_at"],
                "event_close_at": event["close_at"],
                "outcomes": [outcome["name"] for outcome in event["outcomes"]],
                "crowd": event["crowd"],
                "mutually_exclusive": event.get("mutually_exclusive", False),
            }
            for event in self.events
            if event["state"] == "open" and (event["slug"], _window(event)) not in answered
        ]

    def _releases(self, steps: list[str], query: Mapping[str, str]) -> Any:
        if not steps:
            return {"data": [] if self.release is None else [{**self.release, "events": []}]}
        return self.release if self.release is not None and steps[0] in ("current", self.release["week"]) else None

    def _forecasts(self, steps: list[str], query: Mapping[str, str]) -> Any:
        mine = [
            forecast
            for forecast in reversed(self.forecasts)
            if query.get("event", forecast["event"]) == forecast["event"]
            and query.get("agent", forecast["agent"]) == forecast["agent"]
        ]
        return mine[: int(query.get("limit", "100"))]

    def _weekly(self, steps: list[str], query: Mapping[str, str]) -> Any:
        if self.weekly_agent is None:
            return None
        return {"status": "approved", "org": "practice", "agent": self.weekly_agent, "name": "Practice"}

    def _datasets(self, steps: list[str], query: Mapping[str, str]) -> Any:
        by_slug: dict[str, list[str]] = {}
        for name in self.datasets:
            slug, _, version = name.partition("@")
            by_slug.setdefault(slug, []).insert(0, version)
        if not steps:
            return [{"slug": slug} for slug in by_slug]
        if steps[0] not in by_slug or len(steps) > 1:
            return None
        return {"slug": steps[0], "versions": [{"version": version} for version in by_slug[steps[0]]]}

    def _verify(self, steps: list[str], query: Mapping[str, str]) -> Any:
        if steps == ["key"]:
            return {"algorithm": "Ed25519", "public_key": practice_signature("")[1]}
        forecasts = [
            forecast for forecast in self.forecasts if steps[0] == "seals" and forecast["receipt"]["seal"] == steps[-1]
        ]
        if not forecasts:
            return None
        receipt = forecasts[0]["receipt"]
        register = {"seal": receipt["seal"], "recorded_at": receipt["recorded_at"]}
        return {
            "seal": register,
            "question": {"ref": forecasts[0]["event"]},
            "forecaster": {"key": forecasts[0]["agent"]},
        }

    def _event_named(self, slug: Any) -> dict[str, Any] | None:
        """Return a live event, or one of the release in the same format; None if there is none."""
        live = next((event for event in self.events if event["slug"] == slug), None)
        if live is not None or self.release is None:
            return live
        week = next((event for event in self.release["events"] if event["event"] == slug), None)
        state = "open" if self.release["status"] == "published" else "closed"
        return None if week is None else week | {"close_at": self.release["closes_at"], "state": state, "weekly": True}

    def _store(self, event: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        names = {outcome["name"].casefold(): outcome["name"] for outcome in event["outcomes"]}
        key = (body["agent"], body["event"], body.get("window") or _window(event))
        before = any((forecast["agent"], forecast["event"], forecast["window"]) == key for forecast in self.forecasts)
        at = (self.now() + timedelta(microseconds=len(self.forecasts))).astimezone(UTC)
        record: dict[str, Any] = {
            "id": f"f{len(self.forecasts) + 1}",
            "agent": key[0],
            "event": key[1],
            "window": key[2],
            "probabilities": {names[name.casefold()]: p for name, p in body["probabilities"].items()},
            "rationale": body.get("rationale"),
            "received_at": at.isoformat(),
            "window_closes_at": event["close_at"],
            "replaces_previous": before,
            "listed": True if event.get("weekly") else None,
            "listing_note": None,
        }
        # The weekly track is not sealed.
        record["receipt"] = None if event.get("weekly") else _receipt(record, f"{at:%Y-%m-%dT%H:%M:%S.%f}Z")
        self.forecasts.append(record)
        return record

    def _problem(self, event: Mapping[str, Any], body: Mapping[str, Any]) -> tuple[str, str] | None:
        probabilities, window = body.get("probabilities"), body.get("window")
        if window is not None and (isinstance(window, bool) or not isinstance(window, int)):
            return "validation_error", "window must be an integer"
        late = datetime.fromisoformat(event["close_at"]) <= self.now()
        if event.get("state") != "open" or late or window not in (None, _window(event)):
            return "window_not_open", "Window is not open"
        if any((outcome.get("resolution") or "pending") != "pending" for outcome in event["outcomes"]):
            return "question_settled", "the question is settled"
        if not isinstance(probabilities, dict):
            return "validation_error", "probabilities must be an object"
        by_outcome = cast("dict[str, Any]", probabilities)
        names = sorted(name.casefold() for name in by_outcome)
        if names != sorted(outcome["name"].casefold() for outcome in event["outcomes"]):
            return "validation_error", "every outcome exactly once"
        good = all(not isinstance(p, bool) and isinstance(p, int | float) and 0 <= p <= 1 for p in by_outcome.values())
        return None if good else ("validation_error", "probabilities must lie in [0, 1]")


def _window(event: Mapping[str, Any]) -> int:
    return event.get("window") or WINDOW


def _receipt(record: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Build a public seal and the key that opens it, which contains the sealed record itself."""
    sealed = {"event": record["event"], "forecaster": record["agent"], "window": record["window"], "recorded_at": at}
    opening = json.dumps(sealed | {"probabilities": record["probabilities"]}, sort_keys=True, separators=(",", ":"))
    key = base64.urlsafe_b64encode(opening.encode()).decode().rstrip("=")
    seal = hashlib.sha256(opening.encode()).hexdigest()
    return {
        "seal": seal,
        "recorded_at": at,
        "key": f"{RECEIPT}{key}",
        "signature": practice_signature(f"prophet-arena/seal/v1|{seal}|{at}")[0],
        "event": record["event"],
        "window": record["window"],
    }


def _packed(rows: Iterable[Mapping[str, Any]]) -> ServerResponse:
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        member = tarfile.TarInfo("events.jsonl")
        member.size = len(lines)
        tar.addfile(member, io.BytesIO(lines))
    headers = {"Content-Type": "application/gzip", "X-Content-Hash": hashlib.sha256(lines).hexdigest()}
    return ServerResponse(body=gzip.compress(packed.getvalue(), mtime=0), headers=headers)


def _error(status: int, code: str, message: str) -> StatusAndBody:
    return status, {"error": {"code": code, "message": message, "request_id": "practice"}}


def practice_signature(signed: str) -> tuple[str | None, str | None]:
    """Return the signature of a text and the key to verify it; None for both without `cryptography`."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        return None, None
    own = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"practice").digest())
    parts = (own.sign(signed.encode()), own.public_key().public_bytes_raw())
    signature, key = (base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    return signature, key
