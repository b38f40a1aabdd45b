"""Functions of every element of an array: log-odds, their inverse, and the normal distribution function."""

import math

import numpy as np
import numpy.typing as npt

from foretell.metrics.arrays import Floats

EDGE = 1e-6
"""Distance from 0 and 1 to which probabilities are clipped, because certainty has no finite log-odds."""


def logit(p: npt.ArrayLike, edge: float = EDGE) -> Floats:
    """Return the log-odds of probabilities clipped to [edge, 1 − edge]; NaN stays NaN."""
    p = np.clip(np.asarray(p, np.float64), edge, 1 - edge)
    return np.log(p) - np.log1p(-p)


def sigmoid(x: npt.ArrayLike) -> Floats:
    """Return the probability of log-odds, without overflow; NaN stays NaN."""
    x = np.asarray(x, np.float64)
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def normal_cdf(z: npt.ArrayLike) -> Floats:
    """Return P(Z ≤ z) of the standard normal distribution for every element; NaN stays NaN.

    >>> normal_cdf([-1.96, 0.0]).round(6).tolist()
    [0.024998, 0.5]
    """
    z = np.asarray(z, np.float64)
    below = np.fromiter(map(math.erfc, (z.ravel() * -math.sqrt(0.5)).tolist()), np.float64, z.size)
    return below.reshape(z.shape) / 2
