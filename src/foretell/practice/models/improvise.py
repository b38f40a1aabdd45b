"""What a practice model replies without a script: something valid, and the same every time."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from foretell.practice.models.formats import ModelQuery, ScriptedCall, ScriptedReply, without_references


def improvise(query: ModelQuery) -> ScriptedReply:
    """Call the forced tool, or else the first; without tools reply with JSON for the schema, or else a sentence.

    The same request always gets the same reply.
    """
    number = int(query.hash[:8], 16) / 0xFFFFFFFF
    if query.force or query.tools:
        tool = next((tool for tool in query.tools if tool.name == query.force), query.tools[0])
        return ScriptedReply(calls=(ScriptedCall(name=tool.name, arguments=example(tool.schema, number)),))
    if query.schema is not None:
        return ScriptedReply(text=json.dumps(example(query.schema, number)))
    return ScriptedReply(text=f"You said: {query.last[:200]}")


def example(schema: Mapping[str, Any], number: float) -> Any:
    """Return a value that matches a JSON schema; numbers are `number` fitted into their range.

    >>> example({"type": "object", "properties": {"p": {"type": "number"}}, "required": ["p"]}, 0.25)
    {'p': 0.25}
    """
    return _example(without_references(schema), number)


def _example(schema: Mapping[str, Any], number: float) -> Any:
    for fixed in ("const", "default"):
        if schema.get(fixed) is not None:
            return schema[fixed]
    if schema.get("enum"):
        return schema["enum"][0]
    choices = schema.get("anyOf") or schema.get("oneOf")
    return _example(choices[0], number) if choices else _of_type(schema, number)


def _of_type(schema: Mapping[str, Any], number: float) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else str(kind).lower():
        case "object":
            parts: Mapping[str, Any] = schema.get("properties", {})
            return {name: _example(part, number) for name, part in parts.items()}
        case "array":
            return [_example(schema.get("items") or {}, number)] * max(1, schema.get("minItems", 1))
        case "number":
            return round(_within(schema, number), 6)
        case "integer":
            return int(_within(schema, number * 100))
        case "boolean":
            return number > 0.5
        case "null":
            return None
        case _:
            return "made up".ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength", 100)]


def _within(schema: Mapping[str, Any], number: float) -> float:
    low = schema.get("minimum", schema.get("exclusiveMinimum", min(0, number)))
    high = schema.get("maximum", schema.get("exclusiveMaximum", max(number, low)))
    return low + (high - low) * number if "minimum" in schema and "maximum" in schema else min(max(number, low), high)


def unit(text: str) -> float:
    """Return a pseudo-random number from 0 to 1 that depends only on the text."""
    return int(sha256(text.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def chance(text: str) -> float:
    """Return a pseudo-random probability from 0.1 to 0.9 that depends only on the text."""
    return round(0.1 + 0.8 * unit(text), 4)
