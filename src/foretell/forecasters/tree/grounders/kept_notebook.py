"""A notebook whose every turn is in the journal: a tree that is grown again reads the results and runs nothing.

What a cell prints may differ from run to run (times, memory, chance), and the model's next words hang on it. So what
came of a turn is stored before it is used. Only when a new turn has to be run after stored ones is a kernel started,
and brought to where the notebook stands.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from foretell.llm.canonical import content_key
from foretell.questions import event as kinds
from foretell.questions.event import Emit, Event
from foretell.tools.kept import Once
from foretell.tools.notebook.ipynb import ipynb
from foretell.tools.notebook.notebook import Cell, MarkdownCell, Notebook, PythonCell
from foretell.tools.notebook.session import NotebookSession, Result, Step

Open = Callable[[Emit], AbstractAsyncContextManager[NotebookSession]]
KINDS: Mapping[str, type[Event]] = {
    kind.__name__: kind for kind in (kinds.ModelCalled, kinds.ToolUsed, kinds.LeakBlocked)
}
"""What may happen while cells run; it is told again when a turn comes from the journal."""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What came of one turn."""

    results: tuple[Mapping[str, Any], ...]
    """Of each cell that was run: kind, source, ok, report."""
    waiting: tuple[Cell, ...] = ()
    """Cells after a failed one."""
    notice: str = ""

    @property
    def failed(self) -> Mapping[str, Any] | None:
        """The cell that failed, always the last one."""
        return self.results[-1] if self.results and not self.results[-1]["ok"] else None


@dataclass(kw_only=True)
class KeptNotebook:
    """One notebook. Use as an async context manager, so that its kernel goes when it is done."""

    open: Open
    journal: Once | None
    slot: str
    emit: Emit
    cells: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The notebook so far, as in its file."""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    _standing: list[Cell] = field(default_factory=list[Cell])
    """Cells that ran to their end: what a new kernel has to be brought to."""
    _session: NotebookSession | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _told: list[Event] = field(default_factory=list[Event])
    _turns: int = 0

    async def __aenter__(self) -> "KeptNotebook":
        """No kernel is started before one is needed."""
        return self

    async def __aexit__(self, *problem: object) -> None:
        """Give the kernel back."""
        await self._stack.aclose()

    async def run(self, cells: Sequence[Cell]) -> Ran:
        """Add cells and run them until one fails."""
        return await self._turn(cells, correcting=False)

    async def correct(self, source: str, waiting: Sequence[Cell]) -> Ran:
        """Another version of the last cell, which failed; if it works, those that waited are run."""
        return await self._turn((PythonCell(source=source), *waiting), correcting=True)

    def document(self) -> dict[str, Any]:
        """The notebook as the content of an `.ipynb` file."""
        whole = ipynb(Notebook(facts=self.facts))
        return {**whole, "cells": [{**cell, "id": f"cell-{n}"} for n, cell in enumerate(self.cells, start=1)]}

    async def _turn(self, cells: Sequence[Cell], *, correcting: bool) -> Ran:
        self._turns += 1
        written = [[type(cell).__name__, cell.source] for cell in cells]
        key = content_key(["notebook", self.slot, self._turns, correcting, written])

        async def produce() -> dict[str, Any]:
            return await self._run(cells, correcting=correcting)

        found = await self.journal.once_json(key, "notebook", produce) if self.journal is not None else await produce()
        return self._take(found, cells, correcting=correcting)

    async def _run(self, cells: Sequence[Cell], *, correcting: bool) -> dict[str, Any]:
        session = await self._at_work()
        self._told.clear()
        before = len(session.notebook.cells)
        fixing = correcting and session.notebook.failing is not None
        first = cells[0] if cells else None
        if fixing and isinstance(first, PythonCell):
            step = await session.correct(first)
            before -= 1
        else:
            step = await session.run(cells)
        return self._packed(session.notebook, step, before if self.cells else 0)

    def _packed(self, notebook: Notebook, step: Step, since: int) -> dict[str, Any]:
        return {
            "results": [_result(result) for result in step.results],
            "notice": step.notice,
            "cells": ipynb(notebook)["cells"][since:],
            "facts": dict(notebook.facts),
            "events": [[type(event).__name__, dict(vars(event))] for event in self._told],
        }

    def _take(self, found: Mapping[str, Any], cells: Sequence[Cell], *, correcting: bool) -> Ran:
        results = found["results"]
        if correcting and self.cells:
            self.cells.pop()
        self.cells += found["cells"]
        self.facts = found["facts"]
        done = zip(cells, results, strict=False)
        self._standing += [cell for cell, result in done if result["ok"]]
        for kind, body in found["events"]:
            self.emit(KINDS[kind](**body))
        return Ran(results=tuple(results), waiting=tuple(cells[len(results) :]), notice=found["notice"])

    async def _at_work(self) -> NotebookSession:
        """A session that stands where the notebook stands."""
        if self._session is None:
            self._session = await self._stack.enter_async_context(self.open(self._hear))
            if self._standing:
                await self._session.run(self._standing)
        return self._session

    def _hear(self, event: Event) -> None:
        if type(event).__name__ in KINDS:
            self._told.append(event)


def _result(result: Result) -> dict[str, Any]:
    kind = "markdown" if isinstance(result.cell, MarkdownCell) else "python"
    return {"kind": kind, "source": result.cell.source, "ok": result.ok, "report": result.report}
