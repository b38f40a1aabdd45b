"""Estimates of how many tokens a request has."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from foretell.models.canonical import quick_json
from foretell.models.model import AssistantMessage, Message, Request, ToolResult, ToolSpec

BYTES_PER_TOKEN = 3.5
"""A cautious ratio for English words. The true count is booked when the reply arrives."""
T = TypeVar("T")
_WORDS = bytes(range(ord("a"), ord("z") + 1)) + bytes(range(ord("A"), ord("Z") + 1)) + b" "


def estimate_input_tokens(request: Request) -> int:
    """Estimate the input tokens of a request from its bytes."""
    return int(sum([size.bytes for size in request_sizes(request)]) / BYTES_PER_TOKEN) + 1


def request_sizes(request: Request) -> "list[TextSize]":
    """Return the sizes of the messages, tools and schema of a request."""
    sizes = [_cached(message, _message_sizes) for message in request.messages]
    sizes += [_cached(tool, _tool_sizes) for tool in request.tools]
    return sizes + ([_text_sizes(quick_json(request.schema).decode())] if request.schema else [])


class TextSize(NamedTuple):
    """The size of a text in bytes and the most tokens of it with common tokenizers."""

    bytes: int
    tokens: float

    def __add__(self, other: "TextSize") -> "TextSize":  # pyright: ignore[reportIncompatibleMethodOverride]
        return TextSize(self.bytes + other.bytes, self.tokens + other.tokens)


def _cached(value: T, sizes: Callable[[T], TextSize]) -> TextSize:
    """The cached size of a message or tool. Earlier messages of a conversation do not change."""
    known = vars(value)
    if _ATTRIBUTE not in known:
        known[_ATTRIBUTE] = sizes(value)
    return known[_ATTRIBUTE]


def _message_sizes(message: Message) -> TextSize:
    sizes = _text_sizes(message.text)
    if isinstance(message, AssistantMessage):
        for text in (message.sealed, *(call.arguments + call.name for call in message.calls)):
            sizes += _text_sizes(text)
    return sizes + _text_sizes(message.name) if isinstance(message, ToolResult) else sizes


def _tool_sizes(tool: ToolSpec) -> TextSize:
    return _text_sizes(tool.description + tool.parameters_json)


def _text_sizes(text: str) -> TextSize:
    """The size of a text.

    English words have at least `BYTES_PER_TOKEN` bytes per token. Digits and punctuation may be separate tokens,
    and other scripts have at most one token for every two bytes.
    """
    encoded = text.encode(errors="replace")
    rest = encoded.translate(None, _WORDS)
    plain = len(rest) if text.isascii() else len(rest.translate(None, _HIGH))
    tokens = (len(encoded) - len(rest)) / BYTES_PER_TOKEN + plain + (len(rest) - plain) / 2
    return TextSize(len(encoded), tokens)


_ATTRIBUTE = "_sizes"
_HIGH = bytes(range(128, 256))
