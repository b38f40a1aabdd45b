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


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _offers() -> Iterator[tuple[str, str, str]]:
    """Package, name and home of everything that packages offer."""
    for package, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "HOMES":
                for home, names in ast.literal_eval(node.value).items():
                    yield from ((package, name, home) for name in names.split())


def test_what_a_package_offers_is_there() -> None:
    offers = list(_offers())
    assert len({(package, name) for package, name, _ in offers}) == len(offers), "a name with two homes"
    homes = {home for _, _, home in offers} - {"foretell.questions"}
    defined = {home: set(_defined(modules()[home])) for home in homes}
    for package, name, home in offers:
        assert name in defined.get(home, {name}), f"{package} offers {name}, which {home} does not define"
        assert f"{package}.{name}" not in modules(), f"{name} is a module too: importing it would hide the name"


def test_who_forecasts_never_asks_for_an_outcome_by_name() -> None:
    for module, tree in modules().items():
        if module.startswith(("foretell.forecasters", "foretell.models", "foretell.tools")):
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom):
                    assert "Resolution" not in [alias.name for alias in node.names], module


def test_the_package_does_not_know_its_tests() -> None:
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert node.module.split(".")[0] not in {"fakes", "tests"}, module
