"""Fitted rules as JSON files: what kind of rule it is, its numbers, and what it was trained on."""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import date
from importlib import import_module
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from foretell.forecasters.combine.rules import FittedRule
from foretell.questions.errors import InputError

# From parsed JSON to frozen dataclasses by their type hints, with errors that name the file and the field.

NAMES: dict[Any, str] = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}


@dataclass(frozen=True, kw_only=True)
class JsonValue:
    """A value somewhere in a JSON document."""

    value: Any
    path: str | Path | None = None
    place: str = ""
    """Such as parameters.offsets.fred."""

    def problem(self, told: str, *, hint: str | None = None) -> InputError:
        """What is wrong here."""
        return InputError(told, path=self.path, column=self.place or None, hint=hint)

    def at(self, key: str | int, value: Any) -> "JsonValue":
        """A value inside this one."""
        inside = f"[{key}]" if isinstance(key, int) else f".{key}" if self.place else key
        return JsonValue(value=value, path=self.path, place=f"{self.place}{inside}")

    def members(self) -> dict[str, "JsonValue"]:
        """The entries of an object."""
        if not isinstance(self.value, dict):
            raise self.problem(f"expected an object, found {self.value!r}")
        return {key: self.at(key, value) for key, value in cast(dict[str, Any], self.value).items()}

    def items(self) -> list["JsonValue"]:
        """The entries of a list."""
        if not isinstance(self.value, list):
            raise self.problem(f"expected a list, found {self.value!r}")
        return [self.at(i, value) for i, value in enumerate(cast(list[Any], self.value))]


Nested = Callable[[JsonValue], object]
"""Reads a rule inside a rule."""


def read_fields(form: type, members: Mapping[str, JsonValue], found: JsonValue, nested: Nested) -> Any:
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


def read_value(hint: Any, found: JsonValue, nested: Nested) -> Any:
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


def _read_plain(hint: Any, found: JsonValue) -> Any:
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


def _read_either(hints: tuple[Any, ...], found: JsonValue, nested: Nested) -> Any:
    if found.value is None and NoneType in hints:
        return None
    first: InputError | None = None
    for hint in hints:
        try:
            return read_value(hint, found, nested)
        except InputError as error:
            first = first or error
    raise first or found.problem("no type to read")


def _read_tuple(hints: tuple[Any, ...], found: JsonValue, nested: Nested) -> tuple[Any, ...]:
    items = found.items()
    if hints[-1] is Ellipsis:
        return tuple(read_value(hints[0], item, nested) for item in items)
    if len(items) != len(hints):
        raise found.problem(f"expected {len(hints)} entries, found {len(items)}")
    return tuple(read_value(hint, item, nested) for hint, item in zip(hints, items, strict=True))


SCHEMA = "foretell/fitted/1"
KINDS: Mapping[str, str] = {
    "raw": "foretell.forecasters.combine.rules:FittedRaw",
    "platt": "foretell.forecasters.combine.calibration:FittedPlatt",
    "isotonic": "foretell.forecasters.combine.calibration:FittedIsotonic",
    "beta": "foretell.forecasters.combine.calibration:FittedBeta",
    "shrink": "foretell.forecasters.combine.shrink:FittedShrink",
    "bayes-shrink": "foretell.forecasters.combine.shrink:FittedBayesShrink",
    "chain": "foretell.forecasters.combine.rules:FittedChain",
    "ensemble": "foretell.forecasters.combine.ensemble:Ensemble",
    "horizon-smoothing": "foretell.forecasters.combine.coherence:FittedHorizonSmoothing",
    "trust": "foretell.forecasters.combine.default:FittedTrust",
    "default": "foretell.forecasters.combine.default:FittedDefault",
}
"""Every rule that has a file form: a frozen dataclass of numbers, texts, dates, tuples, mappings and other rules."""


def to_json(fitted: FittedRule) -> str:
    """A rule as a JSON document.

    >>> from foretell.forecasters.combine.calibration import FittedPlatt
    >>> rule = FittedPlatt(slope=0.9, intercept=-0.1, offsets={"fred": 0.25}, by=("source",))
    >>> from_json(to_json(rule)) == rule
    True
    """
    return json.dumps({"schema": SCHEMA, **_rule(fitted)}, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def from_json(text: str | bytes, *, path: str | Path | None = None) -> FittedRule:
    """A rule from its JSON document. Whatever does not fit raises an `InputError` that names the file and the field."""
    try:
        document = json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        raise InputError(f"not JSON: {error}", path=path) from None
    if not isinstance(document, dict):
        raise InputError(f"expected the JSON object of a fitted rule, found {type(document).__name__}", path=path)
    body = cast(dict[str, Any], document)
    if (schema := body.pop("schema", None)) != SCHEMA:
        hint = "is it a file that `foretell calibrate fit` wrote?"
        raise InputError(f"schema is {schema!r}, not {SCHEMA!r}", path=path, column="schema", hint=hint)
    return _read_rule(JsonValue(value=body, path=path))


def save(fitted: FittedRule, path: Path) -> None:
    """Write a rule to a file, whole or not at all."""
    from foretell.data.atomic_file import write_atomically

    write_atomically(path, to_json(fitted).encode())


def load(path: Path) -> FittedRule:
    """Read a rule from a file."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None
    return from_json(text, path=path)


def kind_of(fitted: object) -> str | None:
    """The name under which a rule is written; None for what has no file form."""
    return _NAMES.get(f"{type(fitted).__module__}:{type(fitted).__qualname__}")


_NAMES = {place: kind for kind, place in KINDS.items()}


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _rule(fitted: object) -> dict[str, Any]:
    kind = kind_of(fitted)
    if kind is None:
        raise TypeError(f"{type(fitted).__name__} has no file form; the kinds are {', '.join(KINDS)}")
    values = {field.name: getattr(fitted, field.name) for field in fields(cast(Any, fitted))}
    training = values.pop("training")
    return {"kind": kind, "parameters": {k: _plain(v, k) for k, v in values.items()}, "training": _plain(training, "")}


def _plain(value: object, place: str) -> Any:
    """A value as what JSON knows."""
    if kind_of(value) is not None:
        return _rule(value)
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{place} is {value}: a rule is written only if all its numbers are finite")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (tuple, list)):
        return [_plain(item, f"{place}[{i}]") for i, item in enumerate(cast(tuple[object, ...], value))]
    if isinstance(value, Mapping):
        return _plain_mapping(cast(Mapping[object, object], value), place)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name), f"{place}.{field.name}") for field in fields(value)}
    raise TypeError(f"{place} is a {type(value).__name__}, which has no JSON form")


def _plain_mapping(value: Mapping[object, object], place: str) -> dict[str, Any]:
    if bad := [key for key in value if not isinstance(key, str)]:
        raise TypeError(f"{place} has the key {bad[0]!r}: keys must be texts")
    return {str(key): _plain(item, f"{place}.{key}") for key, item in value.items()}


def _read_rule(found: JsonValue) -> FittedRule:
    parts = found.members()
    for name in ("kind", "parameters", "training"):
        if name not in parts:
            raise found.at(name, None).problem(f"the field {name!r} is missing")
    for name in parts.keys() - {"kind", "parameters", "training"}:
        raise parts[name].problem(f"a rule has no field {name!r}", hint="it has kind, parameters and training")
    kind = parts["kind"].value
    if not isinstance(kind, str) or kind not in KINDS:
        raise parts["kind"].problem(f"no rule is of kind {kind!r}", hint=f"the kinds are {', '.join(KINDS)}")
    module, name = KINDS[kind].split(":")
    form = getattr(import_module(module), name)
    members = {**parts["parameters"].members(), "training": parts["training"]}
    return cast(FittedRule, read_fields(form, members, found, _read_rule))
