"""A round of ForecastBench of any size for practice: questions of every source, and the services that know the values.

The services have the rate limits of the real ones and refuse what exceeds them. One series in ten has a gap.
"""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from inspect import isawaitable
from math import sin
from pathlib import Path
from time import monotonic
from typing import Any

from foretell.data.known_services import KNOWN_SERVICES
from foretell.models.rate_limits import RateLimit
from foretell.plugins import names
from foretell.practice.forecastbench import (
    HORIZONS,
    PracticeBucket,
    market_question,
    series_question,
    serve_rounds,
    set_body,
)
from foretell.practice.markets.manifold import PracticeManifold, SampleManifoldBet
from foretell.practice.series import (
    PracticeAcled,
    PracticeDbnomics,
    PracticeFred,
    PracticeOpenMeteo,
    PracticeYahoo,
    SampleConflictEvent,
    SampleDbnomicsSeries,
    SampleFredSeries,
    SampleFredValue,
    SampleShare,
)
from foretell.practice.server import Handler, PracticeServer, ServerRequest, ServerResponse, json_response
from foretell.practice.web import PageVersion, SampleWorld, wikipedia_server

DAY = timedelta(days=1)
YEARS = 2 * 365
EVENT_DAYS = 380
OPENS = time(14, 30, tzinfo=UTC)
GAP = 10
"""One series in so many has a gap."""
SERIES_SOURCES = ("fred", "yfinance", "dbnomics", "acled", "wikipedia")
MARKET_SHARES: Mapping[str, float] = {"manifold": 0.8, "infer": 0.2}
RANKING = "FIDE rankings"
SITE, BUCKETS = "/forecastbench", "/buckets"


def sample_value(number: int, day: date) -> float:
    """Return the value of a series on a day: a level plus two waves, different for every series."""
    n = day.toordinal() + 37 * number
    return round(20.0 + number % 7 + 6 * sin(n / 58.1) + 2 * sin(n / 4.7), 3)


@dataclass(frozen=True, kw_only=True)
class WholeRound:
    """The questions of rounds of a given size, and services with values up to now."""

    now: datetime
    size: int = 500
    stations: Sequence[str] = ("07607", "07149", "07510", "07630", "07690")
    """WMO numbers of weather stations; they are repeated if the round has more questions about temperatures."""
    key: str = "practice"
    value: Callable[[int, date], float] = sample_value
    """The value of a series on a day, by its number."""

    @property
    def each(self) -> int:
        """Number of questions of each source of series."""
        return self.size // 2 // len(SERIES_SOURCES)

    def question_set(self, due: date) -> dict[str, Any]:
        """Build the question set of a round."""
        markets = [
            market_question(due, source, f"{source}market{n:04d}", f"Will thing {n} of {source} happen?", 0.4)
            for source, share in MARKET_SHARES.items()
            for n in range(round(share * (self.size - self.each * len(SERIES_SOURCES))))
        ]
        series = [
            series_question(
                due, source, *self._asked(source, n), str(self.value(n, due - 10 * DAY)), len(HORIZONS) - n % 2
            )
            for source in SERIES_SOURCES
            for n in range(self.each if source != "dbnomics" else min(self.each, len(self.stations)))
        ]
        return set_body(due, [*markets, *series])

    def _asked(self, source: str, n: int) -> tuple[str, str]:
        """Return the id and the text of a question."""
        if source == "fred":
            return _fred_id(n), f"Will series {n} of a bank have increased by {{resolution_date}}?"
        if source == "yfinance":
            text = f"Will the price of share {n} be higher on {{resolution_date}} than on {{forecast_due_date}}?"
            return f"SHARE{n}", text
        if source == "dbnomics":
            text = f"Will it be warmer at station {n} on {{resolution_date}} than on {{forecast_due_date}}?"
            return f"meteofrance_TEMPERATURE_celsius.{self.stations[n]}.D", text
        if source == "acled":
            text = (
                f"Will there be more 'Protests' in Land {n} for the 30 days before {{resolution_date}} compared to the "
                "30-day average of 'Protests' over the 360 days preceding {forecast_due_date}?"
            )
            return f"events{n}", text
        text = (
            f"According to Wikipedia, will Player {n} have a FIDE ranking on {{resolution_date}} as high or higher "
            "than their ranking on {forecast_due_date}?"
        )
        return f"rank{n}", text

    def servers(self, latency: float = 0.0) -> "dict[str, PracticeServer]":
        """Create the services by name, each behind its own gate, and the site of the benchmark with a bucket."""
        today = self.now.date()
        services = {
            "fred": PracticeFred(self._fred(), key=self.key, today=today).server(),
            "yfinance": PracticeYahoo(self._shares()).server(),
            "dbnomics": PracticeDbnomics(self._stations()).server(),
            "open_meteo": PracticeOpenMeteo(lambda day: self.value(0, day), today=today, persists=True).server(),
            "acled": PracticeAcled(self._events(), password=self.key).server(),
            "wikipedia": wikipedia_server(SampleWorld(now=self.now, articles={RANKING: self._rankings()})),
            "manifold": PracticeManifold(self._bets()).server(),
        }
        for name, server in services.items():
            server.middleware = ServiceGate(name=LIMITED_AS.get(name, name), latency=latency)
            server.practice = False
        services["site"] = PracticeServer()
        serve_rounds(services["site"], SITE, self.now, self.question_set)
        PracticeBucket(self.key).serve(services["site"], BUCKETS)
        return services

    @asynccontextmanager
    async def open(self, latency: float = 0.0) -> "AsyncGenerator[RoundServices]":
        """Start the services, and stop them at the end."""
        async with AsyncExitStack() as stack:
            servers = self.servers(latency)
            for server in servers.values():
                await stack.enter_async_context(server)
            yield RoundServices(servers=servers, key=self.key)

    def _days(self, count: int, until: int) -> list[date]:
        """Return so many days, the last one so many days before today."""
        return [self.now.date() - n * DAY for n in range(count + until, until - 1, -1)]

    def _fred(self) -> dict[str, SampleFredSeries]:
        """Daily and weekly series. A weekly value is published five days after its Saturday."""
        series: dict[str, SampleFredSeries] = {}
        for n in range(self.each):
            days = [day for day in self._days(YEARS, 1) if (day.weekday() == 5 if n % 2 else day.weekday() < 5)]
            delay = 5 * DAY if n % 2 else DAY
            values = tuple(SampleFredValue(day=day, value=self.value(n, day), since=day + delay) for day in days)
            series[_fred_id(n)] = SampleFredSeries(observations=values)
        return {id: values for n, (id, values) in enumerate(series.items()) if n % GAP != GAP - 1}

    def _shares(self) -> dict[str, SampleShare]:
        days = [day for day in self._days(YEARS, 1) if day.weekday() < 5]
        return {
            f"SHARE{n}": SampleShare(sessions=tuple((datetime.combine(day, OPENS), self.value(n, day)) for day in days))
            for n in range(self.each)
        }

    def _stations(self) -> dict[str, SampleDbnomicsSeries]:
        return {
            f"meteofrance/TEMPERATURE/celsius.{station}.D": SampleDbnomicsSeries(
                values=tuple((day, self.value(n, day)) for day in self._days(YEARS, 20 if n % GAP == GAP - 1 else 1))
            )
            for n, station in enumerate(self.stations)
        }

    def _events(self) -> list[SampleConflictEvent]:
        """One to three protests a day in every country, known until three days ago."""
        return [
            SampleConflictEvent(
                id=f"E{n}-{day}-{m}",
                day=day,
                changed=datetime.combine(day + 3 * DAY, time(0, tzinfo=UTC)),
                country=f"Land {n}",
            )
            for n in range(self.each)
            for day in self._days(EVENT_DAYS, 3)
            for m in range(1 + int(self.value(n, day)) % 3)
        ]

    def _rankings(self) -> list[PageVersion]:
        """Return a list of players for every month of two years; each month, the order differs a little."""
        versions: list[PageVersion] = []
        for month in sorted({day.replace(day=1) for day in self._days(YEARS, 0)}):
            players = sorted(range(self.each), key=lambda n, month=month: n + self.value(n, month) / 4)
            rows = "".join(
                f"|-\n| {rank} || Player {n} || {2800 - 5 * rank}\n" for rank, n in enumerate(players, start=1)
            )
            text = f"== Men ==\n{{|\n! Rank !! Player !! Rating\n{rows}|}}\n"
            versions.append(PageVersion(at=datetime.combine(month, time(1, tzinfo=UTC)), text=text))
        return versions

    def _bets(self) -> dict[str, tuple[SampleManifoldBet, ...]]:
        noons = [datetime.combine(day, time(12, tzinfo=UTC)) for day in self._days(60, 1)]
        return {
            f"manifoldmarket{n:04d}": tuple(
                SampleManifoldBet(
                    id=f"b{at:%m%d}", at_ms=int(at.timestamp() * 1000), after=self.value(n, at.date()) % 50 / 50
                )
                for at in noons
            )
            for n in range(self.size)
        }


@dataclass(frozen=True, kw_only=True)
class RoundServices:
    """The running services of a round."""

    servers: Mapping[str, PracticeServer]
    key: str

    @property
    def gates(self) -> "dict[str, ServiceGate]":
        """The gate of every service that has limits, by its plug-in."""
        middleware = {name: server.middleware for name, server in self.servers.items()}
        return {name: gate for name, gate in middleware.items() if isinstance(gate, ServiceGate)}

    def environment(self, home: Path) -> dict[str, str]:
        """Return the environment in which these services are used instead of all public ones.

        The settings of the home get the contact address that one of them requires.
        """
        home.mkdir(parents=True, exist_ok=True)
        (home / "settings.toml").write_text(f'contact = "practice@example.org"\n{self._rates()}', encoding="utf-8")
        site = self.servers["site"].url
        unused = {*names("series"), *names("markets"), "wayback"} - {"csv", *self.servers}
        return {
            **{f"FORETELL_{name.upper()}_URL": f"{site}/nothing" for name in unused},
            **{f"FORETELL_{name.upper()}_URL": self.servers[name].url for name in self.gates},
            "FORETELL_YAHOO_URL": self.servers["yfinance"].url,
            "FORETELL_FORECASTBENCH_URL": f"{site}{SITE}",
            "FORETELL_BUCKETS_URL": f"{site}{BUCKETS}",
            "FORETELL_HOME": str(home),
            "FORECASTBENCH_TOKEN": self.key,
            "FRED_API_KEY": self.key,
            "ACLED_EMAIL": "practice@example.org",
            "ACLED_PASSWORD": self.key,
        }

    def _rates(self) -> str:
        """Return the section of the settings with the limits that gates have instead of those of the real service."""
        own = {gate.name: gate.limits for gate in self.gates.values() if gate.limits is not None}
        lines = [f'{name} = "none"' for name, limits in own.items() if not limits]
        lines += [
            f'{name} = "{int(limit.most)}/{limit.seconds:g}s"' for name, limits in own.items() for limit in limits
        ]
        return "\n".join(["[rate_limits]", *lines, ""]) if lines else ""


def _fred_id(n: int) -> str:
    return f"SERIES{n}"


LIMITED_AS = {"yfinance": "yahoo"}
"""Plug-ins whose service has another name."""
EARLY = 0.05
"""Share of a span by which requests may arrive closer together than they were sent."""


@dataclass(kw_only=True)
class ServiceGate:
    """Lets requests through as the real service does: with latency, within its limits, and not while it is down."""

    name: str
    latency: float = 0.0
    down: int = 0
    """The status of every answer while the service is down, such as 503; 0 if it is not."""
    limits: tuple[RateLimit, ...] | None = None
    """None for the limits of the real service."""
    targets: list[str] = field(default_factory=list[str])
    """Path and query of every GET request."""
    refused: int = 0
    """Number of requests that exceeded a limit."""
    units: float = 0.0
    """Sum of what the requests count as."""
    _recent: dict[RateLimit, deque[tuple[float, float]]] = field(
        default_factory=dict[RateLimit, deque[tuple[float, float]]]
    )
    _flying: int = 0

    async def __call__(self, request: ServerRequest, handler: Handler) -> ServerResponse:
        """Answer a request after the latency, or refuse it."""
        if request.method == "GET":
            self.targets.append(request.target)
        self._flying += 1
        try:
            exceeded = self._exceeds(request)
            self.refused += exceeded
            await asyncio.sleep(self.latency)
            if self.down:
                return json_response({"error": "down for maintenance"}, self.down)
            if exceeded:
                return json_response({"error": "too many requests"}, 429)
            answer = handler(request)
            return await answer if isawaitable(answer) else answer
        finally:
            self._flying -= 1

    def _exceeds(self, request: ServerRequest) -> bool:
        facts, now = KNOWN_SERVICES[self.name], monotonic()
        weight = facts.weigh(request.query) if facts.weigh is not None else 1
        self.units += weight
        exceeded = False
        for limit in facts.limits if self.limits is None else self.limits:
            if not re.search(limit.path, request.path):
                continue
            if not limit.seconds:
                exceeded |= self._flying > limit.most
                continue
            recent = self._recent.setdefault(limit, deque())
            recent.append((now, weight))
            while recent and recent[0][0] < now - (1 - EARLY) * limit.seconds:
                recent.popleft()
            exceeded |= sum(units for _, units in recent) > limit.most
        return exceeded

    def forced_seconds(self, units: float) -> float:
        """Return the time that the limits force requests that count as so many to take together, whoever sends them."""
        forced = self.latency
        for limit in KNOWN_SERVICES[self.name].limits if self.limits is None else self.limits:
            if limit.seconds:
                forced = max(forced, (units - 1) // limit.most * limit.seconds + self.latency)
            else:
                forced = max(forced, units / limit.most * self.latency)
        return forced
