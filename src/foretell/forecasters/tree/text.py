"""Problems of a tree, and the formatting of texts, numbers and names in reports and exports."""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path

from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.errors import InputError

_CONTROL = pattern("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


def one_line(text: str) -> str:
    r"""Return the text on one line, without control or bidirectional characters.

    >>> one_line("a\n  b\x1b[31m")
    'a b [31m'
    """
    return " ".join(_CONTROL.sub(" ", text).split())


def decimal_probability(p: float | None) -> str:
    """Format a probability for arithmetic; elsewhere it is shown in percent.

    >>> decimal_probability(0.87196), decimal_probability(0.0004), decimal_probability(1.0), decimal_probability(None)
    ('0.872', '0.0004', '1', '–')
    """
    if p is None:
        return "–"
    if 0 < p < 0.001 or 0.999 < p < 1:
        return f"{p:.4f}"
    return f"{p:.0f}" if p in (0, 1) else f"{p:.3f}"


def decimal(value: float) -> str:
    """Return the shortest decimal that parses back to this number, without an exponent, for other programs.

    >>> decimal(0.1), decimal(1e-07), decimal(1.0)
    ('0.1', '0.0000001', '1.0')
    """
    text = f"{Decimal(repr(float(value))):f}"
    return text if "." in text else f"{text}.0"


def enumeration(parts: Sequence[str]) -> str:
    """Join parts as in a sentence: a, b and c.

    >>> enumeration(["a"]), enumeration(["a", "b"]), enumeration(["a", "b", "c"])
    ('a', 'a and b', 'a, b, and c')
    """
    return " and ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])}, and {parts[-1]}"


class ExportNames:
    """Unique names for ids, made of letters, digits and underscores.

    >>> names = ExportNames(lower=True)
    >>> names.of("P1.2"), names.of("P1_2"), names.of("P1.2")
    ('p1_2', 'p1_2_b', 'p1_2')
    """

    def __init__(self, *, lower: bool = False) -> None:
        self._lower = lower
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, key: str) -> str:
        """Return the name of an id, creating it on first use."""
        if key not in self._names:
            name = re.sub(r"\W", "_", key, flags=re.ASCII)
            name = name.lower() if self._lower else name
            # Names must differ by more than case, because some programs ignore case.
            while name.lower() in self._taken:
                name += "_b"
            self._taken.add(name.lower())
            self._names[key] = name
        return self._names[key]


@frozen
class TreeProblem:
    """An error in a tree, or a warning about it.

    >>> outside = "1.4 is outside [-1, 1]"
    >>> print(TreeProblem(node="P1", field="link.weights.P1.2", text=outside, hint="scale the weights"))
    node P1, link.weights.P1.2: 1.4 is outside [-1, 1] (scale the weights)
    """

    node: str
    """Id of the claim; empty for the tree as a whole."""
    field: str
    text: str
    hint: str = ""
    pointer: str = ""
    """The formula with a caret below the error, on two lines."""
    warning: bool = False

    @property
    def place(self) -> str:
        """The node and the field, if any."""
        return ", ".join(filter(None, [f"node {self.node}" if self.node else "", self.field]))

    def __str__(self) -> str:
        """Format the problem on one line."""
        return ": ".join(filter(None, [self.place, self.text])) + (f" ({self.hint})" if self.hint else "")

    def with_pointer(self) -> str:
        """Format the message, followed by the formula with its caret if there is one."""
        return "\n".join(filter(None, [str(self), self.pointer]))


class InvalidTree(InputError):
    """Raised if a tree, link or edit is not valid; `problems` holds all reasons."""

    def __init__(self, problems: Sequence[TreeProblem], *, path: str | Path | None = None) -> None:
        self.problems = tuple(problems)
        first, more = self.problems[0], len(self.problems) - 1
        # Only the problems of a file can be listed again.
        others = "; ".join(map(str, self.problems[1:])) if path is None else "foretell tree show lists all"
        rest = f"; and {more} more: {others}" if more else ""
        text = ": ".join(filter(None, [first.place, first.text])) + rest
        super().__init__(text, path=path, hint=first.hint or None)

    @property
    def reasons(self) -> str:
        """All problems, one per line, so that a model can correct its answer."""
        return "\n".join(problem.with_pointer() for problem in self.problems)


def raise_errors(problems: Iterable[TreeProblem], *, path: str | Path | None = None) -> None:
    """Raise `InvalidTree` if any problem is an error."""
    errors = [problem for problem in problems if not problem.warning]
    if errors:
        raise InvalidTree(errors, path=path)
