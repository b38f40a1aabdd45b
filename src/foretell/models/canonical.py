"""One way to write a request or a reply as bytes, the same on every machine and in every process."""

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from foretell.models.model import (
    AssistantMessage,
    Message,
    Reply,
    Request,
    SystemMessage,
    TokenCount,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)

_KEY = "_journal_key"
"""Where a value remembers its key."""


def canonical_json(value: Any) -> bytes:
    r"""JSON with sorted keys, no spaces and ASCII only.

    >>> canonical_json({"b": 1, "a": "é"})
    b'{"a":"\\u00e9","b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def content_key(value: Any) -> str:
    """The name under which the journal keeps the answer to `value`."""
    return sha256(canonical_json(value)).hexdigest()


def request_key(request: Request) -> str:
    """Every word of the request counts, and so does its slot.

    Of messages and tools their own keys count, which they remember: a conversation grows, what was said before stays.
    """
    settings = request.settings
    return _cached_key(
        request,
        lambda: {
            "model": request.model,
            "messages": [_cached_key(message, lambda m=message: _message(m)) for message in request.messages],
            "tools": [
                _cached_key(tool, lambda t=tool: [t.name, t.description, t.parameters_json]) for tool in request.tools
            ],
            "force": request.force,
            "schema": request.schema,
            "settings": [settings.temperature, settings.seed, settings.max_tokens, settings.effort],
            "slot": request.slot,
        },
    )


def _cached_key(value: Request | Message | ToolSpec, written: Callable[[], Any]) -> str:
    known = vars(value)
    if _KEY not in known:
        known[_KEY] = content_key(written())
    return known[_KEY]


def _message(message: Message) -> list[Any]:
    match message:
        case SystemMessage():
            return ["system", message.text]
        case UserMessage():
            return ["user", message.text, message.cached]
        case AssistantMessage():
            turn = ["assistant", message.text, [_call(call) for call in message.calls]]
            return [*turn, message.thoughts] if message.thoughts else turn
        case ToolResult():
            return ["tool", message.call_id, message.name, message.text]


def _call(call: ToolCall) -> list[str]:
    written = [call.id, call.name, call.arguments]
    return [*written, call.mark] if call.mark else written


def pack_reply(reply: Reply) -> bytes:
    """A reply as the journal keeps it."""
    tokens = reply.tokens
    packed: dict[str, Any] = {
        "text": reply.text,
        "calls": [_call(call) for call in reply.calls],
        "finish": reply.finish,
        "tokens": [tokens.input, tokens.output, tokens.cached, *([tokens.stored] if tokens.stored else [])],
        "model": reply.model,
    }
    return canonical_json(packed | ({"thoughts": reply.thoughts} if reply.thoughts else {}))


def unpack_reply(body: bytes) -> Reply:
    """The reply that was packed, equal in every field."""
    packed = json.loads(body)
    read, written, cached, *stored = packed["tokens"]
    fields = ("id", "name", "arguments", "mark")
    return Reply(
        text=packed["text"],
        calls=tuple(ToolCall(**dict(zip(fields, call, strict=False))) for call in packed["calls"]),
        finish=packed["finish"],
        tokens=TokenCount(input=read, output=written, cached=cached, stored=stored[0] if stored else 0),
        model=packed["model"],
        thoughts=packed.get("thoughts", ""),
    )
