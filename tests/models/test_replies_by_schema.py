"""Replies generated from official schemas: all blocks, finish reasons and errors, with and without optional fields."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from foretell.models.facts import facts_of
from foretell.models.model import (
    KeyRefused,
    ModelBusy,
    ModelRefused,
    OutOfCredit,
    Reply,
    ReplyLost,
    Request,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from foretell.models.providers.chat import ChatApi
from foretell.models.providers.client import HttpAnswer, HttpModel
from foretell.models.providers.gemini import GeminiApi
from foretell.models.providers.messages import MessagesApi
from foretell.models.providers.responses import ResponsesApi
from models.official_schemas import FOLDER, problems

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"needs the schemas in {FOLDER}")

Json = dict[str, Any]
QUESTION = Request(model="openai:m", messages=(UserMessage(text="Will it rain?"),))
FORMATS = {
    "responses": ResponsesApi(),
    "messages": MessagesApi(),
    "generateContent": GeminiApi(),
    "chat": ChatApi(),
}
MODELS = {"responses": "gpt-6-sol", "messages": "claude-opus-5-5", "generateContent": "gemini-4-argon", "chat": "m"}
NEW = "A_NEW_REASON"
COUNT = 7
"""The value of all token counts in generated replies."""


@cache
def spec(name: str) -> Json:
    document: Json = json.loads((FOLDER / "specs" / name).read_text())
    return document


def resolved(node: Json, root: Json) -> Json:
    while "$ref" in node:
        node = (root.get("$defs") or root["schemas"])[node["$ref"].rpartition("/")[2]]
    return node


def choices(node: Json, root: Json) -> list[Json]:
    """The alternatives of a schema, except null."""
    options = [choice for option in node.get("anyOf", ()) for choice in choices(resolved(option, root), root)]
    return options or ([] if node.get("type") == "null" else [node])


def example(node: Json, root: Json, *, full: bool, name: str = "", depth: int = 0) -> Any:
    """A value that matches a schema, with all optional fields, or without them and with null where allowed."""
    node = resolved(node, root)
    options = choices(node, root)
    if not options or (not full and len(options) < len(node.get("anyOf", ()))):
        return None
    node = options[0]
    if "const" in node or "enum" in node:
        return node.get("const", node.get("enum", [None])[0])
    match node.get("type", "object" if "properties" in node else ""):
        case "object":
            fields = node.get("properties", {}) if full and depth < 5 else node.get("required", ())
            parts = {field: node["properties"][field] for field in fields}
            return {k: example(part, root, full=full, name=k, depth=depth + 1) for k, part in parts.items()}
        case "array":
            return [example(node["items"], root, full=full, name=name, depth=depth + 1)] if full and depth < 5 else []
        case "integer":
            return COUNT
        case "number":
            return 0.5
        case "boolean":
            return False
        case "string":
            return '{"p": 1}' if name == "arguments" else f"a {name} 👍"
        case _:
            return None


def answered(api: str, body: Json) -> Reply:
    """The reply read from a response body."""
    answer = HttpAnswer(status=200, headers={}, body=json.dumps(body).encode())
    return HttpModel(FORMATS[api], "http://127.0.0.1:1")._read(answer, QUESTION)


def second_turn(api: str, reply: Reply) -> Json:
    results = [ToolResult(call_id=call.id, name=call.name, text="21 degrees") for call in reply.calls]
    tools = (ToolSpec(name="look_up", description="Looks a word up.", parameters={"type": "object"}),)
    again = replace(QUESTION, messages=(*QUESTION.messages, reply.as_message(), *results), tools=tools)
    return FORMATS[api].body(again, MODELS[api], facts_of(MODELS[api]))


def kinds(root: Json, *place: str) -> Iterator[Json]:
    """Schemas of the items of a list."""
    node = root
    for step in place:
        node = resolved(node["properties"][step], root)
    yield from choices(node["items"], root)


GOOGLE = "google_aiplatform_v1beta1_generateContent.discovery.json"
PART = "GoogleCloudAiplatformV1beta1Part"
SPOKEN = {
    "responses": [
        {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "First. ", "annotations": []}]},
        {"type": "function_call", "id": "f", "call_id": "c1", "name": "look_up", "arguments": '{"word": "ß"}'},
        {"type": "message", "id": "m2", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "Last.", "annotations": []}]},
    ],
    "messages": [
        {"type": "text", "text": "First. "},
        {"type": "tool_use", "id": "c1", "name": "look_up", "input": {"word": "ß"}},
        {"type": "text", "text": "Last."},
    ],
    "generateContent": [
        {"text": "First. "},
        {"functionCall": {"name": "look_up", "args": {"word": "ß"}, "id": "c1"}, "thoughtSignature": "c2ln"},
        {"text": "Last."},
    ],
}  # fmt: skip
"""The content around every kind of block: two texts and a call."""
OURS = ("message", "function_call", "mcp_call", "text", "tool_use")


def blocks() -> Iterator[tuple[str, Json]]:
    """All kinds of blocks, with only required and with all fields."""
    for api, file, place in (
        ("responses", "openai_response.schema.json", "output"),
        ("messages", "anthropic_message.schema.json", "content"),
    ):
        root = spec(file)
        for kind in kinds(root, place):
            yield from ((api, example(kind, root, full=full)) for full in (True, False))
    root = spec(GOOGLE)
    for name, part in root["schemas"][PART]["properties"].items():
        if name not in ("text", "functionCall"):
            yield "generateContent", {name: example(part, root, full=True)}


def body_with(api: str, added: list[Json], **more: Any) -> Json:
    spoken = SPOKEN[api]
    parts = [*spoken[:2], *added, *spoken[2:]]
    if api == "generateContent":
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        counts = {"promptTokenCount": COUNT, "candidatesTokenCount": COUNT}
        return {"candidates": [candidate], "usageMetadata": counts, **more}
    usage = {"input_tokens": COUNT, "output_tokens": COUNT}
    return {"output" if api == "responses" else "content": parts, "usage": usage, **more}


def test_unknown_blocks_do_not_hide_text_or_calls():
    for api, block in blocks():
        if block.get("type") in OURS:
            continue
        reply = answered(api, body_with(api, [block]))
        assert (reply.text, [call.name for call in reply.calls]) == ("First. Last.", ["look_up"]), block
        assert json.loads(reply.calls[0].arguments) == {"word": "ß"}
        assert (reply.finish, reply.tokens.input, reply.tokens.output) == ("tool", COUNT, COUNT)
        assert '"c1"' in json.dumps(second_turn(api, reply))


@pytest.mark.parametrize("api", SPOKEN)
def test_texts_and_calls_are_sent_back_in_order(api: str):
    thought = {
        "responses": {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "sealed"},
        "messages": {"type": "thinking", "thinking": "", "signature": "sealed"},
        "generateContent": {"text": "Hm.", "thought": True, "thoughtSignature": "sealed=="},
    }[api]
    for added in ([], [thought]):
        body = second_turn(api, answered(api, body_with(api, added)))
        assert problems(api, body) == []
        sent = json.dumps(body)
        places = [sent.index(text) for text in ("First. ", '"word', *(["sealed"] if added else []), "Last.")]
        assert places == sorted(places)


ENDINGS = {
    "end_turn": "tool", "stop_sequence": "tool", "tool_use": "tool", "max_tokens": "length",
    "model_context_window_exceeded": "length", "pause_turn": "paused", "refusal": "refusal",
    "stop": "tool", "tool_calls": "tool", "function_call": "tool", "length": "length", "content_filter": "refusal",
    "STOP": "tool", "MAX_TOKENS": "length", "max_output_tokens": "length", "max_messages": "length",
    "steered": "paused",
    **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"), "refusal"),
    **dict.fromkeys(("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"), "refusal"),
}  # fmt: skip
"""Finish reasons of a reply with a call, by the provider's name for them. All others are malformed."""


def test_finish_reasons_are_distinguished_and_unknown_ones_are_malformed():
    def enum(file: str, *path: str) -> list[str]:
        root = spec(file)
        node = (root.get("$defs") or root["schemas"])[path[0]] if path[1:] else root
        return [
            *next(choice["enum"] for choice in choices(node["properties"][path[-1]], root) if "enum" in choice),
            NEW,
        ]

    for word in enum("anthropic_message.schema.json", "stop_reason"):
        check_ending(word, answered("messages", body_with("messages", [], stop_reason=word)))
    for word in enum("openai_response.schema.json", "IncompleteDetails", "reason"):
        more: Json = {"status": "incomplete", "incomplete_details": {"reason": word}}
        check_ending(word, answered("responses", body_with("responses", [], **more)))
    for word in enum(GOOGLE, "GoogleCloudAiplatformV1beta1Candidate", "finishReason"):
        body = body_with("generateContent", [])
        body["candidates"][0]["finishReason"] = word
        check_ending(word, answered("generateContent", body))
    for word in [*enum("openai_chat_completion.schema.json", "Choice", "finish_reason"), "error"]:
        call = {"id": "c", "function": {"name": "look_up", "arguments": "{}"}}
        message = {"content": "First. Last.", "tool_calls": [call]}
        check_ending(word, answered("chat", {"choices": [{"message": message, "finish_reason": word}]}))
    reasons = spec(GOOGLE)["schemas"]["GoogleCloudAiplatformV1beta1GenerateContentResponsePromptFeedback"]
    for word in [*reasons["properties"]["blockReason"]["enum"], NEW]:
        reply = answered("generateContent", {"promptFeedback": {"blockReason": word}})
        assert (reply.finish, reply.detail) == ("refusal", word)


def check_ending(word: str, reply: Reply) -> None:
    expected = ENDINGS.get(word, "malformed")
    assert (reply.finish, reply.text, len(reply.calls)) == (expected, "First. Last.", 1), word
    assert reply.detail.lower() == ("" if expected == "tool" else word.lower())


@pytest.mark.parametrize("full", [True, False])
def test_replies_generated_from_a_schema_are_read(full: bool):
    for api, file in (
        ("messages", "anthropic_message.schema.json"),
        ("responses", "openai_response.schema.json"),
        ("chat", "openai_chat_completion.schema.json"),
        ("chat", "openrouter_chat_result.schema.json"),
    ):
        body = example(spec(file), spec(file), full=full)
        body |= {"error": None, "incomplete_details": None, "status": "completed"} if api == "responses" else {}
        if api == "chat":
            body["choices"] = [example(next(kinds(spec(file), "choices")), spec(file), full=full)]
            body["choices"][0]["message"]["refusal"] = None
        reply = answered(api, body)
        assert bool(reply.text) == full, file
        if body.get("usage"):
            cached = 3 if full and api == "messages" else 1  # Anthropic counts cached tokens separately.
            assert (reply.tokens.input, reply.tokens.output) == (COUNT * cached, COUNT), file
            assert (reply.tokens.cached, reply.tokens.reasoning) == ((COUNT, COUNT) if full else (0, 0)), file
            assert not reply.tokens.estimated
        if full:
            assert second_turn(api, reply)


def test_errors_generated_from_a_schema_raise_the_right_error():
    ours = {
        "authentication_error": KeyRefused,
        "billing_error": OutOfCredit,
        "invalid_request_error": ModelRefused,
        "not_found_error": ModelRefused,
        "permission_error": KeyRefused,
    }
    root = spec("anthropic_error.schema.json")
    for kind in choices(root["properties"]["error"], root):
        error = example(kind, root, full=True)
        with pytest.raises(ModelRefused if error["type"] in ours else ModelBusy) as caught:
            answered("messages", {"type": "error", "error": error, "request_id": None})
        assert type(caught.value) is ours.get(error["type"], ModelBusy)
    root = spec("openai_response.schema.json")
    retried = {"server_error", "rate_limit_exceeded"}
    codes: list[str] = resolved(root["$defs"]["ResponseError"]["properties"]["code"], root)["enum"]
    for code in codes:
        if "image" in code or "vector" in code:
            continue  # Neither is ever sent.
        failed: Json = {"status": "failed", "error": {"code": code, "message": "It failed."}, "output": []}
        with pytest.raises(ModelBusy if code in retried else ModelRefused) as caught:
            answered("responses", failed)
        assert not isinstance(caught.value, ReplyLost)
        if code in retried:
            # Counted tokens may be billed.
            with pytest.raises(ReplyLost):
                answered("responses", {**failed, "usage": {"input_tokens": 9, "output_tokens": 5}})
