"""Weights by past skill: better members count more, by no more than the evidence carries."""

from dataclasses import dataclass

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.combine.ensemble.members import Names, Space, check_members
from foretell.forecasters.combine.ensemble.weights import Ensemble, equal
from foretell.forecasters.combine.fitted import Training
from foretell.forecasters.combine.out_of_time import Gain, gain
from foretell.forecasters.combine.rows import Examples

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
        weights, told = equal(self.names), "equal: no past"
        if len(examples) and len(self.names) > 1:
            found = self._gains(p, examples)
            trust = reliability(found)
            excess = np.array([one.mean for one in found])
            clusters = max(one.n_clusters for one in found)
            log_weights = -RATE * clusters * trust * (excess - excess.mean())
            unscaled = np.exp(log_weights - log_weights.max())
            weights = tuple(map(float, unscaled / unscaled.sum()))
            told = f"{trust:.0%} of the spread between members is skill"
        training = Training.of(examples)
        return Ensemble(names=self.names, weights=weights, space=self.space, training=training, told=told)

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
