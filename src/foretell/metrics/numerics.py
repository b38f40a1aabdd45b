"""Numerical methods: the root and the minimum of a function, isotonic regression, non-negative least squares."""

import math
from collections.abc import Callable

import numpy as np

from foretell.metrics.arrays import Bools, Floats, Ints

GOLDEN = (math.sqrt(5) - 1) / 2


def root(function: Callable[[float], float], low: float, high: float, width: float = 1e-12) -> float:
    """Return x with function(x) = 0, by false position with halved weights (Illinois; Dowell & Jarratt 1971).

    The function must be continuous, and its values at `low` and `high` must have different signs. Every third step
    halves the interval, which ends when it is narrower than `width` or cannot be divided.

    >>> round(root(lambda x: x * x - 2, 0.0, 2.0), 9)
    1.414213562
    """
    at_low, at_high = function(low), function(high)
    if at_low * at_high > 0:
        raise ValueError(f"the function has the same sign at {low} and {high}")
    kept, step = 0, 0
    while abs(high - low) > width and at_low and at_high:
        step += 1
        x = (low + high) / 2 if step % 3 == 0 else (low * at_high - high * at_low) / (at_high - at_low)
        if x in (low, high):
            x = (low + high) / 2
        if x in (low, high):
            break
        value = function(x)
        if value * at_high > 0:
            high, at_high = x, value
            at_low = at_low / 2 if kept == 1 else at_low
            kept = 1
        else:
            low, at_low = x, value
            at_high = at_high / 2 if kept == -1 else at_high
            kept = -1
    return low if abs(at_low) < abs(at_high) else high


def minimum(function: Callable[[float], float], low: float, high: float, width: float = 1e-9) -> float:
    """Return where a function with one valley between `low` and `high` is lowest (golden section; Kiefer 1953).

    >>> round(minimum(lambda x: (x - 1) ** 2, -3.0, 4.0), 6)
    1.0
    """
    inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
    value = [function(x) for x in inner]
    while high - low > width:
        if value[0] < value[1]:
            high = inner[1]
            inner, value = [high - GOLDEN * (high - low), inner[0]], [0.0, value[0]]
            value[0] = function(inner[0])
        else:
            low = inner[0]
            inner, value = [inner[1], low + GOLDEN * (high - low)], [value[1], 0.0]
            value[1] = function(inner[1])
    return (low + high) / 2


def isotonic(values: Floats, weight: Floats) -> tuple[Floats, Ints]:
    """Return the nearest non-decreasing numbers, and where each block of pooled neighbours starts (Ayer et al. 1955).

    >>> fitted, first = isotonic(np.array([1.0, 3.0, 2.0, 4.0]), np.ones(4))
    >>> fitted.tolist(), first.tolist()
    ([1.0, 2.5, 2.5, 4.0], [0, 1, 3])
    """
    means: list[float] = []
    weights: list[float] = []
    first: list[int] = []
    for start, (mean, own) in enumerate(zip(values.tolist(), weight.tolist(), strict=True)):
        while means and means[-1] >= mean:
            together = weights[-1] + own
            mean = (weights.pop() * means.pop() + own * mean) / together
            own, start = together, first.pop()
        means.append(mean)
        weights.append(own)
        first.append(start)
    starts = np.array(first, np.int64)
    return np.repeat(np.array(means, np.float64), np.diff(starts, append=len(values))), starts


def largest_decrease(p: Floats) -> float:
    """Largest decrease along a sequence that should not decrease."""
    return float(np.max(np.maximum.accumulate(p) - p))


def nonnegative_least_squares(matrix: Floats, target: Floats) -> Floats:
    """Return the x ≥ 0 with the least |matrix·x − target|² (Lawson & Hanson 1974, chapter 23).

    >>> nonnegative_least_squares(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, -1.0])).tolist()
    [2.0, 0.0]
    """
    x = np.zeros(matrix.shape[1])
    free, useless = np.zeros(len(x), bool), np.zeros(len(x), bool)
    rounding = 10 * float(np.finfo(np.float64).eps) * float(np.abs(matrix).sum(axis=0).max()) * max(matrix.shape)
    while True:
        slope = np.where(free | useless, -np.inf, matrix.T @ (target - matrix @ x))
        if slope.max() <= rounding:
            return x
        added = int(slope.argmax())
        free[added] = True
        best = _least_squares(matrix, target, free)
        if best[added] <= 0:
            # Only rounding made it look useful.
            free[added], useless[added] = False, True
            continue
        useless[:] = False
        while (negative := free & (best <= 0)).any():
            x += (best - x) * float((x[negative] / (x[negative] - best[negative])).min())
            free &= x > rounding
            x[~free] = 0.0
            best = _least_squares(matrix, target, free)
        x = best


def _least_squares(matrix: Floats, target: Floats, free: Bools) -> Floats:
    """Return the unbounded solution in which all but the free numbers are zero."""
    x = np.zeros(len(free))
    x[free] = np.linalg.lstsq(matrix[:, free], target)[0]
    return x
