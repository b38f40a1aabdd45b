"""Logistic regression on many sparse columns, each with a normal prior, some of them bound to one sign."""

from typing import Any

import numpy as np

from foretell.evaluate.arrays import Bools, Floats
from foretell.forecasters.combine.rows import sigmoid

STEPS, INNER, SMALL = 30, 200, 1e-5


def fit_logistic(
    columns: Any, target: Floats, weight: Floats, *, offset: Floats, not_negative: Bools, start: Floats | None = None
) -> Floats:
    """Coefficients β minimising Σ w·CE(target, σ(offset + Xβ)) + |β|²/2, with β ≥ 0 where asked for.

    Targets may be anything in [0, 1]: a probability counts as that share of a yes. A column with prior variance v is
    given multiplied by √v. The objective is strictly convex, so there is one answer; Newton steps by conjugate
    gradients find it, and columns that would turn negative are held at zero as long as they press against it.

    Args:
        columns: A scipy sparse matrix, rows × columns.
        target: What each row should come to.
        weight: How much each row counts.
        offset: Log-odds that each row starts from.
        not_negative: Columns whose coefficient must not fall below zero.
        start: Where to begin, e.g. the answer of a neighbouring strength.
    """
    problem = _Problem(columns, target, weight, offset)
    beta = np.zeros(columns.shape[1]) if start is None else start.copy()
    held = np.zeros(len(beta), bool)
    for _ in range(1 + 2 * int(not_negative.sum())):
        beta = problem.solve(np.where(held, 0.0, beta), ~held)
        negative = not_negative & (beta < 0)
        free_again = held & (problem.gradient(beta) < -SMALL)
        if not negative.any() and not free_again.any():
            break
        held = (held | negative) & ~free_again
    return np.where(not_negative, np.maximum(beta, 0.0), beta)


class _Problem:
    def __init__(self, columns: Any, target: Floats, weight: Floats, offset: Floats) -> None:
        self.x, self.xt = columns, columns.T.tocsr()
        self.target, self.weight, self.offset = target, weight, offset

    def loss(self, beta: Floats) -> float:
        z = self.offset + self.x @ beta
        return _dot(self.weight, np.logaddexp(0.0, z) - self.target * z) + 0.5 * _dot(beta, beta)

    def gradient(self, beta: Floats) -> Floats:
        p = sigmoid(self.offset + self.x @ beta)
        return self.xt @ (self.weight * (p - self.target)) + beta

    def solve(self, beta: Floats, free: Bools) -> Floats:
        """Newton's method on the free columns, halving a step that does not help."""
        loss = self.loss(beta)
        for _ in range(STEPS):
            slope = np.where(free, self.gradient(beta), 0.0)
            if np.abs(slope).max(initial=0.0) < SMALL:
                break
            step = self._direction(beta, slope, free)
            size = 1.0
            while self.loss(beta - size * step) > loss and size > 1e-6:
                size /= 2
            beta = beta - size * step
            loss = self.loss(beta)
        return beta

    def _direction(self, beta: Floats, slope: Floats, free: Bools) -> Floats:
        """(I + XᵀWX)⁻¹·slope by conjugate gradients (Hestenes & Stiefel 1952)."""
        p = sigmoid(self.offset + self.x @ beta)
        curvature = self.weight * p * (1 - p)
        found, residual = np.zeros(len(beta)), slope.copy()
        way, size = residual.copy(), _dot(residual, residual)
        goal = size * min(1e-4, float(np.sqrt(size)) * 1e-4 + 1e-12)
        for _ in range(INNER):
            bent = np.where(free, self.xt @ (curvature * (self.x @ way)) + way, 0.0)
            length = size / _dot(way, bent)
            found, residual = found + length * way, residual - length * bent
            smaller = _dot(residual, residual)
            if smaller <= goal:
                break
            way, size = residual + smaller / size * way, smaller
        return found


def _dot(a: Floats, b: Floats) -> float:
    # Vectors this short lose more by being shared out to threads than they gain.
    return float(np.einsum("i,i->", a, b))
