"""`foretell ask --number`: a number is asked for, and the answer is a distribution, from every door."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from foretell import ask
from foretell.operations import AskRequest, AskResult, combination_of, prepare_ask
from foretell.questions import InputError, Numeric
from foretell.runs import Settings, combining_by_name

ASKED: dict[str, Any] = {"question": "How many goals fall on Sunday?", "number": True, "low": 0, "high": 12}
QUANTILES = {"q05": 1, "q10": 2, "q25": 3, "q50": 5, "q75": 7, "q90": 9, "q95": 10}


def says(request: Any) -> str:
    """A model of one's own that answers at once."""
    del request
    return json.dumps({"quantiles": QUANTILES, "reason": "As usual."})


def test_the_answer_is_a_distribution(tmp_path: Path):
    found = ask(**ASKED, unit="goals", model=says, steps=1, settings=Settings(home=tmp_path))
    assert isinstance(found, AskResult)
    assert isinstance(found.forecast.distribution, Numeric)
    assert found.quantiles == pytest.approx(QUANTILES)
    assert found.p == pytest.approx({">3": 0.75, ">6": 0.375, ">9": 0.1})
    assert found.rows()[3] == {"quantile": "q50", "value": pytest.approx(5)}
    assert found.to_dict()["quantiles"] == pytest.approx(QUANTILES)
    assert found.to_dict()["labels"][">3"] == "above 3 goals"
    assert "q50" in str(found)
    shown = StringIO()
    found.print(Console(file=shown, width=200))
    assert shown.getvalue().startswith("5 goals  between 1 goals and 10 goals with 90 %")
    combination = combination_of(found.trials, found.question, combining_by_name("mean"))
    assert combination is not None
    assert combination["quantiles"]["q50"] == "5 goals"


def test_range_and_unit_are_part_of_what_is_asked(tmp_path: Path):
    settings = Settings(home=tmp_path, keys={"OPENAI_API_KEY": "k"})

    def run(**more: Any) -> str:
        return prepare_ask(AskRequest.read({**ASKED, "model": "openai:x", **more}), settings).spec.id

    assert len({run(), run(high=13), run(unit="goals")}) == 3
    (question,) = prepare_ask(AskRequest.read({**ASKED, "model": "openai:x"}), settings).questions
    assert (question.subtype, question.exclusivity) == ("numeric", "independent")
    assert "range asked about is 0 to 12; it may end up above or below" in question.background


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": True},
        {"number": True, "low": 3, "high": 3},
        {"number": True, "low": 0, "high": float("inf")},
        {"number": True, "low": -1e308, "high": 1e308},
        {"low": 0, "high": 1},
        {"unit": "goals"},
        {"number": True, "low": 0, "high": 1, "options": ("a", "b")},
        {"number": True, "low": 0, "high": 1, "price": 0.4},
        {"number": True, "low": 0, "high": 1, "model": "none"},
    ],
)
def test_what_makes_no_number_is_told(wrong: dict[str, Any], tmp_path: Path):
    with pytest.raises(InputError):
        ask("How many?", **{"model": says, **wrong}, settings=Settings(home=tmp_path))
