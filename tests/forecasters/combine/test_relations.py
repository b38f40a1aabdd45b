"""Laws of several relations at once: coherent, nearest, idempotent, independent of order, within [0, 1]."""

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from foretell.forecasters.combine.claims import OrderedClaims
from foretell.forecasters.combine.coherence import Distance, exactly_one, rising
from foretell.forecasters.combine.relations import (
    ConditionalClaims,
    ExclusiveClaims,
    Irreconcilable,
    Relation,
    connected,
    implication,
    reconciled,
    relation_gap,
)

NAMES = tuple("abcdefg")
CHANCES = st.lists(st.floats(0.02, 0.98), min_size=7, max_size=7)
WEIGHTS = st.lists(st.floats(0.2, 5), min_size=7, max_size=7)
LADDER = OrderedClaims(rule="ladder", names=("a", "b", "c"), level=(2, 0, 1), flipped=(False, False, True))
SETS: dict[str, list[Relation]] = {
    "ladder": [LADDER],
    "implications": [implication("a", "b", "c"), implication("d", "b")],
    "exactly one": [ExclusiveClaims(names=("a", "b", "c"), rule="exactly one")],
    "at most one": [ExclusiveClaims(names=("a", "b", "c"))],
    "conditional": [ConditionalClaims(both="a", given="b", condition="c")],
    "ladder and set": [LADDER, ExclusiveClaims(names=("b", "d", "e"))],
    "two sets": [
        ExclusiveClaims(names=("a", "b", "c"), rule="exactly one"),
        ExclusiveClaims(names=("c", "d", "e")),
        implication("a", "f"),
    ],
    "conditional and order": [
        ConditionalClaims(both="a", given="b", condition="c"),
        implication("a", "d"),
        implication("c", "e"),
    ],
}
EVERY = pytest.mark.parametrize("relations", SETS.values(), ids=SETS)
DISTANCES = pytest.mark.parametrize("distance", ["log", "squared"])


def of(values: list[float]) -> dict[str, float]:
    return dict(zip(NAMES, values, strict=True))


def gap(relations: list[Relation], p: dict[str, float]) -> float:
    return max(relation_gap(relation, p) for relation in relations)


@EVERY
@DISTANCES
@settings(max_examples=12)
@given(values=CHANCES, weights=WEIGHTS)
def test_probabilities_become_coherent_and_stay_so(
    relations: list[Relation], distance: Distance, values: list[float], weights: list[float]
):
    p, weight = of(values), of(weights)
    result = reconciled(p, relations, weight, distance=distance)
    q = dict(result.p)
    assert gap(relations, q) <= 1e-8
    assert all(0 <= value <= 1 for value in q.values())
    assert result.gap == pytest.approx(gap(relations, p))
    again = reconciled(q, relations, weight, distance=distance)
    assert dict(again.p) == pytest.approx(q, abs=1e-7)
    named = {name for relation in relations for name in relation.names}
    assert all(q[name] == p[name] for name in set(NAMES) - named)
    if gap(relations, p) == 0:
        assert q == p


@EVERY
@settings(max_examples=6)
@given(values=CHANCES, weights=WEIGHTS, seed=st.integers(0, 1000))
def test_the_order_of_questions_does_not_matter(
    relations: list[Relation], values: list[float], weights: list[float], seed: int
):
    p, weight = of(values), of(weights)
    rng = np.random.default_rng(seed)
    shuffled = {name: p[name] for name in rng.permutation(list(NAMES)).tolist()}
    mixed = [relations[place] for place in rng.permutation(len(relations)).tolist()]
    first, second = reconciled(p, relations, weight), reconciled(shuffled, mixed, weight)
    assert dict(first.p) == pytest.approx(dict(second.p), abs=1e-9)


def kl(q: np.ndarray, p: np.ndarray) -> np.ndarray:
    return q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))


@EVERY
@DISTANCES
def test_the_change_is_the_smallest(relations: list[Relation], distance: Distance):
    """No feasible point that a general solver finds, from several starts, is nearer."""
    rng = np.random.default_rng(4)
    for _ in range(4):
        values, weights = rng.uniform(0.05, 0.95, 7), rng.uniform(0.3, 3, 7)

        def far(q: np.ndarray, values: np.ndarray = values, weights: np.ndarray = weights) -> float:
            q = np.clip(q, 1e-9, 1 - 1e-9)
            return float(np.sum(weights * (kl(q, values) if distance == "log" else (q - values) ** 2)))

        own = np.array(
            list(reconciled(of(values.tolist()), relations, of(weights.tolist()), distance=distance).p.values())
        )
        limits = [limit for relation in relations for limit in limits_of(relation)]
        starts = [values, own, *rng.uniform(0.1, 0.9, (3, 7))]
        found = [
            minimize(
                far, start, method="SLSQP", bounds=[(1e-6, 1 - 1e-6)] * 7, constraints=limits, options={"maxiter": 300}
            )
            for start in starts
        ]
        least = min(result.fun for result in found if gap(relations, of(result.x.tolist())) < 1e-6)
        assert far(own) <= least + 1e-5


def limits_of(relation: Relation) -> list[dict[str, object]]:
    """Return the constraints of a relation for the general solver."""
    at = [NAMES.index(name) for name in relation.names]
    match relation:
        case ExclusiveClaims(rule=rule):
            return [{"type": "eq" if rule == "exactly one" else "ineq", "fun": lambda q: 1 - sum(q[i] for i in at)}]
        case ConditionalClaims():
            return [{"type": "eq", "fun": lambda q: q[at[0]] - q[at[1]] * q[at[2]]}]
        case OrderedClaims():
            line = sorted(zip(relation.level, at, relation.flipped, strict=True))
            pairs = list(pairwise(line))
            return [
                {"type": "ineq", "fun": lambda q, a=a, b=b: abs(b[2] - q[b[1]]) - abs(a[2] - q[a[1]])} for a, b in pairs
            ]
        case _:
            names = [(NAMES.index(a), NAMES.index(b)) for a, b in relation.implications]
            return [{"type": "ineq", "fun": lambda q, a=a, b=b: q[b] - q[a]} for a, b in names]


@EVERY
@settings(max_examples=8)
@given(values=CHANCES, surer=st.sampled_from(NAMES), factor=st.floats(2, 20))
def test_a_forecast_that_is_surer_moves_less(relations: list[Relation], values: list[float], surer: str, factor: float):
    p = of(values)
    even = reconciled(p, relations).p
    assume(abs(even[surer] - p[surer]) > 1e-6)
    weighted = reconciled(p, relations, {surer: factor}).p
    assert abs(weighted[surer] - p[surer]) <= abs(even[surer] - p[surer]) + 1e-7


def test_one_relation_is_its_projection():
    p = {"a": 0.6, "b": 0.3, "c": 0.5}
    chain = rising([0.6, 0.3, 0.5], [1, 2, 1], distance="log")
    found = reconciled(p, [implication("a", "b", "c")], {"b": 2.0}).p
    assert list(found.values()) == pytest.approx(chain.tolist())
    whole = ExclusiveClaims(names=("a", "b", "c"), rule="exactly one")
    assert list(reconciled(p, [whole]).p.values()) == pytest.approx(
        exactly_one([0.6, 0.3, 0.5], distance="log").tolist()
    )


def test_values_worked_out_by_hand():
    # Log-odds of 0.8 and 0.2 are ln 4 and −ln 4; the second counts three times, so both become −ln 4 / 2, or 1/3.
    found = reconciled({"a": 0.8, "b": 0.2}, [implication("a", "b")], {"b": 3.0}).p
    assert dict(found) == pytest.approx({"a": 1 / 3, "b": 1 / 3})
    # a is at most c, and c excludes b: (0.6 + 0.3) / 2 = 0.45, which leaves b as it is.
    relations = [implication("a", "c"), ExclusiveClaims(names=("b", "c"))]
    squared = reconciled({"a": 0.6, "b": 0.5, "c": 0.3}, relations, distance="squared").p
    assert dict(squared) == pytest.approx({"a": 0.45, "b": 0.5, "c": 0.45})
    # P(both) is a little above P(given) · P(condition); the multipliers of (1, −0.5, −0.5) are alike.
    both = reconciled({"a": 0.25, "b": 0.5, "c": 0.5}, [ConditionalClaims(both="a", given="b", condition="c")]).p
    assert dict(both) == {"a": 0.25, "b": 0.5, "c": 0.5}


def test_a_relation_that_leaves_only_zero_is_satisfied():
    relations: list[Relation] = [
        ExclusiveClaims(names=("a", "b"), rule="exactly one"),
        ExclusiveClaims(names=("a", "b", "c")),
    ]
    q = reconciled({"a": 0.6, "b": 0.5, "c": 0.2}, relations).p
    assert q["c"] == pytest.approx(0, abs=1e-6)
    assert q["a"] + q["b"] == pytest.approx(1)


def test_relations_that_contradict_each_other_are_an_error():
    relations: list[Relation] = [
        ExclusiveClaims(names=("a", "b"), rule="exactly one"),
        ExclusiveClaims(names=("c", "d"), rule="exactly one"),
        ExclusiveClaims(names=("a", "b", "c", "d")),
    ]
    for distance in ("log", "squared"):
        with pytest.raises(Irreconcilable, match="a, b, c, d"):
            reconciled({"a": 0.6, "b": 0.5, "c": 0.2, "d": 0.1}, relations, distance=distance)


def test_claims_that_share_a_relation_are_one_group():
    relations = [implication("a", "b"), implication("c", "d"), implication("e", "f"), implication("b", "e")]
    for mixed in permutations(relations):
        groups = [sorted({name for relation in group for name in relation.names}) for group in connected(mixed)]
        assert groups == [["a", "b", "e", "f"], ["c", "d"]]


def test_invalid_probabilities_and_distances_are_errors():
    with pytest.raises(ValueError, match="outside"):
        reconciled({"a": 1.2}, [])
    with pytest.raises(ValueError, match="neither squared nor log"):
        reconciled({"a": 0.2}, [], distance="kl")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="weight"):
        reconciled({"a": 0.9, "b": 0.2}, [implication("a", "b")], {"a": -1.0})


def test_complements_are_counted_from_the_other_side():
    below = replace(LADDER, names=("a", "b"), level=(0, 0), flipped=(False, True))
    assert dict(reconciled({"a": 0.3, "b": 0.5}, [below], distance="squared").p) == pytest.approx({"a": 0.4, "b": 0.6})
