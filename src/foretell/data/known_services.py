"""What external services require: rates, user agents, and the sources of these facts.

The facts are in one table, `known_services.toml`. Settings can override them; no other part of the program knows a
limit of a service.
"""

import tomllib
from collections.abc import Callable, Mapping
from datetime import date
from importlib.resources import files
from math import ceil
from typing import Literal

from foretell.frozen import frozen
from foretell.models.rate_limits import PERIODS, RateLimit
from foretell.patterns import pattern
from foretell.questions.errors import InputError

RefusedUntil = Literal["the next hour", "midnight UTC"]


@frozen
class ServiceFacts:
    """What is known about a service. A service may have several hosts and several limits."""

    title: str
    hosts: tuple[str, ...]
    """A host that begins with a dot means all its subdomains."""
    limits: tuple[RateLimit, ...] = ()
    pause: float = 5.0
    """Seconds to pause after a refusal without a stated time; doubles while refusals continue."""
    least_pause: float = 0.0
    """Minimum seconds to pause after a refusal, whatever time it states."""
    refused_until: Mapping[str, RefusedUntil] | None = None
    """Text of a refusal, and when requests may be sent again."""
    weigh: Callable[[Mapping[str, str]], int] | None = None
    """How many requests the service counts a request as; None if always one."""
    needs_contact: bool = False
    """Whether it requires a contact address."""
    browser: bool = False
    """Whether it rejects clients whose user agent does not start like a browser's."""
    cached: bool = False
    """Whether its responses are worth caching as long as it allows."""
    example: str = ""
    """A series that has long existed, for testing the service."""
    date: str = "2026-11-15"
    """When these facts were last checked."""
    source: str = ""


def open_meteo_weight(query: Mapping[str, str]) -> int:
    """Return how many requests Open-Meteo counts a query as: one for up to two weeks of up to ten variables.

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
    service_facts: dict[str, ServiceFacts] = {}
    for name, facts in tomllib.loads(text).items():
        hosts = tuple(facts.pop("hosts"))
        limits = tuple(RateLimit(most=limit.pop("requests"), **limit) for limit in facts.pop("limits", ()))
        weigh = open_meteo_weight if name == "open_meteo" else None
        service_facts[name] = ServiceFacts(**facts, hosts=hosts, limits=limits, weigh=weigh)
    return service_facts


KNOWN_SERVICES: Mapping[str, ServiceFacts] = _known_services()
"""Facts by service, named like its plug-in and FORETELL_<NAME>_URL."""

_RATE = pattern(r"(\d+)\s*/\s*(\d*\.?\d*)\s*(s|min|h|day)")


def parse_rate_limits(text: str) -> dict[str, tuple[RateLimit, ...]]:
    """Parse limits that replace those of the table: `gdelt=1/10s, wayback/pages=100/min, kalshi=none`.

    >>> limits = parse_rate_limits("gdelt=1/10s,manifold=none")
    >>> {service: list(map(str, limits[service])) for service in limits}
    {'gdelt': ['1/10 s'], 'manifold': []}
    """
    rate_limits: dict[str, tuple[RateLimit, ...]] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, rate = part.partition("=")
        service, _, what = name.strip().partition("/")
        known = rate_limits.get(service, KNOWN_SERVICES[service].limits if service in KNOWN_SERVICES else ())
        if what and what not in {limit.what for limit in known}:
            has = ", ".join(limit.what for limit in known) or "none"
            raise InputError(f"{service or 'no service'} has no limit {what!r}", hint=f"it has {has}")
        named = next((limit for limit in known if limit.what == what), RateLimit(most=1))
        match = _RATE.fullmatch(rate.strip())
        if match is None and rate.strip() != "none":
            hint = "write SERVICE=REQUESTS/TIME, e.g. gdelt=1/10s, wayback/pages=100/min or kalshi=none"
            raise InputError(f"cannot read the rate limit {part!r}", hint=hint)
        new = ()
        if match is not None:
            span = float(match[2] or 1) * PERIODS[match[3]]
            new = (RateLimit(what=named.what, path=named.path, most=int(match[1]), seconds=span),)
        rate_limits[service] = (*(limit for limit in known if what and limit.what != what), *new)
    return rate_limits
