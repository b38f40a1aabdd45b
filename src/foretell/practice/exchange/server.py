"""The exchange's catalogue at a moment, in Kalshi's form: what is open, what it costs, what has come out."""

import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from foretell.data.corpus import CorpusDocument
from foretell.practice.exchange.chance import HOUR
from foretell.practice.exchange.events import SimulatedEvent, moment
from foretell.practice.exchange.news import NewsItem
from foretell.practice.exchange.prices import CandlesUnavailable, PriceBook, candles
from foretell.practice.exchange.world import SimulatedWorld
from foretell.practice.markets.kalshi import (
    KalshiCatalogue,
    SampleKalshiEvent,
    SampleKalshiMarket,
    Schema,
    kalshi_event_body,
)
from foretell.practice.search import search_server
from foretell.practice.server import (
    PracticeServer,
    ServerRequest,
    ServerResponse,
    StatusAndBody,
    html_response,
    json_response,
)
from foretell.practice.world import SampleWebPage, SampleWorld
from foretell.questions.as_of import instant

DAY = 24
"""Hours."""
VOID_PAYS = 0.5


class ExchangeCatalogue:
    """Answers what a Kalshi catalogue answers, as of a Unix second."""

    def __init__(
        self, world: SimulatedWorld, *, schema: Schema = "dollars", page: int = 200, archive_after: float = 60.0
    ):
        """Settled markets are in the archive only after so many days."""
        self._world = world
        self._schema: Schema = schema
        self._page = page
        self._archive_after = archive_after
        self._bodies: dict[str, tuple[tuple[int, str], dict[str, Any]]] = {}

    def cutoff(self, now: float) -> float:
        """Markets settled before this moment are in the archive."""
        return now - 24 * HOUR * self._archive_after

    def archived(self, event: SimulatedEvent, now: float) -> bool:
        """Whether only the archive knows its markets."""
        return event.life.finalized < self.cutoff(now)

    def answer(self, path: str, query: Mapping[str, str], now: float) -> StatusAndBody | None:
        """Status and body; None for what is no part of the catalogue."""
        events = [event for event in self._asked(path, query) if event.life.announced <= now]
        if path.rstrip("/").endswith("/events") and "status" in query:
            events = [event for event in events if _shown_as(event, now) == query["status"]]
        catalogue = KalshiCatalogue(
            [self._body(event, now) for event in events],
            series={event.series: _series(event) for event in events},
            archived=[ticker for event in events if self.archived(event, now) for ticker in event.tickers],
            page=self._page,
        )
        return catalogue.answer(path, query)

    def _asked(self, path: str, query: Mapping[str, str]) -> Iterable[SimulatedEvent]:
        """The events that an answer can be about: making bodies of all others would be work for nothing."""
        name = path.strip("/").rpartition("/")[2]
        tickers = query["tickers"].split(",") if "tickers" in query else [query.get("event_ticker", name)]
        known = self._world.by_ticker
        if name in ("events", "markets") and not query.keys() & {"tickers", "event_ticker"}:
            return self._world.events
        if found := {known[ticker].ticker: known[ticker] for ticker in tickers if ticker in known}:
            return found.values()
        return [event for event in self._world.events if event.series == name]

    def _body(self, event: SimulatedEvent, now: float) -> dict[str, Any]:
        """An event as sent; made anew only when an hour has passed or its state has changed."""
        state = (event.place(now), status_of(event, now))
        kept = self._bodies.get(event.ticker)
        if kept is None or kept[0] != state:
            kept = state, kalshi_event_body(_event(event, self._world.book(event), now), self._schema)
            self._bodies[event.ticker] = kept
        return kept[1]


def status_of(event: SimulatedEvent, now: float) -> str:
    """The state of its markets."""
    life = event.life
    stages = (
        (life.finalized, "finalized"),
        (life.determined, "determined"),
        (life.ends, "closed"),
        (life.opens, "active"),
    )
    return next((name for since, name in stages if now >= since), "initialized")


def _shown_as(event: SimulatedEvent, now: float) -> str:
    told = {"initialized": "unopened", "active": "open", "finalized": "settled"}
    return told.get(status_of(event, now), "closed")


def _event(event: SimulatedEvent, book: PriceBook, now: float) -> SampleKalshiEvent:
    return SampleKalshiEvent(
        ticker=event.ticker,
        series=event.series,
        title=event.words.title,
        period=event.words.period,
        exclusive=event.exclusive,
        category=event.words.category,
        markets=tuple(_market(event, book, row, now) for row in range(len(event.tickers))),
    )


def _market(event: SimulatedEvent, book: PriceBook, row: int, now: float) -> SampleKalshiMarket:
    life, status = event.life, status_of(event, now)
    came_out = status in ("determined", "finalized")
    yes = event.outcomes[row] if came_out else 0
    closes = life.ends if now >= life.ends else life.closes
    return SampleKalshiMarket(
        ticker=event.tickers[row],
        label=event.labels[row],
        status=status,
        result="" if not came_out or life.void else ("no", "yes")[yes],
        opens=_iso(life.opens),
        closes=_iso(closes),
        settled=_iso(life.finalized) if status == "finalized" else None,
        paid=None if not came_out else VOID_PAYS if life.void else float(yes),
        rules=event.rules[row],
        **_quoted(book, row, now),
    )


def _quoted(book: PriceBook, row: int, now: float) -> dict[str, Any]:
    place = book.place(now)
    if place < 0:
        return {}
    before = float(book.volume[row, place - DAY]) if place >= DAY else 0.0
    volume = float(book.volume[row, place])
    return {
        "bid": float(book.bid[row, place]),
        "ask": float(book.ask[row, place]),
        "last": float(book.last[row, place]),
        "volume": volume,
        "volume_24h": volume - before,
        "open_interest": float(book.interest[row, place]),
    }


def _series(event: SimulatedEvent) -> dict[str, Any]:
    often = "weekly" if event.kind == "weekly" else "one_off"
    return {"ticker": event.series, "title": event.words.topic, "category": event.words.category, "frequency": often}


def _iso(second: float) -> str:
    return moment(second).strftime("%Y-%m-%dT%H:%M:%SZ")


# Simulated time in a file: whoever drives the simulation sets it, everybody else reads it.

Clock = Callable[[], datetime]


class FileClock:
    """The moment that a file holds, read anew at every call."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __call__(self) -> datetime:
        """The moment it is."""
        return instant(self.path.read_text(encoding="utf-8").strip())

    def set(self, at: datetime) -> None:
        """Make it another moment. Readers see the old one or the new one, never half of it."""
        new = self.path.with_name(f"{self.path.name}.new")
        new.write_text(instant(at).isoformat(), encoding="utf-8")
        os.replace(new, self.path)


def clock_of(given: str | Clock) -> Clock:
    """A clock from `file:PATH`, or the one that was given."""
    if not isinstance(given, str):
        return given
    kind, _, path = given.partition(":")
    if kind != "file" or not path:
        raise ValueError(f"{given!r} is no clock; write file:PATH")
    return FileClock(path)


# The news as a search engine sees it: an index over everything, of which only what is out by now is ever found.

SITE = "https://news.example"
FITTING = 0.4
"""Pages below this share of the best one's score are not found."""
MOST = 60
FRESH, HALF_LIFE = 0.3, 2 * 86_400.0
"""How much more what is new counts, and seconds until that is half as much."""
_WORD = re.compile(r"\w+")


class NewsSearch(SampleWorld):
    """Answers the fake search engines. Nothing that is published after the clock's moment is on it."""

    def __init__(self, items: Iterable[NewsItem], clock: Clock, site: str = SITE) -> None:
        """`items` in the order of their publication; `site` is what the addresses of pages begin with."""
        super().__init__(now=clock(), pages=[_page(item, site) for item in items])
        self._clock = clock
        self._published = np.array([page.published.timestamp() for page in self.pages if page.published])
        self._holding = self._index()
        self._by_path = {page.path: page for page in self.pages}

    def _index(self) -> dict[str, "np.ndarray"]:
        found: defaultdict[str, list[int]] = defaultdict(list)
        for place, page in enumerate(self.pages):
            for word in set(_WORD.findall(f"{page.title} {page.text}".casefold())):
                found[word].append(place)
        return {word: np.array(places) for word, places in found.items()}

    def find(self, query: str, *, until: datetime | None = None) -> list[SampleWebPage]:
        """Pages that share telling words with the query, the best first; what is new counts for more."""
        self.now = self._clock()
        latest = min(self.now, until) if until is not None else self.now
        out = int(np.searchsorted(self._published, latest.timestamp(), side="right"))
        scores = np.zeros(out)
        for word in set(_WORD.findall(query.casefold())):
            places = self._holding.get(word)
            if places is not None:
                shown = places[: np.searchsorted(places, out)]
                # Counted over what is out: how often a word will be used later must not show.
                scores[shown] += math.log((out + 1) / (len(shown) + 1))
        age = (latest.timestamp() - self._published[:out]) / HALF_LIFE
        scores *= 1 + FRESH * 0.5**age
        best = scores.max(initial=0.0)
        if best <= 0:
            return []
        fitting = np.flatnonzero(scores >= FITTING * best)
        order = fitting[np.lexsort((-fitting, -scores[fitting].round(6)))]
        return [self.pages[place] for place in order[:MOST]]

    def page(self, path: str) -> SampleWebPage | None:
        """A page that is out by now."""
        found = self._by_path.get(path)
        return found if found is not None and found.published is not None and found.published <= self._clock() else None

    def documents(self) -> list[CorpusDocument]:
        """Everything that is out by now, for a local corpus."""
        now = self._clock()
        return [
            CorpusDocument(url=page.url, title=page.title, text=page.text, published=page.published, source="news")
            for page in self.pages
            if page.published is not None and page.published <= now
        ]


def _page(item: NewsItem, site: str) -> SampleWebPage:
    return SampleWebPage(
        url=f"{site}{item.path}", title=item.title, text=item.text, published=item.published, crawled=item.published
    )


# The simulated exchange on a port of this machine: Kalshi's routes, search engines over the news, and its pages.

KEY = "fake"
KALSHI = "/trade-api/v2"
PAGES = "/pages"
BATCH = 100
MOST_CANDLES = 10_000
NOT_FOUND = 404, {"error": {"code": "not_found", "message": "not found"}}


class SimulatedExchange:
    """A world as seen from outside at the moment its clock tells. Nothing later can be read from it."""

    def __init__(
        self,
        world: SimulatedWorld,
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
        self.news = NewsSearch(world.news, self.clock, site)
        self._schema: Schema = schema
        self._board = ExchangeCatalogue(world, schema=schema, archive_after=archive_after, page=page)

    def server(self, *, port: int = 0, latency: float = 0.0) -> PracticeServer:
        """A server with all of it: Kalshi under /trade-api/v2, engines under their names, pages under /pages."""
        server = search_server(self.news, KEY)
        server.port, server.latency = port, latency
        server.route("GET", f"{KALSHI}/*", self._kalshi)
        server.route("GET", f"{PAGES}/*", self._page)
        return server

    def _kalshi(self, request: ServerRequest) -> ServerResponse:
        path = request.path.removeprefix(KALSHI)
        status, body = self.answer(path, request.query)
        return json_response(body, status)

    def _page(self, request: ServerRequest) -> ServerResponse:
        page = self.news.page(request.path.removeprefix(PAGES))
        return html_response("not found", 404) if page is None else html_response(page.html())

    def answer(self, path: str, query: Mapping[str, str]) -> StatusAndBody:
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
        except CandlesUnavailable as error:
            return 400, {"error": {"code": "invalid_parameters", "message": str(error)}}
        return NOT_FOUND if found is None else (200, {"ticker": ticker, "candlesticks": found})

    def _batch(self, query: Mapping[str, str], now: float) -> StatusAndBody:
        tickers = query["market_tickers"].split(",")
        if len(tickers) > BATCH:
            raise CandlesUnavailable("market_tickers")
        found = {ticker: self._candles(ticker, query, now) for ticker in tickers}
        rows = [
            {"market_ticker": ticker, "candlesticks": shown} for ticker, shown in found.items() if shown is not None
        ]
        if sum(len(row["candlesticks"]) for row in rows) > MOST_CANDLES:
            raise CandlesUnavailable("too_many_candlesticks")
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
