"""Anthropic messages."""

import json
from typing import Any

from foretell.fakes.providers.heard import Call, Heard, Said, Texts, Tool

_FINISH = {"stop": "end_turn", "tool": "tool_use", "length": "max_tokens", "refusal": "refusal"}
_ERRORS = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


class AnthropicFormat:
    """POST /v1/messages, not streamed."""

    name = "anthropic"

    def owns(self, path: str) -> bool:
        """The SDK may add `?beta=true`."""
        return path.partition("?")[0].endswith("/v1/messages")

    def hear(self, path: str, body: dict[str, Any], hash: str) -> Heard:
        """Read system, messages, tools, tool_choice and output_config."""
        if body.get("stream"):
            raise ValueError("this fake does not stream: ask with max_tokens below 20,000")
        texts = Texts()
        texts.add(body.get("system"))
        texts.add(body["messages"])
        choice = body.get("tool_choice") or {}
        force = {"any": "*", "tool": choice.get("name")}.get(choice.get("type", ""))
        shape = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
        return Heard(
            format=self.name,
            hash=hash,
            json=body,
            model=body["model"],
            words="\n".join(texts.found),
            last=texts.found[-1] if texts.found else "",
            tools=tuple(Tool(name=tool["name"], schema=tool["input_schema"]) for tool in body.get("tools") or ()),
            force=force,
            schema=shape.get("schema"),
        )

    def say(self, said: Said, heard: Heard) -> dict[str, Any]:
        """Text and tool_use blocks."""
        read, written = said.tokens(heard)
        thought = {"type": "thinking", "thinking": said.thoughts, "signature": f"signed-{heard.hash[:8]}"}
        content: list[dict[str, Any]] = [thought] if said.thoughts else []
        content += [{"type": "text", "text": said.text}] if said.text else []
        content += [_call(call, heard, place) for place, call in enumerate(said.calls)]
        return {
            "id": f"msg_{heard.hash[:16]}",
            "type": "message",
            "role": "assistant",
            "model": heard.model,
            "content": content,
            "stop_reason": _FINISH[said.ending],
            "stop_sequence": None,
            "usage": {
                "input_tokens": read - said.cached - said.stored,
                "output_tokens": written,
                "cache_read_input_tokens": said.cached,
                "cache_creation_input_tokens": said.stored,
            },
        }

    def fail(self, status: int, told: str) -> dict[str, Any]:
        """An error object."""
        kind = _ERRORS.get(status, "overloaded_error" if status == 529 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": told}}


def _call(call: Call, heard: Heard, place: int) -> dict[str, Any]:
    """Anthropic's arguments are an object on the wire: broken JSON cannot be said here."""
    given = json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments
    return {"type": "tool_use", "id": f"toolu_{heard.hash[:12]}_{place}", "name": call.name, "input": given}
