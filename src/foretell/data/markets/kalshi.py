"""Kalshi prices from candlesticks.

Markets that settled some months ago live under `/historical`, with other field names than the rest. Older servers
answer in whole cents, newer ones in strings of dollars; all four shapes are read. A price is the middle between best
bid and best ask at the end of a candle. A book without any order (0 to 1) says nothing and is left out.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from urllib.parse import quote

from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.catalogue import (
    KALSHI_EVENT,
    KALSHI_MARKET,
    CataloguePage,
    UnsupportedEvent,
    amount,
    error_context,
    flag,
    iso,
    list_events,
    moment,
    text,
    total,
    words,
)
from foretell.data.markets.listing import (
    EventListing,
    ListedEvent,
    ListingFilter,
    ListingReport,
    MarketState,
    MarketStatus,
    event_state,
    require_live,
)
from foretell.data.markets.market import Market
from foretell.data.markets.prices import MarketRef, PricePoint, PricesUnavailable, daily_history, window_start
from foretell.data.payload import MalformedPayload, Payload, Strings, fetch_payload
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Snapshot, Target

HOST = "https://external-api.kalshi.com/trade-api/v2"
TICKER = re.compile(r"[A-Z0-9]+(-[A-Z0-9.]+)+")
CENTS = 100
DAY_SECONDS = 86_400
FINE_DAYS = 3
"""Daily candles end at midnight in New York; the last days are read by the hour, so that the price is fresh."""
BATCH = 100
BATCH_CANDLES = 10_000


@dataclass(frozen=True, kw_only=True)
class KalshiCandle:
    """Best quotes for yes at the end of a period, in dollars."""

    end: datetime
    bid: float
    ask: float


@dataclass(frozen=True, kw_only=True)
class CandleWindow:
    """Which candles to ask for: Unix seconds, both ends included, and the length of a candle."""

    start: int
    end: int
    minutes: int

    def query(self) -> dict[str, str]:
        """As the server wants it."""
        return {"start_ts": str(self.start), "end_ts": str(self.end), "period_interval": str(self.minutes)}

    def __len__(self) -> int:
        return (self.end - self.start) // (self.minutes * 60) + 2


class KalshiClient:
    """The public reading end of the exchange, typed."""

    def __init__(self, *, http: AsyncHttpClient, host: str = HOST, per_second: float = 10.0) -> None:
        self._http = http
        self._host = host
        self._cutoff: datetime | None = None
        http.pace(host, per_second=per_second, burst=10)

    @property
    def host(self) -> str:
        """Where it reads."""
        return self._host

    async def read(self, path: str, params: Strings | None = None) -> Payload:
        """What stands at a path, as sent. Prices are read by the methods below, which know what not to tell."""
        return await fetch_payload(self._http, f"{self._host}{path}", params=params)

    async def live_candles(self, tickers: Sequence[str], window: CandleWindow) -> dict[str, list[KalshiCandle]]:
        """Candles of open and recently settled markets; those the server does not know are missing."""
        query = {**window.query(), "market_tickers": ",".join(tickers), "include_latest_before_start": "true"}
        answer = await self.read("/markets/candlesticks", query)
        return {
            market.need("market_ticker").text(): _candles(market.need("candlesticks"))
            for market in answer.need("markets").items()
        }

    async def historical_candles(self, ticker: str, window: CandleWindow) -> list[KalshiCandle]:
        """Candles of a market settled before the cutoff of the archive."""
        path = f"/historical/markets/{quote(ticker, safe='')}/candlesticks"
        return _candles((await self.read(path, window.query())).need("candlesticks"))

    async def archive_cutoff(self) -> datetime:
        """Markets settled before this moment are in the archive only. Asked once."""
        if self._cutoff is None:
            told = (await self.read("/historical/cutoff")).need("market_settled_ts")
            self._cutoff = told.moment() if not isinstance(told.value, str) else iso(told)
        return self._cutoff


class KalshiPrices:
    """Price histories by market ticker."""

    platform = "kalshi"

    def __init__(self, client: KalshiClient) -> None:
        self._client = client

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """One price a day, the last one fresh to the hour."""
        windows = _windows(as_of, days)
        routes = [self._live, self._historical]
        if await self._archived(as_of):
            routes.reverse()
        for route in routes:
            candles = await route(ref.id, windows)
            if candles:
                return daily_history(ref, _points(candles), as_of, days)
        raise PricesUnavailable(f"kalshi has no price history of {ref.id} at {as_of}")

    async def prices_of(
        self, refs: Sequence[MarketRef], as_of: AsOf, days: int = 60
    ) -> dict[MarketRef, list[PricePoint]]:
        """Histories of many markets in few requests; markets without a price are left out."""
        windows = _windows(as_of, days)
        size = min(BATCH, max(1, BATCH_CANDLES // max(len(window) for window in windows)))
        found: dict[MarketRef, list[PricePoint]] = {}
        for start in range(0, len(refs), size):
            chunk = refs[start : start + size]
            candles = await self._batch([ref.id for ref in chunk], windows)
            for ref in chunk:
                try:
                    known = candles.get(ref.id)
                    found[ref] = (
                        daily_history(ref, _points(known), as_of, days)
                        if known
                        else await self.prices(ref, as_of, days)
                    )
                except PricesUnavailable:
                    continue
        return found

    async def _archived(self, as_of: AsOf) -> bool:
        """Whether the archive is the likelier place. Only a guess at the order, so an outage here is no matter."""
        try:
            return as_of.at < await self._client.archive_cutoff()
        except MalformedPayload:
            raise
        except SourceError:
            return False

    async def _live(self, ticker: str, windows: Sequence[CandleWindow]) -> list[KalshiCandle]:
        return (await self._batch([ticker], windows)).get(ticker, [])

    async def _batch(self, tickers: Sequence[str], windows: Sequence[CandleWindow]) -> Mapping[str, list[KalshiCandle]]:
        """Live candles by ticker; nothing at all where the server refuses the list for a market it does not know."""
        found: dict[str, list[KalshiCandle]] = {}
        try:
            for window in windows:
                for ticker, candles in (await self._client.live_candles(tickers, window)).items():
                    found.setdefault(ticker, []).extend(candles)
        except SourceError as error:
            unknown = error.status == HTTPStatus.NOT_FOUND
            if unknown or (error.status == HTTPStatus.BAD_REQUEST and len(tickers) > 1):
                return {}
            raise
        return found

    async def _historical(self, ticker: str, windows: Sequence[CandleWindow]) -> list[KalshiCandle]:
        found: list[KalshiCandle] = []
        try:
            for window in windows:
                found += await self._client.historical_candles(ticker, window)
        except SourceError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return []
            raise
        return found


def _windows(as_of: AsOf, days: int) -> tuple[CandleWindow, CandleWindow]:
    start, end = window_start(as_of, days), int(as_of.at.timestamp())
    fine = max(start, end - FINE_DAYS * DAY_SECONDS)
    return CandleWindow(start=start, end=end, minutes=1440), CandleWindow(start=fine, end=end, minutes=60)


def _points(candles: Iterable[KalshiCandle]) -> list[PricePoint]:
    quoted = (candle for candle in candles if (candle.bid, candle.ask) != (0.0, 1.0))
    return [PricePoint(at=candle.end, p=(candle.bid + candle.ask) / 2) for candle in quoted]


def _candles(rows: Payload) -> list[KalshiCandle]:
    found: list[KalshiCandle] = []
    for row in rows.items():
        end, bid, ask = row.need("end_period_ts").moment(), _close(row, "yes_bid"), _close(row, "yes_ask")
        if bid is not None and ask is not None:
            found.append(KalshiCandle(end=end, bid=bid, ask=ask))
    return found


def _close(row: Payload, side: str) -> float | None:
    """The last quote of a side, in whichever of the exchange's notations; None where there was no quote."""
    quotes = row.present(side)
    if quotes is None:
        return None
    told = quotes.present("close" if quotes.has("close") and not quotes.has("close_dollars") else "close_dollars")
    return None if told is None else kalshi_price(told)


def kalshi_price(told: Payload) -> float:
    """A price of a one-dollar contract, from dollars in a text or from whole cents."""
    if isinstance(told.value, str):
        return told.probability()
    if isinstance(told.value, bool) or not isinstance(told.value, int):
        told.wrong("dollars in a text, nor whole cents")
    return Payload(url=told.url, path=told.path, value=told.number() / CENTS).probability()


# Kalshi events with their markets, in the notation of cents and in that of dollars.
#
# Settled markets leave their event after some months and are then read from the archive.

PAGE = 200
ARCHIVE_PAGE = 1000
ARCHIVE_PAGES = 20
FILTERS: Mapping[MarketStatus, str] = {
    "unopened": "unopened",
    "open": "open",
    "closed": "closed",
    "resolved": "settled",
}
"""What the list is asked for; the markets themselves tell other words."""
STATUS: Mapping[str, MarketStatus] = {
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

    def events(self, wanted: ListingFilter) -> EventListing:
        """Events with their markets, 200 a page."""
        return list_events(self, wanted)

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        """One event, also a settled one."""
        require_live(as_of)
        with error_context(f"kalshi event {id}"):
            answer = await self._client.read(f"/events/{quote(id, safe='')}", {"with_nested_markets": "true"})
            row = answer.need("event")
            markets = (row.get("markets") or answer.get("markets") or row.need("markets")).items()
            try:
                return await self._event(row, markets or await self._archived(id), as_of, ListingReport())
            except UnsupportedEvent as error:
                raise SourceError(f"kalshi event {id} cannot be asked: {error}", url=answer.url) from None

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """One page of the list."""
        query = {"limit": str(PAGE), "with_nested_markets": "true", "status": FILTERS[wanted.status]}
        if wanted.closes_after is not None:
            query["min_close_ts"] = str(int(wanted.closes_after.timestamp()))
        answer = await self._client.read("/events", query | ({"cursor": cursor} if cursor else {}))
        return CataloguePage(rows=answer.need("events").items(), following=following(answer))

    async def parsed(self, row: Payload, wanted: ListingFilter, ledger: ListingReport) -> ListedEvent:
        """An entry with nested markets."""
        return await self._event(row, row.need("markets").items(), wanted.as_of, ledger)

    async def _event(self, row: Payload, markets: list[Payload], as_of: AsOf, ledger: ListingReport) -> ListedEvent:
        ledger.know(row.value, KALSHI_EVENT, "event")
        for market in markets:
            ledger.know(market.value, KALSHI_MARKET, "market")
        event = event_state(
            [_market(market, as_of.at) for market in markets], exclusive=flag(row.need("mutually_exclusive"))
        )
        if not event.asked:
            raise UnsupportedEvent("it has no yes-or-no market, or all of them are in the archive")
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


def _market(row: Payload, at: datetime) -> MarketState | None:
    """One market; None for a scalar one."""
    if words(row, "market_type") not in ("binary", ""):
        return None
    ticker, told = row.need("ticker").text(), row.need("status")
    status = STATUS.get(told.text()) or told.wrong("a status we know")
    label = text(row, "yes_sub_title") or words(row, "subtitle") or words(row, "title") or ticker
    target = Target(id=ticker, label=label, resolves_at=_expected_end(row, at), snapshot=_snapshot(row, at))
    return MarketState(row=row, target=target, status=status, lost=words(row, "result") == "no")


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
    return None if told is None else kalshi_price(told)


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


def _ticker_in_address(steps: Sequence[str], query: Mapping[str, list[str]]) -> str | None:
    del query
    ticker = steps[-1].upper()
    return ticker if TICKER.fullmatch(ticker) else None


def _open_client(config: ServiceConfig) -> KalshiClient:
    return KalshiClient(http=config.http, host=config.address or HOST)


MARKET = Market(
    hosts=("kalshi.com",),
    client=_open_client,
    events=KalshiEvents,
    prices=KalshiPrices,
    settlements="foretell.data.settlements.kalshi:KalshiSettlements",
    own_id=TICKER,
    target_is_market=True,
    has_parts=False,
    id_in_address=_ticker_in_address,
)
