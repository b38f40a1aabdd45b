"""Regression along the past: every origin is predicted from what had already come out by then."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from foretell.evaluate.arrays import Bools, Floats, Ints

REFITS = 24
"""How often the coefficients are fitted anew along the past; the last fit uses everything known now."""
SCALE_PRIOR = 5.0
"""Weight, in independent outcomes, of the belief that outcomes are scaled to spread one."""


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """What followed each origin, known `lead` origins later: the newest origins have none yet."""

    y: Floats
    """One value per origin whose outcome is known, scaled to a spread near one."""
    valid: Bools
    n_origins: int
    lead: int
    share: float
    """Independent outcomes per origin: overlapping ones tell the same story more than once."""

    @cached_property
    def known(self) -> Ints:
        """How many outcomes were known at each origin."""
        return np.maximum(np.arange(self.n_origins, dtype=np.int64) + 1 - self.lead, 0)


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """Predicted mean of the outcome at each origin, and the spread around it."""

    mean: Floats
    spread: Floats


@dataclass(frozen=True, kw_only=True)
class Regression:
    """Columns known at each origin, outcomes, and what is believed of the coefficients before seeing the series."""

    x: Floats
    outcomes: Outcomes
    prior: Floats
    strength: Floats
    """Precision of the prior per column, in independent outcomes."""

    def using(self, columns: list[int]) -> Fitted:
        """Ridge regression on some columns, refitted along the past.

        With the outcomes known at a refit: b = (w Σ x xᵀ + Λ)⁻¹ (w Σ x y + Λ b₀), w the independent share
        (ridge regression, Hoerl & Kennard 1970, shrunk to b₀ instead of nothing).
        """
        j = self.x.shape[1]
        strength, prior = self.strength[columns], self.prior[columns]
        gram = self.outcomes.share * self._sums
        xx, xy = gram[:, columns][:, :, columns], gram[:, columns, j]
        b = np.linalg.solve(xx + np.diag(strength), (xy + strength * prior)[:, :, None])[:, :, 0]
        rest = gram[:, j, j] - 2 * (b * xy).sum(axis=1) + np.einsum("ri,rij,rj->r", b, xx, b)
        spread = np.sqrt((np.maximum(rest, 0.0) + SCALE_PRIOR) / (gram[:, j + 1, j + 1] + SCALE_PRIOR))
        full = np.zeros((len(b), j))
        full[:, columns] = b
        return Fitted(mean=np.einsum("nj,nj->n", self.x, full[self._refit]), spread=spread[self._refit])

    @cached_property
    def _edges(self) -> Ints:
        """Counts of known outcomes at which to refit: none, then every so many, ending with all."""
        known = len(self.outcomes.y)
        size = max(1, -(-known // REFITS))
        return np.unique(np.concatenate([[0], np.arange(known % size, known + 1, size)])).astype(np.int64)

    @cached_property
    def _refit(self) -> Ints:
        """For each origin, the last refit before it."""
        return np.searchsorted(self._edges, self.outcomes.known, side="right") - 1

    @cached_property
    def _sums(self) -> Floats:
        """Running sums of products of [x, y, 1] over valid outcomes, one matrix per refit."""
        known = len(self.outcomes.y)
        table = np.concatenate([self.x[:known], self.outcomes.y[:, None], np.ones((known, 1))], axis=1)
        table *= self.outcomes.valid[:, None]
        sums = np.zeros((len(self._edges), table.shape[1], table.shape[1]))
        for i, (start, stop) in enumerate(pairwise(self._edges.tolist()), start=1):
            sums[i] = table[start:stop].T @ table[start:stop]
        return np.cumsum(sums, axis=0)


def independent_share(y: Floats, valid: Bools, *, least: float) -> float:
    """Independent values per value of an autocorrelated sequence: 2 (1−ρ)/(1+ρ), at most 1, at least `least`.

    For sums over k overlapping steps ρ = 1 − 1/k, which gives about 1/k.

    >>> independent_share(np.tile([1.0, -1.0], 8), np.ones(16, bool), least=0.1)
    1.0
    """
    used = valid.astype(np.float64)
    n, pairs = float(used.sum()), float(used[1:] @ used[:-1])
    if pairs < 8:
        return least
    centred = (y - float(y @ used) / n) * used
    power = float(centred @ centred) / n
    if power <= 0:
        return least
    rho = float(centred[1:] @ centred[:-1]) / (pairs * power)
    return float(np.clip(2 * (1 - rho) / (1 + rho), least, 1.0)) if rho > -1 else 1.0
