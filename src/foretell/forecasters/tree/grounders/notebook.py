"""The grounder `notebook`: a model writes and runs notebook cells in a sandbox, then concludes."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grounders.search import CONCLUSION_SCHEMA, grounding_from_answer, leaf_task
from foretell.forecasters.tree.grow.ground import GroundingResult, Leaf
from foretell.forecasters.tree.grow.prompting import TEXT, StructuredRequest, fill_prompts
from foretell.models.canonical import content_key
from foretell.models.journal import Journal
from foretell.models.model import AssistantMessage, Message, UserMessage
from foretell.models.structured_output import UnusableReply, closed_object
from foretell.questions import trace as kinds
from foretell.questions.trace import EmitEvent, ToolUsed, TraceEvent
from foretell.tools.fence import FencedTools
from foretell.tools.notebook.endpoints import PATHS, Endpoint, fenced_tool_endpoint, summarize_endpoints
from foretell.tools.notebook.notebook import (
    MarkdownCell,
    Notebook,
    NotebookCell,
    PythonCell,
    ipynb,
    report_for_prompt,
    shortened,
)
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.session import CellResult, NotebookSession, open_notebook, write_notebook

# A notebook whose every turn is in the journal: a tree that is grown again reads the results and runs nothing.
#
# What a cell prints may differ from run to run (times, memory, chance), and the model's next words hang on it. So what
# came of a turn is stored before it is used. Only when a new turn has to be run after stored ones is a kernel started,
# and brought to where the notebook stands.

OpenSession = Callable[[EmitEvent], AbstractAsyncContextManager[NotebookSession]]
REPLAYED_EVENTS: Mapping[str, type[TraceEvent]] = {
    kind.__name__: kind for kind in (kinds.ModelCalled, kinds.ToolUsed, kinds.LeakBlocked)
}
"""Events that can occur while cells run; they are emitted again when a turn is replayed from the journal."""


@dataclass(frozen=True, kw_only=True)
class NotebookTurn:
    """The results of running the cells of one turn."""

    results: tuple[Mapping[str, Any], ...]
    """For each cell that was run: kind, source, ok, report."""
    waiting: tuple[NotebookCell, ...] = ()
    """Cells that were not run because an earlier one failed."""
    notice: str = ""

    @property
    def failed(self) -> Mapping[str, Any] | None:
        """The cell that failed, which is always the last one; None if all succeeded."""
        return self.results[-1] if self.results and not self.results[-1]["ok"] else None


@dataclass
class JournaledNotebook:
    """One notebook. Use it as an async context manager, so that its kernel is released at the end."""

    open: OpenSession
    journal: Journal | None
    slot: str
    emit: EmitEvent
    cells: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The cells so far, in the format of an `.ipynb` file."""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    data: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Data requests made by the cells, with the responses."""
    _completed_cells: list[NotebookCell] = field(default_factory=list[NotebookCell])
    """Cells that ran to completion; a new kernel has to run them first."""
    _session: NotebookSession | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _events: list[TraceEvent] = field(default_factory=list[TraceEvent])
    _turns: int = 0

    async def __aenter__(self) -> "JournaledNotebook":
        """Return the notebook itself; a kernel is started only when one is needed."""
        return self

    async def __aexit__(self, *problem: object) -> None:
        """Release the kernel."""
        await self._stack.aclose()

    def document(self) -> dict[str, Any]:
        """Return the notebook as the content of an `.ipynb` file."""
        whole = ipynb(Notebook(facts=self.facts))
        return {**whole, "cells": [{**cell, "id": f"cell-{n}"} for n, cell in enumerate(self.cells, start=1)]}

    async def run(self, cells: Sequence[NotebookCell], *, correcting: bool = False) -> NotebookTurn:
        """Add cells and run them until one fails.

        If `correcting`, the first cell replaces the last one, which failed, and the others are those that waited for
        it.
        """
        self._turns += 1
        written = [[type(cell).__name__, cell.source] for cell in cells]
        key = content_key(["notebook", self.slot, self._turns, correcting, written])

        async def produce() -> dict[str, Any]:
            return await self._run(cells, correcting=correcting)

        found = await self.journal.once_json(key, "notebook", produce) if self.journal is not None else await produce()
        results = found["results"]
        if correcting and self.cells:
            self.cells.pop()
        self.cells += found["cells"]
        self.facts = found["facts"]
        self.data += found.get("data", ())  # Journals of older versions do not have it.
        done = zip(cells, results, strict=False)
        self._completed_cells += [cell for cell, result in done if result["ok"]]
        for kind, body in found["events"]:
            self.emit(REPLAYED_EVENTS[kind](**body))
        return NotebookTurn(results=tuple(results), waiting=tuple(cells[len(results) :]), notice=found["notice"])

    async def _run(self, cells: Sequence[NotebookCell], *, correcting: bool) -> dict[str, Any]:
        session = await self._current_session()
        self._events.clear()
        before, asked = len(session.notebook.cells), len(session.exchanges)
        fixing = correcting and session.notebook.failing is not None
        first = cells[0] if cells else None
        if fixing and isinstance(first, PythonCell):
            step = await session.correct(first)
            before -= 1
        else:
            step = await session.run(cells)
        return {
            "results": [_result(result) for result in step.results],
            "notice": step.notice,
            "cells": ipynb(session.notebook)["cells"][before if self.cells else 0 :],
            "facts": dict(session.notebook.facts),
            "data": list(session.exchanges[asked:]),
            "events": [[type(event).__name__, dict(vars(event))] for event in self._events],
        }

    async def _current_session(self) -> NotebookSession:
        """Return a session in which every completed cell has been run."""
        if self._session is None:
            self._session = await self._stack.enter_async_context(self.open(self._on_event))
            if self._completed_cells:
                await self._session.run(self._completed_cells)
        return self._session

    def _on_event(self, event: TraceEvent) -> None:
        if type(event).__name__ in REPLAYED_EVENTS:
            self._events.append(event)


def _result(result: CellResult) -> dict[str, Any]:
    kind = "markdown" if isinstance(result.cell, MarkdownCell) else "python"
    return {"kind": kind, "source": result.cell.source, "ok": result.ok, "report": result.report}


CELL = closed_object({"kind": {"type": "string", "enum": ["python", "markdown"]}, "source": TEXT})
CELLS = closed_object({"cells": {"type": "array", "items": CELL, "maxItems": 12}, "finished": {"type": "boolean"}})
CORRECTION = closed_object({"source": TEXT})
LONGEST_TURN = 16_000
"""Maximum number of characters of all results of one turn."""
LONGEST_SOURCE = 20_000
MOST_GIVEN_UP = 2
"""Number of cells that could not be fixed after which the notebook ends."""
CORRECT = (
    "Cell {number} failed; the cells after it have not been run. Answer with one JSON object: `source`, the corrected "
    "code of this one cell, complete."
)


@dataclass(frozen=True, kw_only=True)
class NotebookGrounder:
    """Has a model write cells, fix those that fail, and conclude."""

    pool: KernelPool
    """Sandboxed kernels. The caller that created the pool opens and closes it."""
    endpoints: Sequence[Endpoint] = ()
    """Data endpoints besides the fenced search, already behind the journal and the cutoff."""
    journal: Journal | None = None
    """Journal that stores the results of each turn; None if nothing is stored."""
    save: Callable[[Leaf, int], Path] | None = None
    """Returns the path at which to save the `.ipynb` of a leaf and trial; None if notebooks are not saved."""
    base: Path | None = None
    """Directory to which the notebook paths in the tree are relative."""
    steps: int = 20
    """Maximum number of turns."""
    tries: int = 5
    """Maximum number of corrections of one cell."""
    name: str = "notebook"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Run a notebook for the claim, save it, and return the grounding."""
        toolbox = context.tools_for(leaf.fenced)

        def opened(emit: EmitEvent) -> AbstractAsyncContextManager[NotebookSession]:
            # A toolbox of its own: what its fence withholds is reported with the turn in which it happened.
            own = replace(context, emit=emit).tools_for(leaf.fenced)
            return open_notebook(self.pool, context.as_of, self._offered(own), emit=emit)

        async with JournaledNotebook(opened, self.journal, leaf.slot, context.emit) as book:
            session = _NotebookConversation(self, leaf, context, book, _data(self._offered(toolbox), leaf))
            await session.work()
            found = await session.conclude()
        grounder = f"{self.name}+clairvoyant" if toolbox.clairvoyant else self.name
        sources = tuple(str(source).strip()[:300] for source in found["sources"][:30])
        grounded = grounding_from_answer(found, grounder, sources)
        book.facts = {**book.facts, "conclusion": _conclusion(leaf, grounded)}
        return replace(grounded, grounding=replace(grounded.grounding, notebook=self._saved(leaf, context.trial, book)))

    def _offered(self, toolbox: FencedTools) -> list[Endpoint]:
        names = [spec.name for spec in toolbox.specs() if spec.name in PATHS]
        return [*(fenced_tool_endpoint(toolbox, name) for name in names), *self.endpoints]

    def _saved(self, leaf: Leaf, trial: int, book: JournaledNotebook) -> str:
        if self.save is None or not book.cells:
            return ""
        path = self.save(leaf, trial)
        write_notebook(path, book.document(), book.data)
        return path.relative_to(self.base).as_posix() if self.base is not None else str(path)


def _conclusion(leaf: Leaf, grounded: GroundingResult) -> dict[str, Any]:
    return {"claim": leaf.claim, "p": grounded.p, "key_factor": grounded.grounding.key_factor}


def _data(endpoints: Sequence[Endpoint], leaf: Leaf) -> str:
    if not endpoints:
        return "There is no outside data: work with what you know."
    directory = "\n".join(f"- {summarize_endpoints(endpoint)}" for endpoint in endpoints)
    return fill_prompts("notebook_data", today=leaf.tree_question.today, directory=directory)


class _NotebookConversation:
    """The model's conversation over one notebook."""

    def __init__(
        self, grounder: NotebookGrounder, leaf: Leaf, context: Context, book: JournaledNotebook, data: str
    ) -> None:
        self._grounder = grounder
        self._leaf = leaf
        self._context = context
        self._book = book
        self._messages: list[Message] = []
        self._system = fill_prompts(
            "ground_role", "ground_notebook", "rules", steps=grounder.steps, data=data, today=leaf.tree_question.today
        )
        self._given_up = 0

    async def work(self) -> None:
        """Run turns until the model is finished, the turns or the budget run out, or too many cells were given up."""
        for step in range(1, self._grounder.steps + 1):
            found = await self._ask(f"cells {step}", CELLS, _usable)
            cells = [_cell(one) for one in found["cells"]]
            ran = await self._book.run(cells) if cells else NotebookTurn(results=())
            self._record(found, step, ran)
            await self._correct(step, ran)
            if found["finished"] or self._leaf.budget.nearly_spent or self._given_up >= MOST_GIVEN_UP:
                return

    async def conclude(self) -> Mapping[str, Any]:
        """Ask for the conclusion: report, key factor, sources and probability."""
        self._messages.append(UserMessage(text=fill_prompts("notebook_conclude")))
        return await self._ask("conclusion", CONCLUSION_SCHEMA, _sound)

    async def _correct(self, step: int, ran: NotebookTurn) -> None:
        """Ask for corrections of the failed cell; after the last attempt, continue without it."""
        for attempt in range(1, self._grounder.tries + 1):
            if ran.failed is None:
                return
            number = len(self._book.cells)
            self._messages.append(UserMessage(text=CORRECT.format(number=number)))
            found = await self._ask(f"cells {step}/correction {attempt}", CORRECTION, _filled)
            corrected = PythonCell(source=str(found["source"])[:LONGEST_SOURCE])
            ran = await self._book.run((corrected, *ran.waiting), correcting=True)
            self._record(found, step, ran)
        if ran.failed is not None:
            self._given_up += 1
            self._messages.append(
                UserMessage(text="The cell is given up, and those after it are dropped. Go on another way.")
            )

    async def _ask(self, slot_suffix: str, schema: Mapping[str, Any], read: Callable[[Mapping[str, Any]], Any]) -> Any:
        request = StructuredRequest(
            role="grounder",
            slot=f"{self._leaf.slot}/{slot_suffix}",
            system=self._system,
            user=leaf_task(self._leaf),
            schema=schema,
            messages=tuple(_merged(self._messages)),
        )
        return await request.ask(self._context, read)

    def _record(self, found: Mapping[str, Any], step: int, ran: NotebookTurn) -> None:
        """Add what the model wrote, and the results, to the conversation and the trace."""
        first = len(self._book.cells) - len(ran.results)
        lines = [ran.notice] if ran.notice else []
        shown = report_for_prompt if self._context.marked else str
        lines += [
            f"Cell {first + n} ({one['kind']}, {'ran' if one['ok'] else 'FAILED'}):\n{shown(one['report'])}".rstrip()
            for n, one in enumerate(ran.results, start=1)
            if one["kind"] == "python"
        ]
        text = shortened("\n\n".join(lines), LONGEST_TURN) or "Noted."
        self._messages += [AssistantMessage(text=json.dumps(found, ensure_ascii=False)), UserMessage(text=text)]
        written = [str(one["source"]) for one in ran.results]
        failed = ran.failed is not None
        self._context.emit(
            ToolUsed(step=step, tool="notebook", arguments={"cells": written}, result=text, failed=failed)
        )


def _usable(found: Mapping[str, Any]) -> Mapping[str, Any]:
    cells = found["cells"]
    if not cells and not found["finished"]:
        raise UnusableReply("it has no cells and does not say that the notebook is finished")
    if found["finished"] and any(cell["kind"] == "python" for cell in cells):
        raise UnusableReply("a last answer has no python cells: their results would not be seen")
    for cell in cells:
        if len(cell["source"]) > LONGEST_SOURCE:
            raise UnusableReply(f"a cell has more than {LONGEST_SOURCE} characters")
    return found


def _filled(found: Mapping[str, Any]) -> Mapping[str, Any]:
    if not str(found["source"]).strip():
        raise UnusableReply("the cell is empty")
    return found


def _sound(found: Mapping[str, Any]) -> Mapping[str, Any]:
    grounding_from_answer(found, "")
    return found


def _cell(found: Mapping[str, Any]) -> NotebookCell:
    source = str(found["source"])
    return PythonCell(source=source) if found["kind"] == "python" else MarkdownCell(source=source)


def _merged(messages: Sequence[Message]) -> list[Message]:
    """Merge consecutive user messages into one, because some providers insist on alternating roles."""
    found: list[Message] = []
    for message in messages:
        last = found[-1] if found else None
        if isinstance(message, UserMessage) and isinstance(last, UserMessage):
            found[-1] = UserMessage(text=f"{last.text}\n\n{message.text}")
        else:
            found.append(message)
    return found
