"""`foretell run` and its kin as a user has them: real processes against a counting provider on this machine."""

import csv
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import foretell
from fakes.models import BackgroundModels
from foretell.questions import BeliefRevised, LeakBlocked, ModelCalled, ToolUsed, instant

Build = Callable[..., Any]
CALLS = 6
"""Of one cell: search, its filter, summary, its filter, and two more steps of the agent, one of which submits."""


def billed(provider: BackgroundModels) -> int:
    return sum(provider.stats()["billed"].values())


def test_forecasts_are_made_from_cited_and_fenced_evidence(house: Any):
    run = house.run(house.spec(trials=2))
    made = house.forecasts(run)
    assert [(f.question_id, f.trial) for f in made] == [(f"own/{n}", t) for n in range(3) for t in range(2)]
    assert len({f.p["yes"] for f in made}) == len(made)
    for forecast in made:
        assert "submitted" in forecast.rationale
        assert "[search_1_result_1] Council on" in forecast.rationale
        assert forecast.usage.calls == CALLS
        assert forecast.usage.dollars > 0
    for (question, _trial), told in house.events(run).items():
        kinds = [kind for kind, _ in told]
        assert kinds.count(ModelCalled.__name__) == CALLS
        assert kinds.count(BeliefRevised.__name__) == 3
        blocked = [json.loads(body) for kind, body in told if kind == LeakBlocked.__name__]
        assert {one["layer"] for one in blocked} == {"content"}
        used = [json.loads(body) for kind, body in told if kind == ToolUsed.__name__]
        assert [one["tool"] for one in used] == ["web_search", "summarize_results", "submit"]
        seen = " ".join(one["result"] for one in used)
        assert f"number {question.removeprefix('own/')}" in seen
        assert "It was approved" not in seen
        assert "LEAK ME" not in seen


def test_criteria_and_background_reach_the_provider(build_house: Build, recorder: Any):
    house = build_house(recorder.url, count=1)
    house.run(house.spec())
    (first, *_) = [words for words in recorder.words if "# Question" in words]
    assert "YES if the council announces approval of number 0." in first
    assert "Number 0 was proposed in May." in first
    assert "Today is 2026-07-01" in first


def test_runs_and_show_tell_what_happened(house: Any):
    run = house.run(house.spec(trials=2))
    listed = house.foretell("runs").stdout
    assert run in listed
    assert "questions.jsonl" in listed
    overview = house.foretell("show", run[:6]).stdout
    assert (overview.count("own/"), overview.count("as of")) == (3, 3)
    assert "6 forecasts, 0 failed, 0 degraded" in overview
    assert "Will the grain tariff number 1 be approved?" in house.foretell("show", run, "tariff number 1").stdout
    steps = house.foretell("show", run, "own/1").stdout
    assert "web_search(query='Will the grain tariff number 1 be approved?" in steps
    assert "withheld (content)" in steps
    assert steps.count("(submitted)") == 4  # The event and the rationale, in two trials.
    steps = json.loads(house.foretell("show", run, "own/1", "--json").stdout)["steps"]
    assert sum(step["event"] == "ToolUsed" for trial in steps.values() for step in trial) == 6
    missing = house.foretell("show", run, "own/9")
    assert (missing.returncode, "has no answer" in missing.stderr) == (2, True)


def test_the_same_run_again_pays_nothing(house: Any, provider: BackgroundModels):
    spec = house.spec()
    house.run(spec)
    paid = billed(provider)
    told = house.foretell("run", spec.name)
    assert "3 were done before, $0.0000 billed in 0 calls" in told.stdout
    assert provider.stats()["arrived"] == paid


def test_tables_can_be_scored(house: Any, tmp_path: Path):
    house.run(house.spec(trials=2), "--out", "tables")
    with (house.folder / "tables" / "forecasts.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    outcomes = tmp_path / "outcomes.csv"
    outcomes.write_text("question,target,outcome\nown/0,yes,1\nown/1,yes,0\nown/2,yes,1\n")
    told = house.foretell("score", "-f", "tables/forecasts.csv", "-o", outcomes)
    assert told.returncode == 0, told.stderr
    assert "full+crowd+prior" in told.stdout
    board = foretell.score(house.folder / "tables" / "forecasts.csv", outcomes)
    assert {score.forecaster for score in board.scores} >= {"full+crowd+prior"}


def test_replay_needs_neither_provider_nor_key_nor_corpus(build_house: Build, canary: str):
    with BackgroundModels(script="foretell.practice.models.scripts:agent_script") as fake:
        house = build_house(fake.url).with_environment(FRED_API_KEY=canary)
        run = house.run(house.spec(trials=2))
    (house.home / "corpus.db").unlink()
    bare = house.with_environment(OPENAI_API_KEY="", FRED_API_KEY="")
    told = bare.foretell("replay", run)
    assert told.returncode == 0, told.stderr
    assert "6 of 6 answers are the same" in told.stdout


def test_replay_says_so_where_the_journal_lacks_something(house: Any):
    run = house.run(house.spec())
    journal = house.journal()
    journal.database.write("DELETE FROM kept WHERE rowid = (SELECT max(rowid) FROM kept WHERE kind = 'model')")
    journal.close()
    told = house.foretell("replay", run)
    assert told.returncode == 1
    assert "2 of 3 answers are the same" in told.stdout


def paid_for(provider: BackgroundModels, house: Any, **changes: Any) -> dict[str, int]:
    """Completions that one more run costs, by the model that was asked."""
    provider.reset()
    before = spent_calls(house)
    house.run(house.spec("changed.yaml", **changes))
    new = {name: calls - before.get(name, 0) for name, calls in spent_calls(house).items()}
    assert sum(new.values()) == billed(provider)
    return {name: calls for name, calls in new.items() if calls}


def spent_calls(house: Any) -> dict[str, int]:
    journal = house.journal()
    found = {name.partition(":")[2]: spend.calls for name, spend in journal.spent().items()}
    journal.close()
    return found


def test_changing_one_stage_pays_only_for_what_depends_on_it(house: Any, provider: BackgroundModels):
    cast = {"agent": "openai:gpt-5-mini", "filter": "openai:gpt-5-nano", "summariser": "openai:gpt-4.1-nano"}
    first = paid_for(provider, house, models=cast)
    assert first == {"gpt-5-mini": 9, "gpt-5-nano": 6, "gpt-4.1-nano": 3}
    # Another filter that comes to the same verdicts: the agent sees the same and is not asked again.
    other_filter = paid_for(provider, house, models={**cast, "filter": "openai:gpt-4.1"})
    assert other_filter == {"gpt-4.1": 6}
    # Another summariser: its summary goes past the filter, and the agent's last step has read it. The steps before
    # and the verdicts on the searches stand.
    other_summary = paid_for(provider, house, models={**cast, "summariser": "openai:gpt-4o-mini"})
    assert other_summary == {"gpt-4o-mini": 3, "gpt-5-nano": 3, "gpt-5-mini": 3}
    # One trial more: it searches with other words but finds passages whose verdicts and summaries are known.
    assert paid_for(provider, house, models=cast, trials=2) == {"gpt-5-mini": 9}
    # The number of steps is told in the prompt, so that everything the agent says is new.
    assert paid_for(provider, house, models=cast, options={"steps": 5}) == {"gpt-5-mini": 9}
    # How trials are put together is decided here.
    assert paid_for(provider, house, models=cast, combine="median") == {}


def test_another_search_engine_is_asked_anew(house: Any, provider: BackgroundModels, engines: Any):
    house.run(house.spec())
    away = house.with_environment(BRAVE_API_KEY=engines.key, FORETELL_BRAVE_URL=f"{engines.url}/brave")
    run = away.run(away.spec("brave.yaml", search=["brave"]))
    assert len(engines.requests) == 3
    seen = json.dumps(list(house.events(run).values()))
    assert "Norges Bank holds rates" in seen
    assert "Council on" not in seen
    assert engines.key not in seen
    told = away.foretell("replay", run)
    assert told.returncode == 0, told.stdout + told.stderr
    assert len(engines.requests) == 3


def test_engines_are_asked_in_turn(house: Any, engines: Any):
    away = house.with_environment(BRAVE_API_KEY=engines.key, FORETELL_BRAVE_URL=f"{engines.url}/brave")
    run = away.run(away.spec(search=["local", "brave"]))
    assert engines.requests == []
    assert "Council on" in json.dumps(list(house.events(run).values()))


@pytest.mark.parametrize("when", [(), ("--as-of", "2026-07-01")])
def test_ask_answers_with_reasons(house: Any, when: tuple[str, ...]):
    asked = "Will the harbour bridge number 0 be approved?"
    usual = ("--model", "openai:gpt-5-mini", "--search", "local", "--closes", "2031-01-01")
    told = house.foretell("ask", asked, *usual, *when)
    assert told.returncode == 0, told.stderr
    assert "%" in told.stdout
    assert "[search_1_result_1]" in told.stdout
    assert ("Approved: harbour bridge" in told.stdout) == (not when)
    now = datetime.now(UTC).replace(microsecond=0)
    again = house.foretell("ask", asked, *usual, *when, "--json")
    forecast = json.loads(again.stdout)
    assert 0 < forecast["p"]["yes"] < 1
    assert forecast["as_of"].get("mode", "backtest") == ("backtest" if when else "live")
    # Live, the same words asked again are a new question: what is shown is not the answer of a moment ago.
    assert (instant(forecast["as_of"]["at"]) >= now) == (not when)


def test_ask_combines_trials(house: Any):
    usual = ("--model", "openai:gpt-5-mini", "--search", "local", "--as-of", "2026-07-01")
    asked = "Will the harbour bridge number 0 be approved?"
    told = house.foretell("ask", asked, *usual, "--trials", "3", "--json")
    assert told.returncode == 0, told.stderr
    forecast = json.loads(told.stdout)
    assert forecast["usage"]["calls"] == 3 * CALLS


def test_a_panel_may_read_the_trials(house: Any):
    usual = ("--model", "openai:gpt-5-mini", "--search", "local", "--as-of", "2026-07-01")
    asked = "Will the harbour bridge number 0 be approved?"
    told = house.foretell("ask", asked, *usual, "--trials", "2", "--set", "combine=judged", "--json")
    assert told.returncode == 0, told.stderr
    forecast = json.loads(told.stdout)
    assert forecast["usage"]["calls"] > 2 * CALLS
    assert "2 trials" in forecast["rationale"]


def test_a_spent_budget_ends_in_the_standing_belief(house: Any):
    usual = ("--model", "openai:gpt-5-mini", "--search", "local", "--as-of", "2026-07-01")
    words = "Will the harbour bridge number 0 be approved?"
    told = house.foretell("ask", words, *usual, "--budget", "0.0016", "--json")
    assert told.returncode == 0, told.stderr
    forecast = json.loads(told.stdout)
    assert "budget" in forecast["rationale"]
    assert "submitted" not in forecast["rationale"]
    assert forecast["usage"]["dollars"] <= 0.0016


def test_ask_without_a_model_gives_the_outside_view_and_says_how_to_get_more(house: Any):
    told = house.foretell("ask", "Will it snow in Oslo before Christmas?", "--json")
    assert told.returncode == 0, told.stderr
    assert 0 < json.loads(told.stdout)["p"]["yes"] < 1
    assert "foretell models" in told.stderr
    past = house.foretell("ask", "Will it be?", "--as-of", "2025-01-01")
    assert past.returncode == 2
    assert "foretell data pull" in past.stderr
    keyless = house.with_environment(OPENAI_API_KEY="").foretell("ask", "Will it be?", "--model", "openai:gpt-5-mini")
    assert keyless.returncode == 2
    assert "OPENAI_API_KEY" in keyless.stderr
    assert "Traceback" not in keyless.stderr
