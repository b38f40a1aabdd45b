"""Probabilities within a platform's limits: what must be clipped, and to what."""

from collections.abc import Mapping
from dataclasses import dataclass

SUM = 1e-6
"""How far a sum of options may be off before it is a mistake rather than rounding."""
DIGITS = 10


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The least and the greatest probability a platform takes."""

    low: float
    high: float

    def clipped(self, p: float) -> float:
        """The nearest probability that is taken."""
        return round(min(max(p, self.low), self.high), DIGITS)

    def complaint(self, p: float, what: str = "") -> str:
        """What is wrong with a probability, and what would be sent instead; empty if nothing is.

        >>> Limits(low=0.001, high=0.999).complaint(0.0002)
        '0.0002 is outside 0.001 to 0.999, clipped it would be 0.001'
        """
        if self.low <= p <= self.high:
            return ""
        told = f"{p:g} is outside {self.low:g} to {self.high:g}, clipped it would be {self.clipped(p):g}"
        return f"{what}: {told}" if what else told


def spread(p: Mapping[str, float], limits: Limits) -> dict[str, float]:
    """Options within limits that sum to one: all scaled by one factor, and those that would be outside put on the edge.

    >>> spread({"a": 0.7995, "b": 0.2, "c": 0.0005}, Limits(low=0.001, high=0.999))
    {'a': 0.79910005, 'b': 0.19989995, 'c': 0.001}
    """
    if not limits.low * len(p) <= 1 <= limits.high * len(p):
        raise ValueError(f"{len(p)} options cannot sum to one between {limits.low} and {limits.high}")
    low, high = 0.0, 1.0
    while _total(p, limits, high) < 1 and high < 1e300:
        high *= 2
    for _ in range(2000):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _total(p, limits, middle) < 1 else (low, middle)
    found = {option: round(_held(value * high, limits), DIGITS) for option, value in p.items()}
    return _exact(found, limits)


def _held(value: float, limits: Limits) -> float:
    return min(max(value, limits.low), limits.high)


def _total(p: Mapping[str, float], limits: Limits, factor: float) -> float:
    return sum(_held(value * factor, limits) for value in p.values())


def _exact(p: dict[str, float], limits: Limits) -> dict[str, float]:
    """Rounding, and mass that nobody claimed, go where there is room for it."""
    rest = 1 - sum(p.values())
    for option in sorted(p, key=lambda name: -p[name]):
        moved = _held(p[option] + rest, limits) - p[option]
        p[option] = round(p[option] + moved, DIGITS)
        rest -= moved
        if abs(rest) < 10.0 ** -(DIGITS + 1):
            break
    return p
