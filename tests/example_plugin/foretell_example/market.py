"""A prediction market: its row, its listing and its prices."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from foretell.data.markets.listing import CataloguePage, ListedEvent, ListingFilter, ListingReport, MarketEvents
from foretell.data.markets.market import Market, MarketRef, PricePoint, daily_history
from foretell.data.payload import Payload
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Target

LISTED: list[dict[str, Any]] = [{"id": "m1", "title": "Will it rain?", "result": "yes"}]


@dataclass(frozen=True, kw_only=True)
class Client:
    """The connection; a real one would read `config.address or HOST` through `config.http`."""

    config: ServiceConfig

    async def rows(self) -> list[Payload]:
        """Return what the platform lists."""
        return [Payload(value=row, url="https://example-market.test/api") for row in LISTED]


class Events(MarketEvents):
    """The events that are listed now."""

    platform = "example_market"

    def __init__(self, client: Client) -> None:
        self.client = client

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """Return the only page."""
        return CataloguePage(rows=await self.client.rows())

    async def fetch(self, id: str) -> Payload:
        """Return one row by its id."""
        return next(row for row in await self.client.rows() if row.need("id").text() == id)

    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """Return a row as an event."""
        question = Question(
            id=f"example_market/{row.need('id').text()}",
            source="example_market",
            kind="market",
            text=row.need("title").text(),
            due=as_of.at,
            targets=(Target(id="yes"),),
        )
        return ListedEvent(question=question, status="open", recurrence="rain")


@dataclass(frozen=True)
class Prices:
    """Past prices of a market."""

    client: Client
    platform = "example_market"

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """Return one price, of 1 January."""
        return daily_history(ref, [PricePoint(at=datetime(2025, 1, 1, tzinfo=UTC), p=0.25)], as_of, days)


MARKET = Market(
    hosts=("example-market.test",),
    client=lambda config: Client(config=config),
    events=Events,
    prices=Prices,
    settlements="foretell_example.settlements:Settlements",
    own_id=re.compile(r"m[0-9]+"),
    id_in_address=lambda steps, query: steps[-1],
)
