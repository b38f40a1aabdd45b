"""A tree as random variables and gates: what every claim is made of, and which variables it hangs on.

Variables are the claims, the assumption of each formula ("P1:PA") and, for noisy-or links, one coin per cause
("P1~P1.2": would this cause alone bring the claim about?). A literal is a gate's number, negative where negated;
gates are variables or ANDs of literals, and OR is a negated AND.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from foretell.forecasters.tree.formula import Expression
from foretell.forecasters.tree.links import ProductLogicLink
from foretell.forecasters.tree.proposition import Tree, TreeLayout, has_own_value, layout, own_value


@dataclass(frozen=True)
class InputBody:
    """A variable on its own, with its probability as an input."""

    p: float


@dataclass(frozen=True)
class CoinBody:
    """A variable on its own, with a probability that is part of a link."""

    p: float


@dataclass(frozen=True)
class GateBody:
    """True exactly when a literal is."""

    literal: int


@dataclass(frozen=True)
class WeightedBody:
    """True with probability base + Σ weight·[literal], given the literals."""

    base: float
    terms: tuple[tuple[float, int], ...]

    @property
    def proper(self) -> bool:
        """Whether it is a probability whatever the literals are."""
        low = self.base + sum(min(weight, 0.0) for weight, _ in self.terms)
        high = self.base + sum(max(weight, 0.0) for weight, _ in self.terms)
        return low >= -1e-12 and high <= 1.0 + 1e-12


@dataclass(frozen=True)
class NumbersBody:
    """A number made of other variables' numbers, mention by mention; nobody looks into it."""

    expression: Expression


Body = InputBody | CoinBody | GateBody | WeightedBody | NumbersBody


class Gates:
    """The gates of a tree, made when first asked for. Sets of variables are bit masks."""

    def __init__(self, tree: Tree, plan: TreeLayout | None = None) -> None:
        plan = plan or layout(tree)
        self.tree = tree
        self.order = plan.order
        """Claims, children first."""
        self.rank = plan.rank
        self.names = [""]
        """Name of a gate's variable; empty for an AND."""
        self.items: list[tuple[int, ...]] = [()]
        """Literals of an AND."""
        self._known: dict[str | tuple[int, ...], int] = {}
        self._bodies: dict[str, Body] = {}
        self._bits: dict[str, int] = {}
        self._reach: list[int] = [0]
        self._cones = self._all_cones()

    def _all_cones(self) -> dict[str, int]:
        """Every claim with all claims and assumptions its probability is computed from."""
        cones: dict[str, int] = {}
        for i, claim in enumerate(self.order):
            node, cone = self.tree.nodes[claim], 1 << i
            if isinstance(node.link, ProductLogicLink):
                # Read by its number alone, as a variable of its own: that is what a t-norm on numbers means.
                pass
            elif not has_own_value(node):
                for child in node.children:
                    cone |= cones[child]
                assert node.link is not None
                for name in node.link.assumptions(claim):
                    cone |= self.bit(name)
            cones[claim] = cone
        return cones

    def var(self, name: str) -> int:
        """The gate of a variable."""
        if name not in self._known:
            self._known[name] = len(self.names)
            self.names.append(name)
            self.items.append(())
            self._reach.append(self._cones.get(name) or self.bit(name))
        return self._known[name]

    def all_of(self, literals: Iterable[int]) -> int:
        """The literal that is true when all of these are."""
        items = tuple(literals)
        if len(items) == 1:
            return items[0]
        if items not in self._known:
            self._known[items] = len(self.names)
            self.names.append("")
            self.items.append(items)
            reach = 0
            for item in items:
                reach |= self._reach[abs(item)]
            self._reach.append(reach)
        return self._known[items]

    def any_of(self, literals: Iterable[int]) -> int:
        """The literal that is true when one of these is."""
        return -self.all_of(-literal for literal in literals)

    def bit(self, name: str) -> int:
        """The variable as a mask."""
        if name in self.rank:
            return 1 << self.rank[name]
        return self._bits.setdefault(name, 1 << (len(self.order) + len(self._bits)))

    def reach(self, gate: int) -> int:
        """All variables the gate hangs on, its own included."""
        return self._reach[gate]

    def body(self, name: str) -> Body:
        """What a variable is made of."""
        if name not in self._bodies:
            node = self.tree.nodes[name]
            if has_own_value(node):
                self._bodies[name] = InputBody(own_value(node, self.tree.missing))
            else:
                assert node.link is not None
                self._bodies[name] = node.link.compile(name, node.children, self)
        return self._bodies[name]

    # What links are compiled with.

    def weighted(self, base: float, terms: Iterable[tuple[float, str]]) -> WeightedBody:
        """True with probability base + Σ weight·[child]."""
        return WeightedBody(float(base), tuple((float(weight), self.var(child)) for weight, child in terms))

    def numbers(self, expression: Expression) -> NumbersBody:
        """By AND, OR and NOT on the numbers of variables, as if every mention were a variable of its own."""
        return NumbersBody(expression)

    def exactly(self, literal: int) -> GateBody:
        """True exactly when a literal is."""
        return GateBody(literal)

    def coin(self, name: str, p: float) -> int:
        """An independent event whose chance is part of a link; `name` must be its own in the whole tree."""
        self._bodies[name] = CoinBody(float(p))
        return self.var(name)

    def set_input(self, name: str, p: float) -> None:
        """The probability of an input that belongs to a link, such as the assumption of a formula."""
        self._bodies[name] = InputBody(p)


# Which variables parts of a product hang on, which they share, and which of those may be settled first.


class SettledClaims(NamedTuple):
    """Variables set by hand, as masks: which, and which of them are true."""

    which: int = 0
    true: int = 0

    def within(self, mask: int) -> "SettledClaims":
        """Only those of the mask."""
        return SettledClaims(self.which & mask, self.true & mask)

    def and_also(self, bit: int, value: bool) -> "SettledClaims":
        """One more."""
        return SettledClaims(self.which | bit, self.true | bit if value else self.true)


class ConditioningScope:
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
            case GateBody(literal):
                return (literal,)
            case WeightedBody(_, terms):
                return [literal for _, literal in terms]
            case _:
                return ()

    def groups(self, literals: Sequence[int], cut: int) -> list[tuple[int, ...]]:
        """Literals that share a variable stand together; groups in the order of their first literal."""
        groups: list[tuple[int, list[int]]] = []
        for literal in literals:
            own, others, members = self.free(literal, cut), 0, list[int]()
            joined = [i for i, group in enumerate(groups) if group[0] & own]
            for i in joined:
                others |= groups[i][0]
                members += groups[i][1]
            mask = own | others
            if joined:
                # Also where what they share vanishes later: who led to it has put them together.
                self.met.update(self._readers([*members, literal], own & others, cut))
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
