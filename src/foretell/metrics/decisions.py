"""Decisions from probabilities: choice between options, and thresholds for True or False.

A claim is called True if p > threshold. In every score, a p exactly at the threshold counts half for either side
(`scores.right_side`). A threshold chosen on the data it is scored on looks too good:
`score_threshold` applies a chosen one to other rows, and `cross_fit_threshold` chooses it for each group of rows on the
other groups.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import (
    Bools,
    Floats,
    Ints,
    as_floats,
    as_outcomes,
    as_pairs,
    as_probabilities,
    as_vector,
    as_weights,
    group_sums,
    reject,
    same_shape,
)
from foretell.metrics.bootstrap import DEFAULT_RESAMPLING, Resampling
from foretell.metrics.clusters import factorise
from foretell.metrics.comparison import Comparison, compare_paired
from foretell.metrics.scores import called_true

# Scores of tasks that choose between options with dollar values, and of True/False labels cut from p.
#
# After Analytica (section 5.1 and appendices C.1, D.3, D.5). Options come as flat arrays with a task label per
# row, so that tasks may have different numbers of options. Per-task results are in the sorted order of labels.
#
# Options that share the highest p share the choice equally, as if one of them were drawn at random.


def chosen_share(p: npt.ArrayLike, task: npt.ArrayLike) -> Floats:
    """Share of its task's choice that each option gets: 1 for the highest p, 1/k if k options have it, else 0.

    >>> chosen_share([0.5, 0.2, 0.4, 0.4], ["x", "x", "y", "y"]).tolist()
    [1.0, 0.0, 0.5, 0.5]
    """
    p, tasks = np.atleast_1d(as_probabilities(p)), factorise(task, "task")
    same_shape(p=p, task=tasks.codes)
    top = (p == _extreme(np.maximum, p, tasks.codes, tasks.n)[tasks.codes]).astype(np.float64)
    return top / group_sums(tasks.codes, top, tasks.n)[tasks.codes]


def choice_accuracy(p: npt.ArrayLike, value: npt.ArrayLike, task: npt.ArrayLike) -> Floats:
    """Share of each task's choice that is on its best value: 1 or 0, in between if options with the highest p tie."""
    p, value, code, tasks = _tasks(p, value, task)
    best = value == _extreme(np.maximum, value, code, tasks)[code]
    return group_sums(code, chosen_share(p, code) * best, tasks)


def hard_score(p: npt.ArrayLike, value: npt.ArrayLike, task: npt.ArrayLike) -> Floats:
    """Value of the highest-p option per task (the mean of tied ones), min–max normalised: 0 is worst, 1 is best.

    Raises for a task whose options all have the same value, because there is nothing to choose.
    """
    p, value, code, tasks = _tasks(p, value, task)
    return _normalised(group_sums(code, chosen_share(p, code) * value, tasks), value, code, tasks)


def soft_score(p: npt.ArrayLike, value: npt.ArrayLike, task: npt.ArrayLike) -> Floats:
    """Expected value under p per task, Σ p·v / Σ p, min–max normalised over the task's options."""
    p, value, code, tasks = _tasks(p, value, task)
    mass = group_sums(code, p, tasks)
    reject(mass == 0, mass, "sum of p of task", "leaves no option possible")
    return _normalised(group_sums(code, p * value, tasks) / mass, value, code, tasks)


@frozen
class TaskDecisions:
    """The four scores of every task, in the sorted order of task labels."""

    right: Floats
    hard: Floats
    soft: Floats
    confidence: Floats


def decide_tasks(p: npt.ArrayLike, value: npt.ArrayLike, task: npt.ArrayLike) -> TaskDecisions:
    """Accuracy, hard and soft score and confidence of every task.

    >>> scores = decide_tasks([0.7, 0.3], [1.31, 0.69], ["x", "x"])
    >>> float(scores.right[0]), float(scores.hard[0]), round(float(scores.soft[0]), 2), float(scores.confidence[0])
    (1.0, 1.0, 0.7, 0.7)
    """
    p, tasks = np.atleast_1d(as_probabilities(p)), factorise(task, "task")
    mass = group_sums(tasks.codes, p, tasks.n)[tasks.codes]
    # If all options of a task have probability 0, they are weighted equally.
    positive = np.where(mass == 0, 1.0, p)
    return TaskDecisions(
        right=choice_accuracy(p, value, task),
        hard=hard_score(p, value, task),
        soft=soft_score(positive, value, task),
        confidence=confidence(p, task),
    )


def clear_answers(right: npt.ArrayLike) -> Floats:
    """The answers that McNemar's test can count, 1 and 0; NaN for shares in between (ties) and for missing answers.

    >>> clear_answers([1.0, 0.5, 0.0]).tolist()
    [1.0, nan, 0.0]
    """
    right = np.asarray(right, np.float64)
    return np.where((right == 0) | (right == 1), right, np.nan)


def confidence(p: npt.ArrayLike, task: npt.ArrayLike) -> Floats:
    """Highest p given to any option of each task: the forecaster's stated confidence."""
    p = np.atleast_1d(as_probabilities(p))
    tasks = factorise(task, "task")
    same_shape(p=p, task=tasks.codes)
    return _extreme(np.maximum, p, tasks.codes, tasks.n)


def hard_score_variance(score: npt.ArrayLike, task: npt.ArrayLike) -> float:
    """Variance (n − 1) of the hard score between repeated runs of a task, averaged over tasks.

    One row per (task, run). Tasks with a single run have no variance and are left out.
    """
    score = as_vector(score, "score")
    tasks = factorise(task, "task")
    same_shape(score=score, task=tasks.codes)
    code, runs = tasks.codes, tasks.sizes
    if not (runs > 1).any():
        raise ValueError("task has no task with two runs: there is no variance to measure")
    mean = group_sums(code, score, tasks.n) / runs
    squares = group_sums(code, (score - mean[code]) ** 2, tasks.n)
    return float(np.mean(squares[runs > 1] / (runs[runs > 1] - 1)))


def consensus_matrix(predictions: npt.ArrayLike) -> Floats:
    """Share of tasks on which each pair of methods agrees, from a (methods × tasks) matrix.

    Entries may be correctness (0/1) or codes of the chosen option. NaN marks a task that a method did not answer; each
    pair is compared on the tasks both answered (NaN if there are none).
    """
    table = np.asarray(predictions, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"predictions must be a non-empty (methods, tasks) matrix, it has shape {table.shape}")
    answered = (~np.isnan(table)).astype(np.float64)
    both = answered @ answered.T
    agree = np.stack([(table == row).sum(axis=1) for row in table])
    return np.divide(agree, both, out=np.full_like(both, np.nan), where=both > 0)


def _tasks(p: npt.ArrayLike, value: npt.ArrayLike, task: npt.ArrayLike) -> tuple[Floats, Floats, Ints, int]:
    p = np.atleast_1d(as_probabilities(p))
    worth = np.atleast_1d(as_floats(value, "value"))
    reject(np.isinf(worth), worth, "value", "is not finite")
    tasks = factorise(task, "task")
    same_shape(p=p, value=worth, task=tasks.codes)
    return p, worth, tasks.codes, tasks.n


def _extreme(which: np.ufunc, x: Floats, code: Ints, tasks: int) -> Floats:
    out = np.full(tasks, -np.inf if which is np.maximum else np.inf)
    which.at(out, code, x)
    return out


def _normalised(worth: Floats, value: Floats, code: Ints, tasks: int) -> Floats:
    low, high = _extreme(np.minimum, value, code, tasks), _extreme(np.maximum, value, code, tasks)
    reject(low == high, low, "value of all options of task", "leaves nothing to choose")
    return (worth - low) / (high - low)


Criterion = Literal["accuracy", "balanced", "f1"]
DEFAULT_THRESHOLD = 0.5
SCORE_TIE = 1e-12
"""Scores closer than this count as equal."""


@frozen
class ThresholdCuts:
    """Every way to split the forecasts into True and False, from all True to all False."""

    low: Floats
    """Each cut applies to thresholds from `low` up to, but not including, `high`."""
    high: Floats
    counts: Floats
    """Cuts × (true positives, false positives, false negatives, true negatives), weighted."""


@frozen
class DecisionThreshold:
    """A threshold and the rows it was chosen on. `score` is its score there, and so no estimate for other rows."""

    value: float
    low: float
    """Every threshold from `low` to `high` scores the same on those rows."""
    high: float
    score: float
    criterion: Criterion
    n: int


@frozen
class ThresholdReport:
    """A threshold evaluated on rows it was not chosen on."""

    threshold: DecisionThreshold
    score: float
    score_at_half: float
    gain: Comparison
    """Score at the threshold − score at one half, with clusters resampled."""
    n: int


@frozen
class CrossFittedThreshold:
    """Decisions for each group by a threshold chosen on the other groups."""

    threshold: Floats
    """The threshold of each row."""
    decision: Bools
    score: float
    score_at_half: float
    in_sample: float
    """Score of the best single threshold on all rows: too optimistic, because it is chosen on those rows."""
    gain: Comparison
    fallbacks: int
    """Number of folds whose training rows had only one class, so that the threshold one half was used."""


def score_counts(counts: Floats, criterion: Criterion) -> Floats:
    """The criterion of (…, 4) counts tp, fp, fn, tn; NaN if it is undefined.

    accuracy = (tp + tn)/all; balanced = ½·(tp/(tp + fn) + tn/(tn + fp)); f1 = 2tp/(2tp + fp + fn).
    """
    tp, fp, fn, tn = (counts[..., k] for k in range(4))
    if criterion == "accuracy":
        return _ratio(tp + tn, tp + fp + fn + tn)
    if criterion == "balanced":
        return (_ratio(tp, tp + fn) + _ratio(tn, tn + fp)) / 2
    if criterion == "f1":
        return _ratio(2 * tp, 2 * tp + fp + fn)
    raise ValueError(f"criterion {criterion!r} is none of accuracy, balanced, f1")


def all_cuts(p: npt.ArrayLike, outcome: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> ThresholdCuts:
    """Return all m + 1 cuts of m distinct forecasts, using one sort."""
    p, outcome = as_pairs(as_vector(p, "p"), as_vector(outcome, "outcome"))
    weight = as_weights(weight, len(p))
    values, place = np.unique(p, return_inverse=True)
    below = np.zeros((len(values) + 1, 2))
    for column, rows in enumerate((outcome, 1 - outcome)):
        below[1:, column] = np.cumsum(np.bincount(place, weights=weight * rows, minlength=len(values)))
    above = below[-1] - below
    counts = np.stack([above[:, 0], above[:, 1], below[:, 0], below[:, 1]], axis=1)
    # Calling p = 0 True takes a threshold below 0, and calling p = 1 False takes one above 1.
    first, last = 0.0 if values[0] > 0 else -1.0, 1.0 if values[-1] < 1 else 2.0
    return ThresholdCuts(low=np.append(first, values), high=np.append(values, last), counts=counts)


def best_threshold(
    p: npt.ArrayLike,
    outcome: npt.ArrayLike,
    *,
    criterion: Criterion = "accuracy",
    weight: npt.ArrayLike | None = None,
) -> DecisionThreshold:
    """The threshold of the best cut: the middle of the range of thresholds that reach the best score.

    If several ranges reach it, the widest is taken; among equally wide ones, the one whose middle is nearest to one
    half; then the lower. Rows of one class only raise, because any threshold beyond them would count as best.
    """
    outcomes = as_outcomes(as_vector(outcome, "outcome"))
    if outcomes.min() == outcomes.max():
        raise ValueError(f"outcome is always {int(outcomes[0])}: a threshold needs rows of both classes")
    cuts = all_cuts(p, outcomes, weight)
    score = score_counts(cuts.counts, criterion)
    best = float(np.nanmax(score))
    low, high = _stretches(cuts, score >= best - SCORE_TIE)
    middle, width = (low + high) / 2, np.minimum(high, 1) - np.maximum(low, 0)
    # Between neighbouring floats the middle is the upper one, which would already be another cut.
    middle = np.where(middle < high, middle, low)
    take = np.lexsort((middle, np.abs(middle - DEFAULT_THRESHOLD).round(12), -width.round(12)))[0]
    return DecisionThreshold(
        value=float(middle[take]),
        low=float(low[take]),
        high=float(high[take]),
        score=best,
        criterion=criterion,
        n=len(outcomes),
    )


def score_threshold(
    threshold: DecisionThreshold,
    p: npt.ArrayLike,
    outcome: npt.ArrayLike,
    cluster: npt.ArrayLike | None = None,
    *,
    weight: npt.ArrayLike | None = None,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> ThresholdReport:
    """Score a threshold chosen elsewhere on these rows, compared with one half."""
    p, outcome = as_pairs(as_vector(p, "p"), as_vector(outcome, "outcome"))
    weights = as_weights(weight, len(p))[:, None]
    at_threshold, at_half = (confusion_columns(p, outcome, at) * weights for at in (threshold.value, DEFAULT_THRESHOLD))
    return ThresholdReport(
        threshold=threshold,
        score=float(score_counts(at_threshold.sum(axis=0), threshold.criterion)),
        score_at_half=float(score_counts(at_half.sum(axis=0), threshold.criterion)),
        gain=_gain(at_threshold, at_half, cluster, threshold.criterion, resampling),
        n=len(p),
    )


def cross_fit_threshold(  # noqa: PLR0913 - rows, and how they are split and judged
    p: npt.ArrayLike,
    outcome: npt.ArrayLike,
    group: npt.ArrayLike,
    *,
    criterion: Criterion = "accuracy",
    weight: npt.ArrayLike | None = None,
    folds: int = 10,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> CrossFittedThreshold:
    """Decide every group's rows by the best threshold of the other folds' rows; groups are never split.

    Groups are assigned to folds at random (from the seed of `resampling`); with as many folds as groups, one is left
    out each time. A fold whose training rows have only one class is decided at one half, and counted.
    """
    p, outcome = as_pairs(as_vector(p, "p"), as_vector(outcome, "outcome"))
    weights = as_weights(weight, len(p))
    fold = _folds(group, len(p), folds, resampling)
    threshold, fallbacks = np.full(len(p), DEFAULT_THRESHOLD), 0
    for number in range(int(fold.max()) + 1):
        test, train = fold == number, fold != number
        if np.ptp(outcome[train]) == 0:
            fallbacks += 1
        else:
            best = best_threshold(p[train], outcome[train], criterion=criterion, weight=weights[train])
            threshold[test] = best.value
    fitted, at_half = (confusion_columns(p, outcome, at) * weights[:, None] for at in (threshold, DEFAULT_THRESHOLD))
    return CrossFittedThreshold(
        threshold=threshold,
        decision=p > threshold,
        score=float(score_counts(fitted.sum(axis=0), criterion)),
        score_at_half=float(score_counts(at_half.sum(axis=0), criterion)),
        in_sample=float(np.nanmax(score_counts(all_cuts(p, outcome, weights).counts, criterion))),
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


def _stretches(cuts: ThresholdCuts, best: Bools) -> tuple[Floats, Floats]:
    """Start and end of each run of neighbouring best cuts."""
    edges = np.diff(np.concatenate([[0], best.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    low, high = cuts.low[starts], cuts.high[ends]
    return np.where(high > 0, np.maximum(low, 0.0), low), np.where(low < 1, np.minimum(high, 1.0), high)


def confusion_columns(p: Floats, outcome: Floats, threshold: float | Floats = DEFAULT_THRESHOLD) -> Floats:
    """tp, fp, fn, tn of each row; a p at the threshold counts half as called True and half as called False."""
    called, true = called_true(p, threshold), outcome
    return np.stack([called * true, called * (1 - true), (1 - called) * true, (1 - called) * (1 - true)], axis=1)


def _gain(
    first: Floats, second: Floats, cluster: npt.ArrayLike | None, criterion: Criterion, resampling: Resampling
) -> Comparison:
    def statistic(sums: Floats) -> Floats:
        return score_counts(sums, criterion)

    return compare_paired(first, second, cluster, statistic=statistic, resampling=resampling)


def _ratio(top: Floats, bottom: Floats) -> Floats:
    top, bottom = np.asarray(top, np.float64), np.asarray(bottom, np.float64)
    return np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)
