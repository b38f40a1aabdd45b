"""Unusual responses of servers and proxies: no paid reply is lost, and errors are classified."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web

from foretell.models.facts import ModelFacts
from foretell.models.model import (
    ModelBusy,
    ModelError,
    ModelRefused,
    ModelSettings,
    Reply,
    ReplyLost,
    ReplyTooLong,
    Request,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from foretell.models.providers.api_format import ApiFormat, HttpFailure
from foretell.models.providers.chat import ChatApi
from foretell.models.providers.client import HttpAnswer, HttpModel
from foretell.models.providers.gemini import GeminiApi
from foretell.models.providers.messages import MessagesApi
from foretell.models.providers.responses import ResponsesApi
from foretell.models.router import open_provider

FORMATS: dict[str, ApiFormat] = {
    "chat": ChatApi(),
    "responses": ResponsesApi(),
    "messages": MessagesApi(),
    "gemini": GeminiApi(),
}
TEXT = "Fünf 👍 vor zwölf"
BODIES: dict[str, dict[str, Any]] = {
    "chat": {
        "choices": [{"message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5},
    },
    "responses": {
        "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": TEXT}]}],
        "usage": {"input_tokens": 9, "output_tokens": 5},
    },
    "messages": {
        "content": [{"type": "text", "text": TEXT}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 9, "output_tokens": 5},
    },
    "gemini": {
        "candidates": [{"content": {"parts": [{"text": TEXT}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5},
    },
}
HALVES = (TEXT[:6], TEXT[6:])
EVENTS: dict[str, list[dict[str, Any]]] = {
    "chat": [
        *({"choices": [{"delta": {"content": half}}]} for half in HALVES),
        {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": BODIES["chat"]["usage"]},
    ],
    "responses": [
        {"type": "response.created", "response": {"status": "in_progress", "output": []}},
        *({"type": "response.output_text.delta", "output_index": 0, "delta": half} for half in HALVES),
        {"type": "response.completed", "response": BODIES["responses"]},
    ],
    "messages": [
        {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 9}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": half}}
            for half in HALVES
        ),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": HALVES[0], "novel": 1}]}}]},
        {"candidates": [{"content": {"parts": [{"text": HALVES[1], "novel": 2}]}}]},
        {"candidates": [{"finishReason": "STOP"}], "usageMetadata": BODIES["gemini"]["usageMetadata"]},
    ],
}
STREAM = {"content-type": "text/event-stream"}
QUESTION = Request(model="openai:m", messages=(UserMessage(text="How late is it?"),))


def read_reply(api: str, body: bytes, *, status: int = 200, **headers: Any) -> Reply:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = HttpAnswer(status=status, headers=fields, body=body)
    return HttpModel(FORMATS[api], "http://127.0.0.1:1")._read(answer, QUESTION)


def raw(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def stream(events: Iterable[dict[str, Any]], end: str = "\n\n", begin: str = "data: ") -> bytes:
    return "".join(f"{begin}{json.dumps(event, ensure_ascii=False)}{end}" for event in events).encode()


WHOLE: dict[str, Callable[[str], tuple[bytes, dict[str, str]]]] = {
    "with a mark of its bytes": lambda api: (b"\xef\xbb\xbf" + raw(BODIES[api]), {}),
    "in UTF-16": lambda api: (raw(BODIES[api]).decode().encode("utf-16"), {}),
    "with rubbish behind": lambda api: (raw(BODIES[api]) + b"\n<!-- proxy -->\x00", {}),
    "after keep-alive": lambda api: (b"\n\n  \r\n" + raw(BODIES[api]), {}),
    "called a stream": lambda api: (raw(BODIES[api]), STREAM),
    "called a page": lambda api: (raw(BODIES[api]), {"content-type": "text/html"}),
    "as a stream": lambda api: (stream(EVENTS[api]), STREAM),
    "as a stream that nobody calls so": lambda api: (stream(EVENTS[api]), {}),
    "as a stream with carriage returns": lambda api: (stream(EVENTS[api], "\r\n\r\n"), STREAM),
    "as a stream of old Macintoshes": lambda api: (stream(EVENTS[api], "\r\r"), STREAM),
    "as a stream without spaces": lambda api: (stream(EVENTS[api], begin="data:"), STREAM),
    "as a stream without empty lines": lambda api: (stream(EVENTS[api], "\n"), STREAM),
    "as a stream with comments": lambda api: (
        b": WAIT\n\n" + stream(EVENTS[api], "\n\n: wait\n\n", "event: x\nid: 1\nretry: 3\ndata: ") + b"data: [DONE]",
        STREAM,
    ),
    "as a stream with events in many lines": lambda api: (
        b"".join(stream([one]).replace(b", ", b",\ndata: ") for one in EVENTS[api]),
        STREAM,
    ),
}  # fmt: skip


@pytest.mark.parametrize("api", FORMATS)
def test_reply_is_read_in_any_framing(api: str):
    for how, wrapped in WHOLE.items():
        body, headers = wrapped(api)
        reply = read_reply(api, body, **{name.replace("-", "_"): value for name, value in headers.items()})
        result = (reply.text, reply.finish, reply.tokens.input, reply.tokens.output)
        assert result == (TEXT, "stop", 9, 5), how


@pytest.mark.parametrize("api", FORMATS)
def test_other_charsets_do_not_lose_a_reply(api: str):
    body = raw(BODIES[api]).decode().replace("👍", "!").encode("latin-1")
    assert read_reply(api, body, content_type="application/json; charset=ISO-8859-1").text == TEXT.replace("👍", "!")
    assert read_reply(api, body).text.startswith("F")  # The charset is unknown, so undecodable characters are replaced.


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize("number", ["9" * 5000, "1" + "0" * 30, "1e999", "-3", "NaN", '"many"'])
def test_huge_counts_do_not_lose_a_reply(api: str, number: str):
    reply = read_reply(api, raw(BODIES[api]).replace(b": 9", f": {number}".encode()))
    assert reply.text == TEXT
    assert 0 < reply.tokens.input < 100
    assert reply.tokens.estimated


@pytest.mark.parametrize("api", FORMATS)
def test_cut_stream_returns_the_text_so_far_or_is_lost(api: str):
    complete = stream(EVENTS[api])
    for end in range(0, len(complete), 7):
        try:
            reply = read_reply(api, complete[:end], content_type="text/event-stream")
        except ReplyLost:
            assert HALVES[0].encode() not in complete[: max(0, complete.rfind(b"\n\n", 0, end))]
        else:
            assert TEXT.startswith(reply.text)
    for end in range(0, len(raw(BODIES[api])), 11):
        with pytest.raises(ReplyLost):
            read_reply(api, raw(BODIES[api])[:end])


@pytest.mark.parametrize("api", FORMATS)
def test_error_inside_a_stream_counts_as_possibly_billed(api: str):
    broken = b'data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    first = stream(EVENTS[api][:2])
    for error in (broken, broken.removeprefix(b"data: ")):
        with pytest.raises(ReplyLost, match="Overloaded") as caught:
            read_reply(api, first + error, content_type="text/event-stream")
        assert "\n" not in str(caught.value)
    with pytest.raises(ModelBusy) as caught:
        read_reply(api, broken, content_type="text/event-stream")
    assert not isinstance(caught.value, ReplyLost)


@pytest.mark.parametrize("api", FORMATS)
def test_error_after_the_end_of_a_stream_is_ignored(api: str):
    late: dict[str, Any] = {"type": "error", "error": {"code": 400, "message": "Token limit reached"}}
    reply = read_reply(api, stream([*EVENTS[api], late]), content_type="text/event-stream")
    assert (reply.text, reply.finish, reply.tokens.output) == (TEXT, "stop", 5)


def test_characters_split_by_a_stream_are_joined():
    pieces = ["It rains ", "\ud83d", "\udc4d", " or \ud83d not"]
    events = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    assert read_reply("chat", body, content_type="text/event-stream").text == "It rains 👍 or \ufffd not"


NESTED = b'{"error":' + b"[" * 100_000
PAGES: list[tuple[int, bytes, type[ModelError]]] = [
    (502, b"<html><head>\n<title>502 Bad Gateway</title></head>\n</html>", ModelBusy),
    (529, b"", ModelBusy),
    (503, b"\x1f\x8b\x08 not gzip", ModelBusy),
    (500, NESTED, ModelBusy),
    (400, NESTED, ModelRefused),
    (418, b"\xff\xfe\x00", ModelRefused),
    (404, b'"text"', ModelRefused),
    (422, raw({"detail": [{"loc": ["body"], "msg": "a\nb"}]}), ModelRefused),
    (308, b"", ModelRefused),
    (200, b"", ReplyLost),
    (200, b"<html>Welcome to the hotel</html>", ReplyLost),
    (200, b"null", ReplyLost),
    (204, b"", ReplyLost),
]


@pytest.mark.parametrize("api", FORMATS)
def test_error_pages_raise_the_right_error(api: str):
    for status, body, kind in PAGES:
        with pytest.raises(kind) as caught:
            read_reply(api, body, status=status, location="https://elsewhere.example/v2")
        assert type(caught.value) is kind, body[:50]
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500
        assert ("elsewhere.example" in str(caught.value)) == (status == 308)


def test_retry_after_header_is_parsed():
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    cases = [("2", 2.0), ("1.5", 1.5), ("-4", 0.0), ("1e9", 1e9), ("inf", None), ("soon", None), ("", None)]
    for header, seconds in cases:
        assert wait_seconds(header) == seconds
    assert 60 < (wait_seconds(later) or 0) <= 90  # By the local clock if the server sends no date.
    assert wait_seconds("Mon, 01 Jan 2001 00:00:00 GMT") == 0.0


def wait_seconds(header: str) -> float | None:
    return HttpFailure(status=429, headers={"retry-after": header}, body=None).wait


class Picky(HttpModel):
    """A router without an endpoint that supports all parameters."""

    sent: list[dict[str, Any]]

    async def _send(self, request: Request, path: str, data: bytes | None = None, **how: Any) -> HttpAnswer:
        self.sent.append(json.loads(data or b"{}"))
        if "provider" not in self.sent[-1]:
            return HttpAnswer(status=200, headers={}, body=raw(BODIES["chat"]))
        error = {"error": {"code": 404, "message": "No endpoints found that can handle the requested parameters."}}
        return HttpAnswer(status=404, headers={}, body=raw(error))


def test_routing_requirement_is_dropped_if_no_endpoint_supports_it():
    model = Picky(ChatApi(require_parameters=True), "http://127.0.0.1:1")
    model.sent = []
    request = Request(model="openrouter:v/m", messages=QUESTION.messages, schema={"type": "object"})
    assert asyncio.run(model.complete(request)).text == TEXT
    assert ["provider" in body for body in model.sent] == [True, False]


class Thoughtless(HttpModel):
    """A gateway to a model that thinks by default and calls tools only if it does not."""

    sent: list[dict[str, Any]]

    async def _send(self, request: Request, path: str, data: bytes | None = None, **how: Any) -> HttpAnswer:
        self.sent.append(json.loads(data or b"{}"))
        if not self.sent[-1].get("tools") or self.sent[-1].get("reasoning_effort") == "none":
            return HttpAnswer(status=200, headers={}, body=raw(BODIES["chat"]))
        message = (
            "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. "
            "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
        )
        error = {"message": message, "type": "invalid_request_error", "param": "reasoning_effort", "code": None}
        return HttpAnswer(status=400, headers={}, body=raw({"error": error}))


@pytest.mark.parametrize("name", ["mine", "gpt-5.6-sol"])
@pytest.mark.parametrize("effort", [None, "high"])
def test_model_that_calls_tools_only_without_thinking_is_asked_not_to_think(name: str, effort: Any):
    model = Thoughtless(ChatApi(), "http://127.0.0.1:1")
    model.sent = []
    request = replace(QUESTION, model=f"openrouter:{name}", settings=ModelSettings(effort=effort))
    for tools, asked in (((SEARCH,), 2), ((SEARCH,), 1), ((), 1)):
        model.sent.clear()
        assert asyncio.run(model.complete(replace(request, tools=tools))).text == TEXT
        assert len(model.sent) == asked
        assert model.sent[-1].get("reasoning_effort") == ("none" if tools else effort)


def test_empty_reply_with_counts_was_paid_for():
    reply = read_reply("chat", raw({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}}))
    assert (reply.text, reply.finish, reply.tokens.output) == ("", "malformed", 5)


@pytest.mark.parametrize("choices", [None, []])
def test_empty_reply_without_counts_is_asked_for_again(choices: Any):
    busy = {"base_resp": {"status_code": 1002, "status_msg": "rate limit"}, "choices": choices}
    with pytest.raises(ReplyLost):
        read_reply("chat", raw({**busy, "usage": {"total_tokens": 0}}))


SEARCH = ToolSpec(name="search", description="Searches.", parameters={"type": "object"})
UNREADABLE_PARTS: dict[str, list[dict[str, Any]]] = {
    "chat": [{"choices": [{"text": TEXT}]}, {"choices": {"0": {}}}, {"choices": ["?"]}],
    "responses": [{"output": ["?"]}, {"output": {"type": "message"}}, {"incomplete_details": "?", "output": []}],
    "messages": [{"content": "?"}, {"content": ["?"]}, {"content": {"type": "text"}}],
    "gemini": [{"candidates": [{"content": "?"}]}, {"promptFeedback": "?", "candidates": []}],
}
"""Complete replies in shapes that no provider documents."""


@pytest.mark.parametrize("api", FORMATS)
def test_unreadable_reply_with_counts_is_paid_and_not_sent_again(api: str):
    for part in UNREADABLE_PARTS[api]:
        body = {**BODIES[api], **part}
        reply = read_reply(api, raw(body))
        assert (reply.text, reply.finish, reply.tokens.output) == ("", "malformed", 5), part
        assert reply.detail.startswith("unreadable"), part
        for uncounted in (None, {}, "9"):
            with pytest.raises(ReplyLost):
                read_reply(api, raw({**body, "usage": uncounted, "usageMetadata": uncounted}))
    for status in ("queued", "in_progress", "failed"):
        if api == "responses":
            with pytest.raises(ReplyLost):
                read_reply(api, raw({**BODIES[api], "output": [], "status": status}))


def called(api: str, name: Any) -> dict[str, Any]:
    """A reply that calls a tool."""
    parts: dict[str, dict[str, Any]] = {
        "chat": {"choices": [{"message": {"tool_calls": [{"id": "a", "function": {"name": name, "arguments": ""}}]}}]},
        "responses": {
            "output": [
                {"type": "reasoning", "id": "r", "encrypted_content": "x", "summary": []},
                {"type": "function_call", "call_id": "a", "name": name, "arguments": "{}"},
            ]
        },
        "messages": {
            "content": [
                {"type": "thinking", "thinking": "x", "signature": "x"},
                {"type": "tool_use", "id": "a", "name": name, "input": {}},
            ]
        },
        "gemini": {
            "candidates": [
                {"content": {"parts": [{"functionCall": {"name": name, "args": {}}, "thoughtSignature": "x"}]}}
            ]
        },
    }
    return {**BODIES[api], **parts[api]}


@pytest.mark.parametrize("api", FORMATS)
def test_called_names_can_be_sent_back(api: str):
    """Providers refuse a whole conversation because of one name with other signs, or without any."""
    names = {
        "search": "search",
        "functions.search": "search",
        "search<|channel|>json": "search",
        "look up!": "look_up",
        "": "unnamed",
        None: "unnamed",
        5: "unnamed",
        "a." * 60: ("a_" * 60)[:64],
    }
    for name, expected in names.items():
        reply = FORMATS[api].reply(called(api, name), replace(QUESTION, tools=(SEARCH,)))
        assert [call.name for call in reply.calls] == [expected]
        back = [ToolResult(call_id=call.id, name=call.name, text="x") for call in reply.calls]
        turns = replace(QUESTION, messages=(*QUESTION.messages, reply.as_message(), *back))
        assert named_in(FORMATS[api].body(turns, "m", ModelFacts())) == {expected}, name


def named_in(body: Any) -> set[str]:
    """All names in a request."""
    if isinstance(body, list):
        return {name for part in body for name in named_in(part)}
    if not isinstance(body, dict):
        return set()
    own = {body["name"]} if isinstance(body.get("name"), str) else set[str]()
    return own | {name for part in body.values() for name in named_in(part)}


def test_refusals_and_filtered_messages_of_chat_servers_are_refusals():
    for message in ({"content": [{"type": "refusal", "refusal": "No."}]}, {"content": None, "refusal": "No."}):
        body = {**BODIES["chat"], "choices": [{"message": message, "finish_reason": "stop"}]}
        assert (read_reply("chat", raw(body)).finish, read_reply("chat", raw(body)).text) == ("refusal", "No.")
    body = {**BODIES["chat"], "choices": [{"message": None, "finish_reason": "content_filter"}]}
    assert read_reply("chat", raw(body)).finish == "refusal"


def test_stream_with_only_the_whole_message_is_read():
    usage = BODIES["chat"]["usage"]
    whole = {"choices": [{"message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}], "usage": usage}
    pieces = [{"choices": [{"delta": {"content": TEXT}}]}, whole]
    for events in ([whole], pieces, [*pieces, {"choices": [], "usage": {}}]):
        reply = read_reply("chat", stream(events), content_type="text/event-stream")
        assert (reply.text, reply.tokens.output) == (TEXT, 5)


def test_compressed_truncated_and_redirected_responses_over_sockets():
    """Responses that are compressed, wrongly compressed, truncated or redirected."""
    body, kinds_asked = raw(BODIES["chat"]), list[str]()
    packed = {"gzip": gzip.compress(body), "deflate": zlib.compress(body)}
    bomb = gzip.compress(b" " * (20 * 2**20))

    async def answer(request: web.Request) -> web.StreamResponse:
        kind = request.path.split("/")[1]
        kinds_asked.append(kind)
        if kind in packed:
            return web.Response(body=packed[kind], headers={"Content-Encoding": kind})
        if kind in ("bomb", "broken"):
            return web.Response(body=bomb if kind == "bomb" else b"no gzip", headers={"Content-Encoding": "gzip"})
        if kind == "away":
            raise web.HTTPTemporaryRedirect("/gzip/chat/completions")
        if kind == "long":
            return web.Response(status=500, text="x" * (17 * 2**20))
        cut = web.StreamResponse(headers={"Content-Length": str(len(body))} if kind == "short" else {})
        await cut.prepare(request)
        await cut.write(body[:40])
        assert request.transport is not None
        request.transport.close()
        return cut

    async def ask(base: str, kind: str) -> str:
        model = open_provider(f"compat:m@{base}/{kind}", {})
        try:
            return (await model.complete(Request(model=f"compat:m@{base}/{kind}", messages=QUESTION.messages))).text
        except ModelError as error:
            return type(error).__name__
        finally:
            await model.close()

    async def main() -> dict[str, str]:
        app = web.Application()
        app.router.add_post("/{tail:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        kinds = ("gzip", "deflate", "bomb", "broken", "short", "chunked", "away", "long")
        results = {kind: await ask(base, kind) for kind in kinds}
        await runner.cleanup()
        return results

    assert asyncio.run(main()) == {
        **dict.fromkeys(packed, TEXT),
        "bomb": ReplyTooLong.__name__,
        **dict.fromkeys(("broken", "short", "chunked"), ReplyLost.__name__),
        "away": ModelRefused.__name__,
        "long": ModelBusy.__name__,
    }
    assert kinds_asked.count("gzip") == 1  # The redirect was not followed, because it would send the key along.


def test_null_fields_in_a_gemini_stream_are_ignored():
    counts = {"promptTokenCount": 7, "candidatesTokenCount": 2, "totalTokenCount": 9}
    events = [
        {"candidates": [{"content": {"parts": [{"text": "to"}]}}], "usageMetadata": counts},
        {"candidates": [{"content": {"parts": [{"text": None}, {"text": "day"}]}, "finishReason": "STOP"}]},
        {"candidates": [{"content": None, "finishReason": None}], "usageMetadata": None},
    ]
    request = Request(model="google:m", messages=(UserMessage(text="?"),))
    reply = GeminiApi().reply(GeminiApi().joined(events), request)
    assert (reply.text, reply.finish) == ("today", "stop")
    assert (reply.tokens.input, reply.tokens.output) == (7, 2)
