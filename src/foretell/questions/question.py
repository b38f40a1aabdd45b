"""Questions: their targets, how many of them can come true together, and the range of a number. They have no answers.

Outcomes are in `resolution`, which no forecaster may import.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time
from functools import cached_property
from itertools import pairwise
from math import expm1, inf, isfinite, log
from typing import TYPE_CHECKING, Any, Literal, get_args

from foretell.frozen import frozen
from foretell.questions.as_of import AsOf, AsOfMode, Moment, UtcDatetime, end_of_day, read_moments
from foretell.questions.errors import WrongValue
from foretell.questions.field_checks import check_fields, probability

# How many targets of a question can come true together, and what that means for their probabilities.

Exclusivity = Literal["exactly one", "at most one", "independent"]
"""How many targets come true: exactly one, one or none, or any number."""
NONE_OF_THEM = "none of them"
"""Label of the extra case if at most one target comes true."""
EXCLUSIVITIES: tuple[Exclusivity, ...] = get_args(Exclusivity)


def read_exclusivity(value: Any) -> Exclusivity:
    """Read text, also with hyphens, or the boolean of older files. Raises `ValueError` for anything else.

    >>> read_exclusivity("at-most-one"), read_exclusivity(True), read_exclusivity(False)
    ('at most one', 'exactly one', 'independent')
    """
    if isinstance(value, bool):
        return "exactly one" if value else "independent"
    text = " ".join(value.lower().replace("-", " ").replace("_", " ").split()) if isinstance(value, str) else None
    if text not in EXCLUSIVITIES:
        raise ValueError(f"{value!r} is not one of {', '.join(EXCLUSIVITIES)}")
    return text


def with_some_left_out(exclusivity: Exclusivity) -> Exclusivity:
    """Return the exclusivity of a subset of the targets: "exactly one" of all becomes "at most one".

    >>> with_some_left_out("exactly one"), with_some_left_out("independent")
    ('at most one', 'independent')
    """
    return "at most one" if exclusivity == "exactly one" else exclusivity


def even_chance(exclusivity: Exclusivity, targets: int) -> float:
    """Return the probability of each target if all are equally likely. "None of them" is an extra case.

    >>> even_chance("exactly one", 4), even_chance("at most one", 4), even_chance("independent", 4)
    (0.25, 0.2, 0.5)
    """
    cases = {"exactly one": targets, "at most one": targets + 1, "independent": 2}
    return 1 / cases[exclusivity]


def probability_of_none(p: Mapping[str, float], exclusivity: Exclusivity) -> float | None:
    """Return the probability that no target comes true if at most one can; otherwise None.

    >>> probability_of_none({"a": 0.5, "b": 0.25}, "at most one")
    0.25
    """
    return max(0.0, 1.0 - sum(p.values())) if exclusivity == "at most one" else None


def scaled(p: Mapping[str, float], exclusivity: Exclusivity) -> dict[str, float]:
    """Divide the probabilities by their sum: always for "exactly one", and if it exceeds 1 for "at most one".

    >>> scaled({"a": 0.5, "b": 0.125}, "exactly one"), scaled({"a": 0.4, "b": 0.4}, "at most one")
    ({'a': 0.8, 'b': 0.2}, {'a': 0.4, 'b': 0.4})
    >>> scaled({"a": 1, "b": 1}, "at most one"), scaled({"a": 1, "b": 1}, "independent")
    ({'a': 0.5, 'b': 0.5}, {'a': 1, 'b': 1})
    """
    total = sum(p.values())
    if len(p) < 2 or exclusivity == "independent" or (exclusivity == "at most one" and total <= 1):
        return dict(p)
    if total <= 0:
        return dict.fromkeys(p, even_chance(exclusivity, len(p)))
    return {target: value / total for target, value in p.items()}


# The range of a question about a number or a date.

DEFAULT_CELLS = 200
FIRST_SECOND, LAST_SECOND = -6.2e10, 2.5e11
"""The years 5 and 9892, beyond which dates cannot be formatted."""
Edges = tuple[float, ...]


@frozen
class NumericRange:
    """A range in equal or logarithmic steps, with open or closed ends.

    >>> NumericRange(minimum=0, maximum=10, outcomes=5).edges()
    (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)
    >>> [round(edge, 6) for edge in NumericRange(minimum=1, maximum=100, zero_point=0, outcomes=2).edges()]
    [1.0, 10.0, 100.0]
    """

    minimum: float
    maximum: float
    zero_point: float | None = None
    """Where a logarithmic range would reach zero; None for a linear range."""
    open_lower: bool = False
    """Whether the quantity may lie below the minimum."""
    open_upper: bool = False
    outcomes: int = DEFAULT_CELLS
    """Number of bins within the range. A forecast has one number more."""
    unit: str = ""
    dates: bool = False
    """Whether the values are times in Unix seconds."""
    whole: bool = False
    """Whether the quantity is discrete, with one value in the middle of each bin."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.minimum < self.maximum or not isfinite(self.maximum - self.minimum):
            self._refuse("maximum", f"is {self.maximum}", f"a finite number above the minimum, {self.minimum}")
        if self.outcomes < 1:
            self._refuse("outcomes", f"is {self.outcomes}", "at least 1")
        if self.zero_point is not None and self.minimum <= self.zero_point <= self.maximum:
            self._refuse("zero_point", f"is {self.zero_point}", "a number outside the range")
        if self.dates and not FIRST_SECOND <= self.minimum < self.maximum <= LAST_SECOND:
            self._refuse("minimum", f"a range from {self.minimum} to {self.maximum} seconds is outside the calendar")

    def _refuse(self, field: str, problem: str, expected: str = "") -> None:
        raise WrongValue("NumericRange", field, problem, expected)

    def edges(self) -> Edges:
        """Return the values at which a forecast has cumulative probabilities, lowest first."""
        shares = [i / self.outcomes for i in range(self.outcomes)]
        if self.zero_point is not None:
            ratio = (self.maximum - self.zero_point) / (self.minimum - self.zero_point)
            shares = [expm1(share * log(ratio)) / (ratio - 1) for share in shares]
        return *(self.minimum + (self.maximum - self.minimum) * share for share in shares), float(self.maximum)

    @property
    def values(self) -> Edges:
        """The values of a discrete quantity; empty for others.

        >>> NumericRange(minimum=-0.5, maximum=2.5, outcomes=3, whole=True).values
        (0.0, 1.0, 2.0)
        """
        edges = self.edges()
        return tuple((low + high) / 2 for low, high in pairwise(edges)) if self.whole else ()

    def write(self, value: float) -> str:
        """Format a value: a number with its unit, or a date, which is never if it is infinite.

        >>> NumericRange(minimum=0, maximum=90, unit="seats").write(12.5)
        '12.5 seats'
        >>> NumericRange(minimum=0, maximum=2e9, dates=True).write(86400)
        '1970-01-02'
        """
        if self.dates:
            return "never" if value == inf else datetime.fromtimestamp(value, UTC).date().isoformat()
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


# Prices of markets.


@frozen
class Snapshot:
    """Quotes of one binary market at one time, in dollars per one-dollar contract.

    >>> Snapshot(at="2025-06-26", yes_ask=0.62, no_ask=0.42).price
    0.596...
    """

    at: UtcDatetime
    last_price: float | None = None
    yes_bid: float | None = None
    yes_ask: float | None = None
    no_ask: float | None = None
    volume: float | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            at: Moment,
            last_price: float | None = None,
            yes_bid: float | None = None,
            yes_ask: float | None = None,
            no_ask: float | None = None,
            volume: float | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        read_moments(self, "at")
        check_fields(self)
        for name in ("last_price", "yes_bid", "yes_ask", "no_ask"):
            if (value := getattr(self, name)) is not None:
                probability(value, self, name)

    @property
    def price(self) -> float | None:
        """The implied probability of yes: the two asks normalised to one, else the last trade."""
        if self.yes_ask is not None and self.no_ask is not None and self.yes_ask + self.no_ask > 0:
            return self.yes_ask / (self.yes_ask + self.no_ask)
        return self.last_price


QuestionKind = Literal["market", "dataset"]


@frozen
class Target:
    """One binary outcome, at a date.

    Args:
        id: Unique within its question; `yes` for a question with one outcome.
        label: What is shown instead of the id.
        resolves_at: When the outcome is known.
        snapshot: The market's quotes when the question was asked.

    Raises:
        WrongValue: If a field has a value of another type, it has no id, or a date cannot be read.

    >>> Target(id="red", label="The Reds win", resolves_at="2026-11-03").resolves_at.date().isoformat()
    '2026-11-03'
    """

    id: str
    label: str = ""
    resolves_at: UtcDatetime | None = None
    snapshot: Snapshot | None = None

    @property
    def short_label(self) -> str:
        """Its date, if that is what tells it from the others, and otherwise its label.

        >>> Target(id="2026-02-01", label="Will it rain on 2026-02-01?", resolves_at="2026-02-01").short_label
        '2026-02-01'
        """
        dated = self.resolves_at is not None and self.id == self.resolves_at.date().isoformat()
        return self.id if dated else self.label or self.id

    if TYPE_CHECKING:

        def __init__(
            self, *, id: str, label: str = "", resolves_at: Moment | None = None, snapshot: Snapshot | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        read_moments(self, "resolves_at")
        check_fields(self)
        if not self.id:
            raise WrongValue("Target", "id", "is empty")


@frozen
class SeriesRef:
    """The time series that decides a question, and the comparison that makes it binary."""

    provider: str
    id: str
    comparison: Literal["above", "below"] = "above"
    threshold: float | None = None
    """None for the last value on or before the question's due date."""

    def __post_init__(self) -> None:
        check_fields(self)


@frozen
class LastValue:
    """The number a data-set question starts from, as it was published before the question was asked."""

    value: float
    at: UtcDatetime
    meaning: str = ""

    if TYPE_CHECKING:

        def __init__(self, *, value: float, at: Moment, meaning: str = "") -> None: ...

    def __post_init__(self) -> None:
        read_moments(self, "at")
        check_fields(self)
        if not isfinite(self.value):
            raise WrongValue("LastValue", "value", f"is {self.value}", "a finite number")


@frozen
class Question:
    """A question about one or more binary targets.

    It may be a market question (one target), a data-set question (one outcome at several dates), an arena event
    (several markets, exclusive or not) or a multiple-choice question. Times are text in ISO form, dates or datetimes.

    Args:
        id: Unique within a set together with `due`, because the same market may be asked in several rounds.
        source: Where it comes from. Base rates are kept per source and subtype.
        text: The question as it is asked.
        due: The time as of which it is asked. If it is a date, forecasts may use what was known by its end.
        targets: What is forecast. A yes-or-no question needs no targets of its own.
        kind: Whether it comes from a market or from a series of data.
        subtype: The question's template within its source.
        category: Its subject, to group scores by.
        criteria: Exact rules for how it resolves.
        background: What a forecaster may know of it beforehand.
        exclusivity: How many targets can come true together. One target alone is always independent.
        opens_at: When it was opened for forecasts.
        closes_at: When it is closed.
        cluster: Questions whose outcomes move together share a cluster; empty means the id.
        url: Its page.
        series: The series of data that it is about.
        last_value: The last known value of the quantity, not later than `due`.
        range: The range of the number or date. Targets are then thresholds such as `>3.5`.

    Raises:
        WrongValue: If a field has a value of another type, it has no id, a target occurs twice, or a date cannot be
            read.

    >>> q = Question(id="fred/DAAA", source="fred", text="Will the yield rise?", due="2025-10-26",
    ...              targets=(Target(id="2025-11-02", resolves_at="2025-11-02"),))
    >>> q.as_of.at.date().isoformat(), q.horizon_days(q.targets[0])
    ('2025-10-26', 7)
    """

    id: str
    source: str
    text: str
    due: UtcDatetime
    targets: tuple[Target, ...] = (Target(id="yes"),)
    kind: QuestionKind = "market"
    subtype: str = ""
    category: str = ""
    criteria: str = ""
    background: str = ""
    exclusivity: Exclusivity = "independent"
    opens_at: UtcDatetime | None = None
    closes_at: UtcDatetime | None = None
    cluster: str = ""
    url: str = ""
    series: SeriesRef | None = None
    last_value: LastValue | None = None
    range: NumericRange | None = None

    if TYPE_CHECKING:

        def __init__(  # noqa: PLR0913 - the fields
            self,
            *,
            id: str,
            source: str,
            text: str,
            due: Moment,
            targets: Sequence[Target] = ...,
            kind: QuestionKind = "market",
            subtype: str = "",
            category: str = "",
            criteria: str = "",
            background: str = "",
            exclusivity: Exclusivity = "independent",
            opens_at: Moment | None = None,
            closes_at: Moment | None = None,
            cluster: str = "",
            url: str = "",
            series: SeriesRef | None = None,
            last_value: LastValue | None = None,
            range: NumericRange | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        read_moments(self, "due", "opens_at", "closes_at")
        check_fields(self)
        if not self.id:
            raise WrongValue("Question", "id", "is empty")
        if not self.targets:
            raise WrongValue("Question", "targets", "is empty", "at least one Target")
        if len({target.id for target in self.targets}) < len(self.targets):
            repeated = [target for target, n in Counter(t.id for t in self.targets).items() if n > 1]
            raise WrongValue("Question", "targets", f"question {self.id} names target {repeated[0]!r} twice")
        if self.last_value is not None and self.last_value.at.date() > self.due.date():
            day = self.last_value.at.date()
            raise WrongValue("Question", "last_value", f"question {self.id} has a value of {day}, after it was asked")
        if len(self.targets) == 1:
            object.__setattr__(self, "exclusivity", "independent")
        if not self.cluster:
            object.__setattr__(self, "cluster", self.id)

    @cached_property
    def as_of(self) -> AsOf:
        """The cutoff of a backtest of this question: the end of its due date, or the exact time if it has one."""
        return self.as_of_in("backtest")

    def as_of_in(self, mode: AsOfMode) -> AsOf:
        """Return the question's cutoff in a mode."""
        return AsOf(at=self.due if self.due.time() > time.min else end_of_day(self.due.date()), mode=mode)

    def horizon_days(self, target: Target) -> int | None:
        """Return the calendar days from the due date to the target's resolution, if that is known beforehand."""
        resolves = target.resolves_at or self.closes_at
        return None if resolves is None else (resolves.date() - self.due.date()).days
