"""The house stays one that a stranger can read: one meaning for a name, no circles, nothing that leads nowhere."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src"
METAPHORS = {"Asked", "Said", "Told", "Kept", "Found", "Wish", "Purse", "Tally", "Desk", "Nursery", "Workbench"}


@cache
def modules() -> dict[str, ast.Module]:
    return {_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_no_two_classes_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_classes_have_plain_names() -> None:
    names = {node.name for tree in modules().values() for node in tree.body if isinstance(node, ast.ClassDef)}
    assert names & METAPHORS == set()


def _imported(tree: ast.Module) -> Iterator[str]:
    """What a module imports when it is loaded; imports inside functions and for type checkers come later or never."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("foretell"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in modules() else node.module


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = {name: set(_imported(tree)) - {name} for name, tree in modules().items()}
    finished: set[str] = set()

    def walk(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " → ".join((*path[path.index(name) :], name))
        if name not in finished:
            for other in sorted(graph.get(name, ())):
                walk(other, (*path, name))
            finished.add(name)

    for name in graph:
        walk(name, ())


def test_the_package_does_not_know_its_tests() -> None:
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert node.module.split(".")[0] not in {"fakes", "tests"}, module
