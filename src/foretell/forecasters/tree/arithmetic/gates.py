"""A tree as random variables and gates: what every claim is made of, and which variables it hangs on.

Variables are the claims, the assumption of each formula ("P1:PA") and, for noisy-or links, one coin per cause
("P1~P1.2": would this cause alone bring the claim about?). A literal is a gate's number, negative where negated;
gates are variables or ANDs of literals, and OR is a negated AND.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from foretell.forecasters.tree import expression as ex
from foretell.forecasters.tree.links import Average, Formula, InhibitedNoisyOr, Linear, Link, NoisyOr
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.walk import Layout, has_own_value, layout, own_value


@dataclass(frozen=True)
class Given:
    """A variable on its own, with its probability as an input."""

    p: float


@dataclass(frozen=True)
class Coin:
    """A variable on its own, with a probability that is part of a link."""

    p: float


@dataclass(frozen=True)
class Same:
    """True exactly when a literal is."""

    literal: int


@dataclass(frozen=True)
class Weighted:
    """True with probability base + Σ weight·[literal], given the literals."""

    base: float
    terms: tuple[tuple[float, int], ...]


Body = Given | Coin | Same | Weighted


def assumption_of(claim: str) -> str:
    """The name of a formula's PA among the inputs."""
    return f"{claim}:{ex.ASSUMPTION}"


def is_proper(body: Weighted) -> bool:
    """Whether base + Σ weight·[literal] is a probability whatever the literals are."""
    low = body.base + sum(min(weight, 0.0) for weight, _ in body.terms)
    high = body.base + sum(max(weight, 0.0) for weight, _ in body.terms)
    return low >= -1e-12 and high <= 1.0 + 1e-12


class Gates:
    """The gates of a tree, made when first asked for. Sets of variables are bit masks."""

    def __init__(self, tree: Tree, plan: Layout | None = None) -> None:
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
            if not has_own_value(node):
                for child in node.children:
                    cone |= cones[child]
                if isinstance(node.link, Formula) and node.link.assumption is not None:
                    cone |= self.bit(assumption_of(claim))
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
                self._bodies[name] = Given(own_value(node, self.tree.missing))
            else:
                assert node.link is not None
                self._bodies[name] = self._made_of(name, node.link, node.children)
        return self._bodies[name]

    def _made_of(self, claim: str, link: Link, children: tuple[str, ...]) -> Body:
        match link:
            case Linear():
                terms = tuple((float(link.weights[child]), self.var(child)) for child in children)
                return Weighted(float(link.intercept), terms)
            case Average():
                return Weighted(0.0, tuple((1.0 / len(children), self.var(child)) for child in children))
            case Formula():
                return Same(self._formula(claim, link))
            case NoisyOr():
                return Same(self._caused(claim, link.strengths, link.leak, children))
            case InhibitedNoisyOr():
                caused = self._caused(claim, link.strengths, link.leak, children)
                blocks = [-self._weak(claim, c, link.inhibitors[c]) for c in children if c in link.inhibitors]
                return Same(self.all_of([caused, *blocks]))
            case _:
                raise TypeError(f"{type(link).__name__} has a number of its own")

    def _formula(self, claim: str, link: Formula) -> int:
        if link.assumption is not None:
            self._bodies[assumption_of(claim)] = Given(link.assumption.p)

        def literal(item: ex.Expression) -> int:
            match item:
                case ex.Var():
                    return self.var(assumption_of(claim) if item.name == ex.ASSUMPTION else item.name)
                case ex.Not():
                    return -literal(item.item)
                case ex.And():
                    return self.all_of(map(literal, item.items))
                case ex.Or():
                    return self.any_of(map(literal, item.items))

        return literal(ex.parse(link.expression))

    def _caused(self, claim: str, strengths: Mapping[str, float], leak: float, children: tuple[str, ...]) -> int:
        causes = [self._coin(f"{claim}~", leak)] if leak else []
        return self.any_of(causes + [self._weak(claim, c, strengths[c]) for c in children if c in strengths])

    def _weak(self, claim: str, child: str, strength: float) -> int:
        """The child is so, and it has its effect."""
        return self.all_of([self._coin(f"{claim}~{child}", strength), self.var(child)])

    def _coin(self, name: str, p: float) -> int:
        self._bodies[name] = Coin(float(p))
        return self.var(name)
