"""Anthropic and Gemini through pydantic-ai, which knows their dialects: caching, thinking, schemas, tool choice."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter
from pydantic_ai.messages import (
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from foretell.models.model import (
    AssistantMessage,
    FinishReason,
    Message,
    ModelBusy,
    ModelError,
    ModelRefused,
    Reply,
    ReplyLost,
    Request,
    SystemMessage,
    TokenCount,
    ToolCall,
    ToolResult,
    UserMessage,
)
from foretell.models.names import ModelName
from foretell.models.providers.http import http_model_error, redact_key

if TYPE_CHECKING:
    from pydantic_ai.settings import ModelSettings


PydanticAIVendor = Literal["anthropic", "google"]
ANTHROPIC_MAX_TOKENS = 16_000
"""Anthropic wants a limit on every request; above about 21,000 tokens its SDK insists on streaming."""
THINKING_EFFORTS: dict[str, Any] = {"none": False, "low": "low", "medium": "medium", "high": "high"}


class PydanticAIClient:
    """One provider; its models share a client, made on first use."""

    def __init__(self, vendor: PydanticAIVendor, key: str, *, address: str | None = None) -> None:
        self._vendor: PydanticAIVendor = vendor
        self._key = key
        self._provider = _provider(vendor, key, address)
        self._models: dict[str, Model] = {}

    def __repr__(self) -> str:
        return f"PydanticAIWire({self._vendor})"

    async def complete(self, request: Request) -> Reply:
        """One request, one reply; the SDK's own retries are off, because ours count money."""
        from pydantic_ai.exceptions import AgentRunError, UserError

        model = self._model(ModelName.read(request.model).name)
        problem = ""
        # Some models cannot think and be forced to call a tool at once: let them choose, the loop asks again.
        for forced in (True, False) if request.force is not None else (True,):
            try:
                return await self._ask(model, request, forced=forced)
            except UserError as error:
                problem = redact_key(str(error), self._key)
            except AgentRunError as error:
                raise self._problem(request.model, error) from None
        raise ModelRefused(f"{request.model}: {problem}")

    async def close(self) -> None:
        """Close connections."""
        async with self._provider:
            self._models.clear()

    async def _ask(self, model: Model, request: Request, *, forced: bool) -> Reply:
        from pydantic_ai.direct import model_request

        response = await model_request(
            model,
            to_pydantic_ai_messages(request.messages),
            model_settings=self._settings(request, model, forced=forced),
            model_request_parameters=to_request_parameters(request, model),
        )
        return from_pydantic_ai_response(response, request)

    def _settings(self, request: Request, model: Model, *, forced: bool) -> "ModelSettings":
        given = request.settings
        sent: ModelSettings = {"max_retries": 0}
        if given.temperature is not None and not model.profile.get("anthropic_disallows_sampling_settings", False):
            sent["temperature"] = given.temperature
        if given.seed is not None:
            sent["seed"] = given.seed
        if self._vendor == "anthropic":
            sent["max_tokens"] = given.max_tokens or ANTHROPIC_MAX_TOKENS
            # A talk with tools grows and is read again at every step; a single question would pay to write the cache.
            sent["cache"] = {"messages": bool(request.tools)}
        elif given.max_tokens is not None:
            sent["max_tokens"] = given.max_tokens
        if given.effort is not None and self._may_think(request, model):
            sent["thinking"] = THINKING_EFFORTS[given.effort]
        if request.force is not None and forced:
            sent["tool_choice"] = "required" if request.force == "*" else [request.force]
        return sent

    def _may_think(self, request: Request, model: Model) -> bool:
        """Older Claude models want their thoughts back with the calls they made; a turn put together anew has none."""
        turns = [message for message in request.messages if isinstance(message, AssistantMessage) and message.calls]
        adaptive = bool(model.profile.get("anthropic_supports_adaptive_thinking", False))
        return self._vendor != "anthropic" or adaptive or all(turn.thoughts for turn in turns)

    def _model(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = _model(self._vendor, name, self._provider)
        return self._models[name]

    def _problem(self, model: str, error: Exception) -> ModelError:
        from pydantic_ai import exceptions as theirs

        message = redact_key(str(error), self._key)
        if isinstance(error, theirs.ModelQuotaExceededError):
            return ModelRefused(f"{model}: {message} (no credit is left)")
        if isinstance(error, theirs.ModelHTTPError):
            message = redact_key(str(error.body or ""), self._key)
            return http_model_error(error.status_code, message, model=model, wait=error.retry_after)
        if isinstance(error, theirs.ModelRateLimitError | theirs.ModelUnavailableError):
            return ModelBusy(f"{model}: {message}", wait=error.retry_after)
        if isinstance(error, theirs.ModelRequestRejectedError):
            return ModelRefused(f"{model}: {message}")
        if isinstance(error, theirs.ModelConnectionError) and error.phase == "connect":
            return ModelBusy(f"{model}: no connection")
        return ReplyLost(f"{model}: {message or type(error).__name__}")


def _provider(vendor: PydanticAIVendor, key: str, address: str | None) -> Any:
    if vendor == "anthropic":
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicProvider(api_key=key, base_url=address)
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleProvider(api_key=key, base_url=address)


def _model(vendor: PydanticAIVendor, name: str, provider: Any) -> Model:
    if vendor == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel

        return AnthropicModel(name, provider=provider)
    from pydantic_ai.models.google import GoogleModel

    return GoogleModel(name, provider=provider)


# Our messages as pydantic-ai's, and its response as ours. Imported only where pydantic-ai is installed.

_THOUGHTS = TypeAdapter(list[ThinkingPart])
_FINISH: dict[str | None, FinishReason] = {"length": "length", "content_filter": "refusal"}


def to_pydantic_ai_messages(messages: Sequence[Message]) -> list[ModelMessage]:
    """Turns in order; what we say and what tools returned goes into one turn until the model speaks."""
    standing = "\n\n".join(message.text for message in messages if isinstance(message, SystemMessage)) or None
    turns: list[ModelMessage] = []
    ours: list[ModelRequestPart] = []
    for message in messages:
        match message:
            case SystemMessage():
                pass
            case UserMessage():
                ours.append(UserPromptPart([message.text, CachePoint()] if message.cached else message.text))
            case ToolResult():
                ours.append(ToolReturnPart(message.name, message.text, message.call_id))
            case AssistantMessage():
                turns += _turn(ours, standing)
                ours = []
                turns.append(ModelResponse(parts=_assistant_parts(message)))
    return turns + _turn(ours, standing)


def _turn(parts: list[ModelRequestPart], standing: str | None) -> list[ModelMessage]:
    return [ModelRequest(parts=parts, instructions=standing)] if parts else []


def _assistant_parts(message: AssistantMessage) -> list[ModelResponsePart]:
    thoughts = _THOUGHTS.validate_json(message.thoughts) if message.thoughts else []
    text = [TextPart(message.text)] if message.text else []
    return [*thoughts, *text, *(_tool_call_part(call) for call in message.calls)]


def _tool_call_part(call: ToolCall) -> ToolCallPart:
    return ToolCallPart(call.name, call.arguments, call.id, **(json.loads(call.mark) if call.mark else {}))


def to_request_parameters(request: Request, model: Model) -> ModelRequestParameters:
    """Tools, and the schema of the answer: enforced where the model can, else described to it."""
    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
        for tool in request.tools
    ]
    if request.schema is None:
        return ModelRequestParameters(function_tools=tools)
    shape = OutputObjectDefinition(json_schema=dict(request.schema), name="answer")
    native = model.profile.get("supports_json_schema_output", False)
    mode = "native" if native else "prompted"
    return ModelRequestParameters(function_tools=tools, output_mode=mode, output_object=shape)


def from_pydantic_ai_response(response: ModelResponse, request: Request) -> Reply:
    """What was said, what was called, and what it took."""
    before = sum(len(message.calls) for message in request.messages if isinstance(message, AssistantMessage))
    made = [part for part in response.parts if isinstance(part, ToolCallPart)]
    calls = tuple(
        ToolCall(id=_id(part, before + place), name=part.tool_name, arguments=part.args_as_json_str(), mark=_mark(part))
        for place, part in enumerate(made)
    )
    thoughts = [part for part in response.parts if isinstance(part, ThinkingPart)]
    usage = response.usage
    return Reply(
        text="".join(part.content for part in response.parts if isinstance(part, TextPart)),
        calls=calls,
        finish=_FINISH.get(response.finish_reason, "tool" if calls else "stop"),
        tokens=TokenCount(
            input=usage.input_tokens,
            output=usage.output_tokens,
            cached=usage.cache_read_tokens,
            stored=usage.cache_write_tokens,
        ),
        model=response.model_name or "",
        thoughts=_THOUGHTS.dump_json(thoughts, exclude_defaults=True).decode() if thoughts else "",
    )


def _mark(part: ToolCallPart) -> str:
    """What the vendor attached to a call."""
    if not part.provider_details:
        return ""
    return json.dumps({"provider_name": part.provider_name, "provider_details": part.provider_details})


def _id(call: ToolCallPart, place: int) -> str:
    """The provider's id. Gemini gives none and pydantic-ai draws one by chance: a place in the talk repeats."""
    return f"call_{place}" if call.tool_call_id.startswith("pyd_ai_") else call.tool_call_id
