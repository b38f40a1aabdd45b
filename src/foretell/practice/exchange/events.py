"""Events of the simulated world, from announcement to settlement, and how they are drawn at random."""

import csv
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from hashlib import blake2b
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.probability_functions import normal_quantile
from foretell.metrics.transforms import normal_cdf
from foretell.questions.as_of import UtcDatetime, instant

# Settings of a simulated world.

START = instant("2027-03-01")
"""Default start of a simulation, a Monday."""


@frozen
class SimulationSettings:
    """The settings of a simulated world; the same settings produce the same world."""

    seed: int = 0
    start: UtcDatetime = START
    days: int = 30
    """Days after the start during which new events open."""
    warm_up: int = 12
    """Days before the start during which events already open, so that the first listing is not empty."""
    events_per_day: float = 20.0
    longest: float = 12.0
    """Days that the longest events stay open."""
    void: float = 0.02
    """Share of events that are cancelled."""
    early: float = 0.08
    """Share of events whose answer is known before the announced close."""
    thin: float = 0.12
    """Share of events with hardly any trading."""
    turn: UtcDatetime | None = None
    """From this time on, random numbers come from the seed `other`: the same past with another future."""
    other: int = 0

    def __post_init__(self) -> None:
        for name in ("start", "turn"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, instant(getattr(self, name)))
        if self.days < 1 or self.warm_up < 0 or self.events_per_day <= 0 or self.longest < 1:
            raise ValueError(
                "a world needs at least one day, a positive number of events per day, and events of at least one day"
            )
        if not all(0 <= share <= 1 for share in (self.void, self.early, self.thin)):
            raise ValueError("void, early and thin are shares from 0 to 1")

    @property
    def begins(self) -> UtcDatetime:
        """When the first events are announced."""
        return self.start - timedelta(days=self.warm_up)

    @property
    def ends(self) -> UtcDatetime:
        """When the last events are announced."""
        return self.start + timedelta(days=self.days)


Floats = npt.NDArray[np.float64]
HOUR = 3600


@frozen
class SeededChance:
    """Random draws by name and time. A draw for a time up to the turn never depends on what comes after it."""

    seed: int
    turn: float = math.inf
    """When the other seed takes over, in Unix seconds."""
    other: int = 0

    @classmethod
    def of(cls, settings: SimulationSettings) -> "SeededChance":
        """Create the generator for a world's settings."""
        turn = math.inf if settings.turn is None else settings.turn.timestamp()
        return cls(seed=settings.seed, turn=turn, other=settings.other)

    def at(self, time: float | datetime, *names: str | int) -> np.random.Generator:
        """Return a random generator for what is decided at a time."""
        second = time.timestamp() if isinstance(time, datetime) else time
        return self._named(second > self.turn, *names)

    def draw_time(self, draw: Callable[[np.random.Generator], float | None], *names: str | int) -> float | None:
        """Draw a future time in Unix seconds, or None for never.

        A turn changes the time only if both the old and the new time are after the turn.

        >>> SeededChance(seed=1, turn=50.0, other=2).draw_time(lambda rng: 40.0, "end")
        40.0
        >>> SeededChance(seed=1, turn=50.0, other=2).draw_time(lambda rng: 40.0 if rng.random() < 0.5 else 60.0, "end")
        60.0
        """
        past = draw(self._named(False, *names))
        if math.isinf(self.turn) or (past is not None and past <= self.turn):
            return past
        future = draw(self._named(True, *names))
        return future if future is not None and future > self.turn else None

    def hourly(self, hours: Floats, *names: str | int, normal: bool = True) -> Floats:
        """Draw one number per hour, given as ascending Unix seconds; standard normal, or else uniform from 0 to 1.

        >>> hours = 3600.0 * np.arange(4)
        >>> one, other = SeededChance(seed=1), SeededChance(seed=1, turn=3600.0, other=5)
        >>> (one.hourly(hours, "x") == other.hourly(hours, "x")).tolist()
        [True, True, False, False]
        """

        def draw(turned: bool) -> Floats:
            rng = self._named(turned, *names)
            return rng.standard_normal(len(hours)) if normal else rng.random(len(hours))

        after = hours > self.turn
        return np.where(after, draw(True), draw(False)) if after.any() else draw(False)

    def _named(self, turned: bool, *names: str | int) -> np.random.Generator:
        world = f"{self.seed} turned {self.other}" if turned else str(self.seed)
        digest = blake2b("\0".join([world, *map(str, names)]).encode(), digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest, "big"))


# The hidden truth: the ideal probabilities given the information so far, which end at 0 or 1.
#
# An event is decided by a Gaussian walk W in *information time* τ, which runs from 0 to 1. At τ the past of the walk is
# known and the rest is not. The probability of every outcome is therefore exact, is a martingale, and is the forecast
# of an ideal forecaster. At τ = 1 it is 0 or 1.

NODES = 60
"""Number of quadrature nodes; the error is below 1e-6 for races of up to a dozen."""
SURE = 1e-12
"""Remaining information below which everything counts as decided."""


def above(walk: Floats, left: Floats, thresholds: Floats) -> Floats:
    """Return P(end > k) for every threshold k: Φ((w − k) / √left), one row per threshold.

    >>> above(np.array([0.0, 0.5]), np.array([1.0, 0.0]), np.array([0.0, 1.0])).round(3).tolist()
    [[0.5, 1.0], [0.159, 0.0]]
    """
    distance = walk[None, :] - thresholds[:, None]
    spread = np.sqrt(np.maximum(left, SURE))[None, :]
    return np.where(left[None, :] > SURE, normal_cdf(distance / spread), (distance > 0).astype(np.float64))


def first(walks: Floats, left: Floats) -> Floats:
    """Return P(i ends first) for independent walks: ∫ φ(x) ∏ Φ(x + (w_i − w_j)/√left) dx, one row per walk.

    >>> first(np.array([[0.0], [0.0], [0.0]]), np.array([1.0])).round(4).ravel().tolist()
    [0.3333, 0.3333, 0.3333]
    """
    nodes, weights = _normal_nodes()
    spread = np.sqrt(np.maximum(left, SURE))
    gaps = (walks[:, None, :] - walks[None, :, :]) / spread
    beats = normal_cdf(nodes[:, None, None, None] + gaps)
    own = np.arange(len(walks))
    beats[:, own, own, :] = 1.0
    p = np.einsum("k,kit->it", weights, beats.prod(axis=2))
    decided = (walks == walks.max(axis=0)).astype(np.float64)
    return np.where(left > SURE, p / p.sum(axis=0), decided)


@cache
def _normal_nodes() -> tuple[Floats, Floats]:
    """Return the nodes and weights of the Gauss quadrature for a standard normal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return np.asarray(nodes, dtype=np.float64), np.asarray(weights / weights.sum(), dtype=np.float64)


def logit(p: Floats, edge: float = 0.004) -> Floats:
    """Return ln(p / (1 − p)), with p clipped away from 0 and 1."""
    inside = np.clip(p, edge, 1 - edge)
    return np.log(inside / (1 - inside))


SubjectKind = Literal["yes-no", "race", "ladder", "weekly"]


@frozen
class EventSubject:
    """A type of event. Texts may contain {place}, {person}, {firm}, {team}, {other_team}, {thing} and {day}."""

    kind: SubjectKind
    category: str
    tag: str
    """Short name used in tickers."""
    title: str
    topic: str
    """What the news is about, as a noun phrase."""
    claim: str
    """The statement that comes true or not in a yes-no event."""
    sort: str
    """What kind of name competes in a race: person, firm, team or thing."""
    level: float
    """The typical initial value of a quantity."""
    move: float
    """How far a quantity typically moves until the end, as a share of the level."""
    unit: str


@cache
def subjects(kind: SubjectKind) -> tuple[EventSubject, ...]:
    """Return the subjects of one kind, in the order of the table."""
    rows = csv.DictReader(
        files("foretell.practice.exchange").joinpath("subjects.csv").read_text(encoding="utf-8").splitlines()
    )
    numbers = ("level", "move")
    return tuple(
        EventSubject(**{name: float(value) if name in numbers else value for name, value in row.items()})  # pyright: ignore[reportArgumentType]
        for row in rows
        if row["kind"] == kind
    )


def _words(text: str) -> list[str]:
    return text.split()


ONSETS = _words("B Br C D Dr F Fl G Gr H J K Kr L M N P Pr Qu R S Sk St T Tr V W Z Th Y")
VOWELS = _words("a e i o u ae ei io ou a e o")
CODAS = _words("ld lm n nd nsk r rk rm rn rth s sk st th v x l m")
BETWEEN = _words("l m n r v d")
PLACES = _words("berg dal fell ford gard holm mere mouth stad vik wick haven")
FIRST = _words("Ada Bo Cleo Dorn Edda Finn Gwen Hal Ilse Joss Kaja Lev Mina Nils Orla Per Quin Rhea Sven Tova Ulf Vera")
TEAMS = _words("Herons Foxes Rovers Comets Otters Anvils Kites Bisons Lynxes Ravens")
FIRMS = _words("Works Labs Motors Foods Lines Systems Textiles Energy")


def one_of(choices: Sequence[str], rng: np.random.Generator) -> str:
    """Return a random choice."""
    return choices[int(rng.integers(len(choices)))]


def made_up_name(sort: str, rng: np.random.Generator) -> str:
    """Make up a name of a place, person, firm, team or thing from syllables."""
    first = f"{one_of(FIRST, rng)} " if sort == "person" else ""
    stem = "".join(one_of(part, rng) for part in (ONSETS, VOWELS, BETWEEN, VOWELS, CODAS))
    match sort:
        case "place":
            return stem + one_of(PLACES, rng)
        case "firm":
            return f"{stem} {one_of(FIRMS, rng)}"
        case "team":
            return f"{stem} {one_of(TEAMS, rng)}"
        case _:
            return first + stem


def made_up_names(rng: np.random.Generator) -> dict[str, str]:
    """Make up one name of every sort, to fill in an event's texts."""
    return {
        name: made_up_name(name.removeprefix("other_"), rng)
        for name in ("place", "person", "firm", "team", "other_team", "thing")
    }


DAY = 24 * HOUR
KINDS: tuple[tuple[SubjectKind, float], ...] = (("yes-no", 0.55), ("race", 0.2), ("ladder", 0.25))
BUSY, QUIET = 12_000.0, 90.0
"""Contracts traded in a typical market, in an ordinary event and in one with hardly any trading."""
UNLIKELY = (0.9, 2.4)
"""Parameters of the beta distribution of initial probabilities: as on real markets, about one thing in four happens."""
SPAN = (-0.7, 1.9)
"""Range of a ladder's thresholds around its initial level, in typical moves."""
RUNGS = (3, 6)
RUNNERS = (3, 6)
NamedSubject = tuple[EventSubject, dict[str, str]]
"""The subject of an event, with the names that appear in its texts."""


@frozen
class EventLife:
    """The times in an event's life, as Unix seconds on whole hours."""

    announced: int
    opens: int
    closes: int
    """The announced close."""
    known: int
    """When the answer is known: after the close, or before it if it became known early."""
    determined: int
    finalized: int
    void: bool = False

    @property
    def early(self) -> bool:
        """Whether the answer was known before the announced close."""
        return self.known < self.closes

    @property
    def ends(self) -> int:
        """When trading actually ended."""
        return min(self.known, self.closes)


@frozen
class EventWording:
    """The texts that describe an event."""

    title: str
    topic: str
    claim: str
    unit: str
    category: str
    period: str = ""


@frozen
class SimulatedEvent:
    """One event with its markets. Only the world may read its walk."""

    number: int
    kind: SubjectKind
    ticker: str
    series: str
    words: EventWording
    labels: tuple[str, ...]
    tickers: tuple[str, ...]
    rules: tuple[str, ...]
    life: EventLife
    starts: tuple[float, ...]
    """Where the walks start: one for each runner of a race, otherwise a single one."""
    thresholds: tuple[float, ...]
    """The thresholds that a single walk must end above, one per market; empty for a race."""
    level: float = 0.0
    move: float = 1.0
    """Scale of the walk: a quantity is level + move · walk."""
    before_close: float = 0.9
    """Share of all information that is revealed before the announced close; the rest comes with the answer."""
    traded: float = 10_000.0
    """Contracts traded in a typical market until the close."""
    thin: bool = False
    chance: SeededChance

    @property
    def exclusive(self) -> bool:
        """Whether exactly one market comes true."""
        return self.kind == "race"

    @cached_property
    def hours(self) -> Floats:
        """The hours from the opening to the answer, as Unix seconds."""
        return np.arange(self.life.opens, self.life.known + 1, HOUR, dtype=np.float64)

    @cached_property
    def informed(self) -> Floats:
        """Information time at every hour, from 0 to 1."""
        share = (self.hours - self.life.opens) / max(self.life.closes - self.life.opens, 1)
        return np.where(self.hours >= self.life.known, 1.0, self.before_close * np.minimum(share, 1.0))

    @cached_property
    def walks(self) -> Floats:
        """The walks that decide the event, at every hour: one row per walk."""
        steps = np.sqrt(np.diff(self.informed, prepend=0.0))
        drawn = [self.chance.hourly(self.hours, self.number, "walk", row) for row in range(len(self.starts))]
        return np.array(self.starts)[:, None] + np.cumsum(steps * np.array(drawn), axis=1)

    @cached_property
    def p(self) -> Floats:
        """The ideal forecaster's probability at every hour: one row per market. The last column is the answer."""
        left = 1.0 - self.informed
        if self.kind == "race":
            return first(self.walks, left)
        return above(self.walks[0], left, np.array(self.thresholds))

    @cached_property
    def quantity(self) -> Floats:
        """The quantity that a ladder is about, at every hour."""
        return self.level + self.move * self.walks[0]

    @property
    def outcomes(self) -> tuple[int, ...]:
        """The outcomes of its markets, if the event is not cancelled."""
        return tuple(int(p) for p in self.p[:, -1])

    def place(self, second: float) -> int:
        """Return the index of the hour at or before a time, at least 0."""
        return int(np.clip((second - self.life.opens) // HOUR, 0, len(self.hours) - 1))


def utc_time(second: float) -> datetime:
    """Convert Unix seconds to a datetime in UTC."""
    return datetime.fromtimestamp(second, UTC)


@frozen
class EventMaker:
    """Creates events from settings and random draws."""

    settings: SimulationSettings
    chance: SeededChance

    def event(self, number: int, announced: int, rng: np.random.Generator) -> SimulatedEvent:
        """Create a new event that is announced at an hour."""
        kind = rng.choice([kind for kind, _ in KINDS], p=[share for _, share in KINDS])
        choices = subjects(kind)
        subject = choices[int(rng.integers(len(choices)))]
        opens = announced + HOUR * int(rng.integers(1, 7))
        length = math.exp(rng.uniform(0.0, math.log(self.settings.longest)))
        closes = opens + HOUR * max(12, round(24 * length))
        life = self._life(number, announced, opens, closes)
        names = made_up_names(rng)
        named = [name for name in names if f"{{{name}}}" in subject.topic]
        root = names[min(named, key=lambda name: subject.topic.index(f"{{{name}}}"))] if named else "X"
        return self._event(number, (subject, names), f"KX{_letters(root)}{subject.tag}{number}", life, rng)

    def week(self, number: int, about: NamedSubject, opens: int, level: float) -> SimulatedEvent:
        """Create this week's event of a weekly series, which continues from the given level."""
        closes = opens + 6 * DAY + 12 * HOUR
        known = closes + 2 * HOUR
        life = EventLife(
            announced=opens,
            opens=opens,
            closes=closes,
            known=known,
            determined=known + HOUR,
            finalized=known + 3 * HOUR,
        )
        series = f"KX{_letters(about[1]['place'])}{about[0].tag}"
        return self._event(number, about, series, life, self.chance.at(opens, number, "week"), level)

    def _life(self, number: int, announced: int, opens: int, closes: int) -> EventLife:
        def early(rng: np.random.Generator) -> float | None:
            happens, share = rng.random() < self.settings.early, rng.uniform(0.25, 0.85)
            return opens + HOUR * max(6, round(share * (closes - opens) / HOUR)) if happens else None

        def later(after: int, hours: int, what: str) -> int:
            drawn = self.chance.draw_time(lambda rng: after + HOUR * int(rng.integers(1, hours)), number, what)
            return round(max(after, self.chance.turn) // HOUR * HOUR + HOUR if drawn is None else drawn)

        soon = self.chance.draw_time(early, number, "early")
        known = later(closes, 12, "known") if soon is None else round(soon)
        determined = later(known, 6, "determined")
        return EventLife(
            announced=announced,
            opens=opens,
            closes=closes,
            known=known,
            determined=determined,
            finalized=later(determined, 30, "finalized"),
            void=bool(self.chance.at(determined, number, "void").random() < self.settings.void),
        )

    def _event(
        self,
        number: int,
        about: NamedSubject,
        series: str,
        life: EventLife,
        rng: np.random.Generator,
        level: float = 0.0,
    ) -> SimulatedEvent:
        (subject, names), closes = about, utc_time(life.closes)
        day = f"{closes.day} {closes:%B %Y}"
        words = EventWording(
            title=subject.title.format(**names, day=day),
            topic=subject.topic.format(**names, day=day),
            claim=subject.claim.format(**names, day=day),
            unit=subject.unit,
            category=subject.category,
            period=day if subject.kind in ("race", "weekly") else "",
        )
        ticker = f"{series}-{closes:%y%b%d}".upper()
        thin = subject.kind != "weekly" and bool(rng.random() < self.settings.thin)
        if subject.kind == "race":
            markets = _race(subject, words, rng)
        elif subject.kind == "yes-no":
            markets = _yes_no(words, day, rng)
        else:
            markets = _ladder(subject, words, level, rng)
        return SimulatedEvent(
            number=number,
            kind=subject.kind,
            ticker=ticker,
            series=series,
            words=words,
            tickers=tuple(f"{ticker}-{place}" for place in range(1, len(markets["labels"]) + 1)),
            life=life,
            before_close=float(rng.choice([0.9, 0.75, 0.45], p=[0.5, 0.3, 0.2])),
            traded=(QUIET if thin else BUSY) * math.exp(0.8 * rng.standard_normal()),
            thin=thin,
            chance=self.chance,
            **markets,
        )


# Labels and rules of the markets of an event, and the walk behind them.


def _yes_no(words: EventWording, day: str, rng: np.random.Generator) -> dict[str, Any]:
    return {
        "labels": (words.claim[:1].upper() + words.claim[1:],),
        "rules": (f"The market resolves to Yes if {words.claim} by {day}.",),
        "starts": (normal_quantile(rng.beta(*UNLIKELY)),),
        "thresholds": (0.0,),
    }


def _race(subject: EventSubject, words: EventWording, rng: np.random.Generator) -> dict[str, Any]:
    count = int(rng.integers(*RUNNERS))
    labels = tuple(dict.fromkeys(made_up_name(subject.sort, rng) for _ in range(count)))
    return {
        "labels": labels,
        "rules": tuple(f"The market resolves to Yes if it is {label}: {words.topic}." for label in labels),
        "starts": tuple(float(start) for start in 0.9 * rng.standard_normal(len(labels))),
        "thresholds": (),
    }


def _ladder(subject: EventSubject, words: EventWording, level: float, rng: np.random.Generator) -> dict[str, Any]:
    level = level or subject.level * math.exp(0.15 * rng.standard_normal())
    move = subject.move * level
    digits = max(0, 1 - math.floor(math.log10(move)))
    count = int(rng.integers(*RUNGS))
    ends = [round(level + move * z, digits) for z in np.linspace(*SPAN, count) + rng.uniform(-0.25, 0.25)]
    labels = tuple(f"Above {end:.{digits}f} {subject.unit}" for end in ends)
    return {
        "labels": labels,
        "rules": tuple(f"The market resolves to Yes if {words.topic}: {label.lower()}." for label in labels),
        "starts": (0.0,),
        "thresholds": tuple((end - level) / move for end in ends),
        "level": level,
        "move": move,
    }


def _letters(name: str) -> str:
    return "".join(letter for letter in name.upper() if letter.isascii() and letter.isalpha())[:8]
