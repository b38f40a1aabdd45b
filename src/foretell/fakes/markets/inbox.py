"""What may happen to something that is sent: it arrives and the answer does not, or it never arrives at all."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from foretell.fakes.server import Request, Response, json_response

Mishap = Literal["lost answer", "lost request", "busy", "broken", "broken after", "forbidden"]
"""A connection cut after or before the thing was taken; 429; 500 before or after it was taken; a 403 at the door."""
Taker = Callable[[Request], tuple[int, Any]]
CUT = Response(body=b"{}", headers={"Content-Type": "application/json"}, cut=True)


@dataclass(kw_only=True)
class Mishaps:
    """Used up one per thing sent, in order; readers are not concerned."""

    coming: list[Mishap | None] = field(default_factory=list[Mishap | None])

    def response(self, request: Request, take: Taker) -> Response:
        """The answer to something sent, or what is left of it."""
        mishap = self.coming.pop(0) if self.coming else None
        if mishap in ("lost request", "busy", "broken", "forbidden"):
            return UNTAKEN[mishap]
        status, body = take(request)
        if mishap == "lost answer":
            return CUT
        return json_response({"error": "it broke"}, 500) if mishap == "broken after" else json_response(body, status)


UNTAKEN: dict[str, Response] = {
    "lost request": CUT,
    "busy": json_response({"error": "slow down"}, 429, {"Retry-After": "0"}),
    "broken": json_response({"error": "it broke"}, 500),
    "forbidden": json_response({"detail": "blocked"}, 403),
}
