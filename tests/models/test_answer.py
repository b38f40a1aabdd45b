import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from foretell.models.model import AssistantMessage, ModelError, Reply, Request, ToolCall, UserMessage
from foretell.models.providers.scripted import ScriptedModel
from foretell.models.structured_output import (
    NoJsonFound,
    UnusableReply,
    ask_typed,
    closed_object,
    read_json,
    read_object,
    schema_errors,
    schema_of,
    without_repeats,
)


class Guess(BaseModel):
    p: float = Field(ge=0, le=1)
    why: str = ""


@dataclass
class Pair:
    low: float
    high: float


REQUEST = Request(model="scripted:x", messages=(UserMessage(text="q"),))


def _ask(*script: Reply | str, kind: type[Any] = Guess, attempts: int = 3) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(script)
    return asyncio.run(ask_typed(model, REQUEST, kind, attempts=attempts)), model


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"p": 0.3}', {"p": 0.3}),
        ('```json\n{"p": 0.3}\n```', {"p": 0.3}),
        ('Sure! Here it is:\n{"p": 0.3}\nHope that helps.', {"p": 0.3}),
        ('{"p": 0.3, "why": ["a", "b",],}', {"p": 0.3, "why": ["a", "b"]}),
        ("{'p': 0.3, 'sure': True}", {"p": 0.3, "sure": True}),
        ('{"p": 0.3, // a guess\n "why": "http://x, ]"}', {"p": 0.3, "why": "http://x, ]"}),
        ('{"p": 0.3, "sure": None}', {"p": 0.3, "sure": None}),
        ('{"why": "line\nbreak", "p": 1}', {"why": "line\nbreak", "p": 1}),
        ('First {"p": 0.1} but on reflection {"p": 0.7}', {"p": 0.7}),
        ('I weigh {a, b}. So: {"p": 0.7}', {"p": 0.7}),
        ('[0.2] is my list, {"p": 0.7} my answer [1]', {"p": 0.7}),
        ('<think>{"p": 0.1</think>\n```\n{"p": 0.7}\n```', {"p": 0.7}),
        ('{"why": "polls mov', {"why": "polls mov"}),
        ('{"p": 0.3, "why": ["polls", "pri', {"p": 0.3, "why": ["polls", "pri"]}),
        ('{"why": "x", "p": 0.1', {"why": "x"}),
        ('{"p": 0.3, "n": tru', {"p": 0.3}),
        ('{"p": 0.3, "wh', {"p": 0.3}),
        ('```json\n{"p": 0.3, "why": "cut in a fence', {"p": 0.3, "why": "cut in a fence"}),
        ("[1, 2, 3]", [1, 2, 3]),
        (r'"{\"p\": 0.3}"', {"p": 0.3}),
        ('{"p": 0.3, "why": "%s"}' % ("[" * 1000), {"p": 0.3, "why": "[" * 1000}),
    ],
)
def test_read_json_finds_json_in_text(text: str, expected: object):
    assert read_json(text) == expected


@pytest.mark.parametrize("text", ["", "no idea", "0.3", '"0.3"', "{broken: [}", "{p = 0.3}", "[" * 9999 + "]" * 9999])
def test_read_json_raises_without_json(text: str):
    with pytest.raises(NoJsonFound):
        read_json(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(), part, max_size=4),
    max_leaves=12,
)


@settings(max_examples=100)
@given(st.dictionaries(st.text(), JSON, max_size=4), st.sampled_from(["{}", "So:\n{}", "```json\n{}\n```", "{} done."]))
def test_valid_json_is_read_unchanged(value: dict[str, Any], around: str):
    assert read_json(around.replace("{}", json.dumps(value))) == value


@settings(max_examples=100)
@given(st.dictionaries(st.text(min_size=1), st.integers() | st.text() | st.lists(st.text()), min_size=1), st.data())
def test_a_cut_off_object_never_gains_or_changes_a_value(value: dict[str, Any], data: st.DataObject):
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    try:
        result = read_json(cut)
    except NoJsonFound:
        return
    for key, part in result.items():
        original = value[key]
        if isinstance(original, str):
            assert original.startswith(part)
        elif isinstance(original, list):
            assert len(part) <= len(original)
            assert all(complete.startswith(cut_item) for complete, cut_item in zip(original, part, strict=False))
        else:
            assert part == original


@settings(max_examples=200)
@given(st.text(alphabet='{}[]",:\\ab01 \n`'))
def test_read_json_raises_only_no_json_found(text: str):
    with contextlib.suppress(NoJsonFound):
        assert isinstance(read_json(text), dict | list)


@pytest.mark.parametrize("value", ["NaN", "-Infinity"])
def test_values_that_are_not_json_are_refused(value: str):
    with pytest.raises(UnusableReply, match="NaN"):
        read_object(f'{{"p": {value}}}')


def test_a_lone_surrogate_is_replaced():
    assert read_object('{"why": "rain \\ud83c"}') == {"why": "rain ?"}


def test_first_answer_is_accepted():
    guess, model = _ask('{"p": 0.3}')
    assert guess == Guess(p=0.3)
    assert model.requests[0].schema == schema_of(Guess)


def test_errors_are_sent_back_to_the_model():
    guess, model = _ask('{"p": 3}', "I would rather not say", '{"p": 0.3}')
    assert guess.p == 0.3
    first, second = model.requests[1].messages[1:], model.requests[2].messages[3:]
    assert first[0] == AssistantMessage(text='{"p": 3}')
    assert "p: Input should be less than or equal to 1" in first[1].text
    assert "it holds no JSON object" in second[1].text


def test_attempts_are_bounded():
    with pytest.raises(ModelError, match=r"no usable answer in 2 attempts; the last: p: Field required"):
        _ask("{}", '{"q": 1}', '{"p": 0.3}', attempts=2)


def test_empty_and_refused_answers_are_requested_again():
    guess, model = _ask(Reply(text=""), Reply(text="no", finish="refusal"), '{"p": 0.3}')
    assert guess.p == 0.3
    # The first turn was empty. Some providers would refuse an empty turn.
    assert [type(message) for message in model.requests[1].messages] == [UserMessage, UserMessage]


def test_answer_in_tool_call_is_parsed_into_dataclass():
    call = ToolCall(id="1", name="answer", arguments='{"low": 0, "high": 1}')
    pair, _ = _ask(Reply(calls=(call,), finish="tool"), kind=Pair)
    assert pair == Pair(low=0.0, high=1.0)


def test_truncated_answer_is_parsed():
    guess, _ = _ask('{"p": 0.3, "why": "because')
    assert guess == Guess(p=0.3, why="because")


NESTED = {
    "$defs": {
        "E": {"type": "object", "properties": {"claim": {"type": "string", "minLength": 1}}, "required": ["claim"]}
    },
    "type": "object",
    "properties": {
        "n": {"type": "integer", "exclusiveMinimum": 0},
        "kind": {"enum": ["a", "b"]},
        "one": {"const": 1},
        "evidence": {"type": "array", "items": {"$ref": "#/$defs/E"}, "minItems": 1, "maxItems": 2},
        "maybe": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "both": {"type": ["string", "null"]},
    },
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"n": 1, "kind": "a", "one": 1, "evidence": [{"claim": "x"}], "maybe": None, "both": None}, []),
        ({"n": 0}, ["n is 0, below 0"]),
        ({"n": True}, ["n must be integer, not boolean"]),
        ({"n": 3.0}, []),
        ({"n": 3.5}, ["n must be integer, not number"]),
        ({"maybe": 0.5}, []),
        ({"kind": "c"}, ["kind must be one of a, b"]),
        ({"one": 2}, ["one must be 1"]),
        ({"evidence": []}, ["evidence needs at least 1 items"]),
        ({"evidence": [{"claim": ""}] * 3}, None),
        ({"evidence": [{}]}, ["evidence[0].claim is missing"]),
        ({"maybe": "x"}, ["maybe must be number, not string"]),
        ({"more": 1}, ["more is unknown"]),
        ([], ["the value must be object, not array"]),
    ],
)
def test_schema_errors_lists_every_error(value: object, expected: list[str] | None):
    errors = schema_errors(value, NESTED)
    assert errors == expected if expected is not None else len(errors) == 4


@pytest.mark.parametrize(("fields", "shared"), [("abc", False), ("abcd", True)])
def test_a_repeated_part_is_shared_if_that_saves_a_hundred_characters(fields: str, shared: bool):
    """Of 60 characters, k times, (k − 1)·60 are saved and 20 are added for each reference: 60 for 3 and 100 for 4."""
    part = {"type": "string", "description": "x" * 23}
    assert len(json.dumps(part)) == 60
    short = without_repeats(closed_object(dict.fromkeys(fields, part)))
    assert short.get("$defs", {}) == ({"a": part} if shared else {})
    assert short["properties"]["a"] == ({"$ref": "#/$defs/a"} if shared else part)


def test_every_field_of_an_object_is_required_unless_it_is_optional():
    schema = closed_object({"a": {}, "b": {}}, optional=["b"])
    assert (schema["required"], schema["additionalProperties"]) == (["a"], False)
