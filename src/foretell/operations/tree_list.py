"""List the trees of claims."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from foretell.forecasters.tree.text import one_line
from foretell.frozen import frozen
from foretell.number_text import percent
from foretell.operations.requests.trees import TreeListRequest
from foretell.report.result import Result, show_table
from foretell.report.terminal import TextColumn, show_text
from foretell.runs.settings import Settings, load_settings
from foretell.runs.tree_files import ListedTree, listed_trees, tree_folder


@frozen
class TreesResult(Result):
    """The trees in a folder."""

    lines = "trees"
    folder: Path
    trees: tuple[ListedTree, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the folder, and the trees with the time of their last change as text."""
        trees = [{**asdict(tree), "changed": tree.changed.isoformat()} for tree in self.trees]
        return {"folder": str(self.folder), "trees": trees}

    def print(self, console: Console) -> None:
        """Print a table, or how to grow a first tree."""
        if not self.trees:
            show_text(
                console, f'No tree in {self.folder} yet. Grow one: foretell tree grow "CLAIM" --model provider:name\n'
            )
            return
        columns: dict[TextColumn, str | Callable[[Any], object]] = {
            TextColumn(head="tree"): lambda row: row.name,
            TextColumn(head="p", right=True): lambda row: "" if row.problem else percent(row.p, 1),
            TextColumn(head="claims", right=True, drop=2): lambda row: row.claims or "",
            TextColumn(head="changed", drop=1): lambda row: f"{row.changed:%Y-%m-%d}",
            TextColumn(head="claim", shrink=30): lambda row: one_line(row.problem or row.claim),
        }
        show_table(console, self.trees, columns)


def list_trees(request: TreeListRequest, settings: Settings | None = None) -> TreesResult:
    """List the tree files of this machine, the last changed first, with the reason if one cannot be read."""
    del request
    settings = settings or load_settings()
    return TreesResult(folder=tree_folder(settings), trees=listed_trees(settings))
