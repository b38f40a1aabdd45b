"""Frozen values: dataclasses whose fields are read and whose methods are compiled when they are first used.

`dataclass` reads the fields of each class and compiles six methods, and most commands use few of the classes that they
import. Compiling alone was a third of the time that a short command took.
"""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from reprlib import recursive_repr
from threading import RLock
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def frozen(kind: type[T], /) -> type[T]: ...
@overload
def frozen(*, kw_only: bool = True, eq: bool = True) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(eq_default=True, kw_only_default=True, frozen_default=True, field_specifiers=(field, Field))
def frozen(kind: type[T] | None = None, /, *, kw_only: bool = True, eq: bool = True) -> Any:
    """Make a class a frozen dataclass with keyword fields. `eq` is False for values that are equal only to themselves.

    >>> @frozen
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(x=1)
    Point(x=1, y=0)
    >>> Point(x=1).x = 2
    Traceback (most recent call last):
    dataclasses.FrozenInstanceError: cannot assign to field 'x'
    """

    def freeze(kind: Any) -> Any:
        return _freeze(kind, kw_only, eq)

    return freeze if kind is None else freeze(kind)


def changed_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults, by name."""
    usual = type(value)()
    pairs = {each.name: getattr(value, each.name) for each in fields(value)}
    return {name: current for name, current in pairs.items() if current != getattr(usual, name)}


def _freeze(kind: Any, kw_only: bool, eq: bool) -> Any:
    written = dict(vars(kind))
    inherits = any("__dataclass_fields__" in vars(base) for base in kind.__mro__[1:])
    if not inherits:
        kind.__setattr__, kind.__delattr__ = _refuse_to_assign, _refuse_to_delete
    # `dataclass` refuses a class that is not frozen where a base is.
    kind.__dataclass_fields__ = _Fields(
        kind, dataclass(init=False, repr=False, eq=False, kw_only=kw_only, frozen=inherits), eq
    )
    if "__repr__" not in written:
        kind.__repr__ = _text
    later = {"__init__": _init}
    if eq:
        later |= {"__eq__": _eq}
        if written.get("__hash__") is None:  # Python sets None where a class has its own `__eq__`.
            later |= {"__hash__": _hash}
    for name, source in later.items():
        if name == "__hash__" or name not in written:
            _compile_at_first_call(kind, name, source)
    kind.__signature__ = _Signature()
    if "__match_args__" not in written:
        kind.__match_args__ = _MatchArgs()
    return kind


class _Fields:
    """Stands for the fields of a class, which are read from its annotations when somebody asks for them."""

    one_thread = RLock()

    def __init__(self, kind: Any, read: Callable[[Any], object], eq: bool) -> None:
        self.kind, self.read, self.eq = kind, read, eq

    def __get__(self, instance: object, kind: Any) -> dict[str, Field[Any]]:
        with self.one_thread:
            if vars(self.kind)["__dataclass_fields__"] is self:
                self.read(self.kind)
                made = self.kind.__dataclass_params__
                made.init, made.repr, made.eq, made.frozen = True, True, self.eq, True
        return vars(self.kind)["__dataclass_fields__"]


def _compile_at_first_call(kind: Any, name: str, source: Callable[[Any], tuple[str, dict[str, Any]]]) -> None:
    own_name = f"{kind.__qualname__}.{name}"

    def compile_now() -> Any:
        text, names = source(kind)
        exec(text, names)  # As `dataclass` itself does.
        compiled = names[name]
        compiled.__qualname__, compiled.__module__ = own_name, kind.__module__
        if name == "__init__":
            compiled.__annotations__ = {part.name: part.type for part in fields(kind) if part.init} | {"return": None}
        setattr(kind, name, compiled)
        return compiled

    def method(self: Any, *args: Any, **values: Any) -> Any:
        return compile_now()(self, *args, **values)

    made: Any = method
    made.__name__, made.__qualname__, made.__module__ = name, own_name, kind.__module__
    made.compile_now = compile_now
    setattr(kind, name, made)


def _init(kind: Any) -> tuple[str, dict[str, Any]]:
    names: dict[str, Any] = {"_missing": _NotGiven()}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    # A value stored in the dictionary of the object costs half of one stored by `object.__setattr__`.
    lines = ["  _values = self.__dict__"]
    for part in fields(kind):
        value = part.name
        if part.default_factory is not MISSING:
            names[f"_new_{value}"] = part.default_factory
            value = f"_new_{value}() if {value} is _missing else {value}" if part.init else f"_new_{value}()"
        elif part.default is not MISSING:
            names[f"_default_{value}"] = part.default
        if part.init:
            default = "_missing" if part.default_factory is not MISSING else f"_default_{part.name}"
            optional = part.default_factory is not MISSING or part.default is not MISSING
            parameters[bool(part.kw_only)].append(f"{part.name}={default}" if optional else part.name)
        if part.init or part.default_factory is not MISSING:
            lines.append(f"  _values[{part.name!r}] = {value}")
    if hasattr(kind, "__post_init__"):
        lines.append("  self.__post_init__()")
    received = ["self", *parameters[False], *(["*", *parameters[True]] if parameters[True] else [])]
    return "\n".join([f"def __init__({', '.join(received)}):", *lines]), names


class _NotGiven:
    """Stands in a signature for a default that is made anew for each value."""

    def __repr__(self) -> str:
        return "<factory>"


def _eq(kind: Any) -> tuple[str, dict[str, Any]]:
    mine, other = (_tuple(who, [part.name for part in fields(kind) if part.compare]) for who in ("self", "other"))
    same = "other.__class__ is self.__class__"
    return f"def __eq__(self, other):\n return {mine} == {other} if {same} else NotImplemented", {}


def _hash(kind: Any) -> tuple[str, dict[str, Any]]:
    compared = [part.name for part in fields(kind) if (part.compare if part.hash is None else part.hash)]
    return f"def __hash__(self):\n return hash({_tuple('self', compared)})", {}


def _tuple(who: str, names: list[str]) -> str:
    return f"({''.join(f'{who}.{name}, ' for name in names)})"


@recursive_repr()
def _text(self: Any) -> str:
    shown = (f"{part.name}={getattr(self, part.name)!r}" for part in fields(self) if part.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_to_assign(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


class _MatchArgs:
    """The names that a pattern takes by position, for which the fields must be read."""

    def __get__(self, instance: object, kind: Any) -> tuple[str, ...]:
        return tuple(part.name for part in fields(kind) if part.init and not part.kw_only)


class _Signature:
    """The signature of a class, for which its `__init__` must be compiled."""

    def __get__(self, instance: object, kind: Any) -> inspect.Signature:
        if compile_now := getattr(kind.__init__, "compile_now", None):
            compile_now()
        whole = inspect.signature(kind.__init__)
        return whole.replace(parameters=list(whole.parameters.values())[1:])
