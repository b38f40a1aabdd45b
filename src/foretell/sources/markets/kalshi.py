"""Kalshi prices from candlesticks.

Markets that settled some months ago live under `/historical`, with other field names than the rest. Older servers
answer in whole cents, newer ones in strings of dollars; all four shapes are read. A price is the middle between best
bid and best ask at the end of a candle. A book without any order (0 to 1) says nothing and is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from urllib.parse import quote

from foretell.questions.clock import AsOf
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.http import SourceError
from foretell.sources.market import MarketRef, PricePoint, PricesUnavailable
from foretell.sources.markets.fields import iso
from foretell.sources.markets.history import daily, window_start
from foretell.sources.payload import Malformed, Payload, Strings, read

HOST = "https://external-api.kalshi.com/trade-api/v2"
CENTS = 100
DAY_SECONDS = 86_400
FINE_DAYS = 3
"""Daily candles end at midnight in New York; the last days are read by the hour, so that the price is fresh."""
BATCH = 100
BATCH_CANDLES = 10_000


@dataclass(frozen=True, kw_only=True)
class Candle:
    """Best quotes for yes at the end of a period, in dollars."""

    end: datetime
    bid: float
    ask: float


@dataclass(frozen=True, kw_only=True)
class Window:
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
        return await read(self._http, f"{self._host}{path}", params=params)

    async def live_candles(self, tickers: Sequence[str], window: Window) -> dict[str, list[Candle]]:
        """Candles of open and recently settled markets; those the server does not know are missing."""
        query = {**window.query(), "market_tickers": ",".join(tickers), "include_latest_before_start": "true"}
        answer = await self.read("/markets/candlesticks", query)
        return {
            market.need("market_ticker").text(): _candles(market.need("candlesticks"))
            for market in answer.need("markets").items()
        }

    async def historical_candles(self, ticker: str, window: Window) -> list[Candle]:
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
                return daily(ref, _points(candles), as_of, days)
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
                        daily(ref, _points(known), as_of, days) if known else await self.prices(ref, as_of, days)
                    )
                except PricesUnavailable:
                    continue
        return found

    async def _archived(self, as_of: AsOf) -> bool:
        """Whether the archive is the likelier place. Only a guess at the order, so an outage here is no matter."""
        try:
            return as_of.at < await self._client.archive_cutoff()
        except Malformed:
            raise
        except SourceError:
            return False

    async def _live(self, ticker: str, windows: Sequence[Window]) -> list[Candle]:
        return (await self._batch([ticker], windows)).get(ticker, [])

    async def _batch(self, tickers: Sequence[str], windows: Sequence[Window]) -> Mapping[str, list[Candle]]:
        """Live candles by ticker; nothing at all where the server refuses the list for a market it does not know."""
        found: dict[str, list[Candle]] = {}
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

    async def _historical(self, ticker: str, windows: Sequence[Window]) -> list[Candle]:
        found: list[Candle] = []
        try:
            for window in windows:
                found += await self._client.historical_candles(ticker, window)
        except SourceError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return []
            raise
        return found


def _windows(as_of: AsOf, days: int) -> tuple[Window, Window]:
    start, end = window_start(as_of, days), int(as_of.at.timestamp())
    fine = max(start, end - FINE_DAYS * DAY_SECONDS)
    return Window(start=start, end=end, minutes=1440), Window(start=fine, end=end, minutes=60)


def _points(candles: Iterable[Candle]) -> list[PricePoint]:
    quoted = (candle for candle in candles if (candle.bid, candle.ask) != (0.0, 1.0))
    return [PricePoint(at=candle.end, p=(candle.bid + candle.ask) / 2) for candle in quoted]


def _candles(rows: Payload) -> list[Candle]:
    found: list[Candle] = []
    for row in rows.items():
        end, bid, ask = row.need("end_period_ts").moment(), _close(row, "yes_bid"), _close(row, "yes_ask")
        if bid is not None and ask is not None:
            found.append(Candle(end=end, bid=bid, ask=ask))
    return found


def _close(row: Payload, side: str) -> float | None:
    """The last quote of a side, in whichever of the exchange's notations; None where there was no quote."""
    quotes = row.present(side)
    if quotes is None:
        return None
    told = quotes.present("close" if quotes.has("close") and not quotes.has("close_dollars") else "close_dollars")
    return None if told is None else price(told)


def price(told: Payload) -> float:
    """A price of a one-dollar contract, from dollars in a text or from whole cents."""
    if isinstance(told.value, str):
        return told.probability()
    if isinstance(told.value, bool) or not isinstance(told.value, int):
        told.wrong("dollars in a text, nor whole cents")
    return Payload(url=told.url, path=told.path, value=told.number() / CENTS).probability()
