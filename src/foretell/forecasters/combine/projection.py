"""The nearest probabilities that satisfy what must hold between claims: an order, a sum of one, implications.

"Nearest" is by a distance. `squared`: Σ w(q − p)². `log`: Σ w·KL(q‖p) of the binary forecasts, a Euclidean projection
of the log-odds' kind. Either way q is at least as good as p in its own score, on every outcome that can happen
(Pythagoras; Csiszár 1975).
"""

from collections.abc import Sequence
from typing import Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from foretell.forecasters.combine.rows import logit, sigmoid
from foretell.metrics.arrays import Floats, as_probabilities, as_vector, as_weights, group_sums, reject

Distance = Literal["squared", "log"]
ROUNDING = 1e-12


def check_distance(distance: Distance) -> None:
    """Raise an error for an unknown distance."""
    if distance not in get_args(Distance):
        raise ValueError(f"distance {distance!r} is neither squared nor log")


def rising(
    p: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    level: npt.ArrayLike | None = None,
    distance: Distance = "squared",
) -> Floats:
    """The nearest non-decreasing sequence of probabilities, by pooling adjacent violators (Ayer et al. 1955).

    List the claims from the strongest to the weakest: "above 220" before "above 200", "by March" before "by June".
    `level` gives the order instead, and claims on one level get the same probability. Pooled claims get the weighted
    mean of their probabilities (`squared`) or of their log-odds (`log`).

    >>> rising([0.1, 0.5, 0.3, 0.8]).tolist(), rising([0.5, 0.2, 0.4], level=[2, 1, 1]).round(3).tolist()
    ([0.1, 0.4, 0.4, 0.8], [0.5, 0.3, 0.3])
    """
    from scipy.optimize import isotonic_regression

    check_distance(distance)
    p, weight = _checked(p, weight)
    levels = np.arange(len(p), dtype=np.float64) if level is None else as_vector(level, "level")
    if len(levels) != len(p):
        raise ValueError(f"level has length {len(levels)}, expected {len(p)}")
    _, place = np.unique(levels, return_inverse=True)
    size = int(place.max()) + 1
    x, total = p if distance == "squared" else logit(p), group_sums(place, weight, size)
    alone = np.bincount(place, minlength=size) == 1
    mean = np.where(alone, group_sums(place, x, size), group_sums(place, weight * x, size) / total)
    pooled = isotonic_regression(mean, weights=total)
    first = pooled.blocks[:-1]
    steady = np.minimum.reduceat(mean, first) == np.maximum.reduceat(mean, first)
    q = pooled.x if distance == "squared" else sigmoid(pooled.x)
    # What was not moved stays exactly as it was, certainty and last digit included.
    unmoved = alone & np.repeat(steady, np.diff(pooled.blocks))
    return np.where(unmoved[place], p, np.clip(q, 0.0, 1.0)[place])


def falling(p: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, level: npt.ArrayLike | None = None) -> Floats:
    """The nearest non-increasing sequence of probabilities: P(X > a) as a goes up."""
    levels = np.arange(len(np.atleast_1d(p))) if level is None else as_vector(level, "level")
    return rising(p, weight, level=-levels)


def exactly_one(p: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, distance: Distance = "squared") -> Floats:
    """The nearest probabilities that sum to one.

    squared: q_i = max(0, p_i − τ/w_i), the projection onto the simplex, exact from one sort (Held et al. 1974).
    log: logit q_i = logit p_i + τ/w_i. In both, τ makes the sum one. Small outcomes may end at 0 under `squared`,
    never under `log`.

    >>> exactly_one([0.6, 0.6, 0.1]).round(3).tolist(), exactly_one([0.6, 0.6, 0.1], distance="log").round(3).tolist()
    ([0.5, 0.5, 0.0], [0.469, 0.469, 0.061])
    """
    check_distance(distance)
    p, weight = _checked(p, weight)
    if abs(p.sum() - 1) <= ROUNDING:
        return p
    if distance == "log":
        return _shifted(p, weight)
    # q_i is positive for τ below p_i·w_i, so those outcomes are in play that come first in this order.
    order = np.argsort(-p * weight, kind="stable")
    tau = (np.cumsum(p[order]) - 1) / np.cumsum(1 / weight[order])
    last = int(np.flatnonzero((p * weight)[order] > tau)[-1])
    return np.maximum(0.0, p - tau[last] / weight)


def at_most_one(p: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, distance: Distance = "squared") -> Floats:
    """The nearest probabilities whose sum does not exceed one; unchanged if it already does not."""
    p, weight = _checked(p, weight)
    return p if p.sum() <= 1 + ROUNDING else exactly_one(p, weight, distance=distance)


def implied(p: Floats, pairs: Sequence[tuple[int, int]], *, distance: Distance = "squared") -> Floats:
    """The nearest probabilities with q_i ≤ q_j for every pair (i, j): the first claim is never true without the second.

    A least-distance problem, solved exactly as nonnegative least squares (Lawson & Hanson 1974, chapter 23). The log
    distance is the squared one of log-odds.

    >>> implied(np.array([0.7, 0.4, 0.1]), [(0, 1)]).round(3).tolist()
    [0.55, 0.55, 0.1]
    """
    from scipy.optimize import nnls

    check_distance(distance)
    x = p if distance == "squared" else logit(p)
    low, high = np.array(pairs).T
    violated = x[low] - x[high]
    if (violated <= ROUNDING).all():
        return p
    rows = np.eye(len(x))[high] - np.eye(len(x))[low]
    system = np.vstack([rows.T, violated])
    multipliers, _ = nnls(system, np.eye(len(system))[-1])
    residual = system @ multipliers - np.eye(len(system))[-1]
    y = -residual[:-1] / residual[-1]
    moved = np.abs(y) > ROUNDING
    return np.where(moved, np.clip(x + y, 0.0, 1.0) if distance == "squared" else sigmoid(x + y), p)


def _checked(p: npt.ArrayLike, weight: npt.ArrayLike | None) -> tuple[Floats, Floats]:
    p = as_probabilities(as_vector(p, "p"))
    weight = as_weights(weight, len(p))
    reject(weight <= 0, weight, "weight", "is not positive")
    return p, weight


def _shifted(p: Floats, weight: Floats) -> Floats:
    """σ(logit p + τ/w) with the τ that makes the sum one."""
    from scipy.optimize import brentq

    if len(p) == 1:
        return np.ones(1)
    x = logit(p)

    def excess(tau: float) -> float:
        return float(sigmoid(x + tau / weight).sum() - 1)

    edge = 1.0
    while excess(-edge) > 0 or excess(edge) < 0:
        edge *= 2
    q = sigmoid(x + cast("float", brentq(excess, -edge, edge, xtol=1e-15)) / weight)
    return q / q.sum()
