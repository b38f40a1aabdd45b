"""Paired comparison of two methods: bootstrap of the difference of population statistics, and McNemar's test.

Both arms are recomputed on the same resample, so the difficulty of questions cancels. A row counts only if both methods
answered it (NaN = unanswered). The result depends only on the two methods and their rows, not on other methods in the
table.

Scores are one number per row, of which the statistic gets (Σ weight·score, Σ weight), or K columns per row, already
weighted, of which it gets the K sums. The latter serves statistics that are not means (calibration error, Sharpe
ratio).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints, reject, same_shape
from foretell.metrics.bootstrap import (
    DEFAULT_RESAMPLING,
    UNBOUNDED,
    Bounds,
    Interval,
    IntervalKind,
    Replicates,
    Resampling,
    Statistic,
    StratumStatistics,
    as_design,
    expanded_p,
    mean_from_sums,
)
from foretell.metrics.calibration import wilson_interval
from foretell.metrics.clusters import ResamplingDesign
from foretell.metrics.probability_functions import binomial_below, student_below

# From bootstrap replicates of a difference to p-values, stars and a `Comparison`.


@frozen
class Comparison:
    """A difference first − second with its interval and p-values, and the scores of both on the same rows."""

    first: Interval
    """Score of the first method on the rows that both answered."""
    second: Interval
    diff: float
    se: float
    low: float
    high: float
    p_one_sided: float
    """One-sided p-value, as in the papers: the share of draws on the other side of zero."""
    p_two_sided: float
    """1 − level of the widest interval, of the kind shown, that excludes zero."""
    n: int
    """Number of rows (or, from sums, clusters) that both methods answered."""
    n_clusters: int
    """Number of clusters of these rows; of two ways of clustering, that of the way with fewer."""
    n_effective: int
    """Number of clusters that the uncertainty rests on, if some count for less (see `effective_clusters`)."""
    warning: str | None = None

    @property
    def interval(self) -> Interval:
        """The difference with its interval, for charts."""
        names = ("low", "high", "se", "n_clusters", "n_effective", "warning")
        return Interval(estimate=self.diff, draws=0, **{name: getattr(self, name) for name in names})

    def times(self, factor: float) -> "Comparison":
        """Scale the difference to another unit."""
        low, high = sorted((factor * self.low, factor * self.high))
        scaled = {"first": self.first.times(factor), "second": self.second.times(factor)}
        return replace(self, diff=factor * self.diff, se=abs(factor) * self.se, low=low, high=high, **scaled)


def stars(p: float) -> str:
    """Return *** below 0.001, ** below 0.01, * below 0.05, else an empty string (also for NaN)."""
    return "*" * sum(p < bound for bound in (0.001, 0.01, 0.05))


def one_sided_p(diff: float, replicates: Floats) -> float:
    """Share of draws ≥ 0 when the difference is negative, ≤ 0 when it is positive (BLF 2026, G.2)."""
    if not len(replicates) or np.isnan(diff):
        return float("nan")
    return float(np.mean(replicates <= 0 if diff > 0 else replicates >= 0))


def two_sided_p(replicates: Floats) -> float:
    """Twice the smaller tail: min(1, 2·(1 + min(#{≤ 0}, #{≥ 0})) / (B + 1)) (Davison & Hinkley 1997, 4.2).

    This is the p-value of percentile intervals.
    """
    if not len(replicates):
        return float("nan")
    return min(1.0, 2 * min(_tails(replicates)))


def symmetric_p(estimate: float, replicates: Floats) -> float:
    """The p-value of symmetric intervals: (1 + #{|θ* − θ̂| ≥ |θ̂|}) / (B + 1)."""
    if not len(replicates) or np.isnan(estimate):
        return float("nan")
    return (1 + int(np.sum(np.abs(replicates - estimate) >= abs(estimate)))) / (len(replicates) + 1)


def _tails(replicates: Floats) -> tuple[float, float]:
    """Shares of draws ≤ 0 and ≥ 0, with one draw added to each so that neither is ever zero."""
    n = len(replicates) + 1
    return (1 + int(np.sum(replicates <= 0))) / n, (1 + int(np.sum(replicates >= 0))) / n


SMALLEST_SHOWN = 0.02
"""p-values below this are taken from the tail of Student's t, because the smallest p-value from draws depends on their
number."""


def p_value(interval: Interval, replicates: Floats, kind: IntervalKind) -> float:
    """Two-sided p-value of a difference with that interval and those replicates, corrected for few clusters.

    The larger of two: the share of draws beyond zero, unless it is too small to count, and the tail of Student's t with
    one degree of freedom less than there are clusters. The number of draws changes its noise, not its size.
    """
    n = interval.n_clusters if interval.n_effective is None else interval.n_effective
    finite = replicates[np.isfinite(replicates)]
    if n < 2 or not len(finite) or math.isnan(interval.estimate):
        return math.nan
    counted = symmetric_p(interval.estimate, finite) if kind == "symmetric" else two_sided_p(finite)
    t = abs(interval.estimate) / (interval.se * math.sqrt(n / (n - 1))) if interval.se > 0 else math.inf
    tail = 2 * student_below(-t, n - 1)
    return max(expanded_p(counted, n), tail) if counted >= SMALLEST_SHOWN else tail


def comparison_of(
    first: Interval, second: Interval, differences: Replicates, at: int, n: int, resampling: Resampling
) -> Comparison:
    """Build the `Comparison` of two scores, whose difference is the statistic `at` of `differences`.

    The p-value is below 1 − level exactly if the interval excludes zero.
    """
    interval, replicates = differences.interval(at, resampling), differences.drawn[:, at]
    p = p_value(interval, replicates, resampling.interval)
    # Scores have rounding errors: an end that differs from zero only by such an error does not exclude zero.
    dust = 1e-12 * max(1.0, abs(interval.low), abs(interval.high))
    low, high = (0.0 if abs(end) < dust else end for end in (interval.low, interval.high))
    # The resolution of a p-value from draws is about one over their number; within it, the interval decides.
    edge = round(1 - resampling.level, 12)
    p = min(p, float(np.nextafter(edge, 0))) if low > 0 or high < 0 else max(p, edge)
    return Comparison(
        first=first,
        second=second,
        diff=0.0 if abs(interval.estimate) < dust else interval.estimate,
        se=interval.se,
        low=low,
        high=high,
        p_one_sided=one_sided_p(interval.estimate, replicates[np.isfinite(replicates)] if p == p else replicates[:0]),
        p_two_sided=p,
        n=n,
        n_clusters=interval.n_clusters,
        n_effective=interval.n_clusters if interval.n_effective is None else interval.n_effective,
        warning=interval.warning,
    )


IndexPair = tuple[int, int]
BLOCK = 1 << 22
"""Number of elements of the largest table of resampled sums held at once (32 MB)."""


def compare_paired(
    score_a: npt.ArrayLike,
    score_b: npt.ArrayLike,
    cluster: npt.ArrayLike | ResamplingDesign | None = None,
    *,
    statistic: Statistic = mean_from_sums,
    resampling: Resampling = DEFAULT_RESAMPLING,
    bounds: Bounds = UNBOUNDED,
) -> Comparison:
    """Statistic of a − statistic of b on the rows both answered, clusters (labels or a `ResamplingDesign`) resampled.

    With `statistic=brier_index_from_sums` the index of the whole population is recomputed in each draw on both arms; it
    is never an average of per-row indices. A `ResamplingDesign` with strata gives the difference of the means over
    strata of the statistic. Scores have shape (rows,) or (rows, K). `bounds` are those of the statistic.
    """
    first, second = np.asarray(score_a, dtype=np.float64), np.asarray(score_b, dtype=np.float64)
    same_shape(score_a=first, score_b=second)
    scores = np.stack([first, second], axis=1)
    compared = compare_pairs(scores, [(0, 1)], cluster, statistic=statistic, resampling=resampling, bounds=bounds)
    if not compared:
        raise ValueError("score_a and score_b have no row that both answered")
    return compared[0, 1]


def compare_pairs(
    scores: npt.ArrayLike,
    pairs: Sequence[IndexPair],
    cluster: npt.ArrayLike | ResamplingDesign | None = None,
    *,
    statistic: Statistic = mean_from_sums,
    resampling: Resampling = DEFAULT_RESAMPLING,
    bounds: Bounds = UNBOUNDED,
) -> dict[IndexPair, Comparison]:
    """Compare pairs of columns of `scores` (rows × methods, or × K), each as `compare_paired` does.

    A pair that shares no row is absent. Pairs with the same common rows share their resamples.
    """
    table, design = np.asarray(scores, dtype=np.float64), as_design(cluster)
    if table.ndim not in (2, 3) or not table.size:
        raise ValueError(f"scores must be rows × methods or rows × methods × K, they have shape {table.shape}")
    design.check(len(table))
    if table.ndim == 2:
        weight = np.broadcast_to(design.weights(len(table))[:, None], table.shape)
        table = np.stack([weight * table, weight], axis=2)
    elif design.weight is not None:
        raise ValueError("weight cannot be used with scores of K columns: multiply the columns by it")
    size = table.shape[1]
    for column in (column for pair in pairs for column in pair):
        if not 0 <= column < size:
            raise ValueError(f"{column} is not a column of scores, which has {size}")
    answered = ~np.isnan(table.sum(axis=2))
    limit = max(2, BLOCK // (resampling.draws * table.shape[2]))
    comparisons: dict[IndexPair, Comparison] = {}
    for common, block in _blocks(answered, pairs, limit):
        methods = sorted({column for pair in block for column in pair})
        everywhere = bool(common.all())
        whole = everywhere and len(methods) == size
        columns = table if whole else table[np.flatnonzero(common)[:, None], methods]
        places = {column: place for place, column in enumerate(methods)}
        parts = [
            StratumStatistics.of(stratum, stratum.take(columns), statistic, resampling)
            for stratum in (design if everywhere else design.take(common)).strata(len(columns))
        ]
        intervals = Replicates.of(parts).intervals(resampling, bounds)
        step = max(1, BLOCK // (8 * resampling.draws))
        for some in (block[start : start + step] for start in range(0, len(block), step)):
            arms = np.array([[places[first], places[second]] for first, second in some])
            gaps = Replicates.of([part.map(_differences(arms)) for part in parts])
            for at, (pair, (first, second)) in enumerate(zip(some, arms.tolist(), strict=True)):
                comparisons[pair] = comparison_of(
                    intervals[first], intervals[second], gaps, at, len(columns), resampling
                )
    return {pair: comparisons[pair] for pair in pairs if pair in comparisons}


def compare_means(
    columns: Floats, cluster: npt.ArrayLike | ResamplingDesign | None = None, *, resampling: Resampling, bounds: Bounds
) -> list[Comparison]:
    """Compare weighted means of P pairs of methods that all answered the same rows.

    `columns` is rows × P × 3: weight·score of the first and of the second method, and the weight.
    """

    def means(sums: Floats) -> Floats:
        first, second = (mean_from_sums(sums[..., [arm, 2]]) for arm in (0, 1))
        return np.concatenate([first, second, first - second], axis=-1)

    comparisons, size = list[Comparison](), max(1, BLOCK // (3 * resampling.draws))
    for start in range(0, columns.shape[1], size):
        block = columns[:, start : start + size]
        parts = [
            StratumStatistics.of(stratum, stratum.take(block), means, resampling)
            for stratum in as_design(cluster).strata(len(block))
        ]
        draws, pairs = Replicates.of(parts), block.shape[1]
        for k in range(pairs):
            first, second = (draws.interval(column, resampling, bounds) for column in (k, pairs + k))
            comparisons.append(comparison_of(first, second, draws, 2 * pairs + k, len(block), resampling))
    return comparisons


def _differences(arms: Ints) -> Callable[[Floats], Floats]:
    """Differences of pairs of statistics, given the places of both in each row of `arms`."""

    def differences(values: Floats) -> Floats:
        return values[..., arms[:, 0]] - values[..., arms[:, 1]]

    return differences


def _blocks(answered: Bools, pairs: Sequence[IndexPair], limit: int) -> Iterator[tuple[Bools, list[IndexPair]]]:
    """Yield pairs that share their common rows together, with at most `limit` methods at a time."""
    groups: dict[bytes, list[IndexPair]] = {}
    for first, second in pairs:
        common = answered[:, first] & answered[:, second]
        if common.any():
            groups.setdefault(np.packbits(common).tobytes(), []).append((first, second))
    for key, members in groups.items():
        common = np.unpackbits(np.frombuffer(key, np.uint8), count=len(answered)).astype(np.bool_)
        block, methods = list[IndexPair](), set[int]()
        for pair in members:
            if block and len(methods | set(pair)) > limit:
                yield common, block
                block, methods = [], set()
            block.append(pair)
            methods |= set(pair)
        yield common, block


# Many comparisons at once: p-values adjusted so that chance findings stay rare. NaN (a comparison that was not made)
# stays NaN and does not count.


def holm(p: npt.ArrayLike) -> Floats:
    """Holm's step-down adjustment (1979), which bounds the chance of any false finding.

    With m p-values in ascending order, adjusted p_(i) = max over j ≤ i of min(1, (m − j + 1)·p_(j)).
    """
    return _adjusted(p, lambda rising: np.maximum.accumulate(rising * np.arange(len(rising), 0, -1)))


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    """Benjamini–Hochberg adjustment (1995), which bounds the expected share of false findings.

    With m p-values in ascending order, adjusted p_(i) = min over j ≥ i of min(1, m·p_(j)/j).
    """

    def step_up(rising: Floats) -> Floats:
        scaled = rising * len(rising) / np.arange(1, len(rising) + 1)
        return np.minimum.accumulate(scaled[::-1])[::-1]

    return _adjusted(p, step_up)


def _adjusted(p: npt.ArrayLike, adjust: Callable[[Floats], Floats]) -> Floats:
    values = np.asarray(p, dtype=np.float64)
    known = ~np.isnan(values)
    reject(known & ~((values >= 0) & (values <= 1)), values, "p", "lies outside [0, 1]")
    order = np.argsort(values[known], kind="stable")
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(adjust(values[known][order]), 1.0)
    out = np.full(values.shape, np.nan)
    out[known] = adjusted
    return out


# McNemar's test of whether two methods differ in accuracy.


@frozen
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
    """Number of questions that both answered and that are not counted, because a forecast of 0.5 is neither right nor
    wrong."""


@frozen
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
        test = _from_table(int(both[i, j]), int(only[i, j]), int(only[j, i]), neither, level)
        diff[i, j], low[i, j], high[i, j], p[i, j] = test.diff, test.low, test.high, test.p
    return McNemarMatrix(diff=diff, low=low, high=high, p=p, n=n)


def _as_correct(values: npt.ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    reject(~np.isnan(array) & (array != 0) & (array != 1), array, name, "is neither 0, 1 nor NaN")
    return array


def _from_table(both: int, only_a: int, only_b: int, neither: int, level: float) -> McNemarTest:
    n, discordant = both + only_a + only_b + neither, only_a + only_b
    exact, chi2 = 1.0, 0.0
    if discordant:
        exact = min(1.0, 2 * binomial_below(min(only_a, only_b), discordant, 0.5))
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
        p_chi2=math.erfc(math.sqrt(chi2 / 2)),
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
