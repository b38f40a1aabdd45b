"""Canonical bytes for requests and replies: the same on every machine and in every process."""

import json
from hashlib import sha256
from json.encoder import encode_basestring_ascii
from typing import Any

from pydantic_core import to_json

from foretell.models.model import (
    AssistantMessage,
    Message,
    ModelSettings,
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
"""Attribute in which a value caches its key."""


def canonical_json(value: Any) -> bytes:
    r"""JSON with sorted keys, no spaces and ASCII only.

    >>> canonical_json({"b": 1, "a": "é"})
    b'{"a":"\\u00e9","b":1}'
    """
    return _CANONICAL.encode(value).encode("ascii")


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def quick_json(value: Any) -> bytes:
    """Compact JSON, several times faster than the standard library. Text is kept as UTF-8."""
    try:
        return to_json(value)
    except ValueError:  # Half of a surrogate pair cannot be encoded in UTF-8.
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def _text_json(value: Any) -> bytes:
    """Equals `canonical_json` for lists of (long) strings, by the fast encoder where both agree."""
    quick = quick_json(value)
    return quick if quick.isascii() and b"\x7f" not in quick else canonical_json(value)


def content_key(value: Any) -> str:
    """The key under which the journal stores the answer to `value`."""
    return sha256(canonical_json(value)).hexdigest()


def request_key(request: Request) -> str:
    """The journal key of a request, which depends on its whole text and its slot.

    Messages and tools cache their own keys, because earlier messages of a conversation do not change.
    """
    known = vars(request)
    if _KEY not in known:
        known[_KEY] = sha256(_request_json(request).encode("ascii")).hexdigest()
    return known[_KEY]


def _request_json(request: Request) -> str:
    """The same text as `canonical_json`, assembled by hand because only strings need encoding."""
    force = "null" if request.force is None else encode_basestring_ascii(request.force)
    schema = "null" if request.schema is None else _CANONICAL.encode(request.schema)
    messages = ",".join([f'"{_message_key(message)}"' for message in request.messages])
    tools = ",".join([f'"{_tool_key(tool)}"' for tool in request.tools])
    return (
        f'{{"force":{force},"messages":[{messages}],"model":{encode_basestring_ascii(request.model)},'
        f'"schema":{schema},"settings":{_settings_json(request.settings)},'
        f'"slot":{encode_basestring_ascii(request.slot)},"tools":[{tools}]}}'
    )


def _settings_json(settings: ModelSettings) -> str:
    known = vars(settings)
    if _KEY not in known:
        words = [settings.effort, settings.tier] if settings.tier else [settings.effort]
        sampling = [settings.temperature, settings.seed, settings.max_tokens, *words]
        # Formatted by hand if there are only plain numbers, because every request may have its own settings.
        plain = all([number is None or type(number) is int for number in sampling[:3]])
        parts = ["null" if value is None else str(value) for value in sampling[:3]]
        parts += ["null" if word is None else f'"{word}"' for word in words]
        known[_KEY] = f"[{','.join(parts)}]" if plain else _CANONICAL.encode(sampling)
    return known[_KEY]


def _message_key(message: Message) -> str:
    known = vars(message)
    if _KEY not in known:
        known[_KEY] = sha256(_text_json(_message(message))).hexdigest()
    return known[_KEY]


def _tool_key(tool: ToolSpec) -> str:
    known = vars(tool)
    if _KEY not in known:
        known[_KEY] = sha256(_text_json([tool.name, tool.description, tool.parameters_json])).hexdigest()
    return known[_KEY]


def _message(message: Message) -> list[Any]:
    match message:
        case SystemMessage():
            return ["system", message.text]
        case UserMessage():
            return ["user", message.text, message.cached]
        case AssistantMessage():
            turn = ["assistant", message.text, [_call(call) for call in message.calls]]
            return [*turn, message.sealed] if message.sealed else turn
        case ToolResult():
            return ["tool", message.call_id, message.name, message.text]


def _call(call: ToolCall) -> list[str]:
    return [call.id, call.name, call.arguments]


def pack_reply(reply: Reply) -> bytes:
    """A reply in the form stored by the journal; fields with default values are left out."""
    tokens = reply.tokens
    packed: dict[str, Any] = {
        "text": reply.text,
        "calls": [_call(call) for call in reply.calls],
        "finish": reply.finish,
        "tokens": [tokens.input, tokens.output, tokens.cached, tokens.stored, tokens.reasoning, tokens.estimated],
        "model": reply.model,
        "thoughts": reply.sealed,
        "thinking": reply.thinking,
        "dollars": reply.dollars,
        "detail": reply.detail,
        "tier": reply.tier,
        "cap": reply.cap,
    }
    return quick_json({name: value for name, value in packed.items() if value or name in _ALWAYS or value == 0.0})


_ALWAYS = ("text", "calls", "finish", "tokens", "model")


def unpack_reply(stored: bytes) -> Reply:
    """The reply that was packed, equal in every field. Also reads replies of older versions, which had fewer fields."""
    stored_reply = json.loads(stored)
    counts: list[Any] = [*stored_reply["tokens"], 0, 0, 0][:6]
    input_tokens, output_tokens, cached, cache_stored, reasoning, estimated = counts
    return Reply(
        text=stored_reply["text"],
        # An older version kept a signature with the call.
        calls=tuple(ToolCall(id=call[0], name=call[1], arguments=call[2]) for call in stored_reply["calls"]),
        finish=stored_reply["finish"],
        tokens=TokenCount(
            input=input_tokens,
            output=output_tokens,
            cached=cached,
            stored=cache_stored,
            reasoning=reasoning,
            estimated=bool(estimated),
        ),
        model=stored_reply["model"],
        sealed=stored_reply.get("thoughts", ""),
        thinking=stored_reply.get("thinking", ""),
        dollars=stored_reply.get("dollars"),
        detail=stored_reply.get("detail", ""),
        tier=stored_reply.get("tier"),
        cap=stored_reply.get("cap"),
    )
