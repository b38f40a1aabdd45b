"""A stand-in that enforces limits as a strict service does: it counts arrivals, refuses, and blocks who goes on."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from foretell.data.known_services import ServiceLimit
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse, json_response

BLOCKED_AFTER = 3


@dataclass
class LimitedService:
    """One service below a path; every request is judged by all of its limits, over a sliding span of each."""

    name: str
    limits: Sequence[ServiceLimit]
    answer_seconds: float = 0.0
    arrivals: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    under_way: int = 0
    over: list[str] = field(default_factory=list)
    """What was over a limit."""
    blocked: bool = False
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By limit: when the first and the last request came."""

    def answer(self, request: ServerRequest) -> ServerResponse:
        """200, or 429 for a request over the limit; after some of these, 403 for good."""
        import re

        now = time.monotonic()
        path = request.path.removeprefix(f"/{self.name}")
        for limit in (one for one in self.limits if one.seconds and re.search(one.path, path)):
            known = self.arrivals[limit.what]
            known[:] = [at for at in known if at > now - limit.seconds]
            known.append(now)
            if len(known) > limit.requests:
                self.over.append(f"{self.name}/{limit.what}: {len(known)} in {limit.seconds:g} s")
            self.spans[limit.what] = (self.spans.get(limit.what, (now, now))[0], now)
        self.blocked = self.blocked or len(self.over) >= BLOCKED_AFTER
        if self.blocked:
            return json_response({"error": "blocked"}, 403)
        delay = self.answer_seconds
        return json_response({"error": "too fast"}, 429) if self.over else ServerResponse(body=b"{}", delay=delay)


def limited_server(services: Sequence[LimitedService]) -> PracticeServer:
    """All of them on one port, each below a path of its own."""
    server = PracticeServer()
    for service in services:
        server.route("GET", f"/{service.name}/*", service.answer)
    return server
