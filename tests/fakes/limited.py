"""A test server that enforces limits as a strict service does: it counts requests, refuses, and blocks clients."""

import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from foretell.data.known_services import KNOWN_SERVICES
from foretell.models.rate_limits import RateLimit
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse, json_response

BLOCKED_AFTER = 3
CLIENT = """
import asyncio, os, sys
from pathlib import Path
from foretell.data.http import AsyncHttpClient
from foretell.data.known_services import parse_rate_limits
from foretell.data.service_limits import ServiceAccess

async def main(url, home, limits, calls):
    pairs = [one.split("=") for one in calls.split(",")]
    access = ServiceAccess(home=Path(home), rate_limits=parse_rate_limits(limits),
                           addresses={name.split("/")[0]: f"{url}/{name.split('/')[0]}" for name, _ in pairs})
    async with AsyncHttpClient(access=access) as client:
        paths = [name for name, number in pairs for _ in range(int(number))]
        answers = await asyncio.gather(*(client.get(f"{url}/{path}") for path in paths))
        assert all(answer.status == 200 for answer in answers)

asyncio.run(main(*sys.argv[1:]))
"""
"""A program that sends many requests at once to services: address, home, rate limits, `path=times,…`."""


def at_once(most: int) -> RateLimit:
    """Return a limit on requests in flight."""
    return RateLimit(what="at-once", most=most)


def written_rate_limits(limits: Mapping[str, Sequence[RateLimit]]) -> str:
    """Return limits as text for `parse_rate_limits`; usual limits of a service that are not given are switched off."""
    parts: list[str] = []
    for name, service_limits in limits.items():
        limit_texts = {limit.what: f"{limit.most}/{limit.seconds:g}s" for limit in service_limits}
        parts += [f"{name}/{limit.what}={limit_texts.get(limit.what, 'none')}" for limit in KNOWN_SERVICES[name].limits]
    return ",".join(parts)


@dataclass
class LimitedService:
    """One service below a path; every request is checked against all of its limits, over sliding windows."""

    name: str
    limits: Sequence[RateLimit]
    answer_seconds: float = 0.0
    arrivals: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    under_way: int = 0
    over: list[str] = field(default_factory=list)
    """Requests over a limit."""
    blocked: bool = False
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By limit: the times of the first and the last request."""
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def answer(self, request: ServerRequest) -> ServerResponse:
        """Return 200, or 429 for a request over the limit; after several of these, always 403."""
        now = time.monotonic()
        path = request.path.removeprefix(f"/{self.name}")
        for limit in (candidate for candidate in self.limits if candidate.seconds and re.search(candidate.path, path)):
            times = self.arrivals[limit.what]
            times[:] = [at for at in times if at > now - limit.seconds]
            times.append(now)
            self.counts[limit.what] += 1
            if len(times) > limit.most:
                self.over.append(f"{self.name}/{limit.what}: {len(times)} in {limit.seconds:g} s")
            self.spans[limit.what] = (self.spans.get(limit.what, (now, now))[0], now)
        self.blocked = self.blocked or len(self.over) >= BLOCKED_AFTER
        if self.blocked:
            return json_response({"error": "blocked"}, 403)
        delay = self.answer_seconds
        return json_response({"error": "too fast"}, 429) if self.over else ServerResponse(body=b"{}", delay=delay)


def limited_server(services: Sequence[LimitedService]) -> PracticeServer:
    """Serve all services on one port, each below its own path."""
    server = PracticeServer()
    server.practice = False
    for service in services:
        server.route("GET", f"/{service.name}/*", service.answer)
    return server
