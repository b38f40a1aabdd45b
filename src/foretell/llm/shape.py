"""Whether a value has the shape a JSON schema asks for: the part of JSON Schema that tools here use."""

from collections.abc import Mapping
from typing import Any

_KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}


def faults(value: Any, schema: Mapping[str, Any], *, at: str = "", root: Mapping[str, Any] | None = None) -> list[str]:
    """What is wrong with a value, one sentence each; empty where it fits.

    >>> faults({"p": 1.2}, {"properties": {"p": {"type": "number", "maximum": 1}, "why": {}}, "required": ["why"]})
    ['why is missing', 'p is 1.2, above 1']
    """
    root = schema if root is None else root
    if "$ref" in schema:
        return faults(value, _referred(str(schema["$ref"]), root), at=at, root=root)
    choices: list[Any] = list(schema.get("anyOf") or schema.get("oneOf") or ())
    if choices:
        tries = [faults(value, choice, at=at, root=root) for choice in choices]
        return [] if any(not found for found in tries) else min(tries, key=len)
    place = at or "the value"
    if not _has_type(value, schema.get("type")):
        return [f"{place} must be {_named(schema['type'])}, not {_kind_of(value)}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{place} must be one of {', '.join(map(str, schema['enum']))}"]
    if "const" in schema and value != schema["const"]:
        return [f"{place} must be {schema['const']}"]
    if isinstance(value, dict):
        return _object_faults(value, schema, at, root)
    if isinstance(value, list):
        return _list_faults(value, schema, at, root)
    return _range_faults(value, schema, place)


def _object_faults(value: dict[str, Any], schema: Mapping[str, Any], at: str, root: Mapping[str, Any]) -> list[str]:
    known: Mapping[str, Any] = schema.get("properties", {})
    found = [f"{_path(at, name)} is missing" for name in schema.get("required", ()) if name not in value]
    extra = schema.get("additionalProperties", True)
    for name, part in value.items():
        if name in known:
            found += faults(part, known[name], at=_path(at, name), root=root)
        elif extra is False:
            found.append(f"{_path(at, name)} is unknown")
        elif isinstance(extra, Mapping):
            found += faults(part, extra, at=_path(at, name), root=root)
    return found


def _list_faults(value: list[Any], schema: Mapping[str, Any], at: str, root: Mapping[str, Any]) -> list[str]:
    found = [
        fault
        for place, part in enumerate(value)
        for fault in faults(part, schema.get("items") or {}, at=f"{at}[{place}]", root=root)
    ]
    if len(value) < schema.get("minItems", 0):
        found.append(f"{at or 'the list'} needs at least {schema['minItems']} items")
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        found.append(f"{at or 'the list'} may have at most {schema['maxItems']} items")
    return found


def _range_faults(value: Any, schema: Mapping[str, Any], place: str) -> list[str]:
    if isinstance(value, str):
        short = len(value) < schema.get("minLength", 0)
        long = len(value) > schema.get("maxLength", len(value))
        return [f"{place} is too {'short' if short else 'long'}"] if short or long else []
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    over, under = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if value < low or (over is not None and value <= over):
        return [f"{place} is {value}, below {schema.get('minimum', over)}"]
    if value > high or (under is not None and value >= under):
        return [f"{place} is {value}, above {schema.get('maximum', under)}"]
    return []


def _has_type(value: Any, kind: Any) -> bool:
    if kind is None:
        return True
    kinds = kind if isinstance(kind, list) else [kind]
    return any(_is(value, str(one)) for one in kinds)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool) and kind in ("integer", "number"):
        return False
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS.get(kind, (object,)))


def _kind_of(value: Any) -> str:
    return next(kind for kind in (*_KINDS, "unknown") if kind == "unknown" or _is(value, kind))


def _named(kind: Any) -> str:
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _path(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _referred(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found
