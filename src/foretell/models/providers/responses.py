"""The Responses format of OpenAI, also used by xAI, DeepSeek, OpenRouter and LM Studio.

Nothing is stored at the provider: every turn sends the whole conversation, with the model's own items unchanged and in
order, including its encrypted reasoning. Research in the background is the exception.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Literal, Protocol

from foretell.frozen import frozen
from foretell.models.facts import ModelFacts
from foretell.models.model import (
    AssistantMessage,
    FinishReason,
    Message,
    ModelError,
    Reply,
    Request,
    SystemMessage,
    ToolResult,
    UserMessage,
)
from foretell.models.providers.api_format import (
    Json,
    UsageReader,
    answered_tier,
    bearer,
    counted,
    nudge,
    redact_key,
    seal,
    tool_calls,
    unseal,
)
from foretell.models.providers.chat import is_strict, stated_dollars
from foretell.models.providers.client import UNFINISHED, HttpModel

ENDINGS: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_messages": "length",
    "content_filter": "refusal",
    "steered": "paused",
}
CALLS = ("function_call", "mcp_call")
LEAST_OUTPUT = 16
"""OpenAI's smallest output limit."""


@frozen
class ResponsesApi:
    """One dialect of the format."""

    forced: Literal["allowed_tools", "function"] = "allowed_tools"
    """How to force a tool. The first way leaves the list of tools, and so the provider's cache, unchanged."""
    cache_key: bool = True
    """Whether the provider accepts a cache key for requests with the same prefix."""
    encrypted: bool = True
    """Whether reasoning is returned encrypted, and only on request."""

    def path(self, name: str, *, stream: bool) -> str:
        """Path below the provider's address."""
        return "/responses"

    def headers(self, key: str) -> dict[str, str]:
        """HTTP headers of every request."""
        return bearer(key)

    def body(self, request: Request, name: str, facts: ModelFacts) -> Json:
        """JSON body of a request."""
        instructions = "\n\n".join(message.text for message in request.messages if isinstance(message, SystemMessage))
        items = [item for message in request.messages for item in _items(message)]
        body: Json = {"model": name, "input": items, "store": False}
        if instructions:
            body["instructions"] = instructions
        if self.encrypted and (facts.efforts or request.settings.effort is not None):
            body["include"] = ["reasoning.encrypted_content"]
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": t.name,
                    "description": t.description,
                    "parameters": t.parameters,
                    "strict": False,
                }
                for t in request.tools
            ]
        if request.force is not None and facts.force == "no":
            items.append({"role": "user", "content": nudge(request.force)})
        elif request.force is not None:
            body["tool_choice"] = self._choice(request.force, facts)
        if request.schema is not None and facts.schema != "no":
            strict = is_strict(request.schema)
            form = {"type": "json_schema", "name": "answer", "schema": request.schema, "strict": strict}
            body["text"] = {"format": form}
        seed = request.settings.seed
        if self.cache_key and (request.tools or seed is not None):
            # The format has no seed parameter. The seed only gives each trial of a question its own cache.
            opening = json.dumps([instructions, items[:1], [tool.name for tool in request.tools]]).encode()
            body["prompt_cache_key"] = sha256(opening).hexdigest()[:32] + (f"-{seed}" if seed is not None else "")
        return body | _settings(request, facts)

    def _choice(self, force: str, facts: ModelFacts) -> Any:
        if force == "*" or facts.force == "required":
            return "required"
        choice = {"type": "function", "name": force}
        return choice if self.forced == "function" else {"type": "allowed_tools", "mode": "required", "tools": [choice]}

    def reply(self, body: Json, request: Request) -> Reply:
        """Read a reply from the response body. Incomplete replies are accepted, because they are billed."""
        if body.get("status") in UNFINISHED or (body.get("status") == "failed" and not body.get("output")):
            raise ValueError("the reply is not finished")
        items: list[Json] = body["output"] or []
        call_items = [item for item in items if item.get("type") in CALLS]
        ids = (item.get("call_id") or item.get("id") for item in call_items)
        sent = ((id, item.get("name"), item.get("arguments")) for id, item in zip(ids, call_items, strict=True))
        calls = tool_calls(sent, request)
        parts = [part for item in items if item.get("type") == "message" for part in _parts(item.get("content"))]
        refusal = "".join(str(part.get("refusal") or "") for part in parts if part.get("type") == "refusal")
        text = "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)
        reason = str((body.get("incomplete_details") or {}).get("reason") or "")
        status = str(body.get("status") or "completed")
        finish: FinishReason = "tool" if calls else "refusal" if refusal else "stop"
        if status in ("incomplete", "cancelled"):
            finish = ENDINGS.get(reason, "malformed") if reason else "length"
        elif status != "completed":
            finish = "malformed"
        usage = body.get("usage")
        reply = Reply(
            text=text,
            calls=calls,
            finish=finish,
            model=str(body.get("model") or ""),
            thinking=_thinking(items),
            sealed=seal("responses", [_as_input(item) for item in items]) if _worth_keeping(items) else "",
            detail=reason or ("" if status == "completed" else status),
            tier=answered_tier(body.get("service_tier"), request),
            dollars=stated_dollars(usage),
        )
        number = UsageReader(usage)
        return counted(
            request,
            reply,
            input_tokens=number("input_tokens"),
            output_tokens=number("output_tokens"),
            cached=number("input_tokens_details", "cached_tokens"),
            stored=number("input_tokens_details", "cache_write_tokens"),
            reasoning=number("output_tokens_details", "reasoning_tokens"),
            odd=number.odd,
            summary=True,
        )

    def joined(self, events: Iterable[Json]) -> Json:
        """Assemble the response body of a stream, from its last event or from the completed items."""
        body: Json = {}
        items: dict[int, Json] = {}
        for event in events:
            kind = str(event.get("type"))
            if isinstance(event.get("response"), dict):
                body = event["response"]
            elif kind in ("response.output_item.added", "response.output_item.done"):
                items[int(event.get("output_index") or 0)] = dict(event["item"])
            elif kind in PIECES:
                _add_piece(items.setdefault(int(event.get("output_index") or 0), {}), *PIECES[kind], event)
            elif (kind == "error" or event.get("error")) and body.get("status") in (None, *UNFINISHED):
                return {"error": event.get("error") or event}
        if not body:
            raise ValueError("the stream holds no reply")
        if not body.get("output") and items:
            body = {**body, "output": [items[place] for place in sorted(items)]}
        if body.get("status") in UNFINISHED:
            # The connection ended early, so the reply is incomplete.
            cut_off = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "usage": None}
            body = {**body, **cut_off}
        return body


PIECES: Mapping[str, tuple[str, str]] = {
    "response.output_text.delta": ("message", "text"),
    "response.refusal.delta": ("message", "refusal"),
    "response.function_call_arguments.delta": ("function_call", "arguments"),
    "response.reasoning_text.delta": ("reasoning", "content"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary"),
}
"""The item and field of each kind of fragment. Completed items replace their fragments."""


def _add_piece(item: Json, kind: str, field: str, event: Json) -> None:
    item.setdefault("type", kind)
    piece = str(event.get("delta") or "")
    if kind == "function_call":
        item[field] = str(item.get(field) or "") + piece
    elif kind == "reasoning":
        earlier = "".join(str(part.get("text") or "") for part in item.get(field) or ())
        item[field] = [{"type": "reasoning_text" if field == "content" else "summary_text", "text": earlier + piece}]
    else:
        part = {"type": "refusal" if field == "refusal" else "output_text", field: piece}
        item["content"] = [*(item.get("content") or ()), part]


def _parts(content: Any) -> list[Json]:
    """The parts of a message; some servers send plain text."""
    if isinstance(content, str):
        return [{"type": "output_text", "text": content}]
    return [part for part in content or () if isinstance(part, dict)]


def _settings(request: Request, facts: ModelFacts) -> Json:
    settings = request.settings
    effort = facts.effort(settings.effort) if facts.efforts else settings.effort
    sent = {
        "reasoning": None if effort is None else {"effort": effort},
        "temperature": settings.temperature if facts.samples(settings.effort) else None,
        "max_output_tokens": None if request.max_tokens is None else max(request.max_tokens, LEAST_OUTPUT),
        "service_tier": None if settings.tier == "standard" else settings.tier,
    }
    return {name: value for name, value in sent.items() if value is not None}


def _items(message: Message) -> list[Json]:
    match message:
        case SystemMessage():
            return []
        case UserMessage():
            return [{"role": "user", "content": message.text}]
        case ToolResult():
            return [{"type": "function_call_output", "call_id": message.call_id, "output": message.text}]
        case AssistantMessage():
            return _assistant(message)


def _assistant(message: AssistantMessage) -> list[Json]:
    """The items as received, with the calls in their current form. The reasoning of a removed call is removed too."""
    calls = {call.id: call for call in message.calls}
    items: list[Json] = []
    seen_ids: set[str] = set()
    sealed: list[Json] = unseal("responses", message) or []
    for item in sealed:
        if item.get("type") == "reasoning" and not (item.get("encrypted_content") or item.get("content")):
            continue  # The provider stores no items, and refuses an item that has only an id.
        if item.get("type") not in CALLS:
            items.append(item)
        elif (id := item.get("call_id") or item.get("id")) in calls:
            items.append({**item, "name": calls[id].name, "arguments": calls[id].arguments})
            seen_ids.add(str(id))
        else:
            while items and items[-1].get("type") == "reasoning":
                items.pop()
    while items and items[-1].get("type") == "reasoning":
        items.pop()
    if message.text and not any(item.get("type") == "message" for item in items):
        items.append({"role": "assistant", "content": message.text})
    missing = [call for call in message.calls if call.id not in seen_ids]
    return items + [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in missing
    ]


NEVER_SENT = ("created_by", "status")
"""Fields of calls and reasoning that only replies have or that mean nothing in a request."""


def _as_input(item: Json) -> Json:
    """An item in the form in which it is sent back."""
    kind = item.get("type")
    if kind not in ("reasoning", "function_call", "message"):
        return item
    dropped = () if kind == "message" else NEVER_SENT
    cleaned = {name: value for name, value in item.items() if value is not None and name not in dropped}
    if kind == "reasoning":
        cleaned.setdefault("summary", [])
        if not cleaned.get("content"):
            cleaned.pop("content", None)
    return cleaned


def _worth_keeping(items: list[Json]) -> bool:
    """Whether a reply has more than its text followed by its calls, so that its items must be stored."""
    kinds = [str(item.get("type")) for item in items]
    plain = kinds == sorted(kinds, reverse=True) and set(kinds) <= {"message", "function_call"}
    return not plain or kinds.count("message") > 1 or any(item.get("phase") or item.get("namespace") for item in items)


def _thinking(items: list[Json]) -> str:
    parts = [
        part
        for item in items
        if item.get("type") == "reasoning"
        for part in [*(item.get("summary") or ()), *(item.get("content") or ())]
    ]
    return "\n\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))


# Research models: the provider calls our tools over MCP in the background.

MCP_LABEL = "foretell"
POLL_SECONDS = 2.0
"""Seconds between checks of research running in the background."""


class McpEndpoint(Protocol):
    """The address and token of an MCP server."""

    @property
    def url(self) -> str:
        """Address of the MCP server."""
        ...

    @property
    def token(self) -> str:
        """The token it accepts."""
        ...


class ResearchingModel(HttpModel):
    """OpenAI models. A request whose tools are served over MCP starts a research; others are sent as usual.

    The address of the tools and their token are looked up when the request is sent, so that neither is stored in the
    journal. The reply contains the provider's calls in order.
    """

    def __init__(
        self, address: str, key: str, served: Callable[[Request], McpEndpoint | None], *, poll: float = POLL_SECONDS
    ) -> None:
        super().__init__(ResponsesApi(), address, key)
        self._served = served
        self._poll = poll

    async def _ask(self, request: Request, name: str) -> Reply:
        endpoint = self._served(request)
        if endpoint is None:
            return await super()._ask(request, name)
        body = self._format.body(replace(request, tools=(), force=None), name, self.facts(name))
        tools = {
            "type": "mcp",
            "server_label": MCP_LABEL,
            "server_url": endpoint.url,
            "authorization": endpoint.token,
            "require_approval": "never",
            "allowed_tools": [tool.name for tool in request.tools],
        }
        # The result of a background request can only be fetched if the provider stores it.
        body |= {"tools": [tools], "background": True, "store": True}
        url = self._address + self._format.path(name, stream=False)
        answer = await self._send(request, url, json.dumps(body).encode())
        state = self._parsed(answer)
        while answer.status == 200 and isinstance(state, dict) and state.get("status") in UNFINISHED:
            await asyncio.sleep(self._poll)
            answer = await self._send(request, f"{url}/{state['id']}")
            state = self._parsed(answer)
        if isinstance(state, dict) and state.get("status") in ("failed", "cancelled"):
            raise ModelError(f"{request.model}: the research ended early: {redact_key(_reason(state), self._key)}")
        reply = self._read(answer, request)
        return replace(
            reply, text=_last_text(state), finish="stop" if reply.finish == "tool" else reply.finish, sealed=""
        )


def _reason(state: dict[str, Any]) -> str:
    problem = state.get("error") or state.get("incomplete_details") or {}
    return str(problem.get("message") or problem.get("reason") or state.get("status"))


def _last_text(state: Any) -> str:
    """The report: the last text, without the remarks between searches."""
    messages = [item for item in state["output"] if item.get("type") == "message"]
    return "".join(part.get("text") or "" for part in messages[-1]["content"]) if messages else ""
