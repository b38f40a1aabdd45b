"""Counts of tokens: which are believed, and which are marked as estimates because they cannot be right."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.models import AssistantMessage, Reply, Request, TokenCount, UserMessage
from foretell.models.providers import ChatWire, GeminiWire, MessagesWire, ResponsesWire, Wire
from foretell.models.providers.wire import counted, fewest_tokens

WIRES: dict[str, Wire] = {
    "chat": ChatWire(),
    "responses": ResponsesWire(),
    "messages": MessagesWire(),
    "gemini": GeminiWire(),
}
WORDS = "Rain is likely in the north of the country and less so in the south, as the front moves on slowly. " * 5
ASKED = Request(model="openai:m", messages=(UserMessage(text=f"How is the weather? {WORDS}"),))
READ, WRITTEN = 135, 120
USAGE: dict[str, tuple[str, str, str]] = {
    "chat": ("usage", "prompt_tokens", "completion_tokens"),
    "responses": ("usage", "input_tokens", "output_tokens"),
    "messages": ("usage", "input_tokens", "output_tokens"),
    "gemini": ("usageMetadata", "promptTokenCount", "candidatesTokenCount"),
}


def body_of(wire: str, *, text: str = WORDS, thinking: str = "", arguments: str = "") -> dict[str, Any]:
    parsed = json.loads(arguments or "{}")
    match wire:
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
    usage, read, written = USAGE[wire]
    return {**body, usage: {read: READ, written: WRITTEN}}


def tokens_of(wire: str, body: dict[str, Any], request: Request = ASKED) -> TokenCount:
    return WIRES[wire].reply(json.loads(json.dumps(body)), request).tokens


def changed(wire: str, **counts: Any) -> dict[str, Any]:
    body = deepcopy(body_of(wire))
    usage, read, written = USAGE[wire]
    names = {"read": read, "written": written}
    body[usage] |= {names[name]: value for name, value in counts.items()}
    return body


@pytest.mark.parametrize("wire", WIRES)
def test_honest_counts_are_believed(wire: str):
    assert tokens_of(wire, body_of(wire)) == TokenCount(input=READ, output=WRITTEN)
    assert not tokens_of(wire, changed(wire, read=READ + 0.0)).estimated
    empty = body_of(wire, text="")
    empty[USAGE[wire][0]][USAGE[wire][2]] = 0
    assert tokens_of(wire, empty) == TokenCount(input=READ), "what says nothing costs no output"


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", ["read", "written"])
@pytest.mark.parametrize(
    "wrong", [None, 0, -1, -(10**9), 1, 10, float("nan"), float("inf"), 99.5, "many", "-3", True, [], {}, 10**30]
)
def test_counts_that_cannot_be_right_are_estimates(wire: str, name: str, wrong: Any):
    tokens = tokens_of(wire, changed(wire, **{name: wrong}))
    assert tokens.estimated
    assert tokens.input >= 100
    assert tokens.output >= 100


@pytest.mark.parametrize("wire", WIRES)
def test_missing_usage_is_an_estimate(wire: str):
    body = body_of(wire)
    del body[USAGE[wire][0]]
    assert tokens_of(wire, body).estimated


PARTS: list[tuple[str, dict[str, Any]]] = [
    ("chat", {"prompt_tokens_details": {"cached_tokens": READ + 1}}),
    ("chat", {"prompt_tokens_details": {"cache_write_tokens": READ + 1}}),
    ("chat", {"prompt_tokens_details": {"cached_tokens": -1}}),
    ("chat", {"prompt_cache_hit_tokens": READ + 1}),
    ("chat", {"completion_tokens_details": {"reasoning_tokens": 10 * WRITTEN}}),
    ("chat", {"total_tokens": -5}),
    ("responses", {"input_tokens_details": {"cached_tokens": READ + 1}}),
    ("responses", {"input_tokens_details": {"cache_write_tokens": "x"}}),
    ("responses", {"output_tokens_details": {"reasoning_tokens": 10 * WRITTEN}}),
    ("messages", {"cache_creation_input_tokens": -7}),
    ("messages", {"output_tokens_details": {"thinking_tokens": 10 * WRITTEN}}),
    ("gemini", {"cachedContentTokenCount": READ + 1}),
    ("gemini", {"thoughtsTokenCount": -1}),
]


@pytest.mark.parametrize(("wire", "more"), PARTS)
def test_parts_that_contradict_the_whole_make_it_an_estimate(wire: str, more: dict[str, Any]):
    body = body_of(wire)
    body[USAGE[wire][0]] |= more
    assert tokens_of(wire, body).estimated


@pytest.mark.parametrize("wire", WIRES)
def test_arguments_and_reasoning_are_seen_too(wire: str):
    for more in ({"arguments": json.dumps({"why": WORDS * 5})}, {"thinking": WORDS * 10}):
        assert tokens_of(wire, body_of(wire, text="", **more)).estimated


@pytest.mark.parametrize("wire", ["responses", "messages", "gemini"])
def test_a_summary_may_be_longer_than_the_thoughts(wire: str):
    body = body_of(wire, text="Yes.", thinking=WORDS)
    body[USAGE[wire][0]][USAGE[wire][2]] = 40
    assert not tokens_of(wire, body).estimated


def test_thoughts_that_a_template_cuts_out_of_earlier_turns_need_not_be_counted():
    earlier = AssistantMessage(text=f"<think>{WORDS * 20}</think> Yes.")
    request = Request(model="openai:m", messages=(*ASKED.messages, earlier, UserMessage(text="Sure?")))
    assert not tokens_of("chat", body_of("chat"), request).estimated


def test_a_stream_that_broke_off_was_not_counted_to_its_end():
    events: dict[str, list[dict[str, Any]]] = {
        "chat": [
            {"choices": [{"delta": {"content": "Rain"}}], "usage": {"prompt_tokens": READ, "completion_tokens": 1}}
        ],
        "messages": [
            {"type": "message_start", "message": {"usage": {"input_tokens": READ, "output_tokens": 1}}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Rain"}},
        ],
        "gemini": [
            {
                "candidates": [{"content": {"parts": [{"text": "Rain"}]}}],
                "usageMetadata": {"promptTokenCount": READ, "candidatesTokenCount": 1, "totalTokenCount": READ + 1},
            }
        ],
        "responses": [
            {
                "type": "response.in_progress",
                "response": {"status": "in_progress", "usage": {"input_tokens": READ, "output_tokens": 1}},
            },
            {"type": "response.output_text.delta", "output_index": 0, "delta": "Rain"},
        ],
    }
    for name, pieces in events.items():
        reply = WIRES[name].reply(WIRES[name].joined(pieces), ASKED)
        assert (reply.text, reply.finish, reply.tokens.estimated) == ("Rain", "length", True), name


# Token counts of real vocabularies, for texts that pack as much as possible into a token.
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
def test_no_tokenizer_needs_fewer(text: str, tokens: int):
    assert fewest_tokens([text]) <= tokens


@given(st.text(alphabet=st.sampled_from("ab \n\t\u3000天é=—1"), max_size=200), st.integers(0, 60))
def test_a_quick_look_at_the_length_decides_nothing_else_than_the_words_do(text: str, written: int):
    tokens = counted(ASKED, Reply(text=text), read=READ, written=written).tokens
    assert tokens.estimated == (written < fewest_tokens([text]) or (written == 0 and text != ""))
