"""The simulated exchange on a port of this machine: Kalshi's routes, search engines over the news, and its pages."""

from collections.abc import Mapping
from typing import Any

from foretell.fakes.exchange.board import Board
from foretell.fakes.exchange.candles import CannotShow, candles
from foretell.fakes.exchange.clock import Clock, clock_of
from foretell.fakes.exchange.event import moment
from foretell.fakes.exchange.newsstand import SITE, Newsstand
from foretell.fakes.exchange.world import World
from foretell.fakes.markets.kalshi_wire import Schema
from foretell.fakes.markets.trouble import Trouble
from foretell.fakes.search import search_server
from foretell.fakes.server import FakeServer, Request, Response, html_response

KEY = "fake"
KALSHI = "/trade-api/v2"
PAGES = "/pages"
BATCH = 100
MOST_CANDLES = 10_000
NOT_FOUND = 404, {"error": {"code": "not_found", "message": "not found"}}


class Exchange:
    """A world as seen from outside at the moment its clock tells. Nothing later can be read from it.

    `server.faults` makes single requests fail (a 429, say); `trouble` takes parts down or changes fields.
    """

    def __init__(
        self,
        world: World,
        clock: str | Clock,
        *,
        schema: Schema = "dollars",
        archive_after: float = 60.0,
        page: int = 200,
        site: str = SITE,
    ) -> None:
        """`site` is what the addresses of news begin with; the pages lie under `/pages` on the server itself, too."""
        self.world = world
        self.clock = clock_of(clock)
        self.trouble = Trouble()
        self.news = Newsstand(world.news, self.clock, site)
        self._schema: Schema = schema
        self._board = Board(world, schema=schema, archive_after=archive_after, page=page)

    def server(self, *, port: int = 0, latency: float = 0.0) -> FakeServer:
        """A server with all of it: Kalshi under /trade-api/v2, engines under their names, pages under /pages."""
        server = search_server(self.news, KEY)
        server.port, server.latency = port, latency
        server.route("GET", f"{KALSHI}/*", self._kalshi)
        server.route("GET", f"{PAGES}/*", self._page)
        return server

    def _kalshi(self, request: Request) -> Response:
        path = request.path.removeprefix(KALSHI)
        return self.trouble.response(request, *self.answer(path, request.query))

    def _page(self, request: Request) -> Response:
        page = self.news.page(request.path.removeprefix(PAGES))
        return html_response("not found", 404) if page is None else html_response(page.html())

    def answer(self, path: str, query: Mapping[str, str]) -> tuple[int, Any]:
        """Status and body of a Kalshi route."""
        now = self.clock().timestamp()
        if path == "/historical/cutoff":
            return 200, {"market_settled_ts": moment(self._board.cutoff(now)).isoformat()}
        if not path.endswith("/candlesticks"):
            return self._board.answer(path, query, now) or NOT_FOUND
        try:
            if "market_tickers" in query:
                return self._batch(query, now)
            ticker = path.removesuffix("/candlesticks").rpartition("/")[2]
            historical = path.startswith("/historical/")
            found = self._candles(ticker, query, now, historical=historical)
        except CannotShow as error:
            return 400, {"error": {"code": "invalid_parameters", "message": str(error)}}
        return NOT_FOUND if found is None else (200, {"ticker": ticker, "candlesticks": found})

    def _batch(self, query: Mapping[str, str], now: float) -> tuple[int, Any]:
        tickers = query["market_tickers"].split(",")
        if len(tickers) > BATCH:
            raise CannotShow("market_tickers")
        found = {ticker: self._candles(ticker, query, now) for ticker in tickers}
        rows = [
            {"market_ticker": ticker, "candlesticks": shown} for ticker, shown in found.items() if shown is not None
        ]
        if sum(len(row["candlesticks"]) for row in rows) > MOST_CANDLES:
            raise CannotShow("too_many_candlesticks")
        return 200, {"markets": rows}

    def _candles(
        self, ticker: str, query: Mapping[str, str], now: float, *, historical: bool = False
    ) -> list[dict[str, Any]] | None:
        event = self.world.by_ticker.get(ticker)
        if event is None or ticker == event.ticker or event.life.announced > now:
            return None
        if self._board.archived(event, now) != historical:
            return None
        book, row = self.world.book(event), event.tickers.index(ticker)
        return candles(book, row, query, now, schema=self._schema, historical=historical)
