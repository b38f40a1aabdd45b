"""Faults of a practice server: single responses, lost submissions, parts that are down, changed fields."""

import json
from collections.abc import Awaitable, Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from foretell.practice.server import Handler, Middleware, PracticeServer, ServerRequest, ServerResponse, json_response

# Single answers.

ServerFault = Callable[[ServerResponse], ServerResponse]
"""Turns a good response into a bad one."""


def busy(retry_after: str = "0") -> ServerFault:
    """Return status 429 with a Retry-After header."""
    return lambda _: json_response({"error": "slow down"}, 429, {"Retry-After": retry_after})


def failing(status: int = 500) -> ServerFault:
    """Return a server error."""
    return lambda _: json_response({"error": "it broke"}, status)


def cut_off() -> ServerFault:
    """End the connection in the middle of the body."""
    return lambda good: replace(good, cut=len(good.body) // 2 or 1)


def garbled() -> ServerFault:
    """Return half of the body as if it were complete: JSON that does not parse."""
    return lambda good: replace(good, body=good.body[: len(good.body) // 2])


def slow(seconds: float) -> ServerFault:
    """Return the right response, late."""
    return lambda good: replace(good, delay=seconds)


class _FaultQueue:
    """Middleware that uses one fault per request, in order, after other middleware."""

    def __init__(self, inner: Middleware | None) -> None:
        self.inner = inner
        self.faults: list[ServerFault] = []

    def __call__(self, request: ServerRequest, handler: Handler) -> ServerResponse | Awaitable[ServerResponse]:
        fault = self.faults.pop(0) if self.faults else None
        response = handler(request) if self.inner is None else self.inner(request, handler)
        return response if fault is None else fault(cast("ServerResponse", response))


def changed(drift: "FieldDrift") -> ServerFault:
    """Return a response with a changed field."""
    return lambda good: json_response(drift.applied(json.loads(good.body)), good.status)


def inject(server: PracticeServer, *faults: ServerFault) -> None:
    """Make the next responses of a server fail, one by one; without faults, stop failing."""
    if not isinstance(server.middleware, _FaultQueue):
        server.middleware = _FaultQueue(server.middleware)
    server.middleware.faults = list(faults)


# Submissions that arrive without a response, or that never arrive.

InboxFault = Literal["lost answer", "lost request", "busy", "broken", "broken after", "forbidden"]
"""A connection cut after or before the submission was accepted; 429; 500 before or after it; 403 before it."""
CUT = ServerResponse(body=b"{}", headers={"Content-Type": "application/json"}, cut=1)
REFUSED_RESPONSES: dict[str, ServerResponse] = {
    "lost request": CUT,
    "busy": json_response({"error": "slow down"}, 429, {"Retry-After": "0"}),
    "broken": json_response({"error": "it broke"}, 500),
    "forbidden": json_response({"detail": "blocked"}, 403),
}


@dataclass(kw_only=True)
class InboxFaults:
    """Faults used one per submission, in order; reading is not affected."""

    coming: list[InboxFault | None] = field(default_factory=list[InboxFault | None])

    def __call__(self, request: ServerRequest, handler: Handler) -> ServerResponse:
        """Return the response to a submission after a fault."""
        fault = self.coming.pop(0) if self.coming else None
        if fault in REFUSED_RESPONSES:
            return REFUSED_RESPONSES[fault]
        response = cast("ServerResponse", handler(request))
        if fault == "lost answer":
            return CUT
        return json_response({"error": "it broke"}, 500) if fault == "broken after" else response


# Parts that are down, and fields that change.

Change = Literal["drop", "rename", "retype", "null", "add", "plant"]
EVERY = "*"


@dataclass(frozen=True, kw_only=True)
class FieldDrift:
    """A change to a field wherever a dotted path leads.

    `*` is every entry of a list, a number one of them, and `**` in front finds the field at any depth.

    >>> FieldDrift(path="events.*.title", change="rename").applied({"events": [{"title": "a"}]})
    {'events': [{'title_v2': 'a'}]}
    """

    path: str
    change: Change = "drop"
    value: Any = None
    """The value that `plant` puts into the field, if it exists."""

    def applied(self, body: Any) -> Any:
        """Return a changed copy."""
        changed = deepcopy(body)
        *steps, field = self.path.split(".")
        for holder in list(_reached([changed], steps)):
            _spoil(holder, field, self.change, self.value)
        return changed


@dataclass(kw_only=True)
class MarketFaults:
    """Switches that spoil the responses of a market; all are off by default."""

    down: tuple[str, ...] = ()
    """Parts of paths that answer 503."""
    drifts: tuple[FieldDrift, ...] = ()

    def __call__(self, request: ServerRequest, handler: Handler) -> ServerResponse:
        """Return the response after the faults."""
        if any(part in request.path for part in self.down):
            return json_response({"error": "out of service"}, 503)
        response = cast("ServerResponse", handler(request))
        if response.status != 200 or not self.drifts:
            return response
        body = json.loads(response.body)
        for drift in self.drifts:
            body = drift.applied(body)
        return json_response(body)


def _reached(holders: list[Any], steps: list[str]) -> Iterator[Any]:
    for step in steps:
        holders = [part for holder in holders for part in _parts(holder, step)]
    yield from holders


def _parts(holder: Any, step: str) -> Iterator[Any]:
    if step == "**":
        yield from _everywhere(holder)
    elif isinstance(holder, list):
        entries = cast("list[Any]", holder)
        yield from entries if step == EVERY else [entry for n, entry in enumerate(entries) if str(n) == step]
    elif isinstance(holder, dict):
        fields = cast("dict[str, Any]", holder)
        yield from [fields[step]] if step in fields else []


def _everywhere(holder: Any) -> Iterator[Any]:
    yield holder
    if isinstance(holder, dict):
        for value in cast("dict[str, Any]", holder).values():
            yield from _everywhere(value)
    elif isinstance(holder, list):
        for value in cast("list[Any]", holder):
            yield from _everywhere(value)


def _spoil(holder: Any, field: str, change: Change, value: Any) -> None:
    if not isinstance(holder, dict):
        return
    fields = cast("dict[str, Any]", holder)
    changes: dict[Change, Callable[[], Any]] = {
        "drop": lambda: fields.pop(field),
        "rename": lambda: fields.update({f"{field}_v2": fields.pop(field)}),
        "retype": lambda: fields.update({field: {"value": fields[field]}}),
        "null": lambda: fields.update({field: None}),
        "plant": lambda: fields.update({field: value}),
    }
    if change == "add":
        fields[field] = "something new"
    elif field in fields:
        changes[change]()
