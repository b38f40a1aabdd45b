"""Bytes as servers and proxies really send them: no paid reply is lost, and every error says who must act."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web

from foretell.models import (
    ModelBusy,
    ModelError,
    ModelRefused,
    Reply,
    ReplyLost,
    ReplyTooLong,
    Request,
    UserMessage,
    open_provider,
)
from foretell.models.providers import (
    ChatWire,
    GeminiWire,
    HttpAnswer,
    HttpFailure,
    HttpModel,
    MessagesWire,
    ResponsesWire,
    Wire,
)

WIRES: dict[str, Wire] = {
    "chat": ChatWire(),
    "responses": ResponsesWire(),
    "messages": MessagesWire(),
    "gemini": GeminiWire(),
}
SAID = "Fünf 👍 vor zwölf"
BODIES: dict[str, dict[str, Any]] = {
    "chat": {
        "choices": [{"message": {"role": "assistant", "content": SAID}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5},
    },
    "responses": {
        "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": SAID}]}],
        "usage": {"input_tokens": 9, "output_tokens": 5},
    },
    "messages": {
        "content": [{"type": "text", "text": SAID}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 9, "output_tokens": 5},
    },
    "gemini": {
        "candidates": [{"content": {"parts": [{"text": SAID}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5},
    },
}
HALVES = (SAID[:6], SAID[6:])
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


def read(wire: str, body: bytes, *, status: int = 200, **headers: Any) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = HttpAnswer(status=status, headers=named, body=body)
    return HttpModel(WIRES[wire], "http://127.0.0.1:1")._read(answer, QUESTION)


def raw(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def stream(events: Iterable[dict[str, Any]], end: str = "\n\n", begin: str = "data: ") -> bytes:
    return "".join(f"{begin}{json.dumps(event, ensure_ascii=False)}{end}" for event in events).encode()


WHOLE: dict[str, Callable[[str], tuple[bytes, dict[str, str]]]] = {
    "with a mark of its bytes": lambda wire: (b"\xef\xbb\xbf" + raw(BODIES[wire]), {}),
    "in UTF-16": lambda wire: (raw(BODIES[wire]).decode().encode("utf-16"), {}),
    "with rubbish behind": lambda wire: (raw(BODIES[wire]) + b"\n<!-- proxy -->\x00", {}),
    "after keep-alive": lambda wire: (b"\n\n  \r\n" + raw(BODIES[wire]), {}),
    "called a stream": lambda wire: (raw(BODIES[wire]), STREAM),
    "called a page": lambda wire: (raw(BODIES[wire]), {"content-type": "text/html"}),
    "as a stream": lambda wire: (stream(EVENTS[wire]), STREAM),
    "as a stream that nobody calls so": lambda wire: (stream(EVENTS[wire]), {}),
    "as a stream with carriage returns": lambda wire: (stream(EVENTS[wire], "\r\n\r\n"), STREAM),
    "as a stream of old Macintoshes": lambda wire: (stream(EVENTS[wire], "\r\r"), STREAM),
    "as a stream without spaces": lambda wire: (stream(EVENTS[wire], begin="data:"), STREAM),
    "as a stream without empty lines": lambda wire: (stream(EVENTS[wire], "\n"), STREAM),
    "as a stream with comments": lambda wire: (
        b": WAIT\n\n" + stream(EVENTS[wire], "\n\n: wait\n\n", "event: x\nid: 1\nretry: 3\ndata: ") + b"data: [DONE]",
        STREAM,
    ),
    "as a stream with events in many lines": lambda wire: (
        b"".join(stream([one]).replace(b", ", b",\ndata: ") for one in EVENTS[wire]),
        STREAM,
    ),
}  # fmt: skip


@pytest.mark.parametrize("wire", WIRES)
def test_a_reply_is_read_however_it_is_wrapped(wire: str):
    for how, wrapped in WHOLE.items():
        body, headers = wrapped(wire)
        reply = read(wire, body, **{name.replace("-", "_"): value for name, value in headers.items()})
        found = (reply.text, reply.finish, reply.tokens.input, reply.tokens.output)
        assert found == (SAID, "stop", 9, 5), how


@pytest.mark.parametrize("wire", WIRES)
def test_a_reply_in_another_charset_costs_no_paid_reply(wire: str):
    body = raw(BODIES[wire]).decode().replace("👍", "!").encode("latin-1")
    assert read(wire, body, content_type="application/json; charset=ISO-8859-1").text == SAID.replace("👍", "!")
    assert read(wire, body).text.startswith("F")  # Nobody says which: what cannot be read is marked as such.


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("number", ["9" * 5000, "1" + "0" * 30, "1e999", "-3", "NaN", '"many"'])
def test_counts_beyond_reason_cost_no_paid_reply(wire: str, number: str):
    reply = read(wire, raw(BODIES[wire]).replace(b": 9", f": {number}".encode()))
    assert reply.text == SAID
    assert 0 < reply.tokens.input < 100
    assert reply.tokens.estimated


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_that_is_cut_anywhere_brings_what_came_or_is_lost(wire: str):
    whole = stream(EVENTS[wire])
    for end in range(0, len(whole), 7):
        try:
            reply = read(wire, whole[:end], content_type="text/event-stream")
        except ReplyLost:
            assert HALVES[0].encode() not in whole[: max(0, whole.rfind(b"\n\n", 0, end))]
        else:
            assert SAID.startswith(reply.text)
    for end in range(0, len(raw(BODIES[wire])), 11):
        with pytest.raises(ReplyLost):
            read(wire, raw(BODIES[wire])[:end])


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_within_a_stream_may_have_been_billed(wire: str):
    broken = b'data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    first = stream(EVENTS[wire][:2])
    for error in (broken, broken.removeprefix(b"data: ")):
        with pytest.raises(ReplyLost, match="Overloaded") as caught:
            read(wire, first + error, content_type="text/event-stream")
        assert "\n" not in str(caught.value)
    with pytest.raises(ModelBusy) as caught:
        read(wire, broken, content_type="text/event-stream")
    assert not isinstance(caught.value, ReplyLost)


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_after_the_ending_undoes_nothing(wire: str):
    late: dict[str, Any] = {"type": "error", "error": {"code": 400, "message": "Token limit reached"}}
    reply = read(wire, stream([*EVENTS[wire], late]), content_type="text/event-stream")
    assert (reply.text, reply.finish, reply.tokens.output) == (SAID, "stop", 5)


def test_characters_that_a_stream_tore_apart_are_whole_again():
    pieces = ["It rains ", "\ud83d", "\udc4d", " or \ud83d not"]
    events = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    assert read("chat", body, content_type="text/event-stream").text == "It rains 👍 or \ufffd not"


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


@pytest.mark.parametrize("wire", WIRES)
def test_pages_in_place_of_replies(wire: str):
    for status, body, kind in PAGES:
        with pytest.raises(kind) as caught:
            read(wire, body, status=status, location="https://elsewhere.example/v2")
        assert type(caught.value) is kind, body[:50]
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500
        assert ("elsewhere.example" in str(caught.value)) == (status == 308)


def test_how_long_to_wait():
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    cases = [("2", 2.0), ("1.5", 1.5), ("-4", 0.0), ("1e9", 1e9), ("inf", None), ("soon", None), ("", None)]
    for written, seconds in cases:
        assert asked_to_wait(written) == seconds
    assert 60 < (asked_to_wait(later) or 0) <= 90  # By our clock where the server tells no time.
    assert asked_to_wait("Mon, 01 Jan 2001 00:00:00 GMT") == 0.0


def asked_to_wait(written: str) -> float | None:
    return HttpFailure(status=429, headers={"retry-after": written}, body=None).wait


class Picky(HttpModel):
    """No server behind this router takes all that is asked for."""

    sent: list[dict[str, Any]]

    async def _send(self, request: Request, path: str, data: bytes | None = None, **how: Any) -> HttpAnswer:
        self.sent.append(json.loads(data or b"{}"))
        if "provider" not in self.sent[-1]:
            return HttpAnswer(status=200, headers={}, body=raw(BODIES["chat"]))
        told = {"error": {"code": 404, "message": "No endpoints found that can handle the requested parameters."}}
        return HttpAnswer(status=404, headers={}, body=raw(told))


def test_a_router_is_not_held_to_what_nobody_behind_it_can():
    model = Picky(ChatWire(require_parameters=True), "http://127.0.0.1:1")
    model.sent = []
    request = Request(model="openrouter:v/m", messages=QUESTION.messages, schema={"type": "object"})
    assert asyncio.run(model.complete(request)).text == SAID
    assert ["provider" in body for body in model.sent] == [True, False]


def test_nothing_said_and_counted_was_paid_for():
    reply = read("chat", raw({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}}))
    assert (reply.text, reply.finish, reply.tokens.output) == ("", "malformed", 5)


def test_what_is_packed_cut_or_sent_elsewhere_over_real_sockets():
    """A body that grows when unpacked, one that is packed wrongly, one that ends too soon, one that points away."""
    body, seen = raw(BODIES["chat"]), list[str]()
    packed = {"gzip": gzip.compress(body), "deflate": zlib.compress(body)}
    bomb = gzip.compress(b" " * (20 * 2**20))

    async def answer(request: web.Request) -> web.StreamResponse:
        kind = request.path.split("/")[1]
        seen.append(kind)
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
        found = {kind: await ask(base, kind) for kind in kinds}
        await runner.cleanup()
        return found

    assert asyncio.run(main()) == {
        **dict.fromkeys(packed, SAID),
        "bomb": ReplyTooLong.__name__,
        **dict.fromkeys(("broken", "short", "chunked"), ReplyLost.__name__),
        "away": ModelRefused.__name__,
        "long": ModelBusy.__name__,
    }
    assert seen.count("gzip") == 1  # The redirection was not followed: the key would go with it.


def test_nulls_late_in_a_gemini_stream_replace_nothing():
    counts = {"promptTokenCount": 7, "candidatesTokenCount": 2, "totalTokenCount": 9}
    events = [
        {"candidates": [{"content": {"parts": [{"text": "to"}]}}], "usageMetadata": counts},
        {"candidates": [{"content": {"parts": [{"text": None}, {"text": "day"}]}, "finishReason": "STOP"}]},
        {"candidates": [{"content": None, "finishReason": None}], "usageMetadata": None},
    ]
    request = Request(model="google:m", messages=(UserMessage(text="?"),))
    reply = GeminiWire().reply(GeminiWire().joined(events), request)
    assert (reply.text, reply.finish) == ("today", "stop")
    assert (reply.tokens.input, reply.tokens.output) == (7, 2)
