"""Google's generateContent format."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from foretell.frozen import frozen
from foretell.models.facts import ModelFacts
from foretell.models.model import (
    AssistantMessage,
    FinishReason,
    Reply,
    Request,
    SystemMessage,
    ToolResult,
    UserMessage,
)
from foretell.models.providers.api_format import (
    SKIP_SIGNATURE,
    Json,
    UsageReader,
    add_turn,
    answered_tier,
    arguments_object,
    counted,
    nudge,
    seal,
    tool_calls,
    unseal,
)
from foretell.patterns import pattern

REFUSALS = (
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MODEL_ARMOR",
    "JAILBREAK",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
)
FINISH: Mapping[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(REFUSALS, "refusal"),
}
"""Finish reasons. All others (MALFORMED_FUNCTION_CALL, TOO_MANY_TOOL_CALLS, OTHER, new ones) count as faults."""
BUDGETS: Mapping[str, int] = {"none": 0, "minimal": 512, "low": 2_048, "medium": 8_192, "high": 24_576}
"""Thinking budgets in tokens by level, for models before Gemini 3."""


@frozen
class GeminiApi:
    """The format of the Gemini API."""

    def path(self, name: str, *, stream: bool) -> str:
        """Path below the provider's address."""
        action = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/v1beta/models/{name}:{action}"

    def headers(self, key: str) -> dict[str, str]:
        """HTTP headers of every request."""
        return {"x-goog-api-key": key}

    def body(self, request: Request, name: str, facts: ModelFacts) -> Json:
        """JSON body of a request."""
        settings = request.settings
        contents = _contents(request, signing=UNSIGNED.search(name) is None)
        body: Json = {"contents": contents}
        system = "\n\n".join(message.text for message in request.messages if isinstance(message, SystemMessage))
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if request.tools:
            tools = [
                {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
                for tool in request.tools
            ]
            body["tools"] = [{"functionDeclarations": tools}]
        if request.force is not None:
            if facts.force == "no":
                add_turn(contents, "user", "parts", [{"text": nudge(request.force)}])
            else:
                names = {} if request.force == "*" else {"allowedFunctionNames": [request.force]}
                body["toolConfig"] = {"functionCallingConfig": {"mode": "ANY", **names}}
        sent: Json = {
            "temperature": settings.temperature,
            "seed": settings.seed,
            "maxOutputTokens": request.max_tokens,
            "thinkingConfig": _thinking(request, facts),
        }
        if request.schema is not None and facts.schema == "yes" and (not request.tools or facts.thinking == "level"):
            sent |= {"responseMimeType": "application/json", "responseJsonSchema": request.schema}
        config = {name: value for name, value in sent.items() if value is not None}
        if config:
            body["generationConfig"] = config
        if settings.tier not in (None, "standard"):
            body["serviceTier"] = settings.tier
        return body

    def reply(self, body: Json, request: Request) -> Reply:
        """Read a reply from the response body; a blocked prompt has no candidates."""
        body = _in_camel_case(body)
        blocked = (body.get("promptFeedback") or {}).get("blockReason")
        usage: Any = body.get("usageMetadata")
        candidates: list[Json] = body.get("candidates") or []
        if not candidates and not blocked and not usage:
            raise ValueError("the reply holds no candidates")
        # Counted tokens are billed, even without a candidate.
        candidate: Json = candidates[0] if candidates else {"finishReason": blocked or "NO_CANDIDATES"}
        parts: list[Json] = (candidate.get("content") or {}).get("parts") or []
        function_calls = [part["functionCall"] for part in parts if part.get("functionCall")]
        calls = tool_calls(((call.get("id"), call.get("name"), call.get("args")) for call in function_calls), request)
        reason = str(candidate.get("finishReason") or "STOP")
        finish = "refusal" if blocked and not candidates else FINISH.get(reason, "malformed")
        signed = any(part.keys() - {"text", "functionCall"} for part in parts)
        reply = Reply(
            text="".join(str(part.get("text") or "") for part in parts if not part.get("thought")),
            calls=calls,
            finish="tool" if calls and finish == "stop" else finish,
            model=str(body.get("modelVersion") or ""),
            thinking="\n\n".join(str(part["text"]) for part in parts if part.get("thought") and part.get("text")),
            sealed=seal("gemini", parts) if signed else "",
            detail="" if reason == "STOP" else str(candidate.get("finishMessage") or reason),
            tier=answered_tier(usage.get("serviceTier") if isinstance(usage, dict) else None, request),
        )
        number = UsageReader(usage)
        answer_tokens, thought_tokens = number("candidatesTokenCount"), number("thoughtsTokenCount")
        prompt, tools = number("promptTokenCount"), number("toolUsePromptTokenCount")
        total = number("totalTokenCount")
        if answer_tokens is None and total is not None and prompt is not None:
            answer_tokens = max(0, total - prompt - (tools or 0) - (thought_tokens or 0))
        counts = [tokens for tokens in (answer_tokens, thought_tokens) if tokens is not None]
        output = sum(counts) if counts else None
        return counted(
            request,
            reply,
            input_tokens=None if prompt is None else prompt + (tools or 0),
            output_tokens=output,
            cached=number("cachedContentTokenCount"),
            reasoning=thought_tokens,
            odd=number.odd,
            summary=True,
        )

    def joined(self, events: Iterable[Json]) -> Json:
        """Assemble the response body of a stream: all parts in order, with the last usage and finish reason."""
        body: Json = {}
        parts: list[Json] = []
        candidate: Json = {}
        usage: Json = {}
        for event in map(_in_camel_case, events):
            body |= event
            usage |= event.get("usageMetadata") or {}
            for piece in (event.get("candidates") or ())[:1]:
                candidate |= {k: v for k, v in piece.items() if k != "content"}
                for part in (piece.get("content") or {}).get("parts") or ():
                    _join_part(parts, part)
        if not body:
            raise ValueError("the stream holds no reply")
        if usage:
            body["usageMetadata"] = usage
        if candidate.get("finishReason"):
            body.pop("error", None)  # It came after the end of a complete reply.
        if candidate or parts:
            if not candidate.get("finishReason"):
                # The connection ended early, so the reply is incomplete.
                candidate["finishReason"] = "MAX_TOKENS"
                body["usageMetadata"] = {name: value for name, value in usage.items() if name not in OUTPUT_COUNTS}
            body["candidates"] = [{**candidate, "content": {"role": "model", "parts": parts}}]
        return body


OUTPUT_COUNTS = ("candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount")


def _in_camel_case(value: Any) -> Any:
    """Field names in camel case, as documented; the service may also use underscores. Arguments are left alone.

    Fields that are null are dropped: in a stream they must not replace an earlier value.
    """
    if isinstance(value, list):
        return [_in_camel_case(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = ((k, v) for k, v in cast("Json", value).items() if v is not None)
    renamed = {UNDERSCORE.sub(lambda m: m[1].upper(), k): v for k, v in fields}
    return {k: v if k == "args" else _in_camel_case(v) for k, v in renamed.items()}


UNDERSCORE = pattern(r"(?<=[a-z])_([a-z])")


OTHER_PARTS = frozenset(
    ("functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult")
)
"""Kinds of parts other than text. Unknown fields do not make a part one of them."""


def _join_part(parts: list[Json], part: Json) -> None:
    """Join consecutive text parts of the same kind and append other parts. A signature may come with empty text."""
    last = parts[-1] if parts else {}
    same = "thoughtSignature" not in last and bool(last.get("thought")) == bool(part.get("thought"))
    plain = all("text" in candidate and not candidate.keys() & OTHER_PARTS for candidate in (last, part))
    if plain and same:
        parts[-1] = {**last, **part, "text": last["text"] + part["text"]}
    else:
        parts.append(dict(part))


def _thinking(request: Request, facts: ModelFacts) -> Json | None:
    effort = facts.effort(request.settings.effort)
    if effort is None:
        return None
    if facts.thinking == "level":
        return {"thinkingLevel": effort.upper()}
    if facts.thinking != "tokens":
        return None
    return {"thinkingBudget": BUDGETS.get(effort, BUDGETS["high"])}


UNSIGNED = pattern(r"gemini-[12]\b")
"""Models that accept calls without a signature."""


def _contents(request: Request, *, signing: bool) -> list[Json]:
    contents: list[Json] = []
    for message in request.messages:
        match message:
            case SystemMessage():
                continue
            case UserMessage():
                add_turn(contents, "user", "parts", [{"text": message.text}])
            case ToolResult():
                # Google matches results by name and order and does not know generated ids.
                own = message.call_id.startswith("call_")
                answer = {"name": message.name, "response": {"result": message.text}}
                add_turn(
                    contents, "user", "parts", [{"functionResponse": answer | ({} if own else {"id": message.call_id})}]
                )
            case AssistantMessage():
                add_turn(contents, "model", "parts", _assistant(message, signing=signing))
    return contents


def _assistant(message: AssistantMessage, *, signing: bool) -> list[Json]:
    """The parts as received, with signatures. Calls that Google did not make itself get a placeholder signature."""
    sealed: Any = unseal("gemini", message)
    calls = list(message.calls)
    parts: list[Json] = []
    for part in sealed or []:
        function_call: Json | None = part.get("functionCall")
        if function_call is None:
            parts.append(part)
            continue
        match = next(
            (c for c in calls if c.name == function_call.get("name") and function_call.get("id") in (None, c.id)), None
        )
        if match is not None:
            calls.remove(match)
            parts.append({**part, "functionCall": {**function_call, "args": arguments_object(match)}})
    if message.text and not any("text" in part and not part.get("thought") for part in parts):
        parts.insert(0, {"text": message.text})
    for call in calls:
        id = {} if call.id.startswith("call_") else {"id": call.id}
        parts.append({"functionCall": {"name": call.name, "args": arguments_object(call), **id}})
    first = next((part for part in parts if "functionCall" in part), None)
    if signing and first is not None:
        first.setdefault("thoughtSignature", SKIP_SIGNATURE)  # Of several calls, only the first needs one.
    return parts
