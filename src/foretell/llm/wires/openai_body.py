"""A request in the words of the OpenAI chat completions format, and of those who speak it with an accent."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foretell.llm.message import Assistant, Message, Request, Settings, System, ToolResult, ToolSpec, User

CACHE_MARKED = ("anthropic/", "google/")
"""Vendors behind OpenRouter that cache a prefix only where a mark ends it."""


def body(request: Request, *, provider: str, name: str) -> dict[str, Any]:
    """The JSON to post."""
    marked = provider == "openrouter" and name.startswith(CACHE_MARKED)
    sent: dict[str, Any] = {
        "model": name,
        "messages": [_message(message, provider, marked) for message in request.messages],
    }
    if request.tools:
        sent["tools"] = [_tool(tool) for tool in request.tools]
    if request.force is not None:
        one = {"type": "function", "function": {"name": request.force}}
        sent["tool_choice"] = "required" if request.force == "*" else one
    if request.schema is not None:
        shape = {"name": "answer", "schema": request.schema, "strict": is_strict(request.schema)}
        sent["response_format"] = {"type": "json_schema", "json_schema": shape}
    return sent | _settings(request.settings, provider)


def encoded(request: Request, *, provider: str, name: str) -> bytes:
    """The same as bytes, with the tools as they were written out before: they are half of a step and never change."""
    sent = body(replace(request, tools=()), provider=provider, name=name)
    text = json.dumps(sent, separators=(",", ":"))
    if request.tools:
        text = f'{text[:-1]},"tools":[{",".join(map(_written, request.tools))}]}}'
    return text.encode("ascii")


def _written(tool: ToolSpec) -> str:
    name, told = json.dumps(tool.name), json.dumps(tool.description)
    function = f'{{"name":{name},"description":{told},"parameters":{tool.parameters_json}}}'
    return f'{{"type":"function","function":{function}}}'


def _message(message: Message, provider: str, marked: bool) -> dict[str, Any]:
    match message:
        case System():
            return {"role": "system", "content": message.text}
        case User():
            return {"role": "user", "content": _marked(message.text) if marked and message.cached else message.text}
        case Assistant():
            # OpenRouter passes on what the vendor behind it wants to see again.
            thoughts = message.thoughts if provider == "openrouter" else ""
            return _assistant(message) | ({"reasoning_details": json.loads(thoughts)} if thoughts else {})
        case ToolResult():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}


def _marked(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]


def _assistant(message: Assistant) -> dict[str, Any]:
    if not message.calls:
        return {"role": "assistant", "content": message.text}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.calls
    ]
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _settings(settings: Settings, provider: str) -> dict[str, Any]:
    sent: dict[str, Any] = {"temperature": settings.temperature, "seed": settings.seed}
    # OpenAI's reasoning models refuse the older name; other servers often know only that one.
    sent["max_completion_tokens" if provider == "openai" else "max_tokens"] = settings.max_tokens
    if provider == "openrouter":
        sent["reasoning"] = None if settings.effort is None else {"effort": settings.effort}
    else:
        sent["reasoning_effort"] = settings.effort
    return {name: value for name, value in sent.items() if value is not None}


def is_strict(schema: Any) -> bool:
    """Whether OpenAI would take a schema in strict mode: objects closed, properties required, no limits on lengths.

    >>> is_strict({"type": "object", "properties": {"p": {"type": "number"}}, "required": ["p"]})
    False
    """
    if isinstance(schema, list):
        return all(is_strict(part) for part in schema)
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "string" and "maxLength" in schema:
        return False
    if "properties" in schema or schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", ())) != set(schema.get("properties", ())):
            return False
    return all(is_strict(part) for part in schema.values())
