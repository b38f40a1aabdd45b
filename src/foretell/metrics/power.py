"""How many questions are needed to detect a gain, and which gain a number of questions can detect.

Two methods answer the same questions; the per-question differences have standard deviation `sd`, and by the design
effect, questions in one cluster (a series, a day) count for less than one each.
"""

import math

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, same_shape
from foretell.metrics.clusters import cross_clusters, factorise
from foretell.metrics.numerics import root
from foretell.metrics.probability_functions import noncentral_student_below, normal_quantile, student_quantile


@frozen
class PowerTarget:
    """The goal of a study: detect a true gain with probability `power` at level `alpha`."""

    power: float = 0.8
    alpha: float = 0.05
    two_sided: bool = True

    def __post_init__(self) -> None:
        """Reject levels that no study can reach."""
        if not (0 < self.alpha < 1 and self.alpha < self.power < 1):
            raise ValueError(f"need 0 < alpha < power < 1, got alpha {self.alpha} and power {self.power}")

    @property
    def tail(self) -> float:
        """Probability of a false alarm on the side of the gain."""
        return self.alpha / 2 if self.two_sided else self.alpha


DEFAULT_POWER_TARGET = PowerTarget()


def design_effect(icc: float, size: float, cv: float = 0.0) -> float:
    """Variance inflation 1 + ((1 + cv²)·size − 1)·icc of a mean over clusters (Kish 1965; Eldridge et al. 2006).

    `size` is the mean number of questions in a cluster, `cv` the coefficient of variation of that number.
    """
    return 1 + ((1 + cv**2) * size - 1) * icc


def paired_power(gain: float, sd: float, n: float, aim: PowerTarget = DEFAULT_POWER_TARGET) -> float:
    """Power of the paired t-test on n independent differences of mean `gain` and standard deviation `sd`.

    One minus the noncentral t distribution with n − 1 degrees of freedom and noncentrality √n·gain/sd, beyond the
    critical value (both of them if two-sided).
    """
    if not sd > 0:
        raise ValueError(f"sd must be positive, got {sd}")
    if not n > 1:
        raise ValueError(f"n must exceed 1, got {n}")
    df, shift = n - 1, math.sqrt(n) * abs(gain) / sd
    critical = student_quantile(1 - aim.tail, df)
    upper = 1 - noncentral_student_below(critical, df, shift)
    return upper + (noncentral_student_below(-critical, df, shift) if aim.two_sided else 0.0)


def questions_needed(gain: float, sd: float, aim: PowerTarget = DEFAULT_POWER_TARGET, *, inflation: float = 1.0) -> int:
    """Questions needed to detect a true mean gain, times the design effect `inflation`, rounded up.

    Solves `paired_power` for n; for large n this is ((z_{1−α/2} + z_power)·sd/gain)².
    """
    if not gain:
        raise ValueError("gain must not be zero")
    high = 4.0
    while paired_power(gain, sd, high, aim) < aim.power:
        high *= 2
    if paired_power(gain, sd, 2.0, aim) >= aim.power:
        return math.ceil(2 * inflation)

    def shortfall(n: float) -> float:
        return paired_power(gain, sd, n, aim) - aim.power

    return math.ceil(round(root(shortfall, 2.0, high) * inflation, 6))


def questions_about(gain: float, sd: float, aim: PowerTarget = DEFAULT_POWER_TARGET) -> int:
    """About the same as `questions_needed`, without solving: ((z_{1−α/2} + z_power)·sd/gain)² + z_{1−α/2}²/2.

    The last term corrects for using normal quantiles instead of Student's (Guenther 1981).

    >>> questions_needed(1.0, 5.0), questions_about(1.0, 5.0)
    (199, 199)
    """
    tail, power = -normal_quantile(aim.tail), normal_quantile(aim.power)
    return math.ceil(round(((tail + power) * sd / gain) ** 2 + tail**2 / 2, 6))


@frozen
class PilotStudy:
    """Statistics of a pilot run of two methods, for planning the next one."""

    gain: float
    """Mean of first − second."""
    sd: float
    """Standard deviation of the differences."""
    n: int
    n_clusters: int
    icc: float
    """Intraclass correlation of the differences (one-way analysis of variance); may be negative by chance."""
    inflation: float
    """Clustered variance of the mean difference over the variance if all rows were independent."""
    index: float = math.nan
    """Mean Brier index of the two methods, if the scores are Brier scores."""

    def questions_needed(self, gain: float | None = None, aim: PowerTarget = DEFAULT_POWER_TARGET) -> int:
        """Questions needed to detect `gain` (by default the pilot's own), clustered like the pilot."""
        return questions_needed(self.gain if gain is None else gain, self.sd, aim, inflation=max(1.0, self.inflation))


def plan_from_pilot(
    score_a: npt.ArrayLike,
    score_b: npt.ArrayLike,
    cluster: npt.ArrayLike | None = None,
    crossed: npt.ArrayLike | None = None,
    stratum: npt.ArrayLike | None = None,
) -> PilotStudy:
    """Standard deviation and design effect of the paired differences of a pilot; NaN rows are left out.

    The inflation is measured, not modelled: [C/(C−1)·Σ_c(Σ_{i∈c} d_i − d̄)²/n²] / [s²/n] (Liang & Zeger 1986). With a
    second way of clustering, such as the day of resolution, the variances of both are added and that of their
    intersection is subtracted (Cameron, Gelbach & Miller 2011), as in the intervals of a comparison. Strata, such as
    kinds of questions, are not sampled at random, so differences between them do not count as spread.
    """
    first, second = np.asarray(score_a, dtype=np.float64), np.asarray(score_b, dtype=np.float64)
    same_shape(score_a=first, score_b=second)
    d = first - second
    common = ~np.isnan(d)
    clusters = factorise(np.arange(len(d))[common] if cluster is None else np.asarray(cluster)[common])
    d, n, count = d[common], int(common.sum()), clusters.n
    if count < 2:
        raise ValueError("cluster must have at least two clusters that both methods answered")
    strata = factorise(np.zeros(n, np.int64) if stratum is None else np.asarray(stratum)[common])
    centred = d - (strata.sums(d[:, None])[:, 0] / strata.sizes)[strata.codes]
    variance = float(centred @ centred) / max(1, n - strata.n)
    if not variance > 0:
        raise ValueError("score_a and score_b differ by a constant: there is no spread to plan from")
    totals = clusters.sums(centred[:, None])[:, 0]
    clustered = _variance_of_mean(totals, n)
    if crossed is not None:
        other = factorise(np.asarray(crossed)[common])
        cells = cross_clusters(clusters, other)
        second, both = (_variance_of_mean(way.sums(centred[:, None])[:, 0], n) for way in (other, cells))
        clustered, count = max(clustered, second, clustered + second - both), min(count, other.n)
    return PilotStudy(
        gain=float(d.mean()),
        sd=math.sqrt(variance),
        n=n,
        n_clusters=count,
        icc=_intraclass(totals, clusters.sizes.astype(np.float64), variance),
        inflation=clustered * n / variance,
    )


def _variance_of_mean(totals: Floats, n: int) -> float:
    """Variance of the mean of n rows from the centred totals of their clusters; 0 for a single cluster."""
    count = len(totals)
    return count / (count - 1) * float(totals @ totals) / n**2 if count > 1 else 0.0


def _intraclass(totals: Floats, sizes: Floats, variance: float) -> float:
    """Analysis-of-variance estimate of the intraclass correlation from centred cluster totals (Donner 1986)."""
    n, count = float(sizes.sum()), len(sizes)
    if n == count:
        return 0.0
    between = float(np.sum(totals**2 / sizes)) / (count - 1)
    within = (variance * (n - 1) - between * (count - 1)) / (n - count)
    typical = (n - float(np.sum(sizes**2)) / n) / (count - 1)
    return (between - within) / (between + (typical - 1) * within)
