"""HTTP responses without a network."""

from collections.abc import AsyncIterator, Mapping
from json import dumps
from typing import Any

from foretell.outgoing.client import Answer


def respond(
    status: int = 200,
    *,
    json: Any = None,
    text: str | None = None,
    content: bytes | AsyncIterator[bytes] = b"",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Return a response with a body of JSON, of text, or of bytes."""
    if json is not None:
        return Answer(status, dumps(json).encode(), {"Content-Type": "application/json", **(headers or {})})
    if text is not None:
        return Answer(status, text.encode(), {"Content-Type": "text/plain; charset=utf-8", **(headers or {})})
    return Answer(status, content, headers or {})
