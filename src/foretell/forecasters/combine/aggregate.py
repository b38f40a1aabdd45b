"""Combines several trials by a symmetric rule over their probabilities."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, as_probabilities
from foretell.metrics.transforms import logit, sigmoid

Rule = Literal["mean", "logit-mean", "median", "trimmed", "extremised"]


def mean(p: npt.ArrayLike) -> Floats:
    """Return the arithmetic mean. Its squared error is never above the trials' mean squared error (Jensen)."""
    return as_probabilities(p).mean(axis=0)


def logit_mean(p: npt.ArrayLike) -> Floats:
    """Return σ(mean of logit p), which keeps trials that agree as far from one half as they are."""
    p = as_probabilities(p)
    return np.clip(sigmoid(logit(p).mean(axis=0)), p.min(axis=0), p.max(axis=0))


def median(p: npt.ArrayLike) -> Floats:
    """Return the middle trial, or the mean of the two in the middle."""
    return np.median(as_probabilities(p), axis=0)


def trimmed(p: npt.ArrayLike, share: float = 0.2) -> Floats:
    """Return the mean without the ⌊share·K⌋ lowest and as many highest trials."""
    if not 0 <= share < 0.5:
        raise ValueError(f"share = {share} is outside [0, 0.5)")
    ordered = np.sort(as_probabilities(p), axis=0)
    cut = int(share * len(ordered))
    return ordered[cut : len(ordered) - cut].mean(axis=0)


def extremised(p: npt.ArrayLike, factor: float = 1.5) -> Floats:
    """Return σ(factor · mean of logit p), which reverses the pull of averaging towards one half (Baron et al. 2014).

    The result is on the same side of one half as the mean log-odds, but may be outside the range of the trials.
    """
    if not (np.isfinite(factor) and factor > 0):
        raise ValueError(f"factor = {factor} must be positive")
    return sigmoid(factor * logit(as_probabilities(p)).mean(axis=0))


RULES = {"mean": mean, "logit-mean": logit_mean, "median": median, "trimmed": trimmed, "extremised": extremised}


@frozen
class Aggregate:
    """An aggregation rule, which can be part of a run's spec.

    >>> round(Aggregate(rule="logit-mean", failed_as_half=True).apply([{"yes": 0.9}], failed=1)["yes"], 3)
    0.75
    """

    rule: Rule = "logit-mean"
    failed_as_half: bool = False
    """Count a failed trial as one half, as BLF 2026 does; otherwise it is ignored."""

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"there is no rule {self.rule!r}")

    def apply(self, trials: list[Mapping[str, float]], *, failed: int = 0) -> dict[str, float]:
        """Return one probability per target; every trial must have the same targets."""
        if not trials:
            raise ValueError("there are no trials to aggregate")
        targets = list(trials[0])
        rows = [[trial[target] for target in targets] for trial in trials]
        if self.failed_as_half:
            rows += [[0.5] * len(targets)] * failed
        if len(rows) == 1 and self.rule != "extremised":
            return {target: float(trials[0][target]) for target in targets}  # What the other rules return, but at once.
        return dict(zip(targets, map(float, RULES[self.rule](rows)), strict=True))


PANEL = "panel"
"""The forecaster's name of a panel's answer, which is not a trial."""
