"""Fields of values that programs build: a value that the type of its field does not allow is refused by name."""

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache, wraps
from inspect import signature
from numbers import Integral, Real
from reprlib import Repr
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from foretell.questions.errors import InputError, WrongValue

P = ParamSpec("P")
R = TypeVar("R")
NUMBERS: Mapping[type, type] = {float: Real, int: Integral}
"""What a number may be besides Python's own: NumPy's, which are stored as Python's."""
WORDS: Mapping[type, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    datetime: "a date",
    types.NoneType: "None",
}
EXAMPLES = {
    "AsOf": 'AsOf.day("2026-01-10")',
    "Bettor": "foretell.metrics.Bettor(gamma=0.5)",
    "Cost": "Cost(dollars=0.2)",
    "Resampling": "foretell.metrics.Resampling(draws=500)",
    "Target": 'Target(id="yes")',
}
"""How a value of a class is written, in messages."""


def shown(value: object) -> str:
    """Return a value as a message shows it.

    >>> shown("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaa...aaaaaaaaaaaaaaaaaaaaaaaaa'"
    """
    return _SHORT.repr(value)


_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 55


def check_fields(value: Any) -> None:
    """Raise `WrongValue` for the first field of a frozen dataclass whose value is not of its type.

    NumPy's numbers become Python's, and lists tuples.
    """
    stored = value.__dict__
    for name, plain, kind in _fields(type(value)):
        given = stored[name]
        if type(given) not in plain:
            made = kind.read(given)
            if made is WRONG:
                hidden = not type(value).__dataclass_fields__[name].repr  # It may contain a key.
                said = WORDS.get(type(given), type(given).__name__) if hidden else shown(given)
                raise WrongValue(type(value).__name__, name, f"is {said}", kind.words)
            stored[name] = made


def probability(value: Any, owner: object, field: str, what: str = "") -> float:
    """Return a probability. Raises `WrongValue` for anything but a number from 0 to 1.

    >>> probability(1.2, probability, "p")
    Traceback (most recent call last):
    foretell.questions.errors.WrongValue: function, field p: is 1.2; expected a number from 0 to 1
    """
    if not isinstance(value, Real) or not 0 <= float(value) <= 1:
        raise WrongValue(type(owner).__name__, field, f"{what} is {shown(value)}".lstrip(), "a number from 0 to 1")
    return float(value)


def check_least(value: object, **least: float) -> None:
    """Raise `WrongValue` for the first of these fields that is below its least value. None passes.

    >>> check_least(range(3), start=0, stop=5)
    Traceback (most recent call last):
    foretell.questions.errors.WrongValue: range, field stop: is 3; expected at least 5
    """
    for field, low in least.items():
        given = getattr(value, field)
        if given is not None and not given >= low:
            raise WrongValue(type(value).__name__, field, f"is {given}", f"at least {low:g}")


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function raise `InputError` for an argument that is not of its parameter's type, before it is called.

    >>> @check_arguments
    ... def twice(n: int) -> int:
    ...     return 2 * n
    >>> twice("a")
    Traceback (most recent call last):
    foretell.questions.errors.InputError: field n: is 'a'; expected a whole number
    """
    called_with = signature(function)

    @wraps(function)
    def checked(*positional: P.args, **fields: P.kwargs) -> R:
        try:
            given = called_with.bind(*positional, **fields)
        except TypeError:
            return function(*positional, **fields)  # Python names what is missing.
        for name, kind in _parameters(function).items():
            if name in given.arguments and type(value := given.arguments[name]) not in kind.plain:
                given.arguments[name] = made = kind.read(value)
                if made is WRONG:
                    raise InputError(f"is {shown(value)}; expected {kind.words}", column=name)
        return function(*given.args, **given.kwargs)

    return checked


class _Wrong:
    """Stands for a value that is not of a type."""


WRONG = _Wrong()


class _Kind(NamedTuple):
    """A type of a field."""

    plain: frozenset[type]
    """Types whose values are taken as they are."""
    read: Callable[[Any], Any]
    """Returns another value as it is stored, or `WRONG`."""
    words: str
    """What is expected."""


@cache
def _fields(kind: type) -> tuple[tuple[str, frozenset[type], _Kind], ...]:
    hints = _hints(kind)
    known = ((part.name, _kind(hints[part.name])) for part in fields(kind) if part.init)
    return tuple((name, kind.plain, kind) for name, kind in known if kind is not None)


@cache
def _parameters(function: Callable[..., Any]) -> dict[str, _Kind]:
    known = {name: _kind(hint) for name, hint in _hints(function).items() if name != "return"}
    return {name: kind for name, kind in known.items() if kind is not None}


def _hints(kind: Any) -> dict[str, Any]:
    """Return the types of fields or parameters; a name that only type checkers import allows everything."""
    unknown = dict[str, Any]()
    while True:
        try:
            return get_type_hints(kind, localns=unknown)
        except NameError as error:
            name = error.name or ""
            if name in unknown:
                raise
            unknown[name] = Any


def _kind(hint: Any) -> _Kind | None:
    """Return how values of a type are checked; None for a type that is not checked, such as a protocol."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _choice(arguments)
    if origin in (Union, types.UnionType):
        return _union([_kind(part) for part in arguments])
    if (origin is tuple and arguments[1:] == (Ellipsis,)) or origin is Sequence:
        return _sequence(_kind(arguments[0]))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(_kind(arguments[0]), _kind(arguments[1]))
    if hint is Any or not isinstance(hint, type) or getattr(hint, "_is_protocol", False):
        return None
    words = WORDS.get(hint) or f"{'an' if hint.__name__[0] in 'AEIO' else 'a'} {hint.__name__}"
    if hint.__name__ in EXAMPLES:
        words += f", such as {EXAMPLES[hint.__name__]}"
    number = NUMBERS.get(hint, hint)

    def read(value: Any) -> Any:
        if not isinstance(value, number):
            return WRONG
        return value if number is hint else hint(value)

    return _Kind(frozenset({float, int} if hint is float else {hint}), read, words)


def _choice(choices: tuple[Any, ...]) -> _Kind:
    kinds = {type(choice) for choice in choices}

    def read(value: Any) -> Any:
        return value if type(value) in kinds and value in choices else WRONG

    return _Kind(frozenset(), read, _either(map(repr, choices)))


def _union(kinds: list[_Kind | None]) -> _Kind | None:
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return None

    def read(value: Any) -> Any:
        made = (kind.read(value) for kind in known)
        return next((value for value in made if value is not WRONG), WRONG)

    return _Kind(frozenset().union(*(kind.plain for kind in known)), read, _either(kind.words for kind in known))


def _sequence(part: _Kind | None) -> _Kind:
    plain = frozenset[type]() if part is None else part.plain

    def read(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return WRONG
        values = cast("list[Any]", value)
        if part is None or all(type(each) in plain for each in values):
            return tuple(values)
        made = tuple(map(part.read, values))
        return WRONG if any(each is WRONG for each in made) else made

    return _Kind(frozenset(), read, "a list" if part is None else f"a list, each entry {part.words}")


def _mapping(key: _Kind | None, part: _Kind | None) -> _Kind | None:
    if key is None or part is None:
        return None
    keys, values = key.plain, part.plain

    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return WRONG
        given = cast("Mapping[Any, Any]", value)
        for name, each in given.items():
            if type(name) not in keys and key.read(name) is WRONG:
                return WRONG
            if type(each) not in values and part.read(each) is WRONG:
                return WRONG
        return given

    return _Kind(frozenset(), read, f"a dictionary from {key.words} to {part.words}")


def _either(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
