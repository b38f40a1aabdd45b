"""Kalshi prices from candlesticks.

Markets that settled some months ago are found under `/historical`, with different field names. Older servers send whole
cents, newer ones dollars as strings, some both; all forms are read. A price that does not exist has no field. A price
is the mid price between best bid and best ask at the end of a candle. An empty book (0 to 1) is left out.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from time import time
from typing import NamedTuple
from urllib.parse import quote

from foretell.data.files import write_atomically
from foretell.data.http import AsyncHttpClient, NotFound, SourceError
from foretell.data.markets.listing import (
    ACTIVE_STATUSES,
    CataloguePage,
    ListedEvent,
    ListingFilter,
    ListingReport,
    MarketEvents,
    MarketState,
    MarketStatus,
    UnsupportedEvent,
    event_state,
    readable,
    total,
)
from foretell.data.markets.market import (
    EventQuery,
    Market,
    MarketRef,
    PricePoint,
    PricesUnavailable,
    daily_history,
    window_start,
)
from foretell.data.payload import MalformedPayload, Payload
from foretell.data.service import JsonService, ServiceConfig
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.question import Exclusivity, Question, Snapshot, Target

HOST = "https://external-api.kalshi.com/trade-api/v2"
TICKER = pattern(r"[A-Z0-9]+(-[A-Z0-9.]+)+")
CENTS = 100
DAY_SECONDS = 86_400
FINE_DAYS = 3
"""Number of last days read by the hour: daily candles end at midnight in New York, and the price should be fresh."""


@frozen
class CandleWindow:
    """Which candles to request: Unix seconds, both ends inclusive, and the length of a candle in minutes."""

    start: int
    end: int
    minutes: int

    def query(self) -> dict[str, str]:
        """Return the query parameters that the server expects."""
        return {"start_ts": str(self.start), "end_ts": str(self.end), "period_interval": str(self.minutes)}


class KalshiClient(JsonService):
    """Client for the public data of the exchange."""

    def __init__(self, *, http: AsyncHttpClient, host: str = HOST) -> None:
        super().__init__(ServiceConfig(http=http, address=host), HOST)
        self._cutoff: datetime | None = None

    async def live_candles(self, ticker: str, window: CandleWindow) -> list[Payload]:
        """Return candles of an open or recently settled market; empty if the server does not know it."""
        query = {**window.query(), "market_tickers": ticker, "include_latest_before_start": "true"}
        return candles_by_ticker(await self.read("/markets/candlesticks", query)).get(ticker, [])

    async def archived_candles(self, ticker: str, window: CandleWindow) -> list[Payload]:
        """Return candles of a market that settled before the cutoff of the archive."""
        answer = await self.read(f"/historical/markets/{quote(ticker, safe='')}/candlesticks", window.query())
        return answer.need("candlesticks").items()

    async def archive_cutoff(self) -> datetime:
        """Return the time before which settled markets are only in the archive. Requested once."""
        if self._cutoff is None:
            cutoff = (await self.read("/historical/cutoff")).need("market_settled_ts")
            self._cutoff = cutoff.time() if isinstance(cutoff.value, str) else cutoff.unix_time()
        return self._cutoff


class KalshiPrices:
    """Price histories by market ticker."""

    platform = "kalshi"

    def __init__(self, client: KalshiClient) -> None:
        self._client = client

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """Return one price per day, the last one up to date to the hour."""
        windows = _windows(as_of, days)
        places: list[Callable[[str, CandleWindow], Awaitable[list[Payload]]]]
        places = [self._client.live_candles, self._client.archived_candles]
        if await self._archived(as_of):
            places.reverse()
        for place in places:
            try:
                candles = [candle for window in windows for candle in await place(ref.id, window)]
            except NotFound:
                continue
            points = readable(candles, candle_price, self.platform, ref.id)
            if points:
                return daily_history(ref, points, as_of, days)
        raise PricesUnavailable(f"kalshi has no price history of {ref.id} at {as_of}")

    async def _archived(self, as_of: AsOf) -> bool:
        """Whether the market is more likely in the archive. It only decides the order, so errors are ignored."""
        try:
            return as_of.at < await self._client.archive_cutoff()
        except MalformedPayload:
            raise
        except SourceError:
            return False


def _windows(as_of: AsOf, days: int) -> tuple[CandleWindow, CandleWindow]:
    start, end = window_start(as_of, days), int(as_of.at.timestamp())
    fine = max(start, end - FINE_DAYS * DAY_SECONDS)
    return CandleWindow(start=start, end=end, minutes=1440), CandleWindow(start=fine, end=end, minutes=60)


def candles_by_ticker(answer: Payload) -> dict[str, list[Payload]]:
    """Return the candles of each market, from a response for one market, several markets or an event.

    For an event, tickers and candles are sent as two lists of equal length.
    """
    if answer.has("market_tickers"):
        tickers, lists = answer.need("market_tickers").items(), answer.need("market_candlesticks").items()
        if len(tickers) != len(lists):
            answer.need("market_candlesticks").wrong("as long as market_tickers")
        return {ticker.text(): candles.items() for ticker, candles in zip(tickers, lists, strict=True)}
    if answer.has("candlesticks"):
        return {answer.need("ticker").text(): answer.need("candlesticks").items()}
    markets = answer.need("markets").items()
    return {market.need("market_ticker").text(): market.need("candlesticks").items() for market in markets}


def candle_price(row: Payload) -> PricePoint | None:
    """Return the mid price at the end of a candle; None if there was no book.

    The server may make up the first candle from earlier data: it has no book, only a last trade.
    """
    end, bid, ask = row.need("end_period_ts").unix_time(), _close(row, "yes_bid"), _close(row, "yes_ask")
    if bid is None or ask is None or (bid, ask) == (0.0, 1.0):
        return None
    return PricePoint(at=end, p=(bid + ask) / 2)


def _close(row: Payload, side: str) -> float | None:
    """Return the closing quote of a side, in any of the exchange's notations; None if there is none."""
    quotes = row.get(side)
    price = None if quotes is None else quotes.get("close_dollars") or quotes.get("close")
    return None if price is None else kalshi_price(price)


def kalshi_price(price: Payload) -> float:
    """Parse the price of a one-dollar contract, from dollars in a string or from whole cents."""
    if isinstance(price.value, str):
        return price.probability()
    if isinstance(price.value, bool) or not isinstance(price.value, int):
        price.wrong("dollars in a string or whole cents")
    return Payload(url=price.url, path=price.path, value=price.number() / CENTS).probability()


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
"""Status values that the list accepts; the markets themselves use other words."""
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
"""A determined market may still be disputed; only a finalized one is resolved. A paused market stays open."""


REST = pattern(
    r"(?:any )?others?(?: \w+)?|(?:some|any)(?:one|body|thing) else|none(?: of (?:the|these|those)\b.*)?|the field"
    r"|another (?:candidate|person|individual|party|team|country|company|player|nominee|name|option|outcome)",
    re.IGNORECASE,
)
"""Labels of a market for all outcomes that have no market of their own."""


class KalshiEvents(MarketEvents):
    """Events by event ticker; targets are market tickers."""

    platform = "kalshi"
    key = "event_ticker"

    def __init__(self, client: KalshiClient, *, series: str = "") -> None:
        """`series` limits the list to one series, by its ticker."""
        self._client = client
        self._only = {"series_ticker": series} if series else {}
        self._series: dict[str, tuple[str, tuple[str, ...]]] = {}

    async def fetch(self, id: str) -> Payload:
        """Return one event with its markets, even if it is settled."""
        answer = await self._client.read(f"/events/{quote(id, safe='')}", {"with_nested_markets": "true"})
        return await self._with_archive(whole_event(answer))

    async def _with_archive(self, row: Payload) -> Payload:
        """Add the markets from the archive if the event lists none itself."""
        if (markets := row.get("markets")) is not None and markets.value:
            return row
        old = await archived(self._client, {"event_ticker": row.need(self.key).text()})
        return Payload(url=row.url, path=row.path, value={**row.value, "markets": [market.value for market in old]})

    async def read_listed(self, row: Payload, wanted: ListingFilter, report: ListingReport) -> ListedEvent | None:
        """Parse an event of a page. Events settled long ago list no markets; these are read from the archive."""
        whole = await self._with_archive(row) if wanted.status == "resolved" else row
        return await self.read(whole, wanted.as_of, report)

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """Return one page of the list."""
        query = {"limit": str(PAGE), "with_nested_markets": "true", "status": FILTERS[wanted.status], **self._only}
        if wanted.closes_after is not None:
            query["min_close_ts"] = str(int(wanted.closes_after.timestamp()))
        answer = await self._client.read("/events", query | ({"cursor": cursor} if cursor else {}))
        return CataloguePage(rows=answer.need("events").items(), following=following(answer))

    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """Parse an event with nested markets."""
        markets = row.need("markets").items()
        for market in markets:
            # The exchange has been split since August 2026; it is not documented whether lists show all parts.
            if (part := market.get("exchange_index")) is not None and part.value != 0:
                report.noted[f"market of exchange_index {part.name()}"] += 1
        states = [market_state(market, as_of.at) for market in markets]
        event = event_state(states, exclusivity=_exclusivity(row, states))
        if not event.markets:
            raise UnsupportedEvent("it has no yes-or-no market, or all of them are in the archive")
        series, ticker = row.need("series_ticker").text(), row.need(self.key).text()
        category, tags = await self._filed(series, row.words("category"))
        opens = [at for market in event.markets if (at := market.row.optional_time("open_time"))]
        return ListedEvent(
            question=Question(
                id=f"kalshi/{ticker}",
                source=self.platform,
                text=_title(row),
                due=as_of.at,
                targets=tuple(market.target for market in event.markets),
                subtype=series,
                category=category,
                criteria=_criteria([market.row for market in event.markets]),
                exclusivity=event.exclusivity,
                opens_at=min(opens, default=None),
                closes_at=max((at for market in event.markets if (at := market.target.resolves_at)), default=None),
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
        """Return category and tags. Newer servers keep them only with the series, which is then read once."""
        if category:
            return category, ()
        if series not in self._series:
            try:
                answer = await self._client.read(f"/series/{quote(series, safe='')}")
                self._series[series] = series_filing(answer.need("series"))
            except NotFound:
                self._series[series] = "", ()
        return self._series[series]


SERIES_READ = 4
"""Number of series whose events are read in one search."""
SERIES_FILE = "kalshi_series.json"
SERIES_DAYS = 1.0
"""Days for which the list of series is reused: it is long, and few are added in a day."""


async def _search(client: KalshiClient, config: ServiceConfig, query: EventQuery) -> list[ListedEvent]:
    """Return the open events of the series with the closest titles, because the exchange has no search."""
    series = query.nearest(await _all_series(client, config.home / SERIES_FILE), "title")[:SERIES_READ]
    listed_events: list[ListedEvent] = []
    wanted = ListingFilter(as_of=query.as_of, limit=PAGE, pages=1)
    for row in series:
        listed_events += await KalshiEvents(client, series=row.need("ticker").text()).events(wanted).all()
    return listed_events


async def _all_series(client: KalshiClient, file: Path) -> list[Payload]:
    """Return all series. They are cached in a file if it is from the same server and recent."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        cached = json.loads(file.read_bytes())
        if cached["host"] == client.host and time() - file.stat().st_mtime <= SERIES_DAYS * DAY_SECONDS:
            return [Payload(url=f"{client.host}/series", path="series", value=row) for row in cached["series"]]
    rows = (await client.read("/series")).need("series").items()
    short = [{"ticker": row.need("ticker").text(), "title": row.words("title")} for row in rows]
    with suppress(OSError):  # With a read-only home, the list is requested again next time.
        write_atomically(file, json.dumps({"host": client.host, "series": short}).encode())
    return rows


def series_filing(row: Payload) -> tuple[str, tuple[str, ...]]:
    """Return category and tags of a series."""
    return row.words("category"), row.texts("tags")


def whole_event(answer: Payload) -> Payload:
    """Return the event of a response with its markets, which may be inside it or next to it."""
    row = answer.need("event")
    markets = row.get("markets") or answer.get("markets")
    shown = [] if markets is None else [market.value for market in markets.items()]
    return Payload(url=row.url, path=row.path, value={**row.value, "markets": shown})


async def archived(client: KalshiClient, by: Mapping[str, str]) -> list[Payload]:
    """Return markets from the archive; empty if a server has no archive."""
    payloads: list[Payload] = []
    query = {**by, "limit": str(ARCHIVE_PAGE)}
    for _ in range(ARCHIVE_PAGES):
        try:
            answer = await client.read("/historical/markets", query)
        except NotFound:
            break
        payloads += answer.need("markets").items()
        cursor = following(answer)
        if cursor is None:
            break
        query["cursor"] = cursor
    return payloads


def following(answer: Payload) -> str | None:
    """Return the cursor of the next page. The field must be present; on the last page it is empty."""
    cursor = answer.present("cursor")
    return None if cursor is None else cursor.text() or None


def _exclusivity(row: Payload, states: Sequence[MarketState | None]) -> Exclusivity:
    """Return how the markets exclude each other.

    The exchange only says that no two resolve to yes. That one does can only be inferred from the markets themselves.
    """
    if not row.need("mutually_exclusive").flag():
        return "independent"
    known = [state for state in states if state is not None]
    rest = any(market.status in ACTIVE_STATUSES and REST.fullmatch(market.target.label) for market in known)
    return "exactly one" if rest or strikes_cover([market.row for market in known]) else "at most one"


def strikes_cover(markets: Sequence[Payload]) -> bool:
    """Whether every number falls into a market: below a strike, between two, or above one, without a gap.

    Strikes of 62 and 63 leave no gap: numbers are reported as precisely as the strikes are. "Above 10" after "up to
    9.9" leaves one, at 10 itself.
    """
    try:
        spans = sorted(filter(None, map(_span, markets)), key=lambda span: (span.low, span.high))
    except MalformedPayload:
        return False
    if len(spans) < len(markets) or len(spans) < 2 or spans[0].low.is_finite() or spans[-1].high.is_finite():
        return False
    ends = [end for span in spans for end in (span.low, span.high) if end.is_finite()]
    step = Decimal(1).scaleb(min(0, *(int(end.normalize().as_tuple().exponent) for end in ends)))
    return all(span.reaches(following, step) for span, following in pairwise(spans))


class StrikeSpan(NamedTuple):
    """The range of numbers for which a market resolves to yes; each bound may be included or not."""

    low: Decimal
    low_in: bool
    high: Decimal
    high_in: bool

    def reaches(self, following: "StrikeSpan", step: Decimal) -> bool:
        """Whether no number, reported in such steps, lies between this range and the next."""
        gap = following.low - self.high
        if gap > 0:
            return gap <= step and self.high_in and following.low_in
        return gap < 0 or self.high_in or following.low_in


def _span(row: Payload) -> StrikeSpan | None:
    """Return the range by the market's strike type; None if the market is not about a number."""
    kind = row.words("strike_type")
    floor, cap = (
        None if strike is None else Decimal(str(strike.number()))
        for strike in (row.get("floor_strike"), row.get("cap_strike"))
    )
    low, high = Decimal("-Infinity"), Decimal("Infinity")
    if kind in ("less", "less_or_equal") and cap is not None:
        return StrikeSpan(low, False, cap, kind == "less_or_equal")
    if kind in ("greater", "greater_or_equal") and floor is not None:
        return StrikeSpan(floor, kind == "greater_or_equal", high, False)
    if kind == "between" and floor is not None and cap is not None:
        return StrikeSpan(floor, True, cap, True)
    return None


def market_state(row: Payload, at: datetime) -> MarketState | None:
    """Parse one market; None for a scalar one."""
    if row.words("market_type") not in ("binary", ""):
        return None
    ticker, stated_status = row.need("ticker").text(), row.need("status")
    status = STATUS.get(stated_status.text()) or stated_status.wrong("a known status")
    label = row.stated_text("yes_sub_title").strip() or row.words("subtitle") or row.words("title") or ticker
    target = Target(id=ticker, label=label, resolves_at=_expected_end(row, at), snapshot=_snapshot(row, at))
    return MarketState(row=row, target=target, status=status, lost=row.words("result") == "no")


def _expected_end(row: Payload, at: datetime) -> datetime | None:
    """Return the earlier of the expected end and the close of trading that is still ahead; else the close itself."""
    dates = [
        date for name in ("expected_expiration_time", "close_time") if (date := row.optional_time(name)) is not None
    ]
    closes = row.need("close_time")
    return (
        min((date for date in dates if date > at), default=None) or row.optional_time("close_time") or closes.missing()
    )


def _snapshot(row: Payload, at: datetime) -> Snapshot:
    """Return quotes in dollars. An empty book (0 to 1) and a last price of 0 are left out."""
    bid, ask, no_ask = (_quote(row, name) for name in ("yes_bid", "yes_ask", "no_ask"))
    if (bid or 0.0, ask) in ((0.0, 1.0), (0.0, 0.0), (0.0, None)):
        bid = ask = no_ask = None
    if no_ask is None and bid is not None:
        no_ask = round(1.0 - bid, 6)
    volume = _contracts(row, "volume", needed=True)
    return Snapshot(
        at=at, last_price=_quote(row, "last_price") or None, yes_bid=bid, yes_ask=ask, no_ask=no_ask, volume=volume
    )


def _quote(row: Payload, name: str) -> float | None:
    """Return a price in the newer notation, else in the older one; None if there is none."""
    price = row.get(f"{name}_dollars") or row.get(name)
    return None if price is None else kalshi_price(price)


def _contracts(row: Payload, name: str, *, needed: bool = False) -> float | None:
    """Return a number of one-dollar contracts, which is also their face value in dollars."""
    if needed and not row.has(name):
        row.need(f"{name}_fp")
    return row.amount(f"{name}_fp", name)


def _liquidity(row: Payload) -> float | None:
    """Return the liquidity in dollars. Only the older notation states it; the newer one is always zero."""
    if row.has("liquidity_dollars"):
        return row.amount("liquidity_dollars") or None
    cents = row.amount("liquidity")
    return None if cents is None else cents / CENTS


def _title(row: Payload) -> str:
    """Return the title, followed by its period unless the title contains it."""
    title, period = row.need("title").text().strip(), row.words("sub_title")
    return title if not period or period.casefold() in title.casefold() else f"{title} ({period})"


def _criteria(rows: list[Payload]) -> str:
    """Return each market's rule on its own line, then the rules that apply to all."""
    rules = [
        (
            row.stated_text("yes_sub_title").strip() or row.need("ticker").text(),
            row.stated_text("rules_primary").strip(),
        )
        for row in rows
    ]
    shared = dict.fromkeys(more for row in rows if (more := row.words("rules_secondary")))
    lines = [f"{label}: {rule}" if len(rows) > 1 else rule for label, rule in rules if rule]
    return "\n".join([*lines, *shared])


def _ticker_in_address(steps: Sequence[str], query: Mapping[str, list[str]]) -> str | None:
    del query
    ticker = steps[-1].upper()
    return ticker if TICKER.fullmatch(ticker) else None


MARKET = Market(
    hosts=("kalshi.com",),
    client=lambda config: KalshiClient(http=config.http, host=config.address or HOST),
    events=KalshiEvents,
    # Tickers of events begin with that of their series and a hyphen.
    part=lambda client, name: None if "-" in name else KalshiEvents(client, series=name.upper()),
    search=_search,
    prices=KalshiPrices,
    settlements="foretell.data.settlements.kalshi:KalshiSettlements",
    facts="Kalshi OpenAPI 3.13.0, April 2026; recorded responses of January to August 2026",
    own_id=TICKER,
    target_is_market=True,
    has_parts=False,
    id_in_address=_ticker_in_address,
)
