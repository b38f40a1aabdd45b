"""Do two raters mean the same by the same mark? Weighted kappa, correlation and distance, from sums over items.

All of them are functions of sums, so that intervals come from resampling whole items, whatever the number of raters.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, as_vector, as_weights, reject, same_shape
from foretell.evaluate.bootstrap import PAPERS, Resampling, Statistic, bootstrap_sums, mean_from_sums
from foretell.evaluate.clusters import factorise
from foretell.evaluate.intervals import Interval

Penalty = Literal["linear", "quadratic"]


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How far one rater's marks agree with another's."""

    items: int
    ratings: int
    kappa: Interval
    """Weighted by the square of the distance (Cohen 1968)."""
    linear: Interval
    """Weighted by the distance."""
    pearson: Interval
    spearman: Interval
    distance: Interval
    """Mean |first − second|."""
    variance: float
    """Of |first − second| over items, as Prophet Arena (2025, Table 11) reports it beside the mean."""
    bias: Interval
    """Mean first − second: above 0 where the first is more generous."""
    exact: float
    within_one: float


def agreement(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    item: npt.ArrayLike,
    *,
    marks: int = 5,
    resampling: Resampling = PAPERS,
) -> Agreement:
    """Agreement of paired marks 1..marks; every item counts once however many pairs it has.

    >>> found = agreement([1, 2, 3, 4, 5, 3], [1, 2, 3, 5, 4, 3], list("abcdef"))
    >>> round(found.kappa.estimate, 3), round(found.distance.estimate, 3), found.items
    (0.9, 0.333, 6)
    """
    a, b, items = _marks(first, "first", marks), _marks(second, "second", marks), factorise(item, "item")
    same_shape(first=a, second=b, item=items.codes)
    weight = 1.0 / items.sizes[items.codes]
    gap = np.abs(a - b)
    cells = _cells(a, b, weight, marks)

    def interval(columns: Floats, statistic: Statistic) -> Interval:
        return bootstrap_sums(items.sums(columns), statistic, resampling)

    def mean(values: Floats) -> Interval:
        return interval(np.column_stack([weight * values, weight]), mean_from_sums)

    per_item = items.sums(np.column_stack([weight * gap]))[:, 0]
    return Agreement(
        items=items.n,
        ratings=len(a),
        kappa=interval(cells, partial(kappa_from_sums, marks=marks, penalty="quadratic")),
        linear=interval(cells, partial(kappa_from_sums, marks=marks, penalty="linear")),
        pearson=interval(_moments(a, b, weight), correlation_from_sums),
        spearman=interval(_moments(_ranks(a, weight), _ranks(b, weight), weight), correlation_from_sums),
        distance=mean(gap),
        variance=float(np.var(per_item, ddof=1)) if items.n > 1 else float("nan"),
        bias=mean(a - b),
        exact=float(np.average(gap == 0, weights=weight)),
        within_one=float(np.average(gap <= 1, weights=weight)),
    )


def kappa_from_sums(sums: Floats, marks: int, penalty: Penalty = "quadratic") -> Floats:
    """κ = 1 − Σ v_ij O_ij / Σ v_ij E_ij of cell sums (..., marks²), v_ij = |i−j| or (i−j)² (Cohen 1968).

    E has the margins of O. Where nobody disagrees by chance (both always give one mark), κ is undefined: NaN.

    >>> table = np.array([[2.0, 1.0], [1.0, 2.0]]).reshape(-1)
    >>> round(float(kappa_from_sums(table, 2)), 3)
    0.333
    """
    table = sums.reshape(*sums.shape[:-1], marks, marks)
    total = table.sum(axis=(-2, -1), keepdims=True)
    share = np.divide(table, total, out=np.full(table.shape, np.nan), where=total > 0)
    steps = np.abs(np.subtract.outer(np.arange(marks), np.arange(marks))).astype(np.float64)
    cost = steps**2 if penalty == "quadratic" else steps
    expected = share.sum(axis=-1)[..., :, None] * share.sum(axis=-2)[..., None, :]
    seen, chance = (cost * share).sum(axis=(-2, -1)), (cost * expected).sum(axis=(-2, -1))
    return 1 - np.divide(seen, chance, out=np.full(chance.shape, np.nan), where=chance > 1e-12)


def correlation_from_sums(sums: Floats) -> Floats:
    """Pearson's r of sums (..., 6) of w, wx, wy, wxx, wyy, wxy; NaN where one side does not vary.

    >>> x, y = np.array([1.0, 2, 4]), np.array([2.0, 4, 8])
    >>> round(float(correlation_from_sums(_moments(x, y, np.ones(3)).sum(axis=0))), 6)
    1.0
    """
    w, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    cov, var_x, var_y = w * xy - x * y, w * xx - x * x, w * yy - y * y
    spread = np.sqrt(np.maximum(var_x, 0) * np.maximum(var_y, 0))
    return np.divide(cov, spread, out=np.full(cov.shape, np.nan), where=spread > 1e-9 * np.maximum(w * w, 1e-300))


def _cells(a: Floats, b: Floats, weight: Floats, marks: int) -> Floats:
    """One row per pair with its weight in the cell of its two marks."""
    cells = np.zeros((len(a), marks * marks))
    cells[np.arange(len(a)), ((a - 1) * marks + b - 1).astype(np.int64)] = weight
    return cells


def _moments(x: Floats, y: Floats, weight: Floats) -> Floats:
    return np.column_stack([weight * one for one in (np.ones_like(x), x, y, x * x, y * y, x * y)])


def _ranks(values: Floats, weight: Floats) -> Floats:
    """Mid-ranks by weight, centred, so that an item with several ratings takes one place."""
    unique, codes = np.unique(values, return_inverse=True)
    mass = np.bincount(codes, weights=as_weights(weight, len(values)), minlength=len(unique))
    middle = np.cumsum(mass) - mass / 2
    return (middle - mass.sum() / 2)[codes]


def _marks(values: npt.ArrayLike, name: str, marks: int) -> Floats:
    found = as_vector(values, name)
    reject((found < 1) | (found > marks) | (found % 1 != 0), found, name, f"is no whole mark from 1 to {marks}")
    return found
