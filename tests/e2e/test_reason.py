"""The forecaster `reason` through `ask`, `tree` and `run`, with a model on a real socket."""

import asyncio
import html
import json
import re
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

import pytest

from fakes.background import Background
from fakes.models import BackgroundModels, FakeModels
from fakes.reasoning import ReasonScript, by_child, cases
from foretell.forecasters.tree.arithmetic.evaluation import evaluate
from foretell.forecasters.tree.tree_file import read_tree
from foretell.mcp.permissions import ServerPermissions
from foretell.mcp.requests import ShowToolRequest
from foretell.mcp.tools import show_stored
from foretell.runs.settings import Settings

QUESTION = "Will the harbour crossing open to traffic before 2028?"
ASKED = ("--as-of", "2026-07-01", "--model", "openai:gpt-5-mini", "--search", "local", "--set", "forecaster=reason")
NEEDED = (0.65, 0.45, 0.30, 0.85)
GIVEN = (0.65, 0.69, 0.50, 0.90)


def needed(given: Any = GIVEN) -> dict[str, Any]:
    return cases("all", 0.0, [0.0] * 4, 0.97, but=[0.05, 0.0, 0.0, 0.05], given=given)


@pytest.fixture
def serve(build_workspace: Callable[..., Any]) -> Callable[..., Any]:
    """Serve a script, and return a workspace that uses it."""

    @contextmanager
    def served(script: Any, name: str = "workspace") -> Generator[Any]:
        provider = Background[FakeModels](lambda: FakeModels(script))
        try:
            yield build_workspace(provider.url, name=name)
        finally:
            provider.close()

    return served


def ask(workspace: Any, *more: str) -> dict[str, Any]:
    """Ask, and return the answer, whose exit code is 0 or 3."""
    end = workspace.foretell("ask", QUESTION, *ASKED, "--json", *more)
    assert end.returncode in (0, 3), end.stderr
    return {**json.loads(end.stdout), "exit_code": end.returncode}


def test_direct_estimate_and_tree_that_agree_are_combined_without_asking(serve: Any):
    script = ReasonScript(direct=0.18, leaves=NEEDED, synthesis=[needed()])
    with serve(script) as workspace:
        answer = ask(workspace)
    assert answer["p"]["yes"] == pytest.approx(0.184, abs=5e-4)
    assert script.of("reconcile") == []
    assert "tree 20 %, direct 18 % (agree)" in answer["rationale"]


def test_values_that_stay_apart_are_both_shown(serve: Any):
    halves = cases("weigh", 0.05, [0.48, 0.48], 0.91)
    script = ReasonScript(direct=0.12, leaves=(0.5, 0.5), kind="weigh", synthesis=[halves])
    with serve(script) as workspace:
        answer = ask(workspace)
    assert len(script.of("reconcile")) == 1
    assert answer["p"]["yes"] == pytest.approx(0.180, abs=5e-4)
    assert "tree 48 %, direct 12 % (stay apart)" in answer["rationale"]
    assert (answer["apart"], answer["blind"], answer["changes"]) == (True, {"yes": 0.12}, [])
    assert answer["tree"]["yes"] == pytest.approx(0.48, abs=1e-3)
    low, high = answer["ranges"]["yes"]
    assert low <= 0.12
    assert high >= answer["tree"]["yes"]


def test_direct_estimate_comes_first_and_only_reconciliation_sees_it(serve: Any):
    script = ReasonScript(direct=0.1234, leaves=NEEDED, synthesis=[needed()], answered=1)
    with serve(script) as workspace:
        ask(workspace)
    order = [what for what, _ in script.asked if what != "other"]
    assert order.index("plan") > max(place for place, what in enumerate(order) if what == "scout")
    for what in ("plan", "answered", "leaf", "cases"):
        assert script.of(what)
        assert not any("0.123" in words or "12 %" in words for words in script.of(what))
    assert script.of("reconcile") == []
    far = ReasonScript(direct=0.7777, leaves=NEEDED, synthesis=[needed()])
    with serve(far, "far") as workspace:
        ask(workspace)
    assert "Direct estimate: 0.778." in far.of("reconcile")[0]


def test_impossible_given_is_sent_back_with_its_bounds(serve: Any):
    script = ReasonScript(direct=0.18, leaves=NEEDED, synthesis=[needed((0.65, 0.95, 0.50, 0.90))])
    with serve(script) as workspace:
        end = workspace.foretell("tree", "grow", QUESTION.rstrip("?") + ".", *ASKED, "--out", "tree.json")
        assert end.returncode == 0, end.stderr
        tree = read_tree(workspace.folder / "tree.json")
    asked = script.of("cases")
    assert len(asked) == 2
    assert "0.69" in asked[1].removeprefix(asked[0])
    assert evaluate(tree).p == pytest.approx(0.198, abs=5e-4)


def test_kind_that_does_not_fit_is_weighed_and_reconciled(serve: Any):
    leaves = (0.38, 0.30, 0.50, 0.60, 0.20)
    script = ReasonScript(
        direct=0.01, leaves=leaves, kind="any", synthesis=[cases("any", 0.0, [0.0] * 5, 1.0, but=[0.0] * 5)]
    )
    with serve(script) as workspace:
        end = workspace.foretell("tree", "grow", QUESTION.rstrip("?") + ".", *ASKED, "--out", "tree.json")
        assert end.returncode == 0, end.stderr
        tree = read_tree(workspace.folder / "tree.json")
    assert len(script.of("cases")) == 3
    assert len(script.of("reconcile")) == 1, "whatever the gap"
    link = tree.nodes["P0"].link
    assert link is not None
    assert link.kind == "weigh"
    assert evaluate(tree).p == pytest.approx(0.009, abs=5e-4)


def test_tree_grows_once_from_the_evidence_of_all_trials(serve: Any):
    script = ReasonScript(
        direct=0.18, leaves=NEEDED, synthesis=[needed()], facts=("Votes were counted.", "Steel came.")
    )
    with serve(script) as workspace:
        answer = ask(workspace, "--trials", "2", "--set", "concurrency=1")
        end = workspace.foretell("replay", answer["run"])
        assert end.returncode == 0, end.stdout + end.stderr
    (plan,) = script.of("plan")
    assert "E1 for: Steel came." in plan, "the evidence of its own trial comes first"
    assert "E2 for: Votes were counted." in plan
    assert answer["p"]["yes"] == pytest.approx(0.184, abs=5e-4)


@pytest.mark.parametrize("restated", [None, 0.3])
def test_tree_is_reconciled_with_the_direct_estimates_of_all_trials(serve: Any, restated: float | None):
    halves = cases("weigh", 0.05, [0.48, 0.48], 0.91)
    script = ReasonScript(
        direct=None, directs=(0.05, 0.05, 0.05, 0.48), leaves=(0.5, 0.5), kind="weigh", synthesis=[halves],
        reconciled={**APART, "changes": [], "direct": restated, "direct_reason": "It was seldom tried."},
    )  # fmt: skip
    with serve(script) as workspace:
        answer = ask(workspace, "--trials", "4", "--set", "concurrency=1")
        tree = json.loads(workspace.foretell("tree", "show", answer["run"], "--json").stdout)["reconciliation"]
    (asked,) = script.of("reconcile")
    assert "Direct estimate: 0.097." in asked
    assert answer["blind"]["yes"] == pytest.approx(restated or 0.097, abs=1e-3)
    assert (answer["apart"], round(answer["gap"], 2)) == ((True, 2.15) if restated is None else (True, 0.77))
    assert {name: tree[name] for name in ("blind", "tree", "apart")} == {
        name: answer[name] for name in ("blind", "tree", "apart")
    }, "the page of the tree says the same"
    assert [round(trial["p"]["yes"], 2) for trial in answer["trials"][:3]] == [0.05] * 3
    assert "Not taken apart" not in answer["rationale"]


@pytest.mark.parametrize(("directs", "apart"), [((0.4, 0.4, 0.01), True), ((0.005, 0.005, 0.2), False)])
def test_estimates_of_all_trials_decide_whether_to_take_apart(serve: Any, directs: Any, apart: bool):
    script = ReasonScript(direct=None, directs=directs, leaves=NEEDED, synthesis=[needed()])
    with serve(script) as workspace:
        answer = ask(workspace, "--trials", "3", "--set", "concurrency=1")
    assert len(script.of("plan")) == apart
    certain = "Not taken apart: the direct estimate is within 3 % of certain."
    assert (certain in answer["rationale"]) == (not apart)


def test_answer_of_several_trials_says_why_it_was_not_taken_apart(serve: Any):
    with serve(ReasonScript(direct=0.2, leaves=NEEDED, structure="single")) as workspace:
        answer = ask(workspace, "--trials", "3", "--set", "concurrency=1")
    assert answer["rationale"].count("Not taken apart: one thing decides it.") == 1
    assert answer["rationale"].count("Not taken apart") == 1


def test_options_share_one_tree(serve: Any):
    rows = [(0.78, 0.17, 0.05), (0.22, 0.70, 0.08), (0.20, 0.15, 0.65)]
    options = ("North", "South", "West")
    then = {f"P{n}": dict(zip(options, row, strict=True)) for n, row in enumerate(rows, start=1)}
    split = {"report": "r", "key_factor": "k", "then": then, "otherwise": dict.fromkeys(options, 1 / 3)}
    direct = dict(zip(options, (0.497, 0.3525, 0.1505), strict=True))
    script = ReasonScript(direct=direct, leaves=(0.50, 0.35, 0.15), kind="split", synthesis=[split], structure="split")
    with serve(script) as workspace:
        answer = ask(workspace, *(part for option in options for part in ("--option", option)))
    assert len(script.of("plan")) == 1
    assert answer["p"] == pytest.approx(direct, abs=1e-6)
    assert "tree 50 %, direct 50 % (agree)" in answer["rationale"]


def test_answered_leaves_use_no_tools(serve: Any):
    script = ReasonScript(
        direct=0.2, leaves=(0.9,) * 6, synthesis=[cases("all", 0.0, [0.0] * 6, 0.97, but=[0.0] * 6)], answered=4
    )
    with serve(script) as workspace:
        ask(workspace)
    researched = {words.partition("# Claim\n\n")[2].partition("\n")[0] for words in script.of("leaf")}
    assert len(researched) == 2
    assert len(script.of("answered")) == 1


def test_own_question_begins_with_the_outside_view(serve: Any):
    script = ReasonScript(direct=0.2, leaves=NEEDED, structure="single")
    live = [part for part in ASKED if part not in ("--as-of", "2026-07-01")]
    with serve(script) as workspace:
        end = workspace.foretell("ask", QUESTION, *live, "--closes", "2099-12-31", "--json")
        assert end.returncode == 0, end.stderr
        answer = json.loads(end.stdout)
        shown = workspace.foretell("show", answer["run"], answer["question_id"], "--json")
    first = script.of("scout")[0]
    assert "# Outside view" in first
    assert "80 % interval" in first
    assert "past cases" in first
    assert "Not taken apart: one thing decides it" in answer["rationale"]
    (stated,) = re.findall(r"About (\d+ %) \(80 % interval", first)
    report = json.loads(shown.stdout)["report"]
    assert f"base rate {stated}" in report.partition("##")[0]


def test_thresholds_of_a_number_have_no_outside_view_from_their_wording(serve: Any):
    script = ReasonScript(direct=0.2, leaves=NEEDED)
    with serve(script) as workspace:
        workspace.foretell("ask", "How many ships will call in 2027?", *ASKED, "--range", "0:200 ships")
    assert "# Outside view" not in script.of("scout")[0]


def test_unusable_cases_leave_the_direct_estimate(serve: Any):
    wrong = cases("all", 0.9, [0.0] * 4, 0.2, but=[0.0] * 4)
    script = ReasonScript(direct=0.3, leaves=NEEDED, synthesis=[wrong])
    with serve(script) as workspace:
        answer = ask(workspace)
    assert len(script.of("cases")) == 3
    assert answer["exit_code"] == 3
    assert answer["p"]["yes"] == pytest.approx(0.3)
    assert (answer["tree"], answer["ranges"]) == (None, {}), "nothing to agree with"
    (problem,) = [note for note in answer["notes"] if "no usable answer in 3 attempts" in note]
    assert len(problem) < 400
    assert "\n" not in problem
    assert "could not be combined" in answer["rationale"]
    assert "agree" not in answer["rationale"]


def test_practice_models_play_every_request(serve: Any, build_workspace: Callable[..., Any]):
    with BackgroundModels(script="foretell.practice.models.scripts:arena_script") as provider:
        workspace = build_workspace(provider.url)
        answer = ask(workspace)
        before = provider.stats()["billed"]
        assert "direct" in answer["rationale"]
        run = workspace.run(workspace.spec(forecaster="reason", trials=2))
        forecasts = workspace.forecasts(run)
        assert len(forecasts) == 6
        assert sum("tree" in forecast.rationale for forecast in forecasts) >= 3
        assert ask(workspace)["p"] == answer["p"]
        assert set(before) <= set(provider.stats()["billed"])
        assert max(provider.stats()["billed"].values()) == 1, "a repeated question pays nothing"


def test_tree_can_be_asked_what_if_without_a_request(serve: Any):
    script = ReasonScript(direct=0.18, leaves=NEEDED, synthesis=[needed()])
    with serve(script) as workspace:
        end = workspace.foretell("tree", "grow", QUESTION.rstrip("?") + ".", *ASKED, "--out", "tree.json")
        assert end.returncode == 0, end.stderr
        before = len(script.asked)
        for change, expected in (("P3=0", 0.0), ("P3=1", 0.394), ("P4=0.95", 0.211)):
            shown = workspace.foretell("tree", "whatif", "tree.json", "--set", change, "--json")
            assert shown.returncode == 0, shown.stderr
            assert json.loads(shown.stdout)["scenarios"][0]["p"] == pytest.approx(expected, abs=5e-4)
    assert len(script.asked) == before


@pytest.mark.parametrize(("intercept", "code", "expected"), [(0.11, 3, None), (-0.05, 0, 0.855)])
def test_strict_linear_rule_of_the_tree(serve: Any, intercept: float, code: int, expected: float | None):
    weights = {"report": "r", "key_factor": "k", "intercept": intercept, "weights": by_child([0.40, 0.35, 0.25])}
    script = ReasonScript(direct=0.5, leaves=(0.90, 0.90, 0.92), synthesis=[weights])
    asked = (*ASKED[:-2], "--rule", "analytica-linear", "--out", "tree.json")
    with serve(script) as workspace:
        end = workspace.foretell("tree", "grow", QUESTION.rstrip("?") + ".", *asked)
        assert end.returncode == code, end.stderr
        tree = read_tree(workspace.folder / "tree.json")
    assert len(script.of("cases")) == (3 if expected is None else 1)
    if expected is not None:
        assert evaluate(tree).p == pytest.approx(expected)


def test_killed_question_resumes_without_paying_twice(build_workspace: Callable[..., Any]):
    with BackgroundModels(script="foretell.practice.models.scripts:tree_script", latency=0.05) as provider:
        workspace = build_workspace(provider.url)
        calm = build_workspace(provider.url, name="calm")
        expected = ask(calm)
        calls = set(provider.stats()["billed"])
        provider.reset()
        child = workspace.start("ask", QUESTION, *ASKED, "--json")
        while child.poll() is None and sum(provider.stats()["billed"].values()) < len(calls) // 2:
            time.sleep(0.01)
        assert child.poll() is None, "it should be killed before its end"
        child.kill()
        child.wait()
        assert ask(workspace)["p"] == expected["p"]
        billed = provider.stats()["billed"]
        assert set(billed) == calls
        with closing(workspace.journal()) as journal:
            assert sum(billed.values()) - len(billed) <= journal.ledger.lost_calls()


# The same numbers and words on pages, in commands and in JSON.


PARTS = ("blind", "tree", "gap", "apart", "changes", "clamped_from", "weights")
CHANGE = {
    "what": "leaf",
    "child": "P2",
    "value": 0.5,
    "reason": "the permit needs <b>a tender</b> first",
    "evidence": ["E1"],
}
APART = {
    **ReasonScript(direct=0, leaves=()).reconciled,
    "report": "The tree adds up ways in; the direct estimate counts how seldom one was taken.",
    "changes": [CHANGE],
}
AGREE_LINES = """\
18 %  yes   range 18–20 %
four conditions in sequence: tree 20 %, direct 18 % (agree)
  P1 65 %   P2 then 69 %   P3 then 50 %   P4 then 90 %
  P3 certain: 39 %   P3 fails: 0 %
"""
APART_LINES = """\
two considerations: tree 48 %, direct 12 % (stay apart)
18 %  yes   range 12–48 %
  P1 50 %   P2 50 %
  P1 certain: 70 %   P1 fails: 26 %
  changed: P2 60 % → 50 % (the permit needs <b>a tender</b> first, E1)
  on the difference: The tree adds up ways in; the direct estimate counts how seldom one was taken.
"""


@pytest.mark.parametrize("apart", [False, True], ids=["agree", "apart"])
def test_pages_commands_and_json_show_the_same(serve: Any, apart: bool):
    testing = pytest.importorskip("fastapi.testclient", reason="fastapi is not installed: pip install 'foretell[web]'")
    from foretell.web.app import create_app

    halves = cases("weigh", 0.05, [0.48, 0.48], 0.91)
    if apart:
        script = ReasonScript(direct=0.12, leaves=(0.5, 0.6), kind="weigh", synthesis=[halves], reconciled=APART)
    else:
        script = ReasonScript(direct=0.18, leaves=NEEDED, synthesis=[needed()])
    with serve(script) as workspace:
        asked = workspace.foretell("ask", QUESTION, *ASKED)
        answer = ask(workspace)
        run, question = answer["run"], answer["question_id"]
        shown, tree = workspace.foretell("show", run, question), workspace.foretell("tree", "show", run)
        shown_json = json.loads(workspace.foretell("show", run, question, "--json").stdout)
        listed = json.loads(workspace.foretell("show", run, "--json").stdout)["questions"][0]
        tree_json = json.loads(workspace.foretell("tree", "show", run, "--json").stdout)
        settings = Settings(home=workspace.home)
        over_mcp = asyncio.run(
            show_stored(ServerPermissions(settings=settings), ShowToolRequest(run=run, question=question))
        )
        with testing.TestClient(create_app(settings, token="t" * 20), base_url="http://127.0.0.1") as client:
            address = f"{run}/questions/{quote(question, safe='')}"
            over_http = client.get(f"/api/runs/{address}").json()
            again = client.get(f"/api/runs/{run}/answer").json()
            pages = [
                client.get(f"/{place}") for place in (f"runs/{address}", f"trees/view/{run}", f"trees/claim/P0/{run}")
            ]
            report = client.get(f"/api/tree/export/markdown/{run}").text
    lines = APART_LINES if apart else AGREE_LINES
    assert asked.stdout.startswith(lines)
    assert asked.stdout.count("P2 60 % → 50 %") == asked.stdout.count(str(APART["report"])) == apart, "said once"
    assert shown.stdout.startswith(lines)
    without_answer = [line for line in lines.splitlines() if " yes " not in line]
    assert tree.stdout.splitlines()[: len(without_answer)] == without_answer

    parts = {name: answer[name] for name in PARTS}
    assert (parts["apart"], parts["clamped_from"]) == (apart, None)
    assert parts["weights"] == {"yes": {"direct": 0.75, "tree": 0.25}}
    for other in (shown_json["combination"], over_mcp["combination"], over_http["combination"], again, listed):
        assert {name: other[name] for name in PARTS} == parts
        assert other["p"] == answer["p"]
    assert {name: tree_json["reconciliation"][name] for name in PARTS if name != "clamped_from"} == {
        name: value for name, value in parts.items() if name != "clamped_from"
    }

    both = "tree 48 %, direct 12 % (stay apart)" if apart else "tree 20 %, direct 18 % (agree)"
    kind = "two considerations" if apart else "four conditions in sequence"
    case = "If both come true the claim has 91 %" if apart else "if only P2 or P3 fails, 0 %"
    turns = ("P1 certain: 70 %", "P1 fails: 26 %") if apart else ("P3 certain: 39 %", "P3 fails: 0 %")
    assert not any("<b>" in page.text for page in pages), "words of a model are shown, not run"
    texts = [html.unescape(page.text) for page in pages]
    reports = [html.unescape(text).replace("\\", "") for text in (report, shown_json["report"])]
    for text in (*texts, *reports):
        assert both in text
        assert kind in text.lower()
        assert case in text
    for words in ("What the direct estimate rests on", "The council discussed the crossing."):
        assert words in texts[0]
        assert words in shown_json["report"]
    for words in ("Several things decide it", "3 parts are easier to look up", "between 3 % and 97 %"):
        assert words in texts[0].partition('id="taken-apart"')[2]
        assert words in shown_json["report"]
    for words in turns:
        assert words in texts[0]
        assert words in shown_json["report"]
    for text in (*texts, *reports):
        assert ("P2 60 % → 50 % (the permit needs <b>a tender</b> first, E1)" in text) == apart
        assert (str(APART["report"]) in text) == apart
    assert ('id="two"' in texts[0]) == apart, "both numbers head the answer where they stay apart"
    assert ('id="direct"' in texts[1]) == apart
