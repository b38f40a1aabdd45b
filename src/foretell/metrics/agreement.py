"""Agreement between raters (weighted kappa, correlation, distance), consistency and divergence of forecasts.

The agreement of raters is a function of sums over items, so intervals come from resampling whole items, whatever the
number of raters.
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import (
    Floats,
    Ints,
    as_probabilities,
    as_vector,
    as_weights,
    group_sums,
    reject,
    same_shape,
)
from foretell.metrics.bootstrap import (
    DEFAULT_RESAMPLING,
    Interval,
    Resampling,
    Statistic,
    bootstrap_sums,
    mean_from_sums,
)
from foretell.metrics.clusters import factorise
from foretell.metrics.numerics import largest_decrease

Penalty = Literal["linear", "quadratic"]


@frozen
class RaterAgreement:
    """How far one rater's marks agree with another's."""

    items: int
    ratings: int
    kappa: Interval
    """Cohen's kappa, weighted by the squared distance (Cohen 1968)."""
    linear: Interval
    """Cohen's kappa, weighted by the distance."""
    pearson: Interval
    spearman: Interval
    distance: Interval
    """Mean |first − second|."""
    variance: float
    """Variance of |first − second| over items, which Prophet Arena (2025, Table 11) reports besides the mean."""
    bias: Interval
    """Mean first − second; positive if the first rater is more generous."""
    exact: float
    within_one: float


def rater_agreement(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    item: npt.ArrayLike,
    *,
    marks: int = 5,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> RaterAgreement:
    """Agreement of paired marks 1..marks; every item counts once, however many pairs it has."""
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
    return RaterAgreement(
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

    E has the margins of O. If chance disagreement is impossible (both always give one mark), κ is undefined: NaN.
    """
    table = sums.reshape(*sums.shape[:-1], marks, marks)
    total = table.sum(axis=(-2, -1), keepdims=True)
    share = np.divide(table, total, out=np.full(table.shape, np.nan), where=total > 0)
    steps = np.abs(np.subtract.outer(np.arange(marks), np.arange(marks))).astype(np.float64)
    cost = steps**2 if penalty == "quadratic" else steps
    expected = share.sum(axis=-1)[..., :, None] * share.sum(axis=-2)[..., None, :]
    observed, chance = (cost * share).sum(axis=(-2, -1)), (cost * expected).sum(axis=(-2, -1))
    return 1 - np.divide(observed, chance, out=np.full(chance.shape, np.nan), where=chance > 1e-12)


def correlation_from_sums(sums: Floats) -> Floats:
    """Pearson's r of sums (..., 6) of w, wx, wy, wxx, wyy, wxy; NaN if one side does not vary."""
    w, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    cov, var_x, var_y = w * xy - x * y, w * xx - x * x, w * yy - y * y
    spread = np.sqrt(np.maximum(var_x, 0) * np.maximum(var_y, 0))
    return np.divide(cov, spread, out=np.full(cov.shape, np.nan), where=spread > 1e-9 * np.maximum(w * w, 1e-300))


def _cells(a: Floats, b: Floats, weight: Floats, marks: int) -> Floats:
    """One row per pair, with its weight in the cell of its two marks."""
    cells = np.zeros((len(a), marks * marks))
    cells[np.arange(len(a)), ((a - 1) * marks + b - 1).astype(np.int64)] = weight
    return cells


def _moments(x: Floats, y: Floats, weight: Floats) -> Floats:
    return np.column_stack([weight * column for column in (np.ones_like(x), x, y, x * x, y * y, x * y)])


def _ranks(values: Floats, weight: Floats) -> Floats:
    """Centred mid-ranks by weight, so that an item with several ratings takes one rank."""
    unique, codes = np.unique(values, return_inverse=True)
    mass = np.bincount(codes, weights=as_weights(weight, len(values)), minlength=len(unique))
    middle = np.cumsum(mass) - mass / 2
    return (middle - mass.sum() / 2)[codes]


def _marks(values: npt.ArrayLike, name: str, marks: int) -> Floats:
    vector = as_vector(values, name)
    reject((vector < 1) | (vector > marks) | (vector % 1 != 0), vector, name, f"is not a whole mark from 1 to {marks}")
    return vector


# Whether probabilities are consistent with each other, without outcomes (Prophet Arena, appendix D.4).
#
# Scores are the share of conditions that are met (1 is consistent). Gaps are the size of the violation (0 is
# consistent), which still distinguishes forecasters if nearly all of them meet the conditions.

ROUNDING_TOLERANCE = 1e-9
"""Tolerance for sums such as 0.1 + 0.2 that miss their value by a rounding error."""


def logical_chain_score(chains: Sequence[npt.ArrayLike]) -> float:
    """Mean over chains of the share of steps that obey S_t → S_t+1, i.e. p_t ≤ p_t+1 (PA Eq. 9).

    Each chain lists probabilities from the strongest claim to the weakest ("above 220" before "above 200"). Pass the
    maximal chains of one event and average over events; a single list of all chains weights chains equally.
    """
    if not len(chains):
        raise ValueError("chains is empty: there is nothing to score")
    steps = (np.diff(_chain(chain, f"chains[{i}]")) for i, chain in enumerate(chains))
    return float(np.mean([np.mean(step >= -ROUNDING_TOLERANCE) for step in steps]))


def chain_gap(chain: npt.ArrayLike) -> float:
    """Largest excess of a claim's probability over that of a claim it implies, max over s<t of (p_s − p_t)⁺."""
    return largest_decrease(_chain(chain, "chain"))


def exclusivity_score(p: npt.ArrayLike, event: npt.ArrayLike, *, tolerance: float = 0.02) -> float:
    """Share of events whose outcomes, of which exactly one comes true, sum to 1 within `tolerance` (PA Eq. 10).

    The paper names no tolerance; 0.02 allows for rounding to percent and little else.
    """
    if not tolerance >= 0:
        raise ValueError(f"tolerance must be >= 0, it is {tolerance}")
    p, events = np.atleast_1d(as_probabilities(p)), factorise(event, "event")
    same_shape(p=p, event=events.codes)
    gaps = group_sums(events.codes, p, events.n) - 1
    return float(np.mean(np.abs(gaps) <= tolerance + ROUNDING_TOLERANCE))


def _chain(chain: npt.ArrayLike, name: str) -> Floats:
    p = as_probabilities(chain, name)
    if p.ndim != 1 or len(p) < 2:
        raise ValueError(f"{name} needs at least two claims in a row, it has shape {p.shape}")
    return p


# Difference between forecasters: Jensen–Shannon divergence of binary forecasts, in bits.
#
# Averaging helps if members are good and different. This measures how different they are, without outcomes.

SMALLEST_FLOAT = float(np.finfo(np.float64).tiny)
CHUNK_CELLS = 4_000_000
"""Number of cells held in memory at once while pairs are compared."""


@frozen
class DivergenceMatrix:
    """Divergence of every pair of forecasters, on the targets both answered."""

    mean: Floats
    """Mean divergence in bits; 0 on the diagonal, NaN if two forecasters share no target."""
    n: Ints
    """Number of targets both answered; on the diagonal, number the forecaster answered."""


def jensen_shannon(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """JSD(p, q) = ½·KL(p‖m) + ½·KL(q‖m) with m = (p + q)/2, per target and in bits (Lin 1991).

    Symmetric, between 0 (equal) and 1 (opposite certainties), finite even at 0 and 1. Near equality it is
    (p − q)² / (8·m·(1 − m)·ln 2).
    """
    p, q = np.broadcast_arrays(as_probabilities(p), as_probabilities(q, "q"))
    # 1 − middle is averaged separately because it may round to zero near certainty. Neither may be zero.
    middle, other = (np.maximum(both / 2, SMALLEST_FLOAT) for both in (p + q, (1 - p) + (1 - q)))
    # The sum of divergences, unlike a difference of entropies, is exactly zero for equal forecasts.
    of_p = _relative_entropy(p, middle) + _relative_entropy(1 - p, other)
    of_q = _relative_entropy(q, middle) + _relative_entropy(1 - q, other)
    return np.clip((of_p + of_q) / (2 * np.log(2)), 0.0, 1.0)


def _relative_entropy(p: Floats, q: Floats) -> Floats:
    """Return p·ln(p / q), which is zero at p = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0, p * np.log(p / q), 0.0)


def divergence_matrix(p: npt.ArrayLike) -> DivergenceMatrix:
    """Mean Jensen–Shannon divergence of all pairs of columns of `p` (targets × forecasters, NaN = unanswered)."""
    table = np.asarray(p, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise ValueError(f"p must be a non-empty matrix (targets, forecasters), it has shape {table.shape}")
    answered = ~np.isnan(table)
    filled = np.where(answered, table, 0.5)
    reject((filled < 0) | (filled > 1), table, "p", "lies outside [0, 1]")
    n = (answered.T.astype(np.int64) @ answered.astype(np.int64)).astype(np.int64)
    total = np.zeros(n.shape)
    columns = max(1, CHUNK_CELLS // table.shape[0])
    for first in range(table.shape[1]):
        for start in range(first + 1, table.shape[1], columns):
            others = slice(start, start + columns)
            both = answered[:, [first]] & answered[:, others]
            pairs = np.where(both, jensen_shannon(filled[:, [first]], filled[:, others]), 0.0)
            total[first, others] = pairs.sum(axis=0)
    total += total.T
    mean = np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)
    return DivergenceMatrix(mean=mean, n=n)
