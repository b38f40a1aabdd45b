"""Exact weighted projection onto linear inequalities within the unit cube."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from foretell.forecasters.combine.rows import logit, sigmoid
from foretell.metrics.arrays import Bools, Floats, as_probabilities, as_vector, as_weights, group_sums, reject

# What "nearest" means.

Distance = Literal["squared", "log"]
"""`squared`: Σ w(q − p)². `log`: Σ w·KL(q‖p) of the binary forecasts, a Euclidean projection of the log-odds' kind.

Either way q is at least as good as p in its own score, on every outcome that can happen (Pythagoras; Csiszár 1975).
"""


def check_distance(distance: Distance) -> None:
    """Refuse any other word."""
    if distance not in ("squared", "log"):
        raise ValueError(f"distance {distance!r} is neither squared nor log")


# Claims of which each implies the next: strikes of one quantity, deadlines of one event, nested claims in general.


def rising(
    p: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    level: npt.ArrayLike | None = None,
    distance: Distance = "squared",
) -> Floats:
    """The nearest probabilities that do not fall along the sequence, by pooling adjacent violators (Ayer et al. 1955).

    List the claims from the strongest to the weakest: "above 220" before "above 200", "by March" before "by June".
    `level` gives the order instead, and claims on one level the same probability. Pooled claims get the weighted mean
    of their probabilities (`squared`) or of their log-odds (`log`).

    >>> rising([0.1, 0.5, 0.3, 0.8]).tolist()
    [0.1, 0.4, 0.4, 0.8]
    >>> rising([0.5, 0.2, 0.4], level=[2, 1, 1]).round(3).tolist()
    [0.5, 0.3, 0.3]
    """
    check_distance(distance)
    p = as_probabilities(as_vector(p, "p"))
    weight = as_weights(weight, len(p))
    reject(weight <= 0, weight, "weight", "is not positive")
    levels = np.arange(len(p), dtype=np.float64) if level is None else as_vector(level, "level")
    if len(levels) != len(p):
        raise ValueError(f"level has length {len(levels)}, expected {len(p)}")
    _, place = np.unique(levels, return_inverse=True)
    size = int(place.max()) + 1
    x, total = p if distance == "squared" else logit(p), group_sums(place, weight, size)
    alone = np.bincount(place, minlength=size) == 1
    mean = np.where(alone, group_sums(place, x, size), group_sums(place, weight * x, size) / total)
    pooled, apart = _pooled(mean, total)
    q = pooled if distance == "squared" else sigmoid(pooled)
    # What was not pooled stays exactly as it was, certainty and last digit included.
    return np.where((alone & apart)[place], p, np.clip(q, 0.0, 1.0)[place])


def falling(
    p: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    *,
    level: npt.ArrayLike | None = None,
    distance: Distance = "squared",
) -> Floats:
    """The nearest probabilities that do not rise along the sequence: P(X > a) as a goes up.

    >>> falling([0.9, 0.5, 0.7]).round(3).tolist()
    [0.9, 0.6, 0.6]
    """
    p = as_probabilities(as_vector(p, "p"))
    levels = np.arange(len(p)) if level is None else as_vector(level, "level")
    return rising(p, weight, level=-levels, distance=distance)


def _pooled(mean: Floats, weight: Floats) -> tuple[Floats, Bools]:
    """Weighted means of blocks, rising from block to block, one per entry; and which entries are a block alone."""
    means: list[float] = []
    weights: list[float] = []
    sizes: list[int] = []
    for m, w in zip(mean.tolist(), weight.tolist(), strict=True):
        size = 1
        while means and means[-1] > m:
            before, own = weights.pop(), w
            w = before + own
            m = (means.pop() * before + m * own) / w
            size += sizes.pop()
        means.append(m)
        weights.append(w)
        sizes.append(size)
    return np.repeat(means, sizes), np.repeat(np.array(sizes) == 1, sizes)


# Outcomes of which exactly one, or at most one, comes true.

ROUNDING = 1e-12


def exactly_one(p: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, distance: Distance = "squared") -> Floats:
    """The nearest probabilities that sum to one.

    squared: q_i = max(0, p_i − τ/w_i), the projection onto the simplex, exact from one sort (Held et al. 1974).
    log: logit q_i = logit p_i + τ/w_i. In both, τ makes the sum one. Small outcomes may end at 0 under `squared`,
    never under `log`.

    >>> exactly_one([0.6, 0.6, 0.1]).round(3).tolist()
    [0.5, 0.5, 0.0]
    >>> exactly_one([0.6, 0.6, 0.1], distance="log").round(3).tolist()
    [0.469, 0.469, 0.061]
    """
    check_distance(distance)
    p, weight = _checked(p, weight)
    if abs(p.sum() - 1) <= ROUNDING:
        return p
    return _on_simplex(p, weight) if distance == "squared" else _shifted(p, weight)


def at_most_one(p: npt.ArrayLike, weight: npt.ArrayLike | None = None, *, distance: Distance = "squared") -> Floats:
    """The nearest probabilities whose sum does not exceed one; those that already keep to it stay as they are.

    >>> at_most_one([0.3, 0.4]).tolist(), at_most_one([0.8, 0.4]).round(3).tolist()
    ([0.3, 0.4], [0.7, 0.3])
    """
    check_distance(distance)
    p, weight = _checked(p, weight)
    return p if p.sum() <= 1 + ROUNDING else exactly_one(p, weight, distance=distance)


def in_proportion(p: npt.ArrayLike) -> Floats:
    """Divided by the sum: the nearest in KL(q‖p) of the options as one distribution; ratios are kept.

    >>> in_proportion([0.6, 0.6, 0.3]).round(3).tolist()
    [0.4, 0.4, 0.2]
    """
    p, _ = _checked(p, None)
    if not p.sum() > 0:
        raise ValueError("p is zero throughout: nothing says in which proportion to share")
    return p / p.sum()


def _checked(p: npt.ArrayLike, weight: npt.ArrayLike | None) -> tuple[Floats, Floats]:
    p = as_probabilities(as_vector(p, "p"))
    weight = as_weights(weight, len(p))
    reject(weight <= 0, weight, "weight", "is not positive")
    return p, weight


def _on_simplex(p: Floats, weight: Floats) -> Floats:
    # q_i is positive for τ below p_i·w_i, so those outcomes are in play that come first in this order.
    order = np.argsort(-p * weight, kind="stable")
    tau = (np.cumsum(p[order]) - 1) / np.cumsum(1 / weight[order])
    last = int(np.flatnonzero((p * weight)[order] > tau)[-1])
    return np.maximum(0.0, p - tau[last] / weight)


def _shifted(p: Floats, weight: Floats) -> Floats:
    from scipy.optimize import brentq

    if len(p) == 1:
        return np.ones(1)
    x = logit(p)

    def excess(tau: float) -> float:
        return float(sigmoid(x + tau / weight).sum() - 1)

    edge = 1.0
    while excess(-edge) > 0 or excess(edge) < 0:
        edge *= 2
    tau = cast("float", brentq(excess, -edge, edge, xtol=1e-15))
    q = sigmoid(x + tau / weight)
    return q / q.sum()


SLACK = 1e-11
"""Rows that fail by less hold."""
PROJECTION_ROUNDING = 1e-11


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
        whole = missing / bend if bend > PROJECTION_ROUNDING else np.inf
        giving = np.flatnonzero(share > PROJECTION_ROUNDING)
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


# What must hold between claims, as linear rows, and the nearest probabilities for which all of it holds.


@dataclass(frozen=True, kw_only=True)
class Relation:
    """low ≤ Σ coefficient · probability ≤ high."""

    coefficients: Mapping[str, float]
    low: float = -inf
    high: float = inf


def implies(first: str, second: str) -> Relation:
    """Whenever the first is true, so is the second: p(first) ≤ p(second)."""
    return Relation(coefficients={first: 1.0, second: -1.0}, high=0.0)


def opposite(first: str, second: str) -> Relation:
    """One is the negation of the other: p + p = 1."""
    return Relation(coefficients={first: 1.0, second: 1.0}, low=1.0, high=1.0)


def exactly_one_of(claims: Iterable[str]) -> Relation:
    """The claims exclude each other and one of them holds."""
    return Relation(coefficients=dict.fromkeys(claims, 1.0), low=1.0, high=1.0)


def at_most_one_of(claims: Iterable[str]) -> Relation:
    """The claims exclude each other."""
    return Relation(coefficients=dict.fromkeys(claims, 1.0), high=1.0)


def both(whole: str, parts: Sequence[str]) -> list[Relation]:
    """`whole` is the conjunction of the parts: max(0, Σp − (n − 1)) ≤ p(whole) ≤ min p (Fréchet 1935)."""
    sum_row = {**dict.fromkeys(parts, 1.0), whole: -1.0}
    return [*(implies(whole, part) for part in parts), Relation(coefficients=sum_row, high=len(parts) - 1.0)]


def either(whole: str, parts: Sequence[str]) -> list[Relation]:
    """`whole` is the disjunction of the parts: max p ≤ p(whole) ≤ min(1, Σp)."""
    sum_row = {**dict.fromkeys(parts, -1.0), whole: 1.0}
    return [*(implies(part, whole) for part in parts), Relation(coefficients=sum_row, high=0.0)]


def nearest(
    p: Mapping[str, float], relations: Iterable[Relation], *, weight: Mapping[str, float] | None = None
) -> dict[str, float]:
    """The probabilities nearest to p in weighted squared distance for which all relations hold.

    Relations over the same claims can be jointly impossible; that raises. The bounds of `both` and `either` are
    necessary, not sufficient: sets of them may leave room for what no distribution allows, never the reverse.

    >>> found = nearest({"a": 0.7, "b": 0.4, "not a": 0.5}, [implies("a", "b"), opposite("a", "not a")])
    >>> {claim: round(value, 3) for claim, value in found.items()}
    {'a': 0.533, 'b': 0.533, 'not a': 0.467}
    """
    names = list(p)
    rows = list(relations)
    unknown = [name for row in rows for name in row.coefficients if name not in p]
    if unknown:
        raise ValueError(f"a relation names {unknown[0]!r}, which has no probability")
    table = np.array([[row.coefficients.get(name, 0.0) for name in names] for row in rows]).reshape(-1, len(names))
    weights = np.ones(len(names)) if weight is None else np.array([weight[name] for name in names], np.float64)
    found: Floats = project(
        np.array([p[name] for name in names], np.float64),
        table,
        low=np.array([row.low for row in rows]),
        high=np.array([row.high for row in rows]),
        weight=weights,
    )
    return dict(zip(names, map(float, found), strict=True))
