"""Exact weighted projection onto linear inequalities within the unit cube."""

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, as_probabilities, as_vector, as_weights, reject

SLACK = 1e-11
"""Rows that fail by less hold."""
ROUNDING = 1e-11


def project(
    p: npt.ArrayLike,
    rows: npt.ArrayLike,
    *,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
) -> Floats:
    """The q in [0, 1]ⁿ with low ≤ rows·q ≤ high that has the least Σ w(q − p)².

    By the dual active-set method (Goldfarb & Idnani 1983): it starts at p, takes up the row that fails most, and ends
    after finitely many steps at the solution, exact up to rounding. Rows that contradict each other raise.

    >>> project([0.9, 0.4], [[1.0, 1.0]], low=[1.0], high=[1.0]).round(3).tolist()
    [0.75, 0.25]
    """
    p = as_probabilities(as_vector(p, "p"))
    weight = as_weights(weight, len(p))
    reject(weight <= 0, weight, "weight", "is not positive")
    bounds = _at_least(np.asarray(rows, np.float64).reshape(-1, len(p)), np.asarray(low), np.asarray(high))
    scale = 1 / np.sqrt(weight / weight.max())
    table, needed = bounds[:, :-1] * scale, bounds[:, -1] - bounds[:, :-1] @ p
    if (needed <= SLACK).all():
        return p
    length = np.linalg.norm(table, axis=1)
    return np.clip(p + scale * _least(table / length[:, None], needed / length), 0.0, 1.0)


def _at_least(rows: Floats, low: Floats, high: Floats) -> Floats:
    """All rows and the unit cube as a·q ≥ b, with b as last column; every row has length one."""
    n = rows.shape[1]
    if len(low) != len(rows) or len(high) != len(rows) or not (low <= high).all():
        raise ValueError("every row needs a low and a high, low not above high")
    if not np.isfinite(rows).all():
        raise ValueError("rows must be finite numbers")
    cube = np.hstack([np.vstack([np.eye(n), -np.eye(n)]), np.r_[np.zeros(n), -np.ones(n)][:, None]])
    above, below = np.isfinite(low), np.isfinite(high)
    given = np.vstack([np.c_[rows[above], low[above]], np.c_[-rows[below], -high[below]]])
    length = np.linalg.norm(given[:, :-1], axis=1, keepdims=True)
    if (given[length[:, 0] == 0, -1] > SLACK).any():
        raise ValueError("the relations contradict each other: no probabilities satisfy all of them")
    given = given[length[:, 0] > 0] / length[length[:, 0] > 0]
    return np.vstack([given, cube])


def _least(table: Floats, needed: Floats) -> Floats:
    """The shortest y with table·y ≥ needed, for rows of length one: y = Σ multiplier · row over the rows that bind."""
    products = table @ table.T
    binding: list[int] = []
    pull = np.empty(0)
    for _ in range(20 * len(needed)):
        y = table[binding].T @ pull
        short = needed - table @ y
        short[binding] = 0.0
        worst = int(np.argmax(short))
        if short[worst] <= SLACK:
            return y
        binding = _take_up(products, needed, binding, pull, worst)
        # Anew from the rows that bind, so that no rounding adds up.
        pull = np.asarray(np.linalg.solve(products[np.ix_(binding, binding)], needed[binding]), np.float64)
    raise ValueError("the projection did not settle: are the weights of very different size?")


def _take_up(products: Floats, needed: Floats, binding: list[int], pull: Floats, worst: int) -> list[int]:
    """The rows that bind once the violated one holds; those that would have to push instead of pull are let go."""
    rows, own = list(binding), 0.0
    while True:
        share = np.linalg.solve(products[np.ix_(rows, rows)], products[rows, worst])
        bend = float(products[worst, worst] - products[worst, rows] @ share)
        missing = float(needed[worst] - products[worst, rows] @ pull - own * products[worst, worst])
        whole = missing / bend if bend > ROUNDING else np.inf
        giving = np.flatnonzero(share > ROUNDING)
        limits = pull[giving] / share[giving]
        step = min(whole, float(limits.min()) if len(limits) else np.inf)
        if np.isinf(step):
            raise ValueError("the relations contradict each other: no probabilities satisfy all of them")
        if step == whole:
            return [*rows, worst]
        pull, own = pull - step * share, own + step
        gone = int(giving[int(np.argmin(limits))])
        pull = np.delete(pull, gone)
        del rows[gone]
