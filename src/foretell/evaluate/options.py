"""Scores of tasks that choose between options with dollar values, and of True/False labels cut from p.

After Analytica (section 5.1 and appendices C.1, D.3, D.5). Options come as flat arrays with a task label per
row, so that tasks may have different numbers of options. Per-task results are in the sorted order of labels.

Where several options share the highest p, the least valuable of them counts as the choice: indecision earns
no luck.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import (
    Floats,
    Ints,
    as_floats,
    as_pairs,
    as_probabilities,
    as_vector,
    group_sums,
    reject,
    same_shape,
)
from foretell.evaluate.clusters import factorise


def accuracy(p: npt.ArrayLike, value: npt.ArrayLike, task: npt.ArrayLike) -> Floats:
    """1 for each task whose highest-p option has the best value, else 0.

    >>> accuracy([0.7, 0.3, 0.5, 0.5], [1.2, 0.8, 1.0, 2.0], ["a", "a", "b", "b"])
    array([1., 0.])
    """
    p, value, code, tasks = _tasks(p, value, task)
    return (_chosen(p, value, code, tasks) == _extreme(np.maximum, value, code, tasks)).astype(np.float64)


def hard_score(p: npt.ArrayLike, value: npt.ArrayLike, task: npt.ArrayLike) -> Floats:
    """Value of the highest-p option per task, min–max normalised: 0 is the worst choice, 1 the best.

    Raises for a task whose options are all worth the same: there is nothing to choose.

    >>> hard_score([0.2, 0.5, 0.3], [1.0, 1.5, 3.0], ["a", "a", "a"])
    array([0.25])
    """
    p, value, code, tasks = _tasks(p, value, task)
    return _normalised(_chosen(p, value, code, tasks), value, code, tasks)


def soft_score(p: npt.ArrayLike, value: npt.ArrayLike, task: npt.ArrayLike) -> Floats:
    """Value expected under p per task, Σ p·v / Σ p, min–max normalised over the task's options.

    >>> soft_score([0.2, 0.5, 0.3], [1.0, 1.5, 3.0], ["a", "a", "a"]).round(4)
    array([0.425])
    """
    p, value, code, tasks = _tasks(p, value, task)
    mass = group_sums(code, p, tasks)
    reject(mass == 0, mass, "sum of p of task", "leaves no option possible")
    return _normalised(group_sums(code, p * value, tasks) / mass, value, code, tasks)


def confidence(p: npt.ArrayLike, task: npt.ArrayLike) -> Floats:
    """Highest p given to any option of each task: how sure the forecaster says it is.

    >>> confidence([0.2, 0.5, 0.9], ["a", "a", "b"])
    array([0.5, 0.9])
    """
    p = np.atleast_1d(as_probabilities(p))
    tasks = factorise(task, "task")
    same_shape(p=p, task=tasks.codes)
    return _extreme(np.maximum, p, tasks.codes, tasks.n)


def hard_score_variance(score: npt.ArrayLike, task: npt.ArrayLike) -> float:
    """Variance (n − 1) of the hard score between repeated runs of a task, averaged over tasks.

    One row per (task, run). Tasks with a single run say nothing about variance and are left out.

    >>> hard_score_variance([0.0, 1.0, 1.0, 1.0], ["a", "a", "b", "b"])
    0.25
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


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """A cut on p fitted to labelled claims; apply it to other claims than those."""

    cut: float
    accuracy: float
    """Share of the fitting data it labels rightly."""
    n: int

    def label(self, p: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """True where p lies above the cut."""
        return as_probabilities(p) > self.cut


def best_threshold(p: npt.ArrayLike, outcome: npt.ArrayLike) -> Threshold:
    """The cut δ in [0, 1] for which labels p > δ are right most often, over all cuts, in O(n log n).

    Accuracy only changes at the values of p, so every interval between neighbours is tried at its midpoint.
    Of equally good cuts the one nearest to 0.5 wins, then the lower.

    >>> best_threshold([0.1, 0.25, 0.5, 0.6], [0, 0, 1, 1])
    Threshold(cut=0.375, accuracy=1.0, n=4)
    """
    p, outcome = as_pairs(np.ravel(p), np.ravel(outcome))
    low, code = np.unique(np.concatenate([[0.0], p]), return_inverse=True)
    yes = group_sums(code[1:], outcome, len(low))
    no = group_sums(code[1:], 1 - outcome, len(low))
    right = np.cumsum(no) + (yes.sum() - np.cumsum(yes))
    high = np.append(low[1:], 1.0)
    middle = (low + high) / 2
    # Between two neighbouring floats the midpoint rounds up to the higher one, which the cut must stay below.
    cut = np.where((middle < high) | (low == high), middle, low)
    best = np.flatnonzero(right == right.max())
    pick = best[np.argmin(np.abs(cut[best] - 0.5))]
    return Threshold(cut=float(cut[pick]), accuracy=float(right[pick] / len(p)), n=len(p))


def consensus_matrix(predictions: npt.ArrayLike) -> Floats:
    """Share of tasks on which each pair of methods agrees, from a (methods × tasks) matrix.

    Entries may be correctness (0/1) or codes of the chosen option; NaN marks a task a method did not answer,
    and each pair is compared on the tasks both answered (NaN if there is none).

    >>> consensus_matrix([[1, 0, 1, 1], [1, 1, 1, 0]])
    array([[1. , 0.5], [0.5, 1. ]])
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


def _chosen(p: Floats, value: Floats, code: Ints, tasks: int) -> Floats:
    top = p == _extreme(np.maximum, p, code, tasks)[code]
    return _extreme(np.minimum, value[top], code[top], tasks)


def _normalised(worth: Floats, value: Floats, code: Ints, tasks: int) -> Floats:
    low, high = _extreme(np.minimum, value, code, tasks), _extreme(np.maximum, value, code, tasks)
    reject(low == high, low, "value of all options of task", "leaves nothing to choose")
    return (worth - low) / (high - low)
