"""A notebook as a value: cells are only ever added at the end. Just the last one may be corrected while it fails."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from foretell.tools.notebook.outputs import Output, Printed, Raised, Shown, shortened

MODEL_TEXT = 8_000
"""Characters of a cell's report to a model."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A version of a cell that failed and was replaced."""

    source: str
    outputs: tuple[Output, ...] = ()
    problem: str = ""
    """Why it ended, where its outputs do not tell."""


@dataclass(frozen=True, kw_only=True)
class MarkdownCell:
    """Words."""

    source: str


@dataclass(frozen=True, kw_only=True)
class PythonCell:
    """Code, and what came of it."""

    source: str
    outputs: tuple[Output, ...] = ()
    count: int | None = None
    """The number of its execution; None if it never finished one."""
    ok: bool | None = None
    """Whether it ran to its end; None before it was run."""
    problem: str = ""
    """Why it ended, where its outputs do not tell: out of time, or its kernel died."""
    attempts: tuple[Attempt, ...] = ()
    """Earlier versions, which failed."""
    setup: bool = False
    """Whether it was put there to make the others work; readers need not see its code."""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else is known of its execution, such as the data it asked for."""

    @property
    def error(self) -> Raised | None:
        """The exception that ended it."""
        return next((output for output in reversed(self.outputs) if isinstance(output, Raised)), None)

    @property
    def images(self) -> tuple[Shown, ...]:
        """The figures it drew."""
        return tuple(output for output in self.outputs if isinstance(output, Shown) and output.image)

    def report(self, most: int = MODEL_TEXT) -> str:
        """Everything it said, as plain text of bounded length; figures are only mentioned."""
        parts = [_told(output, most) for output in self.outputs]
        parts += [f"[{self.problem}]"] if self.problem else []
        return shortened("\n".join(filter(None, parts)), most) or "[no output]"


Cell = MarkdownCell | PythonCell


@dataclass(frozen=True, kw_only=True)
class Notebook:
    """Cells in order. There is no way to change or remove one that stands.

    >>> book = Notebook().appended(PythonCell(source="1/0", ok=False)).corrected(PythonCell(source="1/1", ok=True))
    >>> book.cells[0].source, book.cells[0].attempts[0].source
    ('1/1', '1/0')
    >>> book.corrected(PythonCell(source="2"))
    Traceback (most recent call last):
    ...
    ValueError: only a last cell that failed can be corrected
    """

    cells: tuple[Cell, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """About the notebook as a whole: the cutoff, the sandbox, who made it."""

    def appended(self, cell: Cell) -> "Notebook":
        """With one more cell at the end."""
        return replace(self, cells=(*self.cells, cell))

    def corrected(self, cell: PythonCell) -> "Notebook":
        """With another version of its last cell, which failed. The failed version stays on record."""
        failed = self.failing
        if failed is None:
            raise ValueError("only a last cell that failed can be corrected")
        attempt = Attempt(source=failed.source, outputs=failed.outputs, problem=failed.problem)
        attempts = (*failed.attempts, attempt)
        return replace(self, cells=(*self.cells[:-1], replace(cell, attempts=attempts)))

    @property
    def failing(self) -> PythonCell | None:
        """The last cell, if it failed."""
        last = self.cells[-1] if self.cells else None
        return last if isinstance(last, PythonCell) and last.ok is False else None


def _told(output: Output, most: int) -> str:
    if isinstance(output, Shown):
        return f"[figure, {len(output.image):,} bytes] {output.text}" if output.image else shortened(output.text, most)
    if isinstance(output, Printed):
        return shortened(output.text.rstrip("\n"), most)
    return shortened(output.text, most)
