"""Which variables parts of a product hang on, which they share, and which of those may be settled first."""

from collections.abc import Sequence
from typing import NamedTuple

from foretell.forecasters.tree.arithmetic.gates import Gates, Same, Weighted


class Settled(NamedTuple):
    """Variables set by hand, as masks: which, and which of them are true."""

    which: int = 0
    true: int = 0

    def within(self, mask: int) -> "Settled":
        """Only those of the mask."""
        return Settled(self.which & mask, self.true & mask)

    def and_also(self, bit: int, value: bool) -> "Settled":
        """One more."""
        return Settled(self.which | bit, self.true | bit if value else self.true)


class Scope:
    """Answers about gates where the variables of a mask `cut` are settled, so that nothing below them counts."""

    def __init__(self, gates: Gates) -> None:
        self.gates = gates
        self._seen: dict[tuple[int, int], tuple[int, int]] = {}
        self._pivots: dict[tuple[tuple[int, ...], int], list[str]] = {}
        self.met: set[str] = set()
        """Variables that were looked through in search of shared ones: what they hang on had a say in the order."""

    def free(self, gate: int, cut: int) -> int:
        """The variables the gate still hangs on."""
        return self._look(abs(gate), cut)[0]

    def hit(self, gates: Sequence[int], cut: int) -> int:
        """The settled variables that these gates meet."""
        found = 0
        for gate in gates:
            found |= self._look(abs(gate), cut)[1]
        return found

    def _look(self, gate: int, cut: int) -> tuple[int, int]:
        reach = self.gates.reach(gate)
        if not reach & cut:
            return reach, 0
        key = (gate, reach & cut)
        if key not in self._seen:
            name = self.gates.names[gate]
            free, hit = (self.gates.bit(name) if name else 0), 0
            if free & cut:
                return 0, free
            for literal in self.inside(gate):
                more_free, more_hit = self._look(abs(literal), cut)
                free, hit = free | more_free, hit | more_hit
            self._seen[key] = (free, hit)
        return self._seen[key]

    def inside(self, gate: int) -> Sequence[int]:
        """The literals one step below a gate."""
        name = self.gates.names[gate]
        if not name:
            return self.gates.items[gate]
        match self.gates.body(name):
            case Same(literal):
                return (literal,)
            case Weighted(_, terms):
                return [literal for _, literal in terms]
            case _:
                return ()

    def groups(self, literals: Sequence[int], cut: int) -> list[tuple[int, ...]]:
        """Literals that share a variable stand together; groups in the order of their first literal."""
        groups: list[tuple[int, list[int]]] = []
        for literal in literals:
            mask, members = self.free(literal, cut), list[int]()
            joined = [i for i, group in enumerate(groups) if group[0] & mask]
            for i in joined:
                mask |= groups[i][0]
                members += groups[i][1]
            place = joined[0] if joined else len(groups)
            apart = [group for i, group in enumerate(groups) if i not in joined]
            groups = [*apart[:place], (mask, [*members, literal]), *apart[place:]]
        return [tuple(members) for _, members in groups]

    def stands_alone(self, name: str, group: Sequence[int], cut: int) -> bool:
        """Whether nothing below the variable can be reached around it, so that it may be settled by itself."""
        bit = self.gates.bit(name)
        below = self.free(self.gates.var(name), cut) & ~bit
        return not below or not any(self.free(item, cut | bit) & below for item in group)

    def pivots(self, group: tuple[int, ...], cut: int) -> list[str]:
        """Shared variables that may be settled first, the most used one in front; none lies below another."""
        # Which variables are settled decides, not how: both cases of one look for the same next one.
        key = (group, self.hit(group, cut))
        if key not in self._pivots:
            self._pivots[key] = self._search(group, cut)
        return self._pivots[key]

    def _search(self, group: tuple[int, ...], cut: int) -> list[str]:
        once = shared = 0
        for literal in group:
            mask = self.free(literal, cut)
            shared |= once & mask
            once |= mask
        readers = self._readers(group, shared, cut)
        self.met.update(readers)
        found: list[str] = []
        covered = 0
        for name in sorted(readers, key=lambda name: -self.gates.rank.get(name, -1)):
            bit = self.gates.bit(name)
            if len(readers[name]) > 1 and bit & shared & ~covered and self.stands_alone(name, group, cut):
                covered |= self.gates.reach(self.gates.var(name))
                found.append(name)
        order = list(readers)
        return sorted(found, key=lambda name: (-len(readers[name]), order.index(name)))

    def _readers(self, group: Sequence[int], shared: int, cut: int) -> dict[str, set[str | int]]:
        """Who reads each variable that leads to a shared one: claims by name, parts of the group by their place.

        Variables come in the order in which they are met.
        """
        readers: dict[str, set[str | int]] = {}
        stack: list[tuple[int, str | int]] = [(literal, place) for place, literal in enumerate(group)]
        stack.reverse()
        while stack:
            gate, reader = stack.pop()
            gate = abs(gate)
            if not self.free(gate, cut) & shared:
                continue
            name = self.gates.names[gate]
            if name:
                known = name in readers
                readers.setdefault(name, set()).add(reader)
                if known:
                    continue
                reader = name
            stack.extend((literal, reader) for literal in reversed(self.inside(gate)))
        return readers
