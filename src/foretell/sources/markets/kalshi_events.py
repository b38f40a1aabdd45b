"""Kalshi events with their markets, in the notation of cents and in that of dollars.

Settled markets leave their event after some months and are then read from the archive.
"""

from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from urllib.parse import quote

from foretell.questions.clock import AsOf
from foretell.questions.question import Question, Target
from foretell.questions.snapshot import Snapshot
from foretell.sources.http import SourceError
from foretell.sources.listing import Ledger, ListedEvent, Listing, Status, Wanted, live
from foretell.sources.markets.catalogue import Page, Unsupported, about, listed
from foretell.sources.markets.fields import amount, flag, moment, text, total, words
from foretell.sources.markets.kalshi import CENTS, KalshiClient, price
from foretell.sources.markets.known_fields import KALSHI_EVENT, KALSHI_MARKET
from foretell.sources.markets.standing import Standing, standing
from foretell.sources.payload import Payload

PAGE = 200
ARCHIVE_PAGE = 1000
ARCHIVE_PAGES = 20
FILTERS: Mapping[Status, str] = {"unopened": "unopened", "open": "open", "closed": "closed", "resolved": "settled"}
"""What the list is asked for; the markets themselves tell other words."""
STATUS: Mapping[str, Status] = {
    "initialized": "unopened",
    "inactive": "open",
    "active": "open",
    "open": "open",
    "closed": "closed",
    "determined": "closed",
    "disputed": "closed",
    "amended": "closed",
    "finalized": "resolved",
    "settled": "resolved",
}
"""What is determined may still be disputed; only what is finalized has come out. A pause leaves a market open."""


class KalshiEvents:
    """Events by event ticker; the targets are market tickers."""

    platform = "kalshi"
    key = "event_ticker"

    def __init__(self, client: KalshiClient, *, with_series: bool = False) -> None:
        """`with_series` reads each event's series once, for tags; otherwise only where an event has no category."""
        self._client = client
        self._with_series = with_series
        self._series: dict[str, tuple[str, tuple[str, ...]]] = {}

    def events(self, wanted: Wanted) -> Listing:
        """Events with their markets, 200 a page."""
        return listed(self, wanted)

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        """One event, also a settled one."""
        live(as_of)
        with about(f"kalshi event {id}"):
            answer = await self._client.read(f"/events/{quote(id, safe='')}", {"with_nested_markets": "true"})
            row = answer.need("event")
            markets = (row.get("markets") or answer.get("markets") or row.need("markets")).items()
            try:
                return await self._event(row, markets or await self._archived(id), as_of, Ledger())
            except Unsupported as error:
                raise SourceError(f"kalshi event {id} cannot be asked: {error}", url=answer.url) from None

    async def page(self, wanted: Wanted, cursor: str) -> Page:
        """One page of the list."""
        query = {"limit": str(PAGE), "with_nested_markets": "true", "status": FILTERS[wanted.status]}
        if wanted.closes_after is not None:
            query["min_close_ts"] = str(int(wanted.closes_after.timestamp()))
        answer = await self._client.read("/events", query | ({"cursor": cursor} if cursor else {}))
        return Page(rows=answer.need("events").items(), following=following(answer))

    async def parsed(self, row: Payload, wanted: Wanted, ledger: Ledger) -> ListedEvent:
        """An entry with nested markets."""
        return await self._event(row, row.need("markets").items(), wanted.as_of, ledger)

    async def _event(self, row: Payload, markets: list[Payload], as_of: AsOf, ledger: Ledger) -> ListedEvent:
        ledger.know(row.value, KALSHI_EVENT, "event")
        for market in markets:
            ledger.know(market.value, KALSHI_MARKET, "market")
        event = standing(
            [_market(market, as_of.at) for market in markets], exclusive=flag(row.need("mutually_exclusive"))
        )
        if not event.asked:
            raise Unsupported("it has no yes-or-no market, or all of them are in the archive")
        series = row.need("series_ticker").text()
        category, tags = await self._filed(series, words(row, "category"))
        ticker = row.need(self.key).text()
        return ListedEvent(
            question=Question(
                id=f"kalshi/{ticker}",
                source=self.platform,
                text=_title(row),
                due=as_of.at,
                targets=tuple(one.target for one in event.asked),
                subtype=series,
                category=category,
                criteria=_criteria([one.row for one in event.asked]),
                exclusive=event.exclusive,
                opens_at=min((at for one in event.asked if (at := moment(one.row, "open_time"))), default=None),
                closes_at=max((at for one in event.asked if (at := one.target.resolves_at)), default=None),
                url=f"https://kalshi.com/markets/{series.lower()}/{ticker.lower()}",
            ),
            status=event.status,
            recurrence=series,
            volume=total(_contracts(market, "volume", needed=True) for market in markets),
            volume_24h=total(_contracts(market, "volume_24h") for market in markets),
            liquidity=total(_liquidity(market) for market in markets),
            open_interest=total(_contracts(market, "open_interest") for market in markets),
            tags=tags,
            finished=event.finished,
        )

    async def _filed(self, series: str, category: str) -> tuple[str, tuple[str, ...]]:
        """Category and tags. Newer servers keep them with the series only."""
        if category and not self._with_series:
            return category, ()
        if series not in self._series:
            self._series[series] = await self._read_series(series)
        filed, tags = self._series[series]
        return category or filed, tags

    async def _read_series(self, series: str) -> tuple[str, tuple[str, ...]]:
        try:
            row = (await self._client.read(f"/series/{quote(series, safe='')}")).need("series")
        except SourceError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return "", ()
            raise
        tags = row.get("tags")
        return words(row, "category"), tuple(tag.text() for tag in tags.items()) if tags is not None else ()

    async def _archived(self, event: str) -> list[Payload]:
        return await archived(self._client, {"event_ticker": event})


async def archived(client: KalshiClient, by: Mapping[str, str]) -> list[Payload]:
    """Markets of the archive; none where a server has no archive."""
    found: list[Payload] = []
    query = {**by, "limit": str(ARCHIVE_PAGE)}
    for _ in range(ARCHIVE_PAGES):
        try:
            answer = await client.read("/historical/markets", query)
        except SourceError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return found
            raise
        found += answer.need("markets").items()
        cursor = following(answer)
        if cursor is None:
            break
        query["cursor"] = cursor
    return found


def following(answer: Payload) -> str | None:
    """The cursor of the next page. The field must be there; at the end it is empty."""
    cursor = answer.present("cursor")
    return None if cursor is None else cursor.text() or None


def _market(row: Payload, at: datetime) -> Standing | None:
    """One market; None for a scalar one."""
    if words(row, "market_type") not in ("binary", ""):
        return None
    ticker, told = row.need("ticker").text(), row.need("status")
    status = STATUS.get(told.text()) or told.wrong("a status we know")
    label = text(row, "yes_sub_title") or words(row, "subtitle") or words(row, "title") or ticker
    target = Target(id=ticker, label=label, resolves_at=_expected_end(row, at), snapshot=_snapshot(row, at))
    return Standing(row=row, target=target, status=status, lost=words(row, "result") == "no")


def _expected_end(row: Payload, at: datetime) -> datetime | None:
    """The earlier of the expected end and the close of trading that still lies ahead; else the close itself."""
    dates = [date for name in ("expected_expiration_time", "close_time") if (date := moment(row, name)) is not None]
    closes = row.need("close_time")
    return min((date for date in dates if date > at), default=None) or moment(row, "close_time") or closes.missing()


def _snapshot(row: Payload, at: datetime) -> Snapshot:
    """Quotes in dollars. A book without any order (0 to 1) and a last price of 0 say nothing."""
    bid, ask, no_ask = (_quote(row, name) for name in ("yes_bid", "yes_ask", "no_ask"))
    if (bid or 0.0, ask) in ((0.0, 1.0), (0.0, 0.0), (0.0, None)):
        bid = ask = no_ask = None
    volume = _contracts(row, "volume", needed=True)
    return Snapshot(
        at=at, last_price=_quote(row, "last_price") or None, yes_bid=bid, yes_ask=ask, no_ask=no_ask, volume=volume
    )


def _quote(row: Payload, name: str) -> float | None:
    """A price in the newer notation, else in the older; one of them must be there."""
    told = row.get(f"{name}_dollars")
    if told is None and not row.has(f"{name}_dollars"):
        told = row.get(name) if row.has(name) else row.need(f"{name}_dollars")
    return None if told is None else price(told)


def _contracts(row: Payload, name: str, *, needed: bool = False) -> float | None:
    """A count of one-dollar contracts, which is their face value in dollars."""
    if needed and not row.has(name):
        row.need(f"{name}_fp")
    return amount(row, f"{name}_fp", name)


def _liquidity(row: Payload) -> float | None:
    """Only the older notation tells it; the newer shows a zero for everything."""
    if row.has("liquidity_dollars"):
        return amount(row, "liquidity_dollars") or None
    cents = amount(row, "liquidity")
    return None if cents is None else cents / CENTS


def _title(row: Payload) -> str:
    """The title, with the period it is about where it does not say it itself."""
    title, period = row.need("title").text().strip(), words(row, "sub_title")
    return title if not period or period.casefold() in title.casefold() else f"{title} ({period})"


def _criteria(rows: list[Payload]) -> str:
    """Each market's rule on its own line, then what applies to all."""
    rules = [(text(row, "yes_sub_title") or row.need("ticker").text(), text(row, "rules_primary")) for row in rows]
    shared = dict.fromkeys(more for row in rows if (more := words(row, "rules_secondary")))
    lines = [f"{label}: {rule}" if len(rows) > 1 else rule for label, rule in rules if rule]
    return "\n".join([*lines, *shared])
