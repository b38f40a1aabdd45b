"""What a fake says when nobody told it what to say: something that fits, the same every time."""

import json
from collections.abc import Mapping
from typing import Any

from foretell.fakes.providers.heard import Call, Heard, Said


def improvise(heard: Heard) -> Said:
    """Call the tool that is forced, or the first on offer; else JSON for the schema; else a sentence."""
    number = int(heard.hash[:8], 16) / 0xFFFFFFFF
    if heard.force or heard.tools:
        tool = next((tool for tool in heard.tools if tool.name == heard.force), heard.tools[0])
        return Said(calls=(Call(name=tool.name, arguments=example(tool.schema, number)),))
    if heard.schema is not None:
        return Said(text=json.dumps(example(heard.schema, number)))
    return Said(text=f"You said: {heard.last[:200]}")


def example(schema: Mapping[str, Any], number: float, *, root: Mapping[str, Any] | None = None) -> Any:
    """A value that fits a JSON schema; numbers are `number` put into their range.

    >>> example({"type": "object", "properties": {"p": {"type": "number"}}, "required": ["p"]}, 0.25)
    {'p': 0.25}
    """
    root = schema if root is None else root
    if "$ref" in schema:
        found: Any = root
        for step in str(schema["$ref"]).removeprefix("#/").split("/"):
            found = found[step]
        return example(found, number, root=root)
    for fixed in ("const", "default"):
        if schema.get(fixed) is not None:
            return schema[fixed]
    if schema.get("enum"):
        return schema["enum"][0]
    choices = schema.get("anyOf") or schema.get("oneOf")
    return example(choices[0], number, root=root) if choices else _of_type(schema, number, root)


def _of_type(schema: Mapping[str, Any], number: float, root: Mapping[str, Any]) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else str(kind).lower():
        case "object":
            parts: Mapping[str, Any] = schema.get("properties", {})
            return {name: example(part, number, root=root) for name, part in parts.items()}
        case "array":
            return [example(schema.get("items") or {}, number, root=root)] * max(1, schema.get("minItems", 1))
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
