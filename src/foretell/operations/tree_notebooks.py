"""The notebooks behind a tree: where they are, copies of them with their data, and whether they still say the same."""

import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from foretell.forecasters.tree.exports import format_probability
from foretell.forecasters.tree.tree_file import read_tree_file
from foretell.operations.requests import TreeNotebookRequest
from foretell.operations.result import Result
from foretell.questions.errors import InputError
from foretell.runs.settings import Settings
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.rerun import conclusion_of, data_path, read_notebook, rerun_notebook


@dataclass(frozen=True, kw_only=True)
class NotebookState:
    """One notebook of a tree."""

    claim: str
    file: str
    p: float | None = None
    """What was concluded from it."""
    cells: int = 0
    data_bytes: int | None = None
    """Of the data beside it; None where there is none."""
    state: str = ""
    """What running it again came to, or what is wrong with it."""
    ok: bool = True


@dataclass(frozen=True, kw_only=True)
class NotebookStates(Result):
    """The notebooks of a tree."""

    notebooks: tuple[NotebookState, ...]
    folder: Path | None = None

    @property
    def ok(self) -> bool:
        """Whether every notebook is there, and said the same where it was run again."""
        return all(one.ok for one in self.notebooks)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the copies are."""
        return (f"Wrote {self.folder}",) if self.folder is not None else ()

    def rows(self) -> list[dict[str, Any]]:
        """One row for each notebook."""
        return [asdict(one) for one in self.notebooks]

    def __str__(self) -> str:
        lines: list[str] = []
        for one in self.notebooks:
            data = "no data" if one.data_bytes is None else f"{one.data_bytes:,} bytes of data"
            told = f": {one.state}" if one.state else ""
            lines.append(f"{one.claim} {format_probability(one.p)} {one.file}, {one.cells} cells, {data}{told}")
        return "\n".join(lines)


async def check_notebooks(request: TreeNotebookRequest, settings: Settings | None = None) -> NotebookStates:
    """The notebooks of the tree in a file: listed, copied with their data, or run again and compared."""
    tree = read_tree_file(request.file).tree
    named: dict[str, str] = {}
    for id, node in tree.nodes.items():
        if node.grounding is not None and node.grounding.notebook:
            named[id] = node.grounding.notebook
    for id in request.claims:
        if id not in named:
            known = ", ".join(named) or "there are none"
            raise InputError(f"{id[:80]} has no notebook", path=request.file, hint=f"leaves with notebooks: {known}")
    chosen = {id: name for id, name in named.items() if not request.claims or id in request.claims}
    if not chosen:
        hint = "they come from foretell tree grow or ground with --grounder notebook"
        raise InputError("no leaf of this tree has a notebook", path=request.file, hint=hint)
    found = [_state(request, id, name) for id, name in chosen.items()]
    if not request.verify:
        return NotebookStates(notebooks=tuple(found), folder=request.folder)
    async with KernelPool(warm=0, most=1, unsandboxed=request.unsandboxed) as pool:
        done = [await _verified(one, request.file.parent / one.file, pool) if one.ok else one for one in found]
    return NotebookStates(notebooks=tuple(done), folder=request.folder)


def _state(request: TreeNotebookRequest, id: str, name: str) -> NotebookState:
    """A notebook as it lies beside its tree, copied where that is wanted."""
    top = request.file.parent.resolve()
    path = (top / name).resolve()
    if not path.is_relative_to(top):
        return NotebookState(claim=id, file=name, state="it lies outside the folder of the tree", ok=False)
    try:
        document = read_notebook(path)
    except InputError as error:
        return NotebookState(claim=id, file=name, state=str(error), ok=False)
    beside = data_path(path)
    there = beside.is_file()
    if request.folder is not None:
        request.folder.mkdir(parents=True, exist_ok=True)
        for one in (path, beside) if there else (path,):
            shutil.copyfile(one, request.folder / one.name)
    said = conclusion_of(document).get("p")
    return NotebookState(
        claim=id,
        file=name,
        p=said if isinstance(said, float) else None,
        cells=len(document["cells"]),
        data_bytes=beside.stat().st_size if there else None,
        state="" if there else "the data that it read was not kept: examine the leaf again to have it",
    )


async def _verified(state: NotebookState, path: Path, pool: KernelPool) -> NotebookState:
    try:
        ran = await rerun_notebook(path, pool)
    except InputError as error:
        return replace(state, state=str(error), ok=False)
    if ran.same:
        return replace(state, state=f"run again, {ran.cells} cells say the same")
    places = ", ".join(map(str, ran.differing))
    return replace(state, state=f"run again, another output in cell {places}", ok=False)
