"""The order in which a greedy selection adds its members."""

from dataclasses import dataclass

import numpy as np

from foretell.evaluate.arrays import Bools, Floats
from foretell.forecasters.combine.ensemble.members import Space, from_space, in_space, weighted
from foretell.forecasters.combine.rows import Examples


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
