"""How far forecasters are apart: Jensen–Shannon divergence of binary forecasts, in bits.

Averaging helps where members are good and different; this measures the second half of that, without any outcome.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, Ints, as_probabilities, reject

TINY = float(np.finfo(np.float64).tiny)
CELLS = 4_000_000
"""Numbers held at once while pairs are compared."""


@dataclass(frozen=True, kw_only=True)
class DivergenceMatrix:
    """Every forecaster against every other, on the targets both answered."""

    mean: Floats
    """Mean divergence in bits; 0 on the diagonal, NaN where two share no target."""
    n: Ints
    """Targets both answered; on the diagonal, those the forecaster answered."""


def jensen_shannon(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """JSD(p, q) = ½·KL(p‖m) + ½·KL(q‖m) with m = (p + q)/2, per target and in bits (Lin 1991).

    Symmetric, between 0 (equal) and 1 (opposite certainties), finite even at 0 and 1. Near equality it is
    (p − q)² / (8·m·(1 − m)·ln 2).

    >>> jensen_shannon([0.0, 0.5, 0.3], [1.0, 0.5, 0.1]).round(4).tolist()
    [1.0, 0.0, 0.0468]
    """
    from scipy.special import rel_entr

    p, q = np.broadcast_arrays(as_probabilities(p), as_probabilities(q, "q"))
    # The other half is averaged by itself: next to certainty 1 − middle may round to zero. Neither may be zero itself.
    middle, other = (np.maximum(both / 2, TINY) for both in (p + q, (1 - p) + (1 - q)))
    # Written as divergences, not as a difference of entropies: equal forecasts then give exactly zero.
    of_p = rel_entr(p, middle) + rel_entr(1 - p, other)
    of_q = rel_entr(q, middle) + rel_entr(1 - q, other)
    return np.clip((of_p + of_q) / (2 * np.log(2)), 0.0, 1.0)


def divergence_matrix(p: npt.ArrayLike) -> DivergenceMatrix:
    """Mean Jensen–Shannon divergence of all pairs of columns of `p` (targets × forecasters, NaN = unanswered).

    >>> d = divergence_matrix([[0.0, 1.0, float("nan")], [0.5, 0.5, float("nan")]])
    >>> d.mean.tolist(), d.n.tolist()
    ([[0.0, 0.5, nan], [0.5, 0.0, nan], [nan, nan, nan]], [[2, 2, 0], [2, 2, 0], [0, 0, 0]])
    """
    table = np.asarray(p, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise ValueError(f"p must be a non-empty matrix (targets, forecasters), it has shape {table.shape}")
    answered = ~np.isnan(table)
    filled = np.where(answered, table, 0.5)
    reject((filled < 0) | (filled > 1), table, "p", "lies outside [0, 1]")
    n = (answered.T.astype(np.int64) @ answered.astype(np.int64)).astype(np.int64)
    total = np.zeros(n.shape)
    columns = max(1, CELLS // table.shape[0])
    for first in range(table.shape[1]):
        for start in range(first + 1, table.shape[1], columns):
            others = slice(start, start + columns)
            both = answered[:, [first]] & answered[:, others]
            pairs = np.where(both, jensen_shannon(filled[:, [first]], filled[:, others]), 0.0)
            total[first, others] = pairs.sum(axis=0)
    total += total.T
    mean = np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)
    return DivergenceMatrix(mean=mean, n=n)
