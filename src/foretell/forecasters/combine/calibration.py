"""Calibration of the trials' logit mean: Platt scaling with or without offsets, a beta curve, an isotonic curve.

Without outcomes, or if all are the same, every method is the identity.
"""

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from foretell.forecasters.combine.logistic import (
    TINY,
    LogisticProblem,
    coefficients_without,
    fit_logistic_ridge,
    one_sided_without,
)
from foretell.forecasters.combine.rows import Examples, Strings, TrialRows
from foretell.forecasters.combine.rules import Training, one_sided
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints, group_sums
from foretell.metrics.numerics import isotonic
from foretell.metrics.transforms import logit, sigmoid

PAPER_EDGE = 1e-4
"""Distance from 0 and 1 to which BLF 2026 clips probabilities when it calibrates and shrinks."""
COLUMNS = ("source", "subtype", "kind", "question", "cluster", "target")
"""Columns that offsets may depend on."""


@frozen
class FittedPlatt:
    """σ(slope·logit p + intercept + offsets), where p is the trials' logit mean; unseen values have offset 0."""

    slope: float = 1.0
    intercept: float = 0.0
    offsets: Mapping[str, float] = field(default_factory=dict[str, float])
    """Offsets by the values of `by`, each level separately: "fred", and with two columns also "fred > all"."""
    by: tuple[str, ...] = ()
    edge: float = PAPER_EDGE
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: TrialRows) -> Floats:
        """The calibrated logit mean; NaN if no trial answered."""
        z = self.slope * logit(rows.raw, self.edge) + self.intercept
        for level in _levels(rows, self.by):
            names, code = np.unique(level, return_inverse=True)
            z += np.array([self.offsets.get(str(name), 0.0) for name in names], np.float64)[code]
        return sigmoid(z)


@frozen
class Platt:
    """σ(a·logit p + b) by least log loss (Platt 1999), with offsets δ by level of `by`, penalised by strength·Σδ².

    With `by=()` this is plain Platt scaling. The offsets are those of BLF 2026, Appendix C.11: with `by=("source",)`
    and strength 1 the loss is Σ weight·log loss + Σδ². A prior at a = 1, b = 0 only keeps both finite.
    """

    by: tuple[str, ...] = ()
    strength: float = 1.0

    def __post_init__(self) -> None:
        if unknown := [name for name in self.by if name not in COLUMNS]:
            raise ValueError(f"by = {unknown[0]!r} is not a column for offsets; these are: {', '.join(COLUMNS)}")
        if not self.strength > 0:
            raise ValueError(f"strength = {self.strength} must be positive")

    @property
    def name(self) -> str:
        """The name shown in tables."""
        return f"platt by {' and '.join(self.by)}" if self.by else "platt"

    def fit(self, examples: Examples) -> FittedPlatt:
        """Fit the line and the offsets with the least penalised log loss."""
        training = Training.of(examples)
        if one_sided(examples):
            return FittedPlatt(by=self.by, training=training)
        problem, _, names = self._problem(examples)
        slope, intercept, *offsets = fit_logistic_ridge(problem).tolist()
        named = dict(zip(names, offsets, strict=True))
        return FittedPlatt(slope=slope, intercept=intercept, offsets=named, by=self.by, training=training)

    def leave_out(self, examples: Examples, groups: Ints) -> Floats:
        """Return each row's probability from the line fitted without its group, much faster than by refitting."""
        problem, answered, _ = self._problem(examples)
        p = np.full(len(examples), np.nan)
        if not answered.any():
            return p
        code = np.unique(groups[answered], return_inverse=True)[1].astype(np.int64)
        z = np.einsum("ij,ij->i", problem.design, coefficients_without(problem, code)[code])
        p[answered] = sigmoid(np.where(one_sided_without(problem, code)[code], problem.design[:, 0], z))
        return p

    def _problem(self, examples: Examples) -> tuple[LogisticProblem, Bools, list[str]]:
        """Return the regression on the rows with an answer, a mask of these rows, and the offsets' names."""
        rows = examples.rows
        answered = ~np.isnan(rows.raw)
        x = logit(rows.raw[answered], PAPER_EDGE)
        columns, names = [x, np.ones_like(x)], list[str]()
        for level in _levels(rows, self.by):
            values, code = np.unique(level[answered], return_inverse=True)
            columns += list(np.equal.outer(np.arange(len(values)), code).astype(np.float64))
            names += map(str, values)
        problem = LogisticProblem.of(
            np.column_stack(columns),
            examples.outcome[answered],
            weight=examples.weight[answered],
            penalty=np.r_[TINY, TINY, np.full(len(names), 2 * self.strength)],
            centre=np.r_[1.0, np.zeros(1 + len(names))],
        )
        return problem, answered, names


@frozen
class HierarchicalPlatt(Platt):
    """Platt scaling with an offset per source, as in BLF 2026; further columns nest: source, source > subtype."""

    by: tuple[str, ...] = ("source",)


def _levels(rows: TrialRows, by: tuple[str, ...]) -> list[Strings]:
    """Return the key of each row at every depth of `by`: "fred", then "fred > all"."""
    levels: list[Strings] = []
    for name in by:
        column = getattr(rows, name).astype(str)
        levels.append(np.char.add(np.char.add(levels[-1], " > "), column) if levels else column)
    return levels


# Beta calibration: a curve with a slope for each end, the likelihood ratio of two beta distributions.


@frozen
class FittedBeta:
    """σ(a·ln p − b·ln(1 − p) + c), where p is the trials' logit mean; a = b = 1 and c = 0 is the identity."""

    a: float = 1.0
    b: float = 1.0
    c: float = 0.0
    edge: float = PAPER_EDGE
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: TrialRows) -> Floats:
        """The calibrated logit mean; NaN if no trial answered."""
        return sigmoid(_beta_columns(rows.raw, self.edge) @ np.array([self.a, self.b, self.c]))


@frozen
class Beta:
    """Beta calibration by least log loss (Kull, Silva Filho & Flach 2017), with a, b ≥ 0.

    A negative slope is dropped and the rest fitted again; if both are dropped, only the base rate is left.
    """

    name: str = "beta"

    def fit(self, examples: Examples) -> FittedBeta:
        """Fit the non-decreasing curve with the least log loss."""
        training = Training.of(examples)
        if one_sided(examples):
            return FittedBeta(training=training)
        a, b, c = _rising(_beta_problem(examples)).tolist()
        return FittedBeta(a=a, b=b, c=c, training=training)

    def leave_out(self, examples: Examples, groups: Ints) -> Floats:
        """Return each row's probability from the curve fitted without its group; only falling curves are refitted."""
        answered = ~np.isnan(examples.rows.raw)
        problem, p = _beta_problem(examples), examples.rows.raw.copy()
        code = np.unique(groups[answered], return_inverse=True)[1].astype(np.int64)
        fitted = coefficients_without(problem, code)
        for group in np.flatnonzero((fitted[:, :2] < 0).any(axis=1)):
            fitted[group] = _rising(problem.without(code == group))
        known = ~one_sided_without(problem, code)[code]
        p[np.flatnonzero(answered)[known]] = sigmoid(np.einsum("ij,ij->i", problem.design, fitted[code])[known])
        return p


def _beta_problem(examples: Examples) -> LogisticProblem:
    answered = ~np.isnan(examples.rows.raw)
    columns = _beta_columns(examples.rows.raw[answered], PAPER_EDGE)
    weight = examples.weight[answered]
    return LogisticProblem.of(columns, examples.outcome[answered], weight=weight, centre=(1.0, 1.0, 0.0))


def _beta_columns(p: Floats, edge: float) -> Floats:
    """The columns ln p, −ln(1 − p) and 1."""
    p = np.clip(p, edge, 1 - edge)
    return np.column_stack([np.log(p), -np.log1p(-p), np.ones_like(p)])


def _rising(problem: LogisticProblem) -> Floats:
    """Return the coefficients with the least loss; the lower slope is dropped until none is negative."""
    free = np.ones(3, bool)
    while True:
        fitted = np.zeros(3)
        fitted[free] = fit_logistic_ridge(problem.only(free))
        if (fitted[:2] >= 0).all():
            return fitted
        free[int(np.argmin(fitted[:2]))] = False


# Isotonic calibration: the nondecreasing curve nearest to the outcomes.


@frozen
class FittedIsotonic:
    """Linear interpolation between block centres, constant outside of them; the identity without blocks."""

    at: tuple[float, ...] = ()
    value: tuple[float, ...] = ()
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: TrialRows) -> Floats:
        """The curve at each row's logit mean; NaN if no trial answered."""
        return np.interp(rows.raw, self.at, self.value) if self.at else rows.raw.copy()


@frozen
class Isotonic:
    """Isotonic regression of the outcome on the logit mean (Zadrozny & Elkan 2002)."""

    name: str = "isotonic"

    def fit(self, examples: Examples) -> FittedIsotonic:
        """Fit the curve through the pooled blocks."""
        training = Training.of(examples)
        if one_sided(examples):
            return FittedIsotonic(training=training)
        counted = ~np.isnan(examples.rows.raw) & (examples.weight > 0)
        at, value = _curve(examples.rows.raw[counted], examples.outcome[counted], examples.weight[counted])
        return FittedIsotonic(at=tuple(at.tolist()), value=tuple(value.tolist()), training=training)

    def leave_out(self, examples: Examples, groups: Ints) -> Floats:
        """Return each row's probability from the curve fitted without its group."""
        p = examples.rows.raw.copy()
        answered = ~np.isnan(p)
        x, y, w, group = p[answered], examples.outcome[answered], examples.weight[answered], groups[answered]
        fitted = x.copy()
        for group_id in np.unique(group):
            out = group == group_id
            rest = ~out & (w > 0)
            if len(np.unique(y[rest])) > 1:
                fitted[out] = np.interp(x[out], *_curve(x[rest], y[rest], w[rest]))
        p[answered] = fitted
        return p


def _curve(x: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return centres and means of neighbouring points, pooled until their means rise (Ayer et al. 1955).

    A block without any yes would give 0. With n = (Σw)² / Σw² effective examples, the curve is clipped to a distance of
    1 / (n + 2) from 0 and 1.
    """
    at, code = np.unique(x, return_inverse=True)
    w = group_sums(code, weight, len(at))
    pooled, first = isotonic(np.bincount(code, weight * y, len(at)) / w, w)
    centre = np.add.reduceat(w * at, first) / np.add.reduceat(w, first)
    margin = 1 / (weight.sum() ** 2 / (weight**2).sum() + 2)
    return centre, np.clip(pooled[first], margin, 1 - margin)
