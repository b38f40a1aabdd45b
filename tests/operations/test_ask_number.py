"""`foretell ask --range`: the answer to a question about a number is a distribution, in every interface."""

import json
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from rich.console import Console

import foretell
from foretell import ask
from foretell.models.model import Reply, ToolCall
from foretell.operations.ask import AskResult, prepare_ask
from foretell.operations.requests.asking import AskRequest
from foretell.questions.errors import InputError
from foretell.questions.forecast import Numeric
from foretell.report.question_view import combination_of
from foretell.runs.combine import combining_by_name
from foretell.runs.settings import Settings

QUESTION: dict[str, Any] = {"question": "How many goals fall on Sunday?", "range": (0, 12)}
QUANTILES = {"q05": 1, "q10": 2, "q25": 3, "q50": 5, "q75": 7, "q90": 9, "q95": 10}


def says(request: Any) -> str:
    """A Python function as the model."""
    del request
    return json.dumps({"quantiles": QUANTILES, "reason": "As usual."})


def test_the_answer_is_a_distribution(tmp_path: Path):
    arguments = {**QUESTION, "range": (0, 12, "goals")}
    result = ask(**arguments, model=says, set={"options.steps": 1}, settings=Settings(home=tmp_path))
    assert isinstance(result, AskResult)
    assert isinstance(result.forecast.distribution, Numeric)
    assert result.quantiles == pytest.approx(QUANTILES)
    assert result.p == pytest.approx({">3": 0.75, ">6": 0.375, ">9": 0.1})
    assert result.rows()[3] == {"quantile": "q50", "value": pytest.approx(5)}
    assert result.to_dict()["quantiles"] == pytest.approx(QUANTILES)
    assert result.to_dict()["labels"][">3"] == "above 3 goals"
    assert "q50" in str(result)
    shown = StringIO()
    result.print(Console(file=shown, width=200))
    assert shown.getvalue().startswith("5 goals  between 1 goals and 10 goals with 90 %")
    combination = combination_of(result.trials, result.question, combining_by_name("mean"))
    assert combination is not None
    assert combination["quantiles"]["q50"] == "5 goals"


def test_range_and_unit_are_part_of_the_run_id(tmp_path: Path):
    settings = Settings(home=tmp_path, keys={"OPENAI_API_KEY": "k"})

    def run(**more: Any) -> str:
        return prepare_ask(AskRequest.read({**QUESTION, "model": "openai:x", **more}), settings).spec.id

    assert len({run(), run(range="0:13"), run(range="0:12 goals")}) == 3
    (question,) = prepare_ask(AskRequest.read({**QUESTION, "model": "openai:x"}), settings).questions
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


STATED = {"reason": "r", "quantiles": QUANTILES, "confidence": "medium", "open_questions": []}
CLAIMS = ("Rain falls in the city on Sunday, 5 July 2026.", "The keeper of the visitors is hurt by 4 July 2026.")


def reasons(request: Any) -> Any:
    """A Python function that plays a scout, a planner, and so on."""
    fields = set((request.schema or {}).get("properties", {}))
    tools = {tool.name for tool in request.tools}
    if "submit" in tools or "conclude" in tools:
        evidence = {"evidence_for": [], "evidence_against": [], "retract": []}
        submitted = {"updated_belief": {**STATED, **evidence}, "structure": "split", "parts": 2}
        concluded = {"report": "As found.", "key_factor": "k", "sources": [], "p": 0.4}
        name = "submit" if "submit" in tools else "conclude"
        arguments = json.dumps(submitted if name == "submit" else concluded)
        return Reply(calls=(ToolCall(id="1", name=name, arguments=arguments),))
    if "parents" in fields:
        children = [{"id": c, "claim": c, "state": "open", "evidence": []} for c in CLAIMS]
        return json.dumps({"parents": [{"parent": "P0", "kind": "split", "why": "w", "children": children}]})
    if "then" in fields:
        more = {name: value + 2 for name, value in QUANTILES.items()}
        return json.dumps({"report": "r", "key_factor": "k", "then": {"P1": more, "P2": QUANTILES}, "otherwise": more})
    return json.dumps({"report": "r", "changes": [], "add": None, "direct": None, "direct_reason": ""})


def test_scenarios_of_a_number_are_shown_beside_the_direct_estimate(tmp_path: Path):
    settings = Settings(home=tmp_path)
    result = ask(**QUESTION, as_of="2026-07-01", model=reasons, settings=settings)
    assert isinstance(result, AskResult)
    shown = StringIO()
    result.print(Console(file=shown, width=200))
    line = "two scenarios: tree 6.2 (80 %: 2.6 to 10.45), direct 5 (80 %: 2 to 9) (stay apart)"
    assert shown.getvalue().splitlines()[2] == line
    assert result.quantiles is not None
    assert 5 < result.quantiles["q50"] < 6.2, "a quarter of the tree"
    assert result.p == pytest.approx({id: result.forecast.distribution.above(float(id[1:])) for id in result.p})
    assert result.run is not None
    shown_again = (
        foretell.show(result.run, result.question.id, settings=settings),
        foretell.show_tree(result.run, settings=settings),
    )
    for text in shown_again:
        assert line in " ".join(str(text).split())
    testing = pytest.importorskip("fastapi.testclient", reason="fastapi is not installed: pip install 'foretell[web]'")
    from foretell.web.app import create_app

    with testing.TestClient(create_app(settings, token="t" * 20), base_url="http://127.0.0.1") as client:
        asked = f"runs/{result.run}/questions/{quote(result.question.id, safe='')}"
        for place in (f"trees/view/{result.run}", f"trees/claim/P0/{result.run}", asked):
            page = client.get(f"/{place}").text
            assert line.partition(": tree ")[2] in page
            assert "if P1 happens, 7 (80 %: 4 to 11)" in page
