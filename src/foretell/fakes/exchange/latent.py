"""The hidden truth: probabilities that follow what is known so far, and end in 0 or 1.

What decides an event is a Gaussian walk W that runs from 0 to 1 in *information time* τ. At τ the walk's past is known
and its rest is not, so that the probability of every outcome is exact, is a martingale, and is what an ideal forecaster
would say. At τ = 1 it is 0 or 1.
"""

from functools import cache

import numpy as np

from foretell.fakes.exchange.chance import Floats

NODES = 60
"""Of the quadrature; the error is below 1e-6 for races of up to a dozen."""
SURE = 1e-12
"""Information left, below which everything is decided."""


def above(walk: Floats, left: Floats, thresholds: Floats) -> Floats:
    """P(end > k) for every threshold k: Φ((w − k) / √left), one row for each threshold.

    >>> above(np.array([0.0, 0.5]), np.array([1.0, 0.0]), np.array([0.0, 1.0])).round(3).tolist()
    [[0.5, 1.0], [0.159, 0.0]]
    """
    from scipy.special import ndtr

    distance = walk[None, :] - thresholds[:, None]
    spread = np.sqrt(np.maximum(left, SURE))[None, :]
    return np.where(left[None, :] > SURE, ndtr(distance / spread), (distance > 0).astype(np.float64))


def first(walks: Floats, left: Floats) -> Floats:
    """P(i ends first) for walks that go on independently: ∫ φ(x) ∏ Φ(x + (w_i − w_j)/√left) dx, a row for each walk.

    >>> first(np.array([[0.0], [0.0], [0.0]]), np.array([1.0])).round(4).ravel().tolist()
    [0.3333, 0.3333, 0.3333]
    """
    from scipy.special import ndtr

    nodes, weights = _normal_nodes()
    spread = np.sqrt(np.maximum(left, SURE))
    gaps = (walks[:, None, :] - walks[None, :, :]) / spread
    beats = ndtr(nodes[:, None, None, None] + gaps)
    own = np.arange(len(walks))
    beats[:, own, own, :] = 1.0
    p = np.einsum("k,kit->it", weights, beats.prod(axis=2))
    decided = (walks == walks.max(axis=0)).astype(np.float64)
    return np.where(left > SURE, p / p.sum(axis=0), decided)


@cache
def _normal_nodes() -> tuple[Floats, Floats]:
    """Places and weights of the Gauss rule for a standard normal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return np.asarray(nodes, dtype=np.float64), np.asarray(weights / weights.sum(), dtype=np.float64)


def logit(p: Floats, edge: float = 0.004) -> Floats:
    """ln(p / (1 − p)), with p kept away from 0 and 1."""
    kept = np.clip(p, edge, 1 - edge)
    return np.log(kept / (1 - kept))
