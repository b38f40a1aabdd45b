"""What is asked: targets, how many of them can come true together, the range of a number. It holds no answer.

Answers live in `resolution`, which no forecaster may import.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import expm1, isfinite, log
from typing import Any, Literal, get_args

from foretell.questions.as_of import AsOf, AsOfMode, UtcDatetime, instant

# How many targets of a question can come true together, and what that asks of their probabilities.


Exclusivity = Literal["exactly one", "at most one", "independent"]
"""Of the targets exactly one comes true; one or none does; or each by itself, so that none, some or all may."""
NONE_OF_THEM = "none of them"
"""What is shown as one case more where at most one target comes true."""
EXCLUSIVITIES: tuple[Exclusivity, ...] = get_args(Exclusivity)


def read_exclusivity(given: Any) -> Exclusivity:
    """From text, also with hyphens, or from the yes or no of older files; anything else is a `ValueError`.

    >>> read_exclusivity("at-most-one"), read_exclusivity(True), read_exclusivity(False)
    ('at most one', 'exactly one', 'independent')
    """
    if isinstance(given, bool):
        return "exactly one" if given else "independent"
    text = " ".join(given.lower().replace("-", " ").replace("_", " ").split()) if isinstance(given, str) else None
    if text not in EXCLUSIVITIES:
        raise ValueError(f"{given!r} is not one of {', '.join(EXCLUSIVITIES)}")
    return text


def with_some_left_out(exclusivity: Exclusivity) -> Exclusivity:
    """What holds of some of the targets: where exactly one of all comes true, it may be one that was left out.

    >>> with_some_left_out("exactly one"), with_some_left_out("independent")
    ('at most one', 'independent')
    """
    return "at most one" if exclusivity == "exactly one" else exclusivity


def even_chance(exclusivity: Exclusivity, targets: int) -> float:
    """The probability of each of so many targets where nothing tells them apart; "none of them" is one case more.

    >>> even_chance("exactly one", 4), even_chance("at most one", 4), even_chance("independent", 4)
    (0.25, 0.2, 0.5)
    """
    cases = {"exactly one": targets, "at most one": targets + 1, "independent": 2}
    return 1 / cases[exclusivity]


def probability_of_none(p: Mapping[str, float], exclusivity: Exclusivity) -> float | None:
    """The probability that none of all targets comes true, where their own tell it: of at most one, what is left.

    >>> probability_of_none({"a": 0.5, "b": 0.25}, "at most one")
    0.25
    """
    return max(0.0, 1.0 - sum(p.values())) if exclusivity == "at most one" else None


def scaled(p: Mapping[str, float], exclusivity: Exclusivity) -> dict[str, float]:
    """The probabilities of all targets divided by their sum: always of exactly one, above one of at most one.

    >>> scaled({"a": 0.4, "b": 0.4}, "exactly one"), scaled({"a": 0.4, "b": 0.4}, "at most one")
    ({'a': 0.5, 'b': 0.5}, {'a': 0.4, 'b': 0.4})
    >>> scaled({"a": 1, "b": 1}, "at most one"), scaled({"a": 1, "b": 1}, "independent")
    ({'a': 0.5, 'b': 0.5}, {'a': 1, 'b': 1})
    """
    total = sum(p.values())
    if len(p) < 2 or exclusivity == "independent" or (exclusivity == "at most one" and total <= 1):
        return dict(p)
    if total <= 0:
        return dict.fromkeys(p, even_chance(exclusivity, len(p)))
    return {target: value / total for target, value in p.items()}


# What a question about a number or a date asks for: a range, its ends, and how finely it is cut.


DEFAULT_CELLS = 200
FIRST_SECOND, LAST_SECOND = -6.2e10, 2.5e11
"""The years 5 and 9892: beyond them no date can be written."""
Edges = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class NumericRange:
    """A range in equal steps, or in steps that grow away from a zero point; each end open or closed.

    >>> NumericRange(minimum=0, maximum=10, outcomes=5).edges()
    (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)
    >>> [round(edge, 6) for edge in NumericRange(minimum=1, maximum=100, zero_point=0, outcomes=2).edges()]
    [1.0, 10.0, 100.0]
    """

    minimum: float
    maximum: float
    zero_point: float | None = None
    """Where a logarithmic range would reach zero; None for an ordinary one."""
    open_lower: bool = False
    """Whether the quantity may lie below the minimum."""
    open_upper: bool = False
    outcomes: int = DEFAULT_CELLS
    """Cells within the range: a forecast has one number more than that."""
    unit: str = ""
    dates: bool = False
    """Whether the values are moments, counted in Unix seconds."""
    whole: bool = False
    """Whether the quantity can only be one of so many values, each in the middle of a cell."""

    def __post_init__(self) -> None:
        if not self.minimum < self.maximum or not isfinite(self.maximum - self.minimum) or self.outcomes < 1:
            raise ValueError(f"a range from {self.minimum} to {self.maximum} in {self.outcomes} cells is none")
        if self.zero_point is not None and self.minimum <= self.zero_point <= self.maximum:
            raise ValueError(f"the zero point {self.zero_point} lies within the range")
        if self.dates and not FIRST_SECOND <= self.minimum < self.maximum <= LAST_SECOND:
            raise ValueError(f"a range from {self.minimum} to {self.maximum} seconds leaves the calendar")

    def edges(self) -> Edges:
        """The values at which a forecast states its cumulative probability, lowest first."""
        shares = [cell / self.outcomes for cell in range(self.outcomes)]
        if self.zero_point is not None:
            ratio = (self.maximum - self.zero_point) / (self.minimum - self.zero_point)
            shares = [expm1(share * log(ratio)) / (ratio - 1) for share in shares]
        return *(self.minimum + (self.maximum - self.minimum) * share for share in shares), float(self.maximum)

    @property
    def values(self) -> Edges:
        """The values that a quantity in whole steps can have; none for any other.

        >>> NumericRange(minimum=-0.5, maximum=2.5, outcomes=3, whole=True).values
        (0.0, 1.0, 2.0)
        """
        edges = self.edges()
        return tuple((low + high) / 2 for low, high in pairwise(edges)) if self.whole else ()

    def write(self, value: float) -> str:
        """A value for people: a number with its unit, or a day.

        >>> NumericRange(minimum=0, maximum=90, unit="seats").write(12.5)
        '12.5 seats'
        >>> NumericRange(minimum=0, maximum=2e9, dates=True).write(86400)
        '1970-01-02'
        """
        if self.dates:
            return datetime.fromtimestamp(value, UTC).date().isoformat()
        return f"{value:.10g} {self.unit}".rstrip()

    def __str__(self) -> str:
        """The range in words.

        >>> str(NumericRange(minimum=0, maximum=90, open_upper=True, unit="seats"))
        'The range asked about is 0 to 90 seats; it may end up above, but not below.'
        """
        ends = {
            (True, True): "it may end up above or below",
            (True, False): "it may end up below, but not above",
            (False, True): "it may end up above, but not below",
            (False, False): "it cannot end up outside",
        }
        values = self.values or (self.minimum, self.maximum)
        low = self.write(values[0]).removesuffix(f" {self.unit}") if self.unit else self.write(values[0])
        steps = f", in {len(values)} steps" if self.whole else ""
        outside = ends[self.open_lower, self.open_upper]
        if self.dates:
            outside = outside.replace("above", "later").replace("below", "earlier")
        return f"The range asked about is {low} to {self.write(values[-1])}{steps}; {outside}."


# What a market showed at one moment.


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Quotes of one binary market at one moment, in dollars per one-dollar contract.

    >>> Snapshot(at=instant("2025-06-26"), yes_ask=0.62, no_ask=0.42).price
    0.596...
    """

    at: UtcDatetime
    last_price: float | None = None
    yes_bid: float | None = None
    yes_ask: float | None = None
    no_ask: float | None = None
    volume: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", instant(self.at))
        for name in ("last_price", "yes_bid", "yes_ask", "no_ask"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name} = {value} is outside [0, 1]")

    @property
    def price(self) -> float | None:
        """The implied probability of yes: the two asks normalised to one, else the last trade."""
        if self.yes_ask is not None and self.no_ask is not None and self.yes_ask + self.no_ask > 0:
            return self.yes_ask / (self.yes_ask + self.no_ask)
        return self.last_price


QuestionKind = Literal["market", "dataset"]


@dataclass(frozen=True, kw_only=True)
class Target:
    """One binary thing that can come true: an outcome at a date."""

    id: str
    label: str = ""
    resolves_at: UtcDatetime | None = None
    snapshot: Snapshot | None = None

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("a target needs an id")
        if self.resolves_at is not None:
            object.__setattr__(self, "resolves_at", instant(self.resolves_at))


@dataclass(frozen=True, kw_only=True)
class SeriesRef:
    """The time series that decides a question, and the comparison that makes it binary."""

    provider: str
    id: str
    comparison: Literal["above", "below"] = "above"
    threshold: float | None = None
    """None: the last value on or before the question's due date."""


@dataclass(frozen=True, kw_only=True)
class LastValue:
    """The number a data-set question starts from, as it was published before the question was asked."""

    value: float
    at: UtcDatetime
    meaning: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", instant(self.at))
        if not isfinite(self.value):
            raise ValueError(f"the last value is {self.value}")


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about one or more binary targets.

    One shape covers a market question (one target), a data-set question (one outcome at several dates),
    an arena event (several markets, whether or not they exclude each other) and a multiple-choice question.

    >>> q = Question(id="fred/DAAA", source="fred", text="Will the yield rise?", due="2025-10-26",
    ...              targets=(Target(id="2025-11-02", resolves_at="2025-11-02"),))
    >>> q.as_of.at.date().isoformat(), q.horizon_days(q.targets[0])
    ('2025-10-26', 7)
    """

    id: str
    """Unique within a set together with `due`: the same market may be asked in several rounds."""
    source: str
    text: str
    due: UtcDatetime
    """The moment as of which the question is asked; forecasts may use what was known by the end of that day."""
    targets: tuple[Target, ...] = (Target(id="yes"),)
    """What is forecast; a question that may be answered by yes or no needs to name none."""
    kind: QuestionKind = "market"
    subtype: str = ""
    """The question's template within its source; base rates are kept per source and subtype."""
    category: str = ""
    criteria: str = ""
    background: str = ""
    exclusivity: Exclusivity = "independent"
    """How many targets can come true together. One target alone is always independent."""
    opens_at: UtcDatetime | None = None
    closes_at: UtcDatetime | None = None
    cluster: str = ""
    """Questions whose outcomes move together share a cluster; empty means the id."""
    url: str = ""
    series: SeriesRef | None = None
    last_value: LastValue | None = None
    """What the quantity in question stood at when last seen; never later than `due`."""
    range: NumericRange | None = None
    """What the number or the date in question may be; its targets are then thresholds such as `>3.5`."""

    def __post_init__(self) -> None:
        for name in ("due", "opens_at", "closes_at"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, instant(value))
        object.__setattr__(self, "targets", tuple(self.targets))
        if not self.id:
            raise ValueError("a question needs an id")
        if not self.targets:
            raise ValueError(f"question {self.id} has no target")
        repeated = [target for target, n in Counter(t.id for t in self.targets).items() if n > 1]
        if repeated:
            raise ValueError(f"question {self.id} names target {repeated[0]!r} twice")
        if self.last_value is not None and self.last_value.at.date() > self.due.date():
            raise ValueError(f"question {self.id} carries a value of {self.last_value.at.date()}, after it was asked")
        if self.exclusivity not in EXCLUSIVITIES:
            raise ValueError(f"exclusivity {self.exclusivity!r} is not one of {', '.join(EXCLUSIVITIES)}")
        if len(self.targets) == 1:
            object.__setattr__(self, "exclusivity", "independent")
        if not self.cluster:
            object.__setattr__(self, "cluster", self.id)

    @property
    def as_of(self) -> AsOf:
        """The cutoff of a backtest of this question: the end of its due day, or the very moment if it has one."""
        return self.as_of_in("backtest")

    def as_of_in(self, mode: AsOfMode) -> AsOf:
        """The question's cutoff in the given mode."""
        if self.due == instant(self.due.date()):
            return AsOf.day(self.due.date(), mode)
        return AsOf(at=self.due, mode=mode)

    def horizon_days(self, target: Target) -> int | None:
        """Calendar days from the due date to the target's resolution, if that is known beforehand."""
        resolves = target.resolves_at or self.closes_at
        return None if resolves is None else (resolves.date() - self.due.date()).days
