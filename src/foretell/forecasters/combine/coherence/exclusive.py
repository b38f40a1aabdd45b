"""Outcomes of which exactly one, or at most one, comes true."""

from typing import cast

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, as_probabilities, as_vector, as_weights, reject
from foretell.forecasters.combine.coherence.distance import Distance, check_distance
from foretell.forecasters.combine.rows import logit, sigmoid

ROUNDING = 1e-12


def exactly_one(p: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, distance: Distance = "squared") -> Floats:
    """The nearest probabilities that sum to one.

    squared: q_i = max(0, p_i − τ/w_i), the projection onto the simplex, exact from one sort (Held et al. 1974).
    log: logit q_i = logit p_i + τ/w_i. In both, τ makes the sum one. Small outcomes may end at 0 under `squared`,
    never under `log`.

    >>> exactly_one([0.6, 0.6, 0.1]).round(3).tolist()
    [0.5, 0.5, 0.0]
    >>> exactly_one([0.6, 0.6, 0.1], distance="log").round(3).tolist()
    [0.469, 0.469, 0.061]
    """
    check_distance(distance)
    p, weight = _checked(p, weight)
    if abs(p.sum() - 1) <= ROUNDING:
        return p
    return _on_simplex(p, weight) if distance == "squared" else _shifted(p, weight)


def at_most_one(p: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, distance: Distance = "squared") -> Floats:
    """The nearest probabilities whose sum does not exceed one; those that already keep to it stay as they are.

    >>> at_most_one([0.3, 0.4]).tolist(), at_most_one([0.8, 0.4]).round(3).tolist()
    ([0.3, 0.4], [0.7, 0.3])
    """
    check_distance(distance)
    p, weight = _checked(p, weight)
    return p if p.sum() <= 1 + ROUNDING else exactly_one(p, weight, distance=distance)


def in_proportion(p: npt.ArrayLike) -> Floats:
    """Divided by the sum: the nearest in KL(q‖p) of the options as one distribution; ratios are kept.

    >>> in_proportion([0.6, 0.6, 0.3]).round(3).tolist()
    [0.4, 0.4, 0.2]
    """
    p, _ = _checked(p, None)
    if not p.sum() > 0:
        raise ValueError("p is zero throughout: nothing says in which proportion to share")
    return p / p.sum()


def _checked(p: npt.ArrayLike, weight: npt.ArrayLike | None) -> tuple[Floats, Floats]:
    p = as_probabilities(as_vector(p, "p"))
    weight = as_weights(weight, len(p))
    reject(weight <= 0, weight, "weight", "is not positive")
    return p, weight


def _on_simplex(p: Floats, weight: Floats) -> Floats:
    # q_i is positive for τ below p_i·w_i, so those outcomes are in play that come first in this order.
    order = np.argsort(-p * weight, kind="stable")
    tau = (np.cumsum(p[order]) - 1) / np.cumsum(1 / weight[order])
    last = int(np.flatnonzero((p * weight)[order] > tau)[-1])
    return np.maximum(0.0, p - tau[last] / weight)


def _shifted(p: Floats, weight: Floats) -> Floats:
    from scipy.optimize import brentq

    if len(p) == 1:
        return np.ones(1)
    x = logit(p)

    def excess(tau: float) -> float:
        return float(sigmoid(x + tau / weight).sum() - 1)

    edge = 1.0
    while excess(-edge) > 0 or excess(edge) < 0:
        edge *= 2
    tau = cast("float", brentq(excess, -edge, edge, xtol=1e-15))
    q = sigmoid(x + tau / weight)
    return q / q.sum()
