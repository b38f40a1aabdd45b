"""Our messages as pydantic-ai's, and its response as ours. Imported only where pydantic-ai is installed."""

import json
from collections.abc import Sequence

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

from foretell.llm.message import Assistant, Finish, Message, Reply, Request, System, Tokens, ToolCall, ToolResult, User

_THOUGHTS = TypeAdapter(list[ThinkingPart])
_FINISH: dict[str | None, Finish] = {"length": "length", "content_filter": "refusal"}


def conversation(messages: Sequence[Message]) -> list[ModelMessage]:
    """Turns in order; what we say and what tools returned goes into one turn until the model speaks."""
    standing = "\n\n".join(message.text for message in messages if isinstance(message, System)) or None
    turns: list[ModelMessage] = []
    ours: list[ModelRequestPart] = []
    for message in messages:
        match message:
            case System():
                pass
            case User():
                ours.append(UserPromptPart([message.text, CachePoint()] if message.cached else message.text))
            case ToolResult():
                ours.append(ToolReturnPart(message.name, message.text, message.call_id))
            case Assistant():
                turns += _turn(ours, standing)
                ours = []
                turns.append(ModelResponse(parts=_spoken(message)))
    return turns + _turn(ours, standing)


def _turn(parts: list[ModelRequestPart], standing: str | None) -> list[ModelMessage]:
    return [ModelRequest(parts=parts, instructions=standing)] if parts else []


def _spoken(message: Assistant) -> list[ModelResponsePart]:
    thoughts = _THOUGHTS.validate_json(message.thoughts) if message.thoughts else []
    text = [TextPart(message.text)] if message.text else []
    return [*thoughts, *text, *(_called(call) for call in message.calls)]


def _called(call: ToolCall) -> ToolCallPart:
    return ToolCallPart(call.name, call.arguments, call.id, **(json.loads(call.mark) if call.mark else {}))


def parameters(request: Request, model: Model) -> ModelRequestParameters:
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


def reply(response: ModelResponse, request: Request) -> Reply:
    """What was said, what was called, and what it took."""
    before = sum(len(message.calls) for message in request.messages if isinstance(message, Assistant))
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
        tokens=Tokens(
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
