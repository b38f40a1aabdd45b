"""Every provider over real sockets: conversations, settings, endings and failures."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from fakes.models import FakeModels, ModelFault
from foretell.models.facts import facts_of
from foretell.models.model import (
    AssistantMessage,
    ContextTooLong,
    KeyRefused,
    ModelBusy,
    ModelError,
    ModelRefused,
    ModelSettings,
    OutOfCredit,
    Reply,
    ReplyLost,
    ReplyTooLong,
    Request,
    SettingRefused,
    SystemMessage,
    TokenCount,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from foretell.models.providers import client
from foretell.models.providers.api_format import ApiFormat, HttpFailure
from foretell.models.providers.chat import ChatApi
from foretell.models.providers.gemini import GeminiApi
from foretell.models.providers.messages import MessagesApi
from foretell.models.providers.responses import ResponsesApi
from foretell.models.router import open_provider
from foretell.practice.models.formats import ModelQuery, ScriptedCall, ScriptedReply

SUBMIT = ToolSpec(name="submit", description="Give p.", parameters={"type": "object", "properties": {"p": {}}})
KEY = "sk-of-a-test-0123456789"
KEYS = dict.fromkeys(("OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), KEY)
MODELS = ("openai:m", "anthropic:m", "google:m", "openrouter:v/m", "compat:m@http://127.0.0.1:9/v1")


def send_one(
    request: Request, replies: Iterable[ScriptedReply] | None, faults: Iterable[ModelFault] = ()
) -> tuple[Reply, ModelQuery]:
    async def main() -> tuple[Reply, ModelQuery]:
        async with FakeModels(replies) as fake:
            for fault in faults:
                fake.fail(fault)
            model = open_provider(request.model, KEYS, address=f"{fake.url}/v1")
            try:
                return await model.complete(request), fake.queries[-1]
            finally:
                await model.close()

    return asyncio.run(main())


def plain(model: str = "openai:m", **rest: Any) -> Request:
    return Request(model=model, messages=(UserMessage(text="q"),), **rest)


@pytest.mark.parametrize("model", MODELS)
def test_a_conversation_with_tools_reaches_the_provider(model: str):
    messages = (
        SystemMessage(text="standing"),
        UserMessage(text="question"),
        AssistantMessage(text="", calls=(ToolCall(id="c1", name="search", arguments='{"q": "x"}'),)),
        ToolResult(call_id="c1", name="search", text="found"),
    )
    answer = ScriptedReply(
        calls=(ScriptedCall(name="submit", arguments='{"p": 0.5}'),), input=100, output=20, cached=80
    )
    reply, query = send_one(Request(model=model, messages=messages, tools=(SUBMIT,), force="submit"), [answer])
    assert (query.force, query.tools[0].name) == ("submit", "submit")
    assert all(text in query.words for text in ("standing", "question", "found"))
    assert (reply.finish, reply.calls[0].name) == ("tool", "submit")
    assert json.loads(reply.calls[0].arguments) == {"p": 0.5}
    assert (reply.tokens.input, reply.tokens.output, reply.tokens.cached) == (100, 20, 80)


@pytest.mark.parametrize("model", ["openai:m", "openrouter:v/m"])
def test_invalid_arguments_are_returned_unchanged(model: str):
    answer = ScriptedReply(calls=(ScriptedCall(name="submit", arguments='{"p": 0.5'),))
    reply, _ = send_one(plain(model, tools=(SUBMIT,)), [answer])
    assert reply.calls[0].arguments == '{"p": 0.5'


@pytest.mark.parametrize("model", MODELS[:4])
def test_sealed_reasoning_is_only_sent_to_its_provider(model: str):
    # Google writes its signatures as base64.
    sealed = b64encode(b"sealed").decode() if model.startswith("google") else "sealed thoughts"
    answer = ScriptedReply(
        thoughts="sealed" if model.startswith("google") else sealed,
        calls=(ScriptedCall(name="submit", arguments="{}"),),
    )
    reply, _ = send_one(plain(model, tools=(SUBMIT,)), [answer])
    result = ToolResult(call_id=reply.calls[0].id, name="submit", text="ok")
    talk = (UserMessage(text="q"), reply.as_message(), result)
    _, query = send_one(Request(model=model, messages=talk, tools=(SUBMIT,)), None)
    assert sealed in json.dumps(query.json)
    for other in MODELS[:4]:
        if other != model:
            _, query = send_one(Request(model=other, messages=talk, tools=(SUBMIT,)), None)
            assert sealed not in json.dumps(query.json)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai:gpt-6-sol", {"max_output_tokens": 90, "reasoning": {"effort": "low"}}),
        ("openai:gpt-4o", {"max_output_tokens": 90, "temperature": 0.5}),
        ("anthropic:claude-opus-5", {"max_tokens": 90, "output_config": {"effort": "low"}}),
        ("google:gemini-4-argon", {"generationConfig": {"maxOutputTokens": 90, "temperature": 0.5, "seed": 3}}),
        ("openrouter:v/m", {"max_tokens": 90, "reasoning": {"effort": "low"}, "temperature": 0.5, "seed": 3}),
    ],
)
def test_settings_in_each_dialect(model: str, expected: dict[str, Any]):
    settings = ModelSettings(temperature=0.5, seed=3, max_tokens=90, effort="low")
    _, query = send_one(plain(model, settings=settings), None)
    for name, value in expected.items():
        sent = query.json[name]
        assert sent == value or (isinstance(value, dict) and value.items() <= sent.items())
    if "temperature" not in json.dumps(expected):
        assert "temperature" not in query.json


def test_schema_and_cache_marks_are_sent():
    schema = {"type": "object", "properties": {"p": {"type": "number"}}, "required": ["p"]}
    for model in MODELS:
        reply, query = send_one(plain(model, schema=schema), None)
        assert query.schema is not None
        assert 0 <= json.loads(reply.text)["p"] <= 1
    messages = (UserMessage(text="long", cached=True), UserMessage(text="q"))
    _, query = send_one(Request(model="openrouter:anthropic/m", messages=messages), None)
    assert query.json["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert query.json["messages"][1]["content"] == "q"
    _, query = send_one(Request(model="anthropic:m", messages=messages, tools=(SUBMIT,)), None)
    assert json.dumps(query.json["messages"]).count("cache_control") == 2


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("finish", "text"), [("length", "half"), ("refusal", "no"), (None, "all of it")])
def test_finish_reason_is_read(model: str, finish: Any, text: str):
    reply, _ = send_one(plain(model), [ScriptedReply(text=text, finish=finish)])
    assert reply.finish == (finish or "stop")
    assert reply.text in (text, "")


FAILURES = [
    (ModelFault(kind="status", status=400, message="bad schema"), ModelRefused, "HTTP 400: bad schema"),
    (ModelFault(kind="status", status=401, message=f"key {KEY}"), KeyRefused, "does not accept the key"),
    (ModelFault(kind="status", status=402), OutOfCredit, "no credit"),
    (ModelFault(kind="status", status=429, message="insufficient_quota"), OutOfCredit, "no credit"),
    (ModelFault(kind="status", status=404, message="no such model"), ModelRefused, "no such model"),
    (ModelFault(kind="status", status=429, wait=2.5), ModelBusy, "HTTP 429"),
    (ModelFault(kind="status", status=529), ModelBusy, "HTTP 529"),
    (ModelFault(kind="cut"), ReplyLost, "the connection broke"),
    (ModelFault(kind="hang_up"), ReplyLost, "the connection broke"),
    (ModelFault(kind="malformed"), ReplyLost, "not complete JSON"),
]


@pytest.mark.parametrize("model", MODELS[:4])
@pytest.mark.parametrize(("fault", "kind", "message"), FAILURES)
def test_failures_raise_the_right_error(model: str, fault: ModelFault, kind: type[ModelError], message: str):
    with pytest.raises(kind, match=message) as caught:
        send_one(plain(model), None, [fault])
    assert type(caught.value) is kind
    assert str(caught.value).startswith(f"{model}: ")
    assert KEY not in str(caught.value)
    if isinstance(caught.value, ModelBusy):
        assert caught.value.wait == fault.wait


def test_connection_failure_is_busy_and_not_lost():
    async def main() -> None:
        model = open_provider("compat:m@http://127.0.0.1:9/v1", {})
        with pytest.raises(ModelBusy, match="no connection") as caught:
            await model.complete(plain("compat:m@http://127.0.0.1:9/v1"))
        assert not isinstance(caught.value, ReplyLost)
        await model.close()

    asyncio.run(main())


def reply_of(post: Callable[[web.Request], Awaitable[web.StreamResponse]], before: int = 0, **more: Any) -> Reply:
    """The last reply of a test server after `before` identical requests."""

    async def main() -> Reply:
        app = web.Application()
        app.router.add_post("/{path:.*}", post)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        name = f"compat:m@http://127.0.0.1:{runner.addresses[0][1]}/v1"
        model = open_provider(name, {})
        try:
            for _ in range(before):
                await model.complete(plain(name, **more))
            return await model.complete(plain(name, **more))
        finally:
            await model.close()
            await runner.cleanup()

    return asyncio.run(main())


def served(body: bytes, *, kind: str = "application/json") -> Reply:
    """The reply read from a raw response body."""

    async def post(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type=kind)

    return reply_of(post)


def test_nonstandard_replies_are_read():
    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    loose = {"choices": [{"message": {"content": [{"type": "text", "text": "hi"}], "tool_calls": [call]}}]}
    reply = served(json.dumps(loose).encode())
    assert (reply.text, reply.calls[0]) == ("hi", ToolCall(id="call_0", name="f", arguments='{"a":1}'))
    assert reply.finish == "tool"
    assert reply.tokens.input > 0
    assert reply.tokens.estimated
    with pytest.raises(ModelBusy, match="upstream"):
        served(json.dumps({"choices": [{"error": {"code": 502, "message": "upstream"}}]}).encode())
    with pytest.raises(ModelError, match="as a text"):
        served(json.dumps({"error": "an error as a text"}).encode())


@pytest.mark.parametrize(
    "usage",
    [None, [], "many", {"prompt_tokens": "3", "completion_tokens": -1}, {"prompt_tokens": 0, "completion_tokens": 7}],
)
def test_invalid_counts_do_not_lose_a_reply(usage: Any):
    reply = served(json.dumps({"choices": [{"message": {"content": "yes"}}], "usage": usage}).encode())
    assert reply.text == "yes"
    assert reply.tokens.input > 0
    assert reply.tokens.output == (7 if isinstance(usage, dict) and usage["completion_tokens"] == 7 else 1)
    assert reply.tokens.estimated


def test_deeply_nested_arguments_do_not_lose_a_reply():
    deep = "[" * 100_000 + "]" * 100_000
    body = (
        '{"choices": [{"message": {"content": "yes", "tool_calls": [{"function": {"name": "f", "arguments": %s}}]}}]}'
    )
    reply = served((body % deep).encode())
    assert reply.finish == "malformed"
    assert '"content": "yes"' in reply.text
    assert reply.tokens.estimated
    assert reply.tokens.output > 1000
    encoded = json.dumps(deep)
    assert served((body % encoded).encode()).calls[0].arguments == deep


def test_too_large_reply_is_not_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client, "LONGEST_BODY", 10_000)
    body = json.dumps({"choices": [{"message": {"content": "x" * 20_000}}]}).encode()
    with pytest.raises(ReplyTooLong, match="larger than"):
        served(body)


def test_stream_gives_the_same_reply_as_a_single_body():
    pieces = ["It ", "rains."]
    events = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    events.append(
        {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 90, "completion_tokens": 4}}
    )
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    reply = served(stream.encode(), kind="text/event-stream")
    assert (reply.text, reply.finish, reply.tokens) == ("It rains.", "stop", TokenCount(input=90, output=4))
    assert served(json.dumps(events).encode()) == reply
    for other in (
        stream.replace("\n", "\r\n"),
        stream.replace("\n", "\r"),
        "\ufeff" + stream,
        ": OPENROUTER PROCESSING\n\n" + stream.replace("data:", "id: 1\nretry: 9\ndata:"),
        stream.replace('[{"delta"', '[null, {"delta"'),
    ):
        assert served(other.encode(), kind="text/plain") == reply


def test_null_list_items_do_not_lose_a_reply():
    calls = [None, {"function": {"name": "f", "arguments": "{}"}}]
    body = {"choices": [{"message": {"content": None, "tool_calls": calls}}], "usage": "n/a"}
    assert [call.name for call in served(json.dumps(body).encode()).calls] == ["f"]
    blocks = {"content": [None, {"type": "text", "text": "yes"}, {"type": "new", "x": 1}], "stop_reason": "end_turn"}
    assert MessagesApi().reply(client.tidied(blocks), FULL).text == "yes"


@pytest.mark.parametrize(("code", "kind"), [(429, ModelBusy), (400, ModelError)])
def test_error_inside_a_list_is_raised(code: int, kind: type[ModelError]):
    with pytest.raises(kind, match="not this time"):
        served(json.dumps([{"error": {"code": code, "message": "not this time"}}]).encode())


FULL = Request(
    model="openai:x",
    messages=(UserMessage(text="q"), AssistantMessage(text="a", sealed="{}"), UserMessage(text="and?")),
    settings=ModelSettings(max_tokens=16_384, temperature=0.2, effort="high", seed=1),
    force="submit",
    schema={"type": "object"},
)


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (403, OutOfCredit, {"code": "x", "error": "Your team doesn't have any credits or licenses yet"}),
        (429, OutOfCredit, {"error": "used all available credits or reached its monthly spending limit"}),
        (429, OutOfCredit, {"error": {"type": "rate_limit_error", "details": {"error_code": "spend_limit_reached"}}}),
        (400, OutOfCredit, {"error": {"message": "You have reached your specified API usage limits."}}),
        (429, OutOfCredit, {"error": {"message": "Your project has exceeded its monthly spending cap."}}),
        (403, ModelRefused, {"error": {"message": "Input was flagged by moderation"}}),
        (403, KeyRefused, {"error": {"message": "no"}}),
        (413, ContextTooLong, {"error": {"type": "request_too_large", "message": "exceeds the maximum size"}}),
        (400, ContextTooLong, {"error": {"message": "The input token count (9) exceeds the maximum allowed (8)"}}),
        (429, ContextTooLong, {"error": {"message": "Request too large for m on tokens per min (TPM): Limit 9"}}),
        (400, ContextTooLong, {"error": {"message": "Invalid request: Your request exceeded model token limit: 8192"}}),
        (400, ContextTooLong, {"error": {"message": "Range of input length should be [1, 129024]"}}),
        (400, SettingRefused, {"error": {"message": "Encrypted content is not supported with this model."}}),
        (400, ContextTooLong, {"error": {"message": "input length and `max_tokens` exceed context limit: 9 + 8 > 10"}}),
        (400, SettingRefused, {"error": {"message": "max_tokens is too large: 16384. At most 4096 are supported"}}),
        (400, SettingRefused, {"error": "Invalid tool_choice type: 'object'"}),
        (400, SettingRefused, {"error": {"message": "This response_format type is unavailable now"}}),
        (400, ModelBusy, {"error": {"message": "The model is overloaded"}}),
        (400, SettingRefused, {"error": {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"}}),
        (400, SettingRefused, {"error": {"message": "Corrupted thought signature.", "status": "INVALID_ARGUMENT"}}),
        (200, ModelBusy, {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}),
        (200, ModelBusy, {"error": {"code": "server_error", "message": "An error occurred"}}),
        (200, ModelBusy, {"error": {"code": "429", "message": "invalid for now"}}),
        (200, ModelRefused, {"object": "error", "code": 404, "message": "no such model"}),
        (200, ModelRefused, {"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}}),
        (200, ModelRefused, {"error": {"code": "bio_policy", "message": "no"}}),
        (200, ContextTooLong, {"error": {"code": "context_length_exceeded", "message": "no"}}),
    ],
)
def test_error_messages_are_classified(status: int, kind: type[ModelError], error: Any):
    assert type(HttpFailure(status=status, headers={}, body=error).error(FULL, KEY)) is kind


@pytest.mark.parametrize(
    ("words", "setting"),
    [
        ("Thinking level is not supported for this model.", "effort"),
        ("Budget 0 is invalid. This model only works in thinking mode.", "effort"),
        ("adaptive thinking is not supported on this model", "effort"),
        ("This model does not support the effort parameter.", "effort"),
        ('"llama3" does not support thinking', "effort"),
        ("JSON mode is not enabled for models/gemma-3", "schema"),
        ("output_config: Extra inputs are not permitted", "schema"),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", "sealed"),
        ("tool_choice is not supported in thinking mode", "tool_choice"),
        ("Thinking may not be enabled when tool_choice forces tool use.", "tool_choice"),
        ("No endpoints found that support the provided 'tool_choice' value.", "tool_choice"),
        ("messages.1: `thinking` blocks do not match their prefix: Invalid `signature`", "signature"),
    ],
)
def test_refused_setting_is_recognized(words: str, setting: str):
    refused = HttpFailure(status=400, headers={}, body={"error": {"message": words}}).error(FULL, KEY)
    assert isinstance(refused, SettingRefused)
    assert refused.setting == setting


@pytest.mark.parametrize(
    ("api_format", "body", "expected"),
    [
        (MessagesApi(), {"content": None, "stop_reason": "refusal"}, ("", 0, "refusal")),
        (
            MessagesApi(),
            {"content": [{"type": "tool_use", "name": "f"}], "stop_reason": "model_context_window_exceeded"},
            ("", 1, "length"),
        ),
        (MessagesApi(), {"content": [{"type": "text", "text": "a"}], "stop_reason": "tool_use"}, ("a", 0, "stop")),
        (GeminiApi(), {"usageMetadata": {"promptTokenCount": 3}}, ("", 0, "malformed")),
        (MessagesApi(), {"content": [{"type": "text", "text": "a"}], "stop_reason": "new"}, ("a", 0, "malformed")),
        (GeminiApi(), {"promptFeedback": {"blockReason": "OTHER"}}, ("", 0, "refusal")),
        (ResponsesApi(), {"output": [{"type": "message", "content": "a"}], "status": "failed"}, ("a", 0, "malformed")),
        (ResponsesApi(), {"output": None, "status": "incomplete"}, ("", 0, "length")),
        (ResponsesApi(), {"output": [{"type": "message", "content": "a"}], "status": "cancelled"}, ("a", 0, "length")),
        (ChatApi(), {"choices": [{"message": {"function_call": {"name": "f", "arguments": "{}"}}}]}, ("", 1, "tool")),
        (ChatApi(), {"choices": [{"message": {"content": "a"}, "finish_reason": "sensitive"}]}, ("a", 0, "refusal")),
        (ChatApi(), {"choices": [{"message": {"content": "a"}, "finish_reason": "new"}]}, ("a", 0, "malformed")),
    ],
)
def test_unusual_finish_reasons_are_read(api_format: ApiFormat, body: dict[str, Any], expected: tuple[str, int, str]):
    reply = api_format.reply(body, plain())
    assert (reply.text, len(reply.calls), reply.finish) == expected


@pytest.mark.parametrize(
    ("api_format", "events", "text"),
    [
        (ChatApi(), [{"choices": [{"delta": {"content": "It ra"}}]}], "It ra"),
        (
            ResponsesApi(),
            [
                {"type": "response.created", "response": {"status": "in_progress", "output": []}},
                {"type": "response.output_text.delta", "output_index": 0, "delta": "It "},
                {"type": "response.output_text.delta", "output_index": 0, "delta": "ra"},
            ],
            "It ra",
        ),
        (
            MessagesApi(),
            [
                {"type": "message_start", "message": {"content": []}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It ra"}},
            ],
            "It ra",
        ),
    ],
)
def test_text_before_a_stream_was_cut_is_returned(api_format: ApiFormat, events: list[dict[str, Any]], text: str):
    reply = api_format.reply(api_format.joined(events), plain())
    assert (reply.text, reply.finish) == (text, "length")


CUT = ["{", '"w": 1', "}"]
STREAMED_CALLS: dict[str, list[list[dict[str, Any]]]] = {
    "by index": [
        [{"index": 0, "id": "a", "function": {"name": "f", "arguments": CUT[0]}}],
        [{"index": 1, "id": "b", "function": {"name": "g", "arguments": CUT[0]}}],
        *([{"index": index, "function": {"arguments": piece}}] for piece in CUT[1:] for index in (0, 1)),
    ],
    "without an index": [
        [{"id": "a", "function": {"name": "f", "arguments": CUT[0]}}],
        *([{"function": {"arguments": piece}}] for piece in CUT[1:]),
        [{"id": "b", "function": {"name": "g"}}],
        *([{"index": None, "function": {"arguments": piece}}] for piece in CUT),
    ],
    "all with the same index": [
        [{"index": 0, "id": id, "function": {"name": name, "arguments": "".join(CUT)}}] for id, name in ("af", "bg")
    ],
    "whole and without ids": [[{"function": {"name": name, "arguments": "".join(CUT)}} for name in "fg"]],
    "with the name in every piece": [
        [{"index": place, "id": id, "function": {"name": name, "arguments": piece}}]
        for place, (id, name) in enumerate(("af", "bg"))
        for piece in CUT
    ],
    "with another id in every piece": [
        [{"index": place, "id": f"{name}{n}", "function": {"name": None if n else name, "arguments": piece}}]
        for place, name in enumerate("fg")
        for n, piece in enumerate(CUT)
    ],
}


@pytest.mark.parametrize("pieces", STREAMED_CALLS.values(), ids=list(STREAMED_CALLS))
def test_streamed_parallel_calls_are_assembled(pieces: list[Any]):
    events = [{"choices": [{"delta": {"tool_calls": piece}}]} for piece in pieces]
    api_format = ChatApi()
    reply = api_format.reply(api_format.joined([*events, {"choices": [{"finish_reason": "tool_calls"}]}]), plain())
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == [("f", {"w": 1}), ("g", {"w": 1})]
    assert len({call.id for call in reply.calls}) == 2
    assert reply.finish == "tool"


def test_stream_without_finish_reason_counts_as_cut_off():
    event = {"choices": [{"delta": {"content": "It ra"}}], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    reply = ChatApi().reply(ChatApi().joined([event]), plain())
    assert (reply.text, reply.finish, reply.tokens.output) == ("It ra", "length", 2)


def test_fragments_of_a_reasoning_detail_are_joined_with_their_signature():
    pieces = [{"text": "It "}, {"text": "rains."}, {"text": None, "signature": "signed"}]
    details = [{"type": "reasoning.text", "index": 0, **piece} for piece in pieces]
    sealed = {"type": "reasoning.encrypted", "index": 1, "data": "x"}
    events = [{"choices": [{"delta": {"reasoning_details": [detail]}}]} for detail in (*details, sealed)]
    turn = ChatApi().reply(ChatApi().joined(events), plain()).as_message()
    sent = ChatApi().body(Request(model="openrouter:m", messages=(turn,)), "m", facts_of("m"))
    joined = {"type": "reasoning.text", "index": 0, "text": "It rains.", "signature": "signed"}
    assert sent["messages"][0]["reasoning_details"] == [joined, sealed]


@pytest.mark.parametrize("arguments", [None, "", " ", "null", {}, "{}"])
def test_missing_arguments_become_an_empty_object(arguments: Any):
    calls = [{"id": "same", "function": {"name": "f", "arguments": arguments}}] * 2
    reply = ChatApi().reply({"choices": [{"message": {"tool_calls": calls}}]}, plain())
    assert [json.loads(call.arguments) for call in reply.calls] == [{}, {}]
    assert reply.calls[0].id != reply.calls[1].id


def test_truncated_call_is_returned_unchanged():
    events = [
        {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "f"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"p": 0.'}},
        {"type": "message_delta", "delta": {}, "usage": {"input_tokens": None, "output_tokens": 4}},
    ]
    reply = MessagesApi().reply(MessagesApi().joined(events), plain())
    assert (reply.calls[0].arguments, reply.finish) == ('{"p": 0.', "length")
    assert (reply.tokens.input, reply.tokens.output) == (9, 4)


def test_blocks_that_anthropic_does_not_accept_are_removed():
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    blank, call = {"type": "text", "text": "\n"}, {"type": "tool_use", "id": "t", "name": "f", "input": {}}

    def sent_back(*blocks: dict[str, Any]) -> list[Any]:
        turn = MessagesApi().reply({"content": list(blocks), "stop_reason": "end_turn"}, plain()).as_message()
        body = MessagesApi().body(Request(model="anthropic:m", messages=(turn,)), "m", facts_of("m"))
        return [block for message in body["messages"] for block in message["content"]]

    assert sent_back(thought, blank, call) == [thought, call]
    assert sent_back(thought, blank) == []


def test_refused_reasoning_is_dropped_only_from_its_own_conversation():
    query: list[bool] = []

    async def post(request: web.Request) -> web.Response:
        query.append("reasoning_content" in (await request.json())["messages"][1])
        if len(query) == 1:
            return web.json_response({"error": {"message": "Invalid `signature` in `thinking` block"}}, status=400)
        return web.json_response({"choices": [{"message": {"content": "yes"}}]})

    async def main() -> None:
        app = web.Application()
        app.router.add_post("/{path:.*}", post)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        name = f"compat:m@http://127.0.0.1:{runner.addresses[0][1]}/v1"
        model = open_provider(name, {})
        turn = AssistantMessage(text="a", sealed='{"chat":{"fields":{"reasoning_content":"hm"}}}')
        for _ in range(2):
            request = Request(model=name, messages=(UserMessage(text="q"), turn, UserMessage(text="and?")))
            assert (await model.complete(request)).text == "yes"
        await model.close()
        await runner.cleanup()

    asyncio.run(main())
    assert query == [True, False, True]


def test_calls_are_signed_for_models_that_require_it():
    talk = (
        UserMessage(text="q"),
        AssistantMessage(calls=(ToolCall(id="c", name="f", arguments="{}"),)),
        ToolResult(call_id="c", name="f", text="found"),
    )
    for name, signed in (("gemini-2.0-flash", False), ("gemini-2.5-pro", False), ("gemini-3.8-flash", True)):
        body = GeminiApi().body(Request(model=f"google:{name}", messages=talk), name, facts_of(name))
        assert ("thoughtSignature" in body["contents"][1]["parts"][0]) == signed
    # Google signed its text but not the call. An unneeded placeholder signature is harmless, a missing one is not.
    parts = [
        {"text": "a", "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "f"}},
        {"functionCall": {"name": "g"}},
    ]
    reply = GeminiApi().reply({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}, plain())
    request = Request(model="google:gemini-4-argon", messages=(reply.as_message(),))
    sent = GeminiApi().body(request, "gemini-4-argon", facts_of("gemini-4-argon"))["contents"][0]["parts"]
    assert ["thoughtSignature" in part for part in sent] == [True, True, False]


def test_openrouter_gets_no_mark_on_the_last_message_nor_thinking_with_a_forced_call():
    api_format = ChatApi(effort="reasoning", cache_marks=("anthropic/",))
    question = UserMessage(text="q", cached=True)
    name = "anthropic/claude-haiku-4.5"
    request = Request(
        model=f"openrouter:{name}", messages=(question,), tools=(SUBMIT,), settings=ModelSettings(effort="high")
    )
    assert api_format.body(request, name, facts_of(name))["messages"] == [{"role": "user", "content": "q"}]
    assert "reasoning" in api_format.body(request, name, facts_of(name))
    assert "reasoning" not in api_format.body(replace(request, force="submit"), name, facts_of(name))


def test_reasoning_without_content_is_not_sent_back():
    items = [{"type": "reasoning", "id": "rs", "summary": []}, {"type": "message", "id": "m", "content": "a"}]
    turn = ResponsesApi().reply({"output": items, "status": "completed"}, plain()).as_message()
    assert "rs" not in json.dumps(ResponsesApi().body(Request(model="openai:m", messages=(turn,)), "m", facts_of("m")))


def test_lower_output_limit_is_learned_from_a_refusal():
    limits: list[Any] = []

    async def post(request: web.Request) -> web.Response:
        limits.append((await request.json()).get("max_tokens"))
        if limits[-1] > 8_192:
            problem = "`max_tokens` must be less than or equal to `8192`, the maximum value of model-2024"
            return web.json_response({"error": {"message": problem}}, status=400)
        return web.json_response({"choices": [{"message": {"content": "yes"}}]})

    assert reply_of(post, before=1, cap=16_384).text == "yes"
    assert limits == [16_384, 8_192, 8_192]


def test_snake_case_fields_are_read_like_camel_case():
    call = {"name": "look_up", "args": {"a_word": "x"}}
    part = {"function_call": call, "thought_signature": "c2ln"}
    body = {
        "candidates": [{"content": {"parts": [part]}, "finish_reason": "STOP"}],
        "usage_metadata": {"prompt_token_count": 3, "candidates_token_count": 2},
    }
    reply = GeminiApi().reply(body, plain("google:m"))
    assert (reply.calls[0].name, json.loads(reply.calls[0].arguments), reply.finish) == (
        "look_up",
        call["args"],
        "tool",
    )
    assert (reply.tokens.input, reply.tokens.output, bool(reply.sealed)) == (3, 2, True)
    assert GeminiApi().reply(GeminiApi().joined([body]), plain("google:m")) == reply
