"""Makes probabilities consistent with several relations at once: orders, exclusive claims, conditional probabilities.

One relation is a projection (`coherence`). Several that share claims are one least-distance problem with linear limits,
solved exactly; the log distance takes a few such problems (Newton's method). A conditional relation, P(A and B) =
P(A given B) · P(B), is not linear: among others, its tangent is used, and drawn again where it leads.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import Literal

import numpy as np

from foretell.forecasters.combine.claims import NestedClaims, Order, OrderedClaims
from foretell.forecasters.combine.coherence import (
    ROUNDING,
    CoherentProbabilities,
    Distance,
    at_most_one,
    check_distance,
    exactly_one,
    order_gap,
    ordered,
    product,
)
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, as_probabilities, as_weights
from foretell.metrics.numerics import nonnegative_least_squares
from foretell.metrics.transforms import EDGE, logit, sigmoid

MOST_TANGENTS, MOST_STEPS = 100, 60
"""Maximum numbers of tangents drawn, and of Newton steps for each."""
INNER_EDGE = 1e-4
"""If no probabilities this far from 0 and 1 satisfy the relations, the log distance is not used."""
SETTLED = 1e-10
"""Largest change of a probability in the last step."""
SMALLEST_RESIDUAL = 1e-14
"""Residual of a least-distance problem from which it has a solution."""
SATISFIED = 1e-7
"""Largest violation of a limit that rounding can explain."""
COHERENT = 1e-9
"""Largest violation that counts as none, so that coherent probabilities are not changed again."""


@frozen
class ExclusiveClaims:
    """Claims of which no two can come true together."""

    names: tuple[str, ...]
    rule: Literal["exactly one", "at most one"] = "at most one"


@frozen
class ConditionalClaims:
    """Three claims with P(both) = P(given) · P(condition), where `given` is the first event if the condition holds."""

    both: str
    given: str
    condition: str
    rule: Literal["conditional"] = "conditional"

    @property
    def names(self) -> tuple[str, ...]:
        """The claims."""
        return (self.both, self.given, self.condition)


Relation = Order | ExclusiveClaims | ConditionalClaims


class Irreconcilable(ValueError):
    """No probabilities satisfy the relations."""


def relation_gap(relation: Relation, p: Mapping[str, float]) -> float:
    """Return by how much probabilities violate a relation: a sum, a pair or a product; 0 if they satisfy it.

    >>> relation_gap(ExclusiveClaims(names=("a", "b")), {"a": 0.7, "b": 0.5})
    0.2
    """
    if isinstance(relation, ExclusiveClaims):
        over = round(sum(p[name] for name in relation.names) - 1, 15)
        return abs(over) if relation.rule == "exactly one" else max(0.0, over)
    if isinstance(relation, ConditionalClaims):
        return abs(p[relation.both] - p[relation.given] * p[relation.condition])
    return order_gap(relation, p)


def connected(relations: Sequence[Relation]) -> list[list[Relation]]:
    """Return the relations in groups that share no claim, each in an order that does not depend on how they came."""
    groups: list[tuple[set[str], list[Relation]]] = []
    for relation in relations:
        names, own = set(relation.names), [relation]
        apart: list[tuple[set[str], list[Relation]]] = []
        for others, group in groups:
            if others & names:
                names |= others
                own += group
            else:
                apart.append((others, group))
        groups = [*apart, (names, own)]
    return [sorted(group, key=repr) for _, group in sorted(groups, key=lambda group: min(group[0]))]


def reconciled(
    p: Mapping[str, float],
    relations: Sequence[Relation],
    weight: Mapping[str, float] | None = None,
    *,
    distance: Distance = "log",
) -> CoherentProbabilities:
    """Return the nearest probabilities that satisfy all relations; those without a violated relation stay unchanged.

    With the log distance, no probability becomes 0 or 1, unless relations leave no other: then the squared distance is
    used.

    Args:
        p: Probabilities by claim.
        relations: Relations between these claims.
        weight: How sure each probability is: twice the weight, and it moves half as far. By default all are alike.
        distance: What is smallest: Σ w(q − p)², or Σ w·KL(q‖p), in which 1/w is the variance of the log-odds.

    Raises:
        Irreconcilable: If no probabilities satisfy them.
    """
    check_distance(distance)
    for value in p.values():
        as_probabilities([value])
    after = {name: float(value) for name, value in p.items()}
    worst = 0.0
    for group in connected(relations):
        names = sorted({name for relation in group for name in relation.names})
        before = {name: after[name] for name in names}
        gap = max(relation_gap(relation, before) for relation in group)
        worst = max(worst, gap)
        if gap <= COHERENT:
            continue
        weights = as_weights([1.0 if weight is None else weight.get(name, 1.0) for name in names], len(names))
        after |= _nearest(before, group, weights, distance)
    moved = max((abs(after[name] - p[name]) for name in p), default=0.0)
    return CoherentProbabilities(p=after, rules=tuple(r.rule for r in relations), gap=worst, moved=moved)


def _nearest(p: Mapping[str, float], group: Sequence[Relation], weight: Floats, distance: Distance) -> dict[str, float]:
    """Return the nearest probabilities for relations that share claims; `weight` is in the order of `p`."""
    names, before = list(p), np.array(list(p.values()))
    if len(group) == 1:
        where = [names.index(name) for name in group[0].names]
        fitted = _projection(group[0], before[where], weight[where], distance)
        return dict(zip(group[0].names, fitted.tolist(), strict=True))
    limits = _limits(group, names)
    if not limits.feasible(0.0):
        raise Irreconcilable(f"no probabilities satisfy the relations between {', '.join(names)}")
    # The log distance never reaches 0 or 1.
    distance = distance if limits.feasible(INNER_EDGE) else "squared"
    products = [relation for relation in group if isinstance(relation, ConditionalClaims)]
    at, step, last = before, 1.0, inf
    for _ in range(MOST_TANGENTS if products else 1):
        reached = _newton(before, limits.touching(products, names, at), weight, distance)
        change = float(np.abs(reached - at).max())
        # Shorter steps where tangents lead to and fro.
        step, last = step if change < last else step / 2, change
        at = at + step * (reached - at) if products else reached
        if change <= SETTLED:
            break
    found = dict(zip(names, np.where(np.abs(at - before) <= ROUNDING, before, at).tolist(), strict=True))
    if max(relation_gap(relation, found) for relation in group) > COHERENT:
        raise Irreconcilable(f"no probabilities were found for the relations between {', '.join(names)}")
    return found


def _projection(relation: Relation, p: Floats, weight: Floats, distance: Distance) -> Floats:
    """Return the projection on one relation; `p` is in the order of its names."""
    if isinstance(relation, ConditionalClaims):
        return product(p, weight, distance=distance)
    if isinstance(relation, ExclusiveClaims):
        return (exactly_one if relation.rule == "exactly one" else at_most_one)(p, weight, distance=distance)
    return ordered(relation, p, weight, distance=distance)


@frozen
class _Limits:
    """Linear limits `factors @ q <= totals`; an equation is two of them."""

    factors: Floats
    totals: Floats

    def feasible(self, edge: float) -> bool:
        """Return whether some probabilities in [edge, 1 − edge] satisfy them."""
        count = self.factors.shape[1]
        try:
            nearest = _least_distance(np.full(count, 0.5), np.ones(count), self, edge)
        except Irreconcilable:
            return False
        # Without a solution, rounding errors decide where the search ends.
        return bool((self.factors @ nearest - self.totals).max() <= SATISFIED)

    def touching(self, products: Sequence[ConditionalClaims], names: Sequence[str], at: Floats) -> "_Limits":
        """Return these and, for each product, the plane that touches it at a point."""
        factors, totals = [*self.factors], [*self.totals]
        for relation in products:
            both, given, condition = (names.index(name) for name in relation.names)
            plane = np.zeros(len(names))
            plane[[both, given, condition]] = 1.0, -at[condition], -at[given]
            total = float(-at[given] * at[condition])
            factors += [plane, -plane]
            totals += [total, -total]
        return _Limits(factors=np.array(factors), totals=np.array(totals))


def _limits(group: Sequence[Relation], names: Sequence[str]) -> _Limits:
    """Return the limits of relations; those of products are their bounds (McCormick 1976)."""
    rows: list[Floats] = []
    totals: list[float] = []

    def add(total: float, *terms: tuple[str, float], equal: bool = False) -> None:
        row = np.zeros(len(names))
        for name, factor in terms:
            row[names.index(name)] += factor
        rows.extend([row, -row] if equal else [row])
        totals.extend([total, -total] if equal else [total])

    for relation in group:
        match relation:
            case ExclusiveClaims(rule=rule):
                add(1.0, *((name, 1.0) for name in relation.names), equal=rule == "exactly one")
            case ConditionalClaims(both=both, given=given, condition=condition):
                add(0.0, (both, 1.0), (given, -1.0))
                add(0.0, (both, 1.0), (condition, -1.0))
                add(1.0, (given, 1.0), (condition, 1.0), (both, -1.0))
            case OrderedClaims():
                line = sorted(zip(relation.level, relation.names, relation.flipped, strict=True))
                for (level, low, low_flipped), (other, high, high_flipped) in pairwise(line):
                    # A complement is 1 − q.
                    terms = ((low, -1.0 if low_flipped else 1.0), (high, 1.0 if high_flipped else -1.0))
                    add(float(high_flipped) - float(low_flipped), *terms, equal=level == other)
            case _:
                for low, high in relation.implications:
                    add(0.0, (low, 1.0), (high, -1.0))
    return _Limits(factors=np.array(rows), totals=np.array(totals))


def _newton(p: Floats, limits: _Limits, weight: Floats, distance: Distance) -> Floats:
    """Return the nearest probabilities within limits: exact for the squared distance, by Newton steps for the log one.

    Every step is a least-distance problem; steps that do not come nearer are halved.
    """
    if distance == "squared":
        return _least_distance(p, weight, limits, 0.0)
    x = logit(p)
    p = sigmoid(x)

    def far(q: Floats) -> float:
        return float(weight @ (q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))))

    q = _least_distance(p, weight / (p * (1 - p)), limits, EDGE)
    for _ in range(MOST_STEPS):
        curve = weight / (q * (1 - q))
        aim = _least_distance(q - weight * (logit(q) - x) / curve, curve, limits, EDGE)
        step, there = 1.0, far(q)
        while far(q + step * (aim - q)) > there and step > ROUNDING:
            step /= 2
        change = float(np.abs(step * (aim - q)).max())
        q = q + step * (aim - q)
        if change <= SETTLED / 10:
            break
    return q


def _least_distance(target: Floats, weight: Floats, limits: _Limits, edge: float) -> Floats:
    """Return the q in [edge, 1 − edge] within limits with the smallest Σ weight·(q − target)².

    Solved as nonnegative least squares (Lawson & Hanson 1974, chapter 23).
    """
    unit, one = 1 / np.sqrt(weight), np.eye(len(target))
    factors = np.vstack([limits.factors, one, -one])
    totals = np.concatenate([limits.totals, np.full(len(target), 1 - edge), np.full(len(target), -edge)])
    over = factors @ target - totals
    if over.max() <= 0:
        return target
    system = np.vstack([-(factors * unit).T, over])
    last = np.eye(len(system))[-1]
    residual = system @ nonnegative_least_squares(system, last) - last
    if -residual[-1] <= SMALLEST_RESIDUAL:
        raise Irreconcilable("no probabilities satisfy the relations")
    return np.clip(target - residual[:-1] / residual[-1] * unit, edge, 1 - edge)


def implication(*names: str) -> NestedClaims:
    """Return the relation of claims that each imply the next.

    >>> implication("a", "b", "c").implications
    (('a', 'b'), ('b', 'c'))
    """
    return NestedClaims(names=names, implications=tuple(pairwise(names)))
