"""The simulated world: its events, their hidden truth, their prices and the news about them."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.practice.exchange.events import (
    DAY,
    HOUR,
    EventMaker,
    Floats,
    SeededChance,
    SimulatedEvent,
    SimulationSettings,
    logit,
    made_up_names,
    one_of,
    subjects,
    utc_time,
)

# News outlets, and the templates of their reports.


@frozen
class NewsOutlet:
    """A newspaper with its typical error and bias."""

    name: str
    error: float
    """Standard deviation of the error in what it observes, in logits."""
    boldness: float = 1.0
    """Factor on what it observes; above 1 it exaggerates."""


OUTLETS = (
    NewsOutlet(name="Courier", error=0.25),
    NewsOutlet(name="Gazette", error=0.5),
    NewsOutlet(name="Observer", error=0.6, boldness=0.8),
    NewsOutlet(name="Buzz", error=0.9, boldness=1.6),
)
TITLES = (
    "{topic}: {short} on {day}",
    "{short}, as of {day}: where {topic} stands",
    "How {topic} looked on {day}: {short}",
    "{outlet} on {topic}, {day}: {short}",
)
FIGURES = (
    "These figures are of {day}.",
    "That is how it looked on {day}, before anything else came out.",
    "The survey behind it was closed on {day}.",
    "It was compiled from three sources by {day}.",
    "Nobody contradicted it until {day}.",
)
BACKGROUND = (
    "Those close to the matter asked not to be named.",
    "A spokesman declined to comment at first and then spoke for an hour.",
    "The next report is expected within days, if the weather holds.",
    "People in the street had other worries, as they usually do.",
    "Older figures are of little use by now, one expert warned.",
    "An earlier version of this report named another source.",
)
IDLE_TITLES = (
    "{number} pictures: around {topic}",
    "A day with those who follow {topic}, part {number}",
    "{topic}: a look back at {number} years",
    "Quiz: {number} questions about {topic}",
)
IDLE = (
    "A reader remembers {topic} from {number} years ago.",
    "Around {topic} a market has grown for badges, {number} kinds of them.",
    "Tickets, parking and {number} places to eat: all you need to know about {topic}.",
    "The museum shows {number} objects connected with {topic} until autumn.",
    "Nothing new was heard about {topic}, said {number} people whom nobody had asked.",
)
A_DAY = 1.1
"""Average number of reports on an event per day."""
IDLE_SHARE, LATE_SHARE = 0.3, 0.15
AT_OPENING = 2
"""Number of hours after the opening that each bring a report on the initial situation."""


@frozen
class NewsItem:
    """A report on an event."""

    event: str
    outlet: str
    title: str
    text: str
    observed: datetime
    published: datetime
    informative: bool
    """Whether it contains any signal."""

    @property
    def path(self) -> str:
        """Its path on the news site."""
        return f"/{self.outlet.lower()}/{self.published:%Y/%m/%d}/{self.event.lower()}-{self.observed:%d%H}"


def news_of(event: SimulatedEvent) -> Iterator[NewsItem]:
    """Yield all reports on an event, including the one on its outcome within an hour of the answer."""
    hours = event.hours[event.hours < event.life.ends]
    drawn = event.chance.hourly(hours, event.number, "report", normal=False)
    for place in np.flatnonzero((drawn < A_DAY / 24) | (np.arange(len(hours)) < AT_OPENING)):
        yield _report(event, int(place))
    known = float(event.life.known)
    won = [label for label, outcome in zip(event.labels, event.outcomes, strict=True) if outcome]
    yield NewsItem(
        event=event.ticker,
        outlet=OUTLETS[0].name,
        title=_capital(f"{event.words.topic}: it is decided"),
        text=f"It is decided about {event.words.topic}: {', '.join(won) if won else 'no'}.",
        observed=utc_time(known),
        published=utc_time(known + 20 * 60),
        informative=True,
    )


def _report(event: SimulatedEvent, place: int) -> NewsItem:
    observed = float(event.hours[place])
    rng = event.chance.at(observed, event.number, "words", place)
    outlet = OUTLETS[int(rng.integers(len(OUTLETS)))]
    informative = place < AT_OPENING or bool(rng.random() >= IDLE_SHARE)
    late = place >= AT_OPENING and informative and bool(rng.random() < LATE_SHARE)
    published = observed + (HOUR * float(rng.integers(20, 90)) if late else 60.0 * float(rng.integers(5, 55)))
    if informative:
        when = utc_time(observed)
        sentence, short = _finding(event, place, outlet, rng)
        words = {
            "topic": event.words.topic,
            "outlet": outlet.name,
            "day": f"{when.day} {when:%B}, {when:%H}:00",
            "short": short,
        }
        title = one_of(TITLES, rng).format(**words)
        parts = [sentence, one_of(FIGURES, rng).format(**words), one_of(BACKGROUND, rng)]
    else:
        topic, number = event.words.topic, int(rng.integers(3, 90))
        title = one_of(IDLE_TITLES, rng).format(topic=topic, number=number)
        parts = [one_of(IDLE, rng).format(topic=topic, number=number + step) for step in range(3)]
    return NewsItem(
        event=event.ticker,
        outlet=outlet.name,
        title=_capital(title),
        text=" ".join(map(_capital, dict.fromkeys(parts))),
        observed=utc_time(observed),
        published=utc_time(published),
        informative=informative,
    )


def _finding(event: SimulatedEvent, place: int, outlet: NewsOutlet, rng: np.random.Generator) -> tuple[str, str]:
    """Return a report's informative sentence and its figure in short form."""
    words, unit = event.words, event.words.unit
    if event.kind in ("ladder", "weekly"):
        left = np.sqrt(max(1e-4, 1 - event.informed[place]))
        value = event.quantity[place] + event.move * outlet.error * 0.5 * left * rng.standard_normal()
        digits = max(0, 2 - int(np.floor(np.log10(event.move))))
        shown, usual = f"{float(value):.{digits}f}", f"{event.move * float(left):.{digits}f}"
        sentence = f"{words.topic} stands at {shown} {unit}, with a usual move of {usual} {unit} until the end."
        return sentence, f"{shown} {unit}"
    seen = outlet.boldness * logit(event.p[:, place], 0.02) + outlet.error * rng.standard_normal(len(event.p))
    blurred = np.clip(1 / (1 + np.exp(-seen)), 0.01, 0.99)
    if event.kind == "yes-no":
        chance = round(100 * float(blurred[0]))
        return f"{outlet.name} puts the chance that {words.claim} at {chance} in 100.", f"{chance} in 100"
    shares = np.round(100 * blurred / blurred.sum()).astype(int)
    listed = ", ".join(f"{label} {share} in 100" for label, share in zip(event.labels, shares, strict=True))
    return f"{outlet.name} on {words.topic}: {listed}.", f"{event.labels[int(shares.argmax())]} ahead"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


LONGSHOTS = 0.88
"""Factor from the truth to prices, in logits: unlikely outcomes are overpriced, likely ones underpriced."""
OVERREACTION = 0.35
"""Share of the recent change that is added once more."""
RECENT, LAG = 6, 3
"""Hours that count as recent, and hours by which half of the traders lag behind."""
MEMORY = 0.97
"""Autocorrelation of the noise from hour to hour."""
NOISE, THIN_NOISE = 0.4, 0.8
SHARED = {"ladder": 0.95, "weekly": 0.95, "race": 0.0, "yes-no": 0.0}
"""Share of the noise that moves all markets of an event together, by kind of event."""
OVERROUND = 1.02
"""Sum of the prices in a race."""
SELDOM = 0.15
"""Share of hours with a trade in a thinly traded market."""
EMPTY = 0.12
"""Share of hours without any order in a thinly traded market."""


@frozen
class PriceBook:
    """Quotes and trades of an event at every hour of trading: one row per market."""

    opens: int
    bid: Floats
    ask: Floats
    last: Floats
    """Price of the last trade; zero before the first one."""
    volume: Floats
    """Contracts traded so far."""
    interest: Floats

    def place(self, second: float) -> int:
        """Return the index of the hour at a time; −1 before the opening."""
        return int(min((second - self.opens) // HOUR, self.bid.shape[1] - 1)) if second >= self.opens else -1


def book_of(event: SimulatedEvent) -> PriceBook:
    """Simulate the quotes and trades of an event."""
    hours = event.hours[event.hours < event.life.ends]
    p = event.p[:, : len(hours)]
    middle = _middle(event, p, hours)
    half = 0.004 + 0.5 / np.sqrt(event.traded)
    bid = np.clip(np.floor(100 * (middle - half)), 0, 98) / 100
    ask = np.clip(np.ceil(100 * (middle + half)), 2, 100) / 100
    empty = _uniform(event, hours, "empty") < EMPTY if event.thin else np.zeros_like(p, dtype=bool)
    traded = _traded(event, p, hours)
    side = _uniform(event, hours, "side") < 0.5
    last = _carried(np.where(side, np.maximum(bid, 0.01), np.minimum(ask, 0.99)), traded > 0)
    volume = np.cumsum(traded, axis=1)
    return PriceBook(
        opens=event.life.opens,
        bid=np.where(empty, 0.0, bid),
        ask=np.where(empty, 1.0, ask),
        last=last,
        volume=volume,
        interest=np.floor(0.45 * volume),
    )


def _middle(event: SimulatedEvent, p: Floats, hours: Floats) -> Floats:
    known = logit(p)
    seen = 0.5 * known + 0.5 * _ago(known, LAG) + OVERREACTION * (known - _ago(known, RECENT))
    size = THIN_NOISE if event.thin else NOISE
    shared = SHARED[event.kind]
    own = np.array([_wandering(event, hours, row) for row in range(len(p))])
    noise = np.sqrt(shared) * _wandering(event, hours, -1)[None, :] + np.sqrt(1 - shared) * own
    middle = 1 / (1 + np.exp(-(LONGSHOTS * seen + size * noise)))
    if event.exclusive:
        middle = OVERROUND * middle / middle.sum(axis=0)
    return np.clip(middle, 0.005, 0.995)


def _wandering(event: SimulatedEvent, hours: Floats, row: int) -> Floats:
    """Draw noise that persists for about a day: x ← MEMORY · x + √(1 − MEMORY²) · z."""
    drawn = event.chance.hourly(hours, event.number, "noise", row)
    steps = np.sqrt(1 - MEMORY**2) * drawn
    steps[0] = drawn[0]
    faded = MEMORY ** np.arange(len(hours))
    return np.asarray(faded * np.cumsum(steps / faded), dtype=np.float64)


def _traded(event: SimulatedEvent, p: Floats, hours: Floats) -> Floats:
    """Draw the contracts traded in every hour, more if the outcome is uncertain."""
    length = max(1.0, (event.life.closes - event.life.opens) / HOUR)
    eager = 0.5 + 3.0 * p * (1 - p)
    amount = -np.log(np.maximum(_uniform(event, hours, "amount"), 1e-12)) * event.traded / length * eager
    if event.thin:
        amount = np.where(_uniform(event, hours, "trade") < SELDOM, amount / SELDOM, 0.0)
    return np.floor(amount)


def _uniform(event: SimulatedEvent, hours: Floats, what: str) -> Floats:
    rows = range(len(event.tickers))
    return np.array([event.chance.hourly(hours, event.number, what, row, normal=False) for row in rows])


def _ago(values: Floats, hours: int) -> Floats:
    """Return the values some hours earlier; the first value is also used for the time before it."""
    places = np.maximum(np.arange(values.shape[1]) - hours, 0)
    return values[:, places]


def _carried(prices: Floats, traded: npt.NDArray[np.bool_]) -> Floats:
    """Return the price of the last trade at every hour; zero before the first one."""
    places = np.where(traded, np.arange(prices.shape[1])[None, :], -1)
    latest = np.maximum.accumulate(places, axis=1)
    return np.where(latest >= 0, np.take_along_axis(prices, np.maximum(latest, 0), axis=1), 0.0)


WEEKLY_SHARE = 3
"""One weekly series is created per this many events a day."""
MONDAY = 4 * DAY
"""The first Monday, in Unix seconds."""


class SimulatedWorld:
    """A complete simulated world, generated from settings.

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
        """All events, in order of announcement."""
        return tuple(self._generate())

    @cached_property
    def by_ticker(self) -> Mapping[str, SimulatedEvent]:
        """Events by their own tickers and by those of their markets."""
        markets = {ticker: event for event in self.events for ticker in event.tickers}
        return markets | {event.ticker: event for event in self.events}

    @cached_property
    def news(self) -> tuple[NewsItem, ...]:
        """All news that is ever published, in order of publication."""
        items = [item for event in self.events for item in news_of(event)]
        return tuple(sorted(items, key=lambda item: (item.published, item.path)))

    def truth(self, event: str, target: str, at: datetime) -> float:
        """Return the ideal forecaster's probability of a market at a time.

        For tests and upper bounds only: no server reveals it.
        """
        simulated = self.by_ticker[event]
        return float(simulated.p[simulated.tickers.index(target), simulated.place(at.timestamp())])

    def outcome(self, event: str, target: str) -> int | None:
        """Return the outcome of a market; None if the event is cancelled."""
        simulated = self.by_ticker[event]
        return None if simulated.life.void else simulated.outcomes[simulated.tickers.index(target)]

    def book(self, event: SimulatedEvent) -> PriceBook:
        """Return the event's prices and trades, hour by hour."""
        if event.ticker not in self._books:
            self._books[event.ticker] = book_of(event)
        return self._books[event.ticker]

    def _generate(self) -> Iterator[SimulatedEvent]:
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
