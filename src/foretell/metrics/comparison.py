"""Is one method better than another? Paired bootstrap of the difference of population statistics.

Both arms are recomputed on the same resample, so what makes a question easy or hard for everyone cancels.
A row counts only where both methods answered it (NaN = unanswered).

Scores are one number per row, of which the statistic sees (Σ weight·score, Σ weight), or K columns per row,
already weighted, of which it sees the K sums: that is how numbers that are no means (calibration error, Sharpe
ratio) are compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foretell.metrics.arrays import Bools, Floats, Ints, reject, same_shape
from foretell.metrics.bootstrap import (
    DEFAULT_RESAMPLING,
    Interval,
    Resampling,
    Statistic,
    as_design,
    mean_from_sums,
    replicate,
    summarise,
)
from foretell.metrics.clusters import DRAW_CHUNK, ResamplingDesign, ResamplingStratum, cluster_warning, draw_sums

# From bootstrap replicates of a difference to p-values, stars and a `Comparison`.


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


IndexPairs = Sequence[tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class PairwiseMatrix:
    """Every method (row) against every other (column): row − column, from one set of draws."""

    diff: Floats
    se: Floats
    low: Floats
    high: Floats
    p: Floats
    """One-sided, as in `Comparison`; 1 on the diagonal."""
    n: Ints
    """Rows both answered; on the diagonal, rows the method answered."""
    warning: str | None = None


def compare_sums(
    sums_a: Floats, sums_b: Floats, from_sums: Statistic, resampling: Resampling = DEFAULT_RESAMPLING
) -> Comparison:
    """from_sums(Σ sums_a) − from_sums(Σ sums_b), resampling the same clusters (rows, clusters × K) in both.

    >>> a = np.array([[0.1, 1.0], [0.3, 1.0], [0.2, 1.0]])
    >>> c = compare_sums(a, a + [0.1, 0.0], mean_from_sums)
    >>> round(c.diff, 6), c.p, c.stars
    (-0.1, 0.0, '***')
    """
    same_shape(sums_a=sums_a, sums_b=sums_b)

    def difference(sums: Floats) -> Floats:
        return from_sums(sums[..., : sums_a.shape[1]]) - from_sums(sums[..., sums_a.shape[1] :])

    both = np.hstack([sums_a, sums_b])
    total = both.sum(axis=0)
    drawn = difference(draw_sums(both, resampling.draws, resampling.rng()))
    interval = summarise(
        float(difference(total)),
        drawn,
        resampling,
        n_clusters=len(both),
        warning=cluster_warning(len(both), 0.0, ""),
        jackknife=difference(total - both) if resampling.interval == "bca" else None,
    )
    return comparison_of(interval, drawn, len(both))


def compare_paired(
    score_a: npt.ArrayLike,
    score_b: npt.ArrayLike,
    cluster: npt.ArrayLike | ResamplingDesign | None = None,
    *,
    statistic: Statistic = mean_from_sums,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Comparison:
    """Statistic of a − statistic of b on the rows both answered, clusters (labels or a `ResamplingDesign`) resampled.

    With `statistic=brier_index_from_sums` the index of the whole population is recomputed in each draw on
    both arms; it is never an average of per-row indices. A `ResamplingDesign` with strata gives the difference of the
    means over strata of the statistic. Scores have shape (rows,) or (rows, K).

    >>> a, b = [0.01, 0.04, 0.09, 0.16], [0.04, 0.09, 0.16, float("nan")]
    >>> c = compare_paired(a, b, ["q1", "q2", "q3", "q4"])
    >>> round(c.diff, 4), c.n
    (-0.05, 3)
    """
    first, second = np.asarray(score_a, dtype=np.float64), np.asarray(score_b, dtype=np.float64)
    same_shape(score_a=first, score_b=second)
    table, answered = _as_columns(np.stack([first, second], axis=1), as_design(cluster))
    common = answered[:, 0] & answered[:, 1]
    if not common.any():
        raise ValueError("score_a and score_b have no row that both answered")
    rows = _ArmRows(columns=table[common], answered=answered[common], design=as_design(cluster).take(common))
    return _compare_pairs(rows, [(0, 1)], statistic, resampling)[0]


def compare_all(
    scores: npt.ArrayLike,
    reference: int,
    cluster: npt.ArrayLike | ResamplingDesign | None = None,
    *,
    statistic: Statistic = mean_from_sums,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> list[Comparison]:
    """Each column of `scores` (rows × methods, or × K) minus column `reference`, all from one set of draws.

    Clusters that a pair does not share stay in the resampling with weight zero, so that all pairs see the same
    draws; `compare_paired` drops them first.

    >>> table = np.array([[0.1, 0.2], [0.3, 0.2], [0.1, 0.4]])
    >>> [round(c.diff, 4) for c in compare_all(table, 0)]
    [0.0, 0.1]
    """
    table, answered = _as_columns(scores, as_design(cluster))
    size = table.shape[1]
    if not -size <= reference < size:
        raise ValueError(f"reference {reference} is no column of scores, which has {size}")
    rows = _ArmRows(columns=table, answered=answered, design=as_design(cluster))
    return _compare_pairs(rows, [(i, reference % size) for i in range(size)], statistic, resampling)


def compare_matrix(
    scores: npt.ArrayLike,
    cluster: npt.ArrayLike | ResamplingDesign | None = None,
    *,
    statistic: Statistic = mean_from_sums,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> PairwiseMatrix:
    """All pairs of columns of `scores` (rows × methods, or × K), for a heat map.

    >>> compare_matrix(np.array([[0.1, 0.2], [0.3, 0.2], [0.1, 0.6]])).diff.round(3).tolist()
    [[0.0, -0.167], [0.167, 0.0]]
    """
    table, answered = _as_columns(scores, as_design(cluster))
    size = table.shape[1]
    i, j = np.triu_indices(size, k=1)
    pairs = list(zip(i.tolist(), j.tolist(), strict=True))
    rows = _ArmRows(columns=table, answered=answered, design=as_design(cluster))
    found = _compare_pairs(rows, pairs, statistic, resampling)
    diff, se, low, high, p = (np.zeros((size, size)) for _ in range(5))
    np.fill_diagonal(p, 1.0)
    for (a, b), one in zip(pairs, found, strict=True):
        diff[a, b], diff[b, a] = one.diff, -one.diff
        low[a, b], high[a, b], low[b, a], high[b, a] = one.low, one.high, -one.high, -one.low
        se[a, b] = se[b, a] = one.se
        p[a, b] = p[b, a] = one.p
    warning = next((one.warning for one in found if one.warning), None)
    n = answered.T.astype(np.float64) @ answered.astype(np.float64)
    return PairwiseMatrix(diff=diff, se=se, low=low, high=high, p=p, n=n.astype(np.int64), warning=warning)


@dataclass(frozen=True, kw_only=True)
class _ArmRows:
    """Weighted columns (rows × methods × K, zero where unanswered), who answered what, and the design."""

    columns: Floats
    answered: Bools
    design: ResamplingDesign


def _as_columns(scores: npt.ArrayLike, design: ResamplingDesign) -> tuple[Floats, Bools]:
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim not in (2, 3) or not table.size:
        raise ValueError(f"scores must be rows × methods or rows × methods × K, they have shape {table.shape}")
    design.check(len(table))
    if table.ndim == 2:
        weight = np.broadcast_to(design.weights(len(table))[:, None], table.shape)
        answered = ~np.isnan(table)
        columns = np.stack([weight * table, weight], axis=2)
    elif design.weight is not None:
        raise ValueError("weight has no place beside scores of K columns: multiply the columns by it")
    else:
        answered = ~np.isnan(table.sum(axis=2))
        columns = table
    return np.where(answered[:, :, None], columns, 0.0), answered


@dataclass(frozen=True, kw_only=True)
class _PairBlock:
    """Pairs to compare from one pass over the draws; an arm is a method on a set of rows."""

    arms: list[tuple[int, Bools]]
    pairs: list[tuple[int, int]]


def _blocks(rows: _ArmRows, pairs: IndexPairs, limit: int) -> Iterator[_PairBlock]:
    """Blocks of at most `limit` arms; pairs with the same common rows share the arms of their methods."""
    seen: dict[tuple[int, bytes], int] = {}
    block = _PairBlock(arms=[], pairs=[])
    for i, j in pairs:
        common = rows.answered[:, i] & rows.answered[:, j]
        key = np.packbits(common).tobytes()
        if block.pairs and len(block.arms) + 2 > limit:
            yield block
            seen, block = {}, _PairBlock(arms=[], pairs=[])
        for method in (i, j):
            if (method, key) not in seen:
                seen[method, key] = len(block.arms)
                block.arms.append((method, common))
        block.pairs.append((seen[i, key], seen[j, key]))
    yield block


def _compare_pairs(rows: _ArmRows, pairs: IndexPairs, statistic: Statistic, resampling: Resampling) -> list[Comparison]:
    """One `Comparison` per pair of methods; every pair sees the same resamples."""
    if not pairs:
        return []
    if resampling.interval == "bca":
        raise ValueError('interval "bca" is offered by `compare_sums`, on cluster sums')
    strata = rows.design.strata(len(rows.columns))
    height = rows.columns.shape[2] * (resampling.draws + sum(s.units.n for s in strata))
    found: list[Comparison] = []
    for block in _blocks(rows, pairs, max(2, DRAW_CHUNK // height)):
        sums = [_arm_sums(s, rows, block.arms) for s in strata]
        estimate, drawn = replicate(strata, sums, statistic, resampling)
        for a, b in block.pairs:
            difference = drawn[:, a] - drawn[:, b]
            common = block.arms[a][1]
            counts = [np.bincount(s.units.codes[common[s.rows]], minlength=s.units.n) for s in strata]
            told = [s.warning(count > 0) for s, count in zip(strata, counts, strict=True)]
            interval = summarise(
                float(estimate[a] - estimate[b]),
                difference,
                resampling,
                n_clusters=sum(s.n_clusters(count > 0) for s, count in zip(strata, counts, strict=True)),
                warning="; ".join(filter(None, told)) or None,
            )
            found.append(comparison_of(interval, difference, int(common.sum())))
    return found


def _arm_sums(stratum: ResamplingStratum, rows: _ArmRows, arms: list[tuple[int, Bools]]) -> Floats:
    """Sums of the columns of each arm per unit of the stratum: units × arms × K."""
    out = np.empty((stratum.units.n, len(arms), rows.columns.shape[2]))
    for k, (method, common) in enumerate(arms):
        columns = rows.columns[stratum.rows, method]
        out[:, k] = stratum.units.sums(np.where(common[stratum.rows, None], columns, 0.0))
    return out


# Many comparisons at once: p-values adjusted so that chance findings stay rare.


def holm(p: npt.ArrayLike) -> Floats:
    """Holm's step-down adjustment (1979), which bounds the chance of any false finding.

    With m p-values in ascending order, adjusted p_(i) = max over j ≤ i of min(1, (m − j + 1)·p_(j)). NaN
    (a comparison that was not made) stays NaN and does not count in m.

    >>> holm([0.01, 0.04, 0.03, float("nan")])
    array([0.03, 0.06, 0.06,  nan])
    """
    values, made, order = _sorted_p_values(p)
    m = len(order)
    stepped = np.maximum.accumulate(values[made][order] * (m - np.arange(m)))
    return _restore_order(values, made, order, stepped)


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    """Benjamini–Hochberg adjustment (1995), which bounds the expected share of false findings.

    With m p-values in ascending order, adjusted p_(i) = min over j ≥ i of min(1, m·p_(j)/j). NaN stays NaN and
    does not count in m.

    >>> benjamini_hochberg([0.01, 0.04, 0.03, float("nan")])
    array([0.03, 0.04, 0.04,  nan])
    """
    values, made, order = _sorted_p_values(p)
    m = len(order)
    scaled = values[made][order] * m / np.arange(1, m + 1)
    return _restore_order(values, made, order, np.minimum.accumulate(scaled[::-1])[::-1])


def _sorted_p_values(p: npt.ArrayLike) -> tuple[Floats, npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
    values = np.asarray(p, dtype=np.float64)
    made = ~np.isnan(values)
    reject(made & ~((values >= 0) & (values <= 1)), values, "p", "lies outside [0, 1]")
    return values, made, np.argsort(values[made], kind="stable")


def _restore_order(
    values: Floats, made: npt.NDArray[np.bool_], order: npt.NDArray[np.intp], adjusted: Floats
) -> Floats:
    """Adjusted values back in the places, and the shape, of the p-values they belong to."""
    found = np.empty(len(order))
    found[order] = np.minimum(adjusted, 1.0)
    out = np.full(values.shape, np.nan)
    out[made] = found
    return out
