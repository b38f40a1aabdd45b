"""What is wrong with a tree: at which node, in which field, and what to do about it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from foretell.questions.errors import InputError


@dataclass(frozen=True, kw_only=True)
class TreeProblem:
    """One thing that is wrong, or, as a warning, worth knowing.

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
    """A formula with a caret under the place of the mistake, on two lines."""
    warning: bool = False

    @property
    def place(self) -> str:
        """The node and the field, as far as there are any."""
        return ", ".join(filter(None, [f"node {self.node}" if self.node else "", self.field]))

    def __str__(self) -> str:
        """On one line."""
        return ": ".join(filter(None, [self.place, self.text])) + (f" ({self.hint})" if self.hint else "")

    def with_pointer(self) -> str:
        """Followed by the formula with its caret, where there is one: for a terminal, or for a model to correct."""
        return "\n".join(filter(None, [str(self), self.pointer]))


class InvalidTree(InputError):
    """A tree, link or edit that cannot be used; `problems` holds all the reasons."""

    def __init__(self, problems: Sequence[TreeProblem], *, path: str | Path | None = None) -> None:
        self.problems = tuple(problems)
        first, more = self.problems[0], len(self.problems) - 1
        rest = f"; and {more} more: foretell tree check lists all" if more else ""
        text = ": ".join(filter(None, [first.place, first.text])) + rest
        super().__init__(text, path=path, hint=first.hint or None)

    @property
    def reasons(self) -> str:
        """All problems, one under the other, formulas with their carets: what a model needs to correct its answer."""
        return "\n".join(problem.with_pointer() for problem in self.problems)


def raise_errors(problems: Iterable[TreeProblem], *, path: str | Path | None = None) -> None:
    """Raise `InvalidTree` if one of them is more than a warning."""
    errors = [problem for problem in problems if not problem.warning]
    if errors:
        raise InvalidTree(errors, path=path)
