"""News of the simulated world: what observers made of the truth at a moment, more or less well, and much that is idle.

A report tells what was seen at `observed`, and appears at `published`, sometimes days later. It never knows more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from foretell.practice.exchange.chance import HOUR, Floats, logit
from foretell.practice.exchange.events import SimulatedEvent, moment
from foretell.practice.exchange.names import one_of

# Who writes the news, and in which words.


@dataclass(frozen=True, kw_only=True)
class NewsOutlet:
    """A paper with its habits."""

    name: str
    error: float
    """Of what it sees, in logits."""
    boldness: float = 1.0
    """Above 1 it makes more of things than there is."""


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
    "Nothing new was query about {topic}, said {number} people whom nobody had asked.",
)
CLOSING = "it is decided"


A_DAY = 1.1
"""Reports on an event in a day."""
IDLE_SHARE, LATE_SHARE = 0.3, 0.15
AT_OPENING = 2
"""Reports on the day of the opening, which tell how things stand at first."""


@dataclass(frozen=True, kw_only=True)
class NewsItem:
    """A report on an event."""

    event: str
    outlet: str
    title: str
    text: str
    observed: datetime
    published: datetime
    telling: bool
    """Whether it holds any signal."""

    @property
    def path(self) -> str:
        """Where it lies on the web."""
        return f"/{self.outlet.lower()}/{self.published:%Y/%m/%d}/{self.event.lower()}-{self.observed:%d%H}"


def news_of(event: SimulatedEvent) -> Iterator[NewsItem]:
    """Every report on an event, up to the one on how it came out."""
    hours = event.hours[event.hours < event.life.ends]
    drawn = event.chance.hourly(hours, event.number, "report", normal=False)
    for place in np.flatnonzero((drawn < A_DAY / 24) | (np.arange(len(hours)) < AT_OPENING)):
        yield _report(event, int(place))
    yield _answer(event)


def _report(event: SimulatedEvent, place: int) -> NewsItem:
    observed = float(event.hours[place])
    rng = event.chance.at(observed, event.number, "words", place)
    outlet = OUTLETS[int(rng.integers(len(OUTLETS)))]
    telling = place < AT_OPENING or bool(rng.random() >= IDLE_SHARE)
    late = place >= AT_OPENING and telling and bool(rng.random() < LATE_SHARE)
    published = observed + (HOUR * float(rng.integers(20, 90)) if late else 60.0 * float(rng.integers(5, 55)))
    title, text = _telling(event, place, outlet, rng) if telling else _idle(event, rng)
    return NewsItem(
        event=event.ticker,
        outlet=outlet.name,
        title=title,
        text=text,
        observed=moment(observed),
        published=moment(published),
        telling=telling,
    )


def _telling(event: SimulatedEvent, place: int, outlet: NewsOutlet, rng: np.random.Generator) -> tuple[str, str]:
    when = moment(float(event.hours[place]))
    day = f"{when.day} {when:%B}, {when:%H}:00"
    told, short = _seen(event, place, outlet, rng)
    said = {"topic": event.words.topic, "outlet": outlet.name, "day": day, "short": short}
    title = one_of(TITLES, rng).format(**said)
    parts = [told, one_of(FIGURES, rng).format(**said), one_of(BACKGROUND, rng).format(**said)]
    return _capital(title), " ".join(map(_capital, parts))


def _seen(event: SimulatedEvent, place: int, outlet: NewsOutlet, rng: np.random.Generator) -> tuple[str, str]:
    """The telling sentence of a report, and its figure in short."""
    if event.kind in ("ladder", "weekly"):
        left = np.sqrt(max(1e-4, 1 - event.informed[place]))
        value = event.quantity[place] + event.move * outlet.error * 0.5 * left * rng.standard_normal()
        shown, usual = _figure(float(value), event.move), _figure(event.move * float(left), event.move)
        unit = event.words.unit
        told = f"{event.words.topic} stands at {shown} {unit}, with a usual move of {usual} {unit} until the end."
        return told, f"{shown} {unit}"
    blurred = _blurred(event.p[:, place], outlet, rng)
    if event.kind == "yes-no":
        chance = round(100 * float(blurred[0]))
        return f"{outlet.name} puts the chance that {event.words.claim} at {chance} in 100.", f"{chance} in 100"
    shares = np.round(100 * blurred / blurred.sum()).astype(int)
    told = ", ".join(f"{label} {share} in 100" for label, share in zip(event.labels, shares, strict=True))
    return f"{outlet.name} on {event.words.topic}: {told}.", f"{event.labels[int(shares.argmax())]} ahead"


def _blurred(p: Floats, outlet: NewsOutlet, rng: np.random.Generator) -> Floats:
    seen = outlet.boldness * logit(p, 0.02) + outlet.error * rng.standard_normal(len(p))
    return np.clip(1 / (1 + np.exp(-seen)), 0.01, 0.99)


def _idle(event: SimulatedEvent, rng: np.random.Generator) -> tuple[str, str]:
    number = int(rng.integers(3, 90))
    title = one_of(IDLE_TITLES, rng).format(topic=event.words.topic, number=number)
    parts = [one_of(IDLE, rng).format(topic=event.words.topic, number=number + step) for step in range(3)]
    return _capital(title), " ".join(map(_capital, dict.fromkeys(parts)))


def _answer(event: SimulatedEvent) -> NewsItem:
    """The report on how it came out, within the hour."""
    known = float(event.life.known)
    won = [label for label, outcome in zip(event.labels, event.outcomes, strict=True) if outcome]
    told = f"It is decided about {event.words.topic}: {', '.join(won) if won else 'no'}."
    return NewsItem(
        event=event.ticker,
        outlet=OUTLETS[0].name,
        title=_capital(f"{event.words.topic}: {CLOSING}"),
        text=_capital(told),
        observed=moment(known),
        published=moment(known + 20 * 60),
        telling=True,
    )


def _figure(value: float, move: float) -> str:
    digits = max(0, 2 - int(np.floor(np.log10(move))))
    return f"{value:.{digits}f}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
