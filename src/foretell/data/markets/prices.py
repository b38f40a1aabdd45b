"""From a question to the market that prices it.

A market's id is the platform's own: a Polymarket condition id, a Manifold contract id, a Metaculus **post** id, a
Kalshi market ticker. `slug:<slug>` stands for the last part of a Polymarket or Manifold address, and `<id>#<part>` for
one answer of a Manifold market, one outcome of a Polymarket market, or one question or option of a Metaculus post.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Target

# Prices of prediction markets as they stood at a moment, without anything that became known later.


@dataclass(frozen=True, kw_only=True)
class MarketRef:
    """A market by its platform and the platform's own id."""

    platform: str
    id: str


@dataclass(frozen=True, kw_only=True)
class PricePoint:
    """The implied probability of yes at a moment."""

    at: datetime
    p: float


class PricesUnavailable(Exception):
    """No price is known for the market at the cutoff, and why."""


class PriceSource(Protocol):
    """Supplies price histories up to a cutoff. Status, volume, close time and result never leave it in a backtest."""

    @property
    def platform(self) -> str:
        """The platform it reads."""
        ...

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """Prices of the last `days` days before the cutoff, oldest first, or `PricesUnavailable`."""
        ...


# Price points made into a history that ends at the cutoff.


def window_start(as_of: AsOf, days: int) -> int:
    """The Unix second at which the last `days` days before the cutoff begin."""
    if days < 1:
        raise ValueError(f"days must be at least 1, got {days}")
    return int((as_of.at - timedelta(days=days)).timestamp())


def daily_history(ref: MarketRef, points: Iterable[PricePoint], as_of: AsOf, days: int) -> list[PricePoint]:
    """The last point of each day (UTC) of the window, oldest first, none after the cutoff.

    If nothing happened within the window, the one price that still stood. Of points with the same moment the later
    in the list wins. Nothing at all raises `PricesUnavailable`.
    """
    known = sorted((point for point in points if as_of.admits(point.at)), key=lambda point: point.at)
    if not known:
        raise PricesUnavailable(f"{ref.platform} shows no price of {ref.id} at or before {as_of}")
    since = window_start(as_of, days)
    by_day: dict[date, PricePoint] = {}
    for point in known:
        if point.at.timestamp() >= since:
            by_day[point.at.date()] = point
    return list(by_day.values()) or [known[-1]]


SLUG = "slug:"
PART = "#"
HOSTS = {
    "polymarket.com": "polymarket",
    "manifold.markets": "manifold",
    "metaculus.com": "metaculus",
    "kalshi.com": "kalshi",
}
OWN_IDS = {
    "polymarket": re.compile(r"0x[0-9a-fA-F]{64}"),
    "manifold": re.compile(r"[A-Za-z0-9]{8,32}"),
    "metaculus": re.compile(r"[0-9]+"),
    "kalshi": re.compile(r"[A-Z0-9]+(-[A-Z0-9.]+)+"),
}
OWN_MARKETS = ("kalshi", "polymarket")
"""Platforms where each target of an event is a market by itself."""


def market_ref(question: Question, target: Target | None = None) -> MarketRef | None:
    """The market of a question, by its source and id or else by its address; None where there is none.

    A question with several targets has no single price: name the target.

    >>> q = Question(id="metaculus/20925", source="metaculus", text="?", due="2026-01-18", targets=(Target(id="yes"),))
    >>> market_ref(q)
    MarketRef(platform='metaculus', id='20925')
    """
    if question.kind != "market":
        return None
    one = question.targets[0] if len(question.targets) == 1 else target
    if one is not None and (own := _by_target(question, one)) is not None:
        return own
    found = _by_id(question) or _by_url(question.url)
    if found is None or one is None:
        return None
    return _one_of(found, one) if len(question.targets) > 1 or _is_part(question, one) else found


def split_part(ref: MarketRef) -> tuple[str, str | None]:
    """The id proper and the part asked for.

    >>> split_part(MarketRef(platform="manifold", id="abc#xyz")), split_part(MarketRef(platform="manifold", id="abc"))
    (('abc', 'xyz'), ('abc', None))
    """
    market, found, part = ref.id.partition(PART)
    return market, part if found else None


def _by_target(question: Question, target: Target) -> MarketRef | None:
    """The market a target names by itself: on some platforms an event has a market of its own for each."""
    own = target.id.partition(PART)[0]
    if question.source in OWN_MARKETS and OWN_IDS[question.source].fullmatch(own):
        return MarketRef(platform=question.source, id=target.id)
    return None


def _is_part(question: Question, target: Target) -> bool:
    """Whether an only target is the last one left of several: it then has an id of the platform's instead of `yes`."""
    return question.source in HOSTS.values() and bool(OWN_IDS[question.source].fullmatch(target.id))


def _by_id(question: Question) -> MarketRef | None:
    pattern = OWN_IDS.get(question.source)
    own = question.id.removeprefix(f"{question.source}/")
    if pattern is None or not pattern.fullmatch(own):
        return None
    return MarketRef(platform=question.source, id=own)


def _by_url(url: str) -> MarketRef | None:
    parts = urlsplit(url)
    platform = HOSTS.get((parts.hostname or "").removeprefix("www."))
    steps = [step for step in parts.path.split("/") if step]
    if platform is None or not steps:
        return None
    if platform == "metaculus":
        found = _metaculus(steps, parse_qs(parts.query))
    elif platform == "kalshi":
        ticker = steps[-1].upper()
        found = ticker if OWN_IDS["kalshi"].fullmatch(ticker) else None
    else:
        found = SLUG + steps[-1] if len(steps) > 1 else None
    return None if found is None else MarketRef(platform=platform, id=found)


def _metaculus(steps: list[str], query: dict[str, list[str]]) -> str | None:
    """`/questions/<post id>/…`, with `?sub-question=<question id>` for one of a group."""
    if len(steps) < 2 or steps[0] not in ("questions", "c") or not steps[1].isdigit():
        return None
    sub = query.get("sub-question", [""])[0]
    return f"{steps[1]}{PART}{sub}" if sub.isdigit() else steps[1]


def _one_of(found: MarketRef, target: Target) -> MarketRef:
    """One target's market: of its own on Kalshi, a part of the common one elsewhere."""
    if found.platform == "kalshi":
        return MarketRef(platform="kalshi", id=target.id)
    return MarketRef(platform=found.platform, id=f"{found.id.split(PART)[0]}{PART}{target.id}")
