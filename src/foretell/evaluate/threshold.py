"""From a probability to True or False: where to cut, and what the cut is worth on data it has not seen.

A claim is called True where p > threshold. A cut chosen on the data it is scored on flatters itself: `score_threshold`
takes a chosen one to other rows, `cross_fit_threshold` chooses it for each group of rows on the other groups.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Bools, Floats, Ints, as_outcomes, as_pairs, as_vector, as_weights
from foretell.evaluate.bootstrap import PAPERS, Resampling
from foretell.evaluate.clusters import factorise
from foretell.evaluate.compare import compare_paired
from foretell.evaluate.significance import Comparison

Criterion = Literal["accuracy", "balanced", "f1"]
HALF = 0.5
TIE = 1e-12
"""Scores nearer than this are the same score."""


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """Every way to split the forecasts into True and False, from all True to all False."""

    low: Floats
    """Each cut holds for thresholds from `low` up to, not including, `high`."""
    high: Floats
    counts: Floats
    """Cuts × (true positives, false positives, false negatives, true negatives), weighted."""


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """A cut and the rows it was chosen on. `score` is what it reached there, and so no estimate of what it will."""

    value: float
    low: float
    """Every threshold from `low` to `high` scores the same on those rows."""
    high: float
    score: float
    criterion: Criterion
    n: int


@dataclass(frozen=True, kw_only=True)
class ThresholdReport:
    """A threshold on rows it was not chosen on."""

    threshold: Threshold
    score: float
    score_at_half: float
    gain: Comparison
    """Score at the threshold − score at one half, clusters resampled."""
    n: int


@dataclass(frozen=True, kw_only=True)
class CrossFitted:
    """Each group decided by a threshold chosen on the other groups."""

    threshold: Floats
    """By row."""
    decision: Bools
    score: float
    score_at_half: float
    in_sample: float
    """What the best single cut on all rows reaches: the number to distrust."""
    gain: Comparison
    fallbacks: int
    """Folds whose training rows had one class only and used the threshold one half."""


def score_counts(counts: Floats, criterion: Criterion) -> Floats:
    """The criterion of (…, 4) counts tp, fp, fn, tn; NaN where it has no value.

    accuracy = (tp + tn)/all; balanced = ½·(tp/(tp + fn) + tn/(tn + fp)); f1 = 2tp/(2tp + fp + fn).

    >>> score_counts(np.array([3.0, 1.0, 1.0, 5.0]), "f1").tolist()
    0.75
    """
    tp, fp, fn, tn = (counts[..., k] for k in range(4))
    if criterion == "accuracy":
        return _ratio(tp + tn, tp + fp + fn + tn)
    if criterion == "balanced":
        return (_ratio(tp, tp + fn) + _ratio(tn, tn + fp)) / 2
    if criterion == "f1":
        return _ratio(2 * tp, 2 * tp + fp + fn)
    raise ValueError(f"criterion {criterion!r} is none of accuracy, balanced, f1")


def all_cuts(p: npt.ArrayLike, outcome: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> Cuts:
    """All m + 1 cuts of m distinct forecasts, in one sort.

    >>> cuts = all_cuts([0.2, 0.6, 0.6], [0, 1, 0])
    >>> cuts.low.tolist(), cuts.high.tolist(), cuts.counts[1].tolist()
    ([0.0, 0.2, 0.6], [0.2, 0.6, 1.0], [1.0, 1.0, 0.0, 1.0])
    """
    p, outcome = as_pairs(as_vector(p, "p"), as_vector(outcome, "outcome"))
    weight = as_weights(weight, len(p))
    values, place = np.unique(p, return_inverse=True)
    below = np.zeros((len(values) + 1, 2))
    for column, rows in enumerate((outcome, 1 - outcome)):
        below[1:, column] = np.cumsum(np.bincount(place, weights=weight * rows, minlength=len(values)))
    above = below[-1] - below
    counts = np.stack([above[:, 0], above[:, 1], below[:, 0], below[:, 1]], axis=1)
    # Calling even p = 0 True takes a threshold below 0: p > threshold is strict.
    first = 0.0 if values[0] > 0 else -1.0
    return Cuts(low=np.append(first, values), high=np.append(values, max(1.0, values[-1])), counts=counts)


def best_threshold(
    p: npt.ArrayLike,
    outcome: npt.ArrayLike,
    *,
    criterion: Criterion = "accuracy",
    weight: npt.ArrayLike | None = None,
) -> Threshold:
    """The threshold of the best cut: the middle of the stretch of thresholds that reach the best score.

    Where several stretches reach it, the widest is taken; of equally wide ones that whose middle is nearest to one
    half; then the lower. Rows of one class only raise: any threshold on their far side would be called best.

    >>> t = best_threshold([0.1, 0.4, 0.8, 0.9], [0, 0, 1, 1])
    >>> round(t.value, 3), t.score
    (0.6, 1.0)
    """
    outcomes = as_outcomes(as_vector(outcome, "outcome"))
    if outcomes.min() == outcomes.max():
        raise ValueError(f"outcome holds only {int(outcomes[0])}: a threshold needs rows of both classes")
    cuts = all_cuts(p, outcomes, weight)
    score = score_counts(cuts.counts, criterion)
    best = float(np.nanmax(score))
    low, high = _stretches(cuts, score >= best - TIE)
    middle, width = (low + high) / 2, high - np.maximum(low, 0)
    # Between neighbouring floats the middle is the upper one, which would already be another cut.
    middle = np.where(middle < high, middle, low)
    take = np.lexsort((middle, np.abs(middle - HALF).round(12), -width.round(12)))[0]
    return Threshold(
        value=float(middle[take]),
        low=float(low[take]),
        high=float(high[take]),
        score=best,
        criterion=criterion,
        n=len(outcomes),
    )


def score_threshold(
    threshold: Threshold,
    p: npt.ArrayLike,
    outcome: npt.ArrayLike,
    cluster: npt.ArrayLike | None = None,
    *,
    resampling: Resampling = PAPERS,
) -> ThresholdReport:
    """What a threshold chosen elsewhere is worth on these rows, against one half.

    >>> chosen = best_threshold([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1])
    >>> report = score_threshold(chosen, [0.15, 0.35, 0.2, 0.45], [0, 1, 1, 1])
    >>> report.threshold.score, report.score, report.score_at_half
    (1.0, 0.75, 0.25)
    """
    p, outcome = as_pairs(as_vector(p, "p"), as_vector(outcome, "outcome"))
    at_threshold, at_half = _columns(p > threshold.value, outcome), _columns(p > HALF, outcome)
    return ThresholdReport(
        threshold=threshold,
        score=float(score_counts(at_threshold.sum(axis=0), threshold.criterion)),
        score_at_half=float(score_counts(at_half.sum(axis=0), threshold.criterion)),
        gain=_gain(at_threshold, at_half, cluster, threshold.criterion, resampling),
        n=len(p),
    )


def cross_fit_threshold(
    p: npt.ArrayLike,
    outcome: npt.ArrayLike,
    group: npt.ArrayLike,
    *,
    criterion: Criterion = "accuracy",
    folds: int = 10,
    resampling: Resampling = PAPERS,
) -> CrossFitted:
    """Every group's rows decided by the best threshold of the other folds' rows; groups are never split.

    Groups are dealt into folds at random (from the seed of `resampling`); as many folds as groups leaves one out each
    time. A fold whose training rows have one class only is decided at one half, and counted.

    >>> c = cross_fit_threshold([0.1, 0.2, 0.3, 0.4] * 5, [0, 0, 1, 1] * 5, [i // 4 for i in range(20)], folds=5)
    >>> c.score, c.in_sample, c.score_at_half
    (1.0, 1.0, 0.5)
    """
    p, outcome = as_pairs(as_vector(p, "p"), as_vector(outcome, "outcome"))
    fold = _folds(group, len(p), folds, resampling)
    threshold, fallbacks = np.full(len(p), HALF), 0
    for one in range(int(fold.max()) + 1):
        test, train = fold == one, fold != one
        if np.ptp(outcome[train]) == 0:
            fallbacks += 1
        else:
            threshold[test] = best_threshold(p[train], outcome[train], criterion=criterion).value
    fitted, at_half = _columns(p > threshold, outcome), _columns(p > HALF, outcome)
    return CrossFitted(
        threshold=threshold,
        decision=p > threshold,
        score=float(score_counts(fitted.sum(axis=0), criterion)),
        score_at_half=float(score_counts(at_half.sum(axis=0), criterion)),
        in_sample=float(np.nanmax(score_counts(all_cuts(p, outcome).counts, criterion))),
        gain=_gain(fitted, at_half, group, criterion, resampling),
        fallbacks=fallbacks,
    )


def _folds(group: npt.ArrayLike, n: int, folds: int, resampling: Resampling) -> Ints:
    groups = factorise(group, "group")
    if len(groups.codes) != n:
        raise ValueError(f"group has {len(groups.codes)} rows, p has {n}")
    if folds < 2 or groups.n < 2:
        raise ValueError(f"cross-fitting needs two folds and two groups, not {folds} and {groups.n}")
    dealt = np.arange(groups.n) % min(folds, groups.n)
    return resampling.rng().permutation(dealt)[groups.codes].astype(np.int64)


def _stretches(cuts: Cuts, best: Bools) -> tuple[Floats, Floats]:
    """Ends of the runs of neighbouring best cuts."""
    edges = np.diff(np.concatenate([[0], best.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    low, high = cuts.low[starts], cuts.high[ends]
    return np.where(high > 0, np.maximum(low, 0.0), low), high


def _columns(decision: Bools, outcome: Floats) -> Floats:
    """tp, fp, fn, tn of each row."""
    said, true = decision.astype(np.float64), outcome
    return np.stack([said * true, said * (1 - true), (1 - said) * true, (1 - said) * (1 - true)], axis=1)


def _gain(
    first: Floats, second: Floats, cluster: npt.ArrayLike | None, criterion: Criterion, resampling: Resampling
) -> Comparison:
    def statistic(sums: Floats) -> Floats:
        return score_counts(sums, criterion)

    return compare_paired(first, second, cluster, statistic=statistic, resampling=resampling)


def _ratio(top: Floats, bottom: Floats) -> Floats:
    top, bottom = np.asarray(top, np.float64), np.asarray(bottom, np.float64)
    return np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)
