"""Horizons of one series: nothing orders them, but neighbouring ones should not differ much.

A claim such as "higher than today" may be likely in a week and unlikely in a month, so no projection applies. What can
be shared is noise: trials err at each horizon on their own. Smoothing is therefore learnt from the past, and stays off
where past rounds show no gain.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, as_probabilities, as_vector, reject, same_shape
from foretell.evaluate.clusters import factorise
from foretell.forecasters.combine.fitted import Training
from foretell.forecasters.combine.out_of_time import gain, later_splits
from foretell.forecasters.combine.rows import Examples, Rows, logit, sigmoid

STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0)


def smoothed(p: npt.ArrayLike, horizon: npt.ArrayLike, variance: npt.ArrayLike, *, strength: float) -> Floats:
    """Log-odds drawn to those of neighbouring horizons, the noisier the more.

    z minimises Σ (z_i − logit p_i)²/v_i + strength · Σ (z_i+1 − z_i)²/d_i, where v_i is the variance relative to its
    mean and d_i = ln(h_i+1/h_i) the distance of neighbours: a random walk over the logarithm of the horizon. Strength
    0 changes nothing; without bound, all horizons get the precision-weighted mean.

    >>> smoothed([0.2, 0.8, 0.2], [7, 30, 90], [1, 1, 1], strength=1.0).round(2).tolist()
    [0.31, 0.52, 0.34]
    """
    p, horizon = as_probabilities(as_vector(p, "p")), as_vector(horizon, "horizon")
    variance = as_vector(variance, "variance")
    same_shape(p=p, horizon=horizon, variance=variance)
    reject(~(variance > 0) | np.isinf(variance), variance, "variance", "is not a positive number")
    if not strength >= 0:
        raise ValueError(f"strength = {strength} is below 0")
    if strength == 0 or len(p) < 2:
        return p
    order = np.argsort(horizon, kind="stable")
    x, precision = logit(p[order]), variance.mean() / variance[order]
    steps = np.diff(np.log(np.maximum(horizon[order], 1.0)))
    pull = strength / np.maximum(steps, 1e-3)
    system = np.diag(precision) + np.diag(np.r_[pull, 0] + np.r_[0, pull]) - np.diag(pull, 1) - np.diag(pull, -1)
    out = np.empty(len(p))
    out[order] = sigmoid(np.linalg.solve(system, precision * x))
    return out


@dataclass(frozen=True, kw_only=True)
class Smoothed:
    """Smoothing over the horizons of each asking, with the strength the past gave it; 0 leaves all as it is."""

    strength: float
    training: Training = field(default_factory=Training)
    told: str = ""

    def probabilities(self, rows: Rows) -> Floats:
        """The logit mean of the trials, smoothed over the rows of the same asking that have a horizon."""
        out = rows.raw.copy()
        usable = ~np.isnan(out) & ~np.isnan(rows.horizon)
        if self.strength == 0 or not usable.any():
            return out
        variance = _variance(rows)
        places = np.flatnonzero(usable)
        groups = factorise(rows.asking[usable])
        order = np.argsort(groups.codes, kind="stable")
        for group in np.split(places[order], np.cumsum(groups.sizes)[:-1]):
            out[group] = smoothed(out[group], rows.horizon[group], variance[group], strength=self.strength)
        return out


@dataclass(frozen=True, kw_only=True)
class HorizonSmoothing:
    """Learns how much to smooth: the strength that did best in the past, if choosing so paid on later rounds."""

    strengths: tuple[float, ...] = STRENGTHS
    noise: float = 1.0
    """Standard errors by which it must have paid."""

    @property
    def name(self) -> str:
        """As shown in tables."""
        return "horizon smoothing"

    def fit(self, examples: Examples) -> Smoothed:
        """The best strength on all examples, or 0 where no gain beyond noise was shown out of time."""
        training = Training.of(examples)
        if not len(examples):
            return Smoothed(strength=0.0, training=training, told="off: no past")
        said = np.array([Smoothed(strength=s).probabilities(examples.rows) for s in (0.0, *self.strengths)])
        loss = (said - examples.outcome) ** 2
        shown = np.full(len(examples), np.nan)
        for past, later in later_splits(examples):
            chosen = _best(loss[:, past], examples.weight[past])
            shown[later] = (loss[0] - loss[chosen])[later]
        found = gain(shown, examples.rows.cluster, examples.weight)
        if not found.beyond(self.noise):
            return Smoothed(strength=0.0, training=training, told=f"off: it gains {found} out of time")
        strength = (0.0, *self.strengths)[_best(loss, examples.weight)]
        return Smoothed(strength=strength, training=training, told=f"it gains {found} out of time")


def _best(loss: Floats, weight: Floats) -> int:
    return int(np.argmin(np.nansum(loss * weight, axis=1)))


def _variance(rows: Rows) -> Floats:
    """Of the mean log-odds of each row's trials, halfway to the mean over all rows; 1 where trials never differ."""
    x = logit(rows.trials)
    said = ~np.isnan(x)
    n = np.maximum(said.sum(axis=0), 1)
    centred = np.where(said, x - np.where(said, x, 0.0).sum(axis=0) / n, 0.0)
    own = (centred**2).sum(axis=0) / np.maximum(n - 1, 1) / n
    usual = float(own.mean())
    return (own + usual) / 2 if usual > 0 else np.ones(len(rows))
