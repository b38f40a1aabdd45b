"""The normal and Student's t distribution of one number, without scipy: its import takes longer than a small score."""

import math
from functools import lru_cache
from statistics import NormalDist

_NORMAL = NormalDist()
MOST_TERMS = 10_000
"""Terms of the continued fraction: about as many as the square root of the degrees of freedom are needed."""


def normal_below(z: float) -> float:
    """Return P(Z ≤ z).

    >>> round(normal_below(-1.96), 6)
    0.024998
    """
    return math.erfc(-z / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    """Return z with P(Z ≤ z) = p, for 0 < p < 1."""
    return _NORMAL.inv_cdf(p)


def student_below(t: float, freedom: float) -> float:
    """Return P(T ≤ t) with these degrees of freedom, which need not be an integer.

    >>> round(student_below(-2.228139, 10), 6), student_below(0.0, 3), student_below(-math.inf, 3)
    (0.025, 0.5, 0.0)
    """
    if t > 0:
        return 1 - student_below(-t, freedom)
    return 0.0 if math.isinf(t) else _beta_below(freedom, t * t) / 2


@lru_cache(maxsize=1024)
def student_quantile(p: float, freedom: float) -> float:
    """Return t with P(T ≤ t) = p, for 0 < p < 1.

    >>> round(student_quantile(0.025, 10), 6), round(student_quantile(0.975, 1), 6)
    (-2.228139, 12.706205)
    """
    if p > 0.5:
        return -student_quantile(1 - p, freedom)
    height = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    t, step = normal_quantile(p), math.inf
    # The tail is convex and heavier than the normal one, so Newton's steps from there go down and never too far.
    while step > -t * 1e-15:
        density = height * (1 + t * t / freedom) ** (-(freedom + 1) / 2)
        step = (student_below(t, freedom) - p) / density
        t -= max(step, 0.0)
    return t


def _beta_below(freedom: float, square: float) -> float:
    """Return the regularised incomplete beta function I_x(ν/2, 1/2) at x = ν/(ν + t²), which is P(|T| ≥ |t|)."""
    a, b = freedom / 2, 0.5
    x, rest = freedom / (freedom + square), square / (freedom + square)
    if rest == 0:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest))
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, rest) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function by Lentz's method (DLMF 8.17.22)."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / (1 + even * d), 1 + even / c
        value *= d * c
        d, c = 1 / (1 + odd * d), 1 + odd / c
        value *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return value
