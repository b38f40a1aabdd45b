"""What outside services ask of whoever reads them: how fast, under which name, and where these facts are from.

One table. Others may change what it says about a service with settings; nothing else in the program knows a limit.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from math import ceil
from typing import Literal

from foretell.questions.errors import InputError

SECOND, MINUTE, HOUR, DAY = 1.0, 60.0, 3_600.0, 86_400.0
RefusedUntil = Literal["the next hour", "midnight UTC"]


@dataclass(frozen=True, kw_only=True)
class ServiceLimit:
    """At most so many requests in any span of so many seconds; without a span, so many under way at once."""

    requests: int
    seconds: float
    what: str = "requests"
    """Names the limit; a service may have several."""
    path: str = ""
    """A regular expression that finds the limit's paths; empty: all of them."""
    source: str = ""
    """Who says so."""

    def __post_init__(self) -> None:
        if self.requests < 1 or self.seconds < 0:
            raise InputError("a limit allows at least one request in a time that is not negative", hint="e.g. 30/60s")

    def __str__(self) -> str:
        if not self.seconds:
            return f"{self.requests} at once"
        spans = {SECOND: "s", MINUTE: "min", HOUR: "h", DAY: "day"}
        return f"{self.requests:,}/{spans.get(self.seconds, f'{self.seconds:g} s')}"


@dataclass(frozen=True, kw_only=True)
class ServiceFacts:
    """What is known of a service. Several hosts can be one service, and one service can have several limits."""

    title: str
    hosts: tuple[str, ...]
    """One that begins with a dot stands for all hosts that end so."""
    limits: tuple[ServiceLimit, ...] = ()
    pause: float = 5.0
    """Seconds in which nobody asks after a refusal that names no time; it doubles while refusals go on."""
    least_pause: float = 0.0
    """Seconds that nobody asks after a refusal, whatever time it names."""
    refused_until: Mapping[str, RefusedUntil] | None = None
    """What a refusal says → when the service may be asked again."""
    weigh: Callable[[Mapping[str, str]], int] | None = None
    """From what a request asks for to the requests that the service counts it as; None: every request is one."""
    needs_contact: bool = False
    """Whether it wants to be told who asks."""
    browser: bool = False
    """Whether it turns away clients whose name does not begin like a browser's."""
    cached: bool = False
    """Whether its answers are worth keeping for as long as it allows."""
    example: str = ""
    """A series that it has had for long, for trying it out."""
    date: str = "2026-11-15"
    """When these facts were last looked at."""
    source: str = ""


def at_once(requests: int, source: str = "our own restraint") -> ServiceLimit:
    """A limit on requests that are under way at the same time, from this machine."""
    return ServiceLimit(what="at-once", requests=requests, seconds=0.0, source=source)


def open_meteo_weight(query: Mapping[str, str]) -> int:
    """Open-Meteo counts two weeks of ten variables as one request, and more as several.

    >>> open_meteo_weight({"start_date": "2026-01-01", "end_date": "2026-01-28", "daily": ",".join("abcdefghijklmno")})
    3
    """
    try:
        begins, ends = (date.fromisoformat(query[name]) for name in ("start_date", "end_date"))
        days = (ends - begins).days + 1
    except (KeyError, ValueError):
        past, ahead = query.get("past_days", "0"), query.get("forecast_days", "7")
        days = sum(int(text) for text in (past, ahead) if text.isdigit())
    variables = sum(len(query[name].split(",")) for name in ("hourly", "daily", "current") if query.get(name))
    return ceil(max(1.0, days / 14) * max(1.0, variables / 10))


METACULUS_SOURCE = "forecasting-tools 0.3.5 sleeps 3.5 to 4.5 s between calls"
POLYMARKET_SOURCE = "docs.polymarket.com, rate limits"
OPEN_METEO_SOURCE = "open-meteo.com, terms of the free service"

KNOWN_SERVICES: Mapping[str, ServiceFacts] = {
    "kalshi": ServiceFacts(
        title="Kalshi",
        hosts=("external-api.kalshi.com", "api.elections.kalshi.com"),
        limits=(ServiceLimit(requests=10, seconds=SECOND, source="half of the 20 reads a second of the basic tier"),),
        source="OpenAPI 3.13.0, kalshi-typescript 3.30.0",
    ),
    "polymarket": ServiceFacts(
        title="Polymarket",
        hosts=("gamma-api.polymarket.com", "clob.polymarket.com", "data-api.polymarket.com"),
        limits=(
            ServiceLimit(what="events", path=r"^/events", requests=500, seconds=10, source=POLYMARKET_SOURCE),
            ServiceLimit(what="markets", path=r"^/markets", requests=300, seconds=10, source=POLYMARKET_SOURCE),
            ServiceLimit(what="search", path=r"^/public-search", requests=350, seconds=10, source=POLYMARKET_SOURCE),
            ServiceLimit(
                what="history", path=r"^/prices-history", requests=1_000, seconds=10, source=POLYMARKET_SOURCE
            ),
            ServiceLimit(what="data", path=r"^/v2/", requests=1_000, seconds=10, source=POLYMARKET_SOURCE),
            at_once(20),
        ),
        source="polymarket-client 0.14.0 and recorded answers",
    ),
    "manifold": ServiceFacts(
        title="Manifold",
        hosts=("api.manifold.markets",),
        limits=(ServiceLimit(requests=500, seconds=MINUTE, source="docs.manifold.markets, per address"), at_once(20)),
        source="manifoldmarkets/manifold, 2026-08-21",
    ),
    "metaculus": ServiceFacts(
        title="Metaculus",
        hosts=("www.metaculus.com",),
        limits=(ServiceLimit(requests=1, seconds=4, source=METACULUS_SOURCE),),
        source="Metaculus/metaculus, docs/openapi.yml, 2026-08-20",
    ),
    "prophet_arena": ServiceFacts(
        title="Prophet Arena",
        hosts=("api.prophetarena.co",),
        limits=(ServiceLimit(requests=5, seconds=SECOND, source="our own restraint; only quotas are published"),),
        refused_until={"quota_exceeded": "midnight UTC"},
        source="prophet-arena 0.6.0",
    ),
    "forecastbench": ServiceFacts(
        title="ForecastBench",
        hosts=("raw.githubusercontent.com",),
        limits=(at_once(4),),
        pause=60.0,
        cached=True,
        source="forecastingresearch/forecastbench-datasets, 2026-08-21",
    ),
    "wikipedia": ServiceFacts(
        title="Wikipedia",
        hosts=(".wikipedia.org", "wikimedia.org", ".wikimedia.org"),
        limits=(
            ServiceLimit(requests=20, seconds=SECOND, source="our own restraint; none is published for reading"),
            at_once(1, "Wikimedia's etiquette: one request after the other"),
        ),
        needs_contact=True,
        cached=True,
        source="Wikimedia's user-agent policy, enforced since April 2026",
    ),
    "wayback": ServiceFacts(
        title="Wayback Machine",
        hosts=("web.archive.org",),
        limits=(
            ServiceLimit(
                what="look-ups", path=r"/cdx/", requests=30, seconds=MINUTE, source="edgi wayback, 2026-07-01"
            ),
            ServiceLimit(what="pages", path=r"/web/", requests=600, seconds=MINUTE, source="edgi wayback, 2026-07-01"),
            at_once(10),
        ),
        pause=60.0,
        least_pause=60.0,
        source="edgi wayback, agreed with the Internet Archive: one who goes on after a refusal is blocked",
    ),
    "gdelt": ServiceFacts(
        title="GDELT",
        hosts=("api.gdeltproject.org",),
        limits=(ServiceLimit(requests=1, seconds=5, source="the service's own refusal"),),
        source="GDELT DOC 2.0",
    ),
    "brave": ServiceFacts(title="Brave Search", hosts=("api.search.brave.com",), source="Brave's API reference"),
    "exa": ServiceFacts(
        title="Exa",
        hosts=("api.exa.ai",),
        limits=(ServiceLimit(requests=10, seconds=SECOND, source="exa.ai/docs, snapshots"),),
        source="exa.ai/docs",
    ),
    "tavily": ServiceFacts(title="Tavily", hosts=("api.tavily.com",), source="Tavily's API reference"),
    "perplexity": ServiceFacts(
        title="Perplexity Search", hosts=("api.perplexity.ai",), source="Perplexity's own Python client 0.43"
    ),
    "serper": ServiceFacts(title="Serper", hosts=("google.serper.dev",), source="serper.dev"),
    "asknews": ServiceFacts(
        title="AskNews",
        hosts=("api.asknews.app",),
        limits=(ServiceLimit(requests=1, seconds=10, source="AskNews's free tier; paid ones allow more"),),
        source="AskNews SDK",
    ),
    "fred": ServiceFacts(
        title="FRED",
        example="DGS10",
        hosts=("api.stlouisfed.org",),
        limits=(ServiceLimit(requests=120, seconds=MINUTE, source="FRED: 120 a minute for each key"),),
        source="fred.stlouisfed.org/docs/api",
    ),
    "dbnomics": ServiceFacts(
        title="DBnomics",
        example="meteofrance/TEMPERATURE/celsius.07607.D",
        hosts=("api.db.nomics.world",),
        limits=(ServiceLimit(requests=4, seconds=SECOND, source="our own restraint; none is published"),),
        cached=True,
        source="api.db.nomics.world/v22",
    ),
    "yahoo": ServiceFacts(
        title="Yahoo charts",
        example="SPY",
        hosts=("query1.finance.yahoo.com", "query2.finance.yahoo.com"),
        limits=(ServiceLimit(requests=2, seconds=SECOND, source="our own restraint; the service is unofficial"),),
        pause=60.0,
        browser=True,
        source="scheb/yahoo-finance-api issue 42, yfinance 1.7",
    ),
    "open_meteo": ServiceFacts(
        title="Open-Meteo",
        example="observed/59.91,10.75/temperature_2m_max",
        hosts=(".open-meteo.com",),
        weigh=open_meteo_weight,
        limits=(
            ServiceLimit(what="minute", requests=600, seconds=MINUTE, source=OPEN_METEO_SOURCE),
            ServiceLimit(what="hour", requests=5_000, seconds=HOUR, source=OPEN_METEO_SOURCE),
            ServiceLimit(what="day", requests=10_000, seconds=DAY, source=OPEN_METEO_SOURCE),
            at_once(10),
        ),
        refused_until={"Daily API request limit": "midnight UTC", "Hourly API request limit": "the next hour"},
        pause=60.0,
        cached=True,
        source=OPEN_METEO_SOURCE,
    ),
    "acled": ServiceFacts(
        title="ACLED",
        example="Iraq/Protests",
        hosts=("acleddata.com",),
        limits=(ServiceLimit(requests=1, seconds=SECOND, source="our own restraint; none is published"),),
        source="acledR 1.0.1",
    ),
}
"""Service → facts. The name is that of its plug-in, and of FORETELL_<NAME>_URL."""

_WRITTEN = re.compile(r"(\d+)\s*/\s*(\d*\.?\d*)\s*(s|min|h|day)")
_SPANS = {"s": SECOND, "min": MINUTE, "h": HOUR, "day": DAY}


def parse_pace(text: str) -> dict[str, tuple[ServiceLimit, ...]]:
    """Limits that replace those of the table, by service: `gdelt=1/10s, wayback/pages=100/min, kalshi=none`.

    >>> {service: [str(one) for one in limits] for service, limits in parse_pace("gdelt=1/10s,manifold=none").items()}
    {'gdelt': ['1/10 s'], 'manifold': []}
    """
    found: dict[str, tuple[ServiceLimit, ...]] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, written = part.partition("=")
        service, _, what = name.strip().partition("/")
        known = found.get(service, KNOWN_SERVICES[service].limits if service in KNOWN_SERVICES else ())
        if what and what not in {one.what for one in known}:
            has = ", ".join(one.what for one in known) or "none"
            raise InputError(f"{service or 'nobody'} has no limit {what!r}", path="FORETELL_PACE", hint=f"it has {has}")
        named = [one for one in known if one.what == what] or [ServiceLimit(requests=1, seconds=1.0)]
        match = _WRITTEN.fullmatch(written.strip())
        if match is None and written.strip() != "none":
            hint = "write SERVICE=REQUESTS/TIME, e.g. gdelt=1/10s, wayback/pages=100/min or kalshi=none"
            raise InputError(f"cannot read the pace {part!r}", path="FORETELL_PACE", hint=hint)
        new = ()
        if match is not None:
            span = float(match[2] or 1) * _SPANS[match[3]]
            new = (ServiceLimit(what=named[0].what, path=named[0].path, requests=int(match[1]), seconds=span),)
        found[service] = (*(one for one in known if what and one.what != what), *new)
    return found
