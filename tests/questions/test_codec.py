import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.questions.as_of import AsOf, instant
from foretell.questions.codec import from_json, parse_literal, plain_data, to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Categorical, Cost, Failure, Forecast, Numeric
from foretell.questions.question import (
    EXCLUSIVITIES,
    Question,
    SeriesRef,
    Snapshot,
    Target,
    even_chance,
    read_exclusivity,
    scaled,
)
from foretell.questions.resolution import Resolution

QUESTION = Question(
    id="fred/DAAA",
    source="fred",
    kind="dataset",
    text="Will the yield rise?",
    criteria="Resolves to the published value.",
    due=instant("2025-10-26"),
    targets=(
        Target(id="2025-11-02", resolves_at=instant("2025-11-02")),
        Target(
            id="yes",
            label="Yes",
            snapshot=Snapshot(at=instant("2025-10-16T08:00:00Z"), yes_ask=0.6, no_ask=0.42, volume=12.5),
        ),
    ),
    series=SeriesRef(provider="fred", id="DAAA"),
)
AS_OF = AsOf.day("2025-10-26")
VALUES = [
    QUESTION,
    Resolution(question_id="q", target_id="yes", outcome=None, due=instant("2025-10-26"), payoff=1.5),
    Forecast(
        question_id="q",
        forecaster="auto",
        as_of=AS_OF,
        p={"yes": 0.25},
        rationale="because “é”",
        usage=Cost(dollars=0.1, calls=3),
        distribution=Categorical(p={"a": 0.25, "b": 0.75}),
    ),
    Forecast(question_id="q", forecaster="n", as_of=AS_OF, p={}, distribution=Numeric(x=(0, 1, 2), cdf=(0, 0.5, 1))),
    Failure(question_id="q", forecaster="auto", as_of=AS_OF, error="no series"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
def test_json_round_trips(value):
    text = to_json(value)
    assert from_json(text, type(value)) == value
    assert json.loads(text)["schema"] == "foretell/1"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"due": "2025-10-26T12:00:00"}, "time zone"),
        ({"due": "yesterday"}, "due"),
        ({"targets": []}, "field targets: is empty"),
        ({"kind": "lottery"}, "kind"),
        ({"answer": 1}, "answer"),
        ({"targets": [{"id": "a"}, {"id": "a"}]}, "twice"),
        (
            {"targets": [{"id": "a", "snapshot": {"at": "2025-01-01", "yes_ask": 60}}]},
            "targets.0.snapshot.yes_ask: is 60.0",
        ),
        ({"schema": "foretell/99"}, "schema"),
        ({"type": "Forecast"}, "Forecast"),
    ],
)
def test_invalid_json_names_the_field(change: dict, place: str):
    data = json.loads(to_json(QUESTION)) | change
    with pytest.raises(InputError) as error:
        from_json(json.dumps(data), Question)
    assert place in str(error.value)


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan"), float("inf")])
def test_forecast_rejects_invalid_probabilities(p: float):
    with pytest.raises(ValueError, match="yes"):
        Forecast(question_id="q", forecaster="f", as_of=AS_OF, p={"yes": p})


@pytest.mark.parametrize("outcome", [0, 1, None])
def test_an_outcome_is_no_yes_or_unknown(outcome: int | None):
    resolution = Resolution(question_id="q", target_id="yes", outcome=outcome)
    assert from_json(to_json(resolution), Resolution).outcome is outcome
    with pytest.raises(ValueError, match="q/yes is 2; expected 0, 1 or None"):
        replace(resolution, outcome=2)


def test_missing_outcome_is_not_zero():
    assert Resolution(question_id="q", target_id="t", outcome=None).outcome is None
    with pytest.raises(ValueError, match="0, 1 or None"):
        Resolution(question_id="q", target_id="t", outcome=0.5)


TWO = (Target(id="a"), Target(id="b"))
RACE = Question(id="q", source="own", text="Who?", due="2025-10-26", targets=TWO)


def test_exclusivity_round_trips_and_is_read_from_the_flag_of_older_files():
    for exclusivity in EXCLUSIVITIES:
        question = replace(RACE, exclusivity=exclusivity)
        assert from_json(to_json(question), Question) == question
    body = json.loads(to_json(RACE))
    for flag, exclusivity in ((True, "exactly one"), (False, "independent")):
        assert from_json(json.dumps(body | {"exclusive": flag}), Question).exclusivity == exclusivity
    for wrong in ({"exclusive": "perhaps"}, {"exclusive": True, "exclusivity": "at most one"}, {"exclusivity": "two"}):
        with pytest.raises(InputError, match="exclusiv"):
            from_json(json.dumps(body | wrong), Question)


def test_single_target_is_independent():
    assert replace(RACE, exclusivity="exactly one", targets=TWO[:1]).exclusivity == "independent"
    with pytest.raises(ValueError, match="is 'some'; expected 'exactly one', 'at most one' or 'independent'"):
        replace(RACE, exclusivity="some")
    with pytest.raises(ValueError, match="'two' is not one of"):
        read_exclusivity("two")


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from(EXCLUSIVITIES))
def test_scaled_probabilities_satisfy_their_exclusivity(p, exclusivity):
    given_p = {str(n): value for n, value in enumerate(p)}
    result, total = scaled(given_p, exclusivity), sum(p)
    assert result.keys() == given_p.keys()
    assert all(0 <= value <= 1 for value in result.values())
    if exclusivity == "independent" or len(p) == 1 or (exclusivity == "at most one" and total <= 1):
        assert result == given_p
    else:
        assert sum(result.values()) == pytest.approx(1)
    even = dict.fromkeys(given_p, even_chance(exclusivity, len(p)))
    assert scaled(even, exclusivity) == pytest.approx(even)


def test_literal_is_parsed_although_another_parser_runs(monkeypatch: pytest.MonkeyPatch):
    import ast

    parse, failures = ast.parse, [SystemError("AST constructor recursion depth mismatch")]

    def parse_meanwhile(*args: Any, **options: Any) -> ast.AST:
        if failures:
            raise failures.pop()
        return parse(*args, **options)

    monkeypatch.setattr(ast, "parse", parse_meanwhile)
    assert parse_literal("{'p': 1}") == {"p": 1}
    assert not failures


def test_a_value_becomes_plain_data_field_by_field_but_its_class_does_not() -> None:
    cost = plain_data({"of": Cost(dollars=0.5, calls=2)})
    assert (cost["of"]["dollars"], cost["of"]["calls"]) == (0.5, 2)
    assert plain_data(Cost) is Cost
