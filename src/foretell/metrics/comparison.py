"""Is one method better than another? Paired bootstrap of the difference of population statistics, and McNemar's test.

Both arms are recomputed on the same resample, so whatever makes a question easy or hard for everyone cancels. A row
counts only if both methods answered it (NaN = unanswered).

Scores are one number per row, of which the statistic sees (Σ weight·score, Σ weight), or K columns per row, already
weighted, of which it sees the K sums. The latter serves statistics that are not means (calibration error, Sharpe
ratio).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from foretell.metrics.arrays import Bools, Floats, Ints, reject, same_shape
from foretell.metrics.bootstrap import (
    DEFAULT_RESAMPLING,
    Interval,
    IntervalKind,
    Resampling,
    Statistic,
    as_design,
    expanded_p,
    mean_from_sums,
    replicate,
    strata_warning,
    summarise,
)
from foretell.metrics.calibration import wilson_interval
from foretell.metrics.clusters import DRAW_CHUNK, ResamplingDesign, ResamplingStratum

# From bootstrap replicates of a difference to p-values, stars and a `Comparison`.


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A difference first − second with its interval and p-values."""

    diff: float
    se: float
    low: float
    high: float
    p_one_sided: float
    """One-sided p-value, as in the papers: the share of draws on the other side of zero."""
    p_two_sided: float
    """1 − level of the widest interval, of the kind shown, that excludes zero; stars and corrections use it."""
    stars: str
    """From `p_two_sided`: *** below 0.001, ** below 0.01, * below 0.05; with any, a 95 % interval excludes 0."""
    n: int
    """Number of rows (or, from sums, clusters) that both methods answered."""
    n_clusters: int
    warning: str | None = None

    @property
    def interval(self) -> Interval:
        """The difference with its interval, for charts."""
        ends = {name: getattr(self, name) for name in ("low", "high", "se", "n_clusters", "warning")}
        return Interval(estimate=self.diff, draws=0, **ends)

    def times(self, factor: float) -> "Comparison":
        """Scale the difference to another unit; a factor of −1 gives second − first."""
        low, high = sorted((factor * self.low, factor * self.high))
        return replace(self, diff=factor * self.diff, se=abs(factor) * self.se, low=low, high=high)


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


def comparison_of(interval: Interval, replicates: Floats, n: int, resampling: Resampling) -> Comparison:
    """Build the `Comparison` of a difference with that interval and those replicates (NaN draws are ignored).

    The p-value matches the kind of interval: it is below 1 − level exactly if the interval excludes zero.
    """
    finite = replicates[np.isfinite(replicates)] if interval.n_clusters > 1 else replicates[:0]
    p = _p_of_kind(interval.estimate, finite, resampling.interval)
    p = expanded_p(p, interval.n_clusters) if resampling.expanded else p
    # Draws tell a p-value to about one in their number; within that, the interval has the last word.
    edge = round(1 - resampling.level, 12)
    # Scores are exact only to rounding: an end that is zero but for that does not miss it.
    dust = 1e-12 * max(1.0, abs(interval.low), abs(interval.high))
    low, high = (0.0 if abs(end) < dust else end for end in (interval.low, interval.high))
    misses_zero = low > 0 or high < 0
    p = min(p, float(np.nextafter(edge, 0))) if misses_zero else max(p, edge)
    return Comparison(
        diff=interval.estimate,
        se=interval.se,
        low=low,
        high=high,
        p_one_sided=one_sided_p(interval.estimate, finite),
        p_two_sided=p,
        stars=stars(p) if interval.estimate else "",
        n=n,
        n_clusters=interval.n_clusters,
        warning=interval.warning,
    )


def _p_of_kind(estimate: float, replicates: Floats, kind: IntervalKind) -> float:
    if kind == "symmetric":
        return symmetric_p(estimate, replicates)
    return two_sided_p(replicates)


IndexPair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class PairwiseMatrix:
    """Every method (row) against every other (column): row − column, from one set of draws."""

    diff: Floats
    se: Floats
    low: Floats
    high: Floats
    p: Floats
    """Two-sided p-values, consistent with the interval; 1 on the diagonal."""
    n: Ints
    """Number of rows both answered; on the diagonal, rows the method answered."""
    warning: str | None = None

    @property
    def corrected_p(self) -> Floats:
        """`p` corrected for the number of pairs (Holm)."""
        return corrected_pairs(self.p)

    @classmethod
    def of(cls, pairs: Mapping[IndexPair, Comparison], n: Ints) -> "PairwiseMatrix":
        """Build the matrix from the pairs of its upper half."""
        diff, se, low, high, p = (np.zeros(n.shape) for _ in range(5))
        np.fill_diagonal(p, 1.0)
        for (a, b), one in pairs.items():
            diff[a, b], diff[b, a] = one.diff, -one.diff
            low[a, b], high[a, b], low[b, a], high[b, a] = one.low, one.high, -one.high, -one.low
            se[a, b] = se[b, a] = one.se
            p[a, b] = p[b, a] = one.p_two_sided
        warning = next((one.warning for one in pairs.values() if one.warning), None)
        return cls(diff=diff, se=se, low=low, high=high, p=p, n=n, warning=warning)


def compare_paired(
    score_a: npt.ArrayLike,
    score_b: npt.ArrayLike,
    cluster: npt.ArrayLike | ResamplingDesign | None = None,
    *,
    statistic: Statistic = mean_from_sums,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Comparison:
    """Statistic of a − statistic of b on the rows both answered, clusters (labels or a `ResamplingDesign`) resampled.

    With `statistic=brier_index_from_sums` the index of the whole population is recomputed in each draw on both arms; it
    is never an average of per-row indices. A `ResamplingDesign` with strata gives the difference of the means over
    strata of the statistic. Scores have shape (rows,) or (rows, K).
    """
    first, second = np.asarray(score_a, dtype=np.float64), np.asarray(score_b, dtype=np.float64)
    same_shape(score_a=first, score_b=second)
    rows = _MethodRows.of(np.stack([first, second], axis=1), cluster)
    common = rows.answered[:, 0] & rows.answered[:, 1]
    if not common.any():
        raise ValueError("score_a and score_b have no row that both answered")
    both = _MethodRows(columns=rows.columns[common], answered=rows.answered[common], design=rows.design.take(common))
    return both.compare([(0, 1)], statistic, resampling)[0, 1]


def compare_all(
    scores: npt.ArrayLike,
    reference: int,
    cluster: npt.ArrayLike | ResamplingDesign | None = None,
    *,
    statistic: Statistic = mean_from_sums,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> list[Comparison]:
    """Each column of `scores` (rows × methods, or × K) minus column `reference`, all from one set of draws.

    Clusters that a pair does not share stay in the resampling with weight zero, so that all pairs see the same draws;
    `compare_paired` drops them first.
    """
    rows = _MethodRows.of(scores, cluster)
    size = rows.answered.shape[1]
    if not -size <= reference < size:
        raise ValueError(f"reference {reference} is not a column of scores, which has {size}")
    return list(rows.compare([(i, reference % size) for i in range(size)], statistic, resampling).values())


def compare_matrix(
    scores: npt.ArrayLike,
    cluster: npt.ArrayLike | ResamplingDesign | None = None,
    *,
    statistic: Statistic = mean_from_sums,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> PairwiseMatrix:
    """Compare all pairs of columns of `scores` (rows × methods, or × K), for a heat map."""
    rows = _MethodRows.of(scores, cluster)
    answered = rows.answered.astype(np.float64)
    pairs = list(combinations(range(answered.shape[1]), 2))
    return PairwiseMatrix.of(rows.compare(pairs, statistic, resampling), (answered.T @ answered).astype(np.int64))


@dataclass(frozen=True, kw_only=True)
class _MethodRows:
    """Weighted columns (rows × methods × K, zero if unanswered), which rows each method answered, and the design."""

    columns: Floats
    answered: Bools
    design: ResamplingDesign

    @classmethod
    def of(cls, scores: npt.ArrayLike, cluster: npt.ArrayLike | ResamplingDesign | None) -> "_MethodRows":
        table, design = np.asarray(scores, dtype=np.float64), as_design(cluster)
        if table.ndim not in (2, 3) or not table.size:
            raise ValueError(f"scores must be rows × methods or rows × methods × K, they have shape {table.shape}")
        design.check(len(table))
        if table.ndim == 2:
            weight = np.broadcast_to(design.weights(len(table))[:, None], table.shape)
            table = np.stack([weight * table, weight], axis=2)
        elif design.weight is not None:
            raise ValueError("weight has no place beside scores of K columns: multiply the columns by it")
        answered = ~np.isnan(table.sum(axis=2))
        return cls(columns=np.where(answered[:, :, None], table, 0.0), answered=answered, design=design)

    def compare(
        self, pairs: Sequence[IndexPair], statistic: Statistic, resampling: Resampling
    ) -> dict[IndexPair, Comparison]:
        """Return one `Comparison` per pair of methods; every pair sees the same resamples."""
        strata = self.design.strata(len(self.columns))
        height = self.columns.shape[2] * (resampling.draws + sum(s.units.n for s in strata))
        found: dict[IndexPair, Comparison] = {}
        for arms, places in self._blocks(pairs, max(2, DRAW_CHUNK // height)):
            sums = [self._sums(s, arms) for s in strata]
            estimate, drawn = replicate(strata, sums, statistic, resampling)
            for pair, (a, b) in places.items():
                common = arms[a][1]
                present = [np.bincount(s.units.codes[common[s.rows]], minlength=s.units.n) > 0 for s in strata]
                interval = summarise(
                    float(estimate[a] - estimate[b]),
                    drawn[:, a] - drawn[:, b],
                    resampling,
                    n_clusters=sum(s.n_clusters(mask) for s, mask in zip(strata, present, strict=True)),
                    warning=strata_warning(strata, present),
                )
                found[pair] = comparison_of(interval, drawn[:, a] - drawn[:, b], int(common.sum()), resampling)
        return found

    def _blocks(
        self, pairs: Sequence[IndexPair], limit: int
    ) -> Iterator[tuple[list[tuple[int, Bools]], dict[IndexPair, IndexPair]]]:
        """Yield at most `limit` arms (a method on a set of rows) at a time, and the two arms of each pair.

        Pairs with the same common rows share the arms of their methods.
        """
        arms: list[tuple[int, Bools]] = []
        seen: dict[tuple[int, bytes], int] = {}
        places: dict[IndexPair, IndexPair] = {}
        for i, j in pairs:
            if places and len(arms) + 2 > limit:
                yield arms, places
                arms, seen, places = [], {}, {}
            common = self.answered[:, i] & self.answered[:, j]
            key = np.packbits(common).tobytes()
            for method in (i, j):
                if (method, key) not in seen:
                    seen[method, key] = len(arms)
                    arms.append((method, common))
            places[i, j] = seen[i, key], seen[j, key]
        if places:
            yield arms, places

    def _sums(self, stratum: ResamplingStratum, arms: Sequence[tuple[int, Bools]]) -> Floats:
        """Sum the columns of each arm per unit of the stratum: units × arms × K."""
        out = np.empty((stratum.units.n, len(arms), self.columns.shape[2]))
        for k, (method, common) in enumerate(arms):
            columns = self.columns[stratum.rows, method]
            out[:, k] = stratum.units.sums(np.where(common[stratum.rows, None], columns, 0.0))
        return out


# Many comparisons at once: p-values adjusted so that chance findings stay rare. NaN (a comparison that was not made)
# stays NaN and does not count.


def holm(p: npt.ArrayLike) -> Floats:
    """Holm's step-down adjustment (1979), which bounds the chance of any false finding.

    With m p-values in ascending order, adjusted p_(i) = max over j ≤ i of min(1, (m − j + 1)·p_(j)).
    """
    return _adjusted(p, lambda rising: np.maximum.accumulate(rising * np.arange(len(rising), 0, -1)))


def corrected_pairs(p: Floats) -> Floats:
    """Correct a symmetric matrix of p-values for its number of pairs (Holm); the diagonal is unchanged."""
    out, upper = p.copy(), np.triu_indices(len(p), 1)
    out[upper] = holm(p[upper])
    out.T[upper] = out[upper]
    return out


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
    made = ~np.isnan(values)
    reject(made & ~((values >= 0) & (values <= 1)), values, "p", "lies outside [0, 1]")
    order = np.argsort(values[made], kind="stable")
    found = np.empty(len(order))
    found[order] = np.minimum(adjust(values[made][order]), 1.0)
    out = np.full(values.shape, np.nan)
    out[made] = found
    return out


# McNemar's test: do two methods get different questions right?


@dataclass(frozen=True, kw_only=True)
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
    """Questions that both answered and that are not counted, because one of them took no side (a forecast of 0.5)."""


@dataclass(frozen=True, kw_only=True)
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
        one = _from_table(int(both[i, j]), int(only[i, j]), int(only[j, i]), neither, level)
        diff[i, j], low[i, j], high[i, j], p[i, j] = one.diff, one.low, one.high, one.p
    return McNemarMatrix(diff=diff, low=low, high=high, p=p, n=n)


def _as_correct(values: npt.ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    reject(~np.isnan(array) & (array != 0) & (array != 1), array, name, "is neither 0, 1 nor NaN")
    return array


def _from_table(both: int, only_a: int, only_b: int, neither: int, level: float) -> McNemarTest:
    from scipy.special import bdtr, chdtrc

    n, discordant = both + only_a + only_b + neither, only_a + only_b
    exact, chi2 = 1.0, 0.0
    if discordant:
        exact = min(1.0, 2 * float(bdtr(min(only_a, only_b), discordant, 0.5)))
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
        p_chi2=float(chdtrc(1, chi2)),
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
