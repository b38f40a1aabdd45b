"""Bootstrap intervals for any statistic that is a function of weighted sums over rows, and intervals of shares.

A mean is Σwx/Σw, a Brier index is a function of that mean: such statistics are recomputed on each resample
from cluster sums, so thousands of draws cost one matrix product.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Literal

import numpy as np
import numpy.typing as npt

from foretell.metrics.arrays import Bools, Floats, as_floats
from foretell.metrics.calibration import wilson_interval
from foretell.metrics.clusters import ResamplingDesign, ResamplingStratum, cluster_warning, draw_sums

IntervalKind = Literal["percentile", "symmetric"]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A number with its uncertainty; `warning` says if the uncertainty itself is doubtful."""

    estimate: float
    low: float
    high: float
    se: float
    """Standard deviation of the replicates."""
    n_clusters: int
    """Number of independent units that were resampled."""
    draws: int
    """Number of replicates that could be computed."""
    warning: str | None = None


def percentile_interval(replicates: Floats, level: float = 0.95) -> tuple[float, float]:
    """The (1−level)/2 and (1+level)/2 quantiles of the replicates (Efron 1979)."""
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def symmetric_interval(estimate: float, replicates: Floats, level: float = 0.95) -> tuple[float, float, float]:
    """Return the interval estimate ± h and the bootstrap mass it holds.

    With B replicates and deviations d_b = |θ*_b − θ̂| in ascending order, h = d_(k) for k = ⌈level·B⌉; the mass reached
    is k/B (Prophet Arena 2025, Appendix C.7, Algorithm 1).
    """
    deviations = np.sort(np.abs(replicates - estimate))
    # 0.55 * 100 is 55.00000000000001 in floating point: without the rounding k would be one too many.
    k = max(1, math.ceil(round(level * len(deviations), 9)))
    h = float(deviations[k - 1])
    return estimate - h, estimate + h, k / len(deviations)


def interval_bounds(
    estimate: float, replicates: Floats, *, kind: IntervalKind = "percentile", level: float = 0.95
) -> tuple[float, float]:
    """Lower and upper bounds of an interval of the given kind; NaN without replicates."""
    if not len(replicates):
        return math.nan, math.nan
    if kind == "percentile":
        return percentile_interval(replicates, level)
    return symmetric_interval(estimate, replicates, level)[:2]


def expanded_level(level: float, n_clusters: int) -> float:
    """The level at which percentiles of n resampled clusters reach `level`: the expanded percentile interval.

    Resampling n units understates their spread by √((n − 1)/n) and ignores Student's t. The tail is therefore taken at
    Φ(−√(n/(n − 1))·t), where t is the quantile of Student's t with n − 1 degrees of freedom (Hesterberg 2015).

    >>> round(expanded_level(0.95, 12), 4), round(expanded_level(0.95, 100), 4)
    (0.9785, 0.9539)
    """
    from scipy.special import ndtr, stdtrit

    if n_clusters < 2:
        return level
    t = -float(stdtrit(n_clusters - 1, (1 - level) / 2))
    return 1 - 2 * float(ndtr(-math.sqrt(n_clusters / (n_clusters - 1)) * t))


def expanded_p(p: float, n_clusters: int) -> float:
    """Expand a two-sided p-value of n resampled clusters likewise: below 1 − level if the interval excludes 0.

    >>> round(expanded_p(1 - expanded_level(0.95, 12), 12), 6)
    0.05
    """
    from scipy.special import ndtri, stdtr

    if n_clusters < 2 or not 0 < p < 1:
        return p
    z = -float(ndtri(p / 2)) / math.sqrt(n_clusters / (n_clusters - 1))
    return 2 * float(stdtr(n_clusters - 1, -z))


Bounds = tuple[float, float]
"""The lowest and highest possible values of a statistic."""
UNBOUNDED: Bounds = (-math.inf, math.inf)


def student_margin(se: float, level: float, n_clusters: int) -> float:
    """Margin to which an interval must extend if percentiles of too few clusters are too short, else 0.

    No resample lies outside the range of its clusters, and the range of n values contains the centre of a symmetric
    distribution with probability 1 − 2^(1 − n): below six clusters that is less than 95 %, however extreme the
    percentiles. Student's t has no such limit.

    >>> student_margin(1.0, 0.95, 6), round(student_margin(1.0, 0.95, 3), 2)
    (0.0, 5.27)
    """
    from scipy.special import stdtrit

    if n_clusters < 2 or 1 - 2.0 ** (1 - n_clusters) >= level:
        return 0.0
    return -float(stdtrit(n_clusters - 1, (1 - level) / 2)) * math.sqrt(n_clusters / (n_clusters - 1)) * se


def reach_out(low: float, high: float, estimate: float, margin: float, bounds: Bounds = UNBOUNDED) -> Bounds:
    """Widen an interval to `estimate ± margin`, but not beyond the bounds of the statistic."""
    if not margin > 0:
        return low, high
    return min(low, max(estimate - margin, bounds[0])), max(high, min(estimate + margin, bounds[1]))


Statistic = Callable[[Floats], Floats]
"""Takes an array (..., K) of sums and returns (...); K = 2 holds (Σ weight·score, Σ weight)."""


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """Bootstrap settings; the defaults are those of the papers (5,000 draws, 95 %)."""

    draws: int = 5000
    level: float = 0.95
    interval: IntervalKind = "percentile"
    seed: int = 0
    expanded: bool = False
    """Widen percentile intervals and p-values to correct for few clusters (see `expanded_level`)."""

    def __post_init__(self) -> None:
        """Reject settings that cannot give an interval."""
        if self.draws < 2:
            raise ValueError(f"draws must be at least 2, got {self.draws}")
        if not 0 < self.level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {self.level}")

    def rng(self, stream: int = 0) -> np.random.Generator:
        """Return the random generator of one stratum: the same seed and stream give the same draws."""
        return np.random.default_rng([self.seed, stream])


DEFAULT_RESAMPLING = Resampling()


def mean_from_sums(sums: Floats) -> Floats:
    """Weighted mean Σwx/Σw of sums (..., 2); NaN if no weight was drawn."""
    total, weight = sums[..., 0], sums[..., 1]
    return np.divide(total, weight, out=np.full(total.shape, np.nan), where=weight > 0)


def brier_index_from_sums(sums: Floats) -> Floats:
    """Brier index 100·(1 − √max(0, Σwb/Σw)) of sums of Brier scores (Kucinskas et al. 2026)."""
    return 100 * (1 - np.sqrt(np.maximum(0.0, mean_from_sums(sums))))


def bootstrap_sums(sums: Floats, from_sums: Statistic, resampling: Resampling = DEFAULT_RESAMPLING) -> Interval:
    """Interval of from_sums(Σ over clusters), resampling whole clusters (rows of `sums`, clusters × K)."""
    replicates = from_sums(draw_sums(sums, resampling.draws, resampling.rng()))
    total = sums.sum(axis=0)
    warning = cluster_warning(len(sums), 0.0, "")
    return summarise(float(from_sums(total)), replicates, resampling, n_clusters=len(sums), warning=warning)


def bootstrap_score(
    score: npt.ArrayLike,
    cluster: npt.ArrayLike | ResamplingDesign | None = None,
    *,
    statistic: Statistic = mean_from_sums,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Interval:
    """Interval of a population statistic of per-row scores, resampling clusters (labels, or a `ResamplingDesign`).

    `score` has one number per row, or K already weighted columns per row if the statistic takes K sums.
    """
    values = as_floats(score, "score")
    design = as_design(cluster)
    columns = design.columns(values)
    strata = design.strata(len(values))
    sums = [s.units.sums(columns[s.rows])[:, None, :] for s in strata]
    estimate, replicates = replicate(strata, sums, statistic, resampling)
    present = [np.ones(s.units.n, dtype=np.bool_) for s in strata]
    return summarise(
        float(estimate[0]),
        replicates[:, 0],
        resampling,
        n_clusters=sum(s.n_clusters(mask) for s, mask in zip(strata, present, strict=True)),
        warning=strata_warning(strata, present),
    )


def strata_warning(strata: Sequence[ResamplingStratum], present: Sequence[Bools]) -> str | None:
    """Return a warning if an interval from the units present is doubtful, else None."""
    return "; ".join(filter(None, (s.warning(mask) for s, mask in zip(strata, present, strict=True)))) or None


def as_design(cluster: npt.ArrayLike | ResamplingDesign | None) -> ResamplingDesign:
    """Return a `ResamplingDesign` unchanged; use labels as the clusters of a new one."""
    return cluster if isinstance(cluster, ResamplingDesign) else ResamplingDesign(cluster=cluster)


def replicate(
    strata: Sequence[ResamplingStratum], sums: Sequence[Floats], statistic: Statistic, resampling: Resampling
) -> tuple[Floats, Floats]:
    """Statistics of J columns, on the data (J) and on every draw (draws × J), averaged over strata.

    `sums[s]` is units × J × K. All columns of a stratum see the same resamples, which pairs them.
    """
    columns, width = sums[0].shape[1:]
    estimate = np.zeros(columns)
    drawn = np.zeros((resampling.draws, columns))
    for stream, (stratum, table) in enumerate(zip(strata, sums, strict=True)):
        flat = table.reshape(len(table), columns * width)
        resampled = stratum.draw(flat, resampling.draws, resampling.rng(stream))
        estimate += statistic(table.sum(axis=0))
        drawn += statistic(resampled.reshape(-1, columns, width))
    return estimate / len(strata), drawn / len(strata)


def summarise(
    estimate: float,
    replicates: Floats,
    resampling: Resampling,
    *,
    n_clusters: int,
    warning: str | None = None,
    bounds: Bounds = UNBOUNDED,
) -> Interval:
    """Build the `Interval` of an estimate and its replicates; draws without a value are left out and reported.

    Resampling a single cluster always returns that cluster, so the uncertainty is then unknown, not zero.
    """
    finite = replicates[np.isfinite(replicates)]
    lost = len(replicates) - len(finite)
    if lost:
        warning = "; ".join(filter(None, [warning, f"{lost} draws had no value"]))
    level = expanded_level(resampling.level, n_clusters) if resampling.expanded else resampling.level
    low, high = interval_bounds(estimate, finite, kind=resampling.interval, level=level)
    se = float(np.std(finite, ddof=1)) if len(finite) > 1 else float("nan")
    if resampling.expanded:
        margin = student_margin(se, resampling.level, n_clusters)
        low, high = reach_out(low, high, estimate, margin, bounds)
    if n_clusters < 2:
        low = high = se = float("nan")
    return Interval(
        estimate=estimate, low=low, high=high, se=se, n_clusters=n_clusters, draws=len(finite), warning=warning
    )


# Means and shares with their intervals, for the cells of a table.

DEFAULT_DRAWS = Resampling(draws=2000)


def share_interval(hits: int, of: int) -> Interval | None:
    """hits/of with the Wilson (1927) interval, which keeps a width at 0 and 1; None if `of` is 0.

    >>> found = share_interval(0, 20)
    >>> found.estimate, round(found.high, 3)
    (0.0, 0.161)
    """
    if not of:
        return None
    part = hits / of
    low, high = (float(end) for end in wilson_interval(part, of))
    se = (part * (1 - part) / of) ** 0.5
    return Interval(estimate=part, low=low, high=high, se=se, n_clusters=of, draws=0)


def mean_interval(
    values: Sequence[float], cluster: Sequence[str], resampling: Resampling = DEFAULT_DRAWS
) -> Interval | None:
    """The mean with an interval from resampling clusters; None if there are no values."""
    return bootstrap_score(list(values), list(cluster), resampling=resampling) if values else None


def rate_interval(
    values: Sequence[float], cluster: Sequence[str], resampling: Resampling = DEFAULT_DRAWS
) -> Interval | None:
    """The mean of zeros and ones, clusters resampled; if all are equal, Wilson's interval over clusters.

    Resampling identical values gives an interval of zero width, which would be overconfident.

    >>> found = rate_interval([1.0] * 20, [str(n // 2) for n in range(20)])
    >>> found.estimate, round(found.low, 3), found.n_clusters
    (1.0, 0.722, 10)
    """
    if len(set(values)) == 1 and values[0] in (0.0, 1.0):
        units = len(set(cluster))
        return share_interval(units if values[0] else 0, units)
    found = mean_interval(values, cluster, resampling)
    # Of a rate without an interval, as in a single cluster, it is still known that it is one.
    return replace(found, low=0.0, high=1.0) if found is not None and isnan(found.low) else found
