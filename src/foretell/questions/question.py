"""What is asked. A question holds no answer: those live in `resolution`, which no forecaster may import."""

from collections import Counter
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from foretell.questions.as_of import AsOf, AsOfMode, UtcDatetime, instant
from foretell.questions.exclusivity import EXCLUSIVITIES, Exclusivity
from foretell.questions.numeric_range import NumericRange

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
