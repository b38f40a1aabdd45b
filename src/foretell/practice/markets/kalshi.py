"""Kalshi for practice: candlesticks in both price formats, live and archived, and a catalogue of events and markets."""

from abc import abstractmethod
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from statistics import fmean
from typing import Any, Literal

from foretell.frozen import frozen
from foretell.practice.server import PracticeService, ServerRequest, StatusAndBody

MAX_EVENTS, MAX_MARKETS = 200, 1000
SHOWN_AS = {
    "unopened": ("initialized",),
    "open": ("active", "inactive", "open"),
    "closed": ("closed", "determined", "disputed", "amended"),
    "settled": ("finalized", "settled"),
}


class KalshiCatalogue:
    """Events, markets, series and the archive, with the exchange's filters and cursors.

    Events are given as the exchange would send them, with their markets nested.
    """

    def __init__(
        self,
        events: Iterable[Mapping[str, Any]] = (),
        *,
        series: Mapping[str, Mapping[str, Any]] | None = None,
        archived: Iterable[str] = (),
        page: int = MAX_EVENTS,
    ) -> None:
        """`archived` lists tickers of markets that only the archive has; `page` is the maximum length of an answer."""
        self.events = [dict(event) for event in events]
        self.series = dict(series or {})
        self.archived = set(archived)
        self.page = page

    def answer(self, path: str, query: Mapping[str, str]) -> StatusAndBody | None:
        """Return the status and body; None if the path is not part of the catalogue."""
        before, _, name = path.strip("/").rpartition("/")
        parent = before.rpartition("/")[2]
        if name == "events":
            return self._events(query)
        if name == "series":
            known = {str(event["series_ticker"]): {"title": event.get("title", "")} for event in self.events}
            merged = known | {ticker: {**known.get(ticker, {}), **body} for ticker, body in self.series.items()}
            return 200, {"series": [{**body, "ticker": ticker} for ticker, body in merged.items()]}
        if parent == "events":
            return self._event(name, query)
        if parent == "series":
            return (200, {"series": self.series[name]}) if name in self.series else _missing()
        if name == "markets":
            return self._markets(query, archived=parent == "historical")
        return self._market(name, archived="/historical/" in path) if parent == "markets" else None

    def _all(self) -> list[dict[str, Any]]:
        return [market for event in self.events for market in event.get("markets", [])]

    def _shown(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [market for market in event.get("markets", []) if market.get("ticker") not in self.archived]

    def _nested(self, event: Mapping[str, Any], query: Mapping[str, str]) -> dict[str, Any]:
        bare = {name: value for name, value in event.items() if name != "markets"}
        if query.get("with_nested_markets") != "true":
            return bare
        return bare | ({"markets": self._shown(event)} if "markets" in event else {})

    def _events(self, query: Mapping[str, str]) -> StatusAndBody:
        limit = int(query.get("limit", MAX_EVENTS))
        if limit > MAX_EVENTS or query.get("status", "open") not in SHOWN_AS:
            return 400, {"error": {"code": "invalid_parameters", "message": "limit or status"}}
        fitting = [self._nested(event, query) for event in self.events if self._fits(event, query)]
        return self._paged("events", fitting, query, limit)

    def _fits(self, event: Mapping[str, Any], query: Mapping[str, str]) -> bool:
        markets = event.get("markets", [])
        states = {market.get("status") for market in markets}
        closes = max((_second(market["close_time"]) for market in markets if "close_time" in market), default=0)
        return (
            ("status" not in query or bool(states.intersection(SHOWN_AS[query["status"]])))
            and closes >= int(query.get("min_close_ts", 0))
            and query.get("series_ticker", event.get("series_ticker")) == event.get("series_ticker")
        )

    def _event(self, ticker: str, query: Mapping[str, str]) -> StatusAndBody:
        event = next((event for event in self.events if event.get("event_ticker") == ticker), None)
        if event is None:
            return _missing()
        shown = [] if query.get("with_nested_markets") == "true" else self._shown(event)
        return 200, {"event": self._nested(event, query), "markets": shown}

    def _markets(self, query: Mapping[str, str], *, archived: bool) -> StatusAndBody:
        wanted = query["tickers"].split(",") if "tickers" in query else None
        if archived and len(query.keys() & {"tickers", "event_ticker", "series_ticker"}) > 1:
            return 400, {"error": {"code": "invalid_parameters", "message": "filters are mutually exclusive"}}
        fitting = [
            market
            for market in self._all()
            if (market.get("ticker") in self.archived) == archived
            and (wanted is None or market.get("ticker") in wanted)
            and query.get("event_ticker", market.get("event_ticker")) == market.get("event_ticker")
        ]
        return self._paged("markets", fitting, query, int(query.get("limit", MAX_MARKETS)))

    def _market(self, ticker: str, *, archived: bool) -> StatusAndBody:
        market = next((market for market in self._all() if market.get("ticker") == ticker), None)
        if market is None or (ticker in self.archived) != archived:
            return _missing()
        return 200, {"market": market}

    def _paged(self, name: str, rows: list[Any], query: Mapping[str, str], limit: int) -> StatusAndBody:
        start = int(urlsafe_b64decode(query["cursor"])) if query.get("cursor") else 0
        end = start + min(limit, self.page)
        cursor = urlsafe_b64encode(str(end).encode()).decode() if end < len(rows) else ""
        return 200, {name: rows[start:end], "cursor": cursor}


def _second(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def _missing() -> StatusAndBody:
    return 404, {"error": {"code": "not_found", "message": "not found"}}


Schema = Literal["dollars", "cents"]
QUOTES = ("yes_bid", "yes_ask", "no_bid", "no_ask", "last_price")


@frozen
class SampleKalshiMarket:
    """One market of an event; prices are in dollars, times are ISO strings."""

    ticker: str
    label: str
    bid: float | None = 0.0
    """Best bid for yes; None if there is no quote, and then its field is omitted."""
    ask: float | None = 1.0
    last: float | None = 0.0
    volume: float = 0.0
    volume_24h: float = 0.0
    open_interest: float = 0.0
    liquidity: float = 0.0
    status: str = "active"
    result: str = ""
    opens: str = "2026-01-01T00:00:00Z"
    closes: str = "2027-01-01T00:00:00Z"
    expected: str | None = None
    settled: str | None = None
    paid: float | None = None
    rules: str = "The market resolves to yes if it happens."
    kind: str = "binary"
    strike: tuple[str, float | None, float | None] = ("custom", None, None)
    """The strike type, and the lowest and highest value for which the market comes true."""


@frozen
class SampleKalshiEvent:
    """An event with its markets."""

    ticker: str
    series: str
    title: str
    markets: tuple[SampleKalshiMarket, ...]
    period: str = ""
    exclusive: bool = False
    category: str | None = "Economics"
    """The event's category; None if only the series has one."""


def kalshi_event_body(event: SampleKalshiEvent, schema: Schema = "dollars") -> dict[str, Any]:
    """Build an event as the exchange sends it, with its markets nested."""
    body: dict[str, Any] = {
        "event_ticker": event.ticker,
        "series_ticker": event.series,
        "title": event.title,
        "sub_title": event.period,
        "collateral_return_type": "MECNET" if event.exclusive else "",
        "available_on_brokers": True,
        "product_metadata": {},
        "exchange_index": 0,
        "mutually_exclusive": event.exclusive,
        "markets": [kalshi_market_body(market, event.ticker, schema) for market in event.markets],
    }
    return body | ({"category": event.category} if event.category is not None else {})


def kalshi_series_body(
    ticker: str, title: str, category: str, *, frequency: str = "custom", tags: Sequence[str] = ()
) -> dict[str, Any]:
    """Build a series as the exchange sends it."""
    return {
        "ticker": ticker,
        "title": title,
        "category": category,
        "frequency": frequency,
        "tags": list(tags),
        "settlement_sources": [{"name": "The newspaper", "url": "https://news.example/"}],
        "contract_url": "https://news.example/contract.pdf",
        "contract_terms_url": "https://news.example/terms.pdf",
        "fee_type": "quadratic",
        "fee_multiplier": 1,
        "additional_prohibitions": [],
    }


def kalshi_market_body(market: SampleKalshiMarket, event: str, schema: Schema = "dollars") -> dict[str, Any]:
    """Build a market as the exchange sends it."""
    kind, floor, cap = market.strike
    strikes = {"floor_strike": floor, "cap_strike": cap}
    return {
        "ticker": market.ticker,
        "event_ticker": event,
        "market_type": market.kind,
        "yes_sub_title": market.label,
        "no_sub_title": market.label,
        "open_time": market.opens,
        "close_time": market.closes,
        "latest_expiration_time": market.closes,
        "settlement_timer_seconds": 1800,
        "status": market.status,
        "result": market.result,
        "can_close_early": True,
        "expiration_value": market.result,
        "strike_type": kind,
        **{name: value for name, value in strikes.items() if value is not None},
        "rules_primary": market.rules,
        "rules_secondary": "",
        **({"expected_expiration_time": market.expected} if market.expected else {}),
        **(_new(market) if schema == "dollars" else _old(market)),
    }


def _quotes(market: SampleKalshiMarket) -> dict[str, float]:
    """Return the quotes that exist. A bid on no is an offer of yes."""
    no_bid, no_ask = (None if price is None else 1 - price for price in (market.ask, market.bid))
    quotes = zip(QUOTES, (market.bid, market.ask, no_bid, no_ask, market.last), strict=True)
    return {name: price for name, price in quotes if price is not None}


def _new(market: SampleKalshiMarket) -> dict[str, Any]:
    body: dict[str, Any] = {f"{name}_dollars": f"{value:.4f}" for name, value in _quotes(market).items()}
    body |= {
        "volume_fp": f"{market.volume:.2f}",
        "volume_24h_fp": f"{market.volume_24h:.2f}",
        "open_interest_fp": f"{market.open_interest:.2f}",
        "liquidity_dollars": "0.0000",
        "notional_value_dollars": "1.0000",
        "price_level_structure": "linear_cent",
        "price_ranges": [{"start": "0.0000", "end": "1.0000", "step": "0.0100"}],
        "fractional_trading_enabled": False,
        "exchange_index": 0,
        "created_time": market.opens,
        "updated_time": market.opens,
        **{f"previous_{name}_dollars": "0.0000" for name in ("yes_bid", "yes_ask", "price")},
        **{f"yes_{side}_size_fp": "10.00" for side in ("bid", "ask")},
    }
    body |= {"settlement_ts": market.settled} if market.settled else {}
    return body | ({"settlement_value_dollars": f"{market.paid:.4f}"} if market.paid is not None else {})


def _old(market: SampleKalshiMarket) -> dict[str, Any]:
    body: dict[str, Any] = {name: round(value * 100) for name, value in _quotes(market).items()}
    body |= {
        "title": market.label,
        "subtitle": "",
        "volume": round(market.volume),
        "volume_24h": round(market.volume_24h),
        "open_interest": round(market.open_interest),
        "liquidity": round(market.liquidity * 100),
        "response_price_units": "usd_cent",
        "notional_value": 100,
        "tick_size": 1,
    }
    return body | ({"settlement_value": round(market.paid * 100)} if market.paid is not None else {})


DAY_MINUTES = 1440
PERIODS = (1, 60, DAY_MINUTES)
NEW_YORK_MIDNIGHT = 5 * 3600
"""Offset of midnight in New York from midnight UTC, in seconds: daily candles end then."""
MAX_TICKERS, MAX_CANDLES = 100, 10_000
Prices = Sequence[float | None]


class RequestRefused(ValueError):
    """The request has parameters that the exchange would reject."""


class KalshiService(PracticeService):
    """The exchange's routes over a catalogue and candlesticks, both of which subclasses provide."""

    schema: Schema

    @abstractmethod
    def cutoff_second(self) -> float:
        """Return the Unix second before which settled markets are in the archive."""

    @abstractmethod
    def listed(self, path: str, query: Mapping[str, str]) -> StatusAndBody | None:
        """Return the catalogue's answer; None if the path is not part of it."""

    @abstractmethod
    def candles(self, ticker: str, query: Mapping[str, str], *, archived: bool) -> list[dict[str, Any]] | None:
        """Return the candles of a market, archived or not; None if there is no such market."""

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Return the status and body of the answer."""
        return self.answer(request.path, request.query)

    def answer(self, path: str, query: Mapping[str, str]) -> StatusAndBody:
        """Return the status and body for a path."""
        if path.endswith("/historical/cutoff"):
            cutoff = datetime.fromtimestamp(self.cutoff_second(), UTC).isoformat()
            return 200, dict.fromkeys(("market_settled_ts", "trades_created_ts", "orders_updated_ts"), cutoff)
        if not path.endswith("/candlesticks"):
            return self.listed(path, query) or _missing()
        try:
            if "market_tickers" in query:
                return 200, {"markets": self._batch(query)}
            ticker = path.removesuffix("/candlesticks").rpartition("/")[2]
            candles = self.candles(ticker, query, archived="/historical/" in path)
        except RequestRefused as error:
            return 400, {"error": {"code": "invalid_parameters", "message": str(error)}}
        return _missing() if candles is None else (200, {"ticker": ticker, "candlesticks": candles})

    def _batch(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        tickers = query["market_tickers"].split(",")
        if len(tickers) > MAX_TICKERS:
            raise RequestRefused("market_tickers")
        candles = {ticker: self.candles(ticker, query, archived=False) for ticker in tickers}
        if query.get("include_latest_before_start") == "true":
            candles = {
                ticker: series and [self._initial_candle(series[0], query), *series]
                for ticker, series in candles.items()
            }
        rows = [
            {"market_ticker": ticker, "candlesticks": series}
            for ticker, series in candles.items()
            if series is not None
        ]
        if sum(len(row["candlesticks"]) for row in rows) > MAX_CANDLES:
            raise RequestRefused("too_many_candlesticks")
        return rows

    def _initial_candle(self, first: Mapping[str, Any], query: Mapping[str, str]) -> dict[str, Any]:
        """Build the initial candle that a client may request: no quotes, only the last price traded before."""
        start = int(query["start_ts"])
        end = next(iter(candle_ends(query, start, start + int(query["period_interval"]) * 60)))
        last_price = first["price"].get("previous_dollars") or first["price"].get("previous")
        price = None if last_price is None else float(last_price) if isinstance(last_price, str) else last_price / 100
        return self.candle(end, ((), ()), (), previous=price, archived=False)

    def candle(
        self,
        end: int,
        quotes: tuple[Prices, Prices],
        trades: Prices,
        *,
        previous: float | None = None,
        counts: tuple[float, float] = (0.0, 0.0),
        archived: bool,
    ) -> dict[str, Any]:
        """Build one candle as sent: `quotes` are bids and asks, `counts` contracts traded and held.

        The archive uses the older field names.
        """
        new = self.schema == "dollars" and not archived
        suffix = "_dollars" if new else ""

        def price(dollars: float | None) -> str | int | None:
            if dollars is None:
                return None
            return f"{dollars:.4f}" if self.schema == "dollars" else round(dollars * 100)

        def span(values: Prices) -> dict[str, Any]:
            known = [value for value in values if value is not None]
            low, high = (min(known), max(known)) if known else (None, None)
            summary = {"open": values[0], "low": low, "high": high, "close": values[-1]} if values else {}
            return price_fields({name: summary.get(name) for name in ("open", "low", "high", "close")})

        def price_fields(prices: Mapping[str, float | None]) -> dict[str, Any]:
            # In the newer format a missing price has no field.
            fields = {f"{name}{suffix}": price(value) for name, value in prices.items()}
            return {name: value for name, value in fields.items() if value is not None or not new}

        mean = fmean(trade for trade in trades if trade is not None) if trades else None
        traded = {**price_fields({"previous": previous, "mean": mean}), **span(trades)}
        body = {"end_period_ts": end, "yes_bid": span(quotes[0]), "yes_ask": span(quotes[1]), "price": traded}
        for name, count in zip(("volume", "open_interest"), counts, strict=True):
            amount = f"{count:.2f}" if self.schema == "dollars" else round(count)
            body |= {f"{name}_fp" if new else name: amount}
        return body


def candle_ends(query: Mapping[str, str], start: int, end: int) -> range:
    """Return the Unix seconds from `start` to `end` at which the candles of a request end."""
    minutes = int(query["period_interval"])
    if minutes not in PERIODS:
        raise RequestRefused("period_interval")
    step = minutes * 60
    first = start + ((NEW_YORK_MIDNIGHT if minutes == DAY_MINUTES else 0) - start) % step
    ends = range(first, end + 1, step)
    if len(ends) > MAX_CANDLES:
        raise RequestRefused("too_many_candlesticks")
    return ends


@frozen
class SampleKalshiBook:
    """Best quotes for yes, oldest first, as (Unix second, bid, ask); None means no quote on that side."""

    quotes: tuple[tuple[int, float | None, float | None], ...]
    archived: bool = False
    """Whether the market was settled before the archive's cutoff."""


class PracticeKalshi(KalshiService):
    """Serves candlesticks of some order books, the archive's cutoff, and a catalogue."""

    def __init__(
        self,
        books: Mapping[str, SampleKalshiBook],
        *,
        catalogue: KalshiCatalogue | None = None,
        cutoff: int = 0,
        schema: Schema = "dollars",
    ) -> None:
        """`cutoff` is the Unix second before which settled markets are in the archive."""
        self.books = books
        self.cutoff = cutoff
        self.schema: Schema = schema
        self.catalogue = catalogue or KalshiCatalogue()

    def cutoff_second(self) -> float:
        """Return the cutoff given at creation."""
        return self.cutoff

    def listed(self, path: str, query: Mapping[str, str]) -> StatusAndBody | None:
        """Return the catalogue's answer."""
        return self.catalogue.answer(path, query)

    def candles(self, ticker: str, query: Mapping[str, str], *, archived: bool) -> list[dict[str, Any]] | None:
        """Return candles with the quotes at the end of every period."""
        book = self.books.get(ticker)
        if book is None or book.archived != archived:
            return None
        rows: list[dict[str, Any]] = []
        for second in candle_ends(query, int(query["start_ts"]), int(query["end_ts"])):
            known = [(bid, ask) for since, bid, ask in book.quotes if since <= second]
            if known:
                bid, ask = known[-1]
                rows.append(self.candle(second, ([bid], [ask]), (), archived=archived))
        return rows
