"""One client for all API formats: sends requests, reads replies, and drops settings that a model refuses."""

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from foretell.models.canonical import quick_json
from foretell.models.facts import ModelFacts, facts_of
from foretell.models.journal import Journal
from foretell.models.model import (
    BatchDeferred,
    ModelBusy,
    ModelError,
    ModelRefused,
    Reply,
    ReplyLost,
    ReplyTooLong,
    Request,
    SettingRefused,
    UserMessage,
)
from foretell.models.names import ModelName
from foretell.models.providers.api_format import (
    ApiFormat,
    HttpFailure,
    Json,
    count,
    counted,
    odd_json,
    redact_key,
    server_events,
    tidied,
    whole_characters,
)
from foretell.models.providers.batches import (
    JSON_TYPE,
    LONGEST_RESULTS,
    NO_ROOM,
    BatchFormat,
    BatchQueue,
    SubmittedBatches,
)
from foretell.models.waiting import WaitingReply, check_sending, sending_for_all
from foretell.outgoing.client import (
    AnswerTooLarge,
    Connections,
    HttpRequest,
    NotConnected,
    OutgoingError,
    Unsendable,
    address_of,
)
from foretell.patterns import pattern

if TYPE_CHECKING:
    from yarl import URL

LONGEST_BODY = 16 * 2**20
"""Maximum bytes of one reply. More is a fault of the server; it is neither parsed nor stored."""
MOST_URLS = 100
"""Number of cached URLs. Limited, because the URL of a batch is only used for a while."""
STEPS_DOWN = 5
"""How many settings one request may lose before its refusal is final."""
LONGEST_OUTPUT, LEAST_OUTPUT = 10_000_000, 100
"""Maximum and minimum useful output tokens of a reply."""
UNREADABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError)
"""Exceptions that mean a reply does not have the expected shape."""
HALF_CHARACTER = pattern(rb"\\u[dD][89a-fA-F]")
"""A lone surrogate as written in JSON."""
LEFT_OUT: Mapping[str, str] = {"stream": "stream_options", "routing": "provider", "include": "include"}
"""Fields that a format adds on its own and that are dropped if the server refuses them."""
UNFINISHED = ("queued", "in_progress")
"""The status of a reply that is not complete yet."""
LESS_SCHEMA: Mapping[str, Any] = {"yes": "object", "object": "no"}
DESCRIBED = "Answer with one JSON object and nothing else. Its JSON schema:\n{}"
"""Added to the prompt of models that do not support schemas."""


class HttpAnswer(NamedTuple):
    """An HTTP response, read to its end."""

    status: int
    headers: Mapping[str, str]
    """Header values by lower-case name."""
    body: bytes

    @property
    def good(self) -> bool:
        """Whether the status code means success."""
        return 200 <= self.status < 300


class HttpModel:
    """A client for one server and one key, whose models share connections. Callers limit time and concurrency."""

    def __init__(
        self,
        api_format: ApiFormat,
        address: str,
        key: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        batches: BatchFormat | None = None,
        journal: Journal | None = None,
    ) -> None:
        """With `batches`, requests in the batch tier are submitted together and recorded in the journal."""
        self._format = api_format
        self._batches = batches
        self._submitted = SubmittedBatches(journal) if journal else None
        self._queues: dict[asyncio.AbstractEventLoop, BatchQueue] = {}
        self._address = address.rstrip("/")
        self._key = key
        self._connections = Connections(
            headers={**api_format.headers(key), **(headers or {}), "Content-Type": JSON_TYPE},
            idle_seconds=_idle_seconds(address),
            check=check_sending,
        )
        self._urls: dict[str, URL] = {}
        self._learned: dict[str, ModelFacts] = {}
        self._dropped: dict[str, frozenset[str]] = {}

    def __repr__(self) -> str:
        return f"HttpModel({type(self._format).__name__}, {self._address})"

    async def complete(self, request: Request) -> Reply:
        """Send one request and return its reply. A refused setting is dropped, now and for later requests."""
        name = ModelName.read(request.model).name
        for _ in range(STEPS_DOWN):
            try:
                return await self._ask(request, name)
            except SettingRefused as refused:
                if refused.setting == "signature":
                    request = _without(request, frozenset({"sealed"}))
                elif not self._step_down(request, name, refused):
                    raise
        return await self._ask(request, name)

    async def close(self) -> None:
        """Close connections."""
        for queue in self._queues.values():
            await queue.close()
        self._queues.clear()
        await self._connections.close()

    def facts(self, name: str) -> ModelFacts:
        """What is known about a model, including what this server has refused."""
        return self._learned.get(name) or facts_of(name)

    async def _ask(self, request: Request, name: str) -> Reply:
        facts, dropped = self.facts(name), self._dropped.get(name, frozenset[str]())
        if "tier" in dropped and request.settings.tier is not None:
            for reservation in request.reservations:
                request = request.capped(await reservation.reprice(1.0))
        sent = _without(request, dropped)
        if facts.max_output is not None and (sent.max_tokens or 0) > facts.max_output:
            sent = replace(sent, cap=facts.max_output)
        if sent.schema is not None and facts.schema != "yes":
            described = UserMessage(text=DESCRIBED.format(json.dumps(sent.schema)))
            sent = replace(sent, messages=(*sent.messages, described))
        if sent.settings.tier == "batch":
            sent = _without(sent, frozenset({"tier"}))
            if self._batches is not None:
                return await self._ask_in_batch(self._batches, request, name, self._format.body(sent, name, facts))
        body = self._format.body(sent, name, facts)
        for setting, name_there in LEFT_OUT.items():
            if setting in dropped:
                body.pop(name_there, None)
        if "max_tokens" in dropped and "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        path = self._format.path(name, stream=bool(body.get("stream")))
        reply = self._read(await self._send(request, path, quick_json(body)), request)
        # A tier that was left out is not billed.
        return replace(reply, tier="standard") if sent.settings.tier != request.settings.tier else reply

    async def _ask_in_batch(self, form: BatchFormat, request: Request, name: str, body: Json) -> Reply:
        async def send(path: str, data: bytes | None = None, *, content_type: str = JSON_TYPE) -> bytes:
            with sending_for_all():
                answer = await self._send(request, path, data, content_type=content_type, longest=LONGEST_RESULTS)
            if answer.good:
                return answer.body
            failure = self._failure(answer, request)
            if answer.status in NO_ROOM and isinstance(failure, ModelBusy):
                raise BatchDeferred(str(failure), wait=failure.wait)
            raise failure

        queue = self._queues.setdefault(asyncio.get_running_loop(), BatchQueue(form, self._submitted))
        batch_body = {field: value for field, value in body.items() if field not in ("stream", "stream_options")}
        try:
            item = await queue.ask(request, name, batch_body, send)
        except BatchDeferred as error:
            raise BatchDeferred(redact_key(str(error), self._key), wait=error.wait) from None
        reply = self._read(HttpAnswer(status=item.status, headers={}, body=item.body), request)
        return replace(reply, tier=None)  # Billed as a batch, whatever tier the reply names.

    async def _send(
        self,
        request: Request,
        path: str,
        data: bytes | None = None,
        *,
        content_type: str = JSON_TYPE,
        longest: int | None = None,
    ) -> HttpAnswer:
        """Send a POST, or a GET without a body. Raises `ModelBusy` before anything was sent, `ReplyLost` afterwards."""
        headers = None if content_type == JSON_TYPE else {"Content-Type": content_type}
        most = longest or LONGEST_BODY
        try:
            sent = HttpRequest("GET" if data is None else "POST", self._url(path), headers, data)
            with WaitingReply() as waiting:
                async with self._connections.send(sent) as answer:

                    def count_tokens(part: bytes) -> None:
                        waiting.heard(part.count(b"data:"))

                    try:
                        # A stream has no content length.
                        body = await answer.read(most, count_tokens if answer.length is None else None)
                    except AnswerTooLarge as error:
                        if answer.status < 300:
                            raise
                        body = error.beginning[:LONGEST_TEXT]  # The beginning of an error page is enough.
                    return HttpAnswer(status=answer.status, headers=answer.headers, body=body)
        except AnswerTooLarge:
            problem = f"the reply is larger than {most // 2**20} MiB and was left unread"
            raise ReplyTooLong(f"{request.model}: {problem}") from None
        except NotConnected as error:
            raise ModelBusy(f"{request.model}: no connection: {redact_key(str(error), self._key)}") from None
        except Unsendable as error:
            raise ModelRefused(f"{request.model}: {redact_key(str(error), self._key)}") from None
        except OutgoingError as error:
            raise ReplyLost(f"{request.model}: {redact_key(str(error), self._key)}") from None

    def _url(self, path: str) -> "URL":
        """Parse a URL, with a cache for the few paths that are used again and again."""
        if path not in self._urls:
            if len(self._urls) >= MOST_URLS:
                self._urls.clear()
            self._urls[path] = address_of(self._address + path)
        return self._urls[path]

    def _failure(self, answer: HttpAnswer, request: Request, parsed: Any = None) -> ModelError:
        if parsed is None:
            with suppress(RecursionError):
                parsed = self._parsed(answer)
        failure = HttpFailure(status=answer.status, headers=answer.headers, body=parsed).error(request, self._key)
        begun = answer.body.count(b"data:") > 1 or (isinstance(parsed, dict) and isinstance(parsed.get("usage"), dict))
        if answer.good and isinstance(failure, ModelBusy) and begun:
            # Output before the error, or tokens counted next to it, may be billed.
            return ReplyLost(str(failure), wait=failure.wait)
        return failure

    def _read(self, answer: HttpAnswer, request: Request) -> Reply:
        try:
            parsed = self._parsed(answer)
        except RecursionError:
            if not answer.good:
                raise self._failure(answer, request) from None
            return _malformed(request, answer.body[:LONGEST_TEXT].decode("utf-8", "replace"))
        if not answer.good or (isinstance(parsed, dict) and _is_error(parsed)):
            if (failed := _failed_call(parsed, request)) is not None:
                return failed
            raise self._failure(answer, request, parsed)
        if not isinstance(parsed, dict):
            raise ReplyLost(f"{request.model}: the reply is not complete JSON")
        try:
            with suppress(*UNREADABLE):
                return self._format.reply(parsed, request)
            return self._format.reply(tidied(parsed), request)
        except RecursionError:
            return _malformed(request, answer.body[:LONGEST_TEXT].decode("utf-8", "replace"))
        except UNREADABLE:
            if (paid := self._unreadable(parsed, request)) is not None:
                return paid
            raise ReplyLost(f"{request.model}: the reply contains no readable answer") from None

    def _unreadable(self, parsed: Json, request: Request) -> Reply | None:
        """A complete reply in an unknown shape, if its tokens are counted: it was billed, and a retry costs as much."""
        usage = parsed.get("usage") or parsed.get("usageMetadata")
        billed = isinstance(usage, dict) and any(map(count, cast("Json", usage).values()))
        if not billed or parsed.get("status") in (*UNFINISHED, "failed"):
            return None
        try:
            reply = self._format.reply({**parsed, **NOTHING_READABLE}, request)
        except UNREADABLE:
            return None
        return replace(
            reply, finish="malformed", detail=redact_key(f"unreadable: {quick_json(parsed).decode()}", self._key)
        )

    def _parsed(self, answer: HttpAnswer) -> Any:
        parsed = self._as_written(answer)
        return whole_characters(parsed) if HALF_CHARACTER.search(answer.body) else parsed

    def _as_written(self, answer: HttpAnswer) -> Any:
        kind = answer.headers.get("content-type", "")
        # Streams are recognized by their beginning, because some servers send the wrong content type.
        if "text/event-stream" not in kind or answer.body[:100].lstrip().startswith((b"{", b"[")):
            parsed = odd_json(answer.body, kind)
            if parsed is not None:
                return self._from_list(parsed) if isinstance(parsed, list) else parsed
        events = list(server_events(answer.body.decode("utf-8", "replace")))
        with suppress(*UNREADABLE):
            return self._format.joined(events)
        with suppress(*UNREADABLE):
            return self._format.joined(tidied(events))
        return None

    def _from_list(self, items: list[Any]) -> Any:
        """The object in a list: Google returns errors like this, and streams that were collected on the way."""
        objects: list[Json] = [item for item in items if isinstance(item, dict)]
        with suppress(*UNREADABLE):
            return next((item for item in objects if item.get("error")), None) or self._format.joined(objects)
        return None

    def _step_down(self, request: Request, name: str, refused: SettingRefused) -> bool:
        """Remember a setting that a model refuses; False if there is nothing left to drop."""
        facts, setting = self.facts(name), refused.setting
        if setting == "max_tokens" and "max_completion_tokens" not in str(refused):
            # The message usually states the longest reply allowed. The limit caps the cost, so it is never left out.
            sent = min(request.max_tokens or 0, facts.max_output or LONGEST_OUTPUT)
            words = str(refused).partition(" HTTP ")[2][3:]
            numbers = [
                int(number.replace(",", "")) for number in re.findall(r"(?<![\w.-])\d[\d,]{2,8}(?![\w-])", words)
            ]
            fewer = max((number for number in numbers if number < sent), default=sent // 2)
            self._learned[name] = replace(facts, max_output=fewer)
            return fewer >= LEAST_OUTPUT
        if setting == "tool_choice" and facts.force != "no":
            # If any tool was allowed, "required" was refused.
            fewer = "required" if request.force != "*" and facts.force == "named" else "no"
            self._learned[name] = replace(facts, force=fewer)
        elif setting == "schema" and facts.schema in LESS_SCHEMA:
            self._learned[name] = replace(facts, schema=LESS_SCHEMA[facts.schema])
        elif setting not in self._dropped.get(name, frozenset()) and setting not in ("tool_choice", "schema"):
            self._dropped[name] = self._dropped.get(name, frozenset()) | {setting}
        else:
            return False
        return True


def _idle_seconds(address: str) -> float:
    """Seconds after which an idle connection is not used again."""
    # Local servers (llama.cpp, uvicorn) close it after five seconds. A request sent at that time is lost, and it is
    # unknown whether it was answered.
    return 60.0 if address.startswith("https:") else 4.0


LONGEST_TEXT = 100_000
NOTHING_READABLE: Mapping[str, Any] = {
    "choices": [],
    "output": [],
    "status": "incomplete",
    "incomplete_details": {"reason": "unreadable"},
    "content": [],
    "stop_reason": "unreadable",
    "stop_details": None,
    "candidates": [],
    "promptFeedback": None,
}
"""The fields of all formats that contain the answer, for reading only the token counts of a reply."""


def _is_error(body: Json) -> bool:
    if body.get("error") or body.get("object") == "error":
        return True
    choices: Any = body.get("choices")
    return bool(isinstance(choices, list) and choices and isinstance(choices[0], dict) and choices[0].get("error"))


def _malformed(request: Request, text: str, detail: str = "") -> Reply:
    """Return a paid reply that cannot be parsed, with its text."""
    return counted(request, Reply(text=text, finish="malformed", detail=detail))


def _failed_call(body: Any, request: Request) -> Reply | None:
    """Return the text that Groq includes when it refuses its model's malformed call, as a reply."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict) or error.get("code") != "tool_use_failed":
        return None
    return _malformed(request, str(error.get("failed_generation") or ""), str(error.get("message") or ""))


def _without(request: Request, dropped: frozenset[str]) -> Request:
    """The request without the settings that its model refuses."""
    if not dropped:
        return request
    fields: dict[str, Any] = {name: None for name in dropped if name in ("temperature", "seed", "effort", "tier")}
    if "thinking" in dropped and request.tools:
        fields["effort"] = "none"
    messages = request.messages
    if "sealed" in dropped:
        messages = tuple(replace(message, sealed="") if hasattr(message, "sealed") else message for message in messages)
    return replace(request, settings=replace(request.settings, **fields), messages=messages)
