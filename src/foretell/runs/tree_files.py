"""The trees in the home: find one, read it, and list them."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from foretell.forecasters.tree.arithmetic.evaluation import evaluate
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import TreeFile, read_tree_file, tree_from_dict
from foretell.frozen import frozen
from foretell.questions.errors import InputError, known_names
from foretell.runs.settings import Settings, load_settings
from foretell.tools.notebook.notebook_file import data_path


def find_tree(tree: Any, settings: Settings | None = None) -> Path:
    """Return the file of a tree: given by its file, its name, or the id or name of the run that grew it.

    Raises InputError if there is none.
    """
    if not isinstance(tree, str | Path):
        raise InputError("is not a stored tree", column="TREE", hint="give its file, or its name in foretell tree list")
    settings, text = settings or load_settings(), str(tree)
    if Path(tree).is_file():
        return Path(tree)
    known = {path.relative_to(tree_folder(settings)).with_suffix("").as_posix(): path for path in tree_files(settings)}
    name = text.removesuffix(".json")
    matches = [known[name]] if name in known else [path for key, path in known.items() if key.startswith(name)]
    if not matches and (isinstance(settings.store, str) or settings.store.exists()):
        from foretell.runs.store import RunStore

        with closing(RunStore(settings.store)) as store:
            runs = [row.id for row in store.runs() if row.name == text]
        matches = [path for key, path in known.items() if key.partition("/")[0] in runs]
    if len(matches) != 1:
        hint = (
            f"there are {', '.join(path.stem for path in matches[:5])}" if matches else known_names(name, list(known))
        )
        problem = "names several trees" if matches else "there is no such tree"
        raise InputError(problem, path=tree, hint=hint if known else "foretell tree grow creates one")
    return matches[0]


def open_tree(tree: Any, settings: Settings | None = None) -> tuple[TreeFile, Path | None]:
    """Read a stored tree, a tree as JSON or a `Tree`; also return its file, if it has one."""
    if isinstance(tree, TreeFile):
        return tree, None
    if isinstance(tree, Tree | Mapping):
        file = TreeFile(tree=tree) if isinstance(tree, Tree) else tree_from_dict(cast("dict[str, Any]", tree))
        done = evaluate(file.tree)
        return replace(file, tree=done.tree, warnings=done.warnings), None
    path = find_tree(tree, settings)
    return read_tree_file(path), path


@frozen
class ListedTree:
    """One line in the list of trees."""

    name: str
    claim: str = ""
    p: float | None = None
    claims: int = 0
    changed: datetime
    problem: str = ""
    """Why it cannot be read."""


def tree_folder(settings: Settings) -> Path:
    """Return the folder of the trees in the home."""
    return settings.home / "trees"


def tree_files(settings: Settings) -> list[Path]:
    """Return the files of the trees in the home, without the data of their notebooks, which is JSON too."""
    folder = tree_folder(settings)
    data = {data_path(notebook) for notebook in folder.rglob("*.ipynb")}
    return [path for path in folder.rglob("*.json") if path not in data]


@lru_cache(maxsize=1000)  # A server lists the same trees for every request.
def _listed(path: Path, folder: Path, changed_ns: int, size: int) -> ListedTree:
    del size  # Part of the cache key, in case the time of change has too low a resolution.
    changed = datetime.fromtimestamp(changed_ns / 1e9, UTC)
    name = path.relative_to(folder).with_suffix("").as_posix()
    try:
        tree = read_tree_file(path).tree
    except InputError as error:
        return ListedTree(name=name, changed=changed, problem=str(error))
    top = tree.nodes[tree.root]
    return ListedTree(name=name, claim=top.claim, p=top.p, claims=len(tree.nodes), changed=changed)


def listed_trees(settings: Settings) -> tuple[ListedTree, ...]:
    """Return all trees, the last changed first, with the reason if one cannot be read."""
    stats = {path: path.stat() for path in tree_files(settings)}
    latest_first = sorted(stats, key=lambda path: (stats[path].st_mtime, path), reverse=True)
    folder = tree_folder(settings)
    return tuple(_listed(path, folder, stats[path].st_mtime_ns, stats[path].st_size) for path in latest_first)
