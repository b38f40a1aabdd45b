"""The notebook grounder: a model works like an analyst, in cells that run in a sandbox, and concludes from them."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foretell.forecasters.agent.context import AgentContext
from foretell.forecasters.tree.grounders.conclusion import SCHEMA, concluded
from foretell.forecasters.tree.grounders.kept_notebook import KeptNotebook, Ran
from foretell.forecasters.tree.grounders.plain import task_of
from foretell.forecasters.tree.growing.asking import TEXT, Asker, Unfit, Wanted, shape
from foretell.forecasters.tree.growing.ground import Grounded, Leaf
from foretell.forecasters.tree.prompts import told
from foretell.llm.message import Assistant, Message, User
from foretell.questions.event import Emit, ToolUsed
from foretell.tools.kept import Once
from foretell.tools.notebook.endpoint import Endpoint, summary
from foretell.tools.notebook.endpoints.fenced import PATHS, FencedTool
from foretell.tools.notebook.notebook import Cell, MarkdownCell, PythonCell
from foretell.tools.notebook.outputs import shortened
from foretell.tools.notebook.pool import Pool
from foretell.tools.notebook.session import NotebookSession, open_notebook

CELL = shape({"kind": {"type": "string", "enum": ["python", "markdown"]}, "source": TEXT})
CELLS = shape({"cells": {"type": "array", "items": CELL, "maxItems": 12}, "finished": {"type": "boolean"}})
CORRECTION = shape({"source": TEXT})
LONGEST_TURN = 16_000
"""Characters of all results of one turn."""
LONGEST_SOURCE = 20_000
MOST_GIVEN_UP = 2
"""Cells that could not be mended; after so many the notebook ends."""
CORRECT = (
    "Cell {number} failed; the cells after it have not been run. Answer with one JSON object: `source`, the corrected "
    "code of this one cell, complete."
)


@dataclass(frozen=True, kw_only=True)
class InNotebook:
    """Writes cells, mends what fails, concludes."""

    pool: Pool
    """Kernels in their sandboxes; opened and closed by whoever made it."""
    endpoints: Sequence[Endpoint] = ()
    """Data besides the fenced search, already behind journal and cutoff."""
    journal: Once | None = None
    """Keeps what came of each turn."""
    save: Callable[[Leaf, int], Path] | None = None
    """Where the `.ipynb` of a leaf and trial goes; None writes none."""
    base: Path | None = None
    """Notebooks are named in the tree relative to this directory."""
    steps: int = 20
    """Turns in all."""
    tries: int = 5
    """Corrected versions of one cell."""

    @property
    def name(self) -> str:
        """As it stands in the tree."""
        return "notebook"

    async def ground(self, leaf: Leaf, context: AgentContext) -> Grounded:
        """What the notebook came to; the notebook itself is saved."""
        toolbox = context.toolbox(leaf.fenced, context)
        offered = [spec.name for spec in toolbox.specs() if spec.name in PATHS]
        listed = [*(FencedTool(toolbox=toolbox, tool=name) for name in offered), *self.endpoints]
        book = KeptNotebook(open=self._opener(leaf, context), journal=self.journal, slot=leaf.slot, emit=context.emit)
        async with book:
            session = _Analyst(self, leaf, context, book, _data(listed, leaf))
            await session.work()
            found = await session.conclude()
        grounder = f"{self.name}+clairvoyant" if toolbox.clairvoyant else self.name
        sources = tuple(str(source).strip()[:300] for source in found["sources"][:30])
        grounded = concluded(found, grounder, sources)
        return replace(grounded, grounding=replace(grounded.grounding, notebook=self._saved(leaf, context.trial, book)))

    def _opener(
        self, leaf: Leaf, context: AgentContext
    ) -> Callable[[Emit], AbstractAsyncContextManager[NotebookSession]]:
        def opened(emit: Emit) -> AbstractAsyncContextManager[NotebookSession]:
            # A toolbox of its own: what its fence withholds is heard with the turn in which it was.
            toolbox = context.toolbox(leaf.fenced, replace(context, emit=emit))
            offered = [spec.name for spec in toolbox.specs() if spec.name in PATHS]
            fenced = [FencedTool(toolbox=toolbox, tool=name) for name in offered]
            return open_notebook(self.pool, context.as_of, [*fenced, *self.endpoints], emit=emit)

        return opened

    def _saved(self, leaf: Leaf, trial: int, book: KeptNotebook) -> str:
        if self.save is None or not book.cells:
            return ""
        from foretell.sources.whole_file import write_whole

        path = self.save(leaf, trial)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(book.document(), ensure_ascii=False, indent=1)
        write_whole(path, text.encode("utf-8", "replace") + b"\n")
        return path.relative_to(self.base).as_posix() if self.base is not None else str(path)


def _data(endpoints: Sequence[Endpoint], leaf: Leaf) -> str:
    if not endpoints:
        return "There is no outside data: work with what you know."
    directory = "\n".join(f"- {summary(endpoint)}" for endpoint in endpoints)
    return told("notebook_data", today=leaf.matter.today, directory=directory)


class _Analyst:
    """The model's conversation over one notebook."""

    def __init__(self, how: InNotebook, leaf: Leaf, context: AgentContext, book: KeptNotebook, data: str) -> None:
        self._how = how
        self._leaf = leaf
        self._context = context
        self._book = book
        self._asker = Asker(context=context, slot=leaf.slot)
        self._talk: list[Message] = []
        self._system = told(
            "ground_role", "ground_notebook", "rules", steps=how.steps, data=data, today=leaf.matter.today
        )
        self._given_up = 0

    async def work(self) -> None:
        """Turn after turn until the model has seen enough, the turns are used up, or the money runs low."""
        for step in range(1, self._how.steps + 1):
            found = await self._ask(f"cells {step}", CELLS, _usable)
            cells = [_cell(one) for one in found["cells"]]
            ran = await self._book.run(cells) if cells else Ran(results=())
            self._say(found, step, ran)
            await self._mend(step, ran)
            if found["finished"] or self._leaf.purse.low or self._given_up >= MOST_GIVEN_UP:
                return

    async def conclude(self) -> Mapping[str, Any]:
        """The report and the probability."""
        self._talk.append(User(text=told("notebook_conclude")))
        return await self._ask("conclusion", SCHEMA, _sound)

    async def _mend(self, step: int, ran: Ran) -> None:
        """Ask for the failed cell again and again, alone; after the last try the notebook goes on without it."""
        for attempt in range(1, self._how.tries + 1):
            if ran.failed is None:
                return
            number = len(self._book.cells)
            self._talk.append(User(text=CORRECT.format(number=number)))
            found = await self._ask(f"cells {step}/correction {attempt}", CORRECTION, _filled)
            ran = await self._book.correct(str(found["source"])[:LONGEST_SOURCE], ran.waiting)
            self._say(found, step, ran)
        if ran.failed is not None:
            self._given_up += 1
            self._talk.append(User(text="The cell is given up, and those after it are dropped. Go on another way."))

    async def _ask(self, place: str, schema: Mapping[str, Any], read: Callable[[Mapping[str, Any]], Any]) -> Any:
        wanted = Wanted(
            role="grounder",
            place=place,
            system=self._system,
            user=task_of(self._leaf),
            schema=schema,
            talk=tuple(_merged(self._talk)),
        )
        return await self._asker.ask(wanted, read)

    def _say(self, found: Mapping[str, Any], step: int, ran: Ran) -> None:
        """Keep what the model wrote and what came of it; the same goes on record."""
        first = len(self._book.cells) - len(ran.results)
        lines = [ran.notice] if ran.notice else []
        lines += [
            f"Cell {first + n} ({one['kind']}, {'ran' if one['ok'] else 'FAILED'}):\n{one['report']}".rstrip()
            for n, one in enumerate(ran.results, start=1)
            if one["kind"] == "python"
        ]
        text = shortened("\n\n".join(lines), LONGEST_TURN) or "Noted."
        self._talk += [Assistant(text=json.dumps(found, ensure_ascii=False)), User(text=text)]
        written = [str(one["source"]) for one in ran.results]
        failed = ran.failed is not None
        self._context.emit(
            ToolUsed(step=step, tool="notebook", arguments={"cells": written}, result=text, failed=failed)
        )


def _usable(found: Mapping[str, Any]) -> Mapping[str, Any]:
    cells = found["cells"]
    if not cells and not found["finished"]:
        raise Unfit("it has no cells and does not say that the notebook is finished")
    if found["finished"] and any(cell["kind"] == "python" for cell in cells):
        raise Unfit("a last answer has no python cells: their results would not be seen")
    for cell in cells:
        if len(cell["source"]) > LONGEST_SOURCE:
            raise Unfit(f"a cell has more than {LONGEST_SOURCE} characters")
    return found


def _filled(found: Mapping[str, Any]) -> Mapping[str, Any]:
    if not str(found["source"]).strip():
        raise Unfit("the cell is empty")
    return found


def _sound(found: Mapping[str, Any]) -> Mapping[str, Any]:
    concluded(found, "")
    return found


def _cell(found: Mapping[str, Any]) -> Cell:
    source = str(found["source"])
    return PythonCell(source=source) if found["kind"] == "python" else MarkdownCell(source=source)


def _merged(talk: Sequence[Message]) -> list[Message]:
    """Two things we say in a row are one: some providers insist on taking turns."""
    found: list[Message] = []
    for message in talk:
        last = found[-1] if found else None
        if isinstance(message, User) and isinstance(last, User):
            found[-1] = User(text=f"{last.text}\n\n{message.text}")
        else:
            found.append(message)
    return found
