"""What a model may write about outcomes, and what of it is understood."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.context.doubles import CUP, SNOW, VISITS

from foretell.forecasters.prompt import OutcomeNames, read_probabilities, read_votes
from foretell.models import Reply, UnusableReply, object_in
from foretell.questions import Question, Target

CUPS, MET, SNOWS = OutcomeNames.of(CUP), OutcomeNames.of(VISITS), OutcomeNames.of(SNOW)


@pytest.mark.parametrize(
    ("said", "expected"),
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
def test_usual_ways_of_writing_are_understood(said: Any, expected: tuple[float, float]) -> None:
    answer = read_probabilities(said, CUPS)
    assert answer.p == pytest.approx({"Red Team": expected[0], "Blue Team": expected[1]})


@pytest.mark.parametrize(
    ("said", "told"),
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
def test_whatever_could_mean_several_things_is_refused_with_the_reason(said: Any, told: str) -> None:
    with pytest.raises(UnusableReply, match=told):
        read_probabilities(said, CUPS)


def test_repairs_are_noted() -> None:
    answer = read_probabilities({"probabilities": {"red team": 60, "Blue Team": 40, "draw": 3}}, CUPS)
    assert answer.notes == (
        "1 outcomes that nobody asked about left out",
        "2 outcomes named in another way",
        "percentages read as such",
    )


def test_one_outcome_may_be_a_bare_number_or_called_yes() -> None:
    for said in (
        {"probabilities": 0.3},
        {"probability": 0.3},
        {"p": "30%"},
        {"probabilities": {"Yes": 0.3, "No": 0.7}},
    ):
        assert read_probabilities(said, SNOWS).p == {"yes": 0.3}
    assert read_probabilities({"probabilities": {"yes": 35}}, SNOWS).p == {"yes": 0.35}
    for bad in (1.5, [0.3], {"no": 0.7}):
        with pytest.raises(UnusableReply):
            read_probabilities({"probabilities": bad}, SNOWS)


def test_names_that_stand_for_two_outcomes_stand_for_none() -> None:
    twins = Question(
        id="q",
        source="s",
        text="?",
        due="2026-01-10",
        targets=(Target(id="a b", label="Smith"), Target(id="c", label="Smith")),
    )
    found = OutcomeNames.of(twins)
    assert found.find("Smith") is None
    assert found.find("target_2") == "c"
    ladder = Question(
        id="q", source="s", text="?", due="2026-01-10", targets=(Target(id="Above -5"), Target(id="Above 3.10"))
    )
    assert OutcomeNames.of(ladder).find("above 5") is None
    assert OutcomeNames.of(ladder).find("above 310") is None
    assert OutcomeNames.of(ladder).find("ABOVE 3.10") == "Above 3.10"


def test_a_label_that_looks_like_a_key_does_not_take_its_place() -> None:
    odd = Question(
        id="q", source="s", text="?", due="2026-01-10", targets=(Target(id="a b", label="target_2"), Target(id="c d"))
    )
    assert OutcomeNames.of(odd).find("target_2") == "c d"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"x": "yes", "y": "no", "z": "No."}, (1, 0, 0)),
        ({"x": True, "y": False, "z": 0}, (1, 0, 0)),
        ({"Mr X": "YES", "ms y": "n", "Dr Z": "true"}, (1, 0, 1)),
        ({"x": {"answer": "yes"}, "y": {"answer": "no"}, "z": {"decision": "no"}}, (1, 0, 0)),
    ],
)
def test_votes(said: Any, expected: tuple[int, int, int]) -> None:
    assert tuple(read_votes({"answers": said}, MET).p.values()) == expected


def test_confident_votes_need_a_confidence() -> None:
    said = {
        "answers": {key: {"answer": "yes", "confidence": c} for key, c in zip("xyz", (0.5, 80, "30%"), strict=True)}
    }
    assert read_votes(said, MET, confident=True).confidence == {"x": 0.5, "y": 0.8, "z": 0.3}
    for bad in (None, "sure", 1.5, -1, 200):
        said["answers"]["y"] = {"answer": "yes", "confidence": bad}
        with pytest.raises(UnusableReply, match="y has"):
            read_votes(said, MET, confident=True)
    with pytest.raises(UnusableReply, match="x is 'maybe'"):
        read_votes({"answers": {"x": "maybe", "y": "no", "z": "no"}}, MET)


def test_reasons_in_odd_shapes_are_kept_as_text() -> None:
    for reasons, text in (
        ("so", "so"),
        (["a", "b"], "a\nb"),
        ({"Sources": "two"}, "Sources: two"),
        (3, ""),
        (None, ""),
    ):
        assert read_probabilities({"rationale": reasons, "probabilities": 0.2}, SNOWS).rationale == text
    assert len(read_probabilities({"rationale": "r" * 10**5, "probabilities": 0.2}, SNOWS).rationale) == 6_000


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from(["target_1", "target_2", "Red Team", "red team", "probabilities", "p", "answers", "rationale"])


@given(st.dictionaries(names, json_values | st.dictionaries(names, json_values, max_size=4), max_size=5))
@settings(deadline=None, max_examples=80)
def test_any_json_is_read_or_refused(said: dict[str, Any]) -> None:
    for read in (read_probabilities, read_votes):
        with suppress(UnusableReply):
            answer = read(said, CUPS)
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
def test_hostile_text_is_refused_quickly(text: str) -> None:
    with pytest.raises(UnusableReply) as told:
        read_probabilities(object_in(Reply(text=text)), SNOWS)
    assert len(str(told.value)) < 500


def test_an_answer_in_a_call_or_behind_prose_counts() -> None:
    from foretell.models import ToolCall

    inside = json.dumps({"probabilities": {"yes": 0.2}})
    call = ToolCall(id="1", name="answer", arguments=inside)
    for reply in (Reply(calls=(call,)), Reply(text=f"I think:\n```json\n{inside}\n```\nThat is all.")):
        assert read_probabilities(object_in(reply), SNOWS).p == {"yes": 0.2}
    with pytest.raises(UnusableReply, match="declined"):
        object_in(Reply(text="no", finish="refusal"))
    with pytest.raises(UnusableReply, match="length limit"):
        object_in(Reply(finish="length"))
