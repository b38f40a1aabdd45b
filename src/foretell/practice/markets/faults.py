"""Ways for a fake market to go wrong until told otherwise: parts that are down, fields that change."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal, cast
from urllib.parse import parse_qsl, urlsplit

from foretell.practice.server import ServerRequest, ServerResponse, json_response

# What may happen to something that is sent: it arrives and the answer does not, or it never arrives at all.

InboxFault = Literal["lost answer", "lost request", "busy", "broken", "broken after", "forbidden"]
"""A connection cut after or before the thing was taken; 429; 500 before or after it was taken; a 403 at the door."""
TakeSubmission = Callable[[ServerRequest], tuple[int, Any]]
CUT = ServerResponse(body=b"{}", headers={"Content-Type": "application/json"}, cut=True)


@dataclass(kw_only=True)
class InboxFaults:
    """Used up one per thing sent, in order; readers are not concerned."""

    coming: list[InboxFault | None] = field(default_factory=list[InboxFault | None])

    def response(self, request: ServerRequest, take: TakeSubmission) -> ServerResponse:
        """The answer to something sent, or what is left of it."""
        mishap = self.coming.pop(0) if self.coming else None
        if mishap in ("lost request", "busy", "broken", "forbidden"):
            return REFUSED_RESPONSES[mishap]
        status, body = take(request)
        if mishap == "lost answer":
            return CUT
        return json_response({"error": "it broke"}, 500) if mishap == "broken after" else json_response(body, status)


REFUSED_RESPONSES: dict[str, ServerResponse] = {
    "lost request": CUT,
    "busy": json_response({"error": "slow down"}, 429, {"Retry-After": "0"}),
    "broken": json_response({"error": "it broke"}, 500),
    "forbidden": json_response({"detail": "blocked"}, 403),
}


Change = Literal["drop", "rename", "retype", "null", "add"]
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

    def applied(self, body: Any) -> Any:
        """A changed copy."""
        changed = deepcopy(body)
        *steps, field = self.path.split(".")
        for holder in list(_reached([changed], steps)):
            _spoil(holder, field, self.change)
        return changed


@dataclass(kw_only=True)
class MarketFaults:
    """Switches that spoil a fake's answers; all of them off at first."""

    down: tuple[str, ...] = ()
    """Beginnings of what comes after the host, which answer 503. A part of any path will do."""
    drifts: tuple[FieldDrift, ...] = ()

    def response(self, request: ServerRequest, status: int, body: Any) -> ServerResponse:
        """What is sent instead of a good answer."""
        if any(part in request.path for part in self.down):
            return json_response({"error": "out of service"}, 503)
        for drift in self.drifts:
            body = drift.applied(body) if status == 200 else body
        return json_response(body, status)


def query_of(request: ServerRequest) -> dict[str, str]:
    """The query; a name given several times has its values joined by commas."""
    found: dict[str, str] = {}
    for name, value in parse_qsl(urlsplit(request.target).query, keep_blank_values=True):
        found[name] = f"{found[name]},{value}" if name in found else value
    return found


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


def _spoil(holder: Any, field: str, change: Change) -> None:
    if not isinstance(holder, dict):
        return
    fields = cast("dict[str, Any]", holder)
    changes: dict[Change, Callable[[], Any]] = {
        "drop": lambda: fields.pop(field),
        "rename": lambda: fields.update({f"{field}_v2": fields.pop(field)}),
        "retype": lambda: fields.update({field: {"value": fields[field]}}),
        "null": lambda: fields.update({field: None}),
    }
    if change == "add":
        fields[field] = "something new"
    elif field in fields:
        changes[change]()
