"""Ways to start `foretell run`: plan, prompts, pilot, retry and repetition."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.e2e.conftest import documents, questions

import foretell
from fakes.models import BackgroundModels
from foretell.cli.main import cli
from foretell.operations.requests.runs import RunRequest
from foretell.operations.run import prepare
from foretell.questions.errors import InputError
from foretell.runs.settings import load_settings
from foretell.types import RunPlan

REFUSED = {"kind": "status", "status": 401, "message": "no such account"}


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
    for name, rows in (("questions", questions(5)), ("articles", documents(5))):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    Path("run.yaml").write_text(
        "questions: questions.jsonl\nsearch: [local]\ntrials: 3\nmodels: {agent: 'openai:gpt-5-mini'}\n"
    )
    assert command("corpus", "add", "articles.jsonl").exit_code == 0
    return tmp_path


def command(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def answer(*arguments: str, exit_code: int = 0) -> dict[str, Any]:
    result = command(*arguments, "--json")
    assert result.exit_code == exit_code, (result.output, result.exception)
    return json.loads(result.stdout)


def table(report: dict[str, Any], title: str) -> dict[str, dict[str, Any]]:
    grid = next(grid for grid in report["tables"] if grid["title"] == title)
    return {row["name"]: row for row in grid["rows"]}


def test_a_plan_says_what_a_run_costs_and_starts_nothing(
    place: Path, provider: BackgroundModels, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OPENAI_API_KEY")
    plan = answer("run", "run.yaml", "--plan", "--set", "budget.run=2")
    assert (plan["questions"], plan["trials"], plan["open"], plan["most"]) == (5, 3, 15, 2)
    assert plan["dollars"] > 0
    assert plan["calls"] > 15
    assert plan["seconds"] > 0
    assert plan["prompts"] == []
    assert "rough guess" in plan["basis"]
    assert foretell.list_runs().total == 0
    assert provider.stats()["arrived"] == 0
    each = answer("run", "run.yaml", "--plan", "--set", "budget.question=0.1")
    assert each["most"] == pytest.approx(0.5)
    text = command("run", "run.yaml", "--plan").stdout
    assert "5 questions × 3 trials, 15 to do" in text
    assert "no budget is set" in text


def test_a_plan_counts_what_is_done_and_measures_its_cost(place: Path):
    done = answer("run", "run.yaml", "--set", "trials=1")
    plan = answer("run", "run.yaml", "--plan")
    assert (plan["open"], plan["basis"]) == (15, "measured on 5 trials like this on this machine")
    again = foretell.run(done["run"], plan=True)
    assert isinstance(again, RunPlan)
    assert (again.open, again.money) == (0, "costs nothing")
    assert "0 to do, 5 done before" in str(again)


def test_a_plan_shows_the_prompts_of_this_run(place: Path, provider: BackgroundModels):
    plan = answer("run", "run.yaml", "--plan", "--prompts", "--set", "options.variant=zero-shot")
    (first,) = plan["prompts"]
    assert first["role"] == "agent"
    assert questions(5)[0]["text"] in first["text"]
    assert "tool web_search" not in first["text"]
    searching = answer("run", "run.yaml", "--plan", "--prompts", "--set", "combine=judged")["prompts"]
    roles = [prompt["role"] for prompt in searching]
    assert roles[:2] == ["agent, scout", "analyzer, plan"]
    assert roles[-3:] == ["filter", "summariser", "judge"]
    assert "tool web_search" in searching[0]["text"]
    single = answer(
        "run", "run.yaml", "--plan", "--prompts", "--set", "combine=judged", "--set", "trials=1"
    )["prompts"]  # fmt: skip
    assert "judge" not in [prompt["role"] for prompt in single], "one trial has nothing to compare"
    tree = answer("run", "run.yaml", "--plan", "--prompts", "--set", "forecaster=tree", "--set", "options.rule=average")
    assert [prompt["role"] for prompt in tree["prompts"]][:2] == ["analyzer", "grounder"]
    assert provider.stats()["arrived"] == 0
    assert foretell.list_runs().total == 0


def test_a_question_is_planned_with_and_without_a_model(place: Path, provider: BackgroundModels):
    plan = answer("ask", "Will it rain?", "--model", "openai:gpt-5-mini", "--trials", "4", "--budget", "1", "--plan")
    assert (plan["questions"], plan["open"], plan["most"]) == (1, 4, 1)
    assert plan["dollars"] > 0
    free = foretell.ask("Will it rain?", model="none", plan=True)
    assert (free.dollars, free.money) == (0, "costs nothing")
    assert provider.stats()["arrived"] == 0
    assert foretell.list_runs().total == 0


def test_a_pilot_says_whether_the_run_works_and_what_it_will_cost(place: Path):
    report = answer("run", "run.yaml", "--pilot", "2")
    assert (report["questions"], report["trials"], report["done"]) == (2, 1, 2)
    pilot = report["pilot"]
    assert pilot["passed"] is True
    assert all(row["passed"] == "yes" for row in table(pilot, "The pilot").values())
    cost = table(pilot, "What the run will cost")["planned"]
    each = table(pilot, "Cost per trial")["openai:gpt-5-mini"]["$ per trial"]["estimate"]
    assert cost["trials"] == 15
    assert cost["$ in all"] == pytest.approx(15 * each)
    (stored,) = foretell.list_runs(find="tag:pilot").stored
    assert stored.id == report["run"]
    # The same pilot again reads the same answers.
    assert answer("run", "run.yaml", "--pilot", "2")["run"] == report["run"]


def test_the_run_after_a_pilot_does_not_pay_for_it_again(place: Path, provider: BackgroundModels):
    answer("run", "run.yaml", "--pilot", "5")
    paid = provider.stats()["arrived"]
    assert answer("run", "run.yaml")["done"] == 15
    assert max(provider.stats()["billed"].values()) == 1
    assert paid < provider.stats()["arrived"] <= 3 * paid, "of three trials the first was there"


def test_a_pilot_of_a_model_that_fails_exits_with_1(place: Path, provider: BackgroundModels):
    provider.fail(*[REFUSED] * 60)
    pilot = answer("run", "run.yaml", "--pilot", "3", exit_code=1)["pilot"]
    assert pilot["sentences"][0].startswith("Failed: 3 of 3 trials failed")
    assert table(pilot, "The pilot")["trials completed"]["passed"] == "no"
    assert any("401" in note for note in pilot["notes"])


def test_a_pilot_of_a_model_without_a_price_names_no_cost(place: Path):
    chosen = ("--set", "models.agent=openai:nobody-knows")
    pilot = answer("run", "run.yaml", "--pilot", "2", *chosen)["pilot"]
    assert table(pilot, "What the run will cost")["planned"]["$ in all"] is None
    assert any("no known price" in note for note in pilot["notes"])


def test_a_pilot_without_a_model_is_refused(place: Path):
    spec = {"questions": "questions.jsonl", "forecaster": "always"}
    with pytest.raises(InputError, match="field pilot: this forecaster uses no model"):
        foretell.run(spec, pilot=2)


def test_only_what_failed_is_retried(place: Path, provider: BackgroundModels):
    provider.fail(*[REFUSED] * 4)
    first = answer("run", "run.yaml", "--set", "concurrency=1", "--set", "trials=1", exit_code=3)
    assert first["failed"]
    (listed,) = foretell.list_runs(find="state:partial").stored
    assert "partial" in str(foretell.list_runs())
    with pytest.raises(InputError, match=r"nothing failed for that reason .it is one of: .*401"):
        foretell.run(listed.id, only_failed="bad weather")
    plan = answer("run", listed.id, "--only-failed", "--plan")
    assert plan["open"] == first["failed"]
    done = answer("run", listed.id, "--only-failed")
    assert (done["done"], done["failed"]) == (first["failed"], 0)
    with pytest.raises(InputError, match=r"nothing failed for that reason .nothing has failed"):
        foretell.run(listed.id, only_failed="any")


def test_concurrency_is_no_part_of_a_run_and_can_be_changed(place: Path):
    settings, spec = load_settings(), {"questions": "questions.jsonl", "forecaster": "always"}
    first = prepare(RunRequest(spec=spec, set={"concurrency": 3}), settings)
    assert foretell.run(spec, set={"concurrency": 3}).run == first.spec.id
    for chosen, expected in (({}, 50), ({"concurrency": 7}, 7)):
        for request in (RunRequest(spec=spec, set=chosen), RunRequest(spec=Path(first.spec.id), set=chosen)):
            again = prepare(request, settings)
            stored = 3 if isinstance(request.spec, Path) and not chosen else expected
            assert (again.spec.id, again.spec.concurrency) == (first.spec.id, stored)
    assert foretell.run(spec).progress.skipped == 5
    assert foretell.list_runs().total == 1


def test_settings_of_a_file_are_changed_for_one_run(place: Path):
    done = answer("run", "run.yaml", "--set", "trials=1", "--set", "questions.limit=2", "--out", "tables")
    assert (done["questions"], done["trials"]) == (2, 1)
    assert {path.name for path in Path("tables").iterdir()} == {"forecasts.csv", "outcomes.csv"}
    for change, message in (("trails=2", "did you mean trials"), ("options.take_part=1", "did you mean take_apart")):
        assert message in str(command("run", "run.yaml", "--set", change).exception)


def test_a_run_is_found_by_name_before_a_missing_file(place: Path):
    with pytest.raises(InputError, match=r"no run is named 'autumn'.*a settings file ends in .yaml"):
        foretell.run("autumn")
    with pytest.raises(InputError, match="no such file"):
        foretell.run("autumn.yaml")
    assert load_settings().home == place / "home"


def test_replay_takes_a_tree_and_a_run_before_a_tree_of_that_name(place: Path):
    tree = {"schema": "foretell/tree/1", "root": "P0", "nodes": {"P0": {"claim": "The bridge opens.", "p": 0.5}}}
    Path("t.json").write_text(json.dumps(tree))
    trees = place / "home" / "trees"
    trees.mkdir(parents=True)
    (trees / "autumn.json").write_text(json.dumps(tree))
    for name in ("t.json", "autumn"):
        with pytest.raises(InputError, match="no leaf of this tree has a notebook"):
            foretell.replay(name)
    with pytest.raises(InputError, match="field dataset: has no effect on a tree"):
        foretell.replay("autumn", dataset="questions.jsonl")
    with pytest.raises(InputError, match="no run is named 'winter'"):
        foretell.replay("winter")
    run = foretell.run({"questions": "questions.jsonl", "forecaster": "always"}).run
    foretell.edit_run(run, name="autumn")
    replayed = foretell.replay("autumn")
    assert (replayed.ok, str(replayed)) == (True, "5 of 5 answers are the same, from the journal alone")
