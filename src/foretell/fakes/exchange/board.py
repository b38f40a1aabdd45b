"""The exchange's catalogue at a moment, in Kalshi's form: what is open, what it costs, what has come out."""

from collections.abc import Iterable, Mapping
from typing import Any

from foretell.fakes.exchange.chance import HOUR
from foretell.fakes.exchange.event import SimEvent, moment
from foretell.fakes.exchange.traders import Book
from foretell.fakes.exchange.world import World
from foretell.fakes.markets.kalshi_catalogue import Answer, KalshiCatalogue
from foretell.fakes.markets.kalshi_wire import FakeEvent, FakeMarket, Schema, event_body

DAY = 24
"""Hours."""
VOID_PAYS = 0.5


class Board:
    """Answers what a Kalshi catalogue answers, as of a Unix second."""

    def __init__(self, world: World, *, schema: Schema = "dollars", page: int = 200, archive_after: float = 60.0):
        """Settled markets are in the archive only after so many days."""
        self._world = world
        self._schema: Schema = schema
        self._page = page
        self._archive_after = archive_after
        self._bodies: dict[str, tuple[tuple[int, str], dict[str, Any]]] = {}

    def cutoff(self, now: float) -> float:
        """Markets settled before this moment are in the archive."""
        return now - 24 * HOUR * self._archive_after

    def archived(self, event: SimEvent, now: float) -> bool:
        """Whether only the archive knows its markets."""
        return event.life.finalized < self.cutoff(now)

    def answer(self, path: str, query: Mapping[str, str], now: float) -> Answer | None:
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

    def _asked(self, path: str, query: Mapping[str, str]) -> Iterable[SimEvent]:
        """The events that an answer can be about: making bodies of all others would be work for nothing."""
        name = path.strip("/").rpartition("/")[2]
        tickers = query["tickers"].split(",") if "tickers" in query else [query.get("event_ticker", name)]
        known = self._world.by_ticker
        if name in ("events", "markets") and not query.keys() & {"tickers", "event_ticker"}:
            return self._world.events
        if found := {known[ticker].ticker: known[ticker] for ticker in tickers if ticker in known}:
            return found.values()
        return [event for event in self._world.events if event.series == name]

    def _body(self, event: SimEvent, now: float) -> dict[str, Any]:
        """An event as sent; made anew only when an hour has passed or its state has changed."""
        state = (event.place(now), status_of(event, now))
        kept = self._bodies.get(event.ticker)
        if kept is None or kept[0] != state:
            kept = state, event_body(_event(event, self._world.book(event), now), self._schema)
            self._bodies[event.ticker] = kept
        return kept[1]


def status_of(event: SimEvent, now: float) -> str:
    """The state of its markets."""
    life = event.life
    stages = (
        (life.finalized, "finalized"),
        (life.determined, "determined"),
        (life.ends, "closed"),
        (life.opens, "active"),
    )
    return next((name for since, name in stages if now >= since), "initialized")


def _shown_as(event: SimEvent, now: float) -> str:
    told = {"initialized": "unopened", "active": "open", "finalized": "settled"}
    return told.get(status_of(event, now), "closed")


def _event(event: SimEvent, book: Book, now: float) -> FakeEvent:
    return FakeEvent(
        ticker=event.ticker,
        series=event.series,
        title=event.words.title,
        period=event.words.period,
        exclusive=event.exclusive,
        category=event.words.category,
        markets=tuple(_market(event, book, row, now) for row in range(len(event.tickers))),
    )


def _market(event: SimEvent, book: Book, row: int, now: float) -> FakeMarket:
    life, status = event.life, status_of(event, now)
    came_out = status in ("determined", "finalized")
    yes = event.outcomes[row] if came_out else 0
    closes = life.ends if now >= life.ends else life.closes
    return FakeMarket(
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


def _quoted(book: Book, row: int, now: float) -> dict[str, Any]:
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


def _series(event: SimEvent) -> dict[str, Any]:
    often = "weekly" if event.kind == "weekly" else "one_off"
    return {"ticker": event.series, "title": event.words.topic, "category": event.words.category, "frequency": often}


def _iso(second: float) -> str:
    return moment(second).strftime("%Y-%m-%dT%H:%M:%SZ")
