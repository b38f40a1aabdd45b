"""The structure of the package: no name for two classes, no import circles, no outcomes where forecasts are made."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src"


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


def test_frozen_values_are_made_by_frozen() -> None:
    """The standard decorator compiles six methods for each class, whether they are used or not."""
    assert [
        f"{module}.{node.name}"
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(
            isinstance(made, ast.Call) and any(option.arg == "frozen" for option in made.keywords)
            for made in node.decorator_list
        )
    ] == []


def _imported(tree: ast.Module) -> Iterator[str]:
    """Return the modules that a module imports anywhere, also inside functions and for type checkers."""
    for node in ast.walk(tree):
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


def test_every_written_module_and_attribute_exists() -> None:
    """Commands, plug-ins and options name what they load as "module:attribute"."""
    places = {
        node.value
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and re.fullmatch(r"foretell(\.\w+)+:\w+", str(node.value))
    }
    missing = [place for place in sorted(places) if place.split(":")[1] not in _defined(modules()[place.split(":")[0]])]
    assert places
    assert missing == []


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_public_names_hide_no_modules_and_are_imported_from_where_they_are_defined() -> None:
    packages = ("foretell", "foretell.types", "foretell.metrics")
    for package in packages:
        for node in ast.walk(modules()[package]):
            if isinstance(node, ast.ImportFrom) and node.module == "foretell":
                assert {f"foretell.{alias.name}" for alias in node.names} <= set(packages)
            elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("foretell"):
                defined = set(_defined(modules()[node.module]))
                for alias in node.names:
                    assert alias.name in defined, f"{package} imports {alias.name}, which {node.module} does not define"
                    assert f"{package}.{alias.name}" not in modules(), f"{alias.name} is a module too"


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


SQL = re.compile(
    r"\b(select\b.*\bfrom [\w{(]|insert into \w|update \w+ set \w|delete from [\w{]|create (table|index) \w|pragma \w)",
    re.I | re.S,
)
SQL_PACKAGES = ("models", "outgoing", "data", "runs", "arena", "standing", "scoring")
"""Packages with SQL: databases, and tables that are read from files."""


def _texts(tree: ast.Module) -> Iterator[str]:
    """Return the string literals of a module without its docstrings; expressions in them become `{}`."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            docstrings |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_sql_is_only_where_data_is_stored() -> None:
    assert [text for text in _texts(ast.parse("f'select {x} from {y}'")) if SQL.search(text)], "finds nothing"
    stray = [
        f"{module}: {text.strip()[:60]}"
        for module, tree in modules().items()
        if module.split(".")[1:2] and module.split(".")[1] not in SQL_PACKAGES
        for text in _texts(tree)
        if SQL.search(text)
    ]
    assert stray == []


def test_dialects_are_only_known_to_the_database() -> None:
    words = re.compile(r"::(json|text|float|bytea)|json_extract|group_concat|string_agg|for share", re.I)
    stray = {
        module
        for module, tree in modules().items()
        if not module.startswith("foretell.models.database")
        and any(words.search(text) and SQL.search(text) for text in _texts(tree))
    }
    assert stray == set()
