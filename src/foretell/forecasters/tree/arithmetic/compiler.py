"""Exact expectations of products: gate by gate if parts are independent, case by case if they share a claim.

Let E[g | ρ] be the probability that gate g is true in the tree in which the variables of ρ are set by intervention. The
expectation of a product of independent parts is the product of their expectations. If parts share a variable w, and
nothing below w can be reached except through w, then

    E[g·h | ρ] = E[w | ρ]·E[g·h | ρ, w true] + (1 − E[w | ρ])·E[g·h | ρ, w false],

so settling w first makes the parts independent (recursive conditioning, Darwiche 2001). Results are cached by the
settled variables they depend on. A weighted sum needs no independence at all: its expectation is the weighted sum of
the expectations.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import NamedTuple

from foretell.forecasters.tree.arithmetic.circuit import Circuit, CircuitBuilder
from foretell.forecasters.tree.formula import Expression, fold
from foretell.forecasters.tree.links import ProductLogicLink
from foretell.forecasters.tree.proposition import Tree, TreeLayout, has_own_value, layout, own_value
from foretell.questions.errors import InputError

# A tree as random variables and gates: what every claim is made of, and which variables it hangs on.
#
# Variables are the claims, the assumption of each formula ("P1:PA") and, for noisy-or links, one coin per cause
# ("P1~P1.2": would this cause alone bring the claim about?). A literal is a gate's number, negative where negated;
# gates are variables or ANDs of literals, and OR is a negated AND.


@dataclass(frozen=True)
class InputBody:
    """An independent variable whose probability is an input."""

    p: float


@dataclass(frozen=True)
class CoinBody:
    """An independent variable whose probability is part of a link."""

    p: float


@dataclass(frozen=True)
class GateBody:
    """A variable that is true exactly when a literal is true."""

    literal: int


@dataclass(frozen=True)
class WeightedBody:
    """A variable that is true with probability base + Σ weight·[literal], given the literals."""

    base: float
    terms: tuple[tuple[float, int], ...]

    @property
    def proper(self) -> bool:
        """Whether the weighted sum is within [0, 1] for all values of the literals."""
        low = self.base + sum(min(weight, 0.0) for weight, _ in self.terms)
        high = self.base + sum(max(weight, 0.0) for weight, _ in self.terms)
        return low >= -1e-12 and high <= 1.0 + 1e-12


@dataclass(frozen=True)
class NumbersBody:
    """A number computed from other variables' numbers, treating every mention as independent; opaque to other gates."""

    expression: Expression


Body = InputBody | CoinBody | GateBody | WeightedBody | NumbersBody


class Gates:
    """The gates of a tree, created on first use. Sets of variables are bit masks."""

    def __init__(self, tree: Tree, plan: TreeLayout | None = None) -> None:
        plan = plan or layout(tree)
        self.tree = tree
        self.order = plan.order
        """Ids of the claims, children before parents."""
        self.rank = plan.rank
        self.names = [""]
        """Name of each gate's variable; empty for an AND."""
        self.items: list[tuple[int, ...]] = [()]
        """Literals of each AND gate; empty for a variable."""
        self._known: dict[str | tuple[int, ...], int] = {}
        self._bodies: dict[str, Body] = {}
        self._bits: dict[str, int] = {}
        self._reach: list[int] = [0]
        self._cones = self._all_cones()

    def _all_cones(self) -> dict[str, int]:
        """For every claim, the mask of all claims and assumptions that its probability depends on."""
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
        """Return the gate of a variable, creating it if needed."""
        if name not in self._known:
            self._known[name] = len(self.names)
            self.names.append(name)
            self.items.append(())
            self._reach.append(self._cones.get(name) or self.bit(name))
        return self._known[name]

    def all_of(self, literals: Iterable[int]) -> int:
        """Return the literal that is true if all of these literals are."""
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
        """Return the literal that is true if any of these literals is."""
        return -self.all_of(-literal for literal in literals)

    def bit(self, name: str) -> int:
        """Return the bit mask of a variable."""
        if name in self.rank:
            return 1 << self.rank[name]
        return self._bits.setdefault(name, 1 << (len(self.order) + len(self._bits)))

    def reach(self, gate: int) -> int:
        """Mask of all variables that the gate depends on, including its own."""
        return self._reach[gate]

    def body(self, name: str) -> Body:
        """Return the definition of a variable."""
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
        """Define a variable that is true with probability base + Σ weight·[child]."""
        return WeightedBody(float(base), tuple((float(weight), self.var(child)) for weight, child in terms))

    def numbers(self, expression: Expression) -> NumbersBody:
        """Apply AND, OR and NOT to numbers, treating every mention of a variable as independent."""
        return NumbersBody(expression)

    def exactly(self, literal: int) -> GateBody:
        """Define a variable that is true exactly when a literal is true."""
        return GateBody(literal)

    def coin(self, name: str, p: float) -> int:
        """Add an independent event whose probability is part of a link; `name` must be unique in the whole tree."""
        self._bodies[name] = CoinBody(float(p))
        return self.var(name)

    def set_input(self, name: str, p: float) -> None:
        """Set the probability of an input that belongs to a link, such as the assumption of a formula."""
        self._bodies[name] = InputBody(p)


# Which variables parts of a product hang on, which they share, and which of those may be settled first.


class SettledClaims(NamedTuple):
    """Variables set by intervention, as two masks: which ones are settled, and which of these are true."""

    which: int = 0
    true: int = 0

    def within(self, mask: int) -> "SettledClaims":
        """Keep only the variables in the mask."""
        return SettledClaims(self.which & mask, self.true & mask)

    def and_also(self, bit: int, value: bool) -> "SettledClaims":
        """Return a copy with one more settled variable."""
        return SettledClaims(self.which | bit, self.true | bit if value else self.true)


class ConditioningScope:
    """Answers queries about gates when the variables in `cut` are settled, so that nothing below them matters."""

    def __init__(self, gates: Gates) -> None:
        self.gates = gates
        self._seen: dict[tuple[int, int], tuple[int, int]] = {}
        self._pivots: dict[tuple[tuple[int, ...], int], list[str]] = {}

    def free(self, gate: int, cut: int) -> int:
        """Mask of the unsettled variables that the gate depends on."""
        return self._look(abs(gate), cut)[0]

    def hit(self, gates: Sequence[int], cut: int) -> int:
        """Mask of the settled variables that these gates depend on."""
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
        """Return the literals directly below a gate."""
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
        """Group literals that share a variable, in the order of their first literal."""
        groups: list[tuple[int, list[int]]] = []
        for literal in literals:
            own, members = self.free(literal, cut), list[int]()
            joined = [i for i, group in enumerate(groups) if group[0] & own]
            mask = own
            for i in joined:
                mask |= groups[i][0]
                members += groups[i][1]
            place = joined[0] if joined else len(groups)
            apart = [group for i, group in enumerate(groups) if i not in joined]
            groups = [*apart[:place], (mask, [*members, literal]), *apart[place:]]
        return [tuple(members) for _, members in groups]

    def stands_alone(self, name: str, group: Sequence[int], cut: int) -> bool:
        """Whether everything below the variable is reachable only through it, so that it can be settled alone."""
        bit = self.gates.bit(name)
        below = self.free(self.gates.var(name), cut) & ~bit
        return not below or not any(self.free(item, cut | bit) & below for item in group)

    def pivots(self, group: tuple[int, ...], cut: int) -> list[str]:
        """Shared variables that can be settled first, most used first; none of them is below another."""
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
        """Readers of each variable that leads to a shared one: claims by name, parts of the group by position.

        Variables are in the order in which the traversal first reaches them.
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


LARGEST = 20_000
"""Maximum number of products of dependent parts to compute before giving up."""

NOTHING = SettledClaims()


class TooManySharedClaims(InputError):
    """Raised if too many claims share too many others to compute an exact probability."""

    def __init__(self, claim: str, shared: Sequence[str]) -> None:
        self.claim = claim
        self.shared = tuple(shared)
        super().__init__(
            f"node {claim}: no exact value within {LARGEST:,} steps: too many branches beneath it use "
            f"{', '.join(shared)}",
            hint="pin one of them or of the claims that use them, or give the node a linear or judged link",
        )


class Conditioning:
    """Turns gates into operations. `outputs` holds the position of every variable's own probability."""

    def __init__(self, gates: Gates, emitter: CircuitBuilder) -> None:
        self.gates = gates
        self.emit = emitter
        self.scope = ConditioningScope(gates)
        self.outputs: dict[str, int] = {}
        self.opened: set[str] = set()
        """Claims that had to be expanded because their probability alone is not sufficient."""
        self.improper: set[str] = set()
        """Expanded linear claims whose probability, given their children, can leave [0, 1]."""
        self.cases: Counter[str] = Counter()
        """How often each variable was settled."""
        self._claim = ""
        self._steps = 0
        self._gates: dict[tuple[int, SettledClaims], int] = {}
        self._products: dict[tuple[tuple[int, ...], SettledClaims], int] = {}

    def claim(self, name: str) -> int:
        """Return the position of a computed claim's probability; children not yet computed are taken as inputs."""
        self._claim = name
        body = self.gates.body(name)
        try:
            if isinstance(body, WeightedBody):
                return self._sum(body, NOTHING)
            if isinstance(body, NumbersBody):
                return self._on_numbers(body.expression)
            assert isinstance(body, GateBody)
            return self._expectation(body.literal, NOTHING)
        except RecursionError:
            raise self._too_much() from None

    def _on_numbers(self, expression: Expression) -> int:
        emit = self.emit

        def either(items: list[int]) -> int:
            return emit.complement(emit.product([emit.complement(item) for item in items]))

        return fold(expression, self._output, emit.complement, emit.product, either)

    def _too_much(self) -> TooManySharedClaims:
        names = [name for name, _ in self.cases.most_common() if name in self.gates.rank]
        return TooManySharedClaims(self._claim, names[:5])

    def _expectation(self, literal: int, settled: SettledClaims) -> int:
        place = self._gate(abs(literal), settled)
        return place if literal > 0 else self.emit.complement(place)

    def _gate(self, gate: int, settled: SettledClaims) -> int:
        name = self.gates.names[gate]
        if not name:
            return self._product(self.gates.items[gate], settled)
        bit = self.gates.bit(name)
        if settled.which & bit:
            return self.emit.constant(1.0 if settled.true & bit else 0.0)
        hit = self.scope.hit((gate,), settled.which)
        if not hit:
            return self._output(name)
        key = (gate, settled.within(hit))
        if key not in self._gates:
            self._gates[key] = self._opened(name, settled)
        return self._gates[key]

    def _output(self, name: str) -> int:
        if name not in self.outputs:
            body = None if name in self.gates.rank else self.gates.body(name)
            self.outputs[name] = self.emit.constant(body.p) if isinstance(body, CoinBody) else self.emit.given(name)
        return self.outputs[name]

    def _opened(self, name: str, settled: SettledClaims) -> int:
        """Expand the claim because something below it is settled."""
        self.opened.add(name)
        body = self.gates.body(name)
        if isinstance(body, GateBody):
            return self._expectation(body.literal, settled)
        assert isinstance(body, WeightedBody)
        if not body.proper:
            self.improper.add(name)
        return self._sum(body, settled)

    def _sum(self, body: WeightedBody, settled: SettledClaims) -> int:
        terms = [(self._expectation(literal, settled), weight) for weight, literal in body.terms]
        return self.emit.weighted(body.base, terms)

    def _product(self, literals: Sequence[int], settled: SettledClaims) -> int:
        left = self._left(literals, settled)
        if left is None:
            return self.emit.constant(0.0)
        return self.emit.product([self._part(group, settled) for group in self.scope.groups(left, settled.which)])

    def _left(self, literals: Sequence[int], settled: SettledClaims) -> list[int] | None:
        """Return the unsettled literals without duplicates; None if the product is certainly false."""
        left: dict[int, None] = {}
        for literal in literals:
            name = self.gates.names[abs(literal)]
            bit = self.gates.bit(name) if name else 0
            if settled.which & bit:
                if bool(settled.true & bit) != (literal > 0):
                    return None
            elif -literal in left:
                return None
            else:
                left[literal] = None
        return list(left)

    def _part(self, group: tuple[int, ...], settled: SettledClaims) -> int:
        if len(group) == 1:
            return self._expectation(group[0], settled)
        key = (group, settled.within(self.scope.hit(group, settled.which)))
        if key not in self._products:
            self._steps += 1
            if self._steps > LARGEST:
                raise self._too_much()
            self._products[key] = self._entangled(group, settled)
        return self._products[key]

    def _entangled(self, group: tuple[int, ...], settled: SettledClaims) -> int:
        """Compute the expectation of a product of dependent parts."""
        others = self._others(group, settled)
        inside = self._taken_apart(group, others)
        if inside is not None:
            return self._product(inside, settled)
        for literal, mask in zip(group, others, strict=True):
            name = self.gates.names[abs(literal)]
            if name and self.gates.bit(name) & mask and self.scope.stands_alone(name, group, settled.which):
                return self._one_sided(literal, group, settled)
        pivots = self.scope.pivots(group, settled.which)
        spread = self._worth_spreading(group, others, pivots)
        if spread is not None:
            return self._spread(spread, group, settled)
        return self._by_cases(pivots[0], group, settled)

    def _others(self, group: Sequence[int], settled: SettledClaims) -> list[int]:
        """For each literal, the mask of the variables that the other literals depend on."""
        masks = [self.scope.free(literal, settled.which) for literal in group]
        return [reduce(or_, masks[:i] + masks[i + 1 :], 0) for i in range(len(masks))]

    def _taken_apart(self, group: Sequence[int], others: Sequence[int]) -> list[int] | None:
        """Replace ANDs by their parts, and claims that no other part reads by the literals they equal.

        Returns None if there is nothing to replace.
        """
        found: list[int] = []
        changed = False
        for literal, mask in zip(group, others, strict=True):
            name = self.gates.names[abs(literal)]
            body = self.gates.body(name) if name else None
            if not name and literal > 0:
                found.extend(self.gates.items[literal])
                changed = True
            elif isinstance(body, GateBody) and not self.gates.bit(name) & mask:
                self.opened.add(name)
                found.append(body.literal if literal > 0 else -body.literal)
                changed = True
            else:
                found.append(literal)
        return found if changed else None

    def _one_sided(self, literal: int, group: Sequence[int], settled: SettledClaims) -> int:
        """Settle a variable that is itself a factor: only the case in which that factor is true counts."""
        name = self.gates.names[abs(literal)]
        self.cases[name] += 1
        chance = self._expectation(literal, settled)
        rest = [item for item in group if item != literal]
        known = settled.and_also(self.gates.bit(name), literal > 0)
        return self.emit.product([chance, self._product(rest, known)])

    def _by_cases(self, name: str, group: Sequence[int], settled: SettledClaims) -> int:
        """Condition on a shared variable, and mix the two cases."""
        self.cases[name] += 1
        bit = self.gates.bit(name)
        chance = self._gate(self.gates.var(name), settled)
        high = self._product(group, settled.and_also(bit, True))
        low = self._product(group, settled.and_also(bit, False))
        return self.emit.mixture(chance, high, low)

    def _worth_spreading(self, group: Sequence[int], others: Sequence[int], pivots: Sequence[str]) -> int | None:
        """A linear claim that no other part reads, if it has fewer terms than the variables it shares have cases."""
        for literal, mask in zip(group, others, strict=True):
            name = self.gates.names[abs(literal)]
            body = self.gates.body(name) if name and not self.gates.bit(name) & mask else None
            if isinstance(body, WeightedBody):
                reach = self.gates.reach(abs(literal))
                cases = sum(1 for pivot in pivots if self.gates.bit(pivot) & reach)
                if 2**cases > len(body.terms) + 1:
                    return literal
        return None

    def _spread(self, literal: int, group: Sequence[int], settled: SettledClaims) -> int:
        """Expand a linear claim: E[(base + Σ w·c)·rest] = base·E[rest] + Σ w·E[c·rest]."""
        name = self.gates.names[abs(literal)]
        body = self.gates.body(name)
        assert isinstance(body, WeightedBody)
        self.opened.add(name)
        if not body.proper:
            self.improper.add(name)
        rest = [item for item in group if item != literal]
        sign, base = (1.0, body.base) if literal > 0 else (-1.0, 1.0 - body.base)
        terms = [(self._product([child, *rest], settled), sign * weight) for weight, child in body.terms]
        return self.emit.weighted(0.0, [(self._product(rest, settled), base), *terms])


# From a tree to its list of operations.


def compile_tree(tree: Tree, *, only: Collection[str] | None = None, plan: TreeLayout | None = None) -> Circuit:
    """Compile a tree to operations that compute every claim's exact probability, even if branches share claims.

    With `only`, compile just these claims; the others enter as inputs with their current probability. `plan` is the
    tree's layout, if it is already known. The tree must be valid (see `tree_problems`). Raises `TooManySharedClaims`,
    which names the claims, if too much is shared.
    """
    gates, emitter = Gates(tree, plan), CircuitBuilder()
    work = Conditioning(gates, emitter)
    wanted = gates.order if only is None else sorted(only, key=gates.rank.__getitem__)
    for claim in wanted:
        own = has_own_value(tree.nodes[claim])
        work.outputs[claim] = emitter.given(claim) if own else emitter.capped(work.claim(claim))
    ops, claims = emitter.needed({claim: work.outputs[claim] for claim in wanted})
    return Circuit(
        root=tree.root,
        ops=ops,
        claims=claims,
        inputs={op[1]: _value(gates, op[1], only) for op in ops if op[0] == "in"},
        pinnable=frozenset(gates.order) - work.opened,
        improper=frozenset(work.improper),
    )


def _value(gates: Gates, name: str, only: Collection[str] | None) -> float:
    """Return the current probability of an input."""
    node = gates.tree.nodes.get(name)
    if node is None:
        body = gates.body(name)
        assert isinstance(body, InputBody)
        return body.p
    if has_own_value(node):
        return own_value(node, gates.tree.missing)
    assert only is not None
    assert node.p is not None
    return node.p
