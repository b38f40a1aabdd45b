"""The tool `calculate`: arithmetic and the usual distributions, with a small parser of its own."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from foretell.frozen import frozen
from foretell.metrics import probability_functions as distributions
from foretell.models.model import ToolSpec
from foretell.models.structured_output import closed_object
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.tools.tool import CALCULATE, ToolFailed, ToolMaterial, required_texts

LONGEST_EXPRESSION = 500
MOST_EXPRESSIONS = 10
DEEPEST = 50
"""Maximum depth of parentheses."""


class WrongExpression(ValueError):
    """An expression cannot be computed; the message says why."""


# Distributions. Arguments outside their range are errors, so that a wrong order of arguments is noticed.


def normal(x: float, mean: float = 0.0, sd: float = 1.0) -> float:
    """P(X ≤ x) of a normal distribution."""
    if sd <= 0:
        raise WrongExpression("the standard deviation must be above 0")
    return math.erfc((mean - x) / (sd * math.sqrt(2))) / 2


def normal_quantile(p: float, mean: float = 0.0, sd: float = 1.0) -> float:
    """The value that a normal distribution stays below with probability p."""
    if not 0 < p < 1 or sd <= 0:
        raise WrongExpression("a quantile needs a probability between 0 and 1 and a standard deviation above 0")
    return mean + sd * distributions.normal_quantile(p)


def poisson(k: float, mean: float) -> float:
    """P(X ≤ k) of a Poisson distribution."""
    if mean < 0:
        raise WrongExpression("the mean must not be below 0")
    return 0.0 if k < 0 else distributions.poisson_below(math.floor(k), mean)


def binomial(k: float, n: float, p: float) -> float:
    """P(X ≤ k) of a binomial distribution."""
    if n < 0 or n % 1 or not 0 <= p <= 1:
        raise WrongExpression("a binomial distribution needs a whole number of cases and a probability from 0 to 1")
    if k < 0:
        return 0.0
    return 1.0 if k >= n else distributions.binomial_below(math.floor(k), int(n), p)


def choose(n: float, k: float) -> float:
    """The number of ways to choose k of n things."""
    if n < 0 or k < 0 or n % 1 or k % 1 or n > 10_000:
        raise WrongExpression("choose needs whole numbers from 0 to 10,000")
    return float(math.comb(int(n), int(k)))


Function = Callable[..., float]
FUNCTIONS: Mapping[str, tuple[Function, int, int]] = {
    "abs": (math.fabs, 1, 1),
    "binomial": (binomial, 3, 3),
    "choose": (choose, 2, 2),
    "exp": (math.exp, 1, 1),
    "ln": (math.log, 1, 1),
    "log": (math.log, 1, 1),
    "log10": (math.log10, 1, 1),
    "max": (max, 2, 20),
    "min": (min, 2, 20),
    "normal": (normal, 1, 3),
    "normal_quantile": (normal_quantile, 1, 3),
    "poisson": (poisson, 2, 2),
    "sqrt": (math.sqrt, 1, 1),
}
"""Functions by name, with the fewest and the most arguments that they take."""
CONSTANTS = {"pi": math.pi, "e": math.e}
_TOKEN = pattern(r"\s*(?:(\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)|([A-Za-z_]\w*)|(\*\*|[-+*/^(),%]))")


def computed(expression: str) -> float:
    """Return the value of an expression. Raises `WrongExpression` if it has none.

    >>> computed("2^3 - 50%"), round(computed("1 - poisson(2, 0.8 * 45/30)"), 3)
    (7.5, 0.121)
    """
    if len(expression) > LONGEST_EXPRESSION:
        raise WrongExpression(f"it is longer than {LONGEST_EXPRESSION} characters")
    try:
        value = _Parser(_tokens(expression)).whole()
    except ZeroDivisionError:
        raise WrongExpression("it divides by zero") from None
    except OverflowError:
        raise WrongExpression("the result is too large") from None
    except WrongExpression:
        raise
    except ValueError:
        raise WrongExpression("a function is given a number outside its range") from None
    if not math.isfinite(value):
        raise WrongExpression("the result is not a finite number")
    return value


def _tokens(expression: str) -> list[str]:
    tokens: list[str] = []
    # A comma between digits might group thousands or separate arguments; only the second is read.
    at, text = 0, expression.replace("−", "-").replace("×", "*").replace("·", "*").replace("÷", "/").rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise WrongExpression(f"{text[at:].strip()[:20]!r} cannot be read")
        tokens.append(match[0].strip())
        at = match.end()
    return tokens


class _Parser:
    """Reads an expression from left to right: sums of products of powers."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> float:
        """Return the value of all tokens."""
        value = self._sum()
        if self._next is not None:
            raise WrongExpression(f"{self._next!r} stands where nothing is expected")
        return value

    @property
    def _next(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, *wanted: str) -> str | None:
        """Return the next token and go on, if it is one of these."""
        token = self._next
        if token is None or token not in wanted:
            return None
        self._at += 1
        return token

    def _sum(self) -> float:
        self._depth += 1
        if self._depth > DEEPEST:
            raise WrongExpression("it has too many parentheses")
        value = self._product()
        while sign := self._take("+", "-"):
            value += self._product() if sign == "+" else -self._product()
        self._depth -= 1
        return value

    def _product(self) -> float:
        value = self._signed()
        while sign := self._take("*", "/"):
            value = value * self._signed() if sign == "*" else value / self._signed()
        return value

    def _signed(self) -> float:
        negative = False
        while sign := self._take("+", "-"):
            negative ^= sign == "-"
        value = self._power()
        return -value if negative else value

    def _power(self) -> float:
        base = self._percent()
        if not self._take("^", "**"):
            return base
        self._depth += 1
        if self._depth > DEEPEST:
            raise WrongExpression("it has too many powers")
        value = base ** self._signed()
        self._depth -= 1
        if isinstance(value, complex):
            raise WrongExpression("the root of a negative number is not a number")
        return float(value)

    def _percent(self) -> float:
        value = self._atom()
        while self._take("%"):
            value /= 100
        return value

    def _atom(self) -> float:
        token = self._next
        if token is None:
            raise WrongExpression("it ends too early")
        self._at += 1
        if token == "(":
            value = self._sum()
            self._close()
            return value
        if token[0].isdigit() or token[0] == ".":
            return float(token)
        if token in CONSTANTS and self._next != "(":
            return CONSTANTS[token]
        if not (token[0].isalpha() or token[0] == "_"):
            raise WrongExpression(f"{token!r} stands where a number is expected")
        if self._next != "(":
            raise WrongExpression(f"{token[:40]!r} is not a number; write its value")
        return self._call(token)

    def _call(self, name: str) -> float:
        if name not in FUNCTIONS:
            raise WrongExpression(f"there is no function {name[:40]}; there are {', '.join(FUNCTIONS)}")
        self._at += 1
        arguments = [self._sum()]
        while self._take(","):
            arguments.append(self._sum())
        self._close()
        function, fewest, most = FUNCTIONS[name]
        if not fewest <= len(arguments) <= most:
            count = f"{fewest}" if fewest == most else f"{fewest} to {most}"
            raise WrongExpression(f"{name} takes {count} arguments, not {len(arguments)}")
        return float(function(*arguments))

    def _close(self) -> None:
        if not self._take(")"):
            raise WrongExpression("a parenthesis is not closed")


CALCULATE_SPEC = ToolSpec(
    name=CALCULATE,
    description=(
        "Compute with + - * / ^, exp, ln, sqrt, min, max, choose(n, k), and the chance of at most x or k: "
        "normal(x, mean, sd), poisson(k, mean), binomial(k, n, p)."
    ),
    parameters=closed_object(
        {
            "expressions": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": MOST_EXPRESSIONS,
                "description": "Such as 1 - poisson(2, 0.8 * 45/30).",
            }
        }
    ),
)


@frozen
class Calculate:
    """Computes what a model asks for. It reads nothing from outside, so there is nothing to filter."""

    spec = CALCULATE_SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return one line for each expression. Raises `ToolFailed` if none of them can be computed."""
        expressions = required_texts(arguments, "expressions")[:MOST_EXPRESSIONS]
        lines: list[str] = []
        failed = 0
        for expression in expressions:
            try:
                lines.append(f"{expression} = {computed(expression):.10g}")
            except WrongExpression as problem:
                failed += 1
                lines.append(f"{expression[:LONGEST_EXPRESSION]}: {problem}")
        if failed == len(expressions):
            raise ToolFailed("Nothing could be computed. " + "; ".join(lines))
        return ToolMaterial(heading="\n".join(lines), items=())
