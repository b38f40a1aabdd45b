"""The common parts of all API formats: the interface, classified errors, and tolerant parsing of replies."""

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol, cast

from foretell.frozen import frozen
from foretell.models.facts import ModelFacts
from foretell.models.model import (
    AssistantMessage,
    ContextTooLong,
    KeyRefused,
    ModelBusy,
    ModelError,
    ModelRefused,
    OutOfCredit,
    Reply,
    Request,
    ServiceTier,
    SettingRefused,
    TokenCount,
    ToolCall,
)
from foretell.models.tokens import BYTES_PER_TOKEN, estimate_input_tokens
from foretell.outgoing.retry import may_pass
from foretell.patterns import pattern
from foretell.questions.server_replies import read_seconds, redacted, retry_after

Json = dict[str, Any]


class ApiFormat(Protocol):
    """Translates requests to a provider's JSON and its JSON to replies. It sends nothing itself."""

    def path(self, name: str, *, stream: bool) -> str:
        """Path below the provider's address."""
        ...

    def headers(self, key: str) -> dict[str, str]:
        """HTTP headers of every request."""
        ...

    def body(self, request: Request, name: str, facts: ModelFacts) -> Json:
        """JSON body of a request."""
        ...

    def reply(self, body: Json, request: Request) -> Reply:
        """Read a reply with status 200. Raises `KeyError`, `TypeError` or `ValueError` if it is not a reply."""
        ...

    def joined(self, events: Iterable[Json]) -> Json:
        """Assemble the response body from the events of a stream."""
        ...


# Errors, classified by who must act: the user, the caller, or a retry.

NO_CREDIT = (
    "insufficient_quota",
    "credit_balance_exhausted",
    "spend_limit",
    "usage_limit_exceeded",
    "billing_error",
    "billing_hard_limit",
    "billing_not_active",
    "credit balance is too low",
    "insufficient balance",
    "insufficient credits",
    "run out of credits",
    "available credits",
    "any credits",
    "credits are depleted",
    "spending limit",
    "spending cap",
    "spend limit",
    "api usage limits",
    "arrearage",
)
"""Words that distinguish an account without credit from a busy service: both answer 429."""
WRONG_KEY = ("api_key_invalid", "invalid_api_key", "incorrect api key", "invalid api key", "authentication_error")
TOO_LONG = (
    "too long",
    "too large",
    "too_large",
    "context_length",
    "context length",
    "context window",
    "exceed_context",
    "exceed context",
    "too_many_prompt_tokens",
    "context size",
    "input token count",
    "`inputs` tokens",
    "range of input length",
    "exceeds max length",
    "exceeded model token limit",
    "maximum prompt length",
    "maximum number of tokens",
)
NOT_OF_THE_KEY = ("model_not_found", "access to model", "moderation", "flagged", "country", "region", "location")
"""Words in a 403 that is about the model, the content or the region rather than the key."""
ERROR_STATUS: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Status codes for Anthropic's errors inside a stream or a batch."""
OVERLOADED = ("overloaded", "slow_down", "rate_limit", "unavailable")
OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens")
SETTINGS = {
    "tool_choice": ("tool_choice", "tool choice", "toolconfig", "function_calling_config"),
    "schema": (
        "response_format",
        "response format",
        "json_schema",
        "json mode",
        "output_config.format",
        "output_config:",
        "responsejsonschema",
        "structured output",
        "text.format",
    ),
    "temperature": ("temperature", "top_p", "sampling"),
    # OpenAI's newer models call tools in this format only if they do not think; their default is to think.
    "thinking": ("set reasoning_effort to 'none'",),
    "effort": (
        "reasoning_effort",
        "reasoning.effort",
        "output_config.effort",
        "output_config:",
        "effort parameter",
        "thinking_level",
        "thinkinglevel",
        "thinking level",
        "thinking_budget",
        "thinkingbudget",
        "thinking budget",
        "budget_tokens",
        "thinking.type",
        "adaptive thinking",
        "only works in thinking",
        "not support thinking",
        "thinking is not supported",
    ),
    "seed": ("seed",),
    "tier": ("service_tier", "servicetier"),
    "sealed": (
        "reasoning_content",
        "reasoning_details",
        "'reasoning'",
        "messages.reasoning",
    ),
    "include": ("encrypted content is not supported",),
    # Thoughts that cannot be checked, as after a change of account: other conversations may keep theirs.
    "signature": (
        "encrypted_content",
        "encrypted content",
        "thought_signature",
        "thought signature",
        "`signature`",
        "thinking` block",
        "thinking block",
        "redacted_thinking",
    ),
    "stream": ("stream_options",),
    # OpenRouter, if none of its servers supports all parameters. It does not name the unsupported ones.
    "routing": ("handle the requested parameters",),
    "max_tokens": OUTPUT_LIMITS,
}
"""Which setting a refusal is about, by words in its message. The first one named that was sent is dropped."""
LONGEST_MESSAGE = 300
SHORTEST_KEY = 6
"""Minimum length of a key to hide: local servers accept any word, such as "x"."""


@frozen
class HttpFailure:
    """A response that is not a reply."""

    status: int
    headers: Mapping[str, str]
    body: Any
    """Parsed JSON, or None."""

    @property
    def message(self) -> str:
        """The provider's own message. OpenRouter hides the cause in the metadata."""
        error = self._error
        raw = _get(_get(error, "metadata"), "raw")
        texts = (error if isinstance(error, str) else None, _get(error, "message"), _get(self.body, "message"))
        text = next((text for text in (*texts, _get(self.body, "detail")) if text), "")
        text = text if isinstance(text, str) else repr(text)[: 2 * LONGEST_MESSAGE]
        return f"{text}: {raw}" if raw and isinstance(raw, str) else text

    @property
    def words(self) -> str:
        """All text that distinguishes kinds of errors, in lower case."""
        error = self._error
        parts = [
            self.message,
            _get(self.body, "code"),
            *(_get(error, key) for key in ("code", "type", "status", "param")),
        ]
        details = [_get(detail, "reason") for detail in _list(_get(error, "details"))]
        code = _get(_get(error, "details"), "error_code")
        return " ".join(str(part) for part in (*parts, *details, code) if part).lower()

    @property
    def code(self) -> int:
        """The effective status: OpenRouter answers 200 and puts the real one into the error."""
        if not 200 <= self.status < 300:
            return self.status
        inner = count(self._error or self.body, "code")
        if inner is not None and 400 <= inner < 600:
            return inner
        words = self.words
        # Errors of the request are named as such, even in a stream. All others may be temporary.
        ours = any(word in words for word in ("invalid", "policy", "data_residency", *TOO_LONG))
        return ERROR_STATUS.get(str(_get(self._error, "type")), 400 if ours else 502)

    @property
    def wait(self) -> float | None:
        """Seconds the provider asked us to wait, in a header or, for Google, in the body."""
        seconds = retry_after(self.headers)
        for detail in _list(_get(self._error, "details")):
            delay = _get(detail, "retryDelay")
            if seconds is None and isinstance(delay, str) and delay.endswith("s"):
                seconds = read_seconds(delay[:-1])
        return seconds

    @property
    def _error(self) -> Any:
        error = _get(self.body, "error")
        if not error:
            choice = next(iter(_list(_get(self.body, "choices"))), None)
            error = _get(choice, "error")
        return error

    def error(self, request: Request, key: str) -> ModelError:
        """The failure as one of our errors, in one line that never contains a key."""
        words, status, model = self.words, self.code, request.model
        message = redact_key(self.message, key)
        text = f"{model}: HTTP {status}" + (f": {message}" if message else "")
        if 300 <= status < 400:
            # Redirects are not followed: they would send the key to another server, without the request body.
            where = redact_key(self.headers.get("location", "nowhere"), key)
            return ModelRefused(f"{text}: the server redirects to {where}; if that is right, use it as the address")
        if status == 402 or any(word in words for word in NO_CREDIT):
            return OutOfCredit(f"{text} (no credit is left)")
        about_key = status == 401 or (status == 403 and not any(word in words for word in NOT_OF_THE_KEY))
        if about_key or any(word in words for word in WRONG_KEY):
            # Providers may quote the refused key or a part of it, so their message is left out.
            return KeyRefused(f"{model}: the provider does not accept the key (HTTP {status})")
        if status == 429 and "request too large" in words:
            return ContextTooLong(text)  # The request exceeds the limit per minute, so waiting does not help.
        again = self.headers.get("x-should-retry")
        if again != "false" and (status == 409 or may_pass(status) or again == "true"):
            return ModelBusy(text, wait=self.wait)
        setting = _refused_setting(words, request) if status in (400, 404, 422) else None
        # DeepSeek calls an unsupported response format "unavailable", so settings are checked before overload.
        if setting is None and again != "false" and any(word in words for word in OVERLOADED):
            return ModelBusy(text, wait=self.wait)
        about_output = setting == "max_tokens" and "context" not in words
        if status == 413 or (status in (400, 422) and not about_output and any(word in words for word in TOO_LONG)):
            return ContextTooLong(text)
        if setting is not None:
            return SettingRefused(text, setting=setting)
        return ModelRefused(text)


def _refused_setting(words: str, request: Request) -> str | None:
    """The setting that a message complains about, if the request contained it."""
    settings = request.settings
    sealed = any(isinstance(message, AssistantMessage) and message.sealed for message in request.messages)
    sent = {
        "tool_choice": request.force is not None,
        "schema": request.schema is not None,
        "temperature": settings.temperature is not None,
        "thinking": bool(request.tools) and settings.effort != "none",
        "effort": settings.effort is not None,
        "seed": settings.seed is not None,
        "tier": settings.tier is not None,
        # Providers mention these only if they were sent.
        "stream": True,
        "include": True,
        "routing": True,
        "max_tokens": request.max_tokens is not None,
        "sealed": sealed,
        "signature": sealed,
    }
    return next((name for name, clues in SETTINGS.items() if sent[name] and any(clue in words for clue in clues)), None)


def redact_key(text: str, key: str) -> str:
    """Text that is safe to show: shortened, on one line and without the key."""
    clean = " ".join((redacted(text, [key], "***") if len(key) >= SHORTEST_KEY else text).split())
    return clean if len(clean) <= LONGEST_MESSAGE else clean[:LONGEST_MESSAGE] + "…"


# Tolerant parsing, so that a paid reply is not lost because of an unexpected type.


def _get(value: Any, key: str) -> Any:
    return cast("Json", value).get(key) if isinstance(value, dict) else None


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def count(value: Any, *path: str) -> int | None:
    """A whole number somewhere in a reply; None if there is no sensible one.

    >>> count({"usage": {"in": 3}}, "usage", "in"), count({"usage": {"in": -1}}, "usage", "in"), count(None, "usage")
    (3, None, None)
    """
    for key in path:
        if not isinstance(value, dict):
            return None
        value = cast("Json", value).get(key)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 16:  # Google's format.
        value = int(value)
    if type(value) is int:
        return value if 0 <= value <= MOST_COUNTED else None
    is_whole = isinstance(value, float) and 0 <= value <= MOST_COUNTED and value.is_integer()
    return int(value) if is_whole else None


MOST_COUNTED = 10**12
"""Upper bound for tokens, or ticks of cost, of any reply. Larger counts are ignored."""


def odd_json(body: bytes, kind: str = "") -> Any:
    r"""The JSON at the start of a body, if any, in any charset and even if followed by garbage.

    >>> odd_json(b'{"a": 1} <!-- proxy -->'), odd_json(b'["\xe9"]', "text/json; charset=Latin-1"), odd_json(b"<html>")
    ({'a': 1}, ['é'], None)
    """
    with suppress(ValueError):
        return json.loads(body)
    latin = any(f"charset={name}" in kind.lower().replace('"', "") for name in LATIN_1)
    text = body.decode("cp1252" if latin else "utf-8", "replace")
    try:
        value = _ODD.raw_decode(text.lstrip("\ufeff \t\r\n"))[0]
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None


def whole_characters(value: Any) -> Any:
    r"""JSON with whole characters: surrogate halves split by a stream are joined, single ones replaced.

    >>> whole_characters(["\ud83d\udc4d", "\ud83d"]) == ["👍", "\ufffd"]
    True
    """
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


LATIN_1 = ("iso-8859-1", "latin-1", "latin1", "windows-1252", "cp1252")


def _odd_int(digits: str) -> float | int:
    return int(digits) if len(digits) < 100 else math.inf


_ODD = json.JSONDecoder(parse_int=_odd_int, strict=False)


class UsageReader:
    """Reads the counts in a provider's usage and records whether one of them is invalid."""

    __slots__ = ("_usage", "odd")

    def __init__(self, usage: Any) -> None:
        self._usage = usage
        self.odd = False
        """Whether a count was negative, too large, or not a whole number."""

    def __call__(self, *path: str) -> int | None:
        """A count; None if there is no sensible one."""
        value = self._usage
        for key in path:
            if not isinstance(value, dict):
                return None
            value = cast("Json", value).get(key)
        if value is None or (type(value) is int and 0 <= value <= MOST_COUNTED):
            return value
        call = count(value)
        self.odd = self.odd or call is None
        return call


WORDS_PER_TOKEN, SHORT_WORD_BYTES = 2, 4.5
BYTES_PER_TOKEN_AT_MOST = 18
SUMMARY_DISCOUNT = 2
"""Visible reasoning may be a summary by another model, which may have more words than the thoughts."""
_RUN = pattern(r"(.)\1{3,}", re.DOTALL)
_ESCAPED = pattern(r"\\u[0-9a-fA-F]{4}")


def fewest_tokens(texts: Iterable[str]) -> int:
    """The fewest tokens that any tokenizer makes of some texts: a lower count cannot be right.

    Tokenizers split a text at white space before they look for tokens, so that every word is at least one token, and
    in practice they need 1.3 tokens for a word. The few that join words save a third of the tokens, so two words are
    never one token on average. Words shorter than 4.5 bytes count by their bytes, which makes no difference to prose
    and lets almost every count be believed by the length of the text alone. Scripts without spaces have no such words;
    there the bytes count: the largest vocabularies need a token for every 4 bytes of Chinese and for every 10 of Thai
    or Malayalam, so 18 bytes are never one token on average. Repetitions of a character (rules, indentation) may be one
    token however long they are, and count as a single character.

    >>> fewest_tokens(["Rain is likely in the north of the country."]), fewest_tokens(["=" * 500])
    (4, 0)
    """
    # JSON may contain escapes for single characters of the model's output.
    plain = [_RUN.sub(r"\1", _ESCAPED.sub("\u4e00", text)) for text in texts]
    words, size = sum(len(text.split()) for text in plain), _size(plain)
    by_words = min(words // WORDS_PER_TOKEN, int(size / (WORDS_PER_TOKEN * SHORT_WORD_BYTES)))
    return max(by_words, size // BYTES_PER_TOKEN_AT_MOST)


def _size(texts: Iterable[str]) -> int:
    """Bytes in UTF-8."""
    # Most texts are known to be ASCII without looking at them again.
    return sum([len(text) if text.isascii() else len(text.encode(errors="replace")) for text in texts])


def _surely_enough(tokens: int, size: int) -> bool:
    """Whether a text of this size cannot need more tokens. Every call goes through this, and few go further."""
    return tokens * WORDS_PER_TOKEN * SHORT_WORD_BYTES >= size


def counted(  # noqa: PLR0913 - what usage consists of
    request: Request,
    reply: Reply,
    *,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    cached: int | None = None,
    stored: int | None = None,
    reasoning: int | None = None,
    odd: bool = False,
    summary: bool = False,
) -> Reply:
    """The reply with the provider's token counts, or with estimates where these cannot be right.

    `TokenCount.estimated` is set if a count is missing, is zero although there is something to count, is below what
    can be seen of the request or of the reply, or contradicts another one. `odd` says that a count was no number;
    `summary` that the visible reasoning is a summary rather than the thoughts.
    """
    reply_texts = [reply.text, *[call.arguments for call in reply.calls]]
    # Earlier replies are left out, because chat templates remove their thoughts.
    request_texts = [message.text for message in request.messages if not isinstance(message, AssistantMessage)]
    input, output, size = input_tokens or 0, output_tokens or 0, _size([*reply_texts, reply.thinking])
    low_input = not _surely_enough(input, _size(request_texts)) and input < fewest_tokens(request_texts)
    low_output = not _surely_enough(output, size) and output < (
        fewest_tokens(reply_texts) + fewest_tokens([reply.thinking]) // (SUMMARY_DISCOUNT if summary else 1)
    )
    # Routers count the total with one tokenizer and its parts with another.
    more_thought = (reasoning or 0) > 1.25 * output + 16
    bad_input = not input or low_input or max(cached or 0, stored or 0) > input
    bad_output = output_tokens is None or (size and not output) or low_output or more_thought
    if bad_input:
        input = max(input, estimate_input_tokens(request))
    if bad_output:
        output = max(output + (reasoning or 0 if more_thought else 0), int(size / BYTES_PER_TOKEN) + 1)
    # Modified in place, because the reply is not shared yet and a copy would take longer than the counting.
    vars(reply)["tokens"] = TokenCount(
        input=input,
        output=output,
        cached=min(cached or 0, input),
        stored=min(stored or 0, input),
        reasoning=min(reasoning or 0, output),
        estimated=bool(odd or bad_input or bad_output),
    )
    return reply


ANSWERED_TIERS: Mapping[str, ServiceTier] = {
    "default": "standard",
    "standard": "standard",
    "flex": "flex",
    "batch": "batch",
    "priority": "priority",
    "fast": "priority",
    "ultrafast": "ultrafast",
}


def answered_tier(named: Any, request: Request) -> ServiceTier | None:
    """The service tier that the provider says it used, if it differs from the requested one."""
    tier = ANSWERED_TIERS.get(str(named).lower())
    return None if tier == (request.settings.tier or "standard") else tier


def arguments_text(arguments: Any) -> str:
    """Arguments as the text that the model wrote, or as JSON if the provider has parsed them.

    >>> arguments_text({"a": 1}), arguments_text('{"a": 1'), arguments_text(None), arguments_text("")
    ('{"a":1}', '{"a": 1', '{}', '{}')
    """
    if isinstance(arguments, str):
        return "{}" if arguments.strip() in ("", "null") else arguments  # A call of a tool without parameters.
    return json.dumps(arguments if arguments is not None else {}, separators=(",", ":"))


def arguments_object(call: ToolCall) -> Json:
    """Arguments as an object, for providers that accept no text; anything else goes under a single key."""
    parsed = json_object(call.arguments or "{}")
    return {"arguments": call.arguments} if parsed is None else parsed


def call_name(name: Any, request: Request) -> str:
    """The tool that a call names, in a form in which the call can be sent back: providers refuse most other signs.

    Models write "functions.search" or "search<|channel|>json": the part that names an offered tool is used.
    """
    text = name if isinstance(name, str) else ""
    if CALLABLE.fullmatch(text) or any(tool.name == text for tool in request.tools):
        return text
    parts = NOT_CALLABLE.split(text)
    named = [tool.name for tool in request.tools if tool.name in parts]
    return named[0] if len(named) == 1 else "_".join(filter(None, parts))[:LONGEST_NAME] or "unnamed"


LONGEST_NAME = 64
CALLABLE = pattern(rf"[a-zA-Z0-9_-]{{1,{LONGEST_NAME}}}")
"""Names of tools that every provider accepts."""
NOT_CALLABLE = pattern(r"[^a-zA-Z0-9_-]+")


def tool_calls(sent: Iterable[tuple[Any, Any, Any]], request: Request) -> tuple[ToolCall, ...]:
    """The calls of a reply, each sent as id, name and arguments.

    Missing ids are replaced by the position in the conversation, which is added to repeated ones.

    >>> sent = [("b_2", "f", "{}"), ("b", "f", "{}"), ("b", "f", "{}"), (None, "f", "{}")]
    >>> [call.id for call in tool_calls(sent, Request(model="m", messages=()))]
    ['b_2', 'b', 'b_2_2', 'call_3']
    """
    before = sum(len(message.calls) for message in request.messages if isinstance(message, AssistantMessage))
    calls: dict[str, ToolCall] = {}
    for place, (raw, name, arguments) in enumerate(sent, before):
        id = raw if isinstance(raw, str) and raw else f"call_{place}"
        while id in calls:
            id = f"{id}_{place}"
        calls[id] = ToolCall(id=id, name=call_name(name, request), arguments=arguments_text(arguments))
    return tuple(calls.values())


# Sealed turns: a turn in the provider's own form, tagged with the format that can read it.


def seal(format_name: str, items: Any) -> str:
    """The provider's own form of a turn, as text for the journal."""
    return json.dumps({format_name: items}, separators=(",", ":"), ensure_ascii=False)


def unseal(format_name: str, message: AssistantMessage) -> Any:
    """Return the items sealed in this format; None if there are none or they have another format."""
    if not message.sealed.startswith("{"):
        return None
    try:
        return _get(json.loads(message.sealed), format_name)
    except (ValueError, RecursionError):
        return None


def bearer(key: str) -> dict[str, str]:
    """The header in which most providers expect the key; local servers need none."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def add_turn(turns: list[Json], role: str, field: str, parts: list[Json]) -> None:
    """Extend the last turn if the role is the same, else start a new one. Providers require alternating roles."""
    if turns and turns[-1]["role"] == role:
        turns[-1][field] += parts
    elif parts:
        turns.append({"role": role, field: parts})


def tidied(value: Any) -> Any:
    """Return a reply without empty list items and without usage that is not an object."""
    if isinstance(value, list):
        return [tidied(part) for part in cast("list[Any]", value) if part is not None]
    if not isinstance(value, dict):
        return value
    parts = cast("Json", value).items()
    return {k: tidied(v) for k, v in parts if k not in ("usage", "usageMetadata") or isinstance(v, dict)}


NUDGE = "Answer now by calling the tool `{}` and nothing else."
"""Added to the prompt when a call is wanted and the model accepts no tool choice."""
NUDGE_ANY = "Answer now by calling one of the tools."


def nudge(force: str) -> str:
    """The instruction to send instead of forcing a call."""
    return NUDGE_ANY if force == "*" else NUDGE.format(force)


def server_events(text: str) -> Iterator[Json]:
    """The JSON of every event in a stream; anything else, such as the end mark, is skipped."""
    # A line may end in CR, LF or both. Within JSON both are escaped.
    for block in text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n\n"):
        # Some servers send an error as bare JSON between two events, or leave out the empty line between events.
        lines = [
            line.removeprefix("data:").lstrip(" ") for line in block.split("\n") if line.startswith(("data:", "{"))
        ]
        event = json_object("\n".join(lines))
        yield from [event] if event is not None else filter(None, map(json_object, lines if len(lines) > 1 else ()))


def json_object(text: str) -> Json | None:
    """The JSON object in a text; None if it is something else."""
    try:
        value = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return cast("Json", value) if isinstance(value, dict) else None


SKIP_SIGNATURE = b64encode(b"skip_thought_signature_validator").decode()
"""Signature that Google accepts for calls of other models."""
