"""Intervals from bootstrap replicates: percentile, symmetric, and bias-corrected accelerated."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from foretell.evaluate.arrays import Floats

Kind = Literal["percentile", "symmetric", "bca"]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A number with its uncertainty; `warning` says when the uncertainty itself is in doubt."""

    estimate: float
    low: float
    high: float
    se: float
    """Standard deviation of the replicates."""
    n_clusters: int
    """Independent units that were resampled."""
    draws: int
    """Replicates that could be computed."""
    warning: str | None = None


def percentile_interval(replicates: Floats, level: float = 0.95) -> tuple[float, float]:
    """The (1−level)/2 and (1+level)/2 quantiles of the replicates (Efron 1979).

    >>> percentile_interval(np.arange(101.0), level=0.5)
    (25.0, 75.0)
    """
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def symmetric_interval(estimate: float, replicates: Floats, level: float = 0.95) -> tuple[float, float, float]:
    """Interval estimate ± h and the bootstrap mass it holds.

    With B replicates and deviations d_b = |θ*_b − θ̂| in ascending order, h = d_(k) for k = ⌈level·B⌉; the
    mass reached is k/B (Prophet Arena 2025, Appendix C.7, Algorithm 1).

    >>> symmetric_interval(0.0, np.array([-1.0, 2.0, 3.0, -4.0]), level=0.75)
    (-3.0, 3.0, 0.75)
    """
    deviations = np.sort(np.abs(replicates - estimate))
    # 0.55 * 100 is 55.00000000000001 in floating point: without the rounding k would be one too many.
    k = max(1, math.ceil(round(level * len(deviations), 9)))
    h = float(deviations[k - 1])
    return estimate - h, estimate + h, k / len(deviations)


def bca_interval(estimate: float, replicates: Floats, jackknife: Floats, level: float = 0.95) -> tuple[float, float]:
    """Bias-corrected and accelerated interval (Efron 1987).

    Quantiles Φ(z₀ + (z₀ + z_a)/(1 − a(z₀ + z_a))) of the replicates, where z₀ = Φ⁻¹(share of replicates below
    the estimate) and a = Σd³ / 6(Σd²)^{3/2}, d = mean − leave-one-cluster-out values (`jackknife`).

    >>> rng = np.random.default_rng(0)
    >>> x = rng.exponential(size=40)
    >>> replicates = rng.choice(x, (2000, 40)).mean(axis=1)
    >>> low, high = bca_interval(float(x.mean()), replicates, (x.sum() - x) / 39)
    >>> bool(high - x.mean() > x.mean() - low)
    True
    """
    from scipy.special import ndtr, ndtri

    below = (np.sum(replicates < estimate) + 0.5 * np.sum(replicates == estimate)) / len(replicates)
    if not 0 < below < 1:
        return percentile_interval(replicates, level)
    shift = float(ndtri(below))
    d = jackknife.mean() - jackknife
    spread = float(np.sum(d**2))
    acceleration = float(np.sum(d**3)) / (6 * spread**1.5) if spread > 0 else 0.0
    z = shift + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = np.quantile(replicates, ndtr(shift + z / (1 - acceleration * z)))
    return float(low), float(high)


def bounds(
    estimate: float,
    replicates: Floats,
    *,
    kind: Kind = "percentile",
    level: float = 0.95,
    jackknife: Floats | None = None,
) -> tuple[float, float]:
    """Low and high end of the interval of that kind; "bca" needs the leave-one-cluster-out values.

    >>> bounds(0.0, np.array([-1.0, 2.0, 3.0, -4.0]), kind="symmetric", level=0.75)
    (-3.0, 3.0)
    """
    if not len(replicates):
        return math.nan, math.nan
    if kind == "percentile":
        return percentile_interval(replicates, level)
    if kind == "symmetric":
        return symmetric_interval(estimate, replicates, level)[:2]
    if jackknife is None:
        raise ValueError('interval "bca" is only defined for one-way clusters without strata')
    return bca_interval(estimate, replicates, jackknife, level)
