"""From numbers to places on a picture: linear and logarithmic scales with round ticks."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from foretell.arena.report.markup import compact


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Maps [low, high] onto the pixels [start, stop], evenly or by powers of ten."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Place of the value; values outside the scale are put on its edge."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    def ticks(self, count: int = 5) -> tuple[float, ...]:
        """About `count` round numbers within the scale."""
        return log_ticks(self.low, self.high, count) if self.log else nice_ticks(self.low, self.high, count)


def covering(
    values: Iterable[float], start: float, stop: float, *, within: tuple[float, float] | None = None, log: bool = False
) -> Scale:
    """A scale that shows every finite value with a little air, but nothing outside `within`.

    >>> scale = covering([2.0, 4.0, math.nan], 0, 100)
    >>> scale.low < 2 < 4 < scale.high
    True
    """
    shown = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    low, high = (min(shown), max(shown)) if shown else (1.0, 10.0) if log else (0.0, 1.0)
    if log:
        air = max((high / low) ** 0.06, 1.3)
        return Scale(low=low / air, high=high * air, start=start, stop=stop, log=True)
    air = 0.06 * (high - low) or 0.1 * abs(high) or 0.5
    low, high = low - air, high + air
    if within is not None:
        low, high = max(low, within[0]), min(high, within[1])
    return Scale(low=low, high=high, start=start, stop=stop)


def nice_ticks(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten inside [low, high], about `count` of them.

    >>> nice_ticks(0, 1)
    (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    >>> nice_ticks(61.3, 84.2)
    (65.0, 70.0, 75.0, 80.0)
    """
    raw = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.75)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(round(i * step, 12) + 0.0 for i in range(first, last + 1))


def log_ticks(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Powers of ten inside [low, high], with their doubles and fives where there is room for them.

    >>> log_ticks(0.04, 30)
    (0.1, 1.0, 10.0)
    >>> log_ticks(0.4, 3)
    (0.5, 1.0, 2.0)
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for marks in ((1, 2, 5), (1,)):
        found = tuple(round(m * 10.0**k, 12) for k in decades for m in marks if low <= m * 10.0**k <= high)
        if len(found) <= count:
            break
    return found[:: max(1, math.ceil(len(found) / count))] or (low,)


def tick_label(value: float) -> str:
    """A tick as text, without the zeros that say nothing.

    >>> tick_label(0.25), tick_label(70.0), tick_label(-1.5), tick_label(20000.0)
    ('0.25', '70', '−1.5', '20k')
    """
    if abs(value) >= 10_000:
        return f"{compact(value / 1000).replace('-', '−')}k"
    return compact(value, 6).replace("-", "−")
