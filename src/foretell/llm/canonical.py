"""One way to write a request or a reply as bytes, the same on every machine and in every process."""

import json
from hashlib import sha256
from typing import Any

from foretell.llm.message import (
    Assistant,
    Message,
    Reply,
    Request,
    Settings,
    System,
    Tokens,
    ToolCall,
    ToolResult,
    ToolSpec,
    User,
)


def canonical(value: Any) -> bytes:
    r"""JSON with sorted keys, no spaces and ASCII only.

    >>> canonical({"b": 1, "a": "é"})
    b'{"a":"\\u00e9","b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def content_key(value: Any) -> str:
    """The name under which the journal keeps the answer to `value`."""
    return sha256(canonical(value)).hexdigest()


def request_key(request: Request) -> str:
    """Every word of the request counts, and so does its slot."""
    return content_key(
        {
            "model": request.model,
            "messages": [_message(message) for message in request.messages],
            "tools": [_tool(tool) for tool in request.tools],
            "force": request.force,
            "schema": request.schema,
            "settings": _settings(request.settings),
            "slot": request.slot,
        }
    )


def _message(message: Message) -> list[Any]:
    match message:
        case System():
            return ["system", message.text]
        case User():
            return ["user", message.text, message.cached]
        case Assistant():
            return ["assistant", message.text, [[call.id, call.name, call.arguments] for call in message.calls]]
        case ToolResult():
            return ["tool", message.call_id, message.name, message.text]


def _tool(tool: ToolSpec) -> list[Any]:
    return [tool.name, tool.description, tool.parameters]


def _settings(settings: Settings) -> list[Any]:
    return [settings.temperature, settings.seed, settings.max_tokens, settings.effort]


def pack_reply(reply: Reply) -> bytes:
    """A reply as the journal keeps it."""
    tokens = reply.tokens
    return canonical(
        {
            "text": reply.text,
            "calls": [[call.id, call.name, call.arguments] for call in reply.calls],
            "finish": reply.finish,
            "tokens": [tokens.input, tokens.output, tokens.cached],
            "model": reply.model,
        }
    )


def unpack_reply(kept: bytes) -> Reply:
    """The reply that was packed, equal in every field."""
    found = json.loads(kept)
    read, written, cached = found["tokens"]
    return Reply(
        text=found["text"],
        calls=tuple(ToolCall(id=id, name=name, arguments=arguments) for id, name, arguments in found["calls"]),
        finish=found["finish"],
        tokens=Tokens(input=read, output=written, cached=cached),
        model=found["model"],
    )
