"""A stand-in that enforces limits as a strict service does: it counts arrivals, refuses, and blocks who goes on."""

import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from foretell.data import KNOWN_SERVICES, ServiceLimit
from foretell.practice import PracticeServer, ServerRequest, ServerResponse, json_response

BLOCKED_AFTER = 3
CLIENT = """
import asyncio, os, sys
from pathlib import Path
from foretell.data import AsyncHttpClient
from foretell.data import parse_pace
from foretell.data import ServiceAccess

async def main(url, home, pace, calls):
    pairs = [one.split("=") for one in calls.split(",")]
    access = ServiceAccess(home=Path(home), pace=parse_pace(pace),
                           addresses={name.split("/")[0]: f"{url}/{name.split('/')[0]}" for name, _ in pairs})
    async with AsyncHttpClient(access=access) as client:
        paths = [name for name, number in pairs for _ in range(int(number))]
        answers = await asyncio.gather(*(client.get(f"{url}/{path}") for path in paths))
        assert all(answer.status == 200 for answer in answers)

asyncio.run(main(*sys.argv[1:]))
"""
"""A program of its own that asks services of one server many things at once: address, home, pace, `path=times,…`."""


def written_pace(limits: Mapping[str, Sequence[ServiceLimit]]) -> str:
    """Limits as text for `parse_pace`; those that a service usually has and that are not given are switched off."""
    parts: list[str] = []
    for name, given in limits.items():
        written = {one.what: f"{one.requests}/{one.seconds:g}s" for one in given}
        parts += [f"{name}/{one.what}={written.get(one.what, 'none')}" for one in KNOWN_SERVICES[name].limits]
    return ",".join(parts)


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
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def answer(self, request: ServerRequest) -> ServerResponse:
        """200, or 429 for a request over the limit; after some of these, 403 for good."""
        now = time.monotonic()
        path = request.path.removeprefix(f"/{self.name}")
        for limit in (one for one in self.limits if one.seconds and re.search(one.path, path)):
            known = self.arrivals[limit.what]
            known[:] = [at for at in known if at > now - limit.seconds]
            known.append(now)
            self.counts[limit.what] += 1
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
    server.practice = False
    for service in services:
        server.route("GET", f"/{service.name}/*", service.answer)
    return server
