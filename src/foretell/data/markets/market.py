"""What the registry knows of a prediction market, and how its events are found: by words, or by a name."""

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
    """What is looked for."""

    as_of: AsOf
    """The moment of looking, which snapshots carry. Its mode must be live."""
    phrases: tuple[str, ...]
    """Words to search by, the most exact first."""
    near: Callable[[str], float]
    """From a title to how near it is to what is looked for, so that only the nearest are read whole."""
    limit: int = 8
    """Most events read whole."""

    def __post_init__(self) -> None:
        require_live(self.as_of)

    def nearest(self, rows: Iterable[Payload], title: str) -> list[Payload]:
        """The rows whose title is nearest, nearest first; none that has nothing in common with what is looked for."""
        ranked = [(self.near(row.words(title)), n, row) for n, row in enumerate(rows)]
        return [row for score, _, row in sorted(ranked, key=lambda one: (-one[0], one[1])) if score > 0][: self.limit]


class EventSearch(Protocol):
    """Finds open events of a platform by words."""

    async def search(self, query: EventQuery) -> list[ListedEvent]:
        """The open events that may be what is looked for. Raises `SourceError` where the platform does not answer."""
        ...


async def read_open(source: Any, rows: Sequence[Payload], as_of: AsOf) -> list[ListedEvent]:
    """Rows as events by a platform's own reader; those that cannot be read, or are over, are left out."""
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
"""From the steps of an address's path and its query to the market's id; None where the address names none."""


@dataclass(frozen=True, kw_only=True)
class Market:
    """A platform: how to reach it, and how its ids and addresses look."""

    hosts: tuple[str, ...]
    """Its web sites. They are closed to whoever forecasts in a backtest, because they show how questions came out."""
    client: Callable[[ServiceConfig], Any]
    """Opens the one connection that listing, prices and settlements share."""
    events: Callable[[Any], EventSource] | None = None
    """From the client to what is listed now."""
    part: Callable[[Any, str], EventSource | None] | None = None
    """From the client and a name to what is listed in that series, tournament or topic; None where no part can be
    called so. A question set is then named `market:PART`; an event needs nothing of the kind."""
    search: Callable[[Any, ServiceConfig], EventSearch] | None = None
    """From the client and its settings to what finds events by words; None where the platform has no such thing."""
    prices: Callable[[Any], PriceSource] | None = None
    """From the client to price histories."""
    settlements: str = ""
    """"module:attribute" of what makes settlements from the client. Only its name stands here, so that nobody who
    reads a market loads its answers; where it is empty, the plug-in `settlements` of the same name is used."""
    key_variables: tuple[str, ...] = ()
    key_required: bool = True
    facts: str = ""
    """What the adapter was built from: the version and date of the service's specification, and of recorded answers."""
    own_id: re.Pattern[str] | None = None
    """How the platform's own ids look; None where questions do not lead to prices."""
    target_is_market: bool = False
    """Whether each target of an event is a market by itself."""
    has_parts: bool = True
    """Whether one market can hold several targets, written ID#PART."""
    id_in_address: IdInAddress | None = None

    def __post_init__(self) -> None:
        if not self.hosts:
            raise InputError("a market must name its web sites", column="hosts", hint='e.g. hosts=("example.com",)')


# Part of what a market lists, by the name that a person gives: an event, a series, a tournament, a topic.

EVERYTHING = ("", "live")
"""Names of all that a market lists."""
UNKNOWN = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
"""How services answer to a name that they do not know."""


class NamedEvents:
    """What is listed under a name, which is taken for a part of the market, and for an event where no part has it."""

    def __init__(
        self, platform: str, name: str, whole: EventSource, part: EventSource | None, ids: Sequence[str]
    ) -> None:
        """A name on a platform.

        Args:
            platform: The market.
            name: What is wanted of it.
            whole: Everything that it lists, for one event by its id.
            part: What is listed under the name, where it can be that of a part.
            ids: Spellings of the name under which there may be an event.
        """
        self.platform, self.name = platform, name
        self._whole, self._part, self._ids = whole, part, ids

    def events(self, wanted: ListingFilter) -> EventListing:
        """Events fit for the wish."""
        report = ListingReport()
        return EventListing(self._walk(wanted, report), report)

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        """One event by the platform's own id, whatever its status."""
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
    """What a market lists under a name, or all of it."""
    if market.events is None:
        raise InputError(f"{platform} lists no events", hint="it only tells prices")
    whole = market.events(client)
    if name in EVERYTHING:
        return whole
    part = None if market.part is None or name.startswith(SLUG) else market.part(client, name)
    slugs = market.id_in_address is slug_in_address and not name.startswith(SLUG)
    ids = [name, f"{SLUG}{name}"] if slugs else [name]
    return NamedEvents(platform, name, whole, part, ids)
