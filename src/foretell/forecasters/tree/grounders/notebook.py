"""The grounder `notebook`: a model writes and runs notebook cells in a sandbox, then concludes."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grounders.search import CONCLUSION_SCHEMA, grounding_from_answer, leaf_task
from foretell.forecasters.tree.grow.ground import GroundingResult, Leaf
from foretell.forecasters.tree.grow.prompting import TEXT, StructuredRequest, fill_prompts
from foretell.frozen import frozen
from foretell.models.canonical import content_key
from foretell.models.journal import Journal
from foretell.models.model import AssistantMessage, Message, UserMessage
from foretell.models.structured_output import UnusableReply, closed_object
from foretell.questions import trace as kinds
from foretell.questions.trace import EmitEvent, ToolUsed, TraceEvent
from foretell.tools.leakage_filter import FilteredTools
from foretell.tools.notebook.endpoints import PATHS, Endpoint, filtered_tool_endpoint, summarize_endpoints
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

# A notebook whose turns are stored in the journal: growing a tree again reads the results and runs nothing.
#
# The output of a cell may differ between runs (times, memory, random numbers), and the model's next reply depends on
# it. Therefore the results of a turn are stored before they are used. A kernel is started only if a new turn follows
# stored ones; it first runs the completed cells.

OpenSession = Callable[[EmitEvent], AbstractAsyncContextManager[NotebookSession]]
REPLAYED_EVENTS: Mapping[str, type[TraceEvent]] = {
    kind.__name__: kind for kind in (kinds.ModelCalled, kinds.ToolUsed, kinds.LeakBlocked)
}
"""Events that can occur while cells run; they are emitted again when a turn is replayed from the journal."""


@frozen
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

    @property
    def ran(self) -> bool:
        """Whether any code ran to completion."""
        return any(isinstance(cell, PythonCell) for cell in self._completed_cells)

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
        sources = [[type(cell).__name__, cell.source] for cell in cells]
        key = content_key(["notebook", self.slot, self._turns, correcting, sources])

        async def produce() -> dict[str, Any]:
            return await self._run(cells, correcting=correcting)

        turn = await self.journal.once_json(key, "notebook", produce) if self.journal is not None else await produce()
        results = turn["results"]
        if correcting and self.cells:
            self.cells.pop()
        self.cells += turn["cells"]
        self.facts = turn["facts"]
        self.data += turn.get("data", ())  # Journals of older versions do not have it.
        done = zip(cells, results, strict=False)
        self._completed_cells += [cell for cell, result in done if result["ok"]]
        for kind, body in turn["events"]:
            self.emit(REPLAYED_EVENTS[kind](**body))
        return NotebookTurn(results=tuple(results), waiting=tuple(cells[len(results) :]), notice=turn["notice"])

    async def _run(self, cells: Sequence[NotebookCell], *, correcting: bool) -> dict[str, Any]:
        session = await self._current_session()
        self._events.clear()
        before, exchanged = len(session.notebook.cells), len(session.exchanges)
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
            "data": list(session.exchanges[exchanged:]),
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


@frozen
class NotebookGrounder:
    """Has a model write cells, fix those that fail, and conclude."""

    pool: KernelPool
    """Sandboxed kernels. The caller that created the pool opens and closes it."""
    endpoints: Sequence[Endpoint] = ()
    """Data endpoints besides the filtered search, already behind the journal and the cutoff."""
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
        toolbox = context.tools_for(leaf.tool_question)

        def opened(emit: EmitEvent) -> AbstractAsyncContextManager[NotebookSession]:
            # A separate toolbox, so that blocked texts are reported with the turn in which they were requested.
            own = replace(context, emit=emit).tools_for(leaf.tool_question)
            return open_notebook(self.pool, context.as_of, self._endpoints(own), emit=emit)

        async with JournaledNotebook(opened, self.journal, leaf.slot, context.emit) as notebook:
            session = _NotebookConversation(self, leaf, context, notebook, _data(self._endpoints(toolbox), leaf))
            await session.work()
            conclusion = await session.conclude()
        grounder = toolbox.marked_name(self.name)
        sources = tuple(str(source).strip()[:300] for source in conclusion["sources"][:30])
        grounded = grounding_from_answer(conclusion, grounder, sources)
        notebook.facts = {**notebook.facts, "conclusion": _conclusion(leaf, grounded)}
        path = self._saved(leaf, context.trial, notebook)
        caveat = "" if notebook.ran else "no cell of its notebook ran"
        return replace(grounded, grounding=replace(grounded.grounding, notebook=path, caveat=caveat))

    def _endpoints(self, toolbox: FilteredTools) -> list[Endpoint]:
        names = [spec.name for spec in toolbox.specs() if spec.name in PATHS]
        return [*(filtered_tool_endpoint(toolbox, name) for name in names), *self.endpoints]

    def _saved(self, leaf: Leaf, trial: int, notebook: JournaledNotebook) -> str:
        """Save the notebook and return its path for the tree; empty if it is not saved."""
        if self.save is None or not notebook.cells:
            return ""
        path = self.save(leaf, trial)
        write_notebook(path, notebook.document(), notebook.data)
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
        self, grounder: NotebookGrounder, leaf: Leaf, context: Context, notebook: JournaledNotebook, data: str
    ) -> None:
        self._grounder = grounder
        self._leaf = leaf
        self._context = context
        self._notebook = notebook
        self._messages: list[Message] = []
        self._system = fill_prompts(
            "ground_role", "ground_notebook", "rules", steps=grounder.steps, data=data, **leaf.tree_question.rule_values
        )
        self._given_up = 0

    async def work(self) -> None:
        """Run turns until the model is finished, the turns or the budget run out, or too many cells were given up."""
        for step in range(1, self._grounder.steps + 1):
            answer = await self._ask(f"cells {step}", CELLS, _usable)
            cells = [_cell(cell) for cell in answer["cells"]]
            began = time.time()
            ran = await self._notebook.run(cells) if cells else NotebookTurn(results=())
            self._record(answer, step, ran, began)
            await self._correct(step, ran)
            if answer["finished"] or self._leaf.budget.nearly_spent or self._given_up >= MOST_GIVEN_UP:
                return

    async def conclude(self) -> Mapping[str, Any]:
        """Ask for the conclusion: report, key factor, sources and probability."""
        self._messages.append(UserMessage(text=fill_prompts("notebook_conclude")))
        return await self._ask("conclusion", CONCLUSION_SCHEMA, _valid_conclusion)

    async def _correct(self, step: int, ran: NotebookTurn) -> None:
        """Ask for corrections of the failed cell; after the last attempt, continue without it."""
        for attempt in range(1, self._grounder.tries + 1):
            if ran.failed is None:
                return
            number = len(self._notebook.cells)
            self._messages.append(UserMessage(text=CORRECT.format(number=number)))
            answer = await self._ask(f"cells {step}/correction {attempt}", CORRECTION, _not_empty)
            corrected = PythonCell(source=str(answer["source"])[:LONGEST_SOURCE])
            began = time.time()
            ran = await self._notebook.run((corrected, *ran.waiting), correcting=True)
            self._record(answer, step, ran, began)
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

    def _record(self, answer: Mapping[str, Any], step: int, ran: NotebookTurn, began: float) -> None:
        """Add what the model wrote, and the results, to the conversation and the trace."""
        first = len(self._notebook.cells) - len(ran.results)
        lines = [ran.notice] if ran.notice else []
        shown = report_for_prompt if self._context.marked else str
        for n, result in enumerate(ran.results, start=1):
            if result["kind"] == "python":
                state = "ran" if result["ok"] else "FAILED"
                lines.append(f"Cell {first + n} (python, {state}):\n{shown(result['report'])}".rstrip())
        text = shortened("\n\n".join(lines), LONGEST_TURN) or "Noted."
        self._messages += [AssistantMessage(text=json.dumps(answer, ensure_ascii=False)), UserMessage(text=text)]
        sources = [str(result["source"]) for result in ran.results]
        failed = ran.failed is not None
        self._context.emit(
            ToolUsed(step=step, tool="notebook", arguments={"cells": sources}, result=text, failed=failed).since(began)
        )


def _usable(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    cells = answer["cells"]
    if not cells and not answer["finished"]:
        raise UnusableReply("it has no cells and does not say that the notebook is finished")
    if answer["finished"] and any(cell["kind"] == "python" for cell in cells):
        raise UnusableReply("a last answer has no python cells: their results would not be seen")
    for cell in cells:
        if len(cell["source"]) > LONGEST_SOURCE:
            raise UnusableReply(f"a cell has more than {LONGEST_SOURCE} characters")
    return answer


def _not_empty(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    if not str(answer["source"]).strip():
        raise UnusableReply("the cell is empty")
    return answer


def _valid_conclusion(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    grounding_from_answer(answer, "")
    return answer


def _cell(fields: Mapping[str, Any]) -> NotebookCell:
    source = str(fields["source"])
    return PythonCell(source=source) if fields["kind"] == "python" else MarkdownCell(source=source)


def _merged(messages: Sequence[Message]) -> list[Message]:
    """Merge consecutive user messages into one, because some providers insist on alternating roles."""
    merged: list[Message] = []
    for message in messages:
        last = merged[-1] if merged else None
        if isinstance(message, UserMessage) and isinstance(last, UserMessage):
            merged[-1] = UserMessage(text=f"{last.text}\n\n{message.text}")
        else:
            merged.append(message)
    return merged
