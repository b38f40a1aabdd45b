"""How a claim is defined in gates: what a link compiles to, and what it compiles with."""

from collections.abc import Iterable
from typing import Protocol

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


class GateBuilder(Protocol):
    """What a link compiles with. A literal is a gate's number, negative if negated."""

    def var(self, name: str) -> int:
        """Return the literal of a variable."""
        ...

    def all_of(self, literals: Iterable[int]) -> int:
        """Return the literal of an AND."""
        ...

    def any_of(self, literals: Iterable[int]) -> int:
        """Return the literal of an OR."""
        ...

    def coin(self, name: str, p: float) -> int:
        """Return the literal of an independent event with a fixed probability."""
        ...

    def odds(self, name: str, of: str, ratio: float) -> int:
        """Return the literal of an independent event with the odds of a variable times a ratio; 0 and 1 stay."""
        ...

    def set_input(self, name: str, p: float) -> None:
        """Define an independent variable whose probability is an input."""
        ...

    def exactly(self, literal: int) -> GateBody:
        """Define a claim as true exactly when a literal is true."""
        ...

    def weighted(self, base: float, terms: Iterable[tuple[float, str]]) -> WeightedBody:
        """Define a claim by a weighted sum over variables."""
        ...

    def separately(self, body: GateBody | WeightedBody) -> SeparateBody:
        """Define a claim by what it reads, without regard to what that shares with other claims."""
        ...

    def numbers(self, expression: Expression) -> NumbersBody:
        """Define a claim by multiplying numbers mention by mention."""
        ...
