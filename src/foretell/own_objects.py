"""Functions and objects of a program that stand for a model, a search engine or a tool, each under a name.

Files and stored runs have only the name. It is looked up among the objects of this process and never imported.
"""

import hashlib
import uuid
from types import CodeType, FunctionType
from typing import Any, Literal, cast

from foretell.questions.errors import InputError

OwnKind = Literal["models", "search_engines", "tools"]
OWN = "python:"
"""How the name of every function and object of a program begins."""
_OBJECTS: dict[tuple[OwnKind, str], Any] = {}
_NAMES: dict[tuple[OwnKind, int], str] = {}
"""The name of an object by its `id`, which stays its own because `_OBJECTS` keeps the object."""


def name_object(kind: OwnKind, thing: Any, name: str | None = None) -> str:
    """Return the name under which an object can be used in this process, such as `python:weather-1a2b3c4d`.

    The name of a module-level function includes a hash of its code, so that it is the same in every process until the
    function is changed. A lambda, closure or object is new in every process unless it is given a name.

    >>> name_object("tools", len, name="length"), own_object("tools", "python:length") is len
    ('python:length', True)
    """
    own = name or _NAMES.get((kind, id(thing))) or _own_name(thing)
    _OBJECTS[kind, own] = thing
    if name is None:
        _NAMES[kind, id(thing)] = own
    return f"{OWN}{own}"


def is_own(name: str) -> bool:
    """Whether a name is that of a function or object of a program."""
    return name.startswith(OWN)


def find_own(kind: OwnKind, name: str) -> Any | None:
    """Return the object of this name; None if it is an object of another program."""
    return _OBJECTS.get((kind, name.removeprefix(OWN)))


def own_object(kind: OwnKind, name: str) -> Any:
    """Return the object of this name. Raises `InputError` if it is an object of another program."""
    thing = find_own(kind, name)
    if thing is None:
        what, parameter = _WORDS[kind]
        problem = f"the {what} {OWN}{name.removeprefix(OWN)} is a function of another program"
        raise InputError(problem, hint=f"pass the function again as `{parameter}`")
    return thing


_WORDS = {"models": ("model", "model"), "search_engines": ("search engine", "search"), "tools": ("tool", "tools")}
"""What an object of a kind is called, and the parameter that takes it."""


def _own_name(thing: Any) -> str:
    plain = str(getattr(thing, "__qualname__", type(thing).__qualname__)).replace("<", "").replace(">", "")
    if isinstance(thing, FunctionType) and thing.__closure__ is None and "<" not in thing.__qualname__:
        digest = hashlib.sha256(repr((*_content(thing.__code__), thing.__defaults__)).encode())
        return f"{plain}-{digest.hexdigest()[:8]}"
    return f"{plain}-{uuid.uuid4().hex[:8]}"


def _content(code: CodeType) -> tuple[Any, ...]:
    """Return what a function does, as values whose text is the same in every process."""
    return (code.co_code, tuple(map(_constant, code.co_consts)), code.co_names)


def _constant(value: Any) -> Any:
    """Return a constant of a function; inner functions have addresses, and sets no order."""
    if isinstance(value, CodeType):
        return _content(value)
    if isinstance(value, tuple):
        return tuple(map(_constant, cast("tuple[Any, ...]", value)))
    return sorted(map(repr, cast("frozenset[Any]", value))) if isinstance(value, frozenset) else value
