"""Ways for a practice server to go wrong: single answers, things that are sent, parts that are down, changed fields."""

import json
from collections.abc import Awaitable, Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from foretell.practice import Handler, Middleware, PracticeServer, ServerRequest, ServerResponse, json_response

# Single answers.

ServerFault = Callable[[ServerResponse], ServerResponse]
"""Turns a good answer into a bad one."""


def busy(retry_after: str = "0") -> ServerFault:
    """429, with the wait it asks for."""
    return lambda _: json_response({"error": "slow down"}, 429, {"Retry-After": retry_after})


def failing(status: int = 500) -> ServerFault:
    """An error of the server."""
    return lambda _: json_response({"error": "it broke"}, status)


def cut_off() -> ServerFault:
    """The connection ends in the middle of the body."""
    return lambda good: replace(good, cut=len(good.body) // 2 or 1)


def garbled() -> ServerFault:
    """Half of the body, declared whole: JSON that does not parse."""
    return lambda good: replace(good, body=good.body[: len(good.body) // 2])


def slow(seconds: float) -> ServerFault:
    """The right answer, late."""
    return lambda good: replace(good, delay=seconds)


class _FaultQueue:
    """Middleware that uses up one fault per request, in order, after what else stands between."""

    def __init__(self, inner: Middleware | None) -> None:
        self.inner = inner
        self.faults: list[ServerFault] = []

    def __call__(self, request: ServerRequest, handler: Handler) -> ServerResponse | Awaitable[ServerResponse]:
        fault = self.faults.pop(0) if self.faults else None
        response = handler(request) if self.inner is None else self.inner(request, handler)
        return response if fault is None else fault(cast("ServerResponse", response))


def changed(drift: "FieldDrift") -> ServerFault:
    """An answer with a changed field."""
    return lambda good: json_response(drift.applied(json.loads(good.body)), good.status)


def inject(server: PracticeServer, *faults: ServerFault) -> None:
    """Let the next answers of a server go wrong, one by one; without faults, none any more."""
    if not isinstance(server.middleware, _FaultQueue):
        server.middleware = _FaultQueue(server.middleware)
    server.middleware.faults = list(faults)


# Things that are sent: they arrive and the answer does not, or they never arrive at all.

InboxFault = Literal["lost answer", "lost request", "busy", "broken", "broken after", "forbidden"]
"""A connection cut after or before the thing was taken; 429; 500 before or after it was taken; 403 before."""
CUT = ServerResponse(body=b"{}", headers={"Content-Type": "application/json"}, cut=1)
REFUSED_RESPONSES: dict[str, ServerResponse] = {
    "lost request": CUT,
    "busy": json_response({"error": "slow down"}, 429, {"Retry-After": "0"}),
    "broken": json_response({"error": "it broke"}, 500),
    "forbidden": json_response({"detail": "blocked"}, 403),
}


@dataclass(kw_only=True)
class InboxFaults:
    """Used up one per thing sent, in order; readers are not concerned."""

    coming: list[InboxFault | None] = field(default_factory=list[InboxFault | None])

    def __call__(self, request: ServerRequest, handler: Handler) -> ServerResponse:
        """The answer to something sent, or what is left of it."""
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
    """What `plant` puts there, where there is such a field."""

    def applied(self, body: Any) -> Any:
        """A changed copy."""
        changed = deepcopy(body)
        *steps, field = self.path.split(".")
        for holder in list(_reached([changed], steps)):
            _spoil(holder, field, self.change, self.value)
        return changed


@dataclass(kw_only=True)
class MarketFaults:
    """Switches that spoil a market's answers; all of them off at first."""

    down: tuple[str, ...] = ()
    """Parts of paths, which answer 503."""
    drifts: tuple[FieldDrift, ...] = ()

    def __call__(self, request: ServerRequest, handler: Handler) -> ServerResponse:
        """What is sent instead of a good answer."""
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
        yield from entries if step == EVERY else [one for n, one in enumerate(entries) if str(n) == step]
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
