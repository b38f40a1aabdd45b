"""Parsing of model answers about outcomes."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.context.doubles import CUP, SNOW, VISITS

from foretell.forecasters.prompt.elicitation import OutcomeNames, read_probabilities, read_votes
from foretell.models.model import Reply
from foretell.models.structured_output import UnusableReply, object_in
from foretell.questions.question import Question, Target

CUP_NAMES, VISIT_NAMES, SNOW_NAMES = OutcomeNames.of(CUP), OutcomeNames.of(VISITS), OutcomeNames.of(SNOW)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ({"probabilities": {"target_1": 0.6, "target_2": 0.4}}, (0.6, 0.4)),
        ({"probabilities": {"Red Team": 0.6, "Blue Team": 0.4}}, (0.6, 0.4)),
        ({"probabilities": {"`red team`": 0.6, "BLUE  team.": 0.4}}, (0.6, 0.4)),
        ({"probabilities": {"target_1": "60%", "target_2": "0.4"}}, (0.6, 0.4)),
        ({"probabilities": {"target_1": 60, "target_2": 40}}, (0.6, 0.4)),
        ({"probabilities": {"target_1": 61.5, "target_2": 38.5}}, (0.615, 0.385)),
        ({"probabilities": {"target_1": 0.9, "target_2": 0.4}}, (0.9, 0.4)),
        ({"probabilities": {"target_1": 0.6, "target_2": 0.4, "Green": 0.3}}, (0.6, 0.4)),
        ({"probabilities": [{"outcome": "Red Team", "probability": 0.6}, {"name": "target_2", "p": 0.4}]}, (0.6, 0.4)),
        ({"probabilities": {"target_1": {"probability": 0.6}, "target_2": {"p": "40 %"}}}, (0.6, 0.4)),
        ({"target_1": 0.6, "target_2": 0.4, "rationale": "so"}, (0.6, 0.4)),
    ],
)
def test_common_notations_are_parsed(reply: Any, expected: tuple[float, float]) -> None:
    answer = read_probabilities(reply, CUP_NAMES)
    assert answer.p == pytest.approx({"Red Team": expected[0], "Blue Team": expected[1]})


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ({}, "missing"),
        ({"probabilities": None}, "missing"),
        ({"probabilities": {}}, "`target_1`, `target_2` missing"),
        ({"probabilities": {"target_1": 1}}, "`target_2` missing"),
        ({"probabilities": 0.5}, "one entry for every outcome"),
        ({"probabilities": "<b>half</b>"}, "one entry for every outcome"),
        ({"probabilities": [0.5, 0.5]}, "not a list"),
        ({"probabilities": {"target_1": 1.2, "target_2": 0.3}}, "target_1 is 1.2"),
        ({"probabilities": {"target_1": -0.1, "target_2": 0.3}}, "target_1 is -0.1"),
        ({"probabilities": {"target_1": 150, "target_2": 0}}, "target_1 is 150"),
        ({"probabilities": {"target_1": 35.5, "target_2": 0.2}}, "target_1 is 35.5"),
        ({"probabilities": {"target_1": True, "target_2": 0.3}}, "target_1 is True"),
        ({"probabilities": {"target_1": None, "target_2": 0.3}}, "target_1 is None"),
        ({"probabilities": {"target_1": "likely", "target_2": "unlikely"}}, "not a number"),
        ({"probabilities": {"target_1": "120 %", "target_2": 0}}, "not a number"),
        ({"probabilities": {"target_1": 0, "target_2": 0}}, "cannot all have probability 0"),
        ({"probabilities": {"target_1": 0.5, "Red Team": 0.6, "target_2": 0.4}}, "twice"),
        ({"probabilities": {str(n): 0 for n in range(6000)}}, "6000 entries"),
    ],
)
def test_ambiguous_or_incomplete_answers_raise_errors_with_the_reason(reply: Any, message: str) -> None:
    with pytest.raises(UnusableReply, match=message):
        read_probabilities(reply, CUP_NAMES)


def test_repaired_answers_have_notes() -> None:
    answer = read_probabilities({"probabilities": {"red team": 60, "Blue Team": 40, "draw": 3}}, CUP_NAMES)
    assert answer.notes == (
        "1 unknown outcomes ignored",
        "2 outcomes under other names",
        "percentages converted",
    )


def test_single_outcome_may_be_a_bare_number_or_called_yes() -> None:
    for reply in (
        {"probabilities": 0.3},
        {"probability": 0.3},
        {"p": "30%"},
        {"probabilities": {"Yes": 0.3, "No": 0.7}},
    ):
        assert read_probabilities(reply, SNOW_NAMES).p == {"yes": 0.3}
    assert read_probabilities({"probabilities": {"yes": 35}}, SNOW_NAMES).p == {"yes": 0.35}
    for bad in (1.5, [0.3], {"no": 0.7}):
        with pytest.raises(UnusableReply):
            read_probabilities({"probabilities": bad}, SNOW_NAMES)


def test_ambiguous_names_match_no_outcome() -> None:
    twins = Question(
        id="q",
        source="s",
        text="?",
        due="2026-01-10",
        targets=(Target(id="a b", label="Smith"), Target(id="c", label="Smith")),
    )
    outcome_names = OutcomeNames.of(twins)
    assert outcome_names.find("Smith") is None
    assert outcome_names.find("target_2") == "c"
    ladder = Question(
        id="q", source="s", text="?", due="2026-01-10", targets=(Target(id="Above -5"), Target(id="Above 3.10"))
    )
    assert OutcomeNames.of(ladder).find("above 5") is None
    assert OutcomeNames.of(ladder).find("above 310") is None
    assert OutcomeNames.of(ladder).find("ABOVE 3.10") == "Above 3.10"


def test_label_that_looks_like_a_key_does_not_replace_the_key() -> None:
    odd = Question(
        id="q", source="s", text="?", due="2026-01-10", targets=(Target(id="a b", label="target_2"), Target(id="c d"))
    )
    assert OutcomeNames.of(odd).find("target_2") == "c d"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ({"x": "yes", "y": "no", "z": "No."}, (1, 0, 0)),
        ({"x": True, "y": False, "z": 0}, (1, 0, 0)),
        ({"Mr X": "YES", "ms y": "n", "Dr Z": "true"}, (1, 0, 1)),
        ({"x": {"answer": "yes"}, "y": {"answer": "no"}, "z": {"decision": "no"}}, (1, 0, 0)),
    ],
)
def test_common_notations_of_votes_are_parsed(reply: Any, expected: tuple[int, int, int]) -> None:
    assert tuple(read_votes({"answers": reply}, VISIT_NAMES).p.values()) == expected


def test_confident_votes_require_a_confidence() -> None:
    reply = {
        "answers": {key: {"answer": "yes", "confidence": c} for key, c in zip("xyz", (0.5, 80, "30%"), strict=True)}
    }
    assert read_votes(reply, VISIT_NAMES, confident=True).confidence == {"x": 0.5, "y": 0.8, "z": 0.3}
    for bad in (None, "sure", 1.5, -1, 200):
        reply["answers"]["y"] = {"answer": "yes", "confidence": bad}
        with pytest.raises(UnusableReply, match="y has"):
            read_votes(reply, VISIT_NAMES, confident=True)
    with pytest.raises(UnusableReply, match="x is 'maybe'"):
        read_votes({"answers": {"x": "maybe", "y": "no", "z": "no"}}, VISIT_NAMES)


def test_rationale_as_list_or_object_is_converted_to_text() -> None:
    for reasons, text in (
        ("so", "so"),
        (["a", "b"], "a\nb"),
        ({"Sources": "two"}, "Sources: two"),
        (3, ""),
        (None, ""),
    ):
        assert read_probabilities({"rationale": reasons, "probabilities": 0.2}, SNOW_NAMES).rationale == text
    assert len(read_probabilities({"rationale": "r" * 10**5, "probabilities": 0.2}, SNOW_NAMES).rationale) == 6_000


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from(["target_1", "target_2", "Red Team", "red team", "probabilities", "p", "answers", "rationale"])


@given(st.dictionaries(names, json_values | st.dictionaries(names, json_values, max_size=4), max_size=5))
@settings(max_examples=80)
def test_any_json_is_parsed_or_raises_unusable_reply(reply: dict[str, Any]) -> None:
    for read in (read_probabilities, read_votes):
        with suppress(UnusableReply):
            answer = read(reply, CUP_NAMES)
            assert list(answer.p) == ["Red Team", "Blue Team"]
            assert all(0 <= p <= 1 for p in answer.p.values())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html><body>" + "<p>no</p>" * 200_000,
        "{" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"p": NaN}',
        '{"p": 1e999}',
        '"just text"',
        "[1, 2]",
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        "\ud800\udfff{",
        '{"q": 0.3' + "x" * 1_000_000,
    ],
)
def test_hostile_text_raises_a_short_error(text: str) -> None:
    with pytest.raises(UnusableReply) as raises:
        read_probabilities(object_in(Reply(text=text)), SNOW_NAMES)
    assert len(str(raises.value)) < 500


def test_answer_in_a_tool_call_or_after_prose_is_parsed() -> None:
    from foretell.models.model import ToolCall

    inside = json.dumps({"probabilities": {"yes": 0.2}})
    call = ToolCall(id="1", name="answer", arguments=inside)
    for reply in (Reply(calls=(call,)), Reply(text=f"I think:\n```json\n{inside}\n```\nThat is all.")):
        assert read_probabilities(object_in(reply), SNOW_NAMES).p == {"yes": 0.2}
    with pytest.raises(UnusableReply, match="declined"):
        object_in(Reply(text="no", finish="refusal"))
    with pytest.raises(UnusableReply, match="length limit"):
        object_in(Reply(finish="length"))


@pytest.mark.parametrize("whole", [False, True])
def test_yes_and_no_must_sum_to_one(whole: bool) -> None:
    def reply(yes: Any, no: Any) -> dict[str, Any]:
        numbers = {"yes": yes, "no": no}
        return numbers if whole else {"probabilities": numbers}

    for yes, no in ((0.42, 0.58), ("42 %", "58 %"), (42, 58), (0.42, 0.581)):
        assert read_probabilities(reply(yes, no), SNOW_NAMES).p == pytest.approx({"yes": 0.42})
    with pytest.raises(UnusableReply, match=r"yes has 0\.42 and no has 0\.9, which do not sum to 1"):
        read_probabilities(reply(0.42, 0.9), SNOW_NAMES)
