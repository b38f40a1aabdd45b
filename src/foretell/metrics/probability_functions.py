"""Distribution functions and quantiles of one number, in plain Python.

They need neither numpy nor scipy, whose import takes longer than a small score. Tests compare them with scipy.
"""

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
    total = freedom + t * t
    return 0.0 if math.isinf(t) else beta_below(freedom / 2, 0.5, freedom / total, t * t / total) / 2


@lru_cache(maxsize=1024)
def student_quantile(p: float, freedom: float) -> float:
    """Return t with P(T ≤ t) = p, for 0 < p < 1.

    >>> round(student_quantile(0.025, 10), 6), round(student_quantile(0.975, 1), 6)
    (-2.228139, 12.706205)
    """
    if p > 0.5:
        return -student_quantile(1 - p, freedom)
    p, freedom = float(p), float(freedom)  # A result of NumPy's type would be cached for equal floats.
    height = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    t, step = normal_quantile(p), math.inf
    # The tail is convex and heavier than the normal one, so Newton's steps from there go down and never too far.
    while step > -t * 1e-15:
        density = height * (1 + t * t / freedom) ** (-(freedom + 1) / 2)
        step = (student_below(t, freedom) - p) / density
        t -= max(step, 0.0)
    return t


def noncentral_student_below(t: float, freedom: float, shift: float) -> float:
    """Return P(T ≤ t) of the noncentral t distribution with noncentrality `shift` (Lenth 1989, algorithm AS 243).

    >>> round(noncentral_student_below(2.0, 10, 1.0), 6), round(noncentral_student_below(-1.0, 10, 1.0), 6)
    (0.807612, 0.026802)
    """
    if t < 0:
        return 1 - noncentral_student_below(-t, freedom, -shift)
    rate, square = shift * shift / 2, t * t
    x, rest, b = square / (freedom + square), freedom / (freedom + square), freedom / 2
    # A square may be too small or too large for a float.
    if x == 0 or rate == 0:
        return normal_below(-shift) if x == 0 else student_below(t, freedom)
    if not rest > 0:
        return 1.0
    # Poisson weights further from their centre are below 1e-20.
    first = max(0, math.floor(rate - 10 * math.sqrt(rate) - 10))
    last = math.ceil(rate + 10 * math.sqrt(rate) + 40)
    total, betas = 0.0, [beta_below(last + half, b, x, rest) for half in (0.5, 1.0)]
    for j in range(last, first - 1, -1):
        weight = j * math.log(rate) - rate
        total += math.exp(weight - math.lgamma(j + 1)) * betas[0]
        total += math.copysign(math.exp(weight + math.log(rate) / 2 - math.lgamma(j + 1.5)), shift) * betas[1]
        # I_x(a − 1, b) = I_x(a, b) + x^(a − 1)·(1 − x)^b / ((a − 1)·B(a − 1, b)), DLMF 8.17.20.
        for place, a in enumerate((j - 0.5, float(j))):
            if a > 0:
                betas[place] += math.exp(_log_beta_front(a, b, x, rest)) / a
    return min(1.0, max(0.0, normal_below(-shift) + total / 2))


def beta_below(a: float, b: float, x: float, rest: float | None = None) -> float:
    """Return the regularised incomplete beta function I_x(a, b); `rest` is 1 − x where that is known more exactly.

    >>> round(beta_below(2, 3, 0.4), 6), beta_below(2, 3, 0.0), beta_below(2, 3, 1.0)
    (0.5248, 0.0, 1.0)
    """
    rest = 1 - x if rest is None else rest
    if x == 0 or rest == 0:
        return 0.0 if x == 0 else 1.0
    front = math.exp(_log_beta_front(a, b, x, rest))
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, rest) / b


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return x with I_x(a, b) = p, for 0 < p < 1, by halving the interval.

    >>> round(beta_quantile(0.5248, 2, 3), 6)
    0.4
    """
    low, high = 0.0, 1.0
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        low, high = (middle, high) if beta_below(a, b, middle) < p else (low, middle)


def binomial_below(k: int, n: int, p: float) -> float:
    """Return P(X ≤ k) of a binomial distribution, for 0 ≤ k < n.

    >>> round(binomial_below(1, 4, 0.5), 6)
    0.3125
    """
    return beta_below(n - k, k + 1, 1 - p, p)


def poisson_below(k: int, mean: float) -> float:
    """Return P(X ≤ k) of a Poisson distribution, for k ≥ 0.

    >>> round(poisson_below(2, 1.5), 6)
    0.808847
    """
    if mean == 0:
        return 1.0
    term, total = math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)), 0.0
    if k < mean:
        # Terms fall from k down to 0.
        while term > total * 1e-17 and k >= 0:
            total, term, k = total + term, term * k / mean, k - 1
        return total
    while True:
        k += 1
        term *= mean / k
        if term <= total * 1e-17:
            return 1 - total
        total += term


def _log_beta_front(a: float, b: float, x: float, rest: float) -> float:
    """Return the logarithm of x^a·(1 − x)^b / B(a, b)."""
    return math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)


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
