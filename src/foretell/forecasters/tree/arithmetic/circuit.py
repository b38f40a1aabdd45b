"""A tree compiled to a list of arithmetic operations.

The operations run in Python and in JavaScript, and backwards to compute slopes. Each operation refers to earlier ones
by their position in the list:

    ["in", name]                    the probability of an input: a leaf, a pinned or judged claim, "P1:PA"
    ["lin", b, [[i, w], …]]         b + w·x + …, added from left to right
    ["mul", [i, j, …]]              x·y·…, multiplied from left to right
    ["not", i]                      1 − x
    ["mix", i, j, k]                x·y + (1 − x)·z: y if x is true, z if it is false
    ["odds", i, r]                  x·r/(1 − x + r·x): the probability with r times the odds of x
    ["cap", i]                      x, clamped to [0, 1]

All of them are IEEE additions, multiplications and divisions in a fixed order, so that Python and JavaScript agree bit
for bit. A result is linear in each input, except in inputs that an "odds" operation reads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from foretell.frozen import frozen

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


Name = TypeVar("Name")
In = tuple[Literal["in"], str]
Lin = tuple[Literal["lin"], float, tuple[tuple[int, float], ...]]
Mul = tuple[Literal["mul"], tuple[int, ...]]
Not = tuple[Literal["not"], int]
Mix = tuple[Literal["mix"], int, int, int]
Odds = tuple[Literal["odds"], int, float]
Cap = tuple[Literal["cap"], int]
Op = In | Lin | Mul | Not | Mix | Odds | Cap

SCHEMA = "foretell/circuit/1"
ROUNDING = 1e-9
"""Largest excess over [0, 1] that is treated as a rounding error."""


@frozen
class Circuit:
    """The operations of a tree, the position of each claim's probability, and the current inputs."""

    root: str
    ops: Sequence[Op]
    claims: Mapping[str, int]
    inputs: Mapping[str, float]
    pinnable: frozenset[str] = field(default=frozenset())
    """Claims that can be pinned by overwriting their result, because the claims above use only that result."""
    rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    """Position of each option's probability, for claims that answer several options."""
    exclusive: tuple[tuple[str, ...], ...] = ()
    """Groups of inputs of which at most one can be true."""
    improper: frozenset[str] = field(default=frozenset())
    """Linear claims that share leaves with other claims although their probability, given the children, can leave [0,
    1]. Joint probabilities are then those of a signed measure; each claim's own probability is clamped to [0, 1]."""

    @cached_property
    def input_places(self) -> dict[str, int]:
        """Position of each input in the list of operations."""
        return {op[1]: i for i, op in enumerate(self.ops) if op[0] == "in"}

    @cached_property
    def readers(self) -> list[list[int]]:
        """For each operation, the positions of the operations that read its result."""
        readers: list[list[int]] = [[] for _ in self.ops]
        for place, op in enumerate(self.ops):
            for source in read_by(op):
                readers[source].append(place)
        return readers

    @cached_property
    def curved(self) -> frozenset[str]:
        """Inputs in which the results are not linear, because an "odds" operation reads them."""
        above = [op[0] == "odds" for op in self.ops]
        for place in range(len(self.ops) - 1, -1, -1):
            if above[place]:
                for source in read_by(self.ops[place]):
                    above[source] = True
        return frozenset(name for name, place in self.input_places.items() if above[place])

    def changes(self, name: str, p: float, inputs: Mapping[str, float]) -> dict[str, float]:
        """Return the inputs that change if one is set: it, and those it excludes, which share what is left to them."""
        new = {name: p}
        for group in self.exclusive:
            # If it was certain, the others had nothing left, and their proportions are those of the tree.
            before = inputs if inputs[name] < 1.0 else self.inputs
            if name in group and before[name] < 1.0:
                share = (1.0 - p) / (1.0 - before[name])
                new |= {other: before[other] * share for other in group if other != name}
        return new

    def run(self, inputs: Mapping[str, float] | None = None) -> list[float]:
        """Run all operations; inputs that are not given keep their value."""
        return run_ops(self.ops, {**self.inputs, **(inputs or {})})

    def probabilities(self, inputs: Mapping[str, float] | None = None) -> dict[str, float]:
        """Run all operations and return the probability of every claim."""
        values = self.run(inputs)
        return {claim: values[place] for claim, place in self.claims.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the data that the web page needs, as plain JSON."""
        return {
            "schema": SCHEMA,
            "root": self.root,
            "inputs": dict(self.inputs),
            "claims": dict(self.claims),
            "pinnable": sorted(self.pinnable),
            "rows": {claim: dict(row) for claim, row in self.rows.items()},
            "exclusive": self.exclusive,
            "ops": list(self.ops),
        }


def run_ops(ops: Sequence[Op], inputs: Mapping[str, float]) -> list[float]:
    """Run the operations and return their results in order.

    >>> run_ops([("in", "a"), ("in", "b"), ("mul", (0, 1)), ("not", 2)], {"a": 0.5, "b": 0.25})
    [0.5, 0.25, 0.125, 0.875]
    """
    values: list[float] = []
    for op in ops:
        values.append(_result(op, values, inputs))
    return values


def _within_bounds(value: Any) -> Any:
    return min(max(value, 0.0), 1.0)


def _result(
    op: Op, values: Sequence[Any], inputs: Mapping[str, Any], cap: Callable[[Any], Any] = _within_bounds
) -> Any:
    """Compute the result of one operation, for numbers or for arrays of numbers."""
    if op[0] == "lin":
        total = op[1]
        for i, weight in op[2]:
            total = total + weight * values[i]
        return total
    if op[0] == "mul":
        total = values[op[1][0]]
        for i in op[1][1:]:
            total = total * values[i]
        return total
    if op[0] == "in":
        return inputs[op[1]]
    if op[0] == "not":
        return 1.0 - values[op[1]]
    if op[0] == "mix":
        chance = values[op[1]]
        return chance * values[op[2]] + (1.0 - chance) * values[op[3]]
    if op[0] == "odds":
        p, ratio = values[op[1]], op[2]
        return p * ratio / (1.0 - p + ratio * p)
    return cap(values[op[1]])


def rerun(
    circuit: Circuit, values: Sequence[float], inputs: Mapping[str, float], forced: Mapping[int, float] | None = None
) -> list[float]:
    """Update the results after some inputs have changed, recomputing only the operations that depend on them.

    `forced` maps positions to values that replace the results of their operations.
    """
    held = forced or {}
    places = {circuit.input_places[name] for name in inputs} | held.keys()
    stack = list(places)
    while stack:
        for reader in circuit.readers[stack.pop()]:
            if reader not in places:
                places.add(reader)
                stack.append(reader)
    results = list(values)
    for place in sorted(places):
        results[place] = held[place] if place in held else _result(circuit.ops[place], results, inputs)
    return results


def run_many(circuit: Circuit, inputs: "Mapping[str, Floats]", count: int) -> "list[Floats]":
    """Run the operations for `count` sets of inputs at once; each input is an array of that length."""
    import numpy as np

    worlds: dict[str, Any] = {**circuit.inputs, **inputs}
    values: list[Any] = []
    for op in circuit.ops:
        values.append(_result(op, values, worlds, lambda value: np.clip(value, 0.0, 1.0)))
    return [value if np.shape(value) else np.full(count, value) for value in values]


def slopes(ops: Sequence[Op], values: Sequence[float], of: int) -> list[float]:
    """Return the derivatives of the result at position `of` with respect to every result, in reverse mode.

    >>> ops = [("in", "a"), ("in", "b"), ("mul", (0, 1)), ("not", 2)]
    >>> slopes(ops, run_ops(ops, {"a": 0.5, "b": 0.25}), 3)
    [-0.25, -0.5, -1.0, 1.0]
    """
    slope = [0.0] * len(ops)
    slope[of] = 1.0
    for place in range(of, -1, -1):
        at = slope[place]
        if at != 0.0:
            for i, partial in _partials(ops[place], values):
                slope[i] += at * partial
    return slope


def _partials(op: Op, values: Sequence[float]) -> Sequence[tuple[int, float]]:
    """Return the derivatives of one operation with respect to the results it reads."""
    match op:
        case ("in", _):
            return ()
        case ("lin", _, terms):
            return terms
        case ("mul", factors):
            rest = [[values[j] for other, j in enumerate(factors) if other != own] for own in range(len(factors))]
            return [(i, prod(others)) for i, others in zip(factors, rest, strict=True)]
        case ("not", i):
            return ((i, -1.0),)
        case ("mix", i, j, k):
            return ((i, values[j] - values[k]), (j, values[i]), (k, 1.0 - values[i]))
        case ("odds", i, ratio):
            return ((i, ratio / (1.0 - values[i] + ratio * values[i]) ** 2),)
        case ("cap", i):
            return ((i, 1.0),) if -ROUNDING <= values[i] <= 1.0 + ROUNDING else ()


def read_by(op: Op) -> Sequence[int]:
    """Return the positions of the results that an operation reads."""
    match op:
        case ("in", _):
            return ()
        case ("lin", _, terms):
            return [place for place, _ in terms]
        case ("mul", factors):
            return factors
        case ("odds", i, _):
            return (i,)
        case (_, *places):
            return places


def _renumbered(op: Op, moved: Mapping[int, int]) -> Op:
    match op:
        case ("in", _):
            return op
        case ("lin", base, terms):
            return ("lin", base, tuple((moved[place], weight) for place, weight in terms))
        case ("mul", factors):
            return ("mul", tuple(moved[place] for place in factors))
        case ("odds", place, ratio):
            return ("odds", moved[place], ratio)
        case (kind, *places):
            return cast(Op, (kind, *(moved[place] for place in places)))


# A growing list of operations. Equal operations are stored once, and constants are folded.
#
# There are no other simplifications. The operations of a claim must not depend on how its children are computed, so
# that recomputing a part of a tree gives bit for bit the same results as computing the whole tree.


class CircuitBuilder:
    """Appends operations and returns their positions."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self._places: dict[Op, int] = {}
        self._constants: dict[int, float] = {}

    def _add(self, op: Op) -> int:
        place = self._places.get(op)
        if place is None:
            place = self._places[op] = len(self.ops)
            self.ops.append(op)
        return place

    def constant(self, value: float) -> int:
        """Add a constant."""
        place = self._add(("lin", value, ()))
        self._constants[place] = value
        return place

    def input(self, name: str) -> int:
        """Add an input."""
        return self._add(("in", name))

    def weighted(self, base: float, terms: Sequence[tuple[int, float]]) -> int:
        """Add the weighted sum base + Σ weight·x."""
        free: list[tuple[int, float]] = []
        for place, weight in terms:
            value = self._constants.get(place)
            if value is None:
                free.append((place, weight))
            else:
                base += weight * value
        return self._add(("lin", base, tuple(free))) if free else self.constant(base)

    def product(self, factors: Sequence[int]) -> int:
        """Add the product of the factors, simplified for factors 0 and 1."""
        values = [self._constants.get(place) for place in factors]
        if 0.0 in values:
            return self.constant(0.0)
        free = [place for place, value in zip(factors, values, strict=True) if value != 1.0]
        if len(free) < 2:
            return free[0] if free else self.constant(1.0)
        fixed = self._constants.get(free[0])
        if len(free) == 2 and fixed is not None:
            # A constant times one result is one operation rather than two.
            return self.weighted(0.0, [(free[1], fixed)])
        return self._add(("mul", tuple(free)))

    def complement(self, place: int) -> int:
        """Add 1 − x."""
        value = self._constants.get(place)
        return self._add(("not", place)) if value is None else self.constant(1.0 - value)

    def mixture(self, chance: int, high: int, low: int) -> int:
        """Add the mixture that equals `high` with the given probability and `low` otherwise."""
        value = self._constants.get(chance)
        if value is not None:
            return self.weighted(0.0, [(high, value), (low, 1.0 - value)])
        if self._constants.get(low) == 0.0:
            return self.product([chance, high])
        return self._add(("mix", chance, high, low))

    def odds(self, place: int, ratio: float) -> int:
        """Add the probability with `ratio` times the odds of x."""
        value = self._constants.get(place)
        if value is not None:
            return self.constant(value * ratio / (1.0 - value + ratio * value))
        return place if ratio == 1.0 else self._add(("odds", place, ratio))

    def capped(self, place: int) -> int:
        """Clamp to [0, 1]. Never folded into a constant, so that readers do not depend on how a claim is computed."""
        return self._add(("cap", place))

    def needed(self, outputs: Mapping[Name, int]) -> tuple[list[Op], dict[Name, int]]:
        """Return the operations needed for these results, and the new positions of the results."""
        used = set(outputs.values())
        for place in range(len(self.ops) - 1, -1, -1):
            if place in used:
                used.update(read_by(self.ops[place]))
        moved = {old: new for new, old in enumerate(sorted(used))}
        ops = [_renumbered(self.ops[old], moved) for old in moved]
        return ops, {name: moved[place] for name, place in outputs.items()}
