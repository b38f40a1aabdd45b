"""The acceptance cases of stated cases through `ask`, `run`, trees and pages, with a Python function as the model."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.forecasters.tree.scripted_tree import model_query, reply_of

import foretell
from fakes.reasoning import ReasonScript, by_child, cases
from foretell.models.model import Reply, Request
from foretell.models.providers.function import model_name
from foretell.operations.ask import AskResult
from foretell.runs.settings import Settings

QUESTION = "Will the harbour crossing open to traffic before 2028?"
NEEDED = (0.65, 0.45, 0.30, 0.85)
CONDITIONS = cases("all", 0.0, [0.0] * 4, 0.97, but=[0.05, 0.0, 0.0, 0.05])
WEIGHED: dict[str, Any] = {"direction": {**dict.fromkeys(("P1", "P2", "P3"), "helps"), "P4": "hinders"}}
ACCEPTED = {
    "all in sequence": (NEEDED, {**CONDITIONS, "given": by_child((0.65, 0.69, 0.50, 0.90))}, 0.197),
    "all, independent": (NEEDED, CONDITIONS, 0.075),
    "any": (
        (0.35, 0.25, 0.30),
        cases("any", 0.01, [0.99] * 3, 0.99, but=[0.99] * 3, given=(0.35, 0.18, 0.20)),
        0.572,
    ),
    "weigh": (
        (0.55, 0.40, 0.50, 0.35),
        cases("weigh", 0.05, [0.25, 0.18, 0.12, 0.15], 0.93, but=[0.60, 0.75, 0.82, 0.45], **WEIGHED),
        0.439,
    ),
    "at least": ((0.5,) * 3, cases("at_least", 0.02, [0.05] * 3, 0.97, but=[0.95] * 3, k=2), 0.499),
}
"""Leaves, stated cases, and the value of the tree."""


def played(script: ReasonScript) -> Any:
    def reason(request: Request) -> Reply:
        return reply_of(script(model_query(request)), request)

    return reason


@pytest.mark.parametrize("name", ACCEPTED)
def test_stated_cases_give_the_same_value_in_every_interface(name: str, tmp_path: Path):
    leaves, stated, expected = ACCEPTED[name]
    settings = Settings(home=tmp_path)
    script = ReasonScript(direct=expected, leaves=leaves, kind=stated["kind"], synthesis=[stated], searches=False)
    answer = foretell.ask(QUESTION, as_of="2026-07-01", model=played(script), settings=settings)
    assert isinstance(answer, AskResult)
    assert answer.to_dict()["tree"]["yes"] == pytest.approx(expected, abs=5e-4)
    assert script.of("reconcile") == [], "tree and direct estimate agree"
    assert answer.run is not None
    tree = foretell.show_tree(answer.run, settings=settings)
    assert tree.to_dict()["p"] == pytest.approx(expected, abs=5e-4)
    before = len(script.asked)
    changed = foretell.what_if(answer.run, set={"P0:all": 0.5}, settings=settings).to_dict()["scenarios"][0]["p"]
    assert len(script.asked) == before, "a what-if asks nobody"
    testing = pytest.importorskip("fastapi.testclient", reason="fastapi is not installed: pip install 'foretell[web]'")
    from foretell.web.app import create_app

    with testing.TestClient(create_app(settings, token="t" * 20), base_url="http://127.0.0.1") as client:
        view = client.get(f"/api/tree/view/{answer.run}").json()
        played_view = client.get(f"/api/tree/view/{answer.run}", params={"set": "P0:all=0.5"}).json()
        page = client.get(f"/trees/claim/P0/{answer.run}").text
    assert view["p"] == pytest.approx(expected, abs=5e-4)
    assert played_view["p"] == changed != view["p"]
    assert "Checks: all passed" in page
    assert ("taken as independent" in page) == (name == "all, independent")


def test_cases_out_of_order_are_sent_back_in_a_run(tmp_path: Path):
    """The first reply says that one child helps more than all of them; both cases are named."""
    wrong = cases("weigh", 0.05, [0.5, 0.1], 0.4)
    right = cases("weigh", 0.05, [0.2, 0.1], 0.4, outside="the weather")
    script = ReasonScript(direct=0.2, leaves=(0.5, 0.5), kind="weigh", synthesis=[wrong, right], searches=False)
    question = {"id": "q1", "text": QUESTION, "due": "2026-07-01", "by": "2027-12-31"}
    (tmp_path / "mine.jsonl").write_text(json.dumps(question) + "\n", encoding="utf-8")
    spec = {
        "questions": str(tmp_path / "mine.jsonl"),
        "models": {"agent": model_name(played(script))},
        "forecaster": "reason",
    }
    settings = Settings(home=tmp_path / "home")
    done = foretell.run(spec, settings=settings)
    first, second = script.of("cases")
    sent_back = second.removeprefix(first)
    assert "if only P1 comes true you give the claim 50 %" in sent_back.lower().replace("p1", "P1")
    assert "only 40 %" in sent_back
    shown = foretell.show_tree(done.run, settings=settings)
    assert shown.to_dict()["p"] == pytest.approx(0.1875, abs=5e-3)


def test_the_tree_of_concurrent_trials_has_the_evidence_of_all(tmp_path: Path):
    facts = ("Votes were counted.", "Steel came.", "A permit was filed.")
    leaves, stated, expected = ACCEPTED["all in sequence"]
    script = ReasonScript(direct=expected, leaves=leaves, synthesis=[stated], searches=False, facts=facts)

    async def reason(request: Request) -> Reply:
        reply = reply_of(script(model_query(request)), request)
        if len(script.of("scout")) == 1:
            await asyncio.sleep(0.3)  # The first trial is the last to end its research.
        return reply

    foretell.ask(QUESTION, as_of="2026-07-01", trials=3, model=reason, settings=Settings(home=tmp_path))
    (plan,) = script.of("plan")
    assert all(fact in plan for fact in facts)
