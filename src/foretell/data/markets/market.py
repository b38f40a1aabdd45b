"""A prediction market: its registry entry, its price history, its events, and which market prices a question.

A market's id is the platform's own: a Polymarket condition id, a Manifold contract id, a Metaculus **post** id, a
Kalshi market ticker. `slug:<slug>` is the last part of a Polymarket or Manifold address, and `<id>#<part>` for
one answer of a Manifold market, one outcome of a Polymarket market, or one question or option of a Metaculus post.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from foretell.data.http import NotFound, SourceError
from foretell.data.markets.listing import (
    EventListing,
    EventSource,
    ListedEvent,
    ListingFilter,
    ListingReport,
    UnsupportedEvent,
    require_live,
)
from foretell.data.payload import Payload
from foretell.data.service import ServiceConfig
from foretell.frozen import frozen
from foretell.plugins import exists, load, names
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError, WrongValue
from foretell.questions.question import Question, Target

# Prices of prediction markets at a point in time, without anything that became known later.


@frozen
class MarketRef:
    """A market by its platform and the platform's own id."""

    platform: str
    id: str


@frozen
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


# Price histories that end at the cutoff.


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
    asked_target = question.targets[0] if len(question.targets) == 1 else target
    source, market = question.source, _market(question.source)
    own_id = None if market is None else market.own_id
    # On some platforms each target of an event is a separate market.
    for_each = own_id if market is not None and market.target_is_market else None
    if asked_target is not None and for_each is not None and for_each.fullmatch(asked_target.id.partition(PART)[0]):
        return MarketRef(platform=source, id=asked_target.id)
    own = question.id.removeprefix(f"{source}/")
    by_id = own_id is not None and own_id.fullmatch(own)
    ref = MarketRef(platform=source, id=own) if by_id else _by_url(question.url)
    if ref is None or asked_target is None:
        return None
    # A single target with an id of the platform instead of `yes` is the last of several.
    if len(question.targets) == 1 and not (own_id is not None and own_id.fullmatch(asked_target.id)):
        return ref
    place = _market(ref.platform)
    has_parts = place is None or place.has_parts
    return replace(ref, id=f"{ref.id.split(PART)[0]}{PART}{asked_target.id}" if has_parts else asked_target.id)


def split_part(ref: MarketRef) -> tuple[str, str | None]:
    """Split a market's id into the id itself and the part, which may be None.

    >>> split_part(MarketRef(platform="manifold", id="abc#xyz")), split_part(MarketRef(platform="manifold", id="abc"))
    (('abc', 'xyz'), ('abc', None))
    """
    market, separator, part = ref.id.partition(PART)
    return market, part if separator else None


def _by_url(url: str) -> MarketRef | None:
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("www.")
    steps = [step for step in parts.path.split("/") if step]
    if not host or not steps:
        return None
    for platform in names("markets"):
        market: Market = load("markets", platform)
        if host in market.hosts and market.id_in_address is not None:
            id = market.id_in_address(steps, parse_qs(parts.query))
            return None if id is None else MarketRef(platform=platform, id=id)
    return None


def slug_in_address(steps: Sequence[str], query: Mapping[str, list[str]]) -> str | None:
    """Return the last path segment as a slug; None if there is only one."""
    del query
    return SLUG + steps[-1] if len(steps) > 1 else None


# The registry entry of a market, and how to find its events by keywords or by name.


@frozen
class EventQuery:
    """What to search for."""

    as_of: AsOf
    """Time of the search, which snapshots carry. Its mode must be live."""
    phrases: tuple[str, ...]
    """Search phrases, the most exact first."""
    near: Callable[[str], float]
    """Scores how close a title is to what is searched for, so that only the closest events are read in full."""
    limit: int = 8
    """Maximum number of events read in full."""

    def __post_init__(self) -> None:
        require_live(self.as_of)

    def nearest(self, rows: Iterable[Payload], title: str) -> list[Payload]:
        """Return the rows with the closest titles, closest first; rows that score 0 are left out."""
        ranked = [(self.near(row.words(title)), n, row) for n, row in enumerate(rows)]
        return [row for score, _, row in sorted(ranked, key=lambda entry: (-entry[0], entry[1])) if score > 0][
            : self.limit
        ]


async def read_open(source: Any, rows: Sequence[Payload], as_of: AsOf) -> list[ListedEvent]:
    """Parse rows with a platform's own reader; rows that cannot be read and events that are over are left out."""
    listed_events: list[ListedEvent] = []
    for row in rows:
        try:
            event: ListedEvent = await source.read(row, as_of, ListingReport())
        except (SourceError, UnsupportedEvent, WrongValue):
            continue
        except InputError:
            raise
        except ValueError:
            continue
        if event.status == "open":
            listed_events.append(event)
    return listed_events


IdInAddress = Callable[[Sequence[str], Mapping[str, list[str]]], str | None]
"""Returns the market's id from the path segments and the query of an address; None if the address names no market."""


@frozen
class Market:
    """A platform: how to reach it, and what its ids and addresses look like."""

    hosts: tuple[str, ...]
    """Host names of its web sites. They are blocked in a backtest, because they show how questions resolved."""
    client: Callable[[ServiceConfig], Any]
    """Opens the one client that listings, prices and settlements share."""
    events: Callable[[Any], EventSource] | None = None
    """Returns the source of current listings from the client."""
    part: Callable[[Any, str], EventSource | None] | None = None
    """Returns the source of what a series, tournament or topic lists, from the client and its name; None if no part can
    have that name. A question set is then named `market:PART`; a single event does not need this."""
    search: Callable[[Any, ServiceConfig, EventQuery], Awaitable[list[ListedEvent]]] | None = None
    """Returns open events that may match, with the client and its settings; None if the platform has no search.
    Raises `SourceError` if the platform does not respond."""
    prices: Callable[[Any], PriceSource] | None = None
    """Returns the source of price histories from the client."""
    settlements: str = ""
    """"module:attribute" of the factory that makes settlements from the client. It is a name, so that reading a market
    never loads its results; if empty, the plug-in `settlements` of the same name is used."""
    key_variables: tuple[str, ...] = ()
    key_required: bool = True
    facts: str = ""
    """What the adapter was built from: version and date of the service's specification and of recorded responses."""
    own_id: re.Pattern[str] | None = None
    """Pattern of the platform's own ids; None if questions do not lead to prices."""
    target_is_market: bool = False
    """Whether each target of an event is a separate market."""
    has_parts: bool = True
    """Whether one market can have several targets, written ID#PART."""
    id_in_address: IdInAddress | None = None

    def __post_init__(self) -> None:
        if not self.hosts:
            raise InputError("a market must name its web sites", column="hosts", hint='e.g. hosts=("example.com",)')


# Part of what a market lists, by the name that a person gives: an event, a series, a tournament, a topic.

EVERYTHING = ("", "live")
"""Names that mean everything a market lists."""
UNKNOWN = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
"""Status codes with which services respond to a name that they do not know."""


class NamedEvents:
    """Events listed under a name: those of the part of the market with that name, else the event with that id."""

    def __init__(
        self, platform: str, name: str, whole: EventSource, part: EventSource | None, ids: Sequence[str]
    ) -> None:
        """`whole` lists the market, `part` what is under the name, and an event may have the name or one of `ids`."""
        self.platform, self.name = platform, name
        self._whole, self._part, self._ids = whole, part, ids

    def events(self, wanted: ListingFilter) -> EventListing:
        """Return the events that match the filter."""
        report = ListingReport()
        return EventListing(self._walk(wanted, report), report)

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        """Return one event by the platform's own id, whatever its status."""
        return await self._whole.event(id, as_of)

    async def _walk(self, wanted: ListingFilter, report: ListingReport) -> AsyncGenerator[ListedEvent]:
        met = False
        if self._part is not None:
            listing = self._part.events(wanted)
            try:
                async for event in listing:
                    met = True
                    yield event
            except SourceError as error:
                if met or not _unknown(error):
                    raise
            report.add(listing.ledger)
        if met or report.skipped or report.left_out:
            return
        event = await self._one(wanted.as_of)
        if event is None and self._part is not None:
            return  # A part without open events looks like an unknown name.
        if event is None:
            full = f"{self.platform}:{self.name}"
            raise NotFound("nothing is listed under this name", url=full, status=HTTPStatus.NOT_FOUND)
        if reason := wanted.refusal(event):
            report.left_out[reason] += 1
        else:
            yield event

    async def _one(self, as_of: AsOf) -> ListedEvent | None:
        for id in self._ids:
            try:
                return await self._whole.event(id, as_of)
            except SourceError as error:
                if not _unknown(error):
                    raise
        return None


def _unknown(error: SourceError) -> bool:
    return isinstance(error, NotFound) or error.status in UNKNOWN


def events_named(platform: str, market: Market, client: Any, name: str = "") -> EventSource:
    """Return the source of what a market lists under a name, or of everything if the name is empty or `live`."""
    if market.events is None:
        raise InputError(f"{platform} lists no events", hint="it only has prices")
    whole = market.events(client)
    if name in EVERYTHING:
        return whole
    part = None if market.part is None or name.startswith(SLUG) else market.part(client, name)
    slugs = market.id_in_address is slug_in_address and not name.startswith(SLUG)
    ids = [name, f"{SLUG}{name}"] if slugs else [name]
    return NamedEvents(platform, name, whole, part, ids)
