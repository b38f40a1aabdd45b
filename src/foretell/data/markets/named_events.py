"""Part of what a market lists, by the name that a person gives: an event, a series, a tournament, a topic."""

from collections.abc import AsyncGenerator, Sequence
from http import HTTPStatus
from typing import Any

from foretell.data.http import NotFound, SourceError
from foretell.data.markets.listing import EventListing, EventSource, ListedEvent, ListingFilter, ListingReport
from foretell.data.markets.market import Market
from foretell.data.markets.prices import SLUG, slug_in_address
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError

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
