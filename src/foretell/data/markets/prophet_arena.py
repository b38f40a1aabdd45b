"""Open events of Prophet Arena, which come without trading figures: a title, criteria, outcomes and crowd prices."""

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote

from foretell.data.http import AsyncHttpClient
from foretell.data.markets.known_fields import ARENA_EVENT
from foretell.data.markets.listing import (
    CataloguePage,
    ListedEvent,
    ListingFilter,
    ListingReport,
    MarketEvents,
    MarketStatus,
    UnsupportedEvent,
    recurrence_template,
)
from foretell.data.markets.market import Market
from foretell.data.payload import Payload
from foretell.data.service import JsonService, ServiceConfig
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Snapshot, Target

HOST = "https://api.prophetarena.co/api/v1"
PLATFORM = "prophet_arena"
PAGE = 100
OVER = ("resolved", "settled", "void")


class ProphetArenaClient(JsonService):
    """The reading end."""

    def __init__(self, *, http: AsyncHttpClient, key: str, host: str = HOST, per_second: float = 5.0) -> None:
        config = ServiceConfig(http=http, key=key, per_second=per_second)
        super().__init__(config, host, burst=5, headers={"Authorization": f"Bearer {key}"})

    async def event(self, slug: str) -> Payload:
        """One event as sent, whether wrapped or not."""
        answer = await self.read(f"/events/{quote(slug, safe='')}")
        return answer.get("data") or answer


class ProphetArenaListing(MarketEvents):
    """Events by slug; the targets are outcome names, as submissions want them."""

    platform = PLATFORM
    key = "slug"

    def __init__(self, client: ProphetArenaClient) -> None:
        self._client = client

    async def fetch(self, id: str) -> Payload:
        """One event."""
        return await self._client.event(id)

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """One page of the list."""
        query = {"status": wanted.status, "limit": str(PAGE)}
        query |= {"category": wanted.category} if wanted.category else {}
        answer = await self._client.read("/events", query | ({"cursor": cursor} if cursor else {}))
        more = answer.present("next_cursor")
        return CataloguePage(rows=answer.need("data").items(), following=None if more is None else more.name() or None)

    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """An event."""
        report.know(row.value, ARENA_EVENT, "event")
        names = [outcome.need("name").text() for outcome in row.need("outcomes").items()]
        if not names:
            raise UnsupportedEvent("it has no outcome")
        slug, title = row.need("slug").text(), row.need("title").text().strip()
        prices, closes = _prices(row, names, as_of.at), row.need("close_at").time()
        status: MarketStatus = "open" if closes > as_of.at else "closed"
        return ListedEvent(
            question=Question(
                id=f"{PLATFORM}/{slug}",
                source=PLATFORM,
                text=title,
                due=as_of.at,
                targets=tuple(
                    Target(id=name, label=name, resolves_at=closes, snapshot=prices.get(name)) for name in names
                ),
                category=row.words("category"),
                criteria=row.stated_text("criteria").strip(),
                exclusivity="at most one" if row.is_set("mutually_exclusive") else "independent",
                closes_at=closes,
                url=f"https://www.prophetarena.co/events/{slug}",
            ),
            status="resolved" if row.words("status").casefold() in OVER else status,
            recurrence=recurrence_template(title),
            volume=row.amount("volume"),
            liquidity=row.amount("liquidity"),
        )


def _prices(row: Payload, names: list[str], at: datetime) -> Mapping[str, Snapshot]:
    """What the crowd said in the newest window that has been taken."""
    taken = [
        (since, crowd)
        for window in row.rows("windows")
        if (since := window.optional_time("taken_at")) is not None
        and since <= at
        and (crowd := window.get("crowd")) is not None
    ]
    if not taken:
        return {}
    newest = max(taken, key=lambda one: one[0])[1]
    return {
        name: Snapshot(at=at, last_price=price.probability())
        for name in names
        if (price := newest.get(name)) is not None
    }


MARKET = Market(
    hosts=("prophetarena.co", "prophetarena.ai"),
    client=lambda config: ProphetArenaClient(http=config.http, key=config.key, host=config.address or HOST),
    events=ProphetArenaListing,
    settlements="foretell.data.settlements.prophet_arena:ProphetArenaSettlements",
    key_variables=("ARENA_API_KEY",),
)
