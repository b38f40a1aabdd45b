"""What a fake provider hears and says, whatever format the two come in."""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

ScriptedFinish = Literal["stop", "tool", "length", "refusal"]


@dataclass(frozen=True, kw_only=True)
class OfferedTool:
    """A tool on offer."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ModelQuery:
    """A request for a completion."""

    format: str
    """openai, anthropic or gemini."""
    hash: str
    """Of path and body: two equal requests have the same."""
    json: Mapping[str, Any]
    model: str
    words: str
    """Every text of the conversation."""
    last: str
    """The last text of the conversation."""
    tools: tuple[OfferedTool, ...] = ()
    force: str | None = None
    """The tool that must be called; "*" for any."""
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ScriptedCall:
    """A tool call to answer with. The arguments may be broken JSON on purpose."""

    name: str
    arguments: str | Mapping[str, Any] = "{}"


@dataclass(frozen=True, kw_only=True)
class ScriptedReply:
    """A completion."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    finish: ScriptedFinish | None = None
    """None for what fits: `tool` with calls, else `stop`."""
    input: int | None = None
    output: int | None = None
    """Tokens; None for a guess by length."""
    cached: int = 0
    stored: int = 0
    """Input tokens written to the cache; Anthropic bills them apart."""
    thoughts: str = ""
    """What was thought before, sealed in each provider's way: it must come back with the next request."""

    @property
    def ending(self) -> ScriptedFinish:
        """How it ended."""
        return self.finish or ("tool" if self.calls else "stop")

    def tokens(self, heard: ModelQuery) -> tuple[int, int]:
        """Input and output, as stated or guessed."""
        written = len(self.text) + sum(len(str(call.arguments)) for call in self.calls)
        read = len(heard.words) // 4 + 1 if self.input is None else self.input
        return read, written // 4 + 1 if self.output is None else self.output


class ProviderFormat(Protocol):
    """One provider's way of writing."""

    name: str

    def owns(self, path: str) -> bool:
        """Whether a request to this path is one of mine."""
        ...

    def hear(self, path: str, body: dict[str, Any], hash: str) -> ModelQuery:
        """Understand a request."""
        ...

    def say(self, said: ScriptedReply, heard: ModelQuery) -> dict[str, Any]:
        """Write a completion."""
        ...

    def fail(self, status: int, told: str) -> dict[str, Any]:
        """Write an error."""
        ...


@dataclass(frozen=True, kw_only=True)
class TextCollector:
    """Collects the texts of a conversation, however deep they lie."""

    found: list[str] = field(default_factory=list[str])

    def add(self, content: Any) -> None:
        """A string, or a list or dict with `text`, `content` or `parts` in it."""
        if isinstance(content, str):
            self.found.append(content)
        elif isinstance(content, list):
            for part in content:
                self.add(part)
        elif isinstance(content, dict):
            for name in ("text", "content", "parts", "response", "output", "result"):
                self.add(content.get(name))


# Anthropic messages.

_ANTHROPIC_FINISH = {"stop": "end_turn", "tool": "tool_use", "length": "max_tokens", "refusal": "refusal"}
_ANTHROPIC_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class AnthropicFormat:
    """POST /v1/messages, not streamed."""

    name = "anthropic"

    def owns(self, path: str) -> bool:
        """The SDK may add `?beta=true`."""
        return path.partition("?")[0].endswith("/v1/messages")

    def hear(self, path: str, body: dict[str, Any], hash: str) -> ModelQuery:
        """Read system, messages, tools, tool_choice and output_config."""
        if body.get("stream"):
            raise ValueError("this fake does not stream: ask with max_tokens below 20,000")
        texts = TextCollector()
        texts.add(body.get("system"))
        texts.add(body["messages"])
        choice = body.get("tool_choice") or {}
        force = {"any": "*", "tool": choice.get("name")}.get(choice.get("type", ""))
        shape = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
        return ModelQuery(
            format=self.name,
            hash=hash,
            json=body,
            model=body["model"],
            words="\n".join(texts.found),
            last=texts.found[-1] if texts.found else "",
            tools=tuple(
                OfferedTool(name=tool["name"], schema=tool["input_schema"]) for tool in body.get("tools") or ()
            ),
            force=force,
            schema=shape.get("schema"),
        )

    def say(self, said: ScriptedReply, heard: ModelQuery) -> dict[str, Any]:
        """Text and tool_use blocks."""
        read, written = said.tokens(heard)
        thought = {"type": "thinking", "thinking": said.thoughts, "signature": f"signed-{heard.hash[:8]}"}
        content: list[dict[str, Any]] = [thought] if said.thoughts else []
        content += [{"type": "text", "text": said.text}] if said.text else []
        content += [_anthropic_call(call, heard, place) for place, call in enumerate(said.calls)]
        return {
            "id": f"msg_{heard.hash[:16]}",
            "type": "message",
            "role": "assistant",
            "model": heard.model,
            "content": content,
            "stop_reason": _ANTHROPIC_FINISH[said.ending],
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
        kind = _ANTHROPIC_ERRORS.get(status, "overloaded_error" if status == 529 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": told}}


def _anthropic_call(call: ScriptedCall, heard: ModelQuery, place: int) -> dict[str, Any]:
    """Anthropic's arguments are an object on the wire: broken JSON cannot be said here."""
    given = json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments
    return {"type": "tool_use", "id": f"toolu_{heard.hash[:12]}_{place}", "name": call.name, "input": given}


# Gemini generateContent.

_GEMINI_FINISH = {"stop": "STOP", "tool": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
_GEMINI_ERRORS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}


class GeminiFormat:
    """POST /v1beta/models/NAME:generateContent."""

    name = "gemini"

    def owns(self, path: str) -> bool:
        """Any version prefix will do."""
        return path.partition("?")[0].endswith(":generateContent")

    def hear(self, path: str, body: dict[str, Any], hash: str) -> ModelQuery:
        """Read contents, tools, toolConfig and generationConfig."""
        texts = TextCollector()
        texts.add(body.get("systemInstruction"))
        texts.add(body["contents"])
        calling = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
        allowed = calling.get("allowedFunctionNames") or []
        config = body.get("generationConfig") or {}
        offered = [tool for group in body.get("tools") or () for tool in group.get("functionDeclarations") or ()]
        forced = calling.get("mode") == "ANY"
        return ModelQuery(
            format=self.name,
            hash=hash,
            json=body,
            model=path.partition("?")[0].rpartition("/models/")[2].partition(":")[0],
            words="\n".join(texts.found),
            last=texts.found[-1] if texts.found else "",
            tools=tuple(_gemini_tool(tool) for tool in offered),
            force=None if not forced else allowed[0] if len(allowed) == 1 else "*",
            schema=config.get("responseJsonSchema") or config.get("responseSchema"),
        )

    def say(self, said: ScriptedReply, heard: ModelQuery) -> dict[str, Any]:
        """One candidate."""
        read, written = said.tokens(heard)
        parts: list[dict[str, Any]] = [{"text": said.text}] if said.text else []
        parts += [_gemini_call(call) for call in said.calls]
        if said.thoughts and said.calls:
            parts[-len(said.calls)]["thoughtSignature"] = b64encode(said.thoughts.encode()).decode()
        candidate = {
            "content": {"role": "model", "parts": parts},
            "finishReason": _GEMINI_FINISH[said.ending],
            "index": 0,
        }
        return {
            "candidates": [candidate],
            "modelVersion": heard.model,
            "responseId": heard.hash[:16],
            "usageMetadata": {
                "promptTokenCount": read,
                "candidatesTokenCount": written,
                "totalTokenCount": read + written,
                "cachedContentTokenCount": said.cached,
            },
        }

    def fail(self, status: int, told: str) -> dict[str, Any]:
        """An error object."""
        return {"error": {"code": status, "message": told, "status": _GEMINI_ERRORS.get(status, "UNAVAILABLE")}}


def _gemini_tool(tool: dict[str, Any]) -> OfferedTool:
    names = ("parametersJsonSchema", "parameters_json_schema", "parameters")
    return OfferedTool(name=tool["name"], schema=next((tool[name] for name in names if tool.get(name)), {}))


def _gemini_call(call: ScriptedCall) -> dict[str, Any]:
    given = json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments
    return {"functionCall": {"name": call.name, "args": given}}


# OpenAI chat completions.

_OPENAI_FINISH = {"stop": "stop", "tool": "tool_calls", "length": "length", "refusal": "content_filter"}


class OpenAIFormat:
    """POST …/chat/completions."""

    name = "openai"

    def owns(self, path: str) -> bool:
        """Any prefix will do: /v1, /api/v1."""
        return path.endswith("/chat/completions")

    def hear(self, path: str, body: dict[str, Any], hash: str) -> ModelQuery:
        """Read messages, tools, tool_choice and response_format."""
        texts = TextCollector()
        texts.add(body["messages"])
        choice = body.get("tool_choice")
        force = choice["function"]["name"] if isinstance(choice, dict) else "*" if choice == "required" else None
        shape = (body.get("response_format") or {}).get("json_schema") or {}
        return ModelQuery(
            format=self.name,
            hash=hash,
            json=body,
            model=body["model"],
            words="\n".join(texts.found),
            last=texts.found[-1] if texts.found else "",
            tools=tuple(_openai_tool(tool["function"]) for tool in body.get("tools") or ()),
            force=force,
            schema=shape.get("schema"),
        )

    def say(self, said: ScriptedReply, heard: ModelQuery) -> dict[str, Any]:
        """One choice."""
        read, written = said.tokens(heard)
        refused = said.ending == "refusal"
        message: dict[str, Any] = {"role": "assistant", "content": said.text or None if not refused else None}
        message["refusal"] = said.text if refused else None
        if said.calls:
            message["tool_calls"] = [_openai_call(call, heard, place) for place, call in enumerate(said.calls)]
        if said.thoughts:
            message["reasoning_details"] = [{"type": "reasoning.encrypted", "data": said.thoughts, "index": 0}]
        return {
            "id": f"chatcmpl-{heard.hash[:16]}",
            "object": "chat.completion",
            "created": 0,
            "model": heard.model,
            "choices": [{"index": 0, "message": message, "finish_reason": _OPENAI_FINISH[said.ending]}],
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


def _openai_tool(function: dict[str, Any]) -> OfferedTool:
    return OfferedTool(name=function["name"], schema=function.get("parameters") or {})


def _openai_call(call: ScriptedCall, heard: ModelQuery, place: int) -> dict[str, Any]:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    function = {"name": call.name, "arguments": arguments}
    return {"id": f"call_{heard.hash[:12]}_{place}", "type": "function", "function": function}
