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
from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from foretell.forecasters.tree.arithmetic.circuit import Circuit, CircuitBuilder
from foretell.forecasters.tree.arithmetic.gates import (
    Body,
    CoinBody,
    GateBody,
    GateBuilder,
    InputBody,
    NumbersBody,
    OddsBody,
    SeparateBody,
    WeightedBody,
)
from foretell.forecasters.tree.case_links import SplitLink
from foretell.forecasters.tree.formula import Expression, fold
from foretell.forecasters.tree.proposition import Proposition, Tree, TreeLayout, has_own_value, layout, own_value
from foretell.questions.errors import InputError

# A tree as random variables and gates: how each claim is defined, and which variables it depends on.


class Gates(GateBuilder):
    """The gates of a tree."""

    def __init__(self, tree: Tree, plan: TreeLayout | None = None) -> None:
        plan = plan or layout(tree)
        super().__init__(plan.order, plan.rank)
        self.tree = tree
        self._cones = self._all_cones()

    def _all_cones(self) -> dict[str, int]:
        """For every claim, the mask of all claims and assumptions that its probability depends on."""
        cones: dict[str, int] = {}
        for i, claim in enumerate(self.order):
            node, cone = self.tree.nodes[claim], 1 << i
            if node.link is not None and node.link.from_numbers:
                # The claim is a variable of its own, because it uses only its children's probabilities.
                pass
            elif not has_own_value(node):
                for child in node.children:
                    cone |= cones[child]
                assert node.link is not None
                for name in node.link.assumptions(claim):
                    cone |= self.bit(name)
            cones[claim] = cone
        return cones

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


# The variables that parts of a product depend on, those they share, and which of these can be settled first.


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
        return self._free_and_settled(abs(gate), cut)[0]

    def hit(self, gates: Sequence[int], cut: int) -> int:
        """Mask of the settled variables that these gates depend on."""
        mask = 0
        for gate in gates:
            mask |= self._free_and_settled(abs(gate), cut)[1]
        return mask

    def _free_and_settled(self, gate: int, cut: int) -> tuple[int, int]:
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
                more_free, more_hit = self._free_and_settled(abs(literal), cut)
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

    def is_separable(self, name: str, group: Sequence[int], cut: int) -> bool:
        """Whether everything below the variable is reachable only through it, so that it can be settled alone."""
        bit = self.gates.bit(name)
        below = self.free(self.gates.var(name), cut) & ~bit
        return not below or not any(self.free(item, cut | bit) & below for item in group)

    def pivots(self, group: tuple[int, ...], cut: int) -> list[str]:
        """Shared variables that can be settled first, most used first; none of them is below another."""
        # The result depends on which variables are settled, not on their values, so both cases share it.
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
        pivots: list[str] = []
        covered = 0
        for name in sorted(readers, key=lambda name: -self.gates.rank.get(name, -1)):
            bit = self.gates.bit(name)
            if len(readers[name]) > 1 and bit & shared & ~covered and self.is_separable(name, group, cut):
                covered |= self.gates.reach(self.gates.var(name))
                pivots.append(name)
        order = list(readers)
        return sorted(pivots, key=lambda name: (-len(readers[name]), order.index(name)))

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
        self.expanded: set[str] = set()
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
        body = body.body if isinstance(body, SeparateBody) else body
        try:
            if isinstance(body, WeightedBody):
                return self.sum(body)
            if isinstance(body, NumbersBody):
                return self._on_numbers(body.expression)
            assert isinstance(body, GateBody)
            return self._expectation(body.literal, NOTHING)
        except RecursionError:
            raise self._too_many_shared() from None

    def sum(self, body: WeightedBody, settled: SettledClaims = NOTHING) -> int:
        """Return the position of a weighted sum."""
        terms = [(self._expectation(literal, settled), weight) for weight, literal in body.terms]
        return self.emit.weighted(body.base, terms)

    def _on_numbers(self, expression: Expression) -> int:
        emit = self.emit

        def either(items: list[int]) -> int:
            return emit.complement(emit.product([emit.complement(item) for item in items]))

        return fold(expression, self._output, emit.complement, emit.product, either)

    def _too_many_shared(self) -> TooManySharedClaims:
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
            self._gates[key] = self._expand_claim(name, settled)
        return self._gates[key]

    def _output(self, name: str) -> int:
        if name not in self.outputs:
            body = None if name in self.gates.rank else self.gates.body(name)
            match body:
                case CoinBody(p):
                    self.outputs[name] = self.emit.constant(p)
                case OddsBody(of, ratio):
                    self.outputs[name] = self.emit.odds(self._output(of), ratio)
                case _:
                    self.outputs[name] = self.emit.input(name)
        return self.outputs[name]

    def _expand_claim(self, name: str, settled: SettledClaims) -> int:
        """Expand the claim because something below it is settled."""
        self.expanded.add(name)
        body = self.gates.body(name)
        if isinstance(body, GateBody):
            return self._expectation(body.literal, settled)
        assert isinstance(body, WeightedBody)
        if not body.proper:
            self.improper.add(name)
        return self.sum(body, settled)

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
                raise self._too_many_shared()
            self._products[key] = self._dependent_product(group, settled)
        return self._products[key]

    def _dependent_product(self, group: tuple[int, ...], settled: SettledClaims) -> int:
        """Compute the expectation of a product of dependent parts."""
        others = self._others(group, settled)
        inside = self._flattened(group, others)
        if inside is not None:
            return self._product(inside, settled)
        for literal, mask in zip(group, others, strict=True):
            name = self.gates.names[abs(literal)]
            if name and self.gates.bit(name) & mask and self.scope.is_separable(name, group, settled.which):
                return self._one_sided(literal, group, settled)
        pivots = self.scope.pivots(group, settled.which)
        linear = self._linear_to_expand(group, others, pivots)
        if linear is not None:
            return self._expand_linear(linear, group, settled)
        return self._by_cases(pivots[0], group, settled)

    def _others(self, group: Sequence[int], settled: SettledClaims) -> list[int]:
        """For each literal, the mask of the variables that the other literals depend on."""
        masks = [self.scope.free(literal, settled.which) for literal in group]
        return [reduce(or_, masks[:i] + masks[i + 1 :], 0) for i in range(len(masks))]

    def _flattened(self, group: Sequence[int], others: Sequence[int]) -> list[int] | None:
        """Replace ANDs by their parts, and claims that no other part reads by the literals they equal.

        Returns None if there is nothing to replace.
        """
        literals: list[int] = []
        changed = False
        for literal, mask in zip(group, others, strict=True):
            name = self.gates.names[abs(literal)]
            body = self.gates.body(name) if name else None
            if not name and literal > 0:
                literals.extend(self.gates.items[literal])
                changed = True
            elif isinstance(body, GateBody) and not self.gates.bit(name) & mask:
                self.expanded.add(name)
                literals.append(body.literal if literal > 0 else -body.literal)
                changed = True
            else:
                literals.append(literal)
        return literals if changed else None

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

    def _linear_to_expand(self, group: Sequence[int], others: Sequence[int], pivots: Sequence[str]) -> int | None:
        """Return a linear claim that no other part reads if it has fewer terms than its shared variables have cases."""
        for literal, mask in zip(group, others, strict=True):
            name = self.gates.names[abs(literal)]
            body = self.gates.body(name) if name and not self.gates.bit(name) & mask else None
            if isinstance(body, WeightedBody):
                reach = self.gates.reach(abs(literal))
                cases = sum(1 for pivot in pivots if self.gates.bit(pivot) & reach)
                if 2**cases > len(body.terms) + 1:
                    return literal
        return None

    def _expand_linear(self, literal: int, group: Sequence[int], settled: SettledClaims) -> int:
        """Expand a linear claim: E[(base + Σ w·c)·rest] = base·E[rest] + Σ w·E[c·rest]."""
        name = self.gates.names[abs(literal)]
        body = self.gates.body(name)
        assert isinstance(body, WeightedBody)
        self.expanded.add(name)
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
        work.outputs[claim] = emitter.input(claim) if own else emitter.capped(work.claim(claim))
    rows = {claim: _option_places(tree.nodes[claim], gates, work) for claim in wanted}
    outputs = {(claim, ""): work.outputs[claim] for claim in wanted}
    ops, places = emitter.needed(
        outputs | {(claim, option): place for claim, row in rows.items() for option, place in row.items()}
    )
    inputs = {op[1]: _value(gates, op[1], only) for op in ops if op[0] == "in"}
    return Circuit(
        root=tree.root,
        ops=ops,
        claims={claim: places[claim, ""] for claim in wanted},
        inputs=inputs,
        rows={claim: {option: places[claim, option] for option in row} for claim, row in rows.items() if row},
        exclusive=tuple(_exclusive_inputs(tree, inputs)),
        pinnable=frozenset(gates.order) - work.expanded,
        improper=frozenset(work.improper),
    )


def _option_places(node: Proposition, gates: Gates, work: Conditioning) -> dict[str, int]:
    """Add the sums of a claim's options and return their positions; empty if it has none."""
    if node.link is None or has_own_value(node):
        return {}
    forms = node.link.option_forms(node.children)
    terms = {option: [(form.weights[child], child) for child in node.children] for option, form in forms.items()}
    return {
        option: work.emit.capped(work.sum(gates.weighted(form.intercept, terms[option])))
        for option, form in forms.items()
    }


def _exclusive_inputs(tree: Tree, inputs: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Yield the children of claims whose scenarios exclude each other, if all of them are leaves."""
    for node in tree.nodes.values():
        scenarios = isinstance(node.link, SplitLink) and not has_own_value(node)
        if scenarios and all(child in inputs and not tree.nodes[child].children for child in node.children):
            yield node.children


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
