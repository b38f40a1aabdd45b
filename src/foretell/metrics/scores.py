"""Scores of probabilities and of distributions, and the population numbers computed from them.

Pointwise functions return one score per row, in the shape of their input. Each docstring says whether the score may be
averaged: a mean of Brier or log scores is a score, a mean of Brier indices is not.
"""

from collections.abc import Callable
from typing import overload

import numpy as np
import numpy.typing as npt

from foretell.metrics.arrays import (
    Bools,
    Floats,
    as_distributions,
    as_floats,
    as_outcomes,
    as_pairs,
    as_probabilities,
    as_vector,
    as_weights,
    reject,
)


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


def called_true(p: npt.ArrayLike, threshold: npt.ArrayLike = 0.5) -> Floats:
    """How far each forecast calls its claim True: 1 above the threshold, 0 below, ½ exactly at it; NaN stays NaN.

    >>> called_true([0.8, 0.5, 0.2]).tolist()
    [1.0, 0.5, 0.0]
    """
    return (np.sign(np.asarray(p, np.float64) - np.asarray(threshold, np.float64)) + 1) / 2


def right_side(p: npt.ArrayLike, outcome: npt.ArrayLike, threshold: npt.ArrayLike = 0.5) -> Floats:
    """Share of the outcome on the side of the threshold that the forecast chose; its mean is the accuracy.

    1 for the right side and 0 for the wrong one. A forecast exactly at the threshold chooses neither side and counts
    half. Of a market settled at 0.37, a forecast below the threshold gets 0.63. NaN (no forecast) stays NaN.

    >>> right_side([0.8, 0.5, 0.2, 0.2], [1, 1, 1, 0.37]).tolist()
    [1.0, 0.5, 0.0, 0.63]
    """
    called, true = called_true(p, threshold), np.asarray(outcome, np.float64)
    return called * true + (1 - called) * (1 - true)


def log_score(p: npt.ArrayLike, outcome: npt.ArrayLike, *, floor: float = 0.0) -> Floats:
    """Natural log of the probability given to what happened, ≤ 0, higher is better (Good 1952).

    Strictly proper. A forecast that called the outcome impossible scores −inf, unless `floor` lifts the
    probability of what happened to at least that value. An outcome between 0 and 1 gets the mean of both logs, weighted
    by it.

    >>> log_score([0.5, 1.0], [1, 0], floor=0.01).round(3)
    array([-0.693, -4.605])
    """
    return _log_of_what_happened(p, outcome, floor)


def metaculus_baseline(p: npt.ArrayLike, outcome: npt.ArrayLike, *, floor: float = 0.0) -> Floats:
    """Metaculus baseline score of binary questions, 100·(log₂ p_o + 1): 0 for 0.5, 100 for certainty.

    See `log_score` for `floor`; Metaculus itself accepts forecasts within 0.001 and 0.999 only.

    >>> metaculus_baseline([0.5, 0.25, 1], [1, 1, 1])
    array([   0., -100.,  100.])
    """
    return 100 * (_log_of_what_happened(p, outcome, floor, np.log2) + 1)


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
    chosen = p[np.arange(len(p)), option_columns(happened, p)]
    k = np.count_nonzero(~np.isnan(p), axis=1).astype(np.float64)
    reject(k < 2, k, "number of options in p", "is below 2")
    with np.errstate(divide="ignore"):
        return 100 * np.log(chosen * k) / np.log(k)


def metaculus_peer(p: npt.ArrayLike, outcome: npt.ArrayLike, *, floor: float = 0.0) -> Floats:
    """Metaculus peer score of a (forecasters × questions) matrix, NaN if a forecaster was absent.

    100·n/(n−1)·ln(p_o / GM of all n) = 100·(ln p_o − ln GM of the others): above 0 for those who beat their
    peers, 0 summed over a question, 0 for a single forecaster. A probability of 0 for what happened raises,
    because it would give everyone else +inf; pass a `floor` (the site's is 0.001).

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
        raise ValueError("p has no forecast: there is nothing to score")
    log = _log_of_what_happened(np.where(absent, 0.5, p), np.broadcast_to(outcome, p.shape), floor)
    reject(np.isinf(log), np.exp(log), "probability of what happened", "needs a floor above 0")
    return peer_points(np.where(absent, np.nan, np.exp(log)))


def peer_points(p: Floats) -> Floats:
    """Peer score from the probabilities given to what happened, (forecasters × questions), NaN = absent.

    >>> peer_points(np.array([[0.5], [0.5], [np.nan]]))
    array([[ 0.], [ 0.], [nan]])
    """
    log = np.log(p)
    n = np.count_nonzero(~np.isnan(p), axis=0)
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


def _log_of_what_happened(
    p: npt.ArrayLike, outcome: npt.ArrayLike, floor: float, log: Callable[[Floats], Floats] = np.log
) -> Floats:
    p, outcome = as_pairs(p, outcome)
    if not 0 <= floor < 0.5:
        raise ValueError(f"floor must be within [0, 0.5), it is {floor}")
    with np.errstate(divide="ignore"):
        whole = log(np.maximum(np.where(outcome == 1, p, 1 - p), floor))
        share = (outcome > 0) & (outcome < 1)
        if not share.any():
            return whole
        both = outcome * log(np.maximum(p, floor)) + (1 - outcome) * log(np.maximum(1 - p, floor))
    return np.where(share, both, whole)


# Scores of forecasts of a number or of ordered options: CRPS, RPS, pinball, coverage, Metaculus buckets.
#
# A forecast is a CDF on a grid, a set of samples, or quantiles at given levels. One row per question; every function
# returns one score per row. CRPS, RPS and pinball are in the unit of the quantity, lower is better.

OUT_OF_BOUNDS_SHARE = 0.05
"""Baseline probability Metaculus gives to each open end of a range."""


def crps_cdf(cdf: npt.ArrayLike, grid: npt.ArrayLike, value: npt.ArrayLike) -> Floats:
    """CRPS ∫(F(x) − 1{x ≥ y})² dx of piecewise linear CDFs, exact (Matheson & Winkler 1976).

    Mass outside the grid is placed on the grid's ends; a value outside adds its distance.

    Args:
        cdf: Rows (questions, points) of CDF values at the grid points, rising within [0, 1].
        grid: Strictly rising positions, shape (points,).
        value: What happened, one per question.

    >>> crps_cdf([[0.0, 1.0]], [0.0, 1.0], [0.5]).round(6)
    array([0.083333])
    """
    heights, x = _cdfs(cdf), as_vector(grid, "grid")
    y = _values(value, len(heights))
    if len(x) != heights.shape[1] or len(x) < 2 or not (np.diff(x) > 0).all():
        raise ValueError(f"grid must be {heights.shape[1]} strictly rising positions (at least 2)")
    left, right, f0, f1 = x[:-1], x[1:], heights[:, :-1], heights[:, 1:]
    cut = np.clip(y[:, None], left, right)
    at_cut = f0 + (f1 - f0) * (cut - left) / (right - left)
    inside = (cut - left) * _mean_square(f0, at_cut) + (right - cut) * _mean_square(1 - at_cut, 1 - f1)
    outside = np.maximum(x[0] - y, 0) + np.maximum(y - x[-1], 0)
    return inside.sum(axis=1) + outside


def crps_samples(samples: npt.ArrayLike, value: npt.ArrayLike, *, fair: bool = False) -> Floats:
    """CRPS E|X − y| − ½E|X − X′| of the empirical distribution of samples, rows (questions, samples).

    `fair` removes the bias of few samples, so that forecasters with different sample sizes compare
    (Ferro 2014); it needs two samples.

    >>> crps_samples([[0.0, 2.0]], [1.0])
    array([0.5])
    """
    x = np.sort(np.atleast_2d(as_floats(samples, "samples")), axis=1)
    y = _values(value, len(x))
    m = x.shape[1]
    if fair and m < 2:
        raise ValueError("samples needs at least two per row for the fair estimate")
    rank = 2 * np.arange(1, m + 1) - m - 1
    spread = 2 * (x @ rank) / (m * (m - 1) if fair else m * m)
    return np.abs(x - y[:, None]).mean(axis=1) - spread / 2


def crps_quantiles(quantiles: npt.ArrayLike, levels: npt.ArrayLike, value: npt.ArrayLike) -> Floats:
    """CRPS approximated as twice the mean pinball loss over the levels, rows (questions, levels).

    Good when levels spread evenly over (0, 1); it converges to the CRPS as they become dense.

    >>> crps_quantiles([[1.0, 2.0, 3.0]], [0.25, 0.5, 0.75], [2.0]).round(4)
    array([0.3333])
    """
    q, level = np.atleast_2d(as_floats(quantiles, "quantiles")), as_vector(levels, "levels")
    y = _values(value, len(q))
    if q.shape[1] != len(level):
        raise ValueError(f"quantiles has {q.shape[1]} columns, levels has {len(level)} entries")
    return 2 * pinball(q, level, y[:, None]).mean(axis=1)


def pinball(quantile: npt.ArrayLike, level: npt.ArrayLike, value: npt.ArrayLike) -> Floats:
    """Pinball loss (1{y < q} − α)(q − y) of a quantile at level α; proper for it (Koenker & Bassett 1978).

    Arguments broadcast against each other.

    >>> pinball([2.0, 2.0], 0.9, [3.0, 1.0]).round(2)
    array([0.9, 0.1])
    """
    q, alpha, y = as_floats(quantile, "quantile"), as_floats(level, "level"), as_floats(value, "value")
    reject((alpha <= 0) | (alpha >= 1), alpha, "level", "lies outside (0, 1)")
    return ((y < q) - alpha) * (q - y)


def interval_covers(low: npt.ArrayLike, high: npt.ArrayLike, value: npt.ArrayLike) -> Bools:
    """Whether each value fell within its interval, ends included; the mean is the coverage.

    >>> interval_covers([0, 0], [1, 1], [1.0, 2.0])
    array([ True, False])
    """
    low, high, y = as_floats(low, "low"), as_floats(high, "high"), as_floats(value, "value")
    reject(low > high, low, "low", "lies above high")
    return (low <= y) & (y <= high)


def interval_score(low: npt.ArrayLike, high: npt.ArrayLike, value: npt.ArrayLike, *, level: float = 0.9) -> Floats:
    """Width plus 2/(1−level) times the miss: proper for central intervals (Winkler 1972).

    Coverage alone rewards wide intervals; this does not.

    >>> interval_score([0.0, 0.0], [1.0, 1.0], [0.5, 1.5], level=0.5)
    array([1., 3.])
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be within (0, 1), it is {level}")
    inside = interval_covers(low, high, value)
    low, high, y = as_floats(low, "low"), as_floats(high, "high"), as_floats(value, "value")
    miss = np.where(inside, 0.0, np.maximum(low - y, y - high))
    return (high - low) + 2 / (1 - level) * miss


def rps(p: npt.ArrayLike, happened: npt.ArrayLike, *, normalised: bool = False) -> Floats:
    """Ranked probability score Σ_k (P_k − 1{k ≥ happened})² over cumulated ordered options (Epstein 1969).

    Rows (questions, options) sum to 1; options a question lacks are NaN and come last. `normalised` divides by the
    number of options minus one, which puts questions of different sizes on [0, 1].

    >>> rps([[0.1, 0.2, 0.3, 0.4]], [2]).round(2)
    array([0.26])
    """
    p = as_distributions(p)
    columns = option_columns(happened, p)
    absent = np.isnan(p)
    reject((absent[:, :-1] & ~absent[:, 1:]), p[:, :-1], "p", "comes before options that are present")
    cumulated = np.where(absent, 1.0, np.cumsum(np.nan_to_num(p), axis=1))
    score = np.sum((cumulated - (np.arange(p.shape[1]) >= columns[:, None])) ** 2, axis=1)
    steps = np.maximum(np.count_nonzero(~absent, axis=1) - 1, 1)
    return score / steps if normalised else score


def cdf_buckets(cdf: npt.ArrayLike) -> Floats:
    """Probabilities of Metaculus' buckets: below the range, the N steps of an N+1 point CDF, above it.

    >>> cdf_buckets([0.0, 0.25, 0.75, 0.9]).round(2)
    array([[0.  , 0.25, 0.5 , 0.15, 0.1 ]])
    """
    heights = _cdfs(cdf)
    return np.diff(heights, axis=1, prepend=0.0, append=1.0)


def cdf_bucket_of(location: npt.ArrayLike, buckets: int) -> npt.NDArray[np.intp]:
    """Bucket of a location on the unit scale of a range cut into `buckets` parts, as Metaculus counts.

    0 is below the range, 1..buckets are the half-open parts (low, high], buckets + 1 is above.

    >>> cdf_bucket_of([-0.1, 0.0, 0.5, 0.51, 1.0, 1.2], 2)
    array([0, 1, 1, 2, 2, 3])
    """
    x = as_vector(location, "location")
    inside = np.clip(np.floor(x * buckets + 1 - 1e-10), 1, buckets)
    return np.where(x < 0, 0, np.where(x > 1, buckets + 1, inside)).astype(np.intp)


def metaculus_baseline_continuous(cdf: npt.ArrayLike, bucket: npt.ArrayLike, *, open_bounds: int = 0) -> Floats:
    """Metaculus baseline score of CDF forecasts, 100·ln(pmf[bucket]/baseline)/2.

    The baseline is 0.05 beyond an open bound and spreads the rest evenly, (1 − 0.05·open_bounds)/N.

    >>> metaculus_baseline_continuous([[0.0, 0.5, 1.0]], [1])
    array([0.])
    """
    if open_bounds not in (0, 1, 2):
        raise ValueError(f"open_bounds must be 0, 1 or 2, it is {open_bounds}")
    pmf = cdf_buckets(cdf)
    column = option_columns(bucket, pmf)
    mass = pmf[np.arange(len(pmf)), column]
    parts = pmf.shape[1] - 2
    outside = (column == 0) | (column == parts + 1)
    baseline = np.where(outside, OUT_OF_BOUNDS_SHARE, (1 - OUT_OF_BOUNDS_SHARE * open_bounds) / parts)
    with np.errstate(divide="ignore"):
        return 100 * np.log(mass / baseline) / 2


def metaculus_peer_continuous(given: npt.ArrayLike) -> Floats:
    """Metaculus peer score of continuous questions: half of 100·n/(n−1)·ln(pmf_o / GM of all n).

    Args:
        given: (forecasters × questions) bucket probabilities of what happened, NaN if absent, all above 0.

    >>> metaculus_peer_continuous([[0.02], [0.01]]).round(2)
    array([[ 34.66],
           [-34.66]])
    """
    table = np.atleast_2d(np.asarray(given, dtype=np.float64))
    if np.isnan(table).all():
        raise ValueError("given holds no forecast: there is nothing to score")
    reject((table <= 0) | (table > 1), table, "given", "lies outside (0, 1]")
    return peer_points(table) / 2


def _mean_square(a: Floats, b: Floats) -> Floats:
    """Mean of f² over an interval on which f runs linearly from a to b."""
    return (a * a + a * b + b * b) / 3


def _cdfs(cdf: npt.ArrayLike) -> Floats:
    heights = np.atleast_2d(as_probabilities(cdf, "cdf"))
    if heights.ndim != 2:
        raise ValueError(f"cdf must be (questions, points), it has shape {heights.shape}")
    reject(np.diff(heights, axis=1, prepend=0.0) < 0, heights, "cdf", "lies below its predecessor")
    return heights


def _values(value: npt.ArrayLike, n: int) -> Floats:
    y = as_vector(value, "value")
    if len(y) != n:
        raise ValueError(f"value has length {len(y)}, expected {n}")
    reject(np.isinf(y), y, "value", "is not finite")
    return y
