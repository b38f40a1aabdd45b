"""`foretell run` and related commands against a counting provider on this machine."""

import csv
import json
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import foretell
from fakes.models import BackgroundModels
from foretell.models.journal import Journal
from foretell.operations.requests.scoring import ScoreRequest
from foretell.operations.score import ScoreResult, score
from foretell.questions.as_of import instant
from foretell.questions.trace import BeliefRevised, LeakBlocked, ModelCalled, ToolUsed
from foretell.runs.settings import load_settings
from foretell.runs.store import RunStore

Build = Callable[..., Any]
CALLS = 6
"""Calls of one trial: search, its filter, summary, its filter, and two steps of the agent, one of which submits."""


def billed(provider: BackgroundModels) -> int:
    return sum(provider.stats()["billed"].values())


def test_forecasts_are_made_from_cited_and_filtered_evidence(workspace: Any):
    run = workspace.run(workspace.spec(trials=2))
    forecasts = workspace.forecasts(run)
    assert [(f.question_id, f.trial) for f in forecasts] == [(f"own/{n}", t) for n in range(3) for t in range(2)]
    assert len({f.p["yes"] for f in forecasts}) == len(forecasts)
    for forecast in forecasts:
        assert "submitted" in forecast.rationale
        assert "[search_1_result_1] Council on" in forecast.rationale
        assert forecast.usage.calls == CALLS
        assert forecast.usage.dollars > 0
    for (question, _trial), events in workspace.events(run).items():
        kinds = [kind for kind, _ in events]
        assert kinds.count(ModelCalled.__name__) == CALLS
        assert kinds.count(BeliefRevised.__name__) == 3
        blocked = [json.loads(body) for kind, body in events if kind == LeakBlocked.__name__]
        assert {event["layer"] for event in blocked} == {"content"}
        used = [json.loads(body) for kind, body in events if kind == ToolUsed.__name__]
        assert [event["tool"] for event in used] == ["web_search", "summarize_results", "submit"]
        seen = " ".join(event["result"] for event in used)
        assert f"number {question.removeprefix('own/')}" in seen
        assert "It was approved" not in seen
        assert "LEAK ME" not in seen


def test_criteria_and_background_reach_the_provider(build_workspace: Build, recorder: Any):
    workspace = build_workspace(recorder.url, count=1)
    workspace.run(workspace.spec())
    (first, *_) = [words for words in recorder.words if "# Question" in words]
    assert "YES if the council announces approval of number 0." in first
    assert "Number 0 was proposed in May." in first
    assert "Today is 2026-07-01" in first


def test_runs_and_show_print_the_run(workspace: Any):
    run = workspace.run(workspace.spec(trials=2))
    listed = workspace.foretell("runs").stdout
    assert run in listed
    assert "3 questions of questions" in listed
    overview = workspace.foretell("show", run[:6]).stdout
    assert (overview.count("own/"), overview.count("as of")) == (3, 3)
    assert "6 forecasts, 0 failed, 0 fallback" in overview
    assert "Will the grain tariff number 1 be approved?" in workspace.foretell("show", run, "tariff number 1").stdout
    steps = workspace.foretell("show", run, "own/1").stdout
    assert "web_search(query='Will the grain tariff number 1 be approved?" in steps
    assert "withheld (content)" in steps
    assert steps.count("(submitted)") == 4  # The event and the rationale, in two trials.
    steps = json.loads(workspace.foretell("show", run, "own/1", "--json").stdout)["steps"]
    assert sum(step["event"] == "ToolUsed" for trial in steps.values() for step in trial) == 6
    missing = workspace.foretell("show", run, "own/9")
    assert (missing.returncode, "has no answer" in missing.stderr) == (2, True)


def test_a_reply_that_several_trials_use_is_counted_once(workspace: Any):
    first = workspace.run(workspace.spec(trials=3))
    second = workspace.run(workspace.spec(trials=4))  # It reuses the replies to three of its trials.
    for run in (first, second):
        with closing(RunStore(workspace.home / "runs.db")) as store:
            calls = [event for _, _, event in store.events(run) if isinstance(event, ModelCalled)]
            cost = store.cost(run)
        distinct = {call.key: call for call in calls}.values()
        assert len(distinct) < len(calls)  # Filters and summaries are shared by the trials of a question.
        with closing(Journal(workspace.home / "journal.db")) as journal:
            assert cost.dollars == pytest.approx(journal.ledger.money(run).billed)
        assert cost.reused == pytest.approx(sum(call.dollars or 0 for call in distinct if call.reused))
        assert cost.calls == len(distinct)
        shown = json.loads(workspace.foretell("show", run, "--json").stdout)
        for name, of in (("billed", "dollars"), ("reused", "reused")):
            assert shown["run"][name] == pytest.approx(getattr(cost, of))
            assert sum(answer["usage"].get(of, 0.0) for answer in shown["answers"]) == pytest.approx(getattr(cost, of))
        outcomes = [{"question": f"own/{n}", "outcome": n % 2} for n in range(3)]
        (workspace.folder / "outcomes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in outcomes))
        settings = load_settings({"FORETELL_HOME": str(workspace.home)})
        scored = score(ScoreRequest(sources=(run,), outcomes=workspace.folder / "outcomes.jsonl"), settings)
        assert isinstance(scored, ScoreResult)
        for forecaster in scored.table.costs.values():
            assert 3 * forecaster.dollars == pytest.approx(cost.worth)


def test_the_same_run_again_pays_nothing(workspace: Any, provider: BackgroundModels):
    spec = workspace.spec()
    workspace.run(spec)
    paid = billed(provider)
    result = workspace.foretell("run", spec.name)
    assert "3 were done before, $0 billed in 0 calls" in result.stdout
    assert provider.stats()["arrived"] == paid


def test_tables_can_be_scored(workspace: Any, tmp_path: Path):
    workspace.run(workspace.spec(trials=2), "--out", "tables")
    with (workspace.folder / "tables" / "forecasts.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    outcomes = tmp_path / "outcomes.csv"
    outcomes.write_text("question,target,outcome\nown/0,yes,1\nown/1,yes,0\nown/2,yes,1\n")
    result = workspace.foretell("score", "-f", "tables/forecasts.csv", "-o", outcomes)
    assert result.returncode == 0, result.stderr
    assert "reason" in result.stdout
    board = foretell.score(workspace.folder / "tables" / "forecasts.csv", outcomes)
    assert {score.forecaster for score in board.scores} >= {"reason"}


def test_replay_needs_neither_provider_nor_key_nor_corpus(build_workspace: Build, canary: str):
    with BackgroundModels(script="foretell.practice.models.scripts:agent_script") as fake:
        workspace = build_workspace(fake.url).with_environment(FRED_API_KEY=canary)
        run = workspace.run(workspace.spec(trials=2))
    (workspace.home / "corpus.db").unlink()
    bare = workspace.with_environment(OPENAI_API_KEY="", FRED_API_KEY="")
    result = bare.foretell("replay", run)
    assert result.returncode == 0, result.stderr
    assert "6 of 6 answers are the same" in result.stdout


def test_replay_reports_replies_missing_from_the_journal(workspace: Any):
    run = workspace.run(workspace.spec())
    journal = workspace.journal()
    journal.database.write("DELETE FROM kept WHERE rowid = (SELECT max(rowid) FROM kept WHERE kind = 'model')")
    journal.close()
    result = workspace.foretell("replay", run)
    assert result.returncode == 1
    assert "2 of 3 answers are the same" in result.stdout


def paid_for(provider: BackgroundModels, workspace: Any, **changes: Any) -> dict[str, int]:
    """Return the completions that one more run costs, by model."""
    provider.reset()
    before = spent_calls(workspace)
    workspace.run(workspace.spec("changed.yaml", **changes))
    new = {name: calls - before.get(name, 0) for name, calls in spent_calls(workspace).items()}
    assert sum(new.values()) == billed(provider)
    return {name: calls for name, calls in new.items() if calls}


def spent_calls(workspace: Any) -> dict[str, int]:
    journal = workspace.journal()
    calls = {name.partition(":")[2]: spend.calls for name, spend in journal.spent().items()}
    journal.close()
    return calls


def test_changing_one_stage_pays_only_for_what_depends_on_it(workspace: Any, provider: BackgroundModels):
    cast = {"agent": "openai:gpt-5-mini", "filter": "openai:gpt-5-nano", "summariser": "openai:gpt-4.1-nano"}
    first = paid_for(provider, workspace, models=cast)
    assert first == {"gpt-5-mini": 9, "gpt-5-nano": 6, "gpt-4.1-nano": 3}
    # Another filter with the same verdicts: the agent sees the same and is not asked again.
    other_filter = paid_for(provider, workspace, models={**cast, "filter": "openai:gpt-4.1"})
    assert other_filter == {"gpt-4.1": 6}
    # Another summariser: its summary is filtered, and the agent's last step reads it. Earlier steps and verdicts on
    # the searches are reused.
    other_summary = paid_for(provider, workspace, models={**cast, "summariser": "openai:gpt-4o-mini"})
    assert other_summary == {"gpt-4o-mini": 3, "gpt-5-nano": 3, "gpt-5-mini": 3}
    # One trial more: it searches with other words but finds passages with known verdicts and summaries.
    assert paid_for(provider, workspace, models=cast, trials=2) == {"gpt-5-mini": 9}
    # The number of steps is in the prompt, so all replies of the agent are new.
    assert paid_for(provider, workspace, models=cast, options={"scout_replies": 4}) == {"gpt-5-mini": 9}
    # Combining trials needs no requests.
    assert paid_for(provider, workspace, models=cast, combine="median") == {}


def test_another_search_engine_is_searched_again(workspace: Any, provider: BackgroundModels, engines: Any):
    workspace.run(workspace.spec())
    away = workspace.with_environment(BRAVE_API_KEY=engines.key, FORETELL_BRAVE_URL=f"{engines.url}/brave")
    run = away.run(away.spec("brave.yaml", search=["brave"]))
    assert len(engines.requests) == 3
    seen = json.dumps(list(workspace.events(run).values()))
    assert "Norges Bank holds rates" in seen
    assert "Council on" not in seen
    assert engines.key not in seen
    result = away.foretell("replay", run)
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(engines.requests) == 3


def test_engines_are_used_in_order(workspace: Any, engines: Any):
    away = workspace.with_environment(BRAVE_API_KEY=engines.key, FORETELL_BRAVE_URL=f"{engines.url}/brave")
    run = away.run(away.spec(search=["local", "brave"]))
    assert engines.requests == []
    assert "Council on" in json.dumps(list(workspace.events(run).values()))


@pytest.mark.parametrize("when", [(), ("--as-of", "2026-07-01")])
def test_ask_answers_with_reasons(workspace: Any, when: tuple[str, ...]):
    question_text = "Will the harbour bridge number 0 be approved?"
    usual = ("--model", "openai:gpt-5-mini", "--search", "local", "--closes", "2031-01-01")
    result = workspace.foretell("ask", question_text, *usual, *when)
    assert result.returncode == 0, result.stderr
    assert "%" in result.stdout
    assert "[search_1_result_1]" in result.stdout
    assert ("Approved: harbour bridge" in result.stdout) == (not when)
    now = datetime.now(UTC).replace(microsecond=0)
    again = workspace.foretell("ask", question_text, *usual, *when, "--json")
    forecast = json.loads(again.stdout)
    assert 0 < forecast["p"]["yes"] < 1
    assert forecast["as_of"].get("mode", "backtest") == ("backtest" if when else "live")
    # Live, the same text is a new question, so the earlier answer is not shown.
    assert (instant(forecast["as_of"]["at"]) >= now) == (not when)


def test_ask_combines_trials(workspace: Any):
    usual = ("--model", "openai:gpt-5-mini", "--search", "local", "--as-of", "2026-07-01")
    question_text = "Will the harbour bridge number 0 be approved?"
    result = workspace.foretell("ask", question_text, *usual, "--trials", "3", "--json")
    assert result.returncode == 0, result.stderr
    forecast = json.loads(result.stdout)
    assert forecast["usage"]["calls"] == 3 * CALLS


def test_panel_reads_the_trials(workspace: Any):
    usual = ("--model", "openai:gpt-5-mini", "--search", "local", "--as-of", "2026-07-01")
    question_text = "Will the harbour bridge number 0 be approved?"
    result = workspace.foretell("ask", question_text, *usual, "--trials", "2", "--set", "combine=judged", "--json")
    assert result.returncode == 0, result.stderr
    forecast = json.loads(result.stdout)
    assert forecast["usage"]["calls"] > 2 * CALLS
    assert "2 trials" in forecast["rationale"]


def test_spent_budget_gives_the_current_estimate(workspace: Any):
    usual = ("--model", "openai:gpt-5-mini", "--search", "local", "--as-of", "2026-07-01")
    words = "Will the harbour bridge number 0 be approved?"
    result = workspace.foretell("ask", words, *usual, "--budget", "0.002", "--json", "--set", "forecaster=agent")
    assert result.returncode == 0, result.stderr
    forecast = json.loads(result.stdout)
    assert "budget" in forecast["rationale"]
    assert "submitted" not in forecast["rationale"]
    assert forecast["usage"]["dollars"] <= 0.002


def test_research_ends_before_its_share_of_the_budget_is_spent(workspace: Any):
    usual = ("--model", "openai:gpt-5-mini", "--search", "local", "--as-of", "2026-07-01")
    words = "Will the harbour bridge number 0 be approved?"
    result = workspace.foretell("ask", words, *usual, "--budget", "0.002", "--json")
    assert result.returncode == 0, result.stderr
    forecast = json.loads(result.stdout)
    assert "(submitted)" in forecast["rationale"]
    assert "the budget does not suffice" in forecast["rationale"]
    assert forecast["usage"]["calls"] < CALLS
    assert forecast["usage"]["dollars"] <= 0.002


def test_ask_without_a_model_gives_the_outside_view_and_says_how_to_get_more(workspace: Any):
    result = workspace.foretell("ask", "Will it snow in Oslo before Christmas?", "--json")
    assert result.returncode == 0, result.stderr
    assert 0 < json.loads(result.stdout)["p"]["yes"] < 1
    assert "foretell models" in result.stderr
    past = workspace.foretell("ask", "Will it be?", "--as-of", "2025-01-01")
    assert past.returncode == 2
    assert "foretell data pull" in past.stderr
    keyless = workspace.with_environment(OPENAI_API_KEY="").foretell(
        "ask", "Will it be?", "--model", "openai:gpt-5-mini"
    )
    assert keyless.returncode == 2
    assert "OPENAI_API_KEY" in keyless.stderr
    assert "Traceback" not in keyless.stderr
