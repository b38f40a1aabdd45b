"""Every study by name, from the kind "studies" of `foretell.plugins`."""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import getdoc
from pathlib import Path
from typing import Any, get_type_hints

from foretell import plugins
from foretell.studies.inputs import StudyOptions

KIND = "studies"


@dataclass(frozen=True, kw_only=True)
class Study:
    """One study: what it asks, its options, and the function that runs it."""

    name: str
    run: Callable[[Any, Any], Any]
    """study(inputs, options) → StudyResult, or a coroutine of one."""
    options: type[StudyOptions]

    @property
    def help(self) -> str:
        """The documentation of the function."""
        return getdoc(self.run) or ""

    @property
    def question(self) -> str:
        """Its first line: what the study asks."""
        return self.help.partition("\n")[0]


def load_study(name: str) -> Study:
    """The study of that name; an unknown name is refused with the nearest one."""
    return study_of(plugins.load(KIND, name), name)


def study_of(function: Callable[[Any, Any], Any], name: str | None = None) -> Study:
    """A function as a study; the type of its parameter `options` says which options it takes."""
    options = get_type_hints(function).get("options", StudyOptions)
    return Study(name=name or function.__name__, run=function, options=options)


def study_questions(within: str = "") -> dict[str, str]:
    """What every study asks, by name, without importing their modules; `within` is a part of the module's name."""
    places = plugins.places(KIND)
    return {
        name: _first_line(places[name]) if name in places else load_study(name).question
        for name in plugins.names(KIND)
        if within in places.get(name, "")
    }


@cache
def _first_line(place: str) -> str:
    """The first line of a function's documentation, read from the source: a list must not load 30 modules."""
    module, attribute = place.split(":")
    spec = find_spec(module)
    if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
        for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == attribute:
                return (ast.get_docstring(node) or "").partition("\n")[0]
    return (getdoc(getattr(import_module(module), attribute)) or "").partition("\n")[0]
