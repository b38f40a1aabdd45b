"""Forecasts, their cost, and failures."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isfinite
from typing import Literal

from foretell.questions.as_of import AsOf
from foretell.questions.quick_init import quick_init

# Forecasts that are more than one number: over options, and over a numeric range.


@dataclass(frozen=True, kw_only=True)
class Categorical:
    """Probabilities of options of which exactly one comes true.

    >>> Categorical(p={"red": 2, "blue": 1, "green": 1}, normalise=True).p["red"]
    0.5
    """

    p: Mapping[str, float]
    normalise: bool = False
    """Scale to sum one on creation, instead of refusing a sum that is off."""

    def __post_init__(self) -> None:
        p = {option: float(value) for option, value in self.p.items()}
        total = sum(p.values())
        if not p or not all(isfinite(v) and v >= 0 for v in p.values()) or total <= 0:
            raise ValueError("option probabilities must be finite, not negative, and not all zero")
        if not self.normalise and abs(total - 1) > 1e-6:
            raise ValueError(f"option probabilities sum to {total:.6g}, not 1")
        object.__setattr__(self, "p", {option: value / total for option, value in p.items()})
        object.__setattr__(self, "normalise", False)


@dataclass(frozen=True, kw_only=True)
class Numeric:
    """A piecewise-linear cumulative distribution function through (x[i], cdf[i]).

    Mass below x[0] is cdf[0] and above x[-1] is 1 − cdf[-1]: an open range has some of both.

    >>> d = Numeric(x=(0, 10, 20), cdf=(0, 0.25, 1))
    >>> d.below(5), d.above(10), round(d.quantile(0.5), 3)
    (0.125, 0.75, 13.333)
    """

    x: tuple[float, ...]
    cdf: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", tuple(float(v) for v in self.x))
        object.__setattr__(self, "cdf", tuple(float(v) for v in self.cdf))
        if len(self.x) != len(self.cdf) or len(self.x) < 2:
            raise ValueError("a numeric distribution needs two or more points, as many x as cdf values")
        if not all(isfinite(v) for v in self.x + self.cdf):
            raise ValueError("points of a numeric distribution must be finite")
        if any(b <= a for a, b in pairwise(self.x)):
            raise ValueError("x of a numeric distribution must increase")
        if any(b < a for a, b in pairwise(self.cdf)) or self.cdf[0] < 0 or self.cdf[-1] > 1:
            raise ValueError("cdf of a numeric distribution must rise from at least 0 to at most 1")

    @classmethod
    def from_quantiles(cls, quantiles: Mapping[float, float]) -> "Numeric":
        """The distribution through {probability: value} pairs.

        >>> Numeric.from_quantiles({0.1: 1.0, 0.5: 2.0, 0.9: 5.0}).below(2.0)
        0.5
        """
        levels = sorted(quantiles)
        return cls(x=tuple(quantiles[q] for q in levels), cdf=tuple(levels))

    def below(self, value: float) -> float:
        """P(X ≤ value). The mass of an open lower tail counts from the first point on, that of an upper tail never."""
        if value < self.x[0]:
            return 0.0
        if value >= self.x[-1]:
            return self.cdf[-1]
        i = bisect_right(self.x, value) - 1
        share = (value - self.x[i]) / (self.x[i + 1] - self.x[i])
        return self.cdf[i] + share * (self.cdf[i + 1] - self.cdf[i])

    def above(self, value: float) -> float:
        """P(X > value)."""
        return 1.0 - self.below(value)

    def quantile(self, level: float) -> float:
        """The smallest value whose cdf reaches the level; an end point if the level lies in an open tail."""
        if not 0 <= level <= 1:
            raise ValueError(f"quantile level {level} is outside [0, 1]")
        if level <= self.cdf[0]:
            return self.x[0]
        for (x0, x1), (c0, c1) in zip(pairwise(self.x), pairwise(self.cdf), strict=True):
            if level <= c1:
                return x0 if c1 == c0 else x0 + (level - c0) / (c1 - c0) * (x1 - x0)
        return self.x[-1]


@quick_init
@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a call, a forecast or a run.

    >>> str(Cost(calls=1, dollars=0.5, input_tokens=10) + Cost(calls=2, dollars=0.25, reused=0.1, unpriced=1))
    '$0.7500 billed, $0.1000 reused and 1 calls of unknown price, 3 calls, 10 tokens'
    """

    dollars: float = 0.0
    """Dollars billed for the calls with a known price."""
    reused: float = 0.0
    """What replies that another run had paid for cost when they came. They were free here."""
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    calls: int = 0
    unpriced: int = 0
    """Calls with an unknown price: `dollars` is then a lower bound."""
    uncounted: int = 0
    """Replies whose tokens were not counted credibly: they are charged at the most they can have cost."""

    @property
    def worth(self) -> float:
        """What the replies cost when they came, whoever paid for them."""
        return self.dollars + self.reused

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Cost") -> "Cost":
        """The cost of two things done one after the other."""
        return Cost(
            # Calls end in any order, and plain sums of floats remember it.
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
        """For people: `$0.1200 billed, 3 calls, 4,200 tokens`."""
        reused = f", ${self.reused:.4f} reused" if self.reused > 5e-7 else ""
        unpriced = f" and {self.unpriced} calls of unknown price" if self.unpriced else ""
        counted = f" ({self.uncounted} without a credible token count, at the most)" if self.uncounted else ""
        return f"${self.dollars:.4f} billed{reused}{unpriced}, {self.calls} calls, {self.tokens:,} tokens{counted}"

    @classmethod
    def side_by_side(cls, costs: Iterable["Cost"]) -> "Cost":
        """What things that ran at the same time cost together: sums, but of the seconds the longest.

        >>> together = Cost.side_by_side([Cost(dollars=0.5, seconds=3.0, calls=1), Cost(dollars=0.25, seconds=2.0)])
        >>> together.dollars, together.seconds, together.calls
        (0.75, 3.0, 1)
        """
        costs = list(costs)
        return replace(sum(costs, cls()), seconds=max((cost.seconds for cost in costs), default=0.0))


Ending = Literal["submitted", "salvaged", "limit", "stopped", "degraded"]
"""How a trial arrived at its forecast. In order: the forecaster submitted it; it was extracted from an answer in
another form; a limit on steps, time or money was reached, or somebody stopped it, and the current belief counts; or
it rests on the failure of a model or a tool."""


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """One probability per target of a question, as of a cutoff."""

    question_id: str
    forecaster: str
    as_of: AsOf
    p: Mapping[str, float]
    trial: int = 0
    rationale: str = ""
    trace: str = ""
    """Where the steps behind the number are stored."""
    usage: Cost = field(default_factory=Cost)
    distribution: Categorical | Numeric | None = None
    """The whole distribution, for multiple-choice and numeric questions."""
    stated: Mapping[str, float] | None = None
    """The probabilities before those of exclusive outcomes were made to add up. None: they were not touched yet. A
    forecaster that gives `stated` has the last word; a baseline gives `p` itself."""
    ending: Ending = "submitted"
    problem: str = ""
    """What failed, if the forecast is degraded."""

    @property
    def degraded(self) -> bool:
        """Whether it rests on a failure: counted separately, and left out of combinations and scores by default."""
        return self.ending == "degraded"

    def __post_init__(self) -> None:
        for name in ("p", "stated"):
            said: Mapping[str, float] | None = getattr(self, name)
            if said is not None:
                object.__setattr__(self, name, {target: float(p) for target, p in said.items()})
                for target, p in said.items():
                    if not (isfinite(p) and 0 <= p <= 1):
                        raise ValueError(f"probability of target {target!r} is {p}, not a number in [0, 1]")
        if self.stated is not None and self.stated.keys() != self.p.keys():
            raise ValueError("what was stated is about other targets than the forecast")


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A trial that failed. It lowers the completion rate and is never scored like a forecast."""

    question_id: str
    forecaster: str
    as_of: AsOf
    error: str
    trial: int = 0
