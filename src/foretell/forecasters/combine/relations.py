"""Makes probabilities consistent with several relations at once: orders, exclusive claims, conditional probabilities.

One relation is a projection (`coherence`). Several that share claims are projected on in turn, with corrections, until
all hold (Dykstra 1983; for the log distance Censor & Reich 1998), which gives the nearest probabilities. A conditional
relation, P(A and B) = P(A given B) · P(B), is not linear: its tangent is used, and drawn again where it leads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from foretell.forecasters.combine.claims import NestedClaims, Order
from foretell.forecasters.combine.coherence import (
    ROUNDING,
    CoherentProbabilities,
    Distance,
    check_distance,
    exclusive,
    on_plane,
    order_gap,
    ordered,
)
from foretell.forecasters.combine.rows import logit, sigmoid
from foretell.metrics.arrays import Floats, as_probabilities, as_weights

MOST_ROUNDS = 3000
"""Maximum number of times that all relations are projected on."""
MOST_TANGENTS = 60
SETTLED = 1e-10
"""Largest violation, and largest change in one round, of probabilities that are coherent."""
COHERENT = 1e-9
"""Largest violation that counts as none, so that coherent probabilities are not changed again."""


@dataclass(frozen=True, kw_only=True)
class ExclusiveClaims:
    """Claims of which no two can come true together."""

    names: tuple[str, ...]
    rule: Literal["exactly one", "at most one"] = "at most one"


@dataclass(frozen=True, kw_only=True)
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
        try:
            found = _nearest(before, group, weights, distance)
        except Irreconcilable:
            if distance == "squared":
                raise
            found = _nearest(before, group, weights, "squared")
        after |= found
    moved = max((abs(after[name] - p[name]) for name in p), default=0.0)
    return CoherentProbabilities(p=after, rules=tuple(r.rule for r in relations), gap=worst, moved=moved)


def _nearest(p: Mapping[str, float], group: Sequence[Relation], weight: Floats, distance: Distance) -> dict[str, float]:
    """Return the nearest probabilities for relations that share claims; `weight` is in the order of `p`."""
    names, before = list(p), np.array(list(p.values()))
    products = [relation for relation in group if isinstance(relation, ConditionalClaims)]
    linear = [_projection(relation, names, weight, distance) for relation in group if relation not in products]
    if not products and len(linear) == 1:
        return dict(zip(names, linear[0](before).tolist(), strict=True))

    def gap(q: Floats) -> float:
        at = dict(zip(names, q.tolist(), strict=True))
        return max(relation_gap(relation, at) for relation in group)

    at = before
    for _ in range(MOST_TANGENTS if products else 1):
        tangents = [_tangent(product, names, at, weight, distance) for product in products]
        reached = _dykstra(before, [*linear, *tangents], distance)
        still = float(np.abs(reached - at).max()) <= SETTLED
        at = reached
        if (still or not products) and gap(at) <= COHERENT:
            q = np.where(np.abs(at - before) <= ROUNDING, before, at)
            return dict(zip(names, q.tolist(), strict=True))
    raise Irreconcilable(f"no probabilities satisfy the relations between {', '.join(names)}")


Project = Callable[[Floats], Floats]


def _dykstra(p: Floats, projections: Sequence[Project], distance: Distance) -> Floats:
    """Return the nearest point in all sets. The log distance needs the same steps in log-odds."""
    there, back = (logit, sigmoid) if distance == "log" else (np.asarray, np.asarray)
    x = there(p)
    corrections = [np.zeros(len(x)) for _ in projections]
    for _ in range(MOST_ROUNDS):
        start, largest = x, 0.0
        for i, project in enumerate(projections):
            wanted = x + corrections[i]
            try:
                x = there(project(back(wanted)))
            except ValueError as error:
                raise Irreconcilable(str(error)) from None
            change = wanted - x
            largest = max(largest, float(np.abs(change - corrections[i]).max()))
            corrections[i] = change
        if max(largest, float(np.abs(x - start).max())) <= SETTLED:
            break
    return back(x)


def _projection(relation: Relation, names: Sequence[str], weight: Floats, distance: Distance) -> Project:
    """Return the projection on one linear relation, of a vector in the order of `names`."""
    where = np.array([names.index(name) for name in relation.names])
    own = weight[where]

    def project(q: Floats) -> Floats:
        if isinstance(relation, ExclusiveClaims):
            fitted = exclusive(relation.rule, q[where], own, distance=distance)
        else:
            assert not isinstance(relation, ConditionalClaims)
            fitted = ordered(relation, q[where], own, distance=distance)
        q = q.copy()
        q[where] = fitted
        return q

    return project


def _tangent(
    product: ConditionalClaims, names: Sequence[str], at: Floats, weight: Floats, distance: Distance
) -> Project:
    """Return the projection on the plane that touches P(both) = P(given) · P(condition) at a point."""
    where = np.array([names.index(name) for name in product.names])
    _, given, condition = at[where]
    factor = np.array([1.0, -condition, -given])

    def project(q: Floats) -> Floats:
        q = q.copy()
        q[where] = on_plane(q[where], factor, -float(given * condition), weight[where], distance=distance)
        return q

    return project


def implication(*names: str) -> NestedClaims:
    """Return the relation of claims that each imply the next.

    >>> implication("a", "b", "c").implications
    (('a', 'b'), ('b', 'c'))
    """
    return NestedClaims(names=names, implications=tuple(pairwise(names)))
