"""The notebooks behind the leaves of a tree: describe them and copy them."""

import shutil
from pathlib import Path

from foretell.forecasters.tree.proposition import Tree
from foretell.frozen import frozen
from foretell.number_text import percent
from foretell.questions.errors import InputError
from foretell.tools.notebook.notebook_file import conclusion_of, data_path, read_notebook


@frozen
class NotebookState:
    """One notebook of a tree."""

    claim: str
    file: str
    p: float | None = None
    """The probability concluded from it."""
    cells: int = 0
    data_bytes: int | None = None
    """Size of its data; None without data."""
    state: str = ""
    """The result of running it again, or what is wrong with it."""
    ok: bool = True

    def __str__(self) -> str:
        data = "no data" if self.data_bytes is None else f"{self.data_bytes:,} bytes of data"
        state = f": {self.state}" if self.state else ""
        return f"{self.claim} {percent(self.p, 1)} {self.file}, {self.cells} cells, {data}{state}"


def notebook_names(tree: Tree) -> dict[str, str]:
    """Map leaf → its notebook, as the tree names it."""
    names = {id: node.grounding.notebook for id, node in tree.nodes.items() if node.grounding is not None}
    return {id: name for id, name in names.items() if name}


def copy_notebook(notebook: Path, folder: Path) -> list[Path]:
    """Copy a notebook with its data into a folder, and return the copies."""
    folder.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copy(file, folder / file.name)) for file in (notebook, data_path(notebook)) if file.is_file()]


def notebook_state(tree: Path, id: str, name: str) -> NotebookState:
    """Describe a notebook of a tree."""
    folder = tree.parent.resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        return NotebookState(claim=id, file=name, state="it is outside the folder of the tree", ok=False)
    try:
        document = read_notebook(path)
    except InputError as error:
        return NotebookState(claim=id, file=name, state=str(error), ok=False)
    data = data_path(path)
    p = conclusion_of(document).get("p")
    return NotebookState(
        claim=id,
        file=name,
        p=p if isinstance(p, float) else None,
        cells=len(document["cells"]),
        data_bytes=data.stat().st_size if data.is_file() else None,
        state="" if data.is_file() else "the data that it read was not saved; research the leaf again to save it",
    )
