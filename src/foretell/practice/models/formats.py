"""How providers format requests and replies: OpenAI chat completions and Responses, Anthropic messages, Gemini.

A format parses a request into a `ModelQuery`, which a script answers with a `ScriptedReply`, and encodes that as the
provider would.
"""

import json
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, cast

from foretell.frozen import frozen

ScriptedFinish = Literal["stop", "tool", "length", "refusal"]


def without_references(schema: Any, definitions: Mapping[str, Any] | None = None) -> Any:
    """Return a schema with every `$ref` replaced by its definition; a recursive reference is left as it is.

    >>> without_references({"$defs": {"a": {"type": "number"}}, "properties": {"p": {"$ref": "#/$defs/a"}}})
    {'properties': {'p': {'type': 'number'}}}
    """
    if isinstance(schema, list):
        return [without_references(item, definitions) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    parts = cast("dict[str, Any]", schema)
    known = parts.get("$defs", {}) if definitions is None else definitions
    name = str(parts.get("$ref", "")).removeprefix("#/$defs/")
    if name in known:
        return without_references(known[name], {other: part for other, part in known.items() if other != name})
    return {key: without_references(part, known) for key, part in parts.items() if key != "$defs"}


@frozen
class RequestedTool:
    """A tool that the model may call."""

    name: str
    schema: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", without_references(self.schema))


@frozen
class ModelQuery:
    """A request for a completion, independent of the provider's format."""

    format: str
    """The name of the format: openai, responses, anthropic or gemini."""
    hash: str
    """Hash of path and body; equal requests have the same hash."""
    json: Mapping[str, Any]
    model: str
    words: str
    """All texts of the conversation, joined by newlines."""
    last: str
    """The last text of the conversation."""
    tools: tuple[RequestedTool, ...] = ()
    force: str | None = None
    """The tool that must be called; "*" for any, None if no call is required."""
    schema: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", without_references(self.schema))


@frozen
class ScriptedCall:
    """A tool call to reply with. The arguments may be invalid JSON on purpose."""

    name: str
    arguments: str | Mapping[str, Any] = "{}"

    @property
    def value(self) -> Any:
        """The arguments as an object; formats that send an object cannot send invalid JSON."""
        return json.loads(self.arguments) if isinstance(self.arguments, str) else self.arguments

    @property
    def text(self) -> str:
        """The arguments as JSON text."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@frozen
class ScriptedReply:
    """A completion to reply with."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    finish: ScriptedFinish | None = None
    """Why the reply ended; None selects `tool` if there are calls, else `stop`."""
    input: int | None = None
    output: int | None = None
    """Output tokens; None estimates them by length."""
    cached: int = 0
    stored: int = 0
    """Input tokens written to the cache, which Anthropic bills separately."""
    thoughts: str = ""
    """Reasoning before the reply, encrypted in each provider's way; the client must return it with its next request."""

    @property
    def ending(self) -> ScriptedFinish:
        """Why the reply ended."""
        return self.finish or ("tool" if self.calls else "stop")

    def tokens(self, query: ModelQuery) -> tuple[int, int]:
        """Return the input and output tokens, as stated or estimated."""
        characters = len(self.text) + sum(len(str(call.arguments)) for call in self.calls)
        input_tokens = len(query.words) // 4 + 1 if self.input is None else self.input
        return input_tokens, characters // 4 + 1 if self.output is None else self.output


class ProviderFormat(ABC):
    """One provider's request and reply format."""

    name: ClassVar[str]
    suffix: ClassVar[str]
    """The end of its request paths; the part before it differs between providers that share a format."""

    def read(self, path: str, body: dict[str, Any], hash: str) -> ModelQuery:
        """Parse a request."""
        fields = self.fields(path, body)
        texts = list(texts_in(fields.pop("texts")))
        return ModelQuery(
            format=self.name,
            hash=hash,
            json=body,
            words="\n".join(texts),
            last=texts[-1] if texts else "",
            **fields,
        )

    @abstractmethod
    def fields(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the `texts` of a request and the other `ModelQuery` fields that are specific to this format."""

    @abstractmethod
    def reply(self, reply: ScriptedReply, query: ModelQuery) -> dict[str, Any]:
        """Encode a completion."""

    @abstractmethod
    def error(self, status: int, message: str) -> dict[str, Any]:
        """Encode an error."""


def texts_in(content: Any) -> Iterator[str]:
    """Yield the texts of a conversation at any depth."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in cast("list[Any]", content):
            yield from texts_in(part)
    elif isinstance(content, dict):
        for name in ("text", "content", "parts", "functionResponse", "response", "output", "result"):
            yield from texts_in(cast("dict[str, Any]", content).get(name))


class OpenAIFormat(ProviderFormat):
    """OpenAI's chat completions: POST …/chat/completions."""

    name = "openai"
    suffix = "/chat/completions"
    finish: ClassVar = {"stop": "stop", "tool": "tool_calls", "length": "length", "refusal": "content_filter"}

    def fields(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Parse messages, tools, tool_choice and response_format."""
        choice = body.get("tool_choice")
        functions = [tool["function"] for tool in body.get("tools") or ()]
        return {
            "texts": body["messages"],
            "model": body["model"],
            "tools": tuple(
                RequestedTool(name=function["name"], schema=function.get("parameters") or {}) for function in functions
            ),
            "force": choice["function"]["name"] if isinstance(choice, dict) else "*" if choice == "required" else None,
            "schema": ((body.get("response_format") or {}).get("json_schema") or {}).get("schema"),
        }

    def reply(self, reply: ScriptedReply, query: ModelQuery) -> dict[str, Any]:
        """Encode a completion as one choice."""
        input_tokens, output_tokens = reply.tokens(query)
        refused = reply.ending == "refusal"
        message: dict[str, Any] = {"role": "assistant", "content": None if refused else reply.text or None}
        message["refusal"] = reply.text if refused else None
        if reply.calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{query.hash[:12]}_{place}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.text},
                }
                for place, call in enumerate(reply.calls)
            ]
        if reply.thoughts:
            message["reasoning_details"] = [{"type": "reasoning.encrypted", "data": reply.thoughts, "index": 0}]
        return {
            "id": f"chatcmpl-{query.hash[:16]}",
            "object": "chat.completion",
            "created": 0,
            "model": query.model,
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish[reply.ending]}],
            "usage": {
                "prompt_tokens": input_tokens,
                "completion_tokens": output_tokens,
                "total_tokens": input_tokens + output_tokens,
                "prompt_tokens_details": {"cached_tokens": reply.cached},
            },
        }

    def error(self, status: int, message: str) -> dict[str, Any]:
        """Encode an error object."""
        return {"error": {"message": message, "type": "practice_error", "code": None}}


class ResponsesFormat(OpenAIFormat):
    """OpenAI's Responses: POST …/responses, for models that reply at once; background research is separate."""

    name = "responses"
    suffix = "/responses"

    def fields(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Parse instructions, input, tools and text.format."""
        return {
            "texts": [body.get("instructions"), body["input"]],
            "model": body["model"],
            "tools": tuple(
                RequestedTool(name=tool["name"], schema=tool.get("parameters") or {})
                for tool in body.get("tools") or ()
                if tool.get("type") == "function"
            ),
            "force": _forced_function(body.get("tool_choice")),
            "schema": ((body.get("text") or {}).get("format") or {}).get("schema"),
        }

    def reply(self, reply: ScriptedReply, query: ModelQuery) -> dict[str, Any]:
        """Encode reasoning, a message and function calls."""
        output: list[dict[str, Any]] = []
        if reply.thoughts:
            sealed = {"type": "reasoning", "id": f"rs_{query.hash[:12]}", "summary": []}
            output.append({**sealed, "encrypted_content": reply.thoughts})
        if reply.text or not reply.calls:
            kind = "refusal" if reply.ending == "refusal" else "text"
            part = {"type": "refusal" if kind == "refusal" else "output_text", kind: reply.text}
            output.append({"type": "message", "role": "assistant", "content": [part]})
        output += [
            {
                "type": "function_call",
                "call_id": f"call_{query.hash[:12]}_{place}",
                "name": call.name,
                "arguments": call.text,
            }
            for place, call in enumerate(reply.calls)
        ]
        body = response_body(f"resp_{query.hash[:16]}", query.model, output, reply.tokens(query))
        body["usage"]["input_tokens_details"] = {"cached_tokens": reply.cached}
        if reply.ending == "length":
            body |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        return body


def _forced_function(choice: Any) -> str | None:
    if not isinstance(choice, dict):
        return "*" if choice == "required" else None
    fields = cast("dict[str, Any]", choice)
    return fields["tools"][0]["name"] if "tools" in fields else fields["name"]


def response_body(id: str, model: str, output: list[dict[str, Any]], tokens: tuple[int, int]) -> dict[str, Any]:
    """Build a completed response of OpenAI's Responses API; `tokens` are input and output tokens."""
    usage = {"input_tokens": tokens[0], "output_tokens": tokens[1], "input_tokens_details": {"cached_tokens": 0}}
    return {"id": id, "status": "completed", "model": model, "output": output, "usage": usage}


class AnthropicFormat(ProviderFormat):
    """Anthropic's messages: POST /v1/messages, without streaming."""

    name = "anthropic"
    suffix = "/v1/messages"
    finish: ClassVar = {"stop": "end_turn", "tool": "tool_use", "length": "max_tokens", "refusal": "refusal"}
    errors: ClassVar = {
        400: "invalid_request_error",
        401: "authentication_error",
        404: "not_found_error",
        429: "rate_limit_error",
        529: "overloaded_error",
    }

    def fields(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Parse system, messages, tools, tool_choice and output_config."""
        if body.get("stream"):
            raise ValueError("the practice model does not stream: ask with max_tokens below 20,000")
        choice = body.get("tool_choice") or {}
        shape = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
        tools = body.get("tools") or ()
        return {
            "texts": [body.get("system"), body["messages"]],
            "model": body["model"],
            "tools": tuple(RequestedTool(name=tool["name"], schema=tool["input_schema"]) for tool in tools),
            "force": {"any": "*", "tool": choice.get("name")}.get(choice.get("type", "")),
            "schema": shape.get("schema"),
        }

    def reply(self, reply: ScriptedReply, query: ModelQuery) -> dict[str, Any]:
        """Encode text and tool_use blocks."""
        input_tokens, output_tokens = reply.tokens(query)
        thought = {"type": "thinking", "thinking": reply.thoughts, "signature": f"signed-{query.hash[:8]}"}
        content: list[dict[str, Any]] = [thought] if reply.thoughts else []
        content += [{"type": "text", "text": reply.text}] if reply.text else []
        content += [
            {"type": "tool_use", "id": f"toolu_{query.hash[:12]}_{place}", "name": call.name, "input": call.value}
            for place, call in enumerate(reply.calls)
        ]
        return {
            "id": f"msg_{query.hash[:16]}",
            "type": "message",
            "role": "assistant",
            "model": query.model,
            "content": content,
            "stop_reason": self.finish[reply.ending],
            "stop_sequence": None,
            "usage": {
                "input_tokens": input_tokens - reply.cached - reply.stored,
                "output_tokens": output_tokens,
                "cache_read_input_tokens": reply.cached,
                "cache_creation_input_tokens": reply.stored,
            },
        }

    def error(self, status: int, message: str) -> dict[str, Any]:
        """Encode an error object."""
        return {"type": "error", "error": {"type": self.errors.get(status, "api_error"), "message": message}}


class GeminiFormat(ProviderFormat):
    """Google's Gemini: POST /v1beta/models/NAME:generateContent."""

    name = "gemini"
    suffix = ":generateContent"
    finish: ClassVar = {"stop": "STOP", "tool": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
    errors: ClassVar = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}

    def fields(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Parse contents, tools, toolConfig and generationConfig."""
        calling = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
        allowed = calling.get("allowedFunctionNames") or []
        config = body.get("generationConfig") or {}
        tools = [tool for group in body.get("tools") or () for tool in group.get("functionDeclarations") or ()]
        forced = calling.get("mode") == "ANY"
        schemas = ("parametersJsonSchema", "parameters_json_schema", "parameters")
        return {
            "texts": [body.get("systemInstruction"), body["contents"]],
            "model": path.rpartition("/models/")[2].partition(":")[0],
            "tools": tuple(
                RequestedTool(name=tool["name"], schema=next((tool[name] for name in schemas if tool.get(name)), {}))
                for tool in tools
            ),
            "force": None if not forced else allowed[0] if len(allowed) == 1 else "*",
            "schema": config.get("responseJsonSchema") or config.get("responseSchema"),
        }

    def reply(self, reply: ScriptedReply, query: ModelQuery) -> dict[str, Any]:
        """Encode a completion as one candidate."""
        input_tokens, output_tokens = reply.tokens(query)
        parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
        parts += [{"functionCall": {"name": call.name, "args": call.value}} for call in reply.calls]
        if reply.thoughts and reply.calls:
            parts[-len(reply.calls)]["thoughtSignature"] = b64encode(reply.thoughts.encode()).decode()
        content = {"role": "model", "parts": parts}
        return {
            "candidates": [{"content": content, "finishReason": self.finish[reply.ending], "index": 0}],
            "modelVersion": query.model,
            "responseId": query.hash[:16],
            "usageMetadata": {
                "promptTokenCount": input_tokens,
                "candidatesTokenCount": output_tokens,
                "totalTokenCount": input_tokens + output_tokens,
                "cachedContentTokenCount": reply.cached,
            },
        }

    def error(self, status: int, message: str) -> dict[str, Any]:
        """Encode an error object."""
        return {"error": {"code": status, "message": message, "status": self.errors.get(status, "UNAVAILABLE")}}


FORMATS: tuple[ProviderFormat, ...] = (OpenAIFormat(), ResponsesFormat(), AnthropicFormat(), GeminiFormat())


def format_of(path: str) -> ProviderFormat | None:
    """Return the format of requests to a path; None if no format matches."""
    return next((format for format in FORMATS if path.endswith(format.suffix)), None)
