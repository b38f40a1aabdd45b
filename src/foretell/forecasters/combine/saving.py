"""Stores fitted rules as JSON files: the kind of rule, its parameters, and its training data."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any, cast, get_type_hints

from foretell.forecasters.combine.default import LearningGain
from foretell.forecasters.combine.rules import FittedRule, Training
from foretell.questions.codec import parse_json
from foretell.questions.errors import InputError, said

SCHEMA = "foretell/fitted/1"
_PACKAGE = "foretell.forecasters.combine"
KINDS: Mapping[str, str] = {
    "raw": f"{_PACKAGE}.rules:FittedRaw",
    "platt": f"{_PACKAGE}.calibration:FittedPlatt",
    "isotonic": f"{_PACKAGE}.calibration:FittedIsotonic",
    "beta": f"{_PACKAGE}.calibration:FittedBeta",
    "shrink": f"{_PACKAGE}.shrink:FittedShrink",
    "bayes-shrink": f"{_PACKAGE}.shrink:FittedBayesShrink",
    "chain": f"{_PACKAGE}.rules:FittedChain",
    "ensemble": f"{_PACKAGE}.ensemble:Ensemble",
    "trust": f"{_PACKAGE}.default:FittedTrust",
    "default": f"{_PACKAGE}.default:FittedDefault",
}
"""Every rule that can be stored: a frozen dataclass of numbers, texts, dates, tuples, mappings and other rules."""
_NAMES = {place: kind for kind, place in KINDS.items()}
PARTS = ("kind", "parameters", "training")


def to_json(fitted: FittedRule) -> str:
    """Convert a rule to a JSON document. Raises `ValueError` for a number that is not finite."""
    if _kind_of(fitted) is None:
        raise TypeError(f"{type(fitted).__name__} cannot be stored; the kinds are {', '.join(KINDS)}")
    document = {"schema": SCHEMA, **_serialised(fitted)}
    return json.dumps(document, default=_serialised, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def from_json(text: str | bytes, *, path: str | Path | None = None) -> FittedRule:
    """Parse a rule from its JSON document. Raises `InputError` with the file and the field if it is invalid."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not a number")

    try:
        document = parse_json(text, parse_constant=refuse)
    except InputError as error:
        raise error.at(path=path) from None
    if not isinstance(document, dict):
        raise InputError(f"expected the JSON object of a fitted rule, found {type(document).__name__}", path=path)
    body = cast(dict[str, Any], document)
    if (schema := body.pop("schema", None)) != SCHEMA:
        hint = "is it a file that `foretell calibrate fit` wrote?"
        raise InputError(f"schema is {schema!r}, not {SCHEMA!r}", path=path, column="schema", hint=hint)
    try:
        return _read_rule(body, "")
    except InputError as error:
        error.path = path
        raise


def save(fitted: FittedRule, path: Path) -> None:
    """Write a rule to a file atomically."""
    from foretell.data.files import write_atomically

    write_atomically(path, to_json(fitted).encode())


def load(path: Path) -> FittedRule:
    """Read a rule from a file."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None
    return from_json(text, path=path)


def _kind_of(value: object) -> str | None:
    return _NAMES.get(f"{type(value).__module__}:{type(value).__qualname__}")


def _serialised(value: Any) -> Any:
    """Serialise types that JSON does not support: rules, other dataclasses, days."""
    if isinstance(value, date):
        return value.isoformat()
    if not is_dataclass(value):
        raise TypeError(f"{type(value).__name__} has no JSON form")
    parameters = {field.name: getattr(value, field.name) for field in fields(value)}
    if (kind := _kind_of(value)) is None:
        return parameters
    training = parameters.pop("training")
    return {"kind": kind, "parameters": parameters, "training": training}


def _read_rule(document: dict[str, Any], place: str) -> FittedRule:
    for part in PARTS:
        if part not in document:
            raise InputError(f"the field {part!r} is missing", column=place + part)
    for part in document.keys() - set(PARTS):
        raise InputError(f"a rule has no field {part!r}", column=place + part, hint=f"it has {', '.join(PARTS)}")
    kind, parameters = document["kind"], document["parameters"]
    if not isinstance(kind, str) or kind not in KINDS:
        hint = f"the kinds are {', '.join(KINDS)}"
        raise InputError(f"no rule is of kind {kind!r}", column=f"{place}kind", hint=hint)
    if not isinstance(parameters, dict):
        raise InputError(f"expected an object, found {parameters!r}", column=f"{place}parameters")
    module, name = KINDS[kind].split(":")
    form = getattr(import_module(module), name)
    hints = get_type_hints(form)
    values = {"training": _read_value(Training, document["training"], f"{place}training")}
    for field, value in cast(dict[str, Any], parameters).items():
        column = f"{place}parameters.{field}"
        if field not in hints:
            raise InputError(f"{name} has no field {field!r}", column=column, hint=f"it has {', '.join(hints)}")
        values[field] = _read_value(hints[field], value, column)
    try:
        return form(**values)
    except (TypeError, ValueError) as error:
        raise InputError(said(error), column=place.rstrip(".") or None) from None


def _read_value(hint: Any, value: Any, place: str) -> Any:
    """Parse the value of a rule's field: a rule, several rules, or whatever pydantic parses by the field's type."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

    if isinstance(value, dict) and "kind" in value:
        rule = _read_rule(cast(dict[str, Any], value), f"{place}.")
        if isinstance(hint, type) and is_dataclass(hint) and not isinstance(rule, hint):
            raise InputError(f"expected a {hint.__name__}, found a {type(rule).__name__}", column=place)
        return rule
    if hint == tuple[FittedRule, ...]:
        rules = cast(list[Any], value)
        if not isinstance(value, list) or not all(isinstance(rule_document, dict) for rule_document in rules):
            raise InputError(f"expected a list of rules, found {value!r}", column=place)
        return tuple(_read_rule(rule_document, f"{place}[{i}].") for i, rule_document in enumerate(rules))
    for form in (Training, LearningGain):
        with_config(ConfigDict(extra="forbid"))(form)
    try:
        return TypeAdapter(hint).validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        inside = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        raise InputError(f"{first['msg']}, found {first['input']!r}", column=place + inside) from None
