"""OpenAI-compatible chat completions, straight over aiohttp: a tenth of the CPU that an SDK takes per call."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, cast, get_args

from foretell.models.budget import BYTES_PER_TOKEN, estimate_tokens
from foretell.models.model import (
    AssistantMessage,
    FinishReason,
    Message,
    ModelBusy,
    ModelError,
    ModelSettings,
    Reply,
    ReplyLost,
    Request,
    SystemMessage,
    TokenCount,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from foretell.models.names import ModelName
from foretell.models.provider import Provider, ProviderConfig
from foretell.models.providers.http import HttpClient, HttpReply, http_model_error, redact_key, retry_after

# A request in the words of the OpenAI chat completions format, and of those who speak it with an accent.

CACHE_MARKED = ("anthropic/", "google/")
"""Vendors behind OpenRouter that cache a prefix only where a mark ends it."""


def chat_body(request: Request, *, provider: str, name: str) -> dict[str, Any]:
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


def encode_chat_body(request: Request, *, provider: str, name: str) -> bytes:
    """The same as bytes, with the tools as they were written out before: they are half of a step and never change."""
    sent = chat_body(replace(request, tools=()), provider=provider, name=name)
    text = json.dumps(sent, separators=(",", ":"))
    if request.tools:
        text = f'{text[:-1]},"tools":[{",".join(map(_tool_json, request.tools))}]}}'
    return text.encode("ascii")


def _tool_json(tool: ToolSpec) -> str:
    name, description = json.dumps(tool.name), json.dumps(tool.description)
    function = f'{{"name":{name},"description":{description},"parameters":{tool.parameters_json}}}'
    return f'{{"type":"function","function":{function}}}'


def _message(message: Message, provider: str, marked: bool) -> dict[str, Any]:
    match message:
        case SystemMessage():
            return {"role": "system", "content": message.text}
        case UserMessage():
            return {
                "role": "user",
                "content": _cache_marked(message.text) if marked and message.cached else message.text,
            }
        case AssistantMessage():
            # OpenRouter passes on what the vendor behind it wants to see again.
            thoughts = message.thoughts if provider == "openrouter" else ""
            return _assistant(message) | ({"reasoning_details": json.loads(thoughts)} if thoughts else {})
        case ToolResult():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}


def _cache_marked(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]


def _assistant(message: AssistantMessage) -> dict[str, Any]:
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


def _settings(settings: ModelSettings, provider: str) -> dict[str, Any]:
    sent: dict[str, Any] = {"temperature": settings.temperature, "seed": settings.seed}
    # OpenAI's reasoning models refuse the older name; other servers often know only that one.
    sent["max_completion_tokens" if provider == "openai" else "max_tokens"] = settings.max_tokens
    if provider == "openrouter":
        sent["reasoning"] = None if settings.effort is None else {"effort": settings.effort}
    else:
        sent["reasoning_effort"] = settings.effort
    return {name: value for name, value in sent.items() if value is not None}


def is_strict(schema: Any) -> bool:
    """Whether OpenAI would take a schema in strict mode: objects closed, properties required, no limits on lengths."""
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


ChatDialect = Literal["openai", "openrouter", "compat", "local"]
_FINISH: dict[str, FinishReason] = {"length": "length", "content_filter": "refusal"}


class OpenAIChat:
    """One server that speaks the format: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp."""

    def __init__(self, flavour: ChatDialect, address: str, key: str = "") -> None:
        self._flavour: ChatDialect = flavour
        self._key = key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        if flavour == "openrouter":
            headers["X-Title"] = "foretell"
        self._url = f"{address.rstrip('/')}/chat/completions"
        self._http = HttpClient(address, headers)

    def __repr__(self) -> str:
        return f"OpenAIChat({self._flavour})"

    async def complete(self, request: Request) -> Reply:
        """One request, one reply; whoever stands outside limits time and tries again."""
        name = ModelName.read(request.model).name
        try:
            body = encode_chat_body(request, provider=self._flavour, name=name)
            posted = await self._http.send("POST", self._url, body)
        except ModelBusy as error:
            raise type(error)(f"{request.model}: {redact_key(str(error), self._key)}") from None
        found = posted.json()
        if posted.status != 200 or not found or _error(found):
            raise self._problem(request.model, posted, found)
        try:
            return _reply(found, request)
        except (KeyError, IndexError, TypeError, AttributeError):
            raise ReplyLost(f"{request.model}: the reply has no choices that can be read") from None

    async def close(self) -> None:
        """Close connections."""
        await self._http.close()

    def _problem(self, model: str, posted: HttpReply, found: dict[str, Any]) -> ModelError:
        error = _error(found)
        if posted.status == 200 and not error:
            return ReplyLost(f"{model}: the reply is no JSON or was cut off")
        message = redact_key(str(error.get("message") or ""), self._key)
        code = error.get("code")
        # OpenRouter answers 200 and puts the status of the provider behind it into the error.
        status = code if posted.status == 200 and isinstance(code, int) else posted.status
        if status == 200:
            status = 502
        words = f"{code} {error.get('type')}"
        return http_model_error(status, message, model=model, wait=retry_after(posted.headers), code=words)


def _error(found: dict[str, Any]) -> dict[str, Any]:
    error: Any = found.get("error")
    if not error and found.get("choices"):
        first: Any = found["choices"][0]
        error = first.get("error") if isinstance(first, dict) else None
    if not error:
        return {}
    return error if isinstance(error, dict) else {"message": str(error)}


def _reply(found: dict[str, Any], request: Request) -> Reply:
    choice = found["choices"][0]
    message = choice["message"]
    calls = tuple(_call(call, place) for place, call in enumerate(message.get("tool_calls") or ()))
    refusal = message.get("refusal")
    text = _text(message.get("content")) or (refusal or "")
    finish: FinishReason = _FINISH.get(choice.get("finish_reason") or "", "tool" if calls else "stop")
    return Reply(
        text=text,
        calls=calls,
        finish="refusal" if refusal and not calls else finish,
        tokens=_tokens(found.get("usage"), request, text, calls),
        model=found.get("model") or "",
        thoughts=json.dumps(thoughts) if (thoughts := message.get("reasoning_details")) else "",
    )


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content or ""


def _call(call: Any, place: int) -> ToolCall:
    arguments = call["function"].get("arguments")
    written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return ToolCall(id=call.get("id") or f"call_{place}", name=call["function"]["name"], arguments=written)


def _tokens(usage: Any, request: Request, text: str, calls: tuple[ToolCall, ...]) -> TokenCount:
    """As counted by the server; an estimate where it does not count, so that a budget of tokens still holds."""
    if not isinstance(usage, dict) or not usage.get("prompt_tokens"):
        size = len(text) + sum(len(call.arguments) for call in calls)
        return TokenCount(input=estimate_tokens(request).input, output=int(size / BYTES_PER_TOKEN) + 1)
    details = usage.get("prompt_tokens_details") or {}
    return TokenCount(
        input=int(usage["prompt_tokens"]),
        output=int(usage.get("completion_tokens") or 0),
        cached=int(details.get("cached_tokens") or 0),
        stored=int(details.get("cache_write_tokens") or 0),
    )


# The providers of this format as the registry knows them.

VENDOR_IDS = {name: name for name in ("anthropic", "deepseek", "google", "moonshotai", "openai", "x-ai")} | {
    "meta-llama": "meta",
    "mistralai": "mistral",
}
"""OpenRouter passes vendors' prices on: where its own entry is missing, the vendor's counts."""


def _prices_behind_openrouter(name: str) -> list[tuple[str, str]]:
    vendor, _, model = name.partition("/")
    return [("openrouter", name)] + ([(VENDOR_IDS[vendor], model)] if vendor in VENDOR_IDS else [])


def _open(config: ProviderConfig) -> OpenAIChat:
    provider = cast("ChatDialect", config.name.provider)
    return OpenAIChat(provider if provider in get_args(ChatDialect) else "compat", config.address, config.key)


OPENAI = Provider(
    open=_open,
    form="openai:NAME",
    key_variables=("OPENAI_API_KEY",),
    address="https://api.openai.com/v1",
    requires="aiohttp",
    price_ids=lambda name: [("openai", name)],
)
OPENROUTER = Provider(
    open=_open,
    form="openrouter:VENDOR/NAME",
    key_variables=("OPENROUTER_API_KEY",),
    address="https://openrouter.ai/api/v1",
    requires="aiohttp",
    price_ids=_prices_behind_openrouter,
)
COMPATIBLE_SERVER = Provider(
    open=_open,
    form="compat:NAME@http://HOST:PORT/v1",
    # Sent where it is set; most servers need none.
    key_variables=("COMPAT_API_KEY",),
    key_required=False,
    requires="aiohttp",
    named_with_address=True,
)
