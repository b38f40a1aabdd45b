"""Three kinds of noise on what a grounder says (Analytica 2026, section 5.3), and what noise does to an answer."""

from collections.abc import Callable, Mapping

import numpy as np

from foretell.evaluate.arrays import Floats

Disturb = Callable[[Floats, float, np.random.Generator], Floats]


def normal(p: Floats, ratio: float, rng: np.random.Generator) -> Floats:
    """The chance plus U(0, ratio), at most 1: the paper's "normal" noise, which is not normal and only ever adds."""
    return np.minimum(p + rng.uniform(0, ratio, p.shape), 1.0)


def uncertain(p: Floats, ratio: float, rng: np.random.Generator) -> Floats:
    """With chance `ratio` any number, U(0, 1), in place of p."""
    hit = rng.random(p.shape) < ratio
    return np.where(hit, rng.random(p.shape), p)


def reverse(p: Floats, ratio: float, rng: np.random.Generator) -> Floats:
    """With chance `ratio` the opposite, 1 − p."""
    return np.where(rng.random(p.shape) < ratio, 1 - p, p)


DISTURBANCES: Mapping[str, Disturb] = {"normal": normal, "uncertain": uncertain, "reverse": reverse}


def spoilt(before: Floats, after: Floats) -> float:
    """Share of the variance of the answers that noise has spoilt: 1 − r², r the correlation of before and after.

    It is what is left of the squared error after the best recalibration a + b·after, so that neither an answer that
    hardly moves because it hardly ever moves, nor one that is merely shifted, is taken for robust. NaN where all
    answers are the same.

    For any rule of ours the answer is linear in each leaf by itself. If leaves are independent, and so are their
    disturbances, with one correlation ρ between a leaf before and after, then |r| ≤ |ρ|, and a weighted sum of the
    leaves has r = ρ: no rule is spoilt less than a linear one. Proof: write the answer as Σ c_S·Π_{i∈S}(x_i − μ_i).
    The terms are uncorrelated, each keeps ρ^|S| of its correlation, and |ρ|^|S| ≤ |ρ|; the rest is Cauchy–Schwarz.

    >>> x = np.array([0.1, 0.4, 0.7, 0.8])
    >>> round(spoilt(x, 0.5 * x + 0.3), 9), round(spoilt(x, 1 - x), 9)
    (0.0, 0.0)
    """
    a, b = before - before.mean(), after - after.mean()
    size = float(a @ a) * float(b @ b)
    return 1 - float(a @ b) ** 2 / size if size > 0 else float("nan")


def moved(before: Floats, after: Floats) -> float:
    """Root mean square of how far the answers were moved."""
    return float(np.sqrt(np.mean((after - before) ** 2)))
