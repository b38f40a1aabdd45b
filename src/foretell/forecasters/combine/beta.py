"""Beta calibration: a curve with a slope for each end, the likelihood ratio of two beta distributions."""

from dataclasses import dataclass, field

import numpy as np

from foretell.evaluate.arrays import Floats, Ints
from foretell.forecasters.combine.fitted import Training, one_sided
from foretell.forecasters.combine.logistic import TINY, Regression, coefficients_without, fit, one_sided_without
from foretell.forecasters.combine.platt import PAPER_EDGE
from foretell.forecasters.combine.rows import Examples, Rows, sigmoid

IDENTITY = (1.0, 1.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class FittedBeta:
    """σ(a·ln p − b·ln(1 − p) + c), p being the trials' logit mean; a = b = 1 and c = 0 is the identity."""

    a: float = 1.0
    b: float = 1.0
    c: float = 0.0
    edge: float = PAPER_EDGE
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: Rows) -> Floats:
        """The bent logit mean; NaN where no trial answered."""
        return sigmoid(_features(rows.raw, self.edge) @ np.array([self.a, self.b, self.c]))


@dataclass(frozen=True, kw_only=True)
class Beta:
    """Beta calibration by least log loss (Kull, Silva Filho & Flach 2017), with a, b ≥ 0.

    A slope that comes out negative is dropped and the rest fitted again; where both go, only the base rate is left.
    `pull` is the strength of a normal prior at the identity, by default so weak that it only keeps the numbers finite.
    Where outcomes are all the same the rule is the identity.

    >>> Beta().name
    'beta'
    """

    pull: float = TINY / 2
    edge: float = PAPER_EDGE

    def __post_init__(self) -> None:
        if not self.pull > 0:
            raise ValueError(f"pull = {self.pull} must be positive")
        if not 0 < self.edge < 0.5:
            raise ValueError(f"edge = {self.edge} is outside (0, 0.5)")

    @property
    def name(self) -> str:
        """As shown in tables."""
        return "beta"

    def fit(self, examples: Examples) -> FittedBeta:
        """The curve of least log loss among those that rise."""
        training = Training.of(examples)
        if one_sided(examples):
            return FittedBeta(edge=self.edge, training=training)
        a, b, c = (float(value) for value in _rising(self._problem(examples)))
        return FittedBeta(a=a, b=b, c=c, edge=self.edge, training=training)

    def leave_out(self, examples: Examples, groups: Ints) -> Floats:
        """Each row's probability from the curve fitted without its group; only curves that fall are fitted again."""
        answered = ~np.isnan(examples.rows.raw)
        problem, p = self._problem(examples), examples.rows.raw.copy()
        code = np.unique(groups[answered], return_inverse=True)[1].astype(np.int64)
        found = coefficients_without(problem, code)
        for group in np.flatnonzero((found[:, :2] < 0).any(axis=1)):
            found[group] = _rising(problem.without(code == group))
        known = ~one_sided_without(problem, code)[code]
        p[np.flatnonzero(answered)[known]] = sigmoid(np.einsum("ij,ij->i", problem.design, found[code])[known])
        return p

    def _problem(self, examples: Examples) -> Regression:
        answered = ~np.isnan(examples.rows.raw)
        return Regression.of(
            _features(examples.rows.raw[answered], self.edge),
            examples.outcome[answered],
            weight=examples.weight[answered],
            penalty=2 * self.pull,
            centre=IDENTITY,
        )


def _rising(problem: Regression) -> Floats:
    """The coefficients with the least loss, the lower slope left out until none is negative."""
    free = np.ones(3, bool)
    while True:
        found = np.zeros(3)
        found[free] = fit(problem.only(free))
        if (found[:2] >= 0).all():
            return found
        free[int(np.argmin(found[:2]))] = False


def _features(p: Floats, edge: float) -> Floats:
    """The columns ln p, −ln(1 − p) and 1."""
    kept = np.clip(p, edge, 1 - edge)
    return np.column_stack([np.log(kept), -np.log1p(-kept), np.ones_like(kept)])
