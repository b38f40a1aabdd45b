"""Practice: every external service at once, on this machine, with fixed made-up data."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from importlib.resources import files
from itertools import count, repeat
from math import sin
from typing import Any, cast

from foretell.frozen import frozen
from foretell.practice.forecastbench import PracticeBucket, serve_rounds
from foretell.practice.markets.kalshi import KalshiCatalogue, PracticeKalshi, SampleKalshiBook
from foretell.practice.markets.manifold import ManifoldCatalogue, PracticeManifold, SampleManifoldBet
from foretell.practice.markets.metaculus import MetaculusCatalogue, MetaculusInbox, PracticeMetaculus
from foretell.practice.markets.polymarket import PolymarketCatalogue, PracticePolymarket
from foretell.practice.markets.prophet_arena import PracticeProphetArena
from foretell.practice.models.scripts import arena_script
from foretell.practice.models.server import PracticeModels, Script
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
from foretell.practice.server import PracticeServer, PracticeService
from foretell.practice.web import (
    ENGINES,
    PageVersion,
    SampleWebPage,
    sample_world,
    search_server,
    wayback_server,
    web_server,
    wikipedia_server,
)
from foretell.questions.as_of import instant

DAY = timedelta(days=1)
SERIES_DAYS = 1200
PRICE_DAYS = 90
OPENS = time(14, 30, tzinfo=UTC)
FRED_ID = "DGS10"
TICKER = "SPY"
DBNOMICS_ID = "meteofrance/TEMPERATURE/celsius.07607.D"
KALSHI_ID = "KXRATE-27JAN"
MANIFOLD_ID = "fakeRate2027"
POLYMARKET_ID = "0x" + "fa" * 32
METACULUS_ID = "12345"
METACULUS_TOURNAMENTS = ("minibench", "bot-testing-area")


def data_services(now: datetime, key: str) -> dict[str, PracticeService]:
    """Create the series and market services. Their data surround `now`; inboxes use the real clock."""
    markets = _sample_markets(now)
    return {
        "fred": _fred(now.date(), key),
        "yahoo": _yahoo(now.date()),
        "dbnomics": _dbnomics(now.date()),
        "open_meteo": PracticeOpenMeteo(_curve(9.0, 8.0, 2.5), today=now.date()),
        "acled": _acled(now, key),
        "kalshi": _kalshi(markets["kalshi"], now),
        "manifold": _manifold(markets["manifold"], now),
        "polymarket": _polymarket(markets["polymarket"], now),
        "metaculus": _metaculus(markets["metaculus"], now, key),
        "prophet_arena": _prophet_arena(markets["prophet_arena"], now, key),
    }


def _curve(level: float, year: float, month: float) -> Callable[[date], float]:
    """Return a value for every day: a level plus two waves, so that it is not random and yet never constant."""

    def at(day: date) -> float:
        n = day.toordinal()
        return round(level + year * sin(n / 58.1) + month * sin(n / 4.7), 3)

    return at


def _days(until: date, count: int) -> list[date]:
    return [until - n * DAY for n in range(count, -1, -1)]


def _fred(today: date, key: str) -> PracticeFred:
    """Serve a yield on weekdays, each value published on the next day."""
    curve = _curve(4.0, 0.5, 0.08)
    values = tuple(
        SampleFredValue(day=day, value=curve(day), since=day + DAY)
        for day in _days(today - DAY, SERIES_DAYS)
        if day.weekday() < 5
    )
    return PracticeFred({FRED_ID: SampleFredSeries(observations=values)}, key=key, today=today)


def _yahoo(today: date) -> PracticeYahoo:
    """Serve a share's prices on weekdays."""
    curve = _curve(600.0, 40.0, 6.0)
    days = [day for day in _days(today - DAY, SERIES_DAYS) if day.weekday() < 5]
    return PracticeYahoo({TICKER: SampleShare(sessions=tuple((datetime.combine(d, OPENS), curve(d)) for d in days))})


def _dbnomics(today: date) -> PracticeDbnomics:
    """Serve a temperature for every day."""
    curve = _curve(14.0, 7.0, 2.0)
    values = tuple((day, curve(day)) for day in _days(today - DAY, SERIES_DAYS))
    return PracticeDbnomics({DBNOMICS_ID: SampleDbnomicsSeries(values=values)})


def _acled(now: datetime, key: str) -> PracticeAcled:
    """Serve half a year of protests, each row written a week after its day; one row in ten was corrected later."""
    days = _days(now.date() - 7 * DAY, 180)
    events = [
        SampleConflictEvent(
            id=f"IRQ{n}{m}",
            day=day,
            changed=datetime.combine(day + (60 if n % 10 == 0 else 7) * DAY, time(12, tzinfo=UTC)),
        )
        for n, day in enumerate(days)
        for m in range(2 + n % 3)
    ]
    return PracticeAcled(
        [event for event in events if event.changed <= now], password=key, deleted={"IRQ900": now - 2 * DAY}
    )


def _prices(now: datetime) -> list[tuple[int, float]]:
    """Return a price at every noon before now, as (Unix second, price)."""
    curve = _curve(0.4, 0.15, 0.03)
    times = [datetime.combine(day, time(12, tzinfo=UTC)) for day in _days(now.date(), PRICE_DAYS)]
    return [(int(at.timestamp()), curve(at.date())) for at in times if at <= now]


def _sample_markets(now: datetime) -> dict[str, Any]:
    """Return the content of `sample_markets.json`, in the platforms' formats; `@9` in it means nine days from now.

    `@9 ms` and `@9 s` are the same time in milliseconds and in seconds.
    """

    def dated(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: dated(item) for name, item in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [dated(item) for item in cast("list[Any]", value)]
        if not isinstance(value, str) or not value.startswith("@"):
            return value
        days, _, unit = value[1:].partition(" ")
        at = (now + int(days) * DAY).astimezone(UTC)
        if unit:
            return int(at.timestamp() * 1000) if unit == "ms" else at.timestamp()
        return at.strftime("%Y-%m-%dT%H:%M:%SZ")

    return dated(json.loads(files("foretell.practice").joinpath("sample_markets.json").read_text(encoding="utf-8")))


def _kalshi(events: list[dict[str, Any]], now: datetime) -> PracticeKalshi:
    """Serve events of every kind: choices, an incomplete list of names, complete ranges, a ladder, a single market.

    It also has prices of one more market, with a spread of two cents.
    """
    quotes = tuple((at, round(p - 0.01, 2), round(p + 0.01, 2)) for at, p in _prices(now))
    return PracticeKalshi({KALSHI_ID: SampleKalshiBook(quotes=quotes)}, catalogue=KalshiCatalogue(events))


def _polymarket(events: list[dict[str, Any]], now: datetime) -> PracticePolymarket:
    """Serve a race of two candidates, one of whom wins, and a market with one trade a day on each side."""
    yes = tuple(_prices(now))
    first, second = json.loads(events[-1]["markets"][0]["clobTokenIds"])
    trades = {first: yes, second: tuple((at, round(1 - p, 3)) for at, p in yes)}
    return PracticePolymarket(PolymarketCatalogue(events), trades)


def _manifold(contracts: list[dict[str, Any]], now: datetime) -> PracticeManifold:
    """Serve a yes-or-no market, a market with several answers, and one with a bet every day."""
    bets = tuple(SampleManifoldBet(id=f"b{at}", at_ms=at * 1000, after=p) for at, p in _prices(now))
    return PracticeManifold({MANIFOLD_ID: bets}, catalogue=ManifoldCatalogue(contracts))


def _metaculus(posts: list[dict[str, Any]], now: datetime, key: str) -> PracticeMetaculus:
    """Serve a question of every kind, a group, a conditional pair, and one with a long community-prediction history."""
    shown = {"end_time": None, "forecaster_count": 40}
    history = [{"start_time": float(at), "centers": [p], **shown} for at, p in _prices(now)]
    posts[-1]["question"]["aggregations"]["recency_weighted"]["history"] = history
    inbox = MetaculusInbox(now=lambda: datetime.now(UTC))
    return PracticeMetaculus(MetaculusCatalogue(posts, METACULUS_TOURNAMENTS), token=key, inbox=inbox)


def _prophet_arena(sample: dict[str, Any], now: datetime, key: str) -> PracticeProphetArena:
    """Serve a live event with market prices, a week of two questions since Sunday, and a data set of one event."""
    week = f"{now - (now.weekday() + 1) % 7 * DAY:%Y-%m-%d}"
    release = sample["release"] | {"week": week, "opens_at": f"{week}T04:00:00Z"}
    arena = PracticeProphetArena(sample["events"], key=key, release=release, datasets=sample["datasets"])
    arena.weekly_agent = "practice-agent"
    return arena


KEY = "practice"
"""The key that every service with a key accepts."""
PORTS = 15
"""Number of servers started; each service has its own because rate limits apply per host and port."""
BENCHMARK, BUCKETS = "/forecastbench", "/buckets"
EXAMPLE_PAGE = SampleWebPage(
    url="https://example.com/",
    title="Example Domain",
    text="This domain is for use in examples.",
    versions=(PageVersion(at=instant("2026-01-02"), text="This domain is for use in documentation examples."),),
)
"""A page for testing an archive; `foretell doctor --online --services` requests it."""


@dataclass(kw_only=True)
class PracticeInboxes:
    """What bots sent to the tournaments of a sandbox."""

    metaculus: MetaculusInbox | None = None
    prophet_arena: PracticeProphetArena | None = None
    buckets: PracticeBucket | None = None

    def received(self) -> list[dict[str, Any]]:
        """Return one row for each forecast, comment and file, as it arrived."""
        rows: list[dict[str, Any]] = []
        if self.metaculus is not None:
            rows += [{"platform": "Metaculus", "kind": "forecast", **sent} for sent in self.metaculus.forecasts]
            rows += [{"platform": "Metaculus", "kind": "comment", **sent} for sent in self.metaculus.comments]
        if self.prophet_arena is not None:
            rows += [{"platform": "Prophet Arena", "kind": "forecast", **sent} for sent in self.prophet_arena.forecasts]
        if self.buckets is not None:
            files = {name: content.decode("utf-8", "replace") for name, content in self.buckets.files.items()}
            rows += [
                {"platform": "ForecastBench", "kind": "file", "name": f"gs://{name}", "content": content}
                for name, content in files.items()
            ]
        return rows


@frozen
class ServiceOptions:
    """How the services are started."""

    now: datetime
    """The current time in practice."""
    port: int = 0
    """The first of `PORTS` consecutive ports; 0 picks free ones."""
    latency: float = 0.0
    """Seconds to wait before every response."""
    script: Script = arena_script
    """What the models reply."""
    pages: tuple[SampleWebPage, ...] = ()
    """Additional pages for the search engines; they keep their addresses, so a trace can be kept."""
    inboxes: PracticeInboxes = field(default_factory=PracticeInboxes)
    """Where to look up what bots have sent; filled when the services start."""


@asynccontextmanager
async def all_services(options: ServiceOptions) -> AsyncGenerator[dict[str, str]]:
    """Start every service, yield the base address of each by its name, and stop them at the end."""
    ports = count(options.port) if options.port else repeat(0)
    async with AsyncExitStack() as stack:

        async def start(server: PracticeServer) -> str:
            server.port, server.latency = next(ports), options.latency
            return (await stack.enter_async_context(server)).url

        models = await start(PracticeModels(options.script))
        # Use a host name, because the leakage filter rejects numeric hosts.
        web = web_server(sample_world(options.now))
        serve_rounds(web, BENCHMARK, options.now)
        buckets = PracticeBucket(KEY)
        buckets.serve(web, BUCKETS)
        pages = (await start(web)).replace("127.0.0.1", "localhost")
        world = sample_world(options.now, pages, options.pages)
        search = await start(search_server(world, KEY))
        archive = replace(world, pages=[*world.pages, EXAMPLE_PAGE])
        others = {"wikipedia": wikipedia_server(world), "wayback": wayback_server(archive)}
        data = data_services(options.now, KEY)
        others |= {name: service.server() for name, service in data.items()}
        options.inboxes.buckets = buckets
        options.inboxes.metaculus = cast("PracticeMetaculus", data["metaculus"]).inbox
        options.inboxes.prophet_arena = cast("PracticeProphetArena", data["prophet_arena"])
        yield {
            "openai": f"{models}/v1",
            "openrouter": f"{models}/api/v1",
            "anthropic": models,
            "google": models,
            **{engine: f"{search}/{engine}" for engine in ENGINES},
            "pages": pages,
            "forecastbench": f"{pages}{BENCHMARK}",
            "buckets": f"{pages}{BUCKETS}",
            **{name: await start(server) for name, server in others.items()},
        }
