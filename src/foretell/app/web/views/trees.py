"""The tree files of this machine."""

from dataclasses import dataclass
from pathlib import Path

from foretell.app.settings import Settings
from foretell.forecasters.tree.files.tree_file import TreeFile, read_tree_file
from foretell.questions.problems import InputError

SUFFIX = ".json"


@dataclass(frozen=True, kw_only=True)
class TreeLine:
    """One tree as listed."""

    name: str
    claim: str
    p: float | None
    claims: int
    problem: str = ""
    """Why the file cannot be used."""


@dataclass(frozen=True, kw_only=True)
class Trees:
    """All of them."""

    folder: str
    trees: tuple[TreeLine, ...]


def list_trees(settings: Settings) -> Trees:
    """Every tree file in the home, by name; one that cannot be read says why."""
    folder = tree_folder(settings)
    names = (
        sorted(path.relative_to(folder).as_posix() for path in folder.rglob(f"*{SUFFIX}")) if folder.is_dir() else []
    )
    return Trees(folder=str(folder), trees=tuple(_line(settings, name.removesuffix(SUFFIX)) for name in names))


def tree_folder(settings: Settings) -> Path:
    """Where `foretell tree` and runs put their trees."""
    return settings.home / "trees"


def tree_path(settings: Settings, name: str) -> Path:
    """The file of a tree; a name that leads out of the folder is nobody's."""
    folder = tree_folder(settings).resolve()
    try:
        path = (folder / f"{name}{SUFFIX}").resolve()
        if path.is_relative_to(folder) and path.is_file():
            return path
    except (OSError, ValueError):
        pass  # Too long for a file's name, or with characters no name may have.
    raise KeyError(name)


def open_tree(settings: Settings, name: str) -> TreeFile:
    """The tree of that name, worked out; `KeyError` where there is none."""
    return read_tree_file(tree_path(settings, name))


def _line(settings: Settings, name: str) -> TreeLine:
    try:
        tree = open_tree(settings, name).tree
    except InputError as error:
        return TreeLine(name=name, claim="", p=None, claims=0, problem=str(error))
    top = tree.nodes[tree.root]
    return TreeLine(name=name, claim=top.claim, p=top.p, claims=len(tree.nodes))
