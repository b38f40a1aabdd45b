"""Greedy forward selection that is judged on later rounds than it chose on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np

from foretell.forecasters.combine.crossfit import Gain, gain, later_splits
from foretell.forecasters.combine.rows import Examples, Strings, TrialRows, logit, sigmoid
from foretell.forecasters.combine.rules import Training
from foretell.metrics.arrays import Bools, Floats, Ints

# Several forecasters side by side, as the trials of one `TrialRows`.

Space = Literal["logit", "probability"]
Names = tuple[str, ...]


def side_by_side(forecasters: Mapping[str, TrialRows]) -> tuple[Names, TrialRows]:
    """Names and rows with one trial per forecaster, the logit mean of its own; NaN where it did not answer.

    A target that only some were asked about is there once, with what the first of them knew about it.
    """
    if not forecasters:
        raise ValueError("no forecaster is given: an ensemble needs members")
    everyone = [(rows, _keys(rows)) for rows in forecasters.values()]
    keys, first = np.unique(np.concatenate([own for _, own in everyone]), return_index=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(keys), np.int64)
    place[order] = np.arange(len(keys))
    said = np.full((len(everyone), len(keys)), np.nan)
    for member, (rows, own) in enumerate(everyone):
        said[member, place[_places(keys, own)]] = rows.raw
    joined = _joined([rows for rows, _ in everyone]).take(first[order])
    return tuple(forecasters), joined.with_trials(said)


def in_space(p: Floats, space: Space) -> Floats:
    """Probabilities on the scale on which they are averaged."""
    if space not in ("logit", "probability"):
        raise ValueError(f"space {space!r} is neither logit nor probability")
    return logit(p) if space == "logit" else p


def from_space(x: Floats, space: Space) -> Floats:
    """Back to probabilities."""
    return sigmoid(x) if space == "logit" else x


def weighted(p: Floats, weights: Floats, space: Space) -> Floats:
    """Members × targets averaged with their weights, renormalised on every target over the members present.

    Where those present have no weight at all they count equally; NaN only where nobody is present.

    >>> p = np.array([[0.2, 0.2, np.nan], [0.6, np.nan, np.nan]])
    >>> weighted(p, np.array([0.25, 0.75]), "probability").round(3).tolist()
    [0.5, 0.2, nan]
    """
    present = ~np.isnan(p)
    share = np.where(present, weights[:, None], 0.0)
    weightless = share.sum(axis=0) <= 0
    share = np.where(weightless, present.astype(np.float64), share)
    total = share.sum(axis=0)
    x = np.where(present, in_space(np.where(present, p, 0.5), space), 0.0)
    mean = np.divide((share * x).sum(axis=0), total, out=np.zeros(p.shape[1]), where=total > 0)
    return np.where(total > 0, from_space(mean, space), np.nan)


def check_members(rows: TrialRows, names: Names) -> Floats:
    """The members' probabilities (members × targets), or a `ValueError` where rows and names do not match."""
    if len(set(names)) != len(names):
        raise ValueError("two members have the same name")
    if len(rows.trials) != len(names):
        raise ValueError(f"rows hold {len(rows.trials)} members, {len(names)} are named")
    return rows.trials


def _keys(rows: TrialRows) -> Strings:
    keys = np.char.add(np.char.add(rows.asking, "\x1f"), rows.target.astype(str))
    if len(np.unique(keys)) != len(keys):
        raise ValueError("a target appears twice in the rows of one forecaster")
    return keys


def _places(keys: Strings, own: Strings) -> Ints:
    return np.searchsorted(keys, own).astype(np.int64)


def _joined(parts: list[TrialRows]) -> TrialRows:
    columns = {
        f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(TrialRows) if f.name != "trials"
    }
    return TrialRows(trials=np.full((1, sum(map(len, parts))), np.nan), **columns)


# The order in which a greedy selection adds its members.


def greedy_path(examples: Examples, space: Space, *, steps: int, replacement: bool) -> list[int]:
    """Members, each the one whose addition gives the mean the least weighted squared error; ties go to the first.

    On a row where nobody chosen so far is present the ensemble says what equal weights say, here as when it is used.
    """
    pool = _pool(examples, space)
    total, count = np.zeros(pool.x.shape[1]), np.zeros(pool.x.shape[1])
    free = np.ones(len(pool.x), np.bool_)
    path: list[int] = []
    for _ in range(steps if replacement else min(steps, len(free))):
        counts = count + pool.present
        mean = np.divide(total + pool.x, counts, out=np.zeros_like(pool.x), where=counts > 0)
        said = np.where(counts > 0, from_space(mean, space), pool.stand_in)
        loss = ((said - pool.outcome) ** 2 * pool.weight).sum(axis=1)
        best = int(np.argmin(np.where(free, loss, np.inf)))
        path.append(best)
        total, count = total + pool.x[best], count + pool.present[best]
        free[best] = replacement
    return path


def bag_weights(path: list[int], members: int) -> tuple[float, ...]:
    """How often each member was added, as shares.

    >>> bag_weights([0, 2, 0, 0], 3)
    (0.75, 0.0, 0.25)
    """
    return tuple(map(float, np.bincount(path, minlength=members) / len(path)))


@dataclass(frozen=True, kw_only=True)
class _Pool:
    """Members × the rows on which anybody is present, on the scale of averaging; 0 where absent."""

    x: Floats
    present: Bools
    stand_in: Floats
    outcome: Floats
    weight: Floats


def _pool(examples: Examples, space: Space) -> _Pool:
    p = examples.rows.trials
    stand_in = weighted(p, np.ones(len(p)), space)
    rows = ~np.isnan(stand_in)
    present = ~np.isnan(p[:, rows])
    return _Pool(
        x=np.where(present, in_space(np.where(present, p[:, rows], 0.5), space), 0.0),
        present=present,
        stand_in=stand_in[rows],
        outcome=examples.outcome[rows],
        weight=examples.weight[rows],
    )


# The fitted ensemble, whatever chose its weights, and the choice that needs no past: equal weights.


@dataclass(frozen=True, kw_only=True)
class Ensemble:
    """Members with weights that sum to one."""

    names: Names
    weights: tuple[float, ...]
    space: Space = "logit"
    training: Training = field(default_factory=Training)
    told: str = ""
    """Why these weights."""

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.names) or not self.names:
            raise ValueError(f"{len(self.names)} members have {len(self.weights)} weights")
        if not all(np.isfinite(w) and w >= 0 for w in self.weights) or abs(sum(self.weights) - 1) > 1e-9:
            raise ValueError("weights must not be negative and must sum to one")

    def probabilities(self, rows: TrialRows) -> Floats:
        """The weighted mean of the members present on each row; NaN where none is."""
        return weighted(check_members(rows, self.names), np.asarray(self.weights), self.space)


def equal(names: Names) -> tuple[float, ...]:
    """The same weight for everyone."""
    return (1 / len(names),) * len(names)


@dataclass(frozen=True, kw_only=True)
class EqualWeights:
    """Every member counts the same. It learns nothing, so its ensembles refuse nothing."""

    names: Names
    space: Space = "logit"

    @property
    def name(self) -> str:
        """As shown in tables."""
        return f"equal {self.space} weights of {len(self.names)}"

    def fit(self, examples: Examples) -> Ensemble:
        """The same ensemble whatever happened."""
        check_members(examples.rows, self.names)
        return Ensemble(names=self.names, weights=equal(self.names), space=self.space, told="equal by choice")


@dataclass(frozen=True, kw_only=True)
class GreedySelection:
    """Starts with the best member and adds, step by step, whichever lowers the squared error of the mean most.

    With replacement a good member may come again and so gain weight (Caruana et al. 2004); without, everyone comes at
    most once (BLF 2026, appendix F). A longer selection always looks better on the rows it was made on, so its length
    is chosen elsewhere: on every round but the first, selections made on what was known before it are scored, and the
    shortest whose loss is within `noise` standard errors of the best length is taken. It has to beat equal weights on
    those rounds by as much, or equal weights are kept. With a single round, fifths of its questions stand in for later
    rounds; that is weaker evidence, as they share their day.
    """

    names: Names
    space: Space = "logit"
    replacement: bool = True
    steps: int = 20
    noise: float = 1.0
    folds: int = 5

    def __post_init__(self) -> None:
        if self.steps < 1 or self.folds < 2 or not self.noise >= 0:
            raise ValueError("greedy selection needs steps >= 1, folds >= 2 and noise >= 0")

    @property
    def name(self) -> str:
        """As shown in tables."""
        how = "" if self.replacement else " without replacement"
        return f"greedy {self.space} selection{how} from {len(self.names)}"

    def fit(self, examples: Examples) -> Ensemble:
        """The selection, or equal weights where later rounds show no gain beyond noise."""
        check_members(examples.rows, self.names)
        length, text = self._length(self._judged(examples))
        weights = bag_weights(self._path(examples)[:length], len(self.names)) if length else equal(self.names)
        training = Training.of(examples)
        return Ensemble(names=self.names, weights=weights, space=self.space, training=training, told=text)

    def _length(self, judged: "_GreedyScore") -> tuple[int, str]:
        """How many steps to take, 0 for equal weights, and why."""
        if not len(judged.weight):
            return 0, "equal: no later round to judge a selection by"
        losses = judged.losses
        best = 1 + int(np.argmin(np.nansum(judged.weight * losses[1:], axis=1)))
        within = (
            step
            for step in range(1, best)
            if not gain(losses[step] - losses[best], judged.cluster, judged.weight).beyond(self.noise)
        )
        length = next(within, best)
        over = gain(losses[0] - losses[length], judged.cluster, judged.weight)
        if not over.beyond(self.noise):
            return 0, f"equal: on {judged.where} {length} steps gain {over}"
        return length, f"{length} steps: on {judged.where} they gain {over} over equal weights"

    def _judged(self, examples: Examples) -> "_GreedyScore":
        """Selections made on the past of each round, scored on that round."""
        most = self.steps if self.replacement else min(self.steps, len(self.names))
        losses: list[Floats] = [np.empty((most + 1, 0))]
        rows: list[Bools] = []
        for train, test in later_splits(examples, self.folds):
            path = self._path(examples.take(train))
            tries = [equal(self.names), *(bag_weights(path[: k + 1], len(self.names)) for k in range(most))]
            p = examples.rows.trials[:, test]
            said = np.array([weighted(p, np.asarray(one), self.space) for one in tries])
            losses.append((said - examples.outcome[test]) ** 2)
            rows.append(test)
        several = len(np.unique(examples.rows.due)) > 1
        return _GreedyScore(
            where="later rounds" if several else "held-out questions of the one round",
            losses=np.concatenate(losses, axis=1),
            cluster=np.concatenate([examples.rows.cluster[:0], *(examples.rows.cluster[one] for one in rows)]),
            weight=np.concatenate([np.empty(0), *(examples.weight[one] for one in rows)]),
        )

    def _path(self, examples: Examples) -> list[int]:
        return greedy_path(examples, self.space, steps=self.steps, replacement=self.replacement)


@dataclass(frozen=True, kw_only=True)
class _GreedyScore:
    """Squared errors on later rows, first of equal weights, then of selections of 1, 2, … steps."""

    where: str
    losses: Floats
    cluster: Strings
    weight: Floats


# Weights by past skill: better members count more, by no more than the evidence carries.

RATE = 0.5
"""Up to this rate exponential weights of squared errors in [0, 1] have bounded regret (Kivinen & Warmuth 1999)."""


@dataclass(frozen=True, kw_only=True)
class SkillWeights:
    """Exponential weights on past squared error, shrunk to equal where members cannot be told apart.

    e_m = discounted mean over the rows of member m of (its squared error − that of the equal-weight ensemble), a row
    counting 0.5^(age / half_life), age from its due date to the latest. With C the effective number of clusters,
    w_m ∝ exp(−½ · C · λ · (e_m − ē)), where λ = max(0, 1 − mean of se_m² / variance of e over members) is the share
    of the spread between members that is not sampling noise: 0 gives equal weights.
    """

    names: Names
    space: Space = "logit"
    half_life: float = 180.0
    """Days."""

    def __post_init__(self) -> None:
        if not self.half_life > 0:
            raise ValueError(f"half_life = {self.half_life} must be positive")

    @property
    def name(self) -> str:
        """As shown in tables."""
        return f"skill {self.space} weights of {len(self.names)}"

    def fit(self, examples: Examples) -> Ensemble:
        """Weights from the examples; equal ones where there are none or nothing tells members apart."""
        p = check_members(examples.rows, self.names)
        weights, text = equal(self.names), "equal: no past"
        if len(examples) and len(self.names) > 1:
            found = self._gains(p, examples)
            trust = reliability(found)
            excess = np.array([one.mean for one in found])
            clusters = max(one.n_clusters for one in found)
            log_weights = -RATE * clusters * trust * (excess - excess.mean())
            unscaled = np.exp(log_weights - log_weights.max())
            weights = tuple(map(float, unscaled / unscaled.sum()))
            text = f"{trust:.0%} of the spread between members is skill"
        training = Training.of(examples)
        return Ensemble(names=self.names, weights=weights, space=self.space, training=training, told=text)

    def _gains(self, p: Floats, examples: Examples) -> list[Gain]:
        together = Ensemble(names=self.names, weights=equal(self.names), space=self.space)
        error = (p - examples.outcome) ** 2 - (together.probabilities(examples.rows) - examples.outcome) ** 2
        age = (examples.rows.due.max() - examples.rows.due).astype("m8[D]").astype(np.float64)
        weight = examples.weight * 0.5 ** (age / self.half_life)
        return [gain(row, examples.rows.cluster, weight) for row in error]


def reliability(found: list[Gain]) -> float:
    """λ = max(0, 1 − mean sampling variance / variance between members); 0 where an error is unknown.

    >>> same = [Gain(mean=m, se=0.1, n_clusters=9) for m in (0.0, 0.2, 0.4)]
    >>> round(reliability(same), 3)
    0.625
    """
    between = float(np.var([one.mean for one in found]))
    noise = float(np.mean([one.se**2 for one in found]))
    return max(0.0, 1 - noise / between) if between > 0 and np.isfinite(noise) else 0.0
