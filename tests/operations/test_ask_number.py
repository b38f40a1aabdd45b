"""`foretell ask --range`: a number is asked for, and the answer is a distribution, through every interface."""

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

ASKED: dict[str, Any] = {"question": "How many goals fall on Sunday?", "range": (0, 12)}
QUANTILES = {"q05": 1, "q10": 2, "q25": 3, "q50": 5, "q75": 7, "q90": 9, "q95": 10}


def says(request: Any) -> str:
    """A model of one's own that answers at once."""
    del request
    return json.dumps({"quantiles": QUANTILES, "reason": "As usual."})


def test_the_answer_is_a_distribution(tmp_path: Path):
    asked = {**ASKED, "range": (0, 12, "goals")}
    found = ask(**asked, model=says, set={"options.steps": 1}, settings=Settings(home=tmp_path))
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

    assert len({run(), run(range="0:13"), run(range="0:12 goals")}) == 3
    (question,) = prepare_ask(AskRequest.read({**ASKED, "model": "openai:x"}), settings).questions
    assert (question.subtype, question.exclusivity) == ("numeric", "independent")
    assert "range asked about is 0 to 12; it may end up above or below" in question.background


@pytest.mark.parametrize(
    "wrong",
    [
        {"range": "3"},
        {"range": (3, 3)},
        {"range": (0, float("inf"))},
        {"range": (-1e308, 1e308)},
        {"range": "0:1:2"},
        {"range": "goals"},
        {"range": (0, 1), "options": ("a", "b")},
        {"range": (0, 1), "price": 0.4},
        {"range": (0, 1), "model": "none"},
    ],
)
def test_a_wrong_range_is_refused(wrong: dict[str, Any], tmp_path: Path):
    with pytest.raises(InputError):
        ask("How many?", **{"model": says, **wrong}, settings=Settings(home=tmp_path))
