"""Find the market that prices a question.

A market's id is the platform's own: a Polymarket condition id, a Manifold contract id, a Metaculus **post** id, a
Kalshi market ticker. `slug:<slug>` stands for the last part of a Polymarket or Manifold address, and `<id>#<part>` for
one answer of a Manifold market, one outcome of a Polymarket market, or one question or option of a Metaculus post.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qs, urlsplit

from foretell.plugins import exists, load, names
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Target

if TYPE_CHECKING:
    from foretell.data.markets.market import Market

# Prices of prediction markets as they stood at a moment, without anything that became known later.


@dataclass(frozen=True, kw_only=True)
class MarketRef:
    """A market by its platform and the platform's own id."""

    platform: str
    id: str


@dataclass(frozen=True, kw_only=True)
class PricePoint:
    """The implied probability of yes at a point in time."""

    at: datetime
    p: float


class PricesUnavailable(Exception):
    """No price is known for the market at the cutoff; the message says why."""


class PriceSource(Protocol):
    """Supplies price histories up to a cutoff. In a backtest it never reveals status, volume, close time or result."""

    @property
    def platform(self) -> str:
        """The platform it reads."""
        ...

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """Return prices of the last `days` days before the cutoff, oldest first; may raise `PricesUnavailable`."""
        ...


# Price points made into a history that ends at the cutoff.


def window_start(as_of: AsOf, days: int) -> int:
    """Return the Unix time, in seconds, at which the last `days` days before the cutoff begin."""
    if days < 1:
        raise ValueError(f"days must be at least 1, got {days}")
    return int((as_of.at - timedelta(days=days)).timestamp())


def daily_history(ref: MarketRef, points: Iterable[PricePoint], as_of: AsOf, days: int) -> list[PricePoint]:
    """Return the last point of each day (UTC) of the window, oldest first, none after the cutoff.

    If the window has no points, return the last price before it. Of points with the same time, the later in the list
    wins. Raises `PricesUnavailable` if there is no point at all.
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


def _market(platform: str) -> "Market | None":
    return load("markets", platform) if exists("markets", platform) else None


def market_ref(question: Question, target: Target | None = None) -> MarketRef | None:
    """Return the market of a question, by its source and id or else by its address; None if there is none.

    A question with several targets has no single price: name the target.

    >>> q = Question(id="metaculus/20925", source="metaculus", text="?", due="2026-01-18", targets=(Target(id="yes"),))
    >>> market_ref(q)
    MarketRef(platform='metaculus', id='20925')
    """
    if question.kind != "market":
        return None
    one = question.targets[0] if len(question.targets) == 1 else target
    source, market = question.source, _market(question.source)
    own_id = None if market is None else market.own_id
    # On some platforms each target of an event is a market of its own.
    for_each = own_id if market is not None and market.target_is_market else None
    if one is not None and for_each is not None and for_each.fullmatch(one.id.partition(PART)[0]):
        return MarketRef(platform=source, id=one.id)
    own = question.id.removeprefix(f"{source}/")
    by_id = own_id is not None and own_id.fullmatch(own)
    found = MarketRef(platform=source, id=own) if by_id else _by_url(question.url)
    if found is None or one is None:
        return None
    # An only target with an id of the platform's, instead of `yes`, is the last one left of several.
    if len(question.targets) == 1 and not (own_id is not None and own_id.fullmatch(one.id)):
        return found
    place = _market(found.platform)
    has_parts = place is None or place.has_parts
    return replace(found, id=f"{found.id.split(PART)[0]}{PART}{one.id}" if has_parts else one.id)


def split_part(ref: MarketRef) -> tuple[str, str | None]:
    """Split a market's id into the id itself and the part, which may be None.

    >>> split_part(MarketRef(platform="manifold", id="abc#xyz")), split_part(MarketRef(platform="manifold", id="abc"))
    (('abc', 'xyz'), ('abc', None))
    """
    market, found, part = ref.id.partition(PART)
    return market, part if found else None


def _by_url(url: str) -> MarketRef | None:
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("www.")
    steps = [step for step in parts.path.split("/") if step]
    if not host or not steps:
        return None
    for platform in names("markets"):
        market: Market = load("markets", platform)
        if host in market.hosts and market.id_in_address is not None:
            found = market.id_in_address(steps, parse_qs(parts.query))
            return None if found is None else MarketRef(platform=platform, id=found)
    return None


def slug_in_address(steps: Sequence[str], query: Mapping[str, list[str]]) -> str | None:
    """Return the last path segment as a slug; None if there is only one."""
    del query
    return SLUG + steps[-1] if len(steps) > 1 else None
