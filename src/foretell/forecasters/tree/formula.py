"""Boolean formulas over claims: parse, print, rename and evaluate them."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeVar

from foretell.frozen import frozen
from foretell.patterns import pattern

ASSUMPTION = "PA"
"""Name of the assumption in a formula."""
DEEPEST = 100
"""Maximum nesting of parentheses and NOTs."""

ID = r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*"
_TOKEN = pattern(rf"\s*(?:({ID})|(&&|\|\||[()&|!~¬∧∨]))")
_SYNONYMS = {"&": "AND", "&&": "AND", "∧": "AND", "|": "OR", "||": "OR", "∨": "OR", "!": "NOT", "~": "NOT", "¬": "NOT"}
_WORDS = frozenset({"AND", "OR", "NOT"})
T = TypeVar("T")


@frozen(kw_only=False)
class Var:
    """A claim, given by its id, or the assumption `PA`."""

    name: str


@frozen(kw_only=False)
class Not:
    """Negation."""

    item: "Expression"


@frozen(kw_only=False)
class And:
    """Conjunction."""

    items: "tuple[Expression, ...]"


@frozen(kw_only=False)
class Or:
    """Disjunction."""

    items: "tuple[Expression, ...]"


Expression = Var | Not | And | Or


class FormulaError(ValueError):
    """A formula that cannot be parsed. `position` counts characters from 0.

    >>> try:
    ...     parse("P1 AND (P2 OR )")
    ... except FormulaError as error:
    ...     print(error)
    ...     print(error.pointer)
    character 15: expected a claim, NOT or "(", found ")"
    P1 AND (P2 OR )
                  ^
    """

    def __init__(self, problem: str, text: str, position: int) -> None:
        super().__init__(f"character {position + 1}: {problem}")
        flat = re.sub(r"\s", " ", text)
        self.pointer = f"{flat}\n{' ' * position}^"
        """The formula with a caret below the error."""


class _Token(NamedTuple):
    text: str
    """The token as written in the formula."""
    kind: str
    """AND, OR, NOT, a parenthesis, "id" or "" at the end."""
    position: int


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise FormulaError(f"{text[at]!r} has no meaning here", text, at)
        name, sign = match.groups()
        word = (name or "").upper()
        kind = word if word in _WORDS else "id" if name else _SYNONYMS.get(sign, sign)
        tokens.append(_Token(name or sign, kind, match.end() - len(name or sign)))
        at = match.end()
    return [*tokens, _Token("", "", len(text))]


class _Parser:
    """Recursive descent: OR binds weakest, then AND, then NOT."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0
        self.depth = 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def whole(self) -> Expression:
        expression = self.either()
        if self.next.kind == ")":
            raise FormulaError('expected AND, OR or the end, found an extra ")"', self.text, self.next.position)
        if self.next.kind:
            raise self.unexpected("AND or OR")
        return expression

    def either(self) -> Expression:
        return self.chain("OR", self.both, Or)

    def both(self) -> Expression:
        return self.chain("AND", self.single, And)

    def chain(self, word: str, part: Callable[[], Expression], kind: type[And] | type[Or]) -> Expression:
        items = [part()]
        while self.next.kind == word:
            self.at += 1
            items.append(part())
        return joined(kind, items)

    def single(self) -> Expression:
        token = self.next
        if token.kind not in ("id", "NOT", "("):
            raise self.unexpected('a claim, NOT or "("')
        self.at += 1
        if token.kind == "id":
            return Var(token.text)
        self.depth += 1
        if self.depth > DEEPEST:
            raise FormulaError(f"more than {DEEPEST} levels within one another", self.text, token.position)
        expression = Not(self.single()) if token.kind == "NOT" else self.enclosed(token)
        self.depth -= 1
        return expression

    def enclosed(self, opening: _Token) -> Expression:
        expression = self.either()
        if self.next.kind == "":
            raise FormulaError('this "(" is never closed', self.text, opening.position)
        if self.next.kind != ")":
            raise self.unexpected('AND, OR or ")"')
        self.at += 1
        return expression

    def unexpected(self, wanted: str) -> FormulaError:
        actual = f'"{self.next.text}"' if self.next.kind else "the end"
        return FormulaError(f"expected {wanted}, found {actual}", self.text, self.next.position)


@lru_cache(maxsize=4096)
def parse(text: str) -> Expression:
    """Parse a formula. Operators may be words in any case, `&& || !`, `& | ~` or `∧ ∨ ¬`.

    >>> parse("P1 and not not P10 or P1.1")
    Or(items=(And(items=(Var(name='P1'), Not(item=Not(item=Var(name='P10'))))), Var(name='P1.1')))
    """
    return _Parser(text).whole()


def joined(kind: type[And] | type[Or], items: Iterable[Expression]) -> Expression:
    """Combine items into one AND or OR, flattening nested ones."""
    flat: list[Expression] = []
    for item in items:
        flat.extend(item.items if isinstance(item, And | Or) and isinstance(item, kind) else [item])
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def mentions(text: str) -> list[tuple[str, int]]:
    """Return every mention of a claim or `PA` with its position, including repeats."""
    return [(token.text, token.position) for token in _tokens(text) if token.kind == "id"]


def to_text(expression: Expression) -> str:
    """Print the formula: operators in capitals, and parentheses wherever AND, OR and NOT mix.

    >>> to_text(parse("!(P1 && P2 || (P3))"))
    'NOT ((P1 AND P2) OR P3)'
    """

    def within(item: Expression, *bracketed: type) -> str:
        return f"({to_text(item)})" if isinstance(item, bracketed) else to_text(item)

    match expression:
        case Var():
            return expression.name
        case Not():
            return f"NOT {within(expression.item, And, Or)}"
        case And():
            return " AND ".join(within(item, Or) for item in expression.items)
        case Or():
            return " OR ".join(within(item, And) for item in expression.items)


def rename(expression: Expression, names: Mapping[str, str]) -> Expression:
    """Rename claims in the formula."""
    return fold(
        expression,
        lambda name: Var(names.get(name, name)),
        Not,
        lambda items: And(tuple(items)),
        lambda items: Or(tuple(items)),
    )


def fold(
    expression: Expression,
    var: Callable[[str], T],
    negate: Callable[[T], T],
    both: Callable[[list[T]], T],
    either: Callable[[list[T]], T],
) -> T:
    """Evaluate the formula, given functions for names, NOT, AND and OR.

    >>> from operator import not_
    >>> fold(parse("P1 AND NOT P2"), {"P1": True, "P2": False}.__getitem__, not_, all, any)
    True
    """
    match expression:
        case Var():
            return var(expression.name)
        case Not():
            return negate(fold(expression.item, var, negate, both, either))
        case And():
            return both([fold(item, var, negate, both, either) for item in expression.items])
        case Or():
            return either([fold(item, var, negate, both, either) for item in expression.items])
