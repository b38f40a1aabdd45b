"""How public modules offer names: imported on first use, and with an error that suggests what was meant."""

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


def lazy_imports(package: str, *, others: str = "") -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a module that imports its names on first use.

    The names are those of the module's imports under `if TYPE_CHECKING:`, each written `import Name as Name`, by which
    type checkers know that it is exported. There is no second list of them: `__all__` is made of these imports. Modules
    that are imported there are loaded likewise, and are not in `__all__`. The error for a name that is in the module
    `others` says so.
    """
    module = sys.modules[package]

    def load(name: str) -> Any:
        if name == "__all__":
            vars(module)[name] = sorted(name for name, home in _homes(module).items() if home != package)
            return vars(module)[name]
        home = _homes(module).get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}{_near(module, name, others)}")
        value = import_module(f"{home}.{name}") if home == package else getattr(import_module(home), name)
        setattr(module, name, value)
        return value

    def public() -> list[str]:
        return sorted({*_homes(module), *(name for name in vars(module) if name.startswith("__"))})

    return load, public


def _homes(module: ModuleType) -> dict[str, str]:
    """Return the module of every name that is imported for type checkers."""
    if "_homes" not in vars(module):
        assert module.__spec__ is not None
        source: str = cast("Any", module.__spec__.loader).get_source(module.__name__)
        vars(module)["_homes"] = dict(_typed_imports(source))
    return vars(module)["_homes"]


def _typed_imports(source: str) -> Iterator[tuple[str, str]]:
    import ast

    for block in ast.parse(source).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for node in block.body:
                if isinstance(node, ast.ImportFrom) and node.module:
                    yield from ((alias.name, node.module) for alias in node.names)


def _near(module: ModuleType, name: str, others: str) -> str:
    """Return what was probably meant, as the end of a message."""
    from difflib import get_close_matches

    if others and name in import_module(others).__all__:
        return f"; it is now {others}.{name}"
    near = get_close_matches(name, module.__all__, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def suggesting(function: Callable[P, R]) -> Callable[P, R]:
    """Make the TypeError for an unknown keyword name the nearest parameter.

    >>> suggesting(lambda question, model="": question)("Will it rain?", modle="none")
    Traceback (most recent call last):
    TypeError: <lambda>() got an unexpected keyword argument 'modle'; did you mean 'model'?
    """
    inner: Any = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code = inner.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def called(*positional: P.args, **fields: P.kwargs) -> R:
        unknown = next((name for name in fields if name not in known), None)
        if unknown is not None:
            from difflib import get_close_matches

            near = get_close_matches(unknown, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument {unknown!r}; {hint}")
        return function(*positional, **fields)

    return called
