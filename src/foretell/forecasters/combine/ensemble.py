"""Ensembles of forecasters: equal weights, weights by past skill, and greedy selection tested on later rounds."""

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Literal

import numpy as np

from foretell.forecasters.base_rates.rates import effective_weights
from foretell.forecasters.combine.crossfit import Gain, gain, later_splits
from foretell.forecasters.combine.default import CORRELATION, EDGE
from foretell.forecasters.combine.logistic import LogisticProblem, fit_logistic_ridge
from foretell.forecasters.combine.rows import Examples, Strings, TrialRows
from foretell.forecasters.combine.rules import Training
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats
from foretell.metrics.transforms import logit, sigmoid
from foretell.number_text import percent

Space = Literal["logit", "probability"]
Names = tuple[str, ...]


def side_by_side(forecasters: Mapping[str, TrialRows]) -> tuple[Names, TrialRows]:
    """Return names, and rows with one trial per forecaster: the logit mean of its trials, NaN if it did not answer.

    A target that only some forecasters were asked about appears once, with the other columns of the first of them.
    """
    if not forecasters:
        raise ValueError("an ensemble needs at least one forecaster")
    tables = list(forecasters.values())
    own_keys = [np.char.add(np.char.add(rows.asking, "\x1f"), rows.target.astype(str)) for rows in tables]
    for own in own_keys:
        if len(np.unique(own)) != len(own):
            raise ValueError("a target appears twice in the rows of one forecaster")
    keys, first = np.unique(np.concatenate(own_keys), return_index=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(keys), np.int64)
    place[order] = np.arange(len(keys))
    p = np.full((len(tables), len(keys)), np.nan)
    for member, (rows, own) in enumerate(zip(tables, own_keys, strict=True)):
        p[member, place[np.searchsorted(keys, own)]] = rows.raw
    names = [column.name for column in fields(TrialRows) if column.name != "trials"]
    columns = {name: np.concatenate([getattr(rows, name) for rows in tables])[first[order]] for name in names}
    return tuple(forecasters), TrialRows(trials=p, **columns)


def weighted(p: Floats, weights: Floats, space: Space = "logit") -> Floats:
    """Return the weighted average of members × targets, with weights renormalised over the members with an answer.

    If their weights are all zero, these members count equally. NaN if no member has an answer.

    >>> p = np.array([[0.2, 0.2, np.nan], [0.6, np.nan, np.nan]])
    >>> weighted(p, np.array([0.25, 0.75]), "probability").round(3).tolist()
    [0.5, 0.2, nan]
    """
    present = ~np.isnan(p)
    share = np.where(present, weights[:, None], 0.0)
    share = np.where(share.sum(axis=0) <= 0, present.astype(np.float64), share)
    total = share.sum(axis=0)
    x = np.where(present, p, 0.5)
    x = np.where(present, logit(x) if space == "logit" else x, 0.0)
    mean = np.divide((share * x).sum(axis=0), total, out=np.zeros(p.shape[1]), where=total > 0)
    return np.where(total > 0, sigmoid(mean) if space == "logit" else mean, np.nan)


def check_members(rows: TrialRows, names: Names) -> Floats:
    """Return the members' probabilities (members × targets); raise `ValueError` if rows and names do not match."""
    if len(set(names)) != len(names):
        raise ValueError("two members have the same name")
    if len(rows.trials) != len(names):
        raise ValueError(f"rows hold {len(rows.trials)} members, {len(names)} are named")
    return rows.trials


@frozen
class Ensemble:
    """Members with weights that sum to one."""

    names: Names
    weights: tuple[float, ...]
    space: Space = "logit"
    """The scale on which probabilities are averaged."""
    training: Training = field(default_factory=Training)
    reason: str = ""
    """Why these weights were chosen."""

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.names) or not self.names:
            raise ValueError(f"{len(self.names)} members have {len(self.weights)} weights")
        if not all(np.isfinite(w) and w >= 0 for w in self.weights) or abs(sum(self.weights) - 1) > 1e-9:
            raise ValueError("weights must not be negative and must sum to one")

    def probabilities(self, rows: TrialRows) -> Floats:
        """Return the weighted mean of the members with an answer on each row; NaN if there is none."""
        return weighted(check_members(rows, self.names), np.asarray(self.weights), self.space)


def equal(names: Names) -> tuple[float, ...]:
    """Return equal weights for all names."""
    return (1 / len(names),) * len(names)


@frozen
class EqualWeights:
    """Gives every member the same weight. Its ensembles have no training data."""

    names: Names

    @property
    def name(self) -> str:
        """The name shown in tables."""
        return f"equal logit weights of {len(self.names)}"

    def fit(self, examples: Examples) -> Ensemble:
        """Return the same ensemble for any examples."""
        check_members(examples.rows, self.names)
        return Ensemble(names=self.names, weights=equal(self.names), reason="equal by choice")


@frozen
class BestSoFar:
    """The member with the least past squared error, a baseline for ensembles."""

    names: Names

    @property
    def name(self) -> str:
        """The name shown in tables."""
        return f"the best so far of {len(self.names)}"

    def fit(self, examples: Examples) -> Ensemble:
        """Put all weight on one member; equal weights without a past. A missing answer counts as one half."""
        p = check_members(examples.rows, self.names)
        if not len(examples):
            return Ensemble(names=self.names, weights=equal(self.names), reason="equal: no past")
        error = (np.where(np.isnan(p), 0.5, p) - examples.outcome) ** 2
        best = int(np.argmin((error * examples.weight).sum(axis=1)))
        weights = bag_weights([best], len(self.names))
        return Ensemble(
            names=self.names, weights=weights, training=Training.of(examples), reason=f"{self.names[best]} was best"
        )


@frozen
class PooledWeights:
    """Stacks log-odds by logistic regression, with each weight shrunk to an equal share.

    Minimises Σ log loss + Σ (w_m − 1/M)² / 2σ²; weights below zero are set to zero, and all are scaled to sum to one. A
    missing answer counts as the mean of the other members (Breiman 1996, with a prior instead of a bound).
    """

    names: Names
    spread: float = 0.1
    """σ: prior standard deviation of a weight around an equal share."""

    def __post_init__(self) -> None:
        if not self.spread > 0:
            raise ValueError(f"spread = {self.spread} must be positive")

    @property
    def name(self) -> str:
        """The name shown in tables."""
        return f"pooled logit weights of {len(self.names)}"

    def fit(self, examples: Examples) -> Ensemble:
        """Fit the weights; equal ones without a past."""
        p = check_members(examples.rows, self.names)
        together = weighted(p, np.ones(len(self.names)))
        known = ~np.isnan(together)
        if not known.any():
            return Ensemble(names=self.names, weights=equal(self.names), reason="equal: no past")
        filled = np.where(np.isnan(p), together, p)[:, known]
        days = np.datetime_as_string(examples.known_on[known], "D")
        sources = examples.rows.source[known].astype(str)
        problem = LogisticProblem.of(
            logit(filled, EDGE).T,
            examples.outcome[known],
            weight=examples.weight[known] * effective_weights(np.char.add(sources, days), CORRELATION),
            penalty=self.spread**-2,
            centre=1 / len(self.names),
        )
        positive = np.maximum(fit_logistic_ridge(problem), 0.0)
        share = positive / positive.sum() if positive.sum() > 0 else np.full(len(positive), 1 / len(positive))
        why = f"log-odds stacked on {int(known.sum())} past targets, shrunk to equal shares"
        weights = tuple(map(float, share / share.sum()))
        return Ensemble(names=self.names, weights=weights, training=Training.of(examples), reason=why)


# Greedy selection.


def greedy_path(examples: Examples, *, steps: int, replacement: bool) -> list[int]:
    """Add members one by one, each time the one with the least weighted squared error of the mean; first wins ties.

    On a row where no chosen member has an answer, the result is that of equal weights, as when the ensemble is used.
    """
    equally = weighted(examples.rows.trials, np.ones(len(examples.rows.trials)))
    answered = ~np.isnan(equally)
    p = examples.rows.trials[:, answered]
    stand_in, outcome, weight = equally[answered], examples.outcome[answered], examples.weight[answered]
    present = ~np.isnan(p)
    x = np.where(present, logit(np.where(present, p, 0.5)), 0.0)
    total, count = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    free = np.ones(len(x), np.bool_)
    path: list[int] = []
    for _ in range(steps if replacement else min(steps, len(free))):
        counts = count + present
        mean = np.divide(total + x, counts, out=np.zeros_like(x), where=counts > 0)
        p_mean = np.where(counts > 0, sigmoid(mean), stand_in)
        loss = ((p_mean - outcome) ** 2 * weight).sum(axis=1)
        best = int(np.argmin(np.where(free, loss, np.inf)))
        path.append(best)
        total, count = total + x[best], count + present[best]
        free[best] = replacement
    return path


def bag_weights(path: list[int], members: int) -> tuple[float, ...]:
    """Return each member's share of the additions.

    >>> bag_weights([0, 2, 0, 0], 3)
    (0.75, 0.0, 0.25)
    """
    return tuple(map(float, np.bincount(path, minlength=members) / len(path)))


@frozen
class GreedySelection:
    """Starts with the best member and adds, step by step, whichever lowers the squared error of the mean most.

    With replacement a good member may be added again and so gain weight (Caruana et al. 2004); without, each is added
    at most once (BLF 2026, appendix F). A longer selection always looks better on its training rows, so its length is
    chosen on other rows: on every round but the first, selections made on what was known before are scored, and the
    shortest whose loss is within a standard error of the best length is taken. If it does not beat equal weights by a
    standard error, equal weights are used. With a single round, fifths of its questions are used as later rounds; that
    is weaker evidence, because they share their day.
    """

    names: Names
    replacement: bool = True
    steps: int = 20

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError("greedy selection needs steps >= 1")

    @property
    def name(self) -> str:
        """The name shown in tables."""
        how = "" if self.replacement else " without replacement"
        return f"greedy logit selection{how} from {len(self.names)}"

    def fit(self, examples: Examples) -> Ensemble:
        """Fit the selection; equal weights if later rounds show no gain beyond noise."""
        check_members(examples.rows, self.names)
        length, why = self._length(examples)
        weights = bag_weights(self._path(examples)[:length], len(self.names)) if length else equal(self.names)
        return Ensemble(names=self.names, weights=weights, training=Training.of(examples), reason=why)

    def _length(self, examples: Examples) -> tuple[int, str]:
        """Return the number of steps to take, 0 for equal weights, and the reason."""
        losses, cluster, weight = self._later_losses(examples)
        if not len(weight):
            return 0, "equal: no later round to test a selection on"
        several = len(np.unique(examples.rows.due)) > 1
        where = "later rounds" if several else "held-out questions of the one round"
        best = 1 + int(np.argmin(np.nansum(weight * losses[1:], axis=1)))
        shorter = (k for k in range(1, best) if not gain(losses[k] - losses[best], cluster, weight).beyond(1.0))
        length = next(shorter, best)
        over = gain(losses[0] - losses[length], cluster, weight)
        if not over.beyond(1.0):
            return 0, f"equal: on {where} {length} steps gain {over}"
        return length, f"{length} steps: on {where} they gain {over} over equal weights"

    def _later_losses(self, examples: Examples) -> tuple[Floats, Strings, Floats]:
        """Return squared errors on later rows of equal weights and of 1, 2, … steps, with clusters and weights."""
        most = self.steps if self.replacement else min(self.steps, len(self.names))
        losses: list[Floats] = [np.empty((most + 1, 0))]
        rows: list[Bools] = []
        for train, test in later_splits(examples):
            path = self._path(examples.take(train))
            candidates = [equal(self.names), *(bag_weights(path[: k + 1], len(self.names)) for k in range(most))]
            p = np.array([weighted(examples.rows.trials[:, test], np.asarray(weights)) for weights in candidates])
            losses.append((p - examples.outcome[test]) ** 2)
            rows.append(test)
        places = np.concatenate([np.empty(0, np.int64), *map(np.flatnonzero, rows)])
        return np.concatenate(losses, axis=1), examples.rows.cluster[places], examples.weight[places]

    def _path(self, examples: Examples) -> list[int]:
        return greedy_path(examples, steps=self.steps, replacement=self.replacement)


# Weights by past skill: better members count more, as far as the evidence supports it.

RATE = 0.5
"""Up to this rate, exponential weights of squared errors in [0, 1] have bounded regret (Kivinen & Warmuth 1999)."""


@frozen
class SkillWeights:
    """Exponential weights on past squared error, shrunk to equal weights as far as differences may be noise.

    e_m = discounted mean over the rows of member m of (its squared error − that of the equal-weight ensemble), a row
    counting 0.5^(age / half_life), age from its due date to the latest. With C the effective number of clusters, w_m ∝
    exp(−½ · C · λ · (e_m − ē)), where λ = max(0, 1 − mean of se_m² / variance of e over members) is the share of the
    spread between members that is not sampling noise: 0 gives equal weights.
    """

    names: Names
    half_life: float = 180.0
    """Half-life of a row's weight, in days."""

    def __post_init__(self) -> None:
        if not self.half_life > 0:
            raise ValueError(f"half_life = {self.half_life} must be positive")

    @property
    def name(self) -> str:
        """The name shown in tables."""
        return f"skill logit weights of {len(self.names)}"

    def fit(self, examples: Examples) -> Ensemble:
        """Fit the weights; equal ones without examples or without significant differences."""
        p = check_members(examples.rows, self.names)
        weights, why = equal(self.names), "equal: no past"
        if len(examples) and len(self.names) > 1:
            together = weighted(p, np.asarray(weights))
            error = (p - examples.outcome) ** 2 - (together - examples.outcome) ** 2
            age = (examples.rows.due.max() - examples.rows.due).astype("m8[D]").astype(np.float64)
            row_weight = examples.weight * 0.5 ** (age / self.half_life)
            gains = [gain(row, examples.rows.cluster, row_weight) for row in error]
            trust = reliability(gains)
            excess = np.array([member_gain.mean for member_gain in gains])
            clusters = max(member_gain.n_clusters for member_gain in gains)
            log_weights = -RATE * clusters * trust * (excess - excess.mean())
            unscaled = np.exp(log_weights - log_weights.max())
            weights = tuple(map(float, unscaled / unscaled.sum()))
            why = f"{percent(trust)} of the spread between members is skill"
        return Ensemble(names=self.names, weights=weights, training=Training.of(examples), reason=why)


def reliability(gains: list[Gain]) -> float:
    """λ = max(0, 1 − mean sampling variance / variance between members); 0 if an error is unknown.

    >>> same = [Gain(mean=m, se=0.1, n_clusters=9) for m in (0.0, 0.2, 0.4)]
    >>> round(reliability(same), 3)
    0.625
    """
    between = float(np.var([member_gain.mean for member_gain in gains]))
    noise = float(np.mean([member_gain.se**2 for member_gain in gains]))
    return max(0.0, 1 - noise / between) if between > 0 and np.isfinite(noise) else 0.0
