"""OpenAI chat completions."""

import json
from typing import Any

from foretell.fakes.providers.heard import Call, Heard, Said, Texts, Tool

_FINISH = {"stop": "stop", "tool": "tool_calls", "length": "length", "refusal": "content_filter"}


class OpenAIFormat:
    """POST …/chat/completions."""

    name = "openai"

    def owns(self, path: str) -> bool:
        """Any prefix will do: /v1, /api/v1."""
        return path.endswith("/chat/completions")

    def hear(self, path: str, body: dict[str, Any], hash: str) -> Heard:
        """Read messages, tools, tool_choice and response_format."""
        texts = Texts()
        texts.add(body["messages"])
        choice = body.get("tool_choice")
        force = choice["function"]["name"] if isinstance(choice, dict) else "*" if choice == "required" else None
        shape = (body.get("response_format") or {}).get("json_schema") or {}
        return Heard(
            format=self.name,
            hash=hash,
            json=body,
            model=body["model"],
            words="\n".join(texts.found),
            last=texts.found[-1] if texts.found else "",
            tools=tuple(_tool(tool["function"]) for tool in body.get("tools") or ()),
            force=force,
            schema=shape.get("schema"),
        )

    def say(self, said: Said, heard: Heard) -> dict[str, Any]:
        """One choice."""
        read, written = said.tokens(heard)
        refused = said.ending == "refusal"
        message: dict[str, Any] = {"role": "assistant", "content": said.text or None if not refused else None}
        message["refusal"] = said.text if refused else None
        if said.calls:
            message["tool_calls"] = [_call(call, heard, place) for place, call in enumerate(said.calls)]
        if said.thoughts:
            message["reasoning_details"] = [{"type": "reasoning.encrypted", "data": said.thoughts, "index": 0}]
        return {
            "id": f"chatcmpl-{heard.hash[:16]}",
            "object": "chat.completion",
            "created": 0,
            "model": heard.model,
            "choices": [{"index": 0, "message": message, "finish_reason": _FINISH[said.ending]}],
            "usage": {
                "prompt_tokens": read,
                "completion_tokens": written,
                "total_tokens": read + written,
                "prompt_tokens_details": {"cached_tokens": said.cached},
            },
        }

    def fail(self, status: int, told: str) -> dict[str, Any]:
        """An error object."""
        return {"error": {"message": told, "type": "fake_error", "code": None}}


def _tool(function: dict[str, Any]) -> Tool:
    return Tool(name=function["name"], schema=function.get("parameters") or {})


def _call(call: Call, heard: Heard, place: int) -> dict[str, Any]:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    function = {"name": call.name, "arguments": arguments}
    return {"id": f"call_{heard.hash[:12]}_{place}", "type": "function", "function": function}
