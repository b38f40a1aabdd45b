"""Studies and pilots with models behind real sockets: every reply is paid once, and a study without answers fails."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.e2e.conftest import documents, questions

from fakes.models import BackgroundModels
from fakes.stored_run import run_id_of
from foretell.cli.main import cli
from foretell.questions.errors import InputError
from foretell.questions.resolution import Resolution
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.settings import load_settings
from foretell.runs.store import RunStore

EVENTS = [
    {
        "id": f"own/past-{n}",
        "text": f"Will number {n} pass?",
        "category": "Law" if n % 2 else "Sport",
        "due": "2023-05-01",
        "by": "2023-06-01",
    }
    for n in range(6)
]


@pytest.fixture(scope="module")
def provider() -> Iterator[BackgroundModels]:
    with BackgroundModels(script="foretell.practice.models.scripts:arena_script") as fake:
        yield fake


@pytest.fixture
def place(provider: BackgroundModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    provider.reset()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("FORETELL_OPENAI_URL", f"{provider.url}/v1")
    monkeypatch.delenv("FORETELL_DATABASE_URL", raising=False)
    for name, rows in (("questions", questions(5)), ("articles", documents(5)), ("past", EVENTS)):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    lines = ["question,target,outcome", *(f"own/past-{n},yes,{n % 2}" for n in range(5)), "own/past-5,yes,"]
    Path("outcomes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path("run.yaml").write_text(
        "questions: questions.jsonl\nsearch: [local]\ntrials: 3\nmodels: {agent: 'openai:gpt-5-mini'}\n"
    )
    assert foretell("corpus", "add", "articles.jsonl").exit_code == 0
    return tmp_path


def foretell(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def study(*arguments: str, exit_code: int = 0) -> dict[str, Any]:
    result = foretell("study", *arguments, "--bootstrap", "draws=100", "--json")
    assert result.exit_code == exit_code, (result.output, result.exception)
    return json.loads(result.stdout)


def table(result: dict[str, Any], title: str) -> dict[str, dict[str, Any]]:
    grid = next(grid for grid in result["tables"] if grid["title"] == title)
    return {entry["name"]: entry for entry in grid["rows"]}


PAST = ("--questions", "past.jsonl", "-o", "outcomes.csv")
COMMANDS = {
    "intervention": ("intervention", "run.yaml", "--step", "1"),
    "memorization": ("memorization", *PAST, "--model", "openai:gpt-5-mini"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_repeated_study_costs_nothing(place: Path, provider: BackgroundModels, name: str):
    first = study(*COMMANDS[name], "--budget", "5")
    billed = provider.stats()["billed"]
    assert billed
    assert max(billed.values()) == 1
    assert first["cost"]["dollars"] > 0
    again = study(*COMMANDS[name], "--budget", "5")
    # The same replies, at their original cost.
    worth = first["cost"]["dollars"] + first["cost"]["reused"]
    assert again["cost"] == first["cost"] | {"dollars": 0.0, "reused": pytest.approx(worth)}
    assert again | {"cost": first["cost"]} == first
    assert provider.stats()["billed"] == billed
    charts = {"intervention": {"left", "followed"}, "memorization": set()}[name]
    assert {chart["name"] for chart in first["charts"]} == charts


@pytest.mark.parametrize("name", COMMANDS)
def test_missing_key_is_reported_before_any_call(
    place: Path, provider: BackgroundModels, name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OPENAI_API_KEY")
    result = foretell("study", *COMMANDS[name])
    assert isinstance(result.exception, InputError)
    assert "set OPENAI_API_KEY" in str(result.exception)
    assert provider.stats()["arrived"] == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_provider_that_refuses_everything_is_reported(place: Path, provider: BackgroundModels, name: str):
    provider.fail(*[{"kind": "status", "status": 401, "message": "no such account"}] * 60)
    result = foretell("study", *COMMANDS[name])
    assert isinstance(result.exception, InputError)
    assert "gave no usable answer" in str(result.exception)
    assert "401" in str(result.exception)


def test_intervention_study_by_command(place: Path):
    result = study("intervention", "run.yaml", "--limit", "4", "--step", "1")
    left = table(result, "What is left of a push")
    assert left["in the forecast"]["n"] == 4
    assert left["1 belief later"]["left"]["n_clusters"] == 4
    assert len(table(result, "Every push")) == 4
    assert result["settings"]["step"] == 1
    late = study("intervention", "run.yaml", "--limit", "4", "--step", "9")
    assert late["sentences"][0] == "No pair of trials could be compared."
    assert late["notes"] == ["4 of 4 trials ended at step 9 or before, failed, or stated no belief there"]


def test_intervention_study_requires_the_agent(place: Path):
    assert "Missing argument 'SPEC'" in foretell("study", "intervention").output
    Path("other.yaml").write_text("questions: questions.jsonl\nforecaster: context\nmodels: {agent: 'openai:x'}\n")
    assert "study of the agent" in str(foretell("study", "intervention", "other.yaml").exception)


def test_settings_of_the_agent_can_be_changed(place: Path):
    changes = ("--set", "models.agent=openai:gpt-5", "--set", "questions=past.jsonl")
    result = study("intervention", "run.yaml", *changes, "--limit", "2", "--step", "1")
    assert result["settings"]["model"] == "openai:gpt-5"
    assert {row["name"].partition("/")[0] for row in result["tables"][2]["rows"]} == {"own"}
    wrong = foretell("study", "intervention", "run.yaml", "--set", "modles.agent=a:b")
    assert "--set modles.agent: there is no such setting" in str(wrong.exception)


def test_memorization_study_with_two_models(place: Path, provider: BackgroundModels):
    result = study("memorization", *PAST, "--model", "openai:scholar", "--model", "openai:gpt-5", "--limit", "4")
    rows = table(result, "Recall by model")
    assert rows["openai:scholar"]["n"] == rows["openai:gpt-5"]["n"] == 4
    assert rows["openai:scholar"]["claimed"]["estimate"] == 1
    assert result["cost"]["calls"] == 2 * 4 * 2
    assert "4 of 4 events have no sources and were asked about without them only" in result["notes"]
    few = study("memorization", *PAST, "--model", "openai:gpt-5", "--budget", "0.06")
    assert few["cost"]["calls"] == 10  # five have an outcome; calls wait for each other, so the budget is not exceeded
    assert "known outcome" in str(
        foretell("study", "memorization", "--questions", "questions.jsonl", "--model", "a:b").exception
    )


def test_all_keys_are_checked_before_the_first_call(place: Path, provider: BackgroundModels):
    models = ("--model", "openai:gpt-5", "--model", "anthropic:claude")
    result = foretell("study", "memorization", *PAST, *models)
    assert "ANTHROPIC_API_KEY" in str(result.exception)
    assert provider.stats()["arrived"] == 0


def test_reasoning_study_with_judge_and_ratings(place: Path, provider: BackgroundModels):
    assert foretell("run", "run.yaml").exit_code == 0
    run = run_id_of("run.yaml")
    assert foretell("study", "reasoning", run, "--limit", "6", "--sheet", "sheet.csv").exit_code == 0
    lines = Path("sheet.csv").read_text(encoding="utf-8")
    items = [line.partition(",")[0] for line in lines.splitlines() if line[:16].isalnum() and line[16:17] == ","]
    assert len(items) == 6
    rated = "item,rater,sources,evidence,synthesis,alignment,uncertainty\n"
    for who, mark in (("a", 4), ("b", 5)):
        rated += "".join(f"{item},{who}{f',{mark}' * 5}\n" for item in items)
    Path("rated.csv").write_text(rated, encoding="utf-8")
    provider.reset()
    arguments = ("reasoning", run[:6], "--model", "openai:gpt-5", "--limit", "6", "--ratings", "rated.csv")
    result = study(*arguments, "--budget", "3")
    assert provider.stats()["arrived"] == 6
    marks = table(result, "Marks by forecaster")["reason openai:gpt-5-mini"]
    assert marks["n"] == 6
    assert table(result, "People and judge")["sources"]["ratings"] == 12
    assert table(result, "People among themselves")["sources"]["distance"]["estimate"] == 1
    study(*arguments)
    assert provider.stats()["arrived"] == 6
    provider.fail(*[{"kind": "malformed"}] * 90)
    broken = foretell("study", "reasoning", run, "--model", "openai:stubborn", "--limit", "3")
    assert "gave no usable answer to 3 cases" in str(broken.exception)


def test_consistency_study_with_a_judge(place: Path, provider: BackgroundModels):
    events = [
        {
            "id": f"own/gas-{n}",
            "text": f"How high will gas {n} go?",
            "due": "2026-07-01",
            "by": "2026-12-31",
            "options": ["north first", "south first", "both at once"],
        }
        for n in range(3)
    ]
    Path("gas.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    Path("gas.yaml").write_text("questions: gas.jsonl\nforecaster: context\nmodels: {agent: 'openai:gpt-5-mini'}\n")
    assert foretell("run", "gas.yaml").exit_code == 0
    run = run_id_of("gas.yaml")
    provider.reset()
    result = study("consistency", run, "--judge", "openai:gpt-5", "--budget", "1")
    origins = table(result, "Where the structure comes from")
    assert (
        origins["judge"]["with outcomes that exclude each other"]
        + origins["declared"]["with outcomes that exclude each other"]
        == 3
    )
    assert result["settings"]["judge"] == "openai:gpt-5"


def test_the_sections_of_trajectories_are_read_from_a_stored_run(place: Path):
    assert foretell("run", "run.yaml").exit_code == 0
    run = run_id_of("run.yaml")
    result = study("trajectories", run)
    assert any("Section steps was left out: none of the questions has an outcome" in note for note in result["notes"])
    assert table(result, "Tools by source")["own"]["n"] == 15
    (medians,) = table(result, "Medians per trial").values()
    assert medians["n"] == 15
    assert medians["tok-in"] > 0
    assert medians["chars/step"] > 0, "read from the replies in the journal"
    (spans,) = table(result, "Time spans of the questions").values()
    assert (spans["questions"], spans["most days"]) == (5, 183)
    with closing(RunStore(load_settings().store)) as store:
        asked = store.questions(run)
        ends = [Resolution(question_id=q.id, target_id="yes", due=q.due, outcome=n % 2) for n, q in enumerate(asked)]
        RunOutcomes(store).keep(run, asked, ends)
    steps = table(study("trajectories", run, "--section", "steps"), "Brier score by step")
    assert list(steps) == [str(step) for step in range(len(steps))]
    assert len(steps) > 2
