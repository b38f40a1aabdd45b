"""How a claim's probability follows from its children's: data on the node, so that what-if is arithmetic."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Linear:
    """P = intercept + Σ weight·P(child)."""

    weights: Mapping[str, float]
    intercept: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """`PA` of a formula: what it takes for granted beside its children, and how likely that is."""

    text: str
    p: float


@dataclass(frozen=True, kw_only=True)
class Formula:
    """P of a Boolean expression over children's ids with AND, OR, NOT, parentheses and PA."""

    expression: str
    assumption: Assumption | None = None


@dataclass(frozen=True, kw_only=True)
class NoisyOr:
    """P = 1 − (1 − leak)·Π(1 − strength·child): each true child alone would bring the claim about."""

    strengths: Mapping[str, float]
    leak: float = 0.0


@dataclass(frozen=True, kw_only=True)
class InhibitedNoisyOr:
    """A noisy-or that other children can prevent: times Π(1 − inhibition·child) over the inhibitors."""

    strengths: Mapping[str, float]
    inhibitors: Mapping[str, float] = field(default_factory=dict[str, float])
    leak: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Average:
    """P = mean of the children's."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """P was said by a model that read the children's reports; it does not follow from their numbers."""

    p: float
    stale: bool = False
    """A child has changed since: the number stands until it is asked for again."""


Link = Linear | Formula | NoisyOr | InhibitedNoisyOr | Average | Judged
