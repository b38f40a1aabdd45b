"""Forecasts, their cost, and failures."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from itertools import accumulate, pairwise
from math import exp, inf, isfinite, log, log1p
from typing import Any, Literal

from foretell.frozen import frozen
from foretell.number_text import brief_percent, dollars
from foretell.questions.as_of import AsOf
from foretell.questions.errors import WrongValue
from foretell.questions.field_checks import check_fields, probability
from foretell.questions.value_age import ValueAge

# Forecasts over options and over a numeric range.


@frozen
class Categorical:
    """Probabilities of options of which exactly one comes true.

    >>> Categorical(p={"red": 2, "blue": 1, "green": 1}, normalise=True).p["red"]
    0.5
    """

    p: Mapping[str, float]
    normalise: bool = False
    """Scale to sum one on creation, instead of rejecting another sum."""

    def __post_init__(self) -> None:
        check_fields(self)
        p = {option: float(value) for option, value in self.p.items()}
        total = sum(p.values())
        if not p or not all(isfinite(v) and v >= 0 for v in p.values()) or total <= 0:
            raise WrongValue("Categorical", "p", "option probabilities must be finite, not negative, and not all zero")
        if not self.normalise and abs(total - 1) > 1e-6:
            raise WrongValue("Categorical", "p", f"option probabilities sum to {total:.6g}, not 1")
        object.__setattr__(self, "p", {option: value / total for option, value in p.items()})
        object.__setattr__(self, "normalise", False)


@frozen
class Numeric:
    """A piecewise-linear cumulative distribution function through (x[i], cdf[i]), with tails beyond the outer points.

    The mass below x[0] is cdf[0], and above x[-1] it is 1 − never − cdf[-1]. A tail falls exponentially, at the rate of
    the step before it: beyond q95, P(X > v) = 0.05 · 2^(−(v − q95) / (q95 − q90)).

    >>> d = Numeric(x=(0, 10, 20), cdf=(0, 0.25, 1))
    >>> d.below(5), d.above(10), round(d.quantile(0.5), 3)
    (0.125, 0.75, 13.333)
    >>> round(Numeric(x=(80, 90), cdf=(0.8, 0.9)).above(100), 9)
    0.05
    """

    x: tuple[float, ...]
    cdf: tuple[float, ...]
    never: float = 0.0
    """The probability that there is no value, because what is asked about never happens. It is above all values."""
    lowest: float | None = None
    highest: float | None = None
    """Where the tails end; None if they do not."""

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "x", tuple(float(v) for v in self.x))
        object.__setattr__(self, "cdf", tuple(float(v) for v in self.cdf))
        if len(self.x) != len(self.cdf) or len(self.x) < 2:
            self._refuse("x", "a numeric distribution needs two or more points, as many x as cdf values")
        if not all(isfinite(v) for v in self.x + self.cdf):
            self._refuse("x", "points of a numeric distribution must be finite")
        if any(b <= a for a, b in pairwise(self.x)):
            self._refuse("x", "x of a numeric distribution must increase")
        if not 0 <= self.never < 1:
            self._refuse("never", "the probability of never must be at least 0 and below 1")
        if any(b < a for a, b in pairwise(self.cdf)) or self.cdf[0] < 0 or self.cdf[-1] > 1 - self.never + 1e-12:
            self._refuse("cdf", "cdf of a numeric distribution must rise from at least 0 to at most 1")

    def _refuse(self, field: str, problem: str) -> None:
        raise WrongValue("Numeric", field, problem)

    @classmethod
    def from_quantiles(cls, quantiles: Mapping[float, float], *, never: float = 0.0) -> "Numeric":
        """Return the distribution through {probability: value} pairs, which hold if the value exists at all.

        >>> Numeric.from_quantiles({0.1: 1.0, 0.5: 2.0, 0.9: 5.0}).below(2.0)
        0.5
        """
        levels = sorted(quantiles)
        cdf = tuple((1 - never) * level for level in levels) if never else tuple(levels)
        return cls(x=tuple(quantiles[q] for q in levels), cdf=cdf, never=never)

    @classmethod
    def mixture(cls, parts: Iterable[tuple[float, "Numeric"]]) -> "Numeric":
        """Return the distribution of a value that comes from one of several distributions, each with its weight.

        >>> both = Numeric.mixture([(1, Numeric(x=(0, 10), cdf=(0, 1))), (3, Numeric(x=(20, 30), cdf=(0, 1)))])
        >>> both.below(5), both.below(15), both.below(25)
        (0.125, 0.25, 0.625)
        """
        weighted = [(weight, part) for weight, part in parts if weight > 0]
        total = sum(weight for weight, _ in weighted)
        never = sum(weight * part.never for weight, part in weighted) / total
        # Points in the tails too, because those of a mixture do not fall at one rate.
        ends = {part.quantile((1 - part.never) * level) for _, part in weighted for level in TAIL_LEVELS}
        x = sorted(ends | {value for _, part in weighted for value in part.x})
        cdf = accumulate((sum(weight * part.below(v) for weight, part in weighted) / total for v in x), max)
        lowest, highest = common_ends([part for _, part in weighted])
        return cls(x=tuple(x), cdf=tuple(min(c, 1 - never) for c in cdf), never=never, lowest=lowest, highest=highest)

    def within(self, low: float | None, high: float | None) -> "Numeric":
        """Return the distribution cut to a range: tails end there, and mass of the points outside goes to the rest.

        >>> d = Numeric(x=(0, 10), cdf=(0.1, 0.9)).within(-5, 5)
        >>> d.below(-5), round(d.below(0), 3), d.below(5)
        (0.0, 0.2, 1.0)
        """
        low = None if low is None or (not self.cdf[0] and low < self.x[0]) else low
        high = None if high is None or (self._beyond == 0 and not self.never and high > self.x[-1]) else high
        base = 0.0 if low is None or low < self.x[0] else self.below(low)
        top = 1.0 if high is None or high > self.x[-1] else self.below(high)
        if top - base < LEAST_MASS:
            return self
        inside = [(low is None or low < x) and (high is None or x < high) for x in self.x]
        pairs = zip(self.x, self.cdf, inside, strict=True)
        points = {x: (c - base) / (top - base) for x, c, keeps in pairs if keeps}
        if low is not None and low >= self.x[0]:
            points = {low: 0.0} | points
        if high is not None and high <= self.x[-1]:
            points |= {high: 1.0}
        if len(points) < 2:
            return self
        return Numeric(
            x=tuple(points),
            cdf=tuple(points.values()),
            never=0.0 if high is not None else self.never / (1 - base),
            lowest=low if inside[0] else None,
            highest=high if inside[-1] else None,
        )

    def below(self, value: float) -> float:
        """Return P(X ≤ value)."""
        if value < self.x[0]:
            return _tail(self.x[0] - value, self.cdf[0], self._lower_rate, self._lower_room)
        if value >= self.x[-1]:
            beyond = _tail(value - self.x[-1], self._beyond, self._upper_rate, self._upper_room)
            return max(self.cdf[-1], 1.0 - self.never - beyond)  # Rounding must not make it less.
        i = bisect_right(self.x, value) - 1
        share = (value - self.x[i]) / (self.x[i + 1] - self.x[i])
        return self.cdf[i] + share * (self.cdf[i + 1] - self.cdf[i])

    def above(self, value: float) -> float:
        """Return P(X > value), with the chance of never."""
        if value >= self.x[-1]:
            return self.never + _tail(value - self.x[-1], self._beyond, self._upper_rate, self._upper_room)
        return 1.0 - self.below(value)

    def quantile(self, level: float) -> float:
        """Return the smallest value whose cdf reaches the level; infinite at 0, 1 and never, if nothing ends there."""
        if not 0 <= level <= 1:
            raise ValueError(f"quantile level {level} is outside [0, 1]")
        if level < self.cdf[0]:
            return self.x[0] - _distance(level / self.cdf[0], self._lower_rate, self._lower_room)
        if level == self.cdf[0]:
            return self.x[0]
        for (x0, x1), (c0, c1) in zip(pairwise(self.x), pairwise(self.cdf), strict=True):
            if level <= c1:
                return x0 if c1 == c0 else x0 + (level - c0) / (c1 - c0) * (x1 - x0)
        if level > 1 - self.never:
            return inf
        if self._beyond == 0:
            return self.x[-1]
        share = (1 - self.never - level) / self._beyond
        return self.x[-1] + _distance(share, self._upper_rate, self._upper_room)

    @property
    def _beyond(self) -> float:
        """The mass of the upper tail."""
        mass = 1 - self.never - self.cdf[-1]
        return mass if mass > LEAST_MASS else 0.0

    @property
    def _lower_rate(self) -> float:
        return _rate(self.cdf[0], self.cdf[1] - self.cdf[0], self.x[1] - self.x[0], self.x[-1] - self.x[0])

    @property
    def _upper_rate(self) -> float:
        return _rate(self._beyond, self.cdf[-1] - self.cdf[-2], self.x[-1] - self.x[-2], self.x[-1] - self.x[0])

    @property
    def _lower_room(self) -> float:
        return inf if self.lowest is None else max(0.0, self.x[0] - self.lowest)

    @property
    def _upper_room(self) -> float:
        return inf if self.highest is None else max(0.0, self.highest - self.x[-1])


LEAST_MASS = 1e-12
"""Mass of a tail below which there is none."""
TAIL_LEVELS = (0.001, 0.01, 0.99, 0.999)
"""Levels at which a mixture has points in the tails of its parts."""


def common_ends(distributions: Iterable[Numeric]) -> tuple[float | None, float | None]:
    """Return where the tails of all of several distributions have ended; None where one of them never ends."""
    lowest = [d.lowest if d.cdf[0] else d.x[0] for d in distributions]
    highest = [d.highest if d.cdf[-1] < 1 else d.x[-1] for d in distributions]
    return (
        min((end for end in lowest if end is not None), default=None) if None not in lowest else None,
        max((end for end in highest if end is not None), default=None) if None not in highest else None,
    )


def _rate(mass: float, step: float, length: float, width: float) -> float:
    """Return the rate at which a tail falls: that of the step before it, or one over the width if that step is flat."""
    if mass <= LEAST_MASS:
        return 1 / width
    return log1p(step / mass) / length if step > 0 else 1 / width


def _tail(distance: float, mass: float, rate: float, room: float) -> float:
    """Return the mass of a tail beyond a distance from its start; a tail with finite room ends there."""
    if distance >= room:
        return 0.0
    rest = exp(-rate * room)
    return mass * (exp(-rate * distance) - rest) / (1 - rest) if rest < 1 else mass * (1 - distance / room)


def _distance(share: float, rate: float, room: float) -> float:
    """Return the distance beyond which a tail has this share of its mass."""
    rest = exp(-rate * room)
    if rest >= 1:
        return room * (1 - share)
    left = share * (1 - rest) + rest
    return min(room, -log(left) / rate) if left > 0 else room


@frozen
class Cost:
    """The cost of a call, a forecast or a run.

    >>> str(Cost(calls=1, dollars=0.5, input_tokens=10) + Cost(calls=2, dollars=0.25, reused=0.1, unpriced=1))
    '$0.75 billed, $0.10 reused and 1 calls of unknown price, 3 calls, 10 tokens'
    """

    dollars: float = 0.0
    """Dollars billed for the calls with a known price."""
    reused: float = 0.0
    """Original cost of replies that another run paid for. They were free here."""
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    calls: int = 0
    unpriced: int = 0
    """Calls with an unknown price. `dollars` is then a lower bound."""
    uncounted: int = 0
    """Replies whose token counts were not credible. Their maximum possible cost is charged."""

    @property
    def worth(self) -> float:
        """Original cost of all replies, including reused ones."""
        return self.dollars + self.reused

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Cost") -> "Cost":
        """Return the cost of two consecutive pieces of work."""
        return Cost(
            # Rounded, because sums of floats depend on their order.
            dollars=round(self.dollars + other.dollars, 12),
            reused=round(self.reused + other.reused, 12),
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            seconds=self.seconds + other.seconds,
            calls=self.calls + other.calls,
            unpriced=self.unpriced + other.unpriced,
            uncounted=self.uncounted + other.uncounted,
        )

    def __str__(self) -> str:
        """For people: `$0.12 billed, 3 calls, 4,200 tokens`."""
        reused = f", {dollars(self.reused)} reused" if self.reused > 5e-7 else ""
        unpriced = f" and {self.unpriced} calls of unknown price" if self.unpriced else ""
        counted = f" ({self.uncounted} without a credible token count, at the most)" if self.uncounted else ""
        return f"{dollars(self.dollars)} billed{reused}{unpriced}, {self.calls} calls, {self.tokens:,} tokens{counted}"

    @classmethod
    def side_by_side(cls, costs: Iterable["Cost"]) -> "Cost":
        """Return the cost of concurrent pieces of work: sums, but the maximum of the seconds.

        >>> together = Cost.side_by_side([Cost(dollars=0.5, seconds=3.0, calls=1), Cost(dollars=0.25, seconds=2.0)])
        >>> together.dollars, together.seconds, together.calls
        (0.75, 3.0, 1)
        """
        costs = list(costs)
        if len(costs) == 1:
            return costs[0]
        return replace(sum(costs, cls()), seconds=max((cost.seconds for cost in costs), default=0.0))


UNFILTERED_SUFFIX = "+unfiltered"
"""End of the name of a forecaster from which nothing was withheld in a backtest."""
Ending = Literal["submitted", "salvaged", "limit", "stopped", "fallback"]
"""How a trial arrived at its forecast. In order: the forecaster submitted it; it was extracted from an answer in
another form; a limit on steps, time or money was reached, or a user stopped it, and the current estimate counts; or
a model or tool failed."""


TREE_WEIGHT = 0.25
"""Weight of a tree's value beside the direct estimate, in log-odds, before there is a record."""
LARGEST_GAP = 0.7
"""Largest difference in log-odds at which a tree and the direct estimate agree."""
RECONCILED_EDGE = 0.001
"""Distance from 0 and 1 to which values are kept before their log-odds are combined."""
NOT_TAKEN_APART = "Not taken apart: "
"""Begins the reasons of a trial that could have grown a tree; why it did not follows."""


@frozen
class Reconciliation:
    """The value of a tree and the direct estimate of the same question, and what was done about their difference."""

    tree: Mapping[str, float]
    """The tree's value by target."""
    direct: Mapping[str, float]
    """The direct estimate by target, made before the tree existed: the mean of all trials in log-odds."""
    gap: float
    """Largest difference of the two in log-odds."""
    changes: tuple[str, ...] = ()
    """What was changed to bring them together, and why."""
    apart: bool = False
    """Whether they stayed apart, so that both are shown."""
    own: Mapping[str, float] | None = None
    """The direct estimate of the trial that grew the tree, if `direct` is that of several."""
    trials: int = 1
    """Number of trials behind `direct`."""
    limit: float = LARGEST_GAP
    """The largest difference at which they agree."""
    asked: bool = False
    """Whether a model was asked to reconcile them."""
    error: float = 0.0
    """Standard deviation of the tree's value, from its error bar; 0 if it has none."""
    weight: float = TREE_WEIGHT
    """Weight of the tree beside the direct estimate."""
    kind: str = ""
    """How the tree's root follows from its children, such as `all`."""
    report: str = ""
    """What the model wrote that was asked to reconcile them."""
    tree_distribution: Numeric | None = None
    direct_distribution: Numeric | None = None
    """The same for a question about a number or a date, as whole distributions."""
    own_distribution: Numeric | None = None
    """The same of `own`."""
    why: tuple[str, ...] = ()
    """Why the question was taken apart."""

    @property
    def verdict(self) -> str:
        """Whether the two agree, in words."""
        return "stay apart" if self.apart else "agree"

    def in_words(self, target: str) -> str:
        """Say both values of a target, and whether they agree.

        >>> Reconciliation(tree={"yes": 0.197}, direct={"yes": 0.18}, gap=0.11).in_words("yes")
        'tree 20 %, direct 18 % (agree)'
        """
        return f"tree {brief_percent(self.tree[target])}, direct {brief_percent(self.direct[target])} ({self.verdict})"

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON of an answer and of a tree says about the two."""
        return {
            "blind": dict(self.direct),
            "tree": dict(self.tree),
            "gap": self.gap,
            "apart": self.apart,
            "changes": list(self.changes),
        }

    def compared(self) -> "Reconciliation":
        """Return the same with the gap between the values as they are now, and whether they stay apart.

        >>> both = Reconciliation(tree={"yes": 0.48}, direct={"yes": 0.12}, gap=0.0)
        >>> round(both.compared().gap, 3), both.compared().verdict
        (1.912, 'stay apart')
        """
        if self.tree_distribution is not None and self.direct_distribution is not None:
            gap = distribution_gap(self.tree_distribution, self.direct_distribution)
        else:
            gap = gap_between(self.tree, self.direct)
        return replace(self, gap=gap, apart=gap > self.limit)

    def combined(self, direct: Mapping[str, float] | None = None) -> dict[str, float]:
        """Return the tree's value combined with its own direct estimate, or with another one, in log-odds.

        >>> both = Reconciliation(tree={"yes": 0.48}, direct={"yes": 0.12}, gap=1.9)
        >>> round(both.combined()["yes"], 3)
        0.18
        """
        return {
            target: _sigmoid(
                self.weight * reconciled_logit(self.tree[target]) + (1 - self.weight) * reconciled_logit(p)
            )
            for target, p in (self.direct if direct is None else direct).items()
        }


def gap_between(tree: Mapping[str, float], direct: Mapping[str, float]) -> float:
    """Return the largest difference in log-odds between a tree and the direct estimate.

    >>> round(gap_between({"yes": 0.48}, {"yes": 0.12}), 3)
    1.912
    """
    return max(abs(reconciled_logit(tree[target]) - reconciled_logit(p)) for target, p in direct.items())


def distribution_gap(tree: Numeric, direct: Numeric) -> float:
    """Return the largest difference in log-odds between two cdfs at the quartiles of the direct estimate.

    >>> round(distribution_gap(Numeric(x=(5, 9), cdf=(0.1, 0.9)), Numeric(x=(5, 9), cdf=(0.1, 0.9))), 6)
    0.0
    """
    values = [direct.quantile((1 - direct.never) * level) for level in (0.25, 0.5, 0.75)]
    return max(abs(reconciled_logit(tree.below(v)) - reconciled_logit(direct.below(v))) for v in values)


def reconciled_logit(p: float) -> float:
    """Return the log-odds of a value that is kept away from 0 and 1."""
    p = min(max(p, RECONCILED_EDGE), 1 - RECONCILED_EDGE)
    return log(p / (1 - p))


def _sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


@frozen
class Forecast:
    """One probability per target of a question, as of a cutoff.

    Args:
        question_id: The id of the question.
        forecaster: Who made it.
        as_of: The cutoff: nothing that became known later was used.
        p: Target → its probability.
        trial: The number of the trial, if the forecaster made several.
        rationale: The reasons.
        trace: Where the steps behind the number are stored.
        usage: What it cost.
        distribution: The whole distribution, for multiple-choice and numeric questions.
        stated: The probabilities before those of exclusive outcomes were made to sum to one; None if that was not done
            yet. If a forecaster gives `stated`, its `p` is not changed; a baseline gives `p` itself.
        ending: How the trial arrived at it.
        problem: What failed, if this is a fallback forecast.
        reconciliation: The tree and the direct estimate behind `p`, if a tree was grown.
        value: The value of the question's series that it stands on, with its age; None if it stands on no series.

    Raises:
        WrongValue: If a probability is not in [0, 1], `stated` has other targets than `p`, or a field has a value of
            another type.

    >>> from foretell.questions.as_of import AsOf
    >>> Forecast(question_id="snow", forecaster="me", as_of=AsOf.day("2026-01-10"), p={"yes": 0.4}).p["yes"]
    0.4
    """

    question_id: str
    forecaster: str
    as_of: AsOf
    p: Mapping[str, float]
    trial: int = 0
    rationale: str = ""
    trace: str = ""
    usage: Cost = field(default_factory=Cost)
    distribution: Categorical | Numeric | None = None
    stated: Mapping[str, float] | None = None
    ending: Ending = "submitted"
    problem: str = ""
    reconciliation: Reconciliation | None = None
    value: ValueAge | None = None

    @property
    def fallback(self) -> bool:
        """Whether it is a fallback after a failure. Fallbacks are left out of combinations and scores by default."""
        return self.ending == "fallback"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("p", "stated"):
            if (stated := getattr(self, name)) is not None:
                p = {
                    target: probability(p, self, name, f"probability of target {target!r}")
                    for target, p in stated.items()
                }
                object.__setattr__(self, name, p)
        if self.stated is not None and self.stated.keys() != self.p.keys():
            raise WrongValue("Forecast", "stated", "stated has other targets than the forecast")


SIDES_OFF = 0.005
"""How far the probabilities of yes and no may be from a sum of 1."""


def check_sides(yes: float, no: float) -> None:
    """Raise ValueError if the probabilities of yes and no, which exclude each other, do not sum to 1.

    >>> check_sides(0.42, 0.58)
    >>> check_sides(0.42, 0.9)
    Traceback (most recent call last):
    ValueError: yes has 0.42 and no has 0.9, which do not sum to 1: give only yes, or make them sum to 1
    """
    if abs(yes + no - 1) > SIDES_OFF:
        advice = "give only yes, or make them sum to 1"
        raise ValueError(f"yes has {yes:g} and no has {no:g}, which do not sum to 1: {advice}")


@frozen
class Failure:
    """A trial that failed. It lowers the completion rate and is never scored like a forecast."""

    question_id: str
    forecaster: str
    as_of: AsOf
    error: str
    trial: int = 0


StopWish = Literal["answer", "pause"]
"""What a stop does to running trials: they answer with their current estimate, or stay unfinished for later."""
