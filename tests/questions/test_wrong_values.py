"""A value that a public class does not take is refused as a `WrongValue`, and said once by readers that add a place."""

import json
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foretell import AsOf, Forecast, InputError, Question, Resolution, Target
from foretell.questions.codec import from_json
from foretell.questions.errors import MissingExtra
from foretell.tournaments.submission import read_forecasts
from foretell.types import (
    AgentOptions,
    Categorical,
    LastValue,
    LinearLink,
    Numeric,
    NumericRange,
    Proposition,
    Reply,
    Settings,
    Snapshot,
    TokenPrice,
    Tree,
    WrongValue,
)

AS_OF = AsOf.day("2026-01-10")


TRUE: dict[str, Any] = {"question_id": "snow", "target_id": "yes", "outcome": 1}
YES: dict[str, Any] = {"id": "yes"}
SNOW: dict[str, Any] = {"id": "snow", "source": "own", "text": "Will it snow?", "due": "2026-01-10"}
HALF: dict[str, Any] = {"question_id": "snow", "forecaster": "me", "as_of": AS_OF, "p": {"yes": 0.5}}


def question(**fields: Any) -> Question:
    return Question(**(SNOW | fields))


def forecast(**fields: Any) -> Forecast:
    return Forecast(**(HALF | fields))


def outcome(**fields: Any) -> Resolution:
    return Resolution(**(TRUE | fields))


def target(**fields: Any) -> Target:
    return Target(**(YES | fields))


WRONG: list[tuple[Callable[..., object], dict[str, Any], str]] = [
    (question, {"id": 3}, "Question, field id: is 3; expected text"),
    (question, {"id": ""}, "Question, field id: is empty"),
    (question, {"due": "soon"}, "Question, field due: 'soon' is not an ISO date or time"),
    (question, {"due": None}, "Question, field due: is None; expected a date"),
    (question, {"due": datetime(2026, 1, 10)}, "Question, field due: '2026-01-10T00:00:00' has no time zone"),  # noqa: DTZ001
    (question, {"targets": "yes"}, "Question, field targets: is 'yes'; expected a list, each entry a Target, such as"),
    (question, {"targets": Target(id="yes")}, "Question, field targets: is Target("),
    (question, {"targets": []}, "Question, field targets: is empty; expected at least one Target"),
    (question, {"kind": "markett"}, "Question, field kind: is 'markett'; expected 'market' or 'dataset'"),
    (question, {"exclusivity": None}, "Question, field exclusivity: is None; expected 'exactly one', 'at most one' or"),
    (question, {"last_value": 3}, "Question, field last_value: is 3; expected a LastValue or None"),
    (question, {"range": (0, 1)}, "Question, field range: is (0, 1); expected a NumericRange or None"),
    (target, {"id": 3}, "Target, field id: is 3; expected text"),
    (target, {"resolves_at": "2026-13-01"}, "Target, field resolves_at: '2026-13-01' is not an ISO date"),
    (
        forecast,
        {"p": {"yes": 20}},
        "Forecast, field p: probability of target 'yes' is 20; expected a number from 0 to 1",
    ),
    (
        forecast,
        {"p": {"yes": float("nan")}},
        "Forecast, field p: probability of target 'yes' is nan; expected a number",
    ),
    (forecast, {"p": 0.3}, "Forecast, field p: is 0.3; expected a dictionary from text to a number"),
    (forecast, {"p": {1: 0.3}}, "Forecast, field p: is {1: 0.3}; expected a dictionary from text to a number"),
    (
        forecast,
        {"as_of": "2026-01-10"},
        "field as_of: is '2026-01-10'; expected an AsOf, such as AsOf.day(\"2026-01-10\")",
    ),
    (forecast, {"stated": {"no": 0.3}}, "Forecast, field stated: stated has other targets than the forecast"),
    (
        forecast,
        {"ending": "x"},
        "Forecast, field ending: is 'x'; expected 'submitted', 'salvaged', 'limit', 'stopped' or",
    ),
    (outcome, {"outcome": 2}, "Resolution, field outcome: outcome of snow/yes is 2; expected 0, 1 or None"),
    (outcome, {"outcome": np.array([1, 0])}, "outcome of snow/yes is array([1, 0]); expected 0, 1 or None"),
    (AsOf, {"at": None}, "AsOf, field at: is None; expected a date"),
    (AsOf, {"at": "2026-01-10", "mode": "now"}, "AsOf, field mode: is 'now'; expected 'live' or 'backtest'"),
    (AsOf.day, {"day": "x"}, "AsOf, field at: 'x' is not an ISO date"),
    (Numeric, {"x": None, "cdf": (0, 1)}, "Numeric, field x: is None; expected a list, each entry a number"),
    (Numeric, {"x": (1, 1), "cdf": (0, 1)}, "Numeric, field x: x of a numeric distribution must increase"),
    (Categorical, {"p": [0.3]}, "Categorical, field p: is [0.3]; expected a dictionary from text to a number"),
    (NumericRange, {"minimum": 3, "maximum": 1}, "field maximum: is 1; expected a finite number above the minimum, 3"),
    (
        Snapshot,
        {"at": "2026-01-10", "last_price": "x"},
        "Snapshot, field last_price: is 'x'; expected a number or None",
    ),
    (AgentOptions, {"steps": "four"}, "AgentOptions, field steps: is 'four'; expected a whole number"),
    (LinearLink, {"intercept": "x", "weights": {}}, "LinearLink, field intercept: is 'x'; expected a number"),
    (Proposition, {"id": "P0", "claim": "?", "p": "x"}, "Proposition, field p: is 'x'; expected a number or None"),
    (Reply, {"text": 3}, "Reply, field text: is 3; expected text"),
    (Settings, {"home": 3}, "Settings, field home: is 3; expected a Path"),
    (Settings, {"home": ".", "keys": "secret"}, "field keys: is text; expected a dictionary from text to text"),
    (TokenPrice, {"input": "1", "output": 2}, "TokenPrice, field input: is '1'; expected a number"),
    (Tree, {"root": "P0", "nodes": []}, "Tree, field nodes: is []; expected a dictionary from text to a Proposition"),
    (LastValue, {"at": "2026-01-10", "value": "x"}, "LastValue, field value: is 'x'; expected a number"),
]


def test_the_message_names_class_and_field_the_value_and_what_is_allowed() -> None:
    wrong = dict[str, str]()
    for make, fields, expected in WRONG:
        with pytest.raises(WrongValue) as caught:
            make(**fields)
        said = str(caught.value)
        if expected not in said or caught.value.problem not in said or caught.value.field not in {*fields, "at"}:
            wrong[expected] = said
    assert wrong == {}


def test_numbers_of_numpy_dates_and_lists_are_stored_as_pythons_own() -> None:
    asked = question(due=date(2026, 1, 10), targets=[Target(id="yes")])
    assert (asked.due, asked.targets) == (datetime(2026, 1, 10, tzinfo=UTC), (Target(id="yes"),))
    made = forecast(p={"yes": np.float32(0.5)}, trial=np.int64(2))
    assert (type(made.p["yes"]), type(made.trial), type(outcome(outcome=np.int64(1)).outcome)) == (float, int, int)


def test_a_missing_time_of_pandas_is_no_date() -> None:
    import pandas

    with pytest.raises(WrongValue, match="field closes_at: NaT is not a date; leave it out"):
        question(closes_at=pandas.NaT)
    assert question(due=pandas.Timestamp("2026-01-10", tz="UTC")).due == datetime(2026, 1, 10, tzinfo=UTC)


def test_a_reader_names_its_own_place_and_says_the_problem_once(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('{"question": "snow", "p": 20}\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_forecasts(path, AS_OF.at)
    problem = "probability of target 'yes' is 20; expected a number from 0 to 1"
    assert str(caught.value) == f"{path}, row 1, column p: {problem}"
    whole = {"question_id": "snow", "forecaster": "me", "as_of": {"at": "2026-01-10"}, "p": {"yes": 20}}
    path.write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_forecasts(path, AS_OF.at)
    assert str(caught.value) == f"{path}, row 1, column p: {problem.replace('20', '20.0')}"


def test_a_wrong_value_inside_another_names_the_path_to_it() -> None:
    written = {"id": "a", "source": "own", "text": "?", "due": "2026-01-10"}
    with pytest.raises(InputError) as caught:
        from_json(json.dumps(written | {"targets": [{"id": ""}]}), Question)
    assert str(caught.value) == "field targets.0.id: is empty"


def test_errors_pass_between_processes() -> None:
    for error in (
        WrongValue("Forecast", "p", "is 20", "a number from 0 to 1"),
        InputError("is wrong", path="f.csv", row=3, column="p", hint="write 0.2"),
        MissingExtra("a data frame", "notebook"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_a_forecaster_that_makes_a_wrong_value_fails_its_question_only() -> None:
    import foretell

    def careless(asked: Question) -> Forecast:
        return forecast(question_id=asked.id, p={"yes": 20 if asked.id == "snow" else 0.2})

    done = foretell.backtest(careless, [question(), question(id="rain")])
    assert [made.question_id for made in done.forecasts] == ["rain"]
    assert "probability of target 'yes' is 20" in done.failures[0].error
