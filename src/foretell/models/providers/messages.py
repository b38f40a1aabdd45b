"""Anthropic's Messages format."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from foretell.frozen import frozen
from foretell.models.facts import ModelFacts
from foretell.models.model import (
    AssistantMessage,
    FinishReason,
    ModelSettings,
    Reply,
    Request,
    SystemMessage,
    ToolResult,
    UserMessage,
)
from foretell.models.providers.api_format import (
    Json,
    UsageReader,
    add_turn,
    arguments_object,
    counted,
    json_object,
    nudge,
    seal,
    tool_calls,
    unseal,
)

VERSION = "2023-06-01"
"""API version. The newer one accepts no sampling settings and adds nothing that is used here."""
MAX_TOKENS = 16_000
"""Anthropic requires an output limit on every request."""
STREAM_ABOVE = 21_333
"""Replies above this many tokens are streamed, because an idle connection may be closed after ten minutes."""
BUDGETS: Mapping[str, int] = {
    "minimal": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 48_000,
}
"""Thinking budgets in tokens by level, for models that take a number."""
LEAST_BUDGET = 1_024
ROOM_TO_ANSWER = 8_000
"""Tokens reserved for the answer next to the thinking if no limit was set."""
PLAIN_ENDINGS = ("", "end_turn", "tool_use", "stop_sequence")
FINISH: Mapping[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "paused",
}
"""Finish reasons. Unknown ones become `malformed`."""
THOUGHTS = ("thinking", "redacted_thinking")
MARK = {"cache_control": {"type": "ephemeral"}}


@frozen
class MessagesApi:
    """The format of Anthropic and compatible servers."""

    def path(self, name: str, *, stream: bool) -> str:
        """Path below the provider's address."""
        return "/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        """HTTP headers of every request."""
        return {"x-api-key": key, "anthropic-version": VERSION}

    def body(self, request: Request, name: str, facts: ModelFacts) -> Json:
        """JSON body of a request."""
        settings = request.settings
        messages = _turns(request)
        thinking, limit = _thinking(request, facts)
        body: Json = {"model": name, "max_tokens": limit, "messages": messages}
        if limit > STREAM_ABOVE:
            body["stream"] = True
        system = "\n\n".join(message.text for message in request.messages if isinstance(message, SystemMessage))
        if system:
            body["system"] = [{"type": "text", "text": system, **(MARK if request.tools else {})}]
        if request.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in request.tools
            ]
            # A conversation with tools is read again at every step. A single request is not worth a cache write.
            _mark_last(messages)
        if request.force is not None:
            if facts.force == "no" or (thinking.get("type") == "enabled" and not facts.while_thinking):
                add_turn(messages, "user", "content", [{"type": "text", "text": nudge(request.force)}])
            else:
                named = request.force != "*" and facts.force == "named"
                body["tool_choice"] = {"type": "tool", "name": request.force} if named else {"type": "any"}
        if thinking:
            body["thinking"] = thinking
        output = _output_config(request, facts)
        if output:
            body["output_config"] = output
        still = thinking.get("type") in (None, "disabled") and not (not thinking and facts.thinks(None))
        if settings.temperature is not None and facts.sampling != "no" and still:
            body["temperature"] = settings.temperature
        if settings.tier == "standard":
            body["service_tier"] = "standard_only"
        return body

    def reply(self, body: Json, request: Request) -> Reply:
        """Read a reply from the response body."""
        blocks: list[Json] = body["content"] or []
        tool_blocks = [block for block in blocks if block.get("type") == "tool_use"]
        calls = tool_calls(((block.get("id"), block.get("name"), block.get("input")) for block in tool_blocks), request)
        stop = str(body.get("stop_reason") or "")
        details = body.get("stop_details")
        category = details.get("category") if isinstance(details, dict) else None
        plain: FinishReason = "tool" if calls else "stop"
        reply = Reply(
            text="".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text"),
            calls=calls,
            finish=plain if stop in PLAIN_ENDINGS else FINISH.get(stop, "malformed"),
            model=str(body.get("model") or ""),
            thinking="\n\n".join(str(block["thinking"]) for block in blocks if block.get("thinking")),
            sealed=seal("messages", blocks) if _worth_keeping(blocks) else "",
            detail="" if stop in PLAIN_ENDINGS else str(category or stop),
        )
        number = UsageReader(body.get("usage"))
        fresh, cached, stored = map(number, ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"))
        return counted(
            request,
            reply,
            # The input count excludes tokens read from the cache or written to it.
            input_tokens=None if fresh is None else fresh + (cached or 0) + (stored or 0),
            output_tokens=number("output_tokens"),
            cached=cached,
            stored=stored,
            reasoning=number("output_tokens_details", "thinking_tokens"),
            odd=number.odd,
            summary=True,
        )

    def joined(self, events: Iterable[Json]) -> Json:
        """Assemble the response body from the events of a stream."""
        body: Json = {}
        blocks: dict[int, Json] = {}
        inputs: dict[int, str] = {}
        counted_to_the_end = False
        for event in events:
            match event.get("type"):
                case "message_start":
                    body = dict(event["message"])
                case "content_block_start":
                    blocks[event["index"]] = dict(event["content_block"])
                case "content_block_delta":
                    _add_delta(blocks.setdefault(event["index"], {}), event["delta"], inputs, event["index"])
                case "message_delta":
                    body |= {k: v for k, v in (event.get("delta") or {}).items() if v is not None}
                    more = {k: v for k, v in (event.get("usage") or {}).items() if v is not None}
                    body["usage"] = {**(body.get("usage") or {}), **more}
                    counted_to_the_end = "output_tokens" in more
                case "error" if body.get("stop_reason") is None:
                    return event
                case _:
                    continue
        if not body:
            raise ValueError("the stream holds no reply")
        for place, text in inputs.items():
            # Invalid JSON, such as a call that was cut off, is kept as text.
            blocks[place]["input"] = json_object(text) if json_object(text) is not None else text
        if body.get("stop_reason") is None:
            # The connection ended early, so the reply is incomplete. The first event counts only the first token.
            uncounted = {} if counted_to_the_end else {"output_tokens": None}
            body |= {"stop_reason": "max_tokens", "usage": {**(body.get("usage") or {}), **uncounted}}
        return {**body, "content": [blocks[place] for place in sorted(blocks)]}


def _worth_keeping(blocks: list[Json]) -> bool:
    """Whether a reply has more than its text followed by its calls, so that its blocks must be stored."""
    kinds = [str(block.get("type")) for block in blocks]
    return kinds != sorted(kinds) or kinds.count("text") > 1 or not set(kinds) <= {"text", "tool_use"}


DELTAS: Mapping[str, str] = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def _add_delta(block: Json, delta: Json, inputs: dict[int, str], place: int) -> None:
    kind = str(delta.get("type"))
    if kind == "input_json_delta":
        inputs[place] = inputs.get(place, "") + (delta.get("partial_json") or "")
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
    elif kind in DELTAS:
        field = DELTAS[kind]
        block.setdefault("type", "text" if field == "text" else "thinking")
        block[field] = (block.get(field) or "") + (delta.get(field) or "")


def _thinking(request: Request, facts: ModelFacts) -> tuple[Json, int]:
    """The thinking settings, and the output limit for thinking and answer together."""
    settings: ModelSettings = request.settings
    most = facts.max_output or MAX_TOKENS
    limit = min(request.max_tokens or MAX_TOKENS, most)
    effort = facts.effort(settings.effort)
    if effort is None:
        return {}, limit
    if effort == "none":
        kind = {"disabled": "disabled", "between_tools": "between_tools"}.get(facts.off)
        return ({"type": kind} if kind else {}), limit
    if facts.thinking == "adaptive":
        return {"type": "adaptive"}, limit
    if (
        facts.thinking != "budget"
        or (request.force is not None and not facts.while_thinking)
        or not _may_think(request)
    ):
        return {}, limit
    budget = BUDGETS[effort]
    if settings.max_tokens is None:
        limit = min(budget + ROOM_TO_ANSWER, most, request.cap or most)
    budget = min(budget, limit - LEAST_BUDGET)
    return ({"type": "enabled", "budget_tokens": budget} if budget >= LEAST_BUDGET else {}), limit


def _may_think(request: Request) -> bool:
    """Whether the model may think. Older models require the thinking of earlier calls, which may be missing."""
    turns = [message for message in request.messages if isinstance(message, AssistantMessage) and message.calls]
    return all(any(block.get("type") in THOUGHTS for block in unseal("messages", turn) or ()) for turn in turns)


OPUS_4_5 = re.compile(r"opus-4[.-]5")
"""Takes a thinking budget and an effort; other models take only one of them."""


def _output_config(request: Request, facts: ModelFacts) -> Json:
    effort = facts.effort(request.settings.effort)
    config: Json = {}
    if effort not in (None, "none") and (facts.thinking == "adaptive" or OPUS_4_5.search(request.model)):
        config["effort"] = effort
    if request.schema is not None and facts.schema == "yes":
        config["format"] = {"type": "json_schema", "schema": plain_schema(request.schema)}
    return config


LIMITS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minLength", "maxLength", "minItems", "maxItems"),
)


def plain_schema(schema: Any) -> Any:
    """The schema with closed objects and without limits on numbers and lengths, as Anthropic requires.

    >>> plain_schema({"properties": {"maximum": {"type": "number", "maximum": 9}}})
    {'properties': {'maximum': {'type': 'number'}}}
    """
    if isinstance(schema, list | tuple):
        return [plain_schema(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    plain: Json = {}
    for key, part in schema.items():
        if key in ("properties", "$defs") and isinstance(part, Mapping):
            plain[key] = {name: plain_schema(property_schema) for name, property_schema in part.items()}
        elif key not in LIMITS:
            plain[key] = plain_schema(part)
    if plain.get("type") == "object":
        plain["additionalProperties"] = False
    return plain


def _turns(request: Request) -> list[Json]:
    """The conversation as turns. Consecutive user messages and tool results are merged."""
    turns: list[Json] = []
    for message in request.messages:
        match message:
            case SystemMessage():
                continue
            case UserMessage():
                block: Json = {"type": "text", "text": message.text, **(MARK if message.cached else {})}
                add_turn(turns, "user", "content", [block])
            case ToolResult():
                add_turn(
                    turns,
                    "user",
                    "content",
                    [{"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}],
                )
            case AssistantMessage():
                add_turn(turns, "assistant", "content", _assistant(message))
    return turns


def _mark_last(turns: list[Json]) -> None:
    """Mark the end of the conversation for the cache, which the next step reads."""
    last: Json = turns[-1]["content"][-1]
    marks = sum("cache_control" in block for turn in turns for block in turn["content"])
    if turns[-1]["role"] == "user" and marks < 3:
        turns[-1]["content"][-1] = {**last, **MARK}


def _assistant(message: AssistantMessage) -> list[Json]:
    """The blocks in their original order, with the calls in their current form."""
    calls = {call.id: call for call in message.calls}
    blocks: list[Json] = []
    seen_ids: set[str] = set()
    for block in unseal("messages", message) or []:
        if block.get("type") == "text" and not str(block.get("text") or "").strip():
            continue  # Anthropic sends such blocks but does not accept them.
        if block.get("type") != "tool_use":
            blocks.append(block)
        elif block.get("id") in calls:
            call = calls[block["id"]]
            blocks.append({**block, "name": call.name, "input": arguments_object(call)})
            seen_ids.add(block["id"])
    if message.text.strip() and not any(block.get("type") == "text" for block in blocks):
        blocks.append({"type": "text", "text": message.text})
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_object(call)}
        for call in message.calls
        if call.id not in seen_ids
    ]
    while blocks and blocks[-1].get("type") in THOUGHTS:  # A turn may not end in a thought.
        blocks.pop()
    return blocks
