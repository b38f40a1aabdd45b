"""Greedy forward selection that is judged on later rounds than it chose on."""

from dataclasses import dataclass

import numpy as np

from foretell.evaluate.arrays import Bools, Floats
from foretell.forecasters.combine.ensemble.members import Names, Space, check_members, weighted
from foretell.forecasters.combine.ensemble.path import bag_weights, greedy_path
from foretell.forecasters.combine.ensemble.weights import Ensemble, equal
from foretell.forecasters.combine.fitted import Training
from foretell.forecasters.combine.out_of_time import gain, later_splits
from foretell.forecasters.combine.rows import Examples, Strings


@dataclass(frozen=True, kw_only=True)
class Greedy:
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
        length, told = self._length(self._judged(examples))
        weights = bag_weights(self._path(examples)[:length], len(self.names)) if length else equal(self.names)
        training = Training.of(examples)
        return Ensemble(names=self.names, weights=weights, space=self.space, training=training, told=told)

    def _length(self, judged: "_Judged") -> tuple[int, str]:
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

    def _judged(self, examples: Examples) -> "_Judged":
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
        return _Judged(
            where="later rounds" if several else "held-out questions of the one round",
            losses=np.concatenate(losses, axis=1),
            cluster=np.concatenate([examples.rows.cluster[:0], *(examples.rows.cluster[one] for one in rows)]),
            weight=np.concatenate([np.empty(0), *(examples.weight[one] for one in rows)]),
        )

    def _path(self, examples: Examples) -> list[int]:
        return greedy_path(examples, self.space, steps=self.steps, replacement=self.replacement)


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """Squared errors on later rows, first of equal weights, then of selections of 1, 2, … steps."""

    where: str
    losses: Floats
    cluster: Strings
    weight: Floats
