"""A growing list of operations: equal ones are kept once, constants are worked out on the spot.

No other shortcut is taken. What a claim computes must not depend on how its children were computed: then a part of a
tree, recomputed from the numbers around it, comes out the same to the last bit as the whole.
"""

from collections.abc import Mapping, Sequence

from foretell.forecasters.tree.arithmetic.circuit import Op, read_by


class Emitter:
    """Appends operations and hands back their places."""

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
        """A number."""
        place = self._add(("lin", value, ()))
        self._constants[place] = value
        return place

    def known(self, place: int) -> float | None:
        """The number at that place, if it is a constant."""
        return self._constants.get(place)

    def given(self, name: str) -> int:
        """An input."""
        return self._add(("in", name))

    def weighted(self, base: float, terms: Sequence[tuple[int, float]]) -> int:
        """Base + Σ weight·x."""
        free: list[tuple[int, float]] = []
        for place, weight in terms:
            value = self.known(place)
            if value is None:
                free.append((place, weight))
            else:
                base += weight * value
        return self._add(("lin", base, tuple(free))) if free else self.constant(base)

    def product(self, factors: Sequence[int]) -> int:
        """The factors multiplied; factors of one are left out, a factor of zero decides."""
        free: list[int] = []
        for place in factors:
            value = self.known(place)
            if value == 0.0:
                return self.constant(0.0)
            if value != 1.0:
                free.append(place)
        if not free:
            return self.constant(1.0)
        return free[0] if len(free) == 1 else self._scaled(free)

    def _scaled(self, factors: list[int]) -> int:
        """A constant times one result is one operation rather than two."""
        fixed = self.known(factors[0])
        if len(factors) == 2 and fixed is not None:
            return self.weighted(0.0, [(factors[1], fixed)])
        return self._add(("mul", tuple(factors)))

    def complement(self, place: int) -> int:
        """One minus x."""
        value = self.known(place)
        return self._add(("not", place)) if value is None else self.constant(1.0 - value)

    def mixture(self, chance: int, high: int, low: int) -> int:
        """`high` with that chance, else `low`."""
        value = self.known(chance)
        if value is not None:
            return self.weighted(0.0, [(high, value), (low, 1.0 - value)])
        if self.known(low) == 0.0:
            return self.product([chance, high])
        return self._add(("mix", chance, high, low))

    def capped(self, place: int) -> int:
        """Held within [0, 1]. Never a constant, even of one: whoever reads a claim must not see how it came about."""
        return self._add(("cap", place))

    def needed(self, outputs: Mapping[str, int]) -> tuple[list[Op], dict[str, int]]:
        """The operations that lead to these places, and the places as they are then."""
        used = set(outputs.values())
        for place in range(len(self.ops) - 1, -1, -1):
            if place in used:
                used.update(read_by(self.ops[place]))
        moved = {old: new for new, old in enumerate(sorted(used))}
        ops = [_renumbered(self.ops[old], moved) for old in moved]
        return ops, {name: moved[place] for name, place in outputs.items()}


def _renumbered(op: Op, moved: Mapping[int, int]) -> Op:
    match op:
        case ("in", _):
            return op
        case ("lin", base, terms):
            return ("lin", base, tuple((moved[place], weight) for place, weight in terms))
        case ("mul", factors):
            return ("mul", tuple(moved[place] for place in factors))
        case ("mix", chance, high, low):
            return ("mix", moved[chance], moved[high], moved[low])
        case ("not", place):
            return ("not", moved[place])
        case ("cap", place):
            return ("cap", moved[place])
