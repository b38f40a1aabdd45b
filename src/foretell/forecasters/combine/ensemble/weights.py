"""The fitted ensemble, whatever chose its weights, and the choice that needs no past: equal weights."""

from dataclasses import dataclass, field

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.combine.ensemble.members import Names, Space, check_members, weighted
from foretell.forecasters.combine.fitted import Training
from foretell.forecasters.combine.rows import Examples, Rows


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

    def probabilities(self, rows: Rows) -> Floats:
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
