"""OpenAI's chat completions format and the dialects of other providers that use it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, Literal, cast

from foretell.frozen import frozen
from foretell.models.facts import ModelFacts
from foretell.models.model import (
    AssistantMessage,
    FinishReason,
    Message,
    Reply,
    Request,
    SystemMessage,
    ToolResult,
    UserMessage,
)
from foretell.models.providers.api_format import (
    Json,
    UsageReader,
    bearer,
    count,
    counted,
    nudge,
    seal,
    tool_calls,
    unseal,
)

PLAIN_ENDINGS = ("", "stop", "tool_calls", "function_call", "end_turn", "tool_use", "stop_sequence", "eos", "eos_token")
FINISH: Mapping[str, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
    "safety": "refusal",
    "sensitive": "refusal",
}
"""Finish reasons of OpenAI, Mistral, Z.ai, OpenRouter and others. Faults and unknown reasons become `malformed`."""
REASONING_FIELDS = ("reasoning_details", "reasoning_content", "reasoning")
"""Fields in which servers return reasoning. It must go back in the same field, or the next turn may be refused."""
KEPT_FIELDS = (*REASONING_FIELDS, "extra_content", "thought_signature")
DOLLARS_PER_TICK = 1e-10
"""xAI states amounts in ticks."""


@frozen
class ChatApi:
    """One dialect of the format. The defaults are what most servers understand."""

    effort: Literal["reasoning_effort", "reasoning", "thinking"] = "reasoning_effort"
    """Where the effort level goes; `thinking` is DeepSeek's switch next to the level."""
    length: str = "max_tokens"
    """Name of the output limit; OpenAI's reasoning models refuse the older name."""
    cache_marks: tuple[str, ...] = ()
    """Prefixes of model names that cache a prompt only up to an explicit mark."""
    require_parameters: bool = False
    """Whether to ask the router to respect tools and schemas instead of silently dropping them."""
    seed: str = "seed"
    """Name of the seed parameter."""
    stream: bool = False
    """Whether replies are streamed, so that the speed of slow local models can be shown."""

    def path(self, name: str, *, stream: bool) -> str:
        """Path below the provider's address."""
        return "/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        """HTTP headers of every request."""
        return bearer(key)

    def body(self, request: Request, name: str, facts: ModelFacts) -> Json:
        """JSON body of a request."""
        marked = name.startswith(self.cache_marks) if self.cache_marks else False
        # Never mark the last message: some servers behind OpenRouter would bill the prompt twice.
        last = len(request.messages) - 1
        messages = [_message(message, marked and place < last) for place, message in enumerate(request.messages)]
        body: Json = {"model": name, "messages": messages}
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if self.require_parameters and (request.tools or request.schema is not None):
            body["provider"] = {"require_parameters": True}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": t.name, "description": t.description, "parameters": t.parameters},
                }
                for t in request.tools
            ]
        if request.force is not None:
            if facts.force == "no":
                messages.append({"role": "user", "content": nudge(request.force)})
            elif request.force == "*" or facts.force == "required":
                body["tool_choice"] = "required"
            else:
                body["tool_choice"] = {"type": "function", "function": {"name": request.force}}
        if request.schema is not None and facts.schema != "no":
            shape = {"name": "answer", "schema": request.schema, "strict": is_strict(request.schema)}
            strict = {"type": "json_schema", "json_schema": shape}
            body["response_format"] = strict if facts.schema == "yes" else {"type": "json_object"}
        return body | self._settings(request, facts)

    def _settings(self, request: Request, facts: ModelFacts) -> Json:
        settings = request.settings
        effort = facts.effort(settings.effort) if facts.efforts else settings.effort
        if request.force is not None and facts.force != "no" and not facts.while_thinking:
            effort = None
        sent: Json = {
            "temperature": settings.temperature if facts.samples(settings.effort) else None,
            self.seed: settings.seed,
            self.length: request.max_tokens,
            "service_tier": None if settings.tier in (None, "standard") else settings.tier,
        }
        if effort is not None and self.effort == "reasoning":
            sent["reasoning"] = {"enabled": False} if effort == "none" else {"effort": effort}
        elif effort is not None and self.effort == "thinking":
            sent["thinking"] = {"type": "disabled" if effort == "none" else "enabled"}
            sent["reasoning_effort"] = None if effort == "none" else effort
        elif effort is not None:
            sent["reasoning_effort"] = effort
        return {name: value for name, value in sent.items() if value is not None}

    def reply(self, body: Json, request: Request) -> Reply:
        """Read a reply from the response body."""
        usage = body.get("usage")
        if not body.get("choices") and isinstance(usage, dict) and any(map(count, cast("Json", usage).values())):
            # An empty reply with token counts was billed. Without them it may be an error in an unknown form.
            body = {**body, "choices": [{"message": {}, "finish_reason": "error"}]}
        choice = body["choices"][0]
        message: Json = choice["message"] or {}  # Some servers send null when they filter the content.
        raw_calls: list[Json] = [call for call in message.get("tool_calls") or () if call.get("function")]
        if message.get("function_call") and not raw_calls:  # The older format, with one call.
            raw_calls = [{"function": message["function_call"]}]
        functions = ((call.get("id"), call["function"]) for call in raw_calls)
        calls = tool_calls(((id, called.get("name"), called.get("arguments")) for id, called in functions), request)
        text, inline = _content(message.get("content"))
        refusal = message.get("refusal") or _refused(message.get("content"))
        reason = str(choice.get("finish_reason") or "").lower()
        plain: FinishReason = "tool" if calls else "stop"
        finish = plain if reason in PLAIN_ENDINGS else FINISH.get(reason, "malformed")
        usage = body.get("usage")
        reply = Reply(
            text=text or str(refusal),
            calls=calls,
            finish="refusal" if refusal and not calls else finish,
            model=str(body.get("model") or ""),
            thinking=inline or _thinking(message),
            sealed=_sealed(message, raw_calls, [call.id for call in calls]),
            dollars=stated_dollars(usage),
            detail="" if finish == plain else reason,
        )
        number = UsageReader(usage)
        input_tokens, output_tokens = number("prompt_tokens"), number("completion_tokens")
        reasoning = number("completion_tokens_details", "reasoning_tokens")
        # xAI and Google leave the thoughts out of the output and put them into the total.
        if input_tokens and (total := number("total_tokens")) is not None:
            visible = output_tokens or 0
            output_tokens = max(visible, total - input_tokens)
            reasoning = reasoning or output_tokens - visible
        cached = number("prompt_tokens_details", "cached_tokens")
        if cached is None:
            cached = number("prompt_cache_hit_tokens") or number("cached_tokens")
        return counted(
            request,
            reply,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cached=cached,
            stored=number("prompt_tokens_details", "cache_write_tokens"),
            reasoning=reasoning,
            odd=number.odd,
            summary=_is_summary(message),
        )

    def joined(self, events: Iterable[Json]) -> Json:
        """Assemble the response body from the events of a stream."""
        body: Json = {}
        message: Json = {"role": "assistant"}
        calls: list[Json] = []
        finish: Any = None
        whole: Any = None
        for event in events:
            body |= {k: v for k, v in event.items() if k not in ("choices", "object") and v not in (None, {})}
            for choice in event.get("choices") or ():
                finish = choice.get("finish_reason") or finish
                whole = choice.get("message") or whole
                if choice.get("usage"):  # Moonshot puts it here.
                    body["usage"] = choice["usage"]
                _add_delta(message, calls, choice.get("delta") or {})
        if calls:
            message["tool_calls"] = calls
        if not (message.keys() - {"role"}) and isinstance(whole, dict):
            message = cast("Json", whole)  # Some servers send no fragments, only the message at the end.
        if not (message.keys() - {"role"}) and finish is None and "error" not in body:
            raise ValueError("the stream holds no reply")
        if finish is None:
            finish = "length"  # The connection ended early, so the reply is incomplete.
            _drop_output(body)
        elif "error" in body:
            del body["error"]  # It came after the end of a complete reply.
        return {**body, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _drop_output(body: Json) -> None:
    """Remove the output count of a stream that ended early."""
    usage: Any = body.get("usage")
    if isinstance(usage, dict):
        items = cast("Json", usage).items()
        body["usage"] = {name: value for name, value in items if name not in ("completion_tokens", "total_tokens")}


def _add_delta(message: Json, calls: list[Json], delta: Json) -> None:
    for name, value in delta.items():
        if name == "tool_calls":
            for part in value or ():
                _add_call(calls, part)
        elif name != "role" and value is not None:
            message[name] = _grown(message.get(name), value)


def _add_call(calls: list[Json], part: Json) -> None:
    """Append a fragment to the call it belongs to. Some servers omit the index or give all calls the same one."""
    function: Json = part.get("function") or {}
    id, name, index = part.get("id"), function.get("name") or "", part.get("index")
    call = next(
        (call_so_far for call_so_far in reversed(calls) if index is None or call_so_far["index"] == index), None
    )
    if call is not None:
        another = bool(id) and id != call["id"]
        begins = another and bool(name and call["function"]["name"])
        call = None if begins or (index is None and (another or (name and not id))) else call
    if call is None:
        call = dict[str, Any](index=index, id=None, type="function", function={"name": "", "arguments": ""})
        calls.append(call)
    call["id"] = call["id"] or id
    call["function"]["name"] += name if name != call["function"]["name"] else ""  # Some repeat it in every piece.
    arguments = function.get("arguments")
    call["function"]["arguments"] += (
        arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments is not None else ""
    )
    if part.get("extra_content"):
        call["extra_content"] = part["extra_content"]


def _grown(before: Any, piece: Any) -> Any:
    """A field extended by its next fragment: text is appended, lists grow, everything else is replaced."""
    if isinstance(piece, str) and not isinstance(before, list):
        return _text(before) + piece
    if isinstance(piece, str):
        return [*before, {"type": "text", "text": piece}]
    if not isinstance(piece, list):
        return piece
    earlier: list[Any] = before if isinstance(before, list) else [{"type": "text", "text": before}] if before else []
    return _joined_parts([*earlier, *cast("list[Any]", piece)])


def _joined_parts(parts: Sequence[Any]) -> list[Any]:
    """Join fragments of the same list item, such as a reasoning detail and its signature."""
    joined: list[Any] = []
    for part in parts:
        last: Any = joined[-1] if joined else None
        both = isinstance(part, dict) and isinstance(last, dict) and "index" in part
        if both and all(part.get(key) == last.get(key) for key in ("type", "index")):
            grown = {key: _text(last.get(key)) + _text(part.get(key)) for key in GROWING if part.get(key)}
            joined[-1] = {**last, **{k: v for k, v in part.items() if v}, **grown}
        else:
            joined.append(part)
    return joined


GROWING = ("text", "summary", "data")
"""Fields of a reasoning detail that arrive in fragments."""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _message(message: Message, marked: bool) -> Json:
    match message:
        case SystemMessage():
            return {"role": "system", "content": message.text}
        case UserMessage():
            mark = {"type": "text", "text": message.text, "cache_control": {"type": "ephemeral"}}
            return {"role": "user", "content": [mark] if marked and message.cached else message.text}
        case ToolResult():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
        case AssistantMessage():
            return _assistant(message)


def _assistant(message: AssistantMessage) -> Json:
    opened: Any = unseal("chat", message)
    sealed: Json = opened or {}
    extras: Json = sealed.get("calls") or {}
    fields: Json = sealed.get("fields") or {}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        | ({"extra_content": extras[call.id]} if call.id in extras else {})
        for call in message.calls
    ]
    # Some servers refuse an empty text next to calls, others a missing one. OpenAI itself writes null.
    content: Any = message.text or (None if calls else "")
    turn: Json = {"role": "assistant", "content": content, **fields}
    return turn | ({"tool_calls": calls} if calls else {})


def _content(content: Any) -> tuple[str, str]:
    """The text and the reasoning of a message; some servers send a list of parts of both."""
    if not isinstance(content, list):
        return _text(content), ""
    texts: list[str] = []
    thought: list[str] = []
    for part in cast("list[Any]", content):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            inner = cast("Json", part).get("thinking")
            if inner is not None:
                thought.append(_content(inner)[0])
            else:
                texts.append(_text(cast("Json", part).get("text")) or _text(cast("Json", part).get("refusal")))
    return "".join(texts), "".join(thought)


def _refused(content: Any) -> str:
    """The refusal among the parts of a message."""
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    return "".join(_text(cast("Json", part).get("refusal")) for part in parts if isinstance(part, dict))


def _thinking(message: Json) -> str:
    for field in ("reasoning_content", "reasoning"):
        if isinstance(message.get(field), str) and message[field]:
            return message[field]
    details: Any = message.get("reasoning_details")
    if not isinstance(details, list):
        return ""
    parts = [part for part in cast("list[Any]", details) if isinstance(part, dict)]
    return "".join(_text(part.get("text")) or _text(part.get("summary")) for part in parts)


def _is_summary(message: Json) -> bool:
    details: Any = message.get("reasoning_details")
    parts = cast("list[Any]", details) if isinstance(details, list) else []
    return any(isinstance(part, dict) and part.get("type") == "reasoning.summary" for part in parts)


def _sealed(message: Json, calls: list[Json], ids: list[str]) -> str:
    fields = {name: message[name] for name in KEPT_FIELDS if message.get(name)}
    if "reasoning_details" in fields:
        # The details contain the text of `reasoning` too. Sending it twice would be billed twice.
        fields.pop("reasoning", None)
    if "reasoning_content" not in fields and calls and isinstance(message.get("reasoning_content"), str):
        fields["reasoning_content"] = ""
    if isinstance(message.get("content"), list):
        fields["content"] = message["content"]
    extras = {id: call["extra_content"] for id, call in zip(ids, calls, strict=True) if call.get("extra_content")}
    return seal("chat", {"fields": fields, "calls": extras}) if fields or extras else ""


def stated_dollars(usage: Any) -> float | None:
    """The amount that the provider says it charged: OpenRouter and Perplexity in dollars, xAI in ticks.

    Zero is ignored, because the price list decides whether a model is free.

    >>> stated_dollars({"cost": 0.02}), stated_dollars({"cost": {"request_cost": 0.005, "total_cost": 0.0061}})
    (0.02, 0.0061)
    >>> [stated_dollars({"cost": wrong}) for wrong in (0, -1, float("nan"), "0.02", True, {"total_cost": None})]
    [None, None, None, None, None, None]
    """
    if not isinstance(usage, dict):
        return None
    usage = cast("Json", usage)
    stated: Any = usage.get("cost")
    if isinstance(stated, dict):
        charges = cast("Json", stated)
        return _amount(charges.get("total_cost")) if charges.get("currency") in (None, "USD") else None
    if stated is not None:
        details: Any = usage.get("cost_details")
        behind: Any = cast("Json", details).get("upstream_inference_cost") if isinstance(details, dict) else None
        # With the user's own key for the upstream provider, that provider bills the call.
        parts = (_amount(stated), _amount(behind) if usage.get("is_byok") else None)
        return sum(part for part in parts if part is not None) or None
    ticks = count(usage, "cost_in_usd_ticks")
    return ticks * DOLLARS_PER_TICK if ticks else None


def _amount(stated: Any) -> float | None:
    """A stated amount; None unless it is a number above zero."""
    number = isinstance(stated, int | float) and not isinstance(stated, bool)
    return float(stated) if number and 0 < stated < inf else None


def is_strict(schema: Any) -> bool:
    """Whether OpenAI accepts a schema in strict mode: closed objects, all properties required, no length limits.

    >>> is_strict({"type": "object", "properties": {"p": {"type": "number"}}, "required": ["p"]})
    False
    """
    if isinstance(schema, list | tuple):
        return all(is_strict(part) for part in cast("list[Any]", schema))
    if not isinstance(schema, Mapping):
        return True
    parts = cast("Mapping[str, Any]", schema)
    if parts.get("type") == "string" and "maxLength" in parts:
        return False
    if "properties" in parts or parts.get("type") == "object":
        closed = parts.get("additionalProperties") is False
        if not closed or set(parts.get("required", ())) != set(parts.get("properties", ())):
            return False
    return all(is_strict(part) for part in parts.values())
