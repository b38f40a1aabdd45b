"""The registry entry of a prediction market, and how to find its events by keywords or by name."""

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol

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
from foretell.data.markets.prices import SLUG, PriceSource, slug_in_address
from foretell.data.payload import Payload
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError


@dataclass(frozen=True, kw_only=True)
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
        return [row for score, _, row in sorted(ranked, key=lambda one: (-one[0], one[1])) if score > 0][: self.limit]


class EventSearch(Protocol):
    """Finds open events of a platform by keywords."""

    async def search(self, query: EventQuery) -> list[ListedEvent]:
        """Return open events that may match. Raises `SourceError` if the platform does not respond."""
        ...


async def read_open(source: Any, rows: Sequence[Payload], as_of: AsOf) -> list[ListedEvent]:
    """Parse rows with a platform's own reader; rows that cannot be read and events that are over are left out."""
    found: list[ListedEvent] = []
    for row in rows:
        try:
            event: ListedEvent = await source.read(row, as_of, ListingReport())
        except (SourceError, UnsupportedEvent, ValueError):
            continue
        if event.status == "open":
            found.append(event)
    return found


IdInAddress = Callable[[Sequence[str], Mapping[str, list[str]]], str | None]
"""Returns the market's id from the path segments and the query of an address; None if the address names no market."""


@dataclass(frozen=True, kw_only=True)
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
    search: Callable[[Any, ServiceConfig], EventSearch] | None = None
    """Returns a keyword search from the client and its settings; None if the platform has no search."""
    prices: Callable[[Any], PriceSource] | None = None
    """Returns the source of price histories from the client."""
    settlements: str = ""
    """"module:attribute" of the factory that makes settlements from the client. Only the name is given, so that reading
    a market never loads its answers; if empty, the plug-in `settlements` of the same name is used."""
    key_variables: tuple[str, ...] = ()
    key_required: bool = True
    facts: str = ""
    """What the adapter was built from: version and date of the service's specification and of recorded responses."""
    own_id: re.Pattern[str] | None = None
    """Pattern of the platform's own ids; None if questions do not lead to prices."""
    target_is_market: bool = False
    """Whether each target of an event is a market of its own."""
    has_parts: bool = True
    """Whether one market can have several targets, written ID#PART."""
    id_in_address: IdInAddress | None = None

    def __post_init__(self) -> None:
        if not self.hosts:
            raise InputError("a market must name its web sites", column="hosts", hint='e.g. hosts=("example.com",)')


# Part of what a market lists, by the name that a person gives: an event, a series, a tournament, a topic.

EVERYTHING = ("", "live")
"""Names that stand for everything a market lists."""
UNKNOWN = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
"""Status codes with which services respond to a name that they do not know."""


class NamedEvents:
    """Events listed under a name: those of the part of the market with that name, else the event with that id."""

    def __init__(
        self, platform: str, name: str, whole: EventSource, part: EventSource | None, ids: Sequence[str]
    ) -> None:
        """Set the name and where to look for it.

        Args:
            platform: The market.
            name: The name to look for on it.
            whole: Source of everything the market lists, for a single event by its id.
            part: Source of what is listed under the name, if it can be the name of a part.
            ids: Spellings of the name under which an event may exist.
        """
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
            return  # A part in which nothing is open looks like a name that nobody knows.
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
        raise InputError(f"{platform} lists no events", hint="it only tells prices")
    whole = market.events(client)
    if name in EVERYTHING:
        return whole
    part = None if market.part is None or name.startswith(SLUG) else market.part(client, name)
    slugs = market.id_in_address is slug_in_address and not name.startswith(SLUG)
    ids = [name, f"{SLUG}{name}"] if slugs else [name]
    return NamedEvents(platform, name, whole, part, ids)
