"""Token counts: which are accepted, and which are marked as estimates because they cannot be right."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.models.model import AssistantMessage, Reply, Request, TokenCount, UserMessage
from foretell.models.providers.api_format import ApiFormat, counted, fewest_tokens
from foretell.models.providers.chat import ChatApi
from foretell.models.providers.gemini import GeminiApi
from foretell.models.providers.messages import MessagesApi
from foretell.models.providers.responses import ResponsesApi

FORMATS: dict[str, ApiFormat] = {
    "chat": ChatApi(),
    "responses": ResponsesApi(),
    "messages": MessagesApi(),
    "gemini": GeminiApi(),
}
WORDS = "Rain is likely in the north of the country and less so in the south, as the front moves on slowly. " * 5
REQUEST = Request(model="openai:m", messages=(UserMessage(text=f"How is the weather? {WORDS}"),))
INPUT, OUTPUT = 135, 120
USAGE: dict[str, tuple[str, str, str]] = {
    "chat": ("usage", "prompt_tokens", "completion_tokens"),
    "responses": ("usage", "input_tokens", "output_tokens"),
    "messages": ("usage", "input_tokens", "output_tokens"),
    "gemini": ("usageMetadata", "promptTokenCount", "candidatesTokenCount"),
}


def body_of(api: str, *, text: str = WORDS, thinking: str = "", arguments: str = "") -> dict[str, Any]:
    parsed = json.loads(arguments or "{}")
    match api:
        case "chat":
            message: dict[str, Any] = {"content": text, "reasoning_content": thinking}
            if arguments:
                message["tool_calls"] = [{"id": "t", "function": {"name": "f", "arguments": arguments}}]
            body: dict[str, Any] = {"choices": [{"message": message, "finish_reason": "stop"}]}
        case "responses":
            items: list[dict[str, Any]] = [{"type": "message", "content": [{"type": "output_text", "text": text}]}]
            if thinking:
                items.insert(0, {"type": "reasoning", "summary": [{"type": "summary_text", "text": thinking}]})
            if arguments:
                items.append({"type": "function_call", "call_id": "t", "name": "f", "arguments": arguments})
            body = {"status": "completed", "output": items}
        case "messages":
            blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": thinking}] if thinking else []
            blocks += [{"type": "text", "text": text}]
            blocks += [{"type": "tool_use", "id": "t", "name": "f", "input": parsed}] if arguments else []
            body = {"content": blocks, "stop_reason": "end_turn"}
        case _:
            parts: list[dict[str, Any]] = [{"text": thinking, "thought": True}] if thinking else []
            parts += [{"text": text}]
            parts += [{"functionCall": {"name": "f", "args": parsed}}] if arguments else []
            body = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    usage, input_field, output_field = USAGE[api]
    return {**body, usage: {input_field: INPUT, output_field: OUTPUT}}


def tokens_of(api: str, body: dict[str, Any], request: Request = REQUEST) -> TokenCount:
    return FORMATS[api].reply(json.loads(json.dumps(body)), request).tokens


def changed(api: str, **counts: Any) -> dict[str, Any]:
    body = deepcopy(body_of(api))
    usage, input_field, output_field = USAGE[api]
    names = {"read": input_field, "written": output_field}
    body[usage] |= {names[name]: value for name, value in counts.items()}
    return body


@pytest.mark.parametrize("api", FORMATS)
def test_plausible_counts_are_accepted(api: str):
    assert tokens_of(api, body_of(api)) == TokenCount(input=INPUT, output=OUTPUT)
    assert not tokens_of(api, changed(api, read=INPUT + 0.0)).estimated
    empty = body_of(api, text="")
    empty[USAGE[api][0]][USAGE[api][2]] = 0
    assert tokens_of(api, empty) == TokenCount(input=INPUT), "an empty reply has no output tokens"


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize("name", ["read", "written"])
@pytest.mark.parametrize(
    "wrong", [None, 0, -1, -(10**9), 1, 10, float("nan"), float("inf"), 99.5, "many", "-3", True, [], {}, 10**30]
)
def test_implausible_counts_are_marked_as_estimates(api: str, name: str, wrong: Any):
    tokens = tokens_of(api, changed(api, **{name: wrong}))
    assert tokens.estimated
    assert tokens.input >= 100
    assert tokens.output >= 100


@pytest.mark.parametrize("api", FORMATS)
def test_missing_usage_is_estimated(api: str):
    body = body_of(api)
    del body[USAGE[api][0]]
    assert tokens_of(api, body).estimated


PARTS: list[tuple[str, dict[str, Any]]] = [
    ("chat", {"prompt_tokens_details": {"cached_tokens": INPUT + 1}}),
    ("chat", {"prompt_tokens_details": {"cache_write_tokens": INPUT + 1}}),
    ("chat", {"prompt_tokens_details": {"cached_tokens": -1}}),
    ("chat", {"prompt_cache_hit_tokens": INPUT + 1}),
    ("chat", {"completion_tokens_details": {"reasoning_tokens": 10 * OUTPUT}}),
    ("chat", {"total_tokens": -5}),
    ("responses", {"input_tokens_details": {"cached_tokens": INPUT + 1}}),
    ("responses", {"input_tokens_details": {"cache_write_tokens": "x"}}),
    ("responses", {"output_tokens_details": {"reasoning_tokens": 10 * OUTPUT}}),
    ("messages", {"cache_creation_input_tokens": -7}),
    ("messages", {"output_tokens_details": {"thinking_tokens": 10 * OUTPUT}}),
    ("gemini", {"cachedContentTokenCount": INPUT + 1}),
    ("gemini", {"thoughtsTokenCount": -1}),
]


@pytest.mark.parametrize(("api", "more"), PARTS)
def test_contradictory_counts_are_marked_as_estimates(api: str, more: dict[str, Any]):
    body = body_of(api)
    body[USAGE[api][0]] |= more
    assert tokens_of(api, body).estimated


@pytest.mark.parametrize("api", FORMATS)
def test_arguments_and_reasoning_count_as_output(api: str):
    for more in ({"arguments": json.dumps({"why": WORDS * 5})}, {"thinking": WORDS * 10}):
        assert tokens_of(api, body_of(api, text="", **more)).estimated


@pytest.mark.parametrize("api", ["responses", "messages", "gemini"])
def test_a_summary_may_be_longer_than_the_thoughts(api: str):
    body = body_of(api, text="Yes.", thinking=WORDS)
    body[USAGE[api][0]][USAGE[api][2]] = 40
    assert not tokens_of(api, body).estimated


def test_reasoning_of_earlier_turns_need_not_be_counted():
    earlier = AssistantMessage(text=f"<think>{WORDS * 20}</think> Yes.")
    request = Request(model="openai:m", messages=(*REQUEST.messages, earlier, UserMessage(text="Sure?")))
    assert not tokens_of("chat", body_of("chat"), request).estimated


def test_counts_of_a_truncated_stream_are_marked_as_estimates():
    events: dict[str, list[dict[str, Any]]] = {
        "chat": [
            {"choices": [{"delta": {"content": "Rain"}}], "usage": {"prompt_tokens": INPUT, "completion_tokens": 1}}
        ],
        "messages": [
            {"type": "message_start", "message": {"usage": {"input_tokens": INPUT, "output_tokens": 1}}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Rain"}},
        ],
        "gemini": [
            {
                "candidates": [{"content": {"parts": [{"text": "Rain"}]}}],
                "usageMetadata": {"promptTokenCount": INPUT, "candidatesTokenCount": 1, "totalTokenCount": INPUT + 1},
            }
        ],
        "responses": [
            {
                "type": "response.in_progress",
                "response": {"status": "in_progress", "usage": {"input_tokens": INPUT, "output_tokens": 1}},
            },
            {"type": "response.output_text.delta", "output_index": 0, "delta": "Rain"},
        ],
    }
    for name, pieces in events.items():
        reply = FORMATS[name].reply(FORMATS[name].joined(pieces), REQUEST)
        assert (reply.text, reply.finish, reply.tokens.estimated) == ("Rain", "length", True), name


# Token counts of real vocabularies, for texts with as many characters per token as possible.
PACKED: list[tuple[str, int]] = [
    (" " * 128, 1),
    ("\n" + "=" * 64, 2),
    ("-" * 128, 2),
    ("the " * 100, 101),
    (" internationalization" * 10, 20),
    ("人工智能" * 50, 100),
    ("ประเทศไทย" * 20, 60),
    ('{"p":0.5}', 6),
    (json.dumps({"why": "天气预报" * 10}), 26),
    ("| --- | --- | --- |\n" * 10, 90),
]


@pytest.mark.parametrize(("text", "tokens"), PACKED)
def test_fewest_tokens_is_a_lower_bound(text: str, tokens: int):
    assert fewest_tokens([text]) <= tokens


@given(st.text(alphabet=st.sampled_from("ab \n\t\u3000天é=—1"), max_size=200), st.integers(0, 60))
def test_fast_length_check_agrees_with_the_word_count(text: str, output: int):
    tokens = counted(REQUEST, Reply(text=text), input_tokens=INPUT, output_tokens=output).tokens
    assert tokens.estimated == (output < fewest_tokens([text]) or (output == 0 and text != ""))
