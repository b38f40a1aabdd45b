"""Fitted rules as JSON files: what kind of rule it is, its numbers, and what it was trained on."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any, cast

from foretell.forecasters.combine.fitted import Fitted
from foretell.forecasters.combine.reading import Found, read_fields
from foretell.questions.problems import InputError

SCHEMA = "foretell/fitted/1"
KINDS: Mapping[str, str] = {
    "raw": "foretell.forecasters.combine.raw:FittedRaw",
    "platt": "foretell.forecasters.combine.platt:FittedPlatt",
    "isotonic": "foretell.forecasters.combine.isotonic:FittedIsotonic",
    "beta": "foretell.forecasters.combine.beta:FittedBeta",
    "shrink": "foretell.forecasters.combine.shrink:FittedShrink",
    "bayes-shrink": "foretell.forecasters.combine.bayes_shrink:FittedBayesShrink",
    "chain": "foretell.forecasters.combine.chain:FittedChain",
    "ensemble": "foretell.forecasters.combine.ensemble.weights:Ensemble",
    "horizon-smoothing": "foretell.forecasters.combine.coherence.horizons:Smoothed",
    "trust": "foretell.forecasters.combine.trust:FittedTrust",
    "default": "foretell.forecasters.combine.default:FittedDefault",
}
"""Every rule that has a file form: a frozen dataclass of numbers, texts, dates, tuples, mappings and other rules."""


def to_json(fitted: Fitted) -> str:
    """A rule as a JSON document.

    >>> from foretell.forecasters.combine.platt import FittedPlatt
    >>> rule = FittedPlatt(slope=0.9, intercept=-0.1, offsets={"fred": 0.25}, by=("source",))
    >>> from_json(to_json(rule)) == rule
    True
    """
    return json.dumps({"schema": SCHEMA, **_rule(fitted)}, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def from_json(text: str | bytes, *, path: str | Path | None = None) -> Fitted:
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
    return _read_rule(Found(value=body, path=path))


def save(fitted: Fitted, path: Path) -> None:
    """Write a rule to a file, whole or not at all."""
    from foretell.sources.whole_file import write_whole

    write_whole(path, to_json(fitted).encode())


def load(path: Path) -> Fitted:
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


def _read_rule(found: Found) -> Fitted:
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
    return cast(Fitted, read_fields(form, members, found, _read_rule))
