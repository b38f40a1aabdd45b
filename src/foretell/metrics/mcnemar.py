"""McNemar's test: do two methods get different questions right?"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foretell.metrics.arrays import Floats, Ints, reject, same_shape
from foretell.metrics.calibration import wilson_interval


@dataclass(frozen=True, kw_only=True)
class McNemarTest:
    """A 2 × 2 table of paired successes, its tests, and the difference of the success rates."""

    n: int
    both: int
    only_a: int
    only_b: int
    neither: int
    diff: float
    """Accuracy of a − accuracy of b = (only_a − only_b)/n."""
    low: float
    high: float
    p: float
    """Exact two-sided binomial test."""
    chi2: float
    """(|only_a − only_b| − 1)² / (only_a + only_b), with continuity correction."""
    p_chi2: float
    left_out: int = 0
    """Questions that both answered and that are not counted, because one of them took no side (a forecast of 0.5)."""


@dataclass(frozen=True, kw_only=True)
class McNemarMatrix:
    """McNemar's test of every pair of methods: row − column."""

    diff: Floats
    low: Floats
    high: Floats
    p: Floats
    n: Ints


def mcnemar(correct_a: npt.ArrayLike, correct_b: npt.ArrayLike, *, level: float = 0.95) -> McNemarTest:
    """McNemar's test (1947) of two methods on the same questions, right = 1 and wrong = 0 (NaN = unanswered).

    Under equal accuracy the discordant questions split like fair coin flips: exact p = 2·P(X ≤ min) for X ~ Bin(only_a
    + only_b, ½). The interval is Newcombe's (1998, method 10): Wilson intervals of the two rates, combined with their
    correlation. Unlike Wald's, it stays reasonable for small and lopsided tables.
    """
    a, b = _as_correct(correct_a, "correct_a"), _as_correct(correct_b, "correct_b")
    same_shape(correct_a=a, correct_b=b)
    common = ~(np.isnan(a) | np.isnan(b))
    if not common.any():
        raise ValueError("correct_a and correct_b have no question that both answered")
    a, b = a[common], b[common]
    both, only_a, only_b = int(a @ b), int(a @ (1 - b)), int((1 - a) @ b)
    return _from_table(both, only_a, only_b, len(a) - both - only_a - only_b, level)


def mcnemar_matrix(correct: npt.ArrayLike, *, level: float = 0.95) -> McNemarMatrix:
    """McNemar's test of every pair of columns of `correct` (questions × methods, NaN = unanswered).

    Each pair is tested on the questions both answered; a pair that shares none is NaN.
    """
    table = _as_correct(correct, "correct")
    if table.ndim != 2:
        raise ValueError(f"correct must be questions × methods, it has shape {table.shape}")
    answered = (~np.isnan(table)).astype(np.float64)
    right = np.nan_to_num(table)
    n, both = (answered.T @ answered).astype(np.int64), (right.T @ right).astype(np.int64)
    only = (right.T @ (answered - right)).astype(np.int64)
    diff, low, high, p = (np.full(n.shape, np.nan) for _ in range(4))
    for i, j in np.argwhere(n > 0):
        neither = int(n[i, j] - both[i, j] - only[i, j] - only[j, i])
        one = _from_table(int(both[i, j]), int(only[i, j]), int(only[j, i]), neither, level)
        diff[i, j], low[i, j], high[i, j], p[i, j] = one.diff, one.low, one.high, one.p
    return McNemarMatrix(diff=diff, low=low, high=high, p=p, n=n)


def _as_correct(values: npt.ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    reject(~np.isnan(array) & (array != 0) & (array != 1), array, name, "is neither 0, 1 nor NaN")
    return array


def _from_table(both: int, only_a: int, only_b: int, neither: int, level: float) -> McNemarTest:
    from scipy.special import bdtr, chdtrc

    n, discordant = both + only_a + only_b + neither, only_a + only_b
    exact, chi2 = 1.0, 0.0
    if discordant:
        exact = min(1.0, 2 * float(bdtr(min(only_a, only_b), discordant, 0.5)))
        chi2 = (max(0, abs(only_a - only_b) - 1)) ** 2 / discordant
    low, high = _newcombe_interval(both, only_a, only_b, neither, level)
    return McNemarTest(
        n=n,
        both=both,
        only_a=only_a,
        only_b=only_b,
        neither=neither,
        diff=(only_a - only_b) / n,
        low=low,
        high=high,
        p=exact,
        chi2=chi2,
        p_chi2=float(chdtrc(1, chi2)),
    )


def _newcombe_interval(both: int, only_a: int, only_b: int, neither: int, level: float) -> tuple[float, float]:
    """Square-and-add interval of the difference of paired proportions (Newcombe 1998, method 10)."""
    n = both + only_a + only_b + neither
    right_a, right_b = both + only_a, both + only_b
    rate_a, rate_b = right_a / n, right_b / n
    (low_a, low_b), (high_a, high_b) = wilson_interval([rate_a, rate_b], n, level)
    margins = right_a * (n - right_a) * right_b * (n - right_b)
    cross = both * neither - only_a * only_b
    # The continuity correction of φ applies to a positive association only, and never flips its sign.
    corrected = max(cross - n / 2, 0.0) if cross > 0 else cross
    phi = corrected / math.sqrt(margins) if margins else 0.0

    def reach(x: float, y: float) -> float:
        return math.sqrt(max(0.0, x * x - 2 * phi * x * y + y * y))

    diff = rate_a - rate_b
    return diff - reach(rate_a - low_a, high_b - rate_b), diff + reach(high_a - rate_a, rate_b - low_b)
