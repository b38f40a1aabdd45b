"""What must hold between claims, as linear rows, and the nearest probabilities for which all of it holds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.combine.coherence.polyhedron import project


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
