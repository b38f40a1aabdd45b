"""Scores of probabilities for binary outcomes, and the population numbers computed from them.

Pointwise functions return one score per row, in the shape of their input. Each docstring says whether the score may be
averaged: a mean of Brier or log scores is a score, a mean of Brier indices is not.
"""

from typing import overload

import numpy as np
import numpy.typing as npt

from foretell.metrics.arrays import Floats, as_distributions, as_floats, as_outcomes, as_pairs, as_weights, reject


def brier(p: npt.ArrayLike, outcome: npt.ArrayLike) -> Floats:
    """Squared error (p − o)² of each forecast, in [0, 1], lower is better (Brier 1950).

    Strictly proper; a (weighted) mean of it is again a Brier score.

    >>> brier([0.9, 0.2], [1, 1]).round(2)
    array([0.01, 0.64])
    """
    p, outcome = as_pairs(p, outcome)
    return (p - outcome) ** 2


def mean_brier(p: npt.ArrayLike, outcome: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> float:
    """Weighted mean Brier score Σ w (p − o)² / Σ w.

    With `event_weights` as weights, every event counts once, whatever its number of markets (Prophet Arena, appendix
    C.1).

    >>> round(mean_brier([0.9, 0.2], [1, 1]), 3)
    0.325
    """
    score = np.ravel(brier(p, outcome))
    return float(np.average(score, weights=as_weights(weight, len(score))))


@overload
def brier_index(mean_brier: float) -> float: ...
@overload
def brier_index(mean_brier: Floats) -> Floats: ...
def brier_index(mean_brier: float | Floats) -> float | Floats:
    """Brier index 100·(1 − √BS) of a *mean* Brier score; always-0.5 has 50 (Kucinskas et al. 2026).

    The root comes after the mean. An average of indices of single questions, or of parts of a population, is a
    different number; pool the Brier scores first. Difficulty-adjusted means can be negative, and count as 0.

    >>> brier_index(0.25)
    50.0
    """
    array = as_floats(mean_brier, "mean_brier")
    index = 100 * (1 - np.sqrt(np.maximum(array, 0.0)))
    return float(index) if index.ndim == 0 else index


def log_score(p: npt.ArrayLike, outcome: npt.ArrayLike, *, floor: float = 0.0) -> Floats:
    """Natural log of the probability given to what happened, ≤ 0, higher is better (Good 1952).

    Strictly proper. A forecast that called the outcome impossible scores −inf, unless `floor` lifts the
    probability of what happened to at least that value.

    >>> log_score([0.5, 1.0], [1, 0], floor=0.01).round(3)
    array([-0.693, -4.605])
    """
    with np.errstate(divide="ignore"):
        return np.log(_of_what_happened(p, outcome, floor))


def metaculus_baseline(p: npt.ArrayLike, outcome: npt.ArrayLike, *, floor: float = 0.0) -> Floats:
    """Metaculus baseline score of binary questions, 100·(log₂ p_o + 1): 0 for 0.5, 100 for certainty.

    See `log_score` for `floor`; Metaculus itself accepts forecasts within 0.001 and 0.999 only.

    >>> metaculus_baseline([0.5, 0.25, 1], [1, 1, 1])
    array([   0., -100.,  100.])
    """
    with np.errstate(divide="ignore"):
        return 100 * (np.log2(_of_what_happened(p, outcome, floor)) + 1)


def metaculus_baseline_options(p: npt.ArrayLike, happened: npt.ArrayLike) -> Floats:
    """Metaculus baseline score of multiple choice, 100·ln(p·k)/ln(k), p = probability of what happened.

    Args:
        p: Matrix (questions, options), rows sum to 1; NaN marks options a question does not have, and k
            counts the others.
        happened: Column of the option that came true, per question.

    >>> metaculus_baseline_options([[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, np.nan, np.nan]], [0, 1])
    array([0., 0.])
    """
    p = as_distributions(p)
    given = p[np.arange(len(p)), option_columns(happened, p)]
    k = np.count_nonzero(~np.isnan(p), axis=1).astype(np.float64)
    reject(k < 2, k, "number of options in p", "is below 2")
    with np.errstate(divide="ignore"):
        return 100 * np.log(given * k) / np.log(k)


def metaculus_peer(p: npt.ArrayLike, outcome: npt.ArrayLike, *, floor: float = 0.0) -> Floats:
    """Metaculus peer score of a (forecasters × questions) matrix, NaN if a forecaster was absent.

    100·n/(n−1)·ln(p_o / GM of all n) = 100·(ln p_o − ln GM of the others): above 0 for those who beat their
    peers, 0 summed over a question, 0 for a single forecaster. A probability of 0 for what happened raises,
    because it would hand everyone else +inf; give a `floor` (the site's is 0.001).

    >>> metaculus_peer([[0.8], [0.4]], [1]).round(1)
    array([[ 69.3],
           [-69.3]])
    """
    p = np.atleast_2d(np.asarray(p, dtype=np.float64))
    outcome = np.atleast_1d(as_outcomes(outcome))
    if p.ndim != 2 or p.shape[1] != len(outcome):
        raise ValueError(f"p must be (forecasters, {len(outcome)} questions), it has shape {p.shape}")
    absent = np.isnan(p)
    if absent.all():
        raise ValueError("p holds no forecast: there is nothing to score")
    given = _of_what_happened(np.where(absent, 0.5, p), np.broadcast_to(outcome, p.shape), floor)
    reject(given == 0, given, "probability of what happened", "needs a floor above 0")
    return peer_points(np.where(absent, np.nan, given))


def peer_points(given: Floats) -> Floats:
    """Peer score from the probabilities given to what happened, (forecasters × questions), NaN = absent.

    >>> peer_points(np.array([[0.5], [0.5], [np.nan]]))
    array([[ 0.], [ 0.], [nan]])
    """
    log = np.log(given)
    n = np.count_nonzero(~np.isnan(given), axis=0)
    mean = np.nansum(log, axis=0) / np.maximum(n, 1)
    return 100 * n / np.maximum(n - 1, 1) * (log - mean)


def option_columns(happened: npt.ArrayLike, p: Floats) -> npt.NDArray[np.intp]:
    """Column indices of what happened, checked against the matrix `p` of option probabilities.

    >>> option_columns([1], np.array([[0.2, 0.8]]))
    array([1])
    """
    index = np.atleast_1d(as_floats(happened, "happened"))
    if index.shape != (len(p),):
        raise ValueError(f"happened has shape {index.shape}, expected ({len(p)},)")
    reject((index != np.floor(index)) | (index < 0) | (index >= p.shape[1]), index, "happened", "is not a column of p")
    columns = index.astype(np.intp)
    reject(np.isnan(p[np.arange(len(p)), columns]), index, "happened", "names an option that is absent in p")
    return columns


def _of_what_happened(p: npt.ArrayLike, outcome: npt.ArrayLike, floor: float) -> Floats:
    p, outcome = as_pairs(p, outcome)
    if not 0 <= floor < 0.5:
        raise ValueError(f"floor must be within [0, 0.5), it is {floor}")
    return np.maximum(np.where(outcome == 1, p, 1 - p), floor)
