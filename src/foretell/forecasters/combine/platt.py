"""Platt scaling: a line on the log-odds scale, alone or with an offset for each kind of question."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from foretell.evaluate.arrays import Bools, Floats, Ints
from foretell.forecasters.combine.fitted import Training, one_sided
from foretell.forecasters.combine.logistic import TINY, Regression, coefficients_without, fit, one_sided_without
from foretell.forecasters.combine.rows import Examples, Rows, Strings, logit, sigmoid

PAPER_EDGE = 1e-4
"""BLF 2026 keeps probabilities this far from certainty where it calibrates and shrinks."""
COLUMNS = ("source", "subtype", "kind", "question", "cluster", "target")
"""What offsets may hang on."""


@dataclass(frozen=True, kw_only=True)
class FittedPlatt:
    """σ(slope·logit p + intercept + offsets), p being the trials' logit mean; what was never seen has offset 0."""

    slope: float = 1.0
    intercept: float = 0.0
    offsets: Mapping[str, float] = field(default_factory=dict[str, float])
    """By the values of `by`, each level by itself: "fred", and with two columns also "fred > all"."""
    by: tuple[str, ...] = ()
    edge: float = PAPER_EDGE
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: Rows) -> Floats:
        """The bent logit mean; NaN where no trial answered."""
        z = self.slope * logit(rows.raw, self.edge) + self.intercept
        for level in _levels(rows, self.by):
            names, code = np.unique(level, return_inverse=True)
            z += np.array([self.offsets.get(str(name), 0.0) for name in names], np.float64)[code]
        return sigmoid(z)


@dataclass(frozen=True, kw_only=True)
class Platt:
    """σ(a·logit p + b) by least log loss (Platt 1999), offsets δ by level of `by` held down by strength·Σδ².

    With `by=()` this is plain Platt scaling. The offsets are those of BLF 2026, Appendix C.11: with `by=("source",)`
    and strength 1 the loss is Σ weight·log loss + Σδ². `pull` is the strength of a normal prior at the identity
    (a = 1, b = 0), by default so weak that it only keeps a and b finite. Where outcomes are all the same, or there are
    none, there is no slope to learn and the rule is the identity.

    >>> Platt().name, HierarchicalPlatt().name
    ('platt', 'platt by source')
    """

    by: tuple[str, ...] = ()
    strength: float = 1.0
    pull: float = TINY / 2
    edge: float = PAPER_EDGE

    def __post_init__(self) -> None:
        if unknown := [name for name in self.by if name not in COLUMNS]:
            raise ValueError(f"by = {unknown[0]!r} is no column for offsets; these are: {', '.join(COLUMNS)}")
        if not (self.strength > 0 and self.pull > 0):
            raise ValueError(f"strength = {self.strength} and pull = {self.pull} must be positive")
        if not 0 < self.edge < 0.5:
            raise ValueError(f"edge = {self.edge} is outside (0, 0.5)")

    @property
    def name(self) -> str:
        """As shown in tables."""
        return f"platt by {' and '.join(self.by)}" if self.by else "platt"

    def fit(self, examples: Examples) -> FittedPlatt:
        """The line and the offsets of least penalised log loss."""
        training = Training.of(examples)
        problem, _, names = self._problem(examples)
        if one_sided(examples):
            return FittedPlatt(by=self.by, edge=self.edge, training=training)
        found = [float(value) for value in fit(problem)]
        return FittedPlatt(
            slope=found[0],
            intercept=found[1],
            offsets=dict(zip(names, found[2:], strict=True)),
            by=self.by,
            edge=self.edge,
            training=training,
        )

    def leave_out(self, examples: Examples, groups: Ints) -> Floats:
        """Each row's probability from the line fitted without its group: as refitting, at a fraction of the cost."""
        problem, answered, _ = self._problem(examples)
        p = np.full(len(examples), np.nan)
        if not answered.any():
            return p
        code = np.unique(groups[answered], return_inverse=True)[1].astype(np.int64)
        z = np.einsum("ij,ij->i", problem.design, coefficients_without(problem, code)[code])
        p[answered] = sigmoid(np.where(one_sided_without(problem, code)[code], problem.design[:, 0], z))
        return p

    def _problem(self, examples: Examples) -> tuple[Regression, Bools, list[str]]:
        """The regression on the rows with an answer, which rows those are, and the offsets' names."""
        rows = examples.rows
        answered = ~np.isnan(rows.raw)
        x = logit(rows.raw[answered], self.edge)
        columns, names = [x, np.ones_like(x)], list[str]()
        for level in _levels(rows, self.by):
            found, code = np.unique(level[answered], return_inverse=True)
            columns += list(np.equal.outer(np.arange(len(found)), code).astype(np.float64))
            names += [str(name) for name in found]
        problem = Regression.of(
            np.column_stack(columns),
            examples.outcome[answered],
            weight=examples.weight[answered],
            penalty=np.r_[2 * self.pull, 2 * self.pull, np.full(len(names), 2 * self.strength)],
            centre=np.r_[1.0, np.zeros(1 + len(names))],
        )
        return problem, answered, names


@dataclass(frozen=True, kw_only=True)
class HierarchicalPlatt(Platt):
    """Platt scaling with an offset per source, as BLF 2026 calibrates; more columns nest: source, source > subtype."""

    by: tuple[str, ...] = ("source",)


def _levels(rows: Rows, by: tuple[str, ...]) -> list[Strings]:
    """The key of each row at every depth of `by`: "fred", then "fred > all"."""
    levels: list[Strings] = []
    for name in by:
        column = getattr(rows, name).astype(str)
        levels.append(np.char.add(np.char.add(levels[-1], " > "), column) if levels else column)
    return levels
