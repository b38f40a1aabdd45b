"""Open events of Prophet Arena, which come without trading figures: a title, criteria, outcomes and crowd prices."""

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote

from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.catalogue import (
    ARENA_EVENT,
    CataloguePage,
    UnsupportedEvent,
    amount,
    error_context,
    flag,
    iso,
    list_events,
    moment,
    text,
    words,
)
from foretell.data.markets.listing import (
    EventListing,
    ListedEvent,
    ListingFilter,
    ListingReport,
    MarketStatus,
    recurrence_template,
    require_live,
)
from foretell.data.markets.market import Market
from foretell.data.payload import Payload, Strings, fetch_payload
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Snapshot, Target

HOST = "https://api.prophetarena.co/api/v1"
PLATFORM = "prophet_arena"
PAGE = 100
OVER = ("resolved", "settled", "void")


class ProphetArenaClient:
    """The reading end. The key is never shown."""

    def __init__(self, *, http: AsyncHttpClient, key: str, host: str = HOST, per_second: float = 5.0) -> None:
        self._http = http
        self._key = key
        self._host = host
        http.keep_secret(key)
        http.pace(host, per_second=per_second, burst=5)

    def __repr__(self) -> str:
        return f"ArenaClient(host={self._host!r}, key={'given' if self._key else 'missing'})"

    async def read(self, path: str, params: Strings | None = None) -> Payload:
        """What stands at a path, as sent."""
        headers = {"Authorization": f"Bearer {self._key}"}
        return await fetch_payload(self._http, f"{self._host}{path}", params=params, headers=headers)

    async def event(self, slug: str) -> Payload:
        """One event as sent, whether wrapped or not."""
        answer = await self.read(f"/events/{quote(slug, safe='')}")
        return answer.get("data") or answer


class ProphetArenaListing:
    """Events by slug; the targets are outcome names, as submissions want them."""

    platform = PLATFORM
    key = "slug"

    def __init__(self, client: ProphetArenaClient) -> None:
        self._client = client

    def events(self, wanted: ListingFilter) -> EventListing:
        """Events in the arena's order."""
        return list_events(self, wanted)

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        """One event."""
        require_live(as_of)
        with error_context(f"{PLATFORM} event {id}"):
            row = await self._client.event(id)
            try:
                return _event(row, as_of, ListingReport())
            except UnsupportedEvent as error:
                raise SourceError(f"{PLATFORM} event {id} cannot be asked: {error}", url=row.url) from None

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """One page of the list."""
        query = {"status": wanted.status, "limit": str(PAGE)}
        query |= {"category": wanted.category} if wanted.category else {}
        answer = await self._client.read("/events", query | ({"cursor": cursor} if cursor else {}))
        more = answer.present("next_cursor")
        return CataloguePage(rows=answer.need("data").items(), following=None if more is None else more.name() or None)

    async def parsed(self, row: Payload, wanted: ListingFilter, ledger: ListingReport) -> ListedEvent:
        """An entry."""
        return _event(row, wanted.as_of, ledger)


def _event(row: Payload, as_of: AsOf, ledger: ListingReport) -> ListedEvent:
    ledger.know(row.value, ARENA_EVENT, "event")
    names = [outcome.need("name").text() for outcome in row.need("outcomes").items()]
    if not names:
        raise UnsupportedEvent("it has no outcome")
    crowd, slug, title = _crowd(row, names, as_of.at), row.need("slug").text(), row.need("title").text().strip()
    closes = iso(row.need("close_at"))
    return ListedEvent(
        question=Question(
            id=f"{PLATFORM}/{slug}",
            source=PLATFORM,
            text=title,
            due=as_of.at,
            targets=tuple(
                Target(
                    id=name,
                    label=name,
                    resolves_at=closes,
                    snapshot=Snapshot(at=as_of.at, last_price=crowd[name]) if name in crowd else None,
                )
                for name in names
            ),
            category=words(row, "category"),
            criteria=text(row, "criteria"),
            exclusive=len(names) > 1 and flag(row.need("mutually_exclusive")),
            closes_at=closes,
            url=f"https://www.prophetarena.co/events/{slug}",
        ),
        status=_status(row, closes, as_of.at),
        recurrence=recurrence_template(title),
        volume=amount(row, "volume"),
        liquidity=amount(row, "liquidity"),
    )


def _status(row: Payload, closes: datetime, at: datetime) -> MarketStatus:
    if words(row, "status").casefold() in OVER:
        return "resolved"
    return "open" if closes > at else "closed"


def _crowd(row: Payload, names: list[str], at: datetime) -> Mapping[str, float]:
    """What the crowd said in the newest window that has been taken."""
    windows = row.get("windows")
    taken = [
        (since, crowd)
        for window in (windows.items() if windows is not None else [])
        if (since := moment(window, "taken_at")) is not None
        and since <= at
        and (crowd := window.get("crowd")) is not None
    ]
    if not taken:
        return {}
    newest = max(taken, key=lambda one: one[0])[1]
    return {name: told.probability() for name in names if (told := newest.get(name)) is not None}


def _open_client(config: ServiceConfig) -> ProphetArenaClient:
    return ProphetArenaClient(http=config.http, key=config.key, host=config.address or HOST)


MARKET = Market(
    hosts=("prophetarena.co", "prophetarena.ai"),
    client=_open_client,
    events=ProphetArenaListing,
    settlements="foretell.data.settlements.prophet_arena:ProphetArenaSettlements",
    key_variables=("ARENA_API_KEY",),
)
