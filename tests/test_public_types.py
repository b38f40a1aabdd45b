"""Every type that public functions take or return, and that the fields of those have, is in `foretell.types`."""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from inspect import Parameter, signature
from textwrap import dedent
from types import ModuleType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_overloads

import foretell
import foretell.types

INNER = {
    "AgentSettings",
    "Budget",
    "CombinationSettings",
    "FilteredTools",
    "LosableReservation",
    "Models",
    "PastQuestions",
    "PredictionContexts",
    "QuestionSet",
    "ReportDocument",
    "ScoredArena",
    "Settings",
    "SetContexts",
    "TrialRows",
}
"""Types that users pass on or call; what their fields have is how they work."""


def test_every_type_of_parameters_results_and_their_fields_is_public() -> None:
    public = {name: getattr(module, name) for module in (foretell.types, foretell) for name in module.__all__}
    missing = {name: place for name, (thing, place) in _named_types().items() if public.get(name) != thing}
    assert missing == {}
    assert public.keys() >= INNER


def test_every_kind_of_link_is_public() -> None:
    from foretell.forecasters.tree.link_kinds import BUILT_IN_LINKS

    assert {kind.__name__ for kind in BUILT_IN_LINKS.values()} <= set(foretell.types.__all__)


def test_the_forms_of_a_function_have_its_parameters() -> None:
    for name in foretell.__all__:
        function = inspect.unwrap(getattr(foretell, name))
        forms = get_overloads(function)
        if forms:
            known = signature(function).parameters
            assert set().union(*map(_parameters, forms)) == set(known), name


def _parameters(form: Callable[..., Any]) -> set[str]:
    """Return the names of the parameters, also of those in a class of keywords."""
    names = set[str]()
    for name, parameter in signature(form).parameters.items():
        if parameter.kind is Parameter.VAR_KEYWORD:
            keywords = getattr(foretell.types, parameter.annotation.removeprefix("Unpack[").removesuffix("]"))
            names |= keywords.__annotations__.keys()
        else:
            names.add(name)
    return names


def test_names_are_used_for_one_thing_only() -> None:
    assert set(foretell.types.__all__).isdisjoint(foretell.__all__)
    shared = set(foretell.types.__all__) & set(foretell.metrics.__all__)
    assert all(getattr(foretell.types, name) is getattr(foretell.metrics, name) for name in shared)


def _named_types() -> dict[str, tuple[Any, str]]:
    """Return name → the type, and where it was found first."""
    found = dict[str, tuple[Any, str]]()
    seen = set[Any]()

    def follow(thing: Any, place: str) -> None:
        if thing in seen or thing.__name__ in INNER:
            return
        seen.add(thing)
        for part, meant in _annotated(thing):
            for name, kind in meant:
                found.setdefault(name, (kind, f"{place}, {part}"))
                for each in _classes(kind):
                    found.setdefault(each.__name__, (each, f"{place}, {part}"))
                    follow(each, f"{place}, {part}")

    for name in foretell.__all__:
        function = inspect.unwrap(getattr(foretell, name))
        for form in (function, *get_overloads(function)):
            follow(form, name)
    for name in foretell.types.__all__:
        for kind in _classes(getattr(foretell.types, name)):
            follow(kind, name)
    return found


def _annotated(thing: Any) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Yield the parameters and result of a function, or the public fields of a class, with the types they name."""
    for base in thing.__mro__ if inspect.isclass(thing) else (thing,):
        if _is_own(base):
            module = sys.modules[base.__module__]
            for part, annotation in _annotations(base):
                meant = [(word, _names(module).get(word)) for word in _words(annotation)]
                yield part, [(word, kind) for word, kind in meant if _is_kind(kind) and not word.startswith("_")]


def _annotations(thing: Any) -> Iterator[tuple[str, ast.expr]]:
    (node,) = ast.parse(dedent(inspect.getsource(thing))).body
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _of_function(node)
    elif isinstance(node, ast.ClassDef):
        for each in node.body:
            match each:
                case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                    yield name, each.annotation
                case ast.FunctionDef(name=name, returns=ast.expr()) if not name.startswith("_"):
                    if isinstance(inspect.getattr_static(thing, name), property | cached_property):
                        yield from _of_function(each)
                case _:
                    pass


def _of_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.expr]]:
    given = [*node.args.args, *node.args.kwonlyargs, *filter(None, [node.args.kwarg])]
    yield from ((each.arg, each.annotation) for each in given if each.annotation)
    if node.returns is not None:
        yield node.name, node.returns


@cache
def _names(module: ModuleType) -> dict[str, Any]:
    """Return what names mean in the annotations of a module, also of those that only type checkers import."""
    known = dict(vars(module))
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for each in node.body:
                if isinstance(each, ast.ImportFrom) and each.module:
                    home = import_module(each.module)
                    known |= {
                        alias.name: getattr(home, alias.name) for alias in each.names if hasattr(home, alias.name)
                    }
    return known


def _words(annotation: ast.expr) -> Iterator[str]:
    """Yield the names in an annotation; a string names a type that is defined further down, unless it is a choice."""
    match annotation:
        case ast.Subscript(value=ast.Name(id="Literal")):
            return
        case ast.Name(id=name):
            yield name
        case ast.Constant(value=str(text)):
            yield from _words(ast.parse(text, mode="eval").body)
        case _:
            for part in ast.iter_child_nodes(annotation):
                if isinstance(part, ast.expr):
                    yield from _words(part)


def _is_kind(thing: Any) -> bool:
    """Whether a name means a class of ours, or an alias of a choice, a union, a mapping or a function."""
    alias = get_origin(thing) in (Literal, Union, UnionType, Callable, Mapping)
    return alias or (inspect.isclass(thing) and _is_own(thing))


def _is_own(thing: Any) -> bool:
    return thing.__module__.partition(".")[0] == "foretell" and not thing.__name__.startswith("_")


def _classes(kind: Any) -> Iterator[type]:
    """Yield the classes of ours in a type."""
    if inspect.isclass(kind) and _is_own(kind):
        yield kind
    for part in get_args(kind):
        for each in part if isinstance(part, list) else [part]:
            yield from _classes(each)
