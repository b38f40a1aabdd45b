"""Bootstrap intervals for any statistic that is a function of weighted sums over rows.

A mean is Σwx/Σw, a Brier index is a function of that mean: such statistics are recomputed on each resample
from cluster sums, so thousands of draws cost one matrix product.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, as_floats
from foretell.evaluate.clusters import caution
from foretell.evaluate.design import Design, Stratum
from foretell.evaluate.intervals import Interval, Kind, bounds
from foretell.evaluate.resample import draw_sums

Statistic = Callable[[Floats], Floats]
"""Takes an array (..., K) of sums and returns (...); K = 2 holds (Σ weight·score, Σ weight)."""


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """How to bootstrap; the defaults are those of the papers (5,000 draws, 95 %)."""

    draws: int = 5000
    level: float = 0.95
    interval: Kind = "percentile"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot give an interval."""
        if self.draws < 2:
            raise ValueError(f"draws must be at least 2, got {self.draws}")
        if not 0 < self.level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {self.level}")

    def rng(self, stream: int = 0) -> np.random.Generator:
        """The generator of one stratum: the same seed and stream give the same draws."""
        return np.random.default_rng([self.seed, stream])


PAPERS = Resampling()


def mean_from_sums(sums: Floats) -> Floats:
    """Weighted mean Σwx/Σw of sums (..., 2); NaN where no weight was drawn.

    >>> mean_from_sums(np.array([3.0, 4.0])).tolist()
    0.75
    """
    total, weight = sums[..., 0], sums[..., 1]
    return np.divide(total, weight, out=np.full(total.shape, np.nan), where=weight > 0)


def brier_index_from_sums(sums: Floats) -> Floats:
    """Brier index 100·(1 − √max(0, Σwb/Σw)) of sums of Brier scores (Kucinskas et al. 2026).

    >>> brier_index_from_sums(np.array([1.0, 4.0])).tolist()
    50.0
    """
    return 100 * (1 - np.sqrt(np.maximum(0.0, mean_from_sums(sums))))


def bootstrap_sums(sums: Floats, from_sums: Statistic, resampling: Resampling = PAPERS) -> Interval:
    """Interval of from_sums(Σ over clusters) when whole clusters (rows of `sums`, clusters × K) are resampled.

    >>> sums = np.array([[0.1, 1.0], [0.5, 2.0], [0.3, 1.0], [0.2, 2.0]])
    >>> round(bootstrap_sums(sums, mean_from_sums).estimate, 4)
    0.1833
    """
    replicates = from_sums(draw_sums(sums, resampling.draws, resampling.rng()))
    total = sums.sum(axis=0)
    jackknife = from_sums(total - sums) if resampling.interval == "bca" else None
    return summarise(
        float(from_sums(total)),
        replicates,
        resampling,
        n_clusters=len(sums),
        warning=caution(len(sums), 0.0, ""),
        jackknife=jackknife,
    )


def bootstrap_score(
    score: npt.ArrayLike,
    cluster: npt.ArrayLike | Design | None = None,
    *,
    statistic: Statistic = mean_from_sums,
    resampling: Resampling = PAPERS,
) -> Interval:
    """Interval of a population statistic of per-row scores, resampling clusters (labels, or a `Design`).

    `score` has one number per row, or K already weighted columns per row when the statistic takes K sums.

    >>> brier = [0.04, 0.09, 0.25, 0.01, 0.16, 0.36]
    >>> ci = bootstrap_score(brier, ["q1", "q1", "q2", "q3", "q4", "q4"], statistic=brier_index_from_sums)
    >>> round(ci.estimate, 2), ci.n_clusters
    (61.06, 4)
    """
    values = as_floats(score, "score")
    design = as_design(cluster)
    columns = design.columns(values)
    strata = design.strata(len(values))
    sums = [s.units.sums(columns[s.rows]) for s in strata]
    estimate, replicates = replicate(strata, [table[:, None, :] for table in sums], statistic, resampling)
    one_way = len(strata) == 1 and strata[0].margins is None
    present = [np.ones(s.units.n, dtype=np.bool_) for s in strata]
    told = [s.warning(mask) for s, mask in zip(strata, present, strict=True)]
    return summarise(
        float(estimate[0]),
        replicates[:, 0],
        resampling,
        n_clusters=sum(s.n_clusters(mask) for s, mask in zip(strata, present, strict=True)),
        warning="; ".join(filter(None, told)) or None,
        jackknife=statistic(sums[0].sum(axis=0) - sums[0]) if one_way else None,
    )


def as_design(cluster: npt.ArrayLike | Design | None) -> Design:
    """A `Design` as it is; labels as the clusters of one."""
    return cluster if isinstance(cluster, Design) else Design(cluster=cluster)


def replicate(
    strata: Sequence[Stratum], sums: Sequence[Floats], statistic: Statistic, resampling: Resampling
) -> tuple[Floats, Floats]:
    """Statistics of J columns, on the data (J) and on every draw (draws × J), as the mean over strata.

    `sums[s]` is units × J × K. All columns of a stratum see the same resamples, which is what pairs them.
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
    jackknife: Floats | None = None,
) -> Interval:
    """The `Interval` of an estimate and its replicates; draws without a value are left out and told."""
    finite = replicates[np.isfinite(replicates)]
    lost = len(replicates) - len(finite)
    if lost:
        warning = "; ".join(filter(None, [warning, f"{lost} draws had no value"]))
    low, high = bounds(estimate, finite, kind=resampling.interval, level=resampling.level, jackknife=jackknife)
    se = float(np.std(finite, ddof=1)) if len(finite) > 1 else float("nan")
    return Interval(
        estimate=estimate, low=low, high=high, se=se, n_clusters=n_clusters, draws=len(finite), warning=warning
    )
