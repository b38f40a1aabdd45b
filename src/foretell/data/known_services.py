"""What external services require: rates, user agents, and the sources of these facts.

The facts are in one table, `known_services.toml`. Settings can override them; no other part of the program knows a
limit.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from importlib.resources import files
from math import ceil
from typing import Literal

from foretell.outgoing.limiter import Limit
from foretell.questions.errors import InputError

SECOND, MINUTE, HOUR, DAY = 1.0, 60.0, 3_600.0, 86_400.0
RefusedUntil = Literal["the next hour", "midnight UTC"]


@dataclass(frozen=True, kw_only=True)
class ServiceLimit:
    """A maximum number of requests per span of seconds or, without a span, in flight."""

    requests: int
    seconds: float
    what: str = "requests"
    """Name of the limit; a service may have several."""
    path: str = ""
    """Regular expression for the limit's paths; empty for all."""
    source: str = ""
    """Where the limit is documented."""

    def __post_init__(self) -> None:
        if self.requests < 1 or self.seconds < 0:
            raise InputError("a limit allows at least one request in a time that is not negative", hint="e.g. 30/60s")

    @cached_property
    def limit(self) -> Limit:
        """The limit as the limiter keeps it."""
        return Limit(what=self.what, most=self.requests, seconds=self.seconds)

    def units(self, weight: int) -> int:
        """How many units a request takes that the service counts as several; at most all of them."""
        return min(weight, self.requests) if self.seconds else 1

    def __str__(self) -> str:
        if not self.seconds:
            return f"{self.requests} at once"
        spans = {SECOND: "s", MINUTE: "min", HOUR: "h", DAY: "day"}
        return f"{self.requests:,}/{spans.get(self.seconds, f'{self.seconds:g} s')}"


@dataclass(frozen=True, kw_only=True)
class ServiceFacts:
    """What is known about a service. A service may have several hosts and several limits."""

    title: str
    hosts: tuple[str, ...]
    """A host that begins with a dot stands for all subdomains."""
    limits: tuple[ServiceLimit, ...] = ()
    pause: float = 5.0
    """Seconds to pause after a refusal without a stated time; doubles while refusals continue."""
    least_pause: float = 0.0
    """Minimum seconds to pause after a refusal, whatever time it states."""
    refused_until: Mapping[str, RefusedUntil] | None = None
    """Text of a refusal and when the service may be asked again."""
    weigh: Callable[[Mapping[str, str]], int] | None = None
    """How many requests the service counts a request as; None if always one."""
    needs_contact: bool = False
    """Whether it requires a contact address."""
    browser: bool = False
    """Whether it rejects clients whose user agent does not start like a browser's."""
    cached: bool = False
    """Whether its responses are worth caching as long as it allows."""
    example: str = ""
    """A long-standing series for testing the service."""
    date: str = "2026-11-15"
    """When these facts were last checked."""
    source: str = ""


def at_once(requests: int, source: str = "our own restraint") -> ServiceLimit:
    """A limit on requests in flight from this machine."""
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


def _known_services() -> dict[str, ServiceFacts]:
    text = files("foretell.data").joinpath("known_services.toml").read_text(encoding="utf-8")
    found: dict[str, ServiceFacts] = {}
    for name, facts in tomllib.loads(text).items():
        hosts, limits = tuple(facts.pop("hosts")), tuple(ServiceLimit(**one) for one in facts.pop("limits", ()))
        weigh = open_meteo_weight if name == "open_meteo" else None
        found[name] = ServiceFacts(**facts, hosts=hosts, limits=limits, weigh=weigh)
    return found


KNOWN_SERVICES: Mapping[str, ServiceFacts] = _known_services()
"""Facts by service, named like its plug-in and FORETELL_<NAME>_URL."""

_WRITTEN = re.compile(r"(\d+)\s*/\s*(\d*\.?\d*)\s*(s|min|h|day)")
_SPANS = {"s": SECOND, "min": MINUTE, "h": HOUR, "day": DAY}


def parse_pace(text: str) -> dict[str, tuple[ServiceLimit, ...]]:
    """Parse limits that replace those of the table: `gdelt=1/10s, wayback/pages=100/min, kalshi=none`.

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
            raise InputError(f"{service or 'nobody'} has no limit {what!r}", hint=f"it has {has}")
        named = [one for one in known if one.what == what] or [ServiceLimit(requests=1, seconds=1.0)]
        match = _WRITTEN.fullmatch(written.strip())
        if match is None and written.strip() != "none":
            hint = "write SERVICE=REQUESTS/TIME, e.g. gdelt=1/10s, wayback/pages=100/min or kalshi=none"
            raise InputError(f"cannot read the rate limit {part!r}", hint=hint)
        new = ()
        if match is not None:
            span = float(match[2] or 1) * _SPANS[match[3]]
            new = (ServiceLimit(what=named[0].what, path=named[0].path, requests=int(match[1]), seconds=span),)
        found[service] = (*(one for one in known if what and one.what != what), *new)
    return found
