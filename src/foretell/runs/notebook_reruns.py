"""Run the notebooks behind the leaves of a tree again, and compare their outputs."""

from dataclasses import replace
from pathlib import Path

from foretell.forecasters.tree.tree_file import read_tree_file
from foretell.questions.errors import InputError
from foretell.runs.tree_notebooks import NotebookState, notebook_names, notebook_state
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.session import rerun_notebook


async def _verified(state: NotebookState, path: Path, pool: KernelPool) -> NotebookState:
    try:
        ran = await rerun_notebook(path, pool)
    except InputError as error:
        return replace(state, state=str(error), ok=False)
    if ran.same:
        return replace(state, state=f"run again, {ran.cells} cells give the same output")
    places = ", ".join(map(str, ran.differing))
    return replace(state, state=f"run again, different output in cell {places}", ok=False)


async def rerun_notebooks(tree: Path, *, unsandboxed: bool = False) -> tuple[NotebookState, ...]:
    """Run every cell of a tree's notebooks again, in a sandbox without a network, and compare the outputs.

    Raises InputError if no leaf of the tree has a notebook.
    """
    names = notebook_names(read_tree_file(tree).tree)
    if not names:
        raise InputError("no leaf of this tree has a notebook", path=tree, hint="they come from --grounder notebook")
    states = [notebook_state(tree, id, name) for id, name in names.items()]
    async with KernelPool(warm=0, most=1, unsandboxed=unsandboxed) as pool:
        return tuple(
            [await _verified(state, tree.parent / state.file, pool) if state.ok else state for state in states]
        )
