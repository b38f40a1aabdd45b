"""From bootstrap replicates of a difference to p-values, stars and a `Comparison`."""

from dataclasses import dataclass

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.evaluate.intervals import Interval


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A difference first − second with its interval and p-values."""

    diff: float
    se: float
    low: float
    high: float
    p: float
    """One-sided, as in the papers: the share of draws on the other side of zero."""
    p_two_sided: float
    """Twice the smaller tail, with one draw added to each, so it is never zero."""
    stars: str
    """From `p`: *** below 0.001, ** below 0.01, * below 0.05."""
    n: int
    """Rows (or, from sums, clusters) that both methods answered."""
    n_clusters: int
    warning: str | None = None


def stars(p: float) -> str:
    """*** below 0.001, ** below 0.01, * below 0.05, else nothing (also for NaN).

    >>> [stars(p) for p in (0.0002, 0.004, 0.02, 0.3)]
    ['***', '**', '*', '']
    """
    return "*" * sum(p < bound for bound in (0.001, 0.01, 0.05))


def one_sided_p(diff: float, replicates: Floats) -> float:
    """Share of draws ≥ 0 when the difference is negative, ≤ 0 when it is positive (BLF 2026, G.2).

    >>> one_sided_p(1.0, np.array([2.0, 1.0, -0.5, 0.7]))
    0.25
    """
    if not len(replicates) or np.isnan(diff):
        return float("nan")
    return float(np.mean(replicates <= 0 if diff > 0 else replicates >= 0))


def two_sided_p(replicates: Floats) -> float:
    """Twice the smaller tail: min(1, 2·(1 + min(#{≤ 0}, #{≥ 0})) / (B + 1)) (Davison & Hinkley 1997, 4.2).

    >>> two_sided_p(np.array([2.0, 1.0, 0.5, 0.7]))
    0.4
    """
    if not len(replicates):
        return float("nan")
    tail = min(int(np.sum(replicates <= 0)), int(np.sum(replicates >= 0)))
    return min(1.0, 2 * (1 + tail) / (len(replicates) + 1))


def comparison_of(interval: Interval, replicates: Floats, n: int) -> Comparison:
    """The `Comparison` whose difference has that interval and those replicates (NaN draws are ignored)."""
    finite = replicates[np.isfinite(replicates)]
    p = one_sided_p(interval.estimate, finite)
    return Comparison(
        diff=interval.estimate,
        se=interval.se,
        low=interval.low,
        high=interval.high,
        p=p,
        p_two_sided=two_sided_p(finite),
        stars=stars(p),
        n=n,
        n_clusters=interval.n_clusters,
        warning=interval.warning,
    )
