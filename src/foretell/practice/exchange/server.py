"""The simulated exchange on a local port: Kalshi's API, search engines over the news, and the news pages.

`python -m foretell.practice.exchange.server --clock file:PATH` serves it to other processes, until interrupted.
"""

import argparse
import asyncio
import contextlib
import math
import os
import signal
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from foretell.data.corpus import CorpusDocument
from foretell.patterns import pattern
from foretell.practice.exchange.events import DAY, HOUR, SimulatedEvent, SimulationSettings, utc_time
from foretell.practice.exchange.world import NewsItem, PriceBook, SimulatedWorld
from foretell.practice.markets.kalshi import (
    KalshiCatalogue,
    KalshiService,
    SampleKalshiEvent,
    SampleKalshiMarket,
    Schema,
    candle_ends,
    kalshi_event_body,
    kalshi_series_body,
)
from foretell.practice.server import (
    Middleware,
    PracticeServer,
    ServerRequest,
    ServerResponse,
    StatusAndBody,
    html_response,
    json_response,
)
from foretell.practice.web import ENGINES, SampleWebPage, SampleWorld, search_server
from foretell.questions.as_of import Clock, instant

KEY = "fake"
KALSHI, PAGES = "/trade-api/v2", "/pages"
SITE = "https://news.example"
VOID_PAYS = 0.5
SHOWN_AS = {"initialized": "unopened", "active": "open", "finalized": "settled"}
"""State of an event's markets → the status by which the event is requested; any other state is `closed`."""


class FileClock:
    """A clock that reads the time from a file at every call. The driver of the simulation sets it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __call__(self) -> datetime:
        """Return the current time."""
        return instant(self.path.read_text(encoding="utf-8").strip())

    def set(self, at: datetime) -> None:
        """Set the time. Readers see either the old or the new time, never a partial one."""
        new = self.path.with_name(f"{self.path.name}.new")
        new.write_text(instant(at).isoformat(), encoding="utf-8")
        os.replace(new, self.path)


class SimulatedExchange(KalshiService):
    """A world as visible from outside at its clock's time. Nothing later can be read from it."""

    def __init__(
        self,
        world: SimulatedWorld,
        clock: Clock,
        *,
        schema: Schema = "dollars",
        archive_after: float = 60.0,
        page: int = 200,
        site: str = SITE,
    ) -> None:
        """Serve a world; settled markets move to the archive after `archive_after` days.

        `site` is the prefix of the news addresses; the server itself also serves the pages under `/pages`.
        """
        self.world = world
        self.clock = clock
        self.schema: Schema = schema
        self.news = NewsSearch(world.news, clock, site)
        self._archive_after = archive_after
        self._page = page
        self._bodies: dict[str, tuple[tuple[int, str], dict[str, Any]]] = {}

    def server(self, middleware: Middleware | None = None, *, port: int = 0, latency: float = 0.0) -> PracticeServer:
        """Create a server with Kalshi under /trade-api/v2, search engines under their names, and pages under /pages."""

        def kalshi(request: ServerRequest) -> ServerResponse:
            status, body = self.answer(request.path.removeprefix(KALSHI), request.query)
            return json_response(body, status)

        def page(request: ServerRequest) -> ServerResponse:
            news_page = self.news.page(request.path.removeprefix(PAGES))
            return html_response("not found", 404) if news_page is None else html_response(news_page.html())

        server = search_server(self.news, KEY)
        server.middleware, server.port, server.latency = middleware, port, latency
        server.route("GET", f"{KALSHI}/*", kalshi)
        server.route("GET", f"{PAGES}/*", page)
        return server

    def cutoff_second(self) -> float:
        """Return the archive's cutoff: `archive_after` days ago, in Unix seconds."""
        return self.clock().timestamp() - DAY * self._archive_after

    def listed(self, path: str, query: Mapping[str, str]) -> StatusAndBody | None:
        """Return the answer of a Kalshi catalogue of the events that have been announced."""
        now, cutoff = self.clock().timestamp(), self.cutoff_second()
        events = [event for event in self._candidates(path, query) if event.life.announced <= now]
        if path.rstrip("/").endswith("/events") and "status" in query:
            events = [e for e in events if SHOWN_AS.get(status_of(e, now), "closed") == query["status"]]
        catalogue = KalshiCatalogue(
            [self._body(event, now) for event in events],
            series={event.series: _series(event) for event in events},
            archived=[ticker for event in events if event.life.finalized < cutoff for ticker in event.tickers],
            page=self._page,
        )
        return catalogue.answer(path, query)

    def _candidates(self, path: str, query: Mapping[str, str]) -> Iterable[SimulatedEvent]:
        """Return the events that an answer can be about; the bodies of all others need not be built."""
        name = path.strip("/").rpartition("/")[2]
        tickers = query["tickers"].split(",") if "tickers" in query else [query.get("event_ticker", name)]
        known = self.world.by_ticker
        if name in ("events", "markets") and not query.keys() & {"tickers", "event_ticker"}:
            return self.world.events
        if events := {known[ticker].ticker: known[ticker] for ticker in tickers if ticker in known}:
            return events.values()
        return [event for event in self.world.events if event.series == name]

    def _body(self, event: SimulatedEvent, now: float) -> dict[str, Any]:
        """Return an event's response body, rebuilt only if an hour has passed or the event's state has changed."""
        state = (event.place(now), status_of(event, now))
        stored = self._bodies.get(event.ticker)
        if stored is None or stored[0] != state:
            book = self.world.book(event)
            sample = SampleKalshiEvent(
                ticker=event.ticker,
                series=event.series,
                title=event.words.title,
                period=event.words.period,
                exclusive=event.exclusive,
                category=event.words.category,
                markets=tuple(_market(event, book, row, now) for row in range(len(event.tickers))),
            )
            stored = self._bodies[event.ticker] = state, kalshi_event_body(sample, self.schema)
        return stored[1]

    def candles(self, ticker: str, query: Mapping[str, str], *, archived: bool) -> list[dict[str, Any]] | None:
        """Return a market's candles that end within the requested window; none is shown before its end."""
        now, event = self.clock().timestamp(), self.world.by_ticker.get(ticker)
        if event is None or ticker == event.ticker or event.life.announced > now:
            return None
        if (event.life.finalized < self.cutoff_second()) != archived:
            return None
        book, row = self.world.book(event), event.tickers.index(ticker)
        last = book.opens + HOUR * book.bid.shape[1] + DAY  # Nothing is traded after the last hour of the book.
        start, end = max(int(query["start_ts"]), book.opens + 1), min(int(query["end_ts"]), math.floor(now), last)
        ends = candle_ends(query, start, end)
        step = 60 * int(query["period_interval"])
        return [self._candle(book, row, end - step, end, archived) for end in ends]

    def _candle(self, book: PriceBook, row: int, begin: int, end: int, archived: bool) -> dict[str, Any]:
        """Build the candle of a period, which excludes its first second and includes its last."""
        first, last = book.place(begin), book.place(end)
        # The opening quote of a period is the quote at its beginning; before the market opened there is none.
        places = np.arange(max(first, 0), max(last, 0) + 1)
        volume = book.volume[row]
        before = float(volume[first]) if first >= 0 else 0.0
        traded = [at for at in range(first + 1, last + 1) if volume[at] > (volume[at - 1] if at else 0.0)]
        previous = float(book.last[row, first]) if first >= 0 else 0.0
        return self.candle(
            end,
            (book.bid[row, places].tolist(), book.ask[row, places].tolist()),
            book.last[row, traded].tolist(),
            previous=previous or None,
            counts=(float(volume[last]) - before, float(book.interest[row, last])),
            archived=archived,
        )


def status_of(event: SimulatedEvent, now: float) -> str:
    """Return the state of an event's markets."""
    life = event.life
    stages = (
        (life.finalized, "finalized"),
        (life.determined, "determined"),
        (life.ends, "closed"),
        (life.opens, "active"),
    )
    return next((name for since, name in stages if now >= since), "initialized")


def _market(event: SimulatedEvent, book: PriceBook, row: int, now: float) -> SampleKalshiMarket:
    life, status = event.life, status_of(event, now)
    decided = status in ("determined", "finalized")
    yes = event.outcomes[row] if decided else 0
    place = book.place(now)
    quotes: dict[str, Any] = {}
    if place >= 0:
        volume = float(book.volume[row, place])
        quotes = {
            "bid": float(book.bid[row, place]),
            "ask": float(book.ask[row, place]),
            "last": float(book.last[row, place]),
            "volume": volume,
            "volume_24h": volume - (float(book.volume[row, place - 24]) if place >= 24 else 0.0),
            "open_interest": float(book.interest[row, place]),
        }
    return SampleKalshiMarket(
        ticker=event.tickers[row],
        label=event.labels[row],
        status=status,
        result="" if not decided else "scalar" if life.void else ("no", "yes")[yes],
        opens=_iso(life.opens),
        closes=_iso(life.ends if now >= life.ends else life.closes),
        settled=_iso(life.finalized) if status == "finalized" else None,
        paid=None if not decided else VOID_PAYS if life.void else float(yes),
        rules=event.rules[row],
        **quotes,
    )


def _series(event: SimulatedEvent) -> dict[str, Any]:
    often = "weekly" if event.kind == "weekly" else "one_off"
    return kalshi_series_body(event.series, event.words.topic, event.words.category, frequency=often)


def _iso(second: float) -> str:
    return utc_time(second).strftime("%Y-%m-%dT%H:%M:%SZ")


# A search index over all news, which returns only pages published by the clock's time.

FITTING = 0.4
"""Pages that score below this share of the best page's score are not returned."""
MOST = 60
FRESH, HALF_LIFE = 0.3, 2 * 86_400.0
"""How much extra weight a new page gets, and the seconds after which that is halved."""
_WORD = pattern(r"\w+")


class NewsSearch(SampleWorld):
    """The index behind the practice search engines. It never returns a page published after the clock's time."""

    def __init__(self, items: Iterable[NewsItem], clock: Clock, site: str = SITE) -> None:
        """Index `items`, which are in order of publication; `site` is the prefix of the page addresses."""
        pages = [
            SampleWebPage(
                url=f"{site}{item.path}",
                title=item.title,
                text=item.text,
                published=item.published,
                crawled=item.published,
            )
            for item in items
        ]
        super().__init__(now=clock(), pages=pages)
        self._clock = clock
        self._published = np.array([page.published.timestamp() for page in pages if page.published])
        self._by_path = {page.path: page for page in pages}
        places_by_word: defaultdict[str, list[int]] = defaultdict(list)
        for place, page in enumerate(pages):
            for word in set(_WORD.findall(f"{page.title} {page.text}".casefold())):
                places_by_word[word].append(place)
        self._places_by_word = {word: np.array(places) for word, places in places_by_word.items()}

    def find(self, query: str, *, until: datetime | None = None) -> list[SampleWebPage]:
        """Return pages that share informative words with the query, best first; newer pages score higher."""
        self.now = self._clock()
        latest = min(self.now, until) if until is not None else self.now
        count = self._count_published(latest)
        scores = np.zeros(count)
        for word in dict.fromkeys(_WORD.findall(query.casefold())):  # In order, for equal sums in every process.
            places = self._places_by_word.get(word)
            if places is not None:
                shown = places[: np.searchsorted(places, count)]
                # Count only published pages, because later uses of a word must not have an effect.
                scores[shown] += math.log((count + 1) / (len(shown) + 1))
        age = (latest.timestamp() - self._published[:count]) / HALF_LIFE
        scores *= 1 + FRESH * 0.5**age
        best = scores.max(initial=0.0)
        if best <= 0:
            return []
        fitting = np.flatnonzero(scores >= FITTING * best)
        order = fitting[np.lexsort((-fitting, -scores[fitting].round(6)))]
        return [self.pages[place] for place in order[:MOST]]

    def page(self, path: str) -> SampleWebPage | None:
        """Return a page if it has been published; None otherwise."""
        page = self._by_path.get(path)
        return page if page is not None and page.published is not None and page.published <= self._clock() else None

    def documents(self) -> list[CorpusDocument]:
        """Return everything published so far, for a local corpus."""
        return [
            CorpusDocument(url=page.url, title=page.title, text=page.text, published=page.published, source="news")
            for page in self.pages[: self._count_published(self._clock())]
        ]

    def _count_published(self, at: datetime) -> int:
        return int(np.searchsorted(self._published, at.timestamp(), side="right"))


def main() -> None:
    """Parse the arguments, print the addresses, and serve until interrupted."""
    defaults = SimulationSettings()
    parser = argparse.ArgumentParser(prog="python -m foretell.practice.exchange.server", description=__doc__)
    parser.add_argument("--clock", required=True, help="file:PATH, a file that contains the simulated time")
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--days", type=int, default=defaults.days)
    parser.add_argument("--events-per-day", type=float, default=defaults.events_per_day)
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds to wait before every response")
    parser.add_argument("--site", default=SITE, help="prefix of the addresses of news pages; `here` for this server")
    asyncio.run(_serve(parser.parse_args()))


async def _serve(options: argparse.Namespace) -> None:
    settings = SimulationSettings(seed=options.seed, days=options.days, events_per_day=options.events_per_day)
    if not options.clock.startswith("file:"):
        raise SystemExit(f"{options.clock!r} is not a clock; write file:PATH")
    if options.site == "here" and not options.port:
        raise SystemExit("--site here needs --port")
    # Use a host name, because the leakage filter rejects numeric hosts.
    site = f"http://localhost:{options.port}{PAGES}" if options.site == "here" else options.site
    exchange = SimulatedExchange(SimulatedWorld(settings), FileClock(options.clock.removeprefix("file:")), site=site)
    stopped = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(sign, stopped.set)
    async with exchange.server(port=options.port, latency=options.latency) as server:
        print(f"FORETELL_KALSHI_URL={server.url}{KALSHI}", flush=True)
        for engine in ENGINES:
            print(f"FORETELL_{engine.upper()}_URL={server.url}/{engine}", flush=True)
        print(f"serving a world from {settings.start} to {settings.ends}", flush=True)
        await stopped.wait()


if __name__ == "__main__":
    main()
