"""The simulated world: its events, their hidden truth, their prices and the news about them."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property

from foretell.practice.exchange.chance import HOUR, SeededChance, SimulationSettings
from foretell.practice.exchange.events import DAY, EventMaker, SimulatedEvent
from foretell.practice.exchange.news import NewsItem, news_of
from foretell.practice.exchange.prices import PriceBook, book_of
from foretell.practice.exchange.subjects import made_up_names, subjects

WEEKLY_SHARE = 3
"""There is a weekly series for every so many events a day."""
MONDAY = 4 * DAY
"""The first Monday in Unix seconds."""


class SimulatedWorld:
    """All of it, made from settings.

    >>> world = SimulatedWorld(SimulationSettings(seed=1, days=2, events_per_day=5))
    >>> event = world.events[0]
    >>> 0 < world.truth(event.ticker, event.tickers[0], world.settings.begins) < 1
    True
    """

    def __init__(self, settings: SimulationSettings | None = None) -> None:
        self.settings = settings or SimulationSettings()
        self._chance = SeededChance.of(self.settings)
        self._books: dict[str, PriceBook] = {}

    @cached_property
    def events(self) -> tuple[SimulatedEvent, ...]:
        """In the order of their announcement."""
        return tuple(self._made())

    @cached_property
    def by_ticker(self) -> Mapping[str, SimulatedEvent]:
        """Events by their own tickers and by those of their markets."""
        markets = {ticker: event for event in self.events for ticker in event.tickers}
        return markets | {event.ticker: event for event in self.events}

    @cached_property
    def news(self) -> tuple[NewsItem, ...]:
        """Everything that is ever published, in the order of publication."""
        found = [item for event in self.events for item in news_of(event)]
        return tuple(sorted(found, key=lambda item: (item.published, item.path)))

    def truth(self, event: str, target: str, at: datetime) -> float:
        """What an ideal forecaster says about a market at a moment. For tests and upper bounds: no wire tells it."""
        found = self.by_ticker[event]
        return float(found.p[found.tickers.index(target), found.place(at.timestamp())])

    def outcome(self, event: str, target: str) -> int | None:
        """How a market comes out; None where the event is called off."""
        found = self.by_ticker[event]
        return None if found.life.void else found.outcomes[found.tickers.index(target)]

    def book(self, event: SimulatedEvent) -> PriceBook:
        """Prices and trades, hour by hour."""
        if event.ticker not in self._books:
            self._books[event.ticker] = book_of(event)
        return self._books[event.ticker]

    def _made(self) -> Iterator[SimulatedEvent]:
        settings, maker = self.settings, EventMaker(settings=self.settings, chance=self._chance)
        count = max(2, round(settings.events_per_day / WEEKLY_SHARE))
        choices = subjects("weekly")
        weekly = [
            (choices[place % len(choices)], made_up_names(self._chance.at(settings.begins, "series", place)))
            for place in range(count)
        ]
        levels = [0.0] * count
        hourly = max(0.0, settings.events_per_day - count / 7) / 24
        number = 0
        for hour in range(int(settings.begins.timestamp()), int(settings.ends.timestamp()), HOUR):
            rng = self._chance.at(hour, "hour", hour)
            for _ in range(int(rng.poisson(hourly))):
                yield maker.event(number, hour, rng)
                number += 1
            for place, about in enumerate(weekly):
                # Each opens on Monday morning, an hour after the one before it.
                if (hour - MONDAY) % (7 * DAY) == (4 + place % 12) * HOUR:
                    event = maker.week(number, about, hour, levels[place])
                    levels[place] = float(event.quantity[-1])
                    yield event
                    number += 1
