"""Exact expectations of products: gate by gate where parts are independent, case by case where they share a claim.

Let E[g | ρ] be the chance that gate g is true in the tree where the variables of ρ are set by hand. A product of
independent parts is the product of their expectations. Where parts share a variable w, and nothing below w can be
reached around w,

    E[g·h | ρ] = E[w | ρ]·E[g·h | ρ, w so] + (1 − E[w | ρ])·E[g·h | ρ, w not so],

so w is settled first and the parts come apart (recursive conditioning, Darwiche 2001). Results are stored by what they
hang on. A weighted sum needs no independence at all: its expectation is the weighted sum of expectations.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import reduce
from operator import or_

from foretell.forecasters.tree.arithmetic.circuit import Circuit, CircuitBuilder
from foretell.forecasters.tree.arithmetic.gates import (
    CoinBody,
    ConditioningScope,
    GateBody,
    Gates,
    InputBody,
    NumbersBody,
    SettledClaims,
    WeightedBody,
)
from foretell.forecasters.tree.formula import Expression, fold
from foretell.forecasters.tree.proposition import Tree, TreeLayout, has_own_value, own_value
from foretell.questions.errors import InputError

LARGEST = 20_000
"""How many entangled products may be taken apart before giving up."""

NOTHING = SettledClaims()


class TooManySharedClaims(InputError):
    """Too many claims share too many others for an exact answer."""

    def __init__(self, claim: str, shared: Sequence[str]) -> None:
        self.claim = claim
        self.shared = tuple(shared)
        super().__init__(
            f"node {claim}: no exact value within {LARGEST:,} steps: too many branches beneath it use "
            f"{', '.join(shared)}",
            hint="pin one of them or of the claims that use them, or give the node a linear or judged link",
        )


class Conditioning:
    """Turns gates into operations. `outputs` holds the place of every variable's own probability."""

    def __init__(self, gates: Gates, emitter: CircuitBuilder) -> None:
        self.gates = gates
        self.emit = emitter
        self.scope = ConditioningScope(gates)
        self.outputs: dict[str, int] = {}
        self.opened: set[str] = set()
        """Claims looked into from above, since their number alone did not do."""
        self.improper: set[str] = set()
        """Linear claims looked into whose chance, given their children, can leave [0, 1]."""
        self.cases: Counter[str] = Counter()
        """How often each variable was settled."""
        self._claim = ""
        self._steps = 0
        self._gates: dict[tuple[int, SettledClaims], int] = {}
        self._products: dict[tuple[tuple[int, ...], SettledClaims], int] = {}

    def claim(self, name: str) -> int:
        """The place of a computed claim's probability; its children's must be there or are taken as inputs."""
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
        """The claim from what it is made of, since something beneath it is settled."""
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
        """The literals that are not settled, each once; None where one of them is false for sure."""
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
        """A product whose parts hang together."""
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
        """For each literal, what all the others hang on."""
        masks = [self.scope.free(literal, settled.which) for literal in group]
        return [reduce(or_, masks[:i] + masks[i + 1 :], 0) for i in range(len(masks))]

    def _taken_apart(self, group: Sequence[int], others: Sequence[int]) -> list[int] | None:
        """The group with ANDs replaced by their parts, and claims nobody else reads by what they are the same as."""
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
        """A variable that is itself a factor: only the case in which that factor is true counts."""
        name = self.gates.names[abs(literal)]
        self.cases[name] += 1
        chance = self._expectation(literal, settled)
        rest = [item for item in group if item != literal]
        known = settled.and_also(self.gates.bit(name), literal > 0)
        return self.emit.product([chance, self._product(rest, known)])

    def _by_cases(self, name: str, group: Sequence[int], settled: SettledClaims) -> int:
        """Both cases of a shared variable."""
        self.cases[name] += 1
        bit = self.gates.bit(name)
        chance = self._gate(self.gates.var(name), settled)
        high = self._product(group, settled.and_also(bit, True))
        low = self._product(group, settled.and_also(bit, False))
        return self.emit.mixture(chance, high, low)

    def _worth_spreading(self, group: Sequence[int], others: Sequence[int], pivots: Sequence[str]) -> int | None:
        """A linear claim nobody else reads, if its terms are fewer than the cases of what it shares."""
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
        """E[(base + Σ w·c)·rest] = base·E[rest] + Σ w·E[c·rest]."""
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
    """The operations that give every claim's probability, exactly, also where branches share claims.

    With `only`, the operations for these claims alone: the others enter with the probability they have. `plan` is the
    tree's layout, where it is known already. The tree must be sound (`tree_problems`); where too much is shared,
    `TooManySharedClaims` names the claims.
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
        apart=frozenset(gates.order) - work.opened - work.scope.met,
        improper=frozenset(work.improper),
    )


def _value(gates: Gates, name: str, only: Collection[str] | None) -> float:
    """The probability of an input as it stands in the tree."""
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
