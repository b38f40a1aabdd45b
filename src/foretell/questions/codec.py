"""Read and write the values of this package as JSON with a schema version."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_type_hints

from foretell.questions.errors import InputError, known_names, plain_problem, validator_error
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, read_exclusivity
from foretell.questions.resolution import Resolution

JSON_SCHEMA_VERSION = "foretell/1"
JSON_TYPES: dict[str, type] = {kind.__name__: kind for kind in (Question, Resolution, Forecast, Failure)}
UNKNOWN_FIELD = "unexpected_keyword_argument"
"""Pydantic's name for the problem."""
DERIVED: Mapping[str, Any] = {"derived": True}
"""Metadata of a field that is computed and that no user writes."""

T = TypeVar("T")


def parse_yaml(text: str) -> Any:
    """Parse YAML or JSON that a person wrote. Raises an `InputError` that names the line, if it is known.

    >>> parse_yaml("due: 2026-13-01")
    Traceback (most recent call last):
    ...
    foretell.questions.errors.InputError: is not YAML: month must be in 1..12...
    """
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(f"is not YAML: {error.problem}", row=line) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # YAML parses dates, and an impossible date is a ValueError.
        raise InputError(f"is not YAML: {error}") from None


def parse_literal(text: str) -> Any:
    """Parse a literal as Python prints it, without running code.

    >>> parse_literal("{'p': 0.5}")
    {'p': 0.5}
    >>> parse_literal("open('secret')")
    Traceback (most recent call last):
    ...
    ValueError: not a plain Python literal
    """
    import ast

    try:
        try:
            return ast.literal_eval(text)
        except SystemError:
            # CPython 3.11 counts the depth of all parsers of a process together (python/cpython#106905). It fails if a
            # traceback is formatted meanwhile, for example because of garbage collection.
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError("not a plain Python literal") from None


def parse_options(text: str) -> tuple[str, dict[str, Any]]:
    """Parse "name:option=value,…" into the name and its options.

    >>> parse_options("constant:p=0.3")
    ('constant', {'p': 0.3})
    """
    name, _, option_text = text.partition(":")
    options: dict[str, Any] = {}
    for part in filter(None, option_text.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"{text!r}: cannot use {part!r}", hint="write options as name=value")
        options[key] = parse_yaml(value)
    return name, options


def parse_json(text: str | bytes, **readers: Any) -> Any:
    """Parse JSON from a file or another program. Raises an `InputError` that names the position.

    Args:
        text: The document.
        readers: Arguments of `json.loads`, such as `object_pairs_hook`.

    >>> parse_json('{"p": ')
    Traceback (most recent call last):
    ...
    foretell.questions.errors.InputError: is not JSON: Expecting value at character 6 (is it cut off?)
    """
    try:
        return json.loads(text.rstrip(), **readers)
    except InputError:
        raise
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if "\n" in error.doc.strip() else ""
        cut_off = error.pos >= len(error.doc) or error.msg.startswith("Unterminated")
        problem = f"is not JSON: {error.msg.removesuffix(' at')} at {line}character {error.colno}"
        raise InputError(problem, hint="is it cut off?" if cut_off else None) from None
    except RecursionError:
        raise InputError("is not JSON that can be read: it is nested too deeply", hint="is it damaged?") from None
    except ValueError as error:
        raise InputError(f"is not JSON: {error}") from None


@cache
def _adapter(kind: type) -> Any:
    # Imported here, because pydantic takes long to import.
    from pydantic import ConfigDict, TypeAdapter, with_config

    return TypeAdapter(with_config(ConfigDict(extra="forbid"))(kind))


def to_json(value: object) -> str:
    """Return one line of JSON with the type and schema version.

    >>> from foretell.questions.resolution import Resolution
    >>> to_json(Resolution(question_id="q", target_id="yes", outcome=1))
    '{"schema":"foretell/1","type":"Resolution","question_id":"q","target_id":"yes","outcome":1}'
    """
    kind = type(value)
    if kind.__name__ not in JSON_TYPES:
        raise TypeError(f"{kind.__name__} has no JSON form; the types are {', '.join(JSON_TYPES)}")
    body = _adapter(kind).dump_python(value, mode="json", exclude_defaults=True)
    return json.dumps(
        {"schema": JSON_SCHEMA_VERSION, "type": kind.__name__, **body}, ensure_ascii=False, separators=(",", ":")
    )


def from_json(text: str | bytes, kind: type[T]) -> T:
    """Read a value from JSON. Raises `InputError` with the name of a field that is wrong."""
    return from_dict(parse_json(text), kind)


def from_dict(data: Any, kind: type[T]) -> T:
    """Read a value from a parsed JSON object. `schema` and `type` are checked if present."""
    if not isinstance(data, dict):
        raise InputError(f"expected a JSON object with the fields of a {kind.__name__}, found {type(data).__name__}")
    body: dict[str, Any] = dict(data)  # type: ignore[reportUnknownArgumentType]
    if (schema := body.pop("schema", JSON_SCHEMA_VERSION)) != JSON_SCHEMA_VERSION:
        raise InputError(
            f"schema {schema!r} is not {JSON_SCHEMA_VERSION!r}", column="schema", hint="written by another version?"
        )
    if (name := body.pop("type", kind.__name__)) != kind.__name__:
        raise InputError(f"this is a {name}, expected a {kind.__name__}", column="type")
    if kind is Question and "exclusive" in body and "exclusivity" not in body:
        body["exclusivity"] = _exclusivity_from_flag(body.pop("exclusive"))
    if kind is Forecast and body.get("ending") == "degraded":
        body["ending"] = "fallback"  # The name in earlier versions.
    return checked_fields(body, kind)


def checked_fields(data: Any, kind: type[T]) -> T:
    """Return a value of a dataclass from parsed JSON or YAML. Raises `InputError` if a field is wrong or unknown.

    An unknown field is reported before a missing one, because it is usually a misspelling of it.
    """
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_python(data)
    except ValidationError as error:
        problems = error.errors()
        if own := validator_error(problems):
            raise own from None
        first = next((problem for problem in problems if problem["type"] == UNKNOWN_FIELD), problems[0])
        path = ".".join(str(part) for part in first["loc"]) or None
        if first["type"] == UNKNOWN_FIELD:
            known = _field_names(kind, first["loc"][:-1])
            hint = known_names(str(first["loc"][-1]), known) if known else None
            raise InputError("is not a known field", column=path, hint=hint) from None
        raise InputError(plain_problem(first), column=path) from None


def _field_names(kind: type, path: Sequence[str | int]) -> list[str]:
    """Return the fields that a user may write of the dataclass at a path inside another; empty if there is none."""
    for part in path:
        annotation = get_type_hints(kind).get(str(part)) if is_dataclass(kind) else None
        inner = [hint for hint in (annotation, *get_args(annotation)) if is_dataclass(hint)]
        if not inner:
            return []
        kind = cast("type", inner[0])
    return [field.name for field in fields(kind) if not field.metadata.get("derived")] if is_dataclass(kind) else []


def _exclusivity_from_flag(value: Any) -> str:
    """Read the field `exclusive` of earlier versions: true if exactly one target comes true."""
    try:
        return read_exclusivity(value)
    except ValueError as error:
        raise InputError(str(error), column="exclusive") from None


def plain_data(value: Any) -> Any:
    """Convert dataclasses, mappings, sets, tuples, arrays and dates to JSON types. NaN and infinity become None.

    >>> plain_data((float("nan"), frozenset({"b", "a"})))
    [None, ['a', 'b']]
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_data(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_data(inner) for key, inner in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, frozenset):
        return [plain_data(inner) for inner in sorted(cast("frozenset[Any]", value))]
    if isinstance(value, list | tuple):
        return [plain_data(inner) for inner in cast("list[Any]", value)]
    if callable(numbers := getattr(value, "tolist", None)):  # numpy's arrays and numbers
        return plain_data(numbers())
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value
