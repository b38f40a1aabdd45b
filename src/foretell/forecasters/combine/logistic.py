"""Ridge-penalised logistic regression by Newton's method, and the same regression without each group in turn.

The loss is Σ w·[log(1 + exp z) − y·z] + ½ Σ r·(β − centre)², z = design·β, with a penalty r > 0 on every coefficient. A
tiny r hardly changes the result on ordinary data, and keeps coefficients finite if maximum likelihood has no solution:
separable outcomes, columns of zeros, one class only.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints, group_sums
from foretell.metrics.transforms import sigmoid

TINY = 1e-6
"""Penalty of an unpenalised coefficient."""
STEPS = 200
"""Maximum number of Newton steps, far more than needed in practice."""
CHORDS = 30
"""Maximum number of steps with a fixed Hessian per group, before a group is fitted by itself."""
CLOSE = 1e-9
"""Relative step size at which the chord steps end."""
ROUNDING = 1e-14
CELLS = 2_000_000
"""Maximum number of values in a block of groups."""


@frozen
class LogisticProblem:
    """A regression problem with n rows and p coefficients."""

    design: Floats
    outcome: Floats
    """Outcomes in [0, 1]: a probability counts as that share of a yes."""
    weight: Floats
    penalty: Floats
    """The penalty r of each coefficient."""
    centre: Floats
    """The value that each coefficient is shrunk to."""

    @classmethod
    def of(
        cls,
        design: npt.ArrayLike,
        outcome: npt.ArrayLike,
        *,
        weight: npt.ArrayLike = 1.0,
        penalty: npt.ArrayLike = TINY,
        centre: npt.ArrayLike = 0.0,
    ) -> "LogisticProblem":
        """Validate and convert array-likes; a single number applies to every row or coefficient."""
        design, outcome = np.asarray(design, np.float64), np.asarray(outcome, np.float64)
        n, p = design.shape
        weight = np.broadcast_to(np.asarray(weight, np.float64), n)
        penalty = np.broadcast_to(np.asarray(penalty, np.float64), p)
        if len(outcome) != n:
            raise ValueError(f"design has {n} rows, outcome {len(outcome)}")
        if not (penalty > 0).all():
            raise ValueError("penalty must be positive for every coefficient; use a tiny one for a free coefficient")
        if not (np.isfinite(design).all() and np.isfinite(weight).all() and (weight >= 0).all()):
            raise ValueError("design must be finite, and weight finite and not negative")
        centre = np.broadcast_to(np.asarray(centre, np.float64), p)
        return cls(design=design, outcome=outcome, weight=weight, penalty=penalty, centre=centre)

    def without(self, out: Bools) -> "LogisticProblem":
        """The same problem without some rows."""
        return replace(self, design=self.design[~out], outcome=self.outcome[~out], weight=self.weight[~out])

    def only(self, columns: Bools) -> "LogisticProblem":
        """The same problem with only some of its coefficients."""
        penalty, centre = self.penalty[columns], self.centre[columns]
        return replace(self, design=self.design[:, columns], penalty=penalty, centre=centre)

    def loss(self, at: Floats) -> float:
        """The penalised loss at the given coefficients."""
        z = self.design @ at
        # Not softplus(z) − y·z, which has large rounding errors for large z.
        log_loss = self.outcome * np.logaddexp(0.0, -z) + (1 - self.outcome) * np.logaddexp(0.0, z)
        return float(self.weight @ log_loss + 0.5 * self.penalty @ (at - self.centre) ** 2)

    def slope(self, at: Floats) -> tuple[Floats, Floats]:
        """Gradient and Hessian of the loss."""
        p = sigmoid(self.design @ at)
        gradient = self.design.T @ (self.weight * (p - self.outcome)) + self.penalty * (at - self.centre)
        hessian = self.design.T @ (self.design * (self.weight * p * (1 - p))[:, None])
        hessian.flat[:: len(at) + 1] += self.penalty
        return gradient, hessian


def fit_logistic_ridge(problem: LogisticProblem, start: Floats | None = None) -> Floats:
    """Return the coefficients with the least loss, by Newton steps halved until the loss decreases."""
    at = np.array(problem.centre if start is None else start, np.float64)
    loss = problem.loss(at)
    for _ in range(STEPS):
        gradient, hessian = problem.slope(at)
        step = np.asarray(np.linalg.solve(hessian, gradient), np.float64)
        decrease = float(gradient @ step)
        short = np.abs(step).max(initial=0.0) <= 1e-12 * (1 + np.abs(at).max(initial=0.0))
        if short or decrease <= 1e-22 * (1 + abs(loss)):
            return at - step
        size = 1.0
        while (new_loss := problem.loss(at - size * step)) > loss - 1e-4 * size * decrease + 1e-13 * abs(loss):
            size /= 2
            if size < 1e-12:
                return at
        at, loss = at - size * step, new_loss
    return at


def coefficients_without(problem: LogisticProblem, groups: Ints) -> Floats:
    """Return the coefficients fitted without each group 0…G−1, one row per group.

    At the coefficients of the whole, the gradient without a group is minus the group's own, and the Hessian is the
    whole one minus the group's, so the first step is cheap. Further steps keep that Hessian and update only the
    gradient, for many groups in one matrix product. Groups that do not converge are fitted separately.
    """
    whole = fit_logistic_ridge(problem)
    n_groups = int(groups.max(initial=-1)) + 1
    fitted = np.empty((n_groups, len(whole)))
    size = max(1, CELLS // max(*problem.design.shape, len(whole) ** 2, 1))
    for first in range(0, n_groups, size):
        block = range(first, min(first + size, n_groups))
        inverse, start = _first_step(problem, whole, groups, block)
        fitted[block.start : block.stop] = _settle(problem, groups, block, inverse, start)
    for group in np.flatnonzero(~np.isfinite(fitted).all(axis=1)):
        fitted[group] = fit_logistic_ridge(problem.without(groups == group), whole)
    return fitted


def one_sided_without(problem: LogisticProblem, groups: Ints) -> Bools:
    """Return for each group 0…G−1 whether there are no outcomes outside it, or all are the same."""
    counted = (problem.weight > 0).astype(np.float64)
    size = int(groups.max(initial=-1)) + 1
    yes = counted @ problem.outcome - group_sums(groups, counted * problem.outcome, size)
    total = counted.sum() - group_sums(groups, counted, size)
    return (yes < 0.5) | (total - yes < 0.5)


def _first_step(problem: LogisticProblem, whole: Floats, groups: Ints, block: range) -> tuple[Floats, Floats]:
    """Return the inverse Hessian without each group of the block at `whole`, and the coefficients after one step."""
    rows = np.flatnonzero((groups >= block.start) & (groups < block.stop))
    rows = rows[np.argsort(groups[rows], kind="stable")]
    code, x = groups[rows] - block.start, problem.design[rows]
    p = sigmoid(x @ whole)
    size = len(whole)
    gradients, hessians = np.zeros((len(block), size)), np.zeros((len(block), size, size))
    if len(rows):
        present, first = np.unique(code, return_index=True)
        gradient_terms = x * (problem.weight[rows] * (p - problem.outcome[rows]))[:, None]
        hessian_terms = (x * (problem.weight[rows] * p * (1 - p))[:, None])[:, :, None] * x[:, None, :]
        gradients[present] = np.add.reduceat(gradient_terms, first)
        hessians[present] = np.add.reduceat(hessian_terms, first)
    inverse = np.asarray(np.linalg.inv(problem.slope(whole)[1] - hessians), np.float64)
    return inverse, whole + np.einsum("gij,gj->gi", inverse, gradients)


def _settle(problem: LogisticProblem, groups: Ints, block: range, inverse: Floats, start: Floats) -> Floats:
    """Take chord steps for all groups of a block at once; NaN for a group that does not converge."""
    settled = np.full(start.shape, np.nan)
    at, left = start, np.arange(len(block))
    before = np.full(len(block), np.inf)
    rows = np.flatnonzero((groups >= block.start) & (groups < block.stop))
    place = np.empty(len(block), np.int64)
    for _ in range(CHORDS):
        place[:] = -1
        place[left] = np.arange(len(left))
        column = place[groups[rows] - block.start]
        residual = sigmoid(at @ problem.design.T)
        residual -= problem.outcome
        residual *= problem.weight
        residual[column[column >= 0], rows[column >= 0]] = 0.0
        gradient = residual @ problem.design + problem.penalty * (at - problem.centre)
        step = np.einsum("gij,gj->gi", inverse[left], gradient)
        at = at - step
        size = np.abs(step).max(axis=1, initial=0.0) / (1 + np.abs(at).max(axis=1, initial=0.0))
        # A short step means convergence only if steps shrink fast; where the loss is flat, all steps are short.
        done = (size <= CLOSE) & ((size <= before / 2) | (size <= ROUNDING))
        settled[left[done]] = at[done]
        at, left, before = at[~done], left[~done], size[~done]
        if not len(left):
            break
    return settled
