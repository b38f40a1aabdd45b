"""Every provider over real sockets: conversations, settings, endings and failures."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterable
from typing import Any

import pytest
from aiohttp import web

from fakes.models import FakeModels, ModelFault
from foretell.models.model import (
    AssistantMessage,
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
    SystemMessage,
    TokenCount,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from foretell.models.providers import client
from foretell.models.router import open_provider
from foretell.practice.models.formats import ModelQuery, ScriptedCall, ScriptedReply

SUBMIT = ToolSpec(name="submit", description="Give p.", parameters={"type": "object", "properties": {"p": {}}})
KEY = "sk-of-a-test-0123456789"
KEYS = dict.fromkeys(("OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), KEY)
MODELS = ("openai:m", "anthropic:m", "google:m", "openrouter:v/m", "compat:m@http://127.0.0.1:9/v1")


def asked(
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
    reply, heard = asked(Request(model=model, messages=messages, tools=(SUBMIT,), force="submit"), [answer])
    assert (heard.force, heard.tools[0].name) == ("submit", "submit")
    assert all(text in heard.words for text in ("standing", "question", "found"))
    assert (reply.finish, reply.calls[0].name) == ("tool", "submit")
    assert json.loads(reply.calls[0].arguments) == {"p": 0.5}
    assert (reply.tokens.input, reply.tokens.output, reply.tokens.cached) == (100, 20, 80)


@pytest.mark.parametrize("model", ["openai:m", "openrouter:v/m"])
def test_broken_arguments_come_back_as_they_are(model: str):
    answer = ScriptedReply(calls=(ScriptedCall(name="submit", arguments='{"p": 0.5'),))
    reply, _ = asked(plain(model, tools=(SUBMIT,)), [answer])
    assert reply.calls[0].arguments == '{"p": 0.5'


@pytest.mark.parametrize("model", MODELS[:4])
def test_sealed_thoughts_go_back_to_who_sealed_them_and_to_nobody_else(model: str):
    # Google writes its signatures as base64.
    sealed = b64encode(b"sealed").decode() if model.startswith("google") else "sealed thoughts"
    answer = ScriptedReply(
        thoughts="sealed" if model.startswith("google") else sealed,
        calls=(ScriptedCall(name="submit", arguments="{}"),),
    )
    reply, _ = asked(plain(model, tools=(SUBMIT,)), [answer])
    result = ToolResult(call_id=reply.calls[0].id, name="submit", text="ok")
    talk = (UserMessage(text="q"), reply.as_message(), result)
    _, heard = asked(Request(model=model, messages=talk, tools=(SUBMIT,)), None)
    assert sealed in json.dumps(heard.json)
    for other in MODELS[:4]:
        if other != model:
            _, heard = asked(Request(model=other, messages=talk, tools=(SUBMIT,)), None)
            assert sealed not in json.dumps(heard.json)


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
    _, heard = asked(plain(model, settings=settings), None)
    for name, value in expected.items():
        sent = heard.json[name]
        assert sent == value or (isinstance(value, dict) and value.items() <= sent.items())
    if "temperature" not in json.dumps(expected):
        assert "temperature" not in heard.json


def test_schema_and_cache_marks():
    schema = {"type": "object", "properties": {"p": {"type": "number"}}, "required": ["p"]}
    for model in MODELS:
        reply, heard = asked(plain(model, schema=schema), None)
        assert heard.schema is not None
        assert 0 <= json.loads(reply.text)["p"] <= 1
    messages = (UserMessage(text="long", cached=True), UserMessage(text="q"))
    _, heard = asked(Request(model="openrouter:anthropic/m", messages=messages), None)
    assert heard.json["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert heard.json["messages"][1]["content"] == "q"
    _, heard = asked(Request(model="anthropic:m", messages=messages, tools=(SUBMIT,)), None)
    assert json.dumps(heard.json["messages"]).count("cache_control") == 2


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("finish", "text"), [("length", "half"), ("refusal", "no"), (None, "all of it")])
def test_how_a_reply_ended(model: str, finish: Any, text: str):
    reply, _ = asked(plain(model), [ScriptedReply(text=text, finish=finish)])
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
    (ModelFault(kind="malformed"), ReplyLost, "no JSON or was cut off"),
]


@pytest.mark.parametrize("model", MODELS[:4])
@pytest.mark.parametrize(("fault", "kind", "message"), FAILURES)
def test_failures_by_who_must_act(model: str, fault: ModelFault, kind: type[ModelError], message: str):
    with pytest.raises(kind, match=message) as caught:
        asked(plain(model), None, [fault])
    assert type(caught.value) is kind
    assert str(caught.value).startswith(f"{model}: ")
    assert KEY not in str(caught.value)
    if isinstance(caught.value, ModelBusy):
        assert caught.value.wait == fault.wait


def test_no_server_is_busy_and_nothing_was_lost():
    async def main() -> None:
        model = open_provider("compat:m@http://127.0.0.1:9/v1", {})
        with pytest.raises(ModelBusy, match="no connection") as caught:
            await model.complete(plain("compat:m@http://127.0.0.1:9/v1"))
        assert not isinstance(caught.value, ReplyLost)
        await model.close()

    asyncio.run(main())


def served(body: bytes, *, kind: str = "application/json") -> Reply:
    """The reply to a body that a server sends as it is."""

    async def post(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type=kind)

    async def main() -> Reply:
        app = web.Application()
        app.router.add_post("/{path:.*}", post)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        name = f"compat:m@http://127.0.0.1:{runner.addresses[0][1]}/v1"
        model = open_provider(name, {})
        try:
            return await model.complete(plain(name))
        finally:
            await model.close()
            await runner.cleanup()

    return asyncio.run(main())


def test_servers_that_bend_the_format():
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
def test_odd_counts_cost_no_paid_reply(usage: Any):
    reply = served(json.dumps({"choices": [{"message": {"content": "yes"}}], "usage": usage}).encode())
    assert reply.text == "yes"
    assert reply.tokens.input > 0
    assert reply.tokens.output == (7 if isinstance(usage, dict) and usage["completion_tokens"] == 7 else 1)
    assert reply.tokens.estimated


def test_arguments_nested_beyond_reason_cost_no_paid_reply():
    deep = "[" * 100_000 + "]" * 100_000
    body = (
        '{"choices": [{"message": {"content": "yes", "tool_calls": [{"function": {"name": "f", "arguments": %s}}]}}]}'
    )
    reply = served((body % deep).encode())
    assert reply.finish == "malformed"
    assert '"content": "yes"' in reply.text
    assert reply.tokens.estimated
    assert reply.tokens.output > 1000
    written = json.dumps(deep)
    assert served((body % written).encode()).calls[0].arguments == deep


def test_a_reply_beyond_all_bounds_is_not_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client, "LONGEST_BODY", 10_000)
    body = json.dumps({"choices": [{"message": {"content": "x" * 20_000}}]}).encode()
    with pytest.raises(ReplyTooLong, match="larger than"):
        served(body)


def test_a_stream_is_read_like_a_whole_reply():
    pieces = ["It ", "rains."]
    events = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    events.append(
        {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 90, "completion_tokens": 4}}
    )
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    reply = served(stream.encode(), kind="text/event-stream")
    assert (reply.text, reply.finish, reply.tokens) == ("It rains.", "stop", TokenCount(input=90, output=4))
    assert served(json.dumps(events).encode()) == reply


@pytest.mark.parametrize(("code", "kind"), [(429, ModelBusy), (400, ModelError)])
def test_an_error_in_a_list_is_an_error(code: int, kind: type[ModelError]):
    with pytest.raises(kind, match="not this time"):
        served(json.dumps([{"error": {"code": code, "message": "not this time"}}]).encode())
