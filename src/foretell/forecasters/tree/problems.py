"""What is wrong with a tree: at which node, in which field, and what to do about it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from foretell.questions.problems import InputError


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong, or, as a warning, worth knowing.

    >>> print(Problem(node="P1", field="link.weights.P1.2", text="1.4 is outside [-1, 1]", hint="scale the weights"))
    node P1, link.weights.P1.2: 1.4 is outside [-1, 1] (scale the weights)
    """

    node: str
    """Id of the claim; empty for the tree as a whole."""
    field: str
    text: str
    hint: str = ""
    pointed: str = ""
    """A formula with a caret under the place, on two lines."""
    warning: bool = False

    def __str__(self) -> str:
        """On one line."""
        place = ", ".join(filter(None, [f"node {self.node}" if self.node else "", self.field]))
        return ": ".join(filter(None, [place, self.text])) + (f" ({self.hint})" if self.hint else "")

    def told(self) -> str:
        """With the formula pointed at, where there is one: for a terminal, or for a model that is asked again."""
        return "\n".join(filter(None, [str(self), self.pointed]))


class InvalidTree(InputError):
    """A tree, link or edit that cannot be used; `problems` holds all the reasons."""

    def __init__(self, problems: Sequence[Problem], *, path: str | Path | None = None) -> None:
        self.problems = tuple(problems)
        first, more = self.problems[0], len(self.problems) - 1
        place = ", ".join(filter(None, [f"node {first.node}" if first.node else "", first.field]))
        rest = f"; and {more} more: foretell tree check lists all" if more else ""
        super().__init__(": ".join(filter(None, [place, first.text])) + rest, path=path, hint=first.hint or None)

    @property
    def reasons(self) -> str:
        """All problems, one under the other, formulas pointed at: what to tell a model that is asked again."""
        return "\n".join(problem.told() for problem in self.problems)


def insist(problems: Iterable[Problem], *, path: str | Path | None = None) -> None:
    """Raise `InvalidTree` if one of them is more than a warning."""
    errors = [problem for problem in problems if not problem.warning]
    if errors:
        raise InvalidTree(errors, path=path)
