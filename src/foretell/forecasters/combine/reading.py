"""From parsed JSON to frozen dataclasses by their type hints, with errors that name the file and the field."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import date
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from foretell.questions.problems import InputError

NAMES: dict[Any, str] = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}


@dataclass(frozen=True, kw_only=True)
class Found:
    """A value somewhere in a JSON document."""

    value: Any
    path: str | Path | None = None
    place: str = ""
    """Such as parameters.offsets.fred."""

    def problem(self, told: str, *, hint: str | None = None) -> InputError:
        """What is wrong here."""
        return InputError(told, path=self.path, column=self.place or None, hint=hint)

    def at(self, key: str | int, value: Any) -> "Found":
        """A value inside this one."""
        inside = f"[{key}]" if isinstance(key, int) else f".{key}" if self.place else key
        return Found(value=value, path=self.path, place=f"{self.place}{inside}")

    def members(self) -> dict[str, "Found"]:
        """The entries of an object."""
        if not isinstance(self.value, dict):
            raise self.problem(f"expected an object, found {self.value!r}")
        return {key: self.at(key, value) for key, value in cast(dict[str, Any], self.value).items()}

    def items(self) -> list["Found"]:
        """The entries of a list."""
        if not isinstance(self.value, list):
            raise self.problem(f"expected a list, found {self.value!r}")
        return [self.at(i, value) for i, value in enumerate(cast(list[Any], self.value))]


Nested = Callable[[Found], object]
"""Reads a rule inside a rule."""


def read_fields(form: type, members: Mapping[str, Found], found: Found, nested: Nested) -> Any:
    """A dataclass from its fields; one too many, one too few or one of a wrong type is an `InputError`."""
    hints, known = get_type_hints(form), {field.name: field for field in fields(form)}
    for name, member in members.items():
        if name not in known:
            raise member.problem(f"{form.__name__} has no field {name!r}", hint=f"it has {', '.join(known)}")
    for name, field in known.items():
        if name not in members and field.default is MISSING and field.default_factory is MISSING:
            raise found.at(name, None).problem(f"the field {name!r} of {form.__name__} is missing")
    values = {name: read_value(hints[name], member, nested) for name, member in members.items()}
    try:
        return form(**values)
    except ValueError as error:
        raise found.problem(str(error)) from None


def read_value(hint: Any, found: Found, nested: Nested) -> Any:
    """A value of the type that a hint names."""
    origin, value = get_origin(hint), found.value
    if hint in NAMES or hint is date or hint is NoneType or origin is Literal:
        return _read_plain(hint, found)
    if origin in (Union, UnionType):
        return _read_either(get_args(hint), found, nested)
    if origin is tuple:
        return _read_tuple(get_args(hint), found, nested)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: read_value(get_args(hint)[1], member, nested) for key, member in found.members().items()}
    if is_dataclass(hint) and not (isinstance(value, dict) and "kind" in value):
        return read_fields(cast(type, hint), found.members(), found, nested)
    rule = nested(found)
    if is_dataclass(hint) and not isinstance(rule, cast(type, hint)):
        raise found.problem(f"expected a {cast(type, hint).__name__}, found a {type(rule).__name__}")
    return rule


def _read_plain(hint: Any, found: Found) -> Any:
    value = found.value
    if hint is date:
        try:
            return date.fromisoformat(value)
        except (TypeError, ValueError):
            raise found.problem(f"{value!r} is not a day such as 2025-10-26") from None
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise found.problem(f"{value!r} is not one of {', '.join(map(str, get_args(hint)))}")
        return value
    fits = isinstance(value, int) and not isinstance(value, bool) if hint in (float, int) else isinstance(value, hint)
    if not fits and not (hint is float and isinstance(value, float)):
        raise found.problem(f"expected {NAMES.get(hint, 'null')}, found {value!r}")
    return float(value) if hint is float else value


def _read_either(hints: tuple[Any, ...], found: Found, nested: Nested) -> Any:
    if found.value is None and NoneType in hints:
        return None
    first: InputError | None = None
    for hint in hints:
        try:
            return read_value(hint, found, nested)
        except InputError as error:
            first = first or error
    raise first or found.problem("no type to read")


def _read_tuple(hints: tuple[Any, ...], found: Found, nested: Nested) -> tuple[Any, ...]:
    items = found.items()
    if hints[-1] is Ellipsis:
        return tuple(read_value(hints[0], item, nested) for item in items)
    if len(items) != len(hints):
        raise found.problem(f"expected {len(hints)} entries, found {len(items)}")
    return tuple(read_value(hint, item, nested) for hint, item in zip(hints, items, strict=True))
