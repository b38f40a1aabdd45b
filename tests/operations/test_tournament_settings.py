"""Settings of `foretell tournament run`: options, the settings file and its section `tournament`."""

import json
from pathlib import Path
from typing import Any

import pytest

import foretell
from foretell.mcp.permissions import ServerPermissions
from foretell.models.budget import Budget
from foretell.operations.ask import names_model
from foretell.operations.requests.asking import AskRequest
from foretell.operations.requests.tournaments import TournamentRunRequest
from foretell.operations.tournament import tournament_spec
from foretell.questions.errors import InputError
from foretell.request import environment_values
from foretell.runs.settings import Settings
from foretell.runs.spec import BudgetSpec, QuestionsSpec, RunSpec, read_config, read_spec, spec_from_mapping
from foretell.tournaments.settings import ForecastBenchSettings, MetaculusSettings, ProphetArenaSettings
from foretell.tournaments.state import TournamentState

BOT = """
forecaster: agent
models: {agent: "openrouter:openai/gpt-5-mini"}
search: [gdelt]
trials: 3
budget: {run: 1.0, question: 0.25}
tournament:
  budget: 50
  update_after: 7
"""


@pytest.fixture(autouse=True)
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings file of a bot, in the current folder."""
    for name in ("FORETELL_MODEL", "FORETELL_SEARCH", "FORECASTBENCH_BUCKET", "FORECASTBENCH_ORGANIZATION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    path = tmp_path / "bot.yaml"
    path.write_text(BOT, encoding="utf-8")
    return path


def request(tournament: str = "metaculus:cup", **fields: Any) -> TournamentRunRequest:
    return TournamentRunRequest.read({"tournament": tournament, **fields})


def test_the_section_of_the_file_is_changed_by_set_and_is_no_part_of_the_run(bot: Path):
    run_request = request(config=bot, set={"tournament.update_after": "3", "tournament.comment": "public"})
    own = run_request.section(MetaculusSettings)
    assert (own.budget, own.update_after, own.comment) == (50, 3, "public")
    assert request(config=bot, set={"tournament.budget": None}).section(MetaculusSettings).budget is None
    expected = RunSpec(
        questions=QuestionsSpec(dataset="metaculus:cup"),
        models={"agent": "openrouter:openai/gpt-5-mini"},
        search=("gdelt",),
        trials=3,
        mode="live",
        budget=BudgetSpec(run=1.0, question=0.25),
    )
    # The same id as in version 0.2, so that its paid replies are found.
    assert tournament_spec(run_request, "metaculus:cup").id == expected.id == "cb8f228f449f"
    assert tournament_spec(run_request, "metaculus:cup").concurrency == 4


def test_other_commands_leave_the_section_out(bot: Path):
    assert "tournament" not in read_config(bot)
    bot.write_text(f"questions: demo\n{BOT}", encoding="utf-8")
    assert read_spec(bot).trials == 3


def test_options_and_settings_change_the_run(bot: Path):
    changes = {"prices.agent": "0.5/2", "budget.question": 0.1, "concurrency": 9}
    spec = tournament_spec(request(config=bot, model="openai:x", trials=1, budget=2.0, set=changes), "metaculus:cup")
    assert (spec.models["agent"], spec.trials, spec.prices) == ("openai:x", 1, {"openai:x": "0.5/2"})
    assert (spec.budget, spec.concurrency) == (BudgetSpec(run=2.0, question=0.1), 9)


def test_an_option_goes_before_the_file_and_the_file_before_the_environment(bot: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORETELL_MODEL", "openai:environment")
    assert tournament_spec(request(), "q").models["agent"] == "openai:environment"
    assert tournament_spec(request(config=bot), "q").models["agent"] == "openrouter:openai/gpt-5-mini"
    assert tournament_spec(request(config=bot, model="openai:option"), "q").models["agent"] == "openai:option"


def test_no_model_switches_off_that_of_the_file(bot: Path, monkeypatch: pytest.MonkeyPatch):
    chosen = request("forecastbench", config=bot, model="none")
    assert "agent" not in chosen.settings()["models"]
    assert chosen.unused_without_model() is None
    asked = AskRequest.read({"question": "Will it snow?", "config": bot, "model": "none"})
    assert not names_model(asked)
    monkeypatch.setenv("FORETELL_MODEL", "none")
    assert request(config=bot).settings()["models"]["agent"] == "openrouter:openai/gpt-5-mini"
    assert "agent" not in request("forecastbench", config=bot, model="none").settings()["models"]


def test_none_in_the_environment_is_no_model(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORETELL_MODEL", "none")
    assert not names_model(AskRequest.read({"question": "Will it snow?"}))
    assert "models" not in request("forecastbench").settings()
    with pytest.raises(InputError, match="no model is named"):
        tournament_spec(request(), "q")
    assert "model" not in environment_values(AskRequest)  # Pages and the MCP server offer it as the usual model.
    with pytest.raises(InputError, match=r"models\.agent is the same as --model"):
        request(model="openai:x", set={"models.agent": "openai:y"})


def test_a_file_without_a_model_is_not_changed_by_the_environment(bot: Path, monkeypatch: pytest.MonkeyPatch):
    bot.write_text("models: {agent: none}\ntournament: {organization: Us}\n", encoding="utf-8")
    for usual in ("", "openai:gpt-5-mini", "none"):
        monkeypatch.setenv("FORETELL_MODEL", usual)
        chosen = request("forecastbench", config=bot)
        assert "agent" not in chosen.settings()["models"]
        assert chosen.unused_without_model() is None
        assert not names_model(AskRequest.read({"question": "Will it snow?", "config": bot}))
        assert names_model(AskRequest.read({"question": "Will it snow?", "config": bot, "model": "openai:x"}))
        assert request("forecastbench", config=bot, model="openai:x").settings()["models"]["agent"] == "openai:x"
    assert spec_from_mapping({"questions": "demo", "models": {"agent": "none"}}).models == {}


def test_environment_variables_set_keys_of_a_platform(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORECASTBENCH_ORGANIZATION", "Us")
    monkeypatch.setenv("FORECASTBENCH_BUCKET", "gs://b/f")
    monkeypatch.setenv("ARENA_AGENT", "me")
    bench = request("forecastbench").section(ForecastBenchSettings)
    assert (bench.organization, bench.bucket) == ("Us", "gs://b/f")
    assert request("prophet-arena:live").section(ProphetArenaSettings).agent == "me"
    request().section(MetaculusSettings)


@pytest.mark.parametrize(
    ("tournament", "changes", "problem"),
    [
        ("metaculus:cup", {"tournament.updat_after": 3}, "no such setting (did you mean tournament.update_after"),
        ("metaculus:cup", {"tournament.bucket": "gs://b/f"}, "is a setting of forecastbench, not of metaculus"),
        ("forecastbench", {"tournament.update_after": 3}, "is a setting of metaculus and prophet-arena, not of fore"),
        ("metaculus:cup", {"tournament.update_after": 0}, "tournament.update_after: must be more than 0, not 0"),
        (
            "metaculus:cup",
            {"update_after": 3},
            "set.update_after: there is no such setting (did you mean tournament.",
        ),
        ("metaculus:cup", {"tournament": {"budget": 3}}, "is a section (write tournament.KEY=VALUE)"),
        ("metaculus", {}, "names no tournament: write its slug or number, such as metaculus:minibench"),
        ("prophet-arena:daily", {}, "there is no track 'daily': write prophet-arena:weekly or prophet-arena:live"),
        ("prophet_arena:weekly", {}, "there is no platform 'prophet_arena': did you mean prophet-arena?"),
    ],
)
def test_a_wrong_key_or_tournament_gets_a_suggestion(tournament: str, changes: dict[str, Any], problem: str):
    with pytest.raises(InputError) as raised:
        foretell.enter_tournament(tournament, model="openai:x", set=changes)
    assert problem in str(raised.value)


def test_a_wrong_key_in_the_file_is_named_with_the_file(bot: Path):
    bot.write_text("tournament: {budgt: 5}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"bot\.yaml, field tournament\.budgt: there is no such setting \(did you"):
        request(config=bot).section(MetaculusSettings)
    bot.write_text("tournament: 5\n", encoding="utf-8")
    with pytest.raises(InputError, match="is not a section with keys"):
        request(config=bot).section(MetaculusSettings)


def test_a_state_of_version_0_2_is_read(tmp_path: Path):
    state = {
        "visits": [{"at": "2026-11-15T10:00:00+00:00", "run": "abc", "dollars": 0.25, "rows": []}],
        "pending": {},
        "outbox": [],
        "texts": {},
        "made": {"metaculus/101": "2026-11-15T10:00:00+00:00"},
        "runs": ["abc"],
    }
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state), encoding="utf-8")
    read = TournamentState.read(path)
    assert (read.runs, read.made, len(read.visits)) == (["abc"], state["made"], 1)


@pytest.mark.parametrize(
    ("tournament", "fields", "problem"),
    [
        ("metaculus:cup", {}, "does not submit forecasts"),
        ("metaculus:cup", {"sandbox": True}, "does not submit forecasts"),
        ("forecastbench", {"plan": True, "config": "bot.yaml"}, "is not on offer here"),
        ("forecastbench", {"sandbox": True, "set": {"tournament.folder": "/tmp"}}, "this server does not offer it"),
        ("metaculus:cup", {"plan": True, "model": "openai:other"}, "'openai:other' is not on offer"),
        ("metaculus:cup", {"plan": True, "set": {"models.filter": "openai:other"}}, "'openai:other' is not on offer"),
        ("metaculus:cup", {"plan": True, "trials": 11}, "at most 10 are permitted here"),
        ("metaculus:cup", {"plan": True}, None),
        ("forecastbench", {"sandbox": True, "model": "none"}, None),
    ],
)
def test_an_mcp_server_only_allows_plans_and_sandbox_runs(
    tmp_path: Path, tournament: str, fields: dict[str, Any], problem: str | None
):
    settings = Settings(home=tmp_path, budget=Budget("server", dollars=1.0))
    permissions = ServerPermissions(settings=settings, models=("openai:gpt-5-mini",), search=("local",))
    run_request = request(tournament, **{"model": "openai:gpt-5-mini", **fields})
    if problem is None:
        assert permissions.check_tournament(run_request) == run_request
        return
    with pytest.raises(InputError) as raised:
        permissions.check_tournament(run_request)
    assert problem in str(raised.value)
