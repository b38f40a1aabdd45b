"""News of the simulated world: what observers made of the truth at a moment, more or less well, and much that is idle.

A report tells what was seen at `observed`, and appears at `published`, sometimes days later. It never knows more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from foretell.practice.exchange.chance import HOUR, logit
from foretell.practice.exchange.events import SimulatedEvent, moment
from foretell.practice.exchange.subjects import one_of

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
    """Every report on an event, and within the hour the one on how it came out."""
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
        observed=moment(known),
        published=moment(known + 20 * 60),
        telling=True,
    )


def _report(event: SimulatedEvent, place: int) -> NewsItem:
    observed = float(event.hours[place])
    rng = event.chance.at(observed, event.number, "words", place)
    outlet = OUTLETS[int(rng.integers(len(OUTLETS)))]
    telling = place < AT_OPENING or bool(rng.random() >= IDLE_SHARE)
    late = place >= AT_OPENING and telling and bool(rng.random() < LATE_SHARE)
    published = observed + (HOUR * float(rng.integers(20, 90)) if late else 60.0 * float(rng.integers(5, 55)))
    if telling:
        when = moment(observed)
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
        observed=moment(observed),
        published=moment(published),
        telling=telling,
    )


def _finding(event: SimulatedEvent, place: int, outlet: NewsOutlet, rng: np.random.Generator) -> tuple[str, str]:
    """The telling sentence of a report, and its figure in short."""
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
