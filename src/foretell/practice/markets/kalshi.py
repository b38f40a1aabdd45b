"""Kalshi for practice: candlesticks in both notations and both tiers, and a catalogue of events and markets."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

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

    Events are given as the exchange would send them, markets nested.
    """

    def __init__(
        self,
        events: Iterable[Mapping[str, Any]] = (),
        *,
        series: Mapping[str, Mapping[str, Any]] | None = None,
        archived: Iterable[str] = (),
        page: int = MAX_EVENTS,
    ) -> None:
        """`archived` are tickers of markets that only the archive knows; `page` the most entries of one answer."""
        self.events = [dict(event) for event in events]
        self.series = dict(series or {})
        self.archived = set(archived)
        self.page = page

    def answer(self, path: str, query: Mapping[str, str]) -> StatusAndBody | None:
        """Status and body; None for what is no part of the catalogue."""
        before, _, name = path.strip("/").rpartition("/")
        parent = before.rpartition("/")[2]
        if name == "events":
            return self._events(query)
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
        if limit > MAX_EVENTS:
            return 400, {"error": {"code": "invalid_parameters", "message": "limit"}}
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
        fitting = [
            market
            for market in self._all()
            if (market.get("ticker") in self.archived) == archived
            and (wanted is None or market.get("ticker") in wanted)
            and query.get("event_ticker", market.get("event_ticker")) == market.get("event_ticker")
        ]
        return self._paged("markets", fitting, query, int(query.get("limit", MAX_MARKETS)))

    def _market(self, ticker: str, *, archived: bool) -> StatusAndBody:
        found = next((market for market in self._all() if market.get("ticker") == ticker), None)
        if found is None or (ticker in self.archived) != archived:
            return _missing()
        return 200, {"market": found}

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


@dataclass(frozen=True, kw_only=True)
class SampleKalshiMarket:
    """One market of an event; prices in dollars, times written out."""

    ticker: str
    label: str
    bid: float = 0.0
    ask: float = 1.0
    last: float = 0.0
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


@dataclass(frozen=True, kw_only=True)
class SampleKalshiEvent:
    """An event with its markets."""

    ticker: str
    series: str
    title: str
    markets: tuple[SampleKalshiMarket, ...]
    period: str = ""
    exclusive: bool = False
    category: str | None = "Economics"
    """None: only the series has it."""


def kalshi_event_body(event: SampleKalshiEvent, schema: Schema = "dollars") -> dict[str, Any]:
    """An event as sent, its markets nested."""
    body: dict[str, Any] = {
        "event_ticker": event.ticker,
        "series_ticker": event.series,
        "title": event.title,
        "sub_title": event.period,
        "collateral_return_type": "MECNET" if event.exclusive else "",
        "mutually_exclusive": event.exclusive,
        "markets": [kalshi_market_body(market, event.ticker, schema) for market in event.markets],
    }
    return body | ({"category": event.category} if event.category is not None else {})


def kalshi_market_body(market: SampleKalshiMarket, event: str, schema: Schema = "dollars") -> dict[str, Any]:
    """A market as sent."""
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
        "strike_type": "custom",
        "rules_primary": market.rules,
        "rules_secondary": "",
        **({"expected_expiration_time": market.expected} if market.expected else {}),
        **(_new(market) if schema == "dollars" else _old(market)),
    }


def _quotes(market: SampleKalshiMarket) -> dict[str, float]:
    return dict(zip(QUOTES, (market.bid, market.ask, 1 - market.ask, 1 - market.bid, market.last), strict=True))


def _new(market: SampleKalshiMarket) -> dict[str, Any]:
    body: dict[str, Any] = {f"{name}_dollars": f"{value:.4f}" for name, value in _quotes(market).items()}
    body |= {
        "volume_fp": f"{market.volume:.2f}",
        "volume_24h_fp": f"{market.volume_24h:.2f}",
        "open_interest_fp": f"{market.open_interest:.2f}",
        "liquidity_dollars": "0.0000",
        "notional_value_dollars": "1.0000",
        "price_level_structure": "linear_cent",
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
NEW_YORK_MIDNIGHT = 5 * 3600
"""Daily candles end at midnight in New York."""


@dataclass(frozen=True, kw_only=True)
class SampleKalshiBook:
    """Best quotes for yes from a Unix second on, oldest first. None: no quote on that side's record."""

    quotes: tuple[tuple[int, float | None, float | None], ...]
    archived: bool = False
    """Settled before the cutoff of the archive."""

    def at(self, second: int) -> tuple[float | None, float | None] | None:
        """The quotes at that moment."""
        known = [(bid, ask) for since, bid, ask in self.quotes if since <= second]
        return known[-1] if known else None


class PracticeKalshi(PracticeService):
    """Answers the candlestick routes, the archive's cutoff, and what its catalogue knows."""

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

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Status and body."""
        path, query = request.path, request.query
        if path.endswith("/historical/cutoff"):
            return 200, {"market_settled_ts": datetime.fromtimestamp(self.cutoff, UTC).isoformat()}
        if path.endswith("/markets/candlesticks") and "market_tickers" in query:
            return self._batch(query)
        if not path.endswith("/candlesticks") and (found := self.catalogue.answer(path, query)) is not None:
            return found
        ticker = path.removesuffix("/candlesticks").rpartition("/")[2]
        book = self.books.get(ticker)
        if "/historical/markets/" not in path or book is None or not book.archived:
            return 404, {"error": {"code": "not_found", "message": "not found"}}
        return 200, {"ticker": ticker, "candlesticks": self._candles(book, query, historical=True)}

    def _batch(self, query: Mapping[str, str]) -> StatusAndBody:
        tickers = query["market_tickers"].split(",")
        live = {ticker: book for ticker in tickers if (book := self.books.get(ticker)) and not book.archived}
        rows = [
            {
                "market_ticker": ticker,
                "candlesticks": self._candles(book, query, historical=False),
                "status": "active",
                "result": "",
                "close_time": "2027-01-01T00:00:00Z",
            }
            for ticker, book in live.items()
        ]
        if len(tickers) > 100 or sum(len(row["candlesticks"]) for row in rows) > 10_000:
            return 400, {"error": {"code": "too_many_candlesticks"}}
        return 200, {"markets": rows}

    def _candles(self, book: SampleKalshiBook, query: Mapping[str, str], *, historical: bool) -> list[dict[str, Any]]:
        start, end = int(query["start_ts"]), int(query["end_ts"])
        step = int(query["period_interval"]) * 60
        offset = NEW_YORK_MIDNIGHT if step == DAY_MINUTES * 60 else 0
        first = start + (offset - start) % step
        found = [(second, book.at(second)) for second in range(first, end + 1, step)]
        return [self._candle(second, *quotes, historical) for second, quotes in found if quotes is not None]

    def _candle(self, second: int, bid: float | None, ask: float | None, historical: bool) -> dict[str, Any]:
        suffix = "_dollars" if self.schema == "dollars" and not historical else ""
        count = "_fp" if self.schema == "dollars" and not historical else ""
        return {
            "end_period_ts": second,
            "yes_bid": {f"open{suffix}": self._price(bid), f"close{suffix}": self._price(bid)},
            "yes_ask": {f"open{suffix}": self._price(ask), f"close{suffix}": self._price(ask)},
            "price": {f"close{suffix}": None, f"previous{suffix}": None},
            f"volume{count}": "0.00" if count else 0,
            f"open_interest{count}": "0.00" if count else 0,
        }

    def _price(self, dollars: float | None) -> str | int | None:
        if dollars is None:
            return None
        return f"{dollars:.4f}" if self.schema == "dollars" else round(dollars * 100)
