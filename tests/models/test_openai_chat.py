import asyncio
import json
from collections.abc import Iterable

import pytest

from fakes.models import FakeModels, ModelFault
from foretell.models.model import (
    AssistantMessage,
    ModelBusy,
    ModelError,
    ModelRefused,
    ModelSettings,
    Reply,
    ReplyLost,
    Request,
    SystemMessage,
    TokenCount,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from foretell.models.providers.openai_chat import chat_body, encode_chat_body, is_strict
from foretell.models.router import open_provider
from foretell.practice.models.formats import ModelQuery, ScriptedCall, ScriptedReply

SUBMIT = ToolSpec(name="submit", description="Give p.", parameters={"type": "object", "properties": {"p": {}}})
KEYS = {"OPENAI_API_KEY": "sk-of-a-test", "OPENROUTER_API_KEY": "sk-of-a-test"}


def _asked(
    request: Request, said: Iterable[ScriptedReply] | None, faults: Iterable[ModelFault] = ()
) -> tuple[Reply, ModelQuery]:
    async def main() -> tuple[Reply, ModelQuery]:
        async with FakeModels(said) as fake:
            for fault in faults:
                fake.fail(fault)
            wire = open_provider(request.model, KEYS, address=f"{fake.url}/v1")
            try:
                return await wire.complete(request), fake.queries[-1]
            finally:
                await wire.close()

    return asyncio.run(main())


def _plain(model: str = "openai:m", **rest: object) -> Request:
    return Request(model=model, messages=(UserMessage(text="q"),), **rest)  # type: ignore[arg-type]


def test_conversation_with_tools_reaches_the_provider():
    messages = (
        SystemMessage(text="standing"),
        UserMessage(text="question"),
        AssistantMessage(text="", calls=(ToolCall(id="c1", name="search", arguments='{"q": "x"}'),)),
        ToolResult(call_id="c1", name="search", text="found"),
    )
    said = ScriptedReply(calls=(ScriptedCall(name="submit", arguments='{"p": 0.5'),), input=100, output=20, cached=80)
    reply, heard = _asked(Request(model="openai:m", messages=messages, tools=(SUBMIT,), force="submit"), [said])
    assert [message["role"] for message in heard.json["messages"]] == ["system", "user", "assistant", "tool"]
    assert heard.json["messages"][2]["tool_calls"][0]["function"] == {"name": "search", "arguments": '{"q": "x"}'}
    assert heard.json["messages"][3]["tool_call_id"] == "c1"
    assert (heard.force, heard.tools[0].name) == ("submit", "submit")
    # Broken arguments come back as they are: repairing them is not the wire's job.
    assert (reply.finish, reply.calls[0].name, reply.calls[0].arguments) == ("tool", "submit", '{"p": 0.5')
    assert reply.tokens == TokenCount(input=100, output=20, cached=80)


def test_openrouter_gets_thoughts_back():
    said = ScriptedReply(thoughts="hmm", calls=(ScriptedCall(name="submit", arguments="{}"),))
    reply, _ = _asked(_plain("openrouter:v/m", tools=(SUBMIT,)), [said])
    talk = (UserMessage(text="q"), reply.as_message(), ToolResult(call_id=reply.calls[0].id, name="submit", text="ok"))
    _, heard = _asked(Request(model="openrouter:v/m", messages=talk), None)
    assert heard.json["messages"][1]["reasoning_details"][0]["data"] == "hmm"
    _, heard = _asked(Request(model="openai:m", messages=talk), None)
    assert "reasoning_details" not in heard.json["messages"][1]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai:m", {"max_completion_tokens": 9, "reasoning_effort": "low", "temperature": 0.5, "seed": 3}),
        ("openrouter:v/m", {"max_tokens": 9, "reasoning": {"effort": "low"}, "temperature": 0.5, "seed": 3}),
    ],
)
def test_settings_in_each_dialect(model: str, expected: dict[str, object]):
    settings = ModelSettings(temperature=0.5, seed=3, max_tokens=9, effort="low")
    _, heard = _asked(_plain(model, settings=settings), None)
    assert {name: heard.json[name] for name in expected} == expected
    _, heard = _asked(_plain(model), None)
    assert set(heard.json) == {"model", "messages"}


def test_any_tool_schema_and_cache_mark():
    _, heard = _asked(_plain(tools=(SUBMIT,), force="*"), None)
    assert heard.json["tool_choice"] == "required"
    schema = {"type": "object", "properties": {"p": {"type": "number"}}, "required": ["p"]}
    reply, heard = _asked(_plain(schema=schema), None)
    assert heard.json["response_format"]["json_schema"]["strict"] is False
    assert 0 <= json.loads(reply.text)["p"] <= 1
    assert is_strict(schema | {"additionalProperties": False})
    marked = Request(
        model="openrouter:anthropic/m", messages=(UserMessage(text="long", cached=True), UserMessage(text="q"))
    )
    _, heard = _asked(marked, None)
    assert heard.json["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert heard.json["messages"][1]["content"] == "q"


@pytest.mark.parametrize(
    ("said", "finish", "text"),
    [
        (ScriptedReply(text="half", finish="length"), "length", "half"),
        (ScriptedReply(text="no", finish="refusal"), "refusal", "no"),
        (ScriptedReply(), "stop", ""),
    ],
)
def test_finish_reasons(said: ScriptedReply, finish: str, text: str):
    reply, _ = _asked(_plain(), [said])
    assert (reply.finish, reply.text) == (finish, text)


@pytest.mark.parametrize(
    ("fault", "kind", "told"),
    [
        (ModelFault(kind="status", status=400, message="bad schema"), ModelRefused, "HTTP 400: bad schema"),
        (ModelFault(kind="status", status=401, message="key sk-1"), ModelRefused, "does not accept the key"),
        (ModelFault(kind="status", status=402), ModelRefused, "no credit"),
        (ModelFault(kind="status", status=404, message="no such model"), ModelRefused, "no such model"),
        (ModelFault(kind="status", status=429, wait=2.5), ModelBusy, "HTTP 429"),
        (ModelFault(kind="status", status=529), ModelBusy, "HTTP 529"),
        (ModelFault(kind="cut"), ReplyLost, "the connection broke"),
        (ModelFault(kind="hang_up"), ReplyLost, "the connection broke"),
        (ModelFault(kind="malformed"), ReplyLost, "no JSON or was cut off"),
    ],
)
def test_failures(fault: ModelFault, kind: type[ModelError], told: str):
    with pytest.raises(kind, match=told) as caught:
        _asked(_plain(), None, [fault])
    assert type(caught.value) is kind
    assert str(caught.value).startswith("openai:m: ")
    if isinstance(caught.value, ModelBusy):
        assert caught.value.wait == fault.wait


def test_no_server_is_busy_not_lost():
    async def main() -> None:
        wire = open_provider("compat:m@http://127.0.0.1:9/v1", {})
        with pytest.raises(ModelBusy, match="no connection") as caught:
            await wire.complete(_plain("compat:m@http://127.0.0.1:9/v1"))
        assert not isinstance(caught.value, ReplyLost)
        await wire.close()

    asyncio.run(main())


def test_servers_that_bend_the_format():
    from foretell.models.providers.openai_chat import _error, _reply  # pyright: ignore[reportPrivateUsage]

    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    loose = {"choices": [{"message": {"content": [{"type": "text", "text": "hi"}], "tool_calls": [call]}}]}
    reply = _reply(loose, _plain())
    assert (reply.text, reply.calls[0]) == ("hi", ToolCall(id="call_0", name="f", arguments='{"a": 1}'))
    assert reply.finish == "tool"
    assert reply.tokens.input > 0  # Estimated: this server does not count.
    assert _error({"choices": [{"error": {"code": 502, "message": "upstream"}}]})["code"] == 502
    assert _error({"error": "text"}) == {"message": "text"}


@pytest.mark.parametrize("tools", [(), (SUBMIT,), (SUBMIT, ToolSpec(name="lö", description='"', parameters={}))])
@pytest.mark.parametrize("force", [None, "*", "submit"])
def test_bytes_on_the_wire_say_what_the_body_says(tools: tuple[ToolSpec, ...], force: str | None):
    messages = (
        SystemMessage(text="Sy\n"),
        UserMessage(text="Ü"),
        AssistantMessage(text="", calls=(ToolCall(id="1", name="s", arguments="{"),)),
    )
    request = Request(model="openai:m", messages=messages, tools=tools, force=force, settings=ModelSettings(seed=1))
    for _ in range(2):
        sent = json.loads(encode_chat_body(request, provider="openai", name="m"))
        assert sent == chat_body(request, provider="openai", name="m")
