"""Bootstrap intervals for any statistic that is a function of weighted sums over rows, and intervals of shares.

A mean is Σwx/Σw, a Brier index is a function of that mean: such statistics are recomputed on each resample
from cluster sums, so thousands of draws cost one matrix product.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import isnan
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, as_floats
from foretell.metrics.calibration import wilson_interval
from foretell.metrics.clusters import (
    Clusters,
    ResamplingDesign,
    ResamplingStratum,
    effective_clusters,
    resample_counts,
)
from foretell.metrics.probability_functions import normal_below, normal_quantile, student_below, student_quantile

IntervalKind = Literal["percentile", "symmetric"]


@frozen
class Interval:
    """A number with its uncertainty; `warning` is set if the uncertainty itself is doubtful."""

    estimate: float
    low: float
    high: float
    se: float
    """Standard deviation of the replicates."""
    n_clusters: int
    """Number of clusters of related rows; of two ways of clustering, that of the way with fewer."""
    draws: int
    """Number of replicates that could be computed."""
    warning: str | None = None
    n_effective: int | None = None
    """Number of clusters that the uncertainty rests on, if some count for less (see `effective_clusters`)."""

    def times(self, factor: float) -> "Interval":
        """Scale the number to another unit."""
        low, high = sorted((factor * self.low, factor * self.high))
        return replace(self, estimate=factor * self.estimate, low=low, high=high, se=abs(factor) * self.se)


def percentile_interval(replicates: Floats, level: float = 0.95) -> tuple[float, float]:
    """The (1−level)/2 and (1+level)/2 quantiles of the replicates (Efron 1979)."""
    rising = np.sort(replicates)
    low, high = (_quantile(rising, share) for share in ((1 - level) / 2, (1 + level) / 2))
    return low, high


def _quantile(rising: Floats, share: float) -> float:
    """Return a quantile of sorted values as `np.quantile` does, but without its checks, which are slow."""
    place = share * (len(rising) - 1)
    at = min(int(place), len(rising) - 2) if len(rising) > 1 else 0
    low, high, part = float(rising[at]), float(rising[min(at + 1, len(rising) - 1)]), place - at
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)


def symmetric_interval(estimate: float, replicates: Floats, level: float = 0.95) -> tuple[float, float, float]:
    """Return the interval estimate ± h and the bootstrap mass in it.

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


@lru_cache(maxsize=1024)
def expanded_level(level: float, n_clusters: int) -> float:
    """The level at which percentiles of n resampled clusters reach `level`: the expanded percentile interval.

    Resampling n units understates their spread by √((n − 1)/n) and ignores Student's t. The tail is therefore taken at
    Φ(−√(n/(n − 1))·t), where t is the quantile of Student's t with n − 1 degrees of freedom (Hesterberg 2015).

    >>> round(expanded_level(0.95, 12), 4), round(expanded_level(0.95, 100), 4)
    (0.9785, 0.9539)
    """
    if n_clusters < 2:
        return level
    t = -student_quantile((1 - level) / 2, n_clusters - 1)
    return 1 - 2 * normal_below(-math.sqrt(n_clusters / (n_clusters - 1)) * t)


def expanded_p(p: float, n_clusters: int) -> float:
    """Expand a two-sided p-value of n resampled clusters in the same way: below 1 − level if the interval excludes 0.

    >>> round(expanded_p(1 - expanded_level(0.95, 12), 12), 6)
    0.05
    """
    if n_clusters < 2 or not 0 < p < 1:
        return p
    z = -normal_quantile(p / 2) / math.sqrt(n_clusters / (n_clusters - 1))
    return 2 * student_below(-z, n_clusters - 1)


Bounds = tuple[float, float]
"""The lowest and highest possible values of a statistic."""
UNBOUNDED: Bounds = (-math.inf, math.inf)


def student_margin(se: float, level: float, n_clusters: int) -> float:
    """Margin of Student's t, to which every interval extends: percentiles alone are too short for few clusters.

    No resample lies outside the range of its clusters, and percentiles of skewed differences miss the truth too often:
    in 6 to 7 % of simulated worlds with 10 to 20 clusters, where 5 % are allowed (benchmarks/verdict_study.py).

    >>> round(student_margin(1.0, 0.95, 3), 2), round(student_margin(1.0, 0.95, 200), 2)
    (5.27, 1.98)
    """
    if n_clusters < 2:
        return 0.0
    return -student_quantile((1 - level) / 2, n_clusters - 1) * math.sqrt(n_clusters / (n_clusters - 1)) * se


def reach_out(low: float, high: float, estimate: float, margin: float, bounds: Bounds = UNBOUNDED) -> Bounds:
    """Widen an interval to `estimate ± margin`, but not beyond the bounds of the statistic."""
    if not margin > 0:
        return low, high
    return min(low, max(estimate - margin, bounds[0])), max(high, min(estimate + margin, bounds[1]))


Statistic = Callable[[Floats], Floats]
"""Takes an array (..., K) of sums and returns (...); for K = 2 they are (Σ weight·score, Σ weight)."""


@frozen
class Resampling:
    """Bootstrap settings. Intervals and p-values are always corrected for few clusters (see `expanded_level`)."""

    draws: int = 2000
    level: float = 0.95
    interval: IntervalKind = "percentile"
    seed: int = 0

    def __post_init__(self) -> None:
        """Reject settings that cannot give an interval."""
        if self.draws < 2:
            raise ValueError(f"draws must be at least 2, got {self.draws}")
        if not 0 < self.level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {self.level}")

    def rng(self, stream: int = 0) -> "np.random.Generator":
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


CACHED_COUNTS = 1 << 21
"""Largest number of counts (draws × units) that are kept for other tables with the same number of units (8 MB)."""
FEW_UNITS = 128
"""Largest number of units whose sums are computed in double precision."""
MARGIN_STREAM = 1 << 16
"""Offset between the random streams of the ways of clustering of one stratum, whose draws must be independent."""


def resample_units(sums: Floats, resampling: Resampling, stream: int = 0) -> Floats:
    """Sums over resampled units (draws × columns), from the sums of each unit (units × columns).

    Each resample takes as many units as there are (Efron 1979; clusters as in Davison & Hinkley 1997, 3.8).
    """
    n, mean = len(sums), sums.mean(axis=0)
    # Many units are multiplied in single precision, which takes half the time.
    deviations = (sums - mean).astype(np.float64 if n <= FEW_UNITS else np.float32)
    columns = [tuple(column) for column in deviations.T.tolist()]
    place = {column: at for at, column in enumerate(sorted(set(columns)))}  # `np.unique` takes 3 to 6 times as long.
    distinct = np.array(list(place), deviations.dtype).T
    # Equal columns get equal results, although the product may add in another order in another column.
    return _resampled(distinct, resampling, stream)[:, [place[column] for column in columns]] + n * mean


def _resampled(deviations: npt.NDArray[np.floating[Any]], resampling: Resampling, stream: int) -> Floats:
    n = len(deviations)
    if n * resampling.draws <= CACHED_COUNTS:
        return _cached_counts(n, resampling.draws, resampling.seed, stream, n <= FEW_UNITS) @ deviations
    shape = (resampling.draws, deviations.shape[1])
    out, rng, step = np.empty(shape), resampling.rng(stream), max(1, CACHED_COUNTS // n)
    for start in range(0, resampling.draws, step):
        rows = slice(start, min(resampling.draws, start + step))
        out[rows] = resample_counts(n, rows.stop - start, rng).astype(deviations.dtype) @ deviations
    return out


@lru_cache(maxsize=16)
def _cached_counts(n: int, draws: int, seed: int, stream: int, double: bool) -> npt.NDArray[np.floating[Any]]:
    counts = resample_counts(n, draws, Resampling(draws=draws, seed=seed).rng(stream))
    return counts if double else counts.astype(np.float32)


def two_way_replicates(estimate: Floats, first: Floats, second: Floats, cells: Floats) -> Floats:
    """Replicates whose variance is that of both ways minus that of their cells (Cameron, Gelbach & Miller 2011).

    They are those of the way that varies more, widened around the estimate and never narrowed.
    """
    spread = [finite_variance(replicates) for replicates in (first, second, cells)]
    wider, most = np.where(spread[0] >= spread[1], first, second), np.maximum(spread[0], spread[1])
    share = np.divide(spread[0] + spread[1] - spread[2], most, out=np.ones_like(most), where=most > 0)
    scale = np.sqrt(np.maximum(1.0, share))
    return estimate + (wider - estimate) * scale


def finite_variance(replicates: Floats) -> Floats:
    """Variance of every column, ignoring draws without a value; 0 if there are none."""
    known = np.isfinite(replicates)
    if len(replicates) and known.all():
        return ((replicates - replicates.sum(axis=0) / len(replicates)) ** 2).sum(axis=0) / len(replicates)
    n = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, replicates, 0.0).sum(axis=0) / n
    return (np.where(known, replicates - mean, 0.0) ** 2).sum(axis=0) / n


@frozen
class StratumStatistics:
    """J statistics of one stratum: on the data (J), and on every draw (draws × J) of each way of resampling it."""

    stratum: ResamplingStratum
    estimate: Floats
    ways: tuple[Floats, ...]
    """One array of replicates; of two crossed ways of clustering, those of both and of their cells."""

    @classmethod
    def of(
        cls, stratum: ResamplingStratum, columns: Floats, statistic: Statistic, resampling: Resampling
    ) -> "StratumStatistics":
        """Compute the statistics of the rows of a stratum, whose columns are rows × J × K."""

        def drawn(partition: Clusters, way: int) -> Floats:
            # One product per statistic, because the last bits of a product depend on its width.
            sums = (partition.sums(columns[:, j]) for j in range(columns.shape[1]))
            return np.stack(
                [resample_units(column, resampling, stratum.stream + MARGIN_STREAM * way) for column in sums], axis=1
            )

        return cls(
            stratum=stratum,
            estimate=statistic(columns.sum(axis=0)),
            ways=tuple(statistic(drawn(partition, way)) for way, partition in enumerate(stratum.drawn)),
        )

    def map(self, change: Callable[[Floats], Floats]) -> "StratumStatistics":
        """Return other statistics, computed from these on the data and on every draw."""
        return replace(self, estimate=change(self.estimate), ways=tuple(map(change, self.ways)))

    @property
    def replicates(self) -> Floats:
        """The replicates, whose spread includes both ways of clustering."""
        return self.ways[0] if len(self.ways) == 1 else two_way_replicates(self.estimate, *self.ways)


@frozen
class ClusterSupport:
    """The clusters behind a number."""

    n_clusters: int
    """Number of clusters of related rows; of two ways of clustering, that of the way with fewer."""
    n_effective: int
    """Number of clusters that the uncertainty rests on (see `effective_clusters`)."""
    warning: str | None = None


@frozen
class Replicates:
    """J statistics, averaged over strata, with their replicates and the clusters behind them."""

    estimate: Floats
    drawn: Floats
    """Replicates, draws × J."""
    support: tuple[ClusterSupport, ...]

    @classmethod
    def of(cls, parts: Sequence[StratumStatistics]) -> "Replicates":
        """Average over strata, which are resampled independently."""
        drawn = [part.replicates for part in parts]
        # A single stratum counts with all its clusters, whatever its variance.
        variances = (
            np.stack([finite_variance(part) for part in drawn]) if len(drawn) > 1 else np.ones((1, drawn[0].shape[1]))
        )
        counts = [part.stratum.n_clusters for part in parts]
        warning = "; ".join(filter(None, (part.stratum.warning for part in parts))) or None
        return cls(
            estimate=np.mean([part.estimate for part in parts], axis=0),
            drawn=np.mean(drawn, axis=0) if len(drawn) > 1 else drawn[0],
            support=tuple(
                ClusterSupport(n_clusters=sum(counts), n_effective=effective_clusters(counts, column), warning=warning)
                for column in variances.T.tolist()
            ),
        )

    def interval(self, column: int, resampling: Resampling, bounds: Bounds = UNBOUNDED) -> Interval:
        """Return one statistic with its interval."""
        return summarise(float(self.estimate[column]), self.drawn[:, column], self.support[column], resampling, bounds)

    def intervals(self, resampling: Resampling, bounds: Bounds = UNBOUNDED) -> list[Interval]:
        """Return every statistic with its interval."""
        return [self.interval(column, resampling, bounds) for column in range(len(self.estimate))]


def bootstrap_sums(sums: Floats, from_sums: Statistic, resampling: Resampling = DEFAULT_RESAMPLING) -> Interval:
    """Interval of from_sums(Σ over clusters), resampling whole clusters (rows of `sums`, clusters × K)."""
    return bootstrap_score(sums, statistic=from_sums, resampling=resampling)


def bootstrap_score(
    score: npt.ArrayLike,
    cluster: npt.ArrayLike | ResamplingDesign | None = None,
    *,
    statistic: Statistic = mean_from_sums,
    resampling: Resampling = DEFAULT_RESAMPLING,
    bounds: Bounds = UNBOUNDED,
) -> Interval:
    """Interval of a population statistic of per-row scores, resampling clusters (labels, or a `ResamplingDesign`).

    `score` has one number per row, or K already weighted columns per row if the statistic takes K sums. `bounds` are
    those of the statistic.
    """
    values = as_floats(score, "score")
    design = as_design(cluster)
    columns = design.columns(values)[:, None, :]
    parts = [
        StratumStatistics.of(stratum, stratum.take(columns), statistic, resampling)
        for stratum in design.strata(len(values))
    ]
    return Replicates.of(parts).interval(0, resampling, bounds)


def as_design(cluster: npt.ArrayLike | ResamplingDesign | None) -> ResamplingDesign:
    """Return a `ResamplingDesign` unchanged; use labels as the clusters of a new one."""
    return cluster if isinstance(cluster, ResamplingDesign) else ResamplingDesign(cluster=cluster)


def summarise(
    estimate: float, replicates: Floats, support: ClusterSupport, resampling: Resampling, bounds: Bounds = UNBOUNDED
) -> Interval:
    """Build the `Interval` of an estimate and its replicates; draws without a value are left out and reported.

    Resampling a single cluster always returns that cluster, so the uncertainty is then unknown, not zero.
    """
    n, warning = support.n_effective, support.warning
    finite = replicates[np.isfinite(replicates)]
    lost = len(replicates) - len(finite)
    if lost:
        warning = "; ".join(filter(None, [warning, f"{lost} draws had no value"]))
    level = expanded_level(resampling.level, n)
    low, high = interval_bounds(estimate, finite, kind=resampling.interval, level=level)
    se = float(np.std(finite, ddof=1)) if len(finite) > 1 else float("nan")
    low, high = reach_out(low, high, estimate, student_margin(se, resampling.level, n), bounds)
    # Draws are in single precision: a share of 1 may come out a little larger.
    low, high = max(low, bounds[0]), min(high, bounds[1])
    if n < 2:
        low = high = se = float("nan")
    return Interval(
        estimate=estimate,
        low=low,
        high=high,
        se=se,
        n_clusters=support.n_clusters,
        n_effective=n,
        draws=len(finite),
        warning=warning,
    )


# Means and shares with their intervals, for tables.


def share_interval(hits: int, of: int) -> Interval | None:
    """hits/of with the Wilson (1927) interval, which keeps a width at 0 and 1; None if `of` is 0.

    >>> interval = share_interval(0, 20)
    >>> interval.estimate, round(interval.high, 3)
    (0.0, 0.161)
    """
    if not of:
        return None
    part = hits / of
    low, high = (float(end) for end in wilson_interval(part, of))
    se = (part * (1 - part) / of) ** 0.5
    return Interval(estimate=part, low=low, high=high, se=se, n_clusters=of, draws=0)


def mean_interval(
    values: Sequence[float], cluster: Sequence[str], resampling: Resampling = DEFAULT_RESAMPLING
) -> Interval | None:
    """The mean with an interval from resampling clusters; None if there are no values."""
    return bootstrap_score(list(values), list(cluster), resampling=resampling) if values else None


def rate_interval(
    values: Sequence[float], cluster: Sequence[str], resampling: Resampling = DEFAULT_RESAMPLING
) -> Interval | None:
    """The mean of zeros and ones, clusters resampled; if all are equal, Wilson's interval over clusters.

    Resampling identical values gives an interval of zero width, which would be overconfident.

    >>> interval = rate_interval([1.0] * 20, [str(n // 2) for n in range(20)])
    >>> interval.estimate, round(interval.low, 3), interval.n_clusters
    (1.0, 0.722, 10)
    """
    if len(set(values)) == 1 and values[0] in (0.0, 1.0):
        units = len(set(cluster))
        return share_interval(units if values[0] else 0, units)
    rate = bootstrap_score(list(values), list(cluster), resampling=resampling, bounds=(0.0, 1.0)) if values else None
    # A rate lies between 0 and 1 even if there is no interval, as for a single cluster.
    return replace(rate, low=0.0, high=1.0) if rate is not None and isnan(rate.low) else rate
