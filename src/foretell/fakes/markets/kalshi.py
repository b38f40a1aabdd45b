"""A stand-in for Kalshi: candlesticks in both notations and both tiers, and a catalogue beside them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from foretell.fakes.markets.kalshi_catalogue import KalshiCatalogue
from foretell.fakes.markets.kalshi_wire import Schema
from foretell.fakes.markets.trouble import Trouble
from foretell.fakes.server import FakeServer, Request, Response

DAY_MINUTES = 1440
NEW_YORK_MIDNIGHT = 5 * 3600
"""Daily candles end at midnight in New York."""


@dataclass(frozen=True, kw_only=True)
class FakeBook:
    """Best quotes for yes from a Unix second on, oldest first. None: no quote on that side's record."""

    quotes: tuple[tuple[int, float | None, float | None], ...]
    archived: bool = False
    """Settled before the cutoff of the archive."""

    def at(self, second: int) -> tuple[float | None, float | None] | None:
        """The quotes that stood then."""
        standing = [(bid, ask) for since, bid, ask in self.quotes if since <= second]
        return standing[-1] if standing else None


class FakeKalshi:
    """Answers the candlestick routes, the archive's cutoff, and what its catalogue knows."""

    def __init__(
        self,
        books: Mapping[str, FakeBook],
        *,
        cutoff: int = 0,
        schema: Schema = "dollars",
        canary: str = "",
        careless: bool = False,
    ) -> None:
        """`careless` serves two days more than asked for."""
        self.books = books
        self.cutoff = cutoff
        self.schema: Schema = schema
        self.canary = canary
        self.careless = careless
        self.catalogue = KalshiCatalogue()
        self.trouble = Trouble()

    def having(self, catalogue: KalshiCatalogue, trouble: Trouble | None = None) -> Self:
        """The same, with a catalogue, and perhaps in trouble."""
        self.catalogue, self.trouble = catalogue, trouble or self.trouble
        return self

    def server(self) -> FakeServer:
        """A server that answers so."""
        server = FakeServer()
        server.route("GET", "*", self._respond)
        return server

    def _respond(self, request: Request) -> Response:
        return self.trouble.response(request, *self.answer(request.path, request.query))

    def answer(self, path: str, query: Mapping[str, str]) -> tuple[int, Any]:
        """Status and body."""
        if path.endswith("/historical/cutoff"):
            return 200, {"market_settled_ts": datetime.fromtimestamp(self.cutoff, UTC).isoformat()}
        if path.endswith("/markets/candlesticks") and "market_tickers" in query:
            return self._batch(query)
        if not path.endswith("/candlesticks") and (told := self.catalogue.answer(path, query)) is not None:
            return told
        ticker = path.removesuffix("/candlesticks").rpartition("/")[2]
        book = self.books.get(ticker)
        if "/historical/markets/" not in path or book is None or not book.archived:
            return 404, {"error": {"code": "not_found", "message": "not found"}}
        return 200, {"ticker": ticker, "candlesticks": self._candles(book, query, historical=True)}

    def _batch(self, query: Mapping[str, str]) -> tuple[int, Any]:
        tickers = query["market_tickers"].split(",")
        live = {ticker: book for ticker in tickers if (book := self.books.get(ticker)) and not book.archived}
        rows = [
            {
                "market_ticker": ticker,
                "candlesticks": self._candles(book, query, historical=False),
                "status": self.canary,
                "result": self.canary,
                "close_time": self.canary,
            }
            for ticker, book in live.items()
        ]
        if len(tickers) > 100 or sum(len(row["candlesticks"]) for row in rows) > 10_000:
            return 400, {"error": {"code": "too_many_candlesticks"}}
        return 200, {"markets": rows}

    def _candles(self, book: FakeBook, query: Mapping[str, str], *, historical: bool) -> list[dict[str, Any]]:
        start, end = int(query["start_ts"]), int(query["end_ts"]) + 2 * 86400 * self.careless
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
            "yes_bid": {f"open{suffix}": self.canary, f"close{suffix}": self._price(bid)},
            "yes_ask": {f"open{suffix}": self.canary, f"close{suffix}": self._price(ask)},
            "price": {f"close{suffix}": self.canary, f"previous{suffix}": self.canary},
            f"volume{count}": self.canary,
            f"open_interest{count}": self.canary,
        }

    def _price(self, dollars: float | None) -> str | int | None:
        if dollars is None:
            return None
        return f"{dollars:.4f}" if self.schema == "dollars" else round(dollars * 100)
