"""How a claim is defined in gates: what a link compiles to, and what it compiles with."""

from collections.abc import Iterable, Mapping, Sequence

from foretell.forecasters.tree.formula import Expression
from foretell.frozen import frozen


@frozen(kw_only=False)
class InputBody:
    """An independent variable whose probability is an input."""

    p: float


@frozen(kw_only=False)
class CoinBody:
    """An independent variable whose probability is part of a link."""

    p: float


@frozen(kw_only=False)
class GateBody:
    """A variable that is true exactly when a literal is true."""

    literal: int


@frozen(kw_only=False)
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


@frozen(kw_only=False)
class OddsBody:
    """An independent variable whose odds are those of another variable times a fixed ratio."""

    of: str
    ratio: float


@frozen(kw_only=False)
class SeparateBody:
    """A variable with its own copy of the variables it reads, independent of all other variables; opaque to gates."""

    body: GateBody | WeightedBody


@frozen(kw_only=False)
class NumbersBody:
    """A number computed from other variables' numbers, treating every mention as independent; opaque to other gates."""

    expression: Expression


Body = InputBody | CoinBody | OddsBody | GateBody | WeightedBody | SeparateBody | NumbersBody


class GateBuilder:
    """The gates that links compile to, created on first use. Sets of variables are bit masks.

    Variables are the claims, the assumption of each formula ("P1:PA") and independent events that belong to a link: for
    a noisy-or one per cause ("P1~P1.2": whether this cause alone brings about the claim), for cases one per situation.
    A literal is a gate's number, negative if negated. Gates are variables or ANDs of literals; OR is a negated AND.
    """

    def __init__(self, order: Sequence[str], rank: Mapping[str, int]) -> None:
        self.order = order
        """Ids of the claims, children before parents."""
        self.rank = rank
        self.names = [""]
        """Name of each gate's variable; empty for an AND."""
        self.items: list[tuple[int, ...]] = [()]
        """Literals of each AND gate; empty for a variable."""
        self._known: dict[str | tuple[int, ...], int] = {}
        self._bodies: dict[str, Body] = {}
        self._bits: dict[str, int] = {}
        self._reach: list[int] = [0]
        self._cones: dict[str, int] = {}

    def var(self, name: str) -> int:
        """Return the literal of a variable, creating its gate if needed."""
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

    def coin(self, name: str, p: float) -> int:
        """Add an independent event whose probability is part of a link; `name` must be unique in the whole tree."""
        self._bodies[name] = CoinBody(float(p))
        return self.var(name)

    def odds(self, name: str, of: str, ratio: float) -> int:
        """Add an independent event with the odds of a variable times a ratio; `name` must be unique in the tree."""
        self._bodies[name] = OddsBody(of, float(ratio))
        return self.var(name)

    def set_input(self, name: str, p: float) -> None:
        """Set the probability of an input that belongs to a link, such as the assumption of a formula."""
        self._bodies[name] = InputBody(p)

    def weighted(self, base: float, terms: Iterable[tuple[float, str]]) -> WeightedBody:
        """Return a variable that is true with probability base + Σ weight·[child]."""
        return WeightedBody(float(base), tuple((float(weight), self.var(child)) for weight, child in terms))

    def exactly(self, literal: int) -> GateBody:
        """Return a variable that is true exactly when a literal is true."""
        return GateBody(literal)
