"""Fifty trials of several processes against test servers that enforce the published limits, compared with the limits.

The servers count arrivals over a sliding window and block clients that exceed a limit; a minute is shortened to twelve
seconds. Prints, for each service, the requests over its limit and the time from the first to the last arrival as a
ratio to the minimum that the limits allow; then the CPU cost of a request with a limit, without one, and without a
service.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from fakes.limited import CLIENT, LimitedService, at_once, limited_server, written_rate_limits
from foretell.data.http import AsyncHttpClient
from foretell.data.known_services import parse_rate_limits
from foretell.data.service_limits import ServiceAccess
from foretell.models.rate_limits import RateLimit
from foretell.practice.server import PracticeServer, ServerResponse

PROCESSES = 4
ANSWER_SECONDS = 0.02
CALLS = 1_000


def limit(requests: int, seconds: float, what: str = "requests", path: str = "") -> RateLimit:
    return RateLimit(what=what, most=requests, seconds=seconds, path=path)


LIMITS = {
    "wayback": (limit(30, 12.0, "look-ups", "/cdx/"), limit(600, 12.0, "pages", "/web/"), at_once(10)),
    "gdelt": (limit(1, 5.0),),
    "metaculus": (limit(1, 4.0),),
    "asknews": (limit(1, 10.0),),
    "fred": (limit(120, 12.0),),
    "kalshi": (limit(10, 1.0),),
    "manifold": (limit(500, 12.0), at_once(20)),
    "open_meteo": (limit(600, 12.0, "minute"), at_once(10)),
}
"""The limits of the table, with a minute shortened to twelve seconds."""
CELLS = {
    "wayback/cdx/search": 24,
    "wayback/web/2026": 40,
    "gdelt/doc": 2,
    "metaculus/posts": 2,
    "asknews/news": 1,
    "fred/series": 100,
    "kalshi/markets": 60,
    "manifold/bets": 130,
    "open_meteo/v1": 160,
}
"""The requests of the trials of each process, all at once."""


def least_seconds(limit: RateLimit, requests: int) -> float:
    """Return the minimum seconds from the first to the last of these requests under a limit."""
    return (requests - 1) // limit.most * limit.seconds


async def run_cells(services: Sequence[LimitedService], home: str) -> float:
    calls = ",".join(f"{path}={times}" for path, times in CELLS.items())
    async with limited_server(services) as server:
        command = [sys.executable, "-c", CLIENT, server.url, home, written_rate_limits(LIMITS), calls]
        begun = time.perf_counter()
        started = [await asyncio.create_subprocess_exec(*command) for _ in range(PROCESSES)]
        codes = [await process.wait() for process in started]
        assert not any(codes), "a request failed"
        return time.perf_counter() - begun


def show_limits() -> None:
    services = [LimitedService(name, limits, answer_seconds=ANSWER_SECONDS) for name, limits in LIMITS.items()]
    with tempfile.TemporaryDirectory() as home:
        took = asyncio.run(run_cells(services, home))
    print(f"{'limit':20} {'requests':>8} {'over':>5} {'least':>7} {'took':>7} {'ratio':>6}")
    longest = 0.0
    for service in services:
        for limit in (limit for limit in service.limits if limit.seconds):
            requests = service.counts[limit.what]
            first, last = service.spans[limit.what]
            least = least_seconds(limit, requests)
            ratio = f"{(last - first) / least:6.2f}" if least else "     -"
            longest = max(longest, least)
            name = f"{service.name}/{limit.what}"
            print(f"{name:20} {requests:8} {len(service.over):5} {least:7.2f} {last - first:7.2f} {ratio}")
    spans = [span for service in services for span in service.spans.values()]
    run = max(last for _, last in spans) - min(first for first, _ in spans)
    print(f"all together: {run:.2f} s, {longest:.2f} s at least: {run / longest:.2f}; {took:.2f} s with the start")


async def seconds_for_one(limits: str, service: str | None) -> float:
    server = PracticeServer()
    server.route("GET", "/", lambda _: ServerResponse(body=b"{}"))
    with tempfile.TemporaryDirectory() as home:
        async with server:
            addresses = {service: server.url} if service else {}
            access = ServiceAccess(home=Path(home), addresses=addresses, rate_limits=parse_rate_limits(limits))
            async with AsyncHttpClient(access=access) as client:
                await client.get(f"{server.url}/")
                begun = time.process_time()
                for _ in range(CALLS):
                    await client.get(f"{server.url}/")
                return (time.process_time() - begun) / CALLS


def show_costs() -> None:
    cases = {"no service": ("", None), "no limit": ("", "kalshi"), "one limit": ("kalshi=100000/s", "kalshi")}
    best = {name: min(asyncio.run(seconds_for_one(*case)) for _ in range(3)) for name, case in cases.items()}
    plain = best["no service"]
    for name, seconds in best.items():
        print(f"{name:12} {1e6 * seconds:7.0f} µs of CPU a request, {seconds / plain:5.2f} of one without a service")


if __name__ == "__main__":
    show_limits()
    show_costs()
