"""`foretell init bot`: the files it writes, and that GitHub will understand them."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from foretell.cli.commands import operation_command
from foretell.operations.init_bot import BOT_FILES
from foretell.questions.errors import InputError
from foretell.runs.spec import read_spec

init = operation_command("init")

WORKFLOW = ".github/workflows/forecast.yml"
EVENTS = {"schedule", "workflow_dispatch", "pull_request"}
JOB = {"runs-on", "timeout-minutes", "env", "steps"}
STEP = {"name", "uses", "with", "run", "env", "if"}


def made(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(init, ["bot", str(folder), *options])


def workflow(folder: Path) -> dict[Any, Any]:
    found = yaml.safe_load((folder / WORKFLOW).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_all_files_are_there_and_no_mark_is_left(tmp_path: Path):
    folder = tmp_path / "my-bot"
    told = made(folder)
    assert told.exit_code == 0, told.output
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == set(BOT_FILES.values())
    for path in folder.rglob("*"):
        assert not path.is_file() or "@@" not in path.read_text(encoding="utf-8")
    assert (folder / "bot.sh").stat().st_mode & 0o100
    assert "my-bot" in (folder / "README.md").read_text(encoding="utf-8")
    assert "METACULUS_TOKEN and OPENROUTER_API_KEY" in told.output


def test_the_workflow_is_one_that_github_takes(tmp_path: Path):
    made(tmp_path / "bot", "--interval", "6")
    found = workflow(tmp_path / "bot")
    # YAML 1.1 reads the word `on` as true.
    assert set(found) == {"name", True, "permissions", "concurrency", "jobs"}
    assert set(found[True]) == EVENTS
    (schedule,) = found[True]["schedule"]
    assert re.fullmatch(r"[0-5]?\d \*/6 \* \* \*", schedule["cron"])
    assert found["permissions"] == {"contents": "read"}
    assert found["concurrency"]["cancel-in-progress"] is False
    (job,) = found["jobs"].values()
    assert set(job) == JOB
    assert job["timeout-minutes"] <= 360
    for step in job["steps"]:
        assert set(step) <= STEP
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w/-]+@[0-9a-f]{40}", step["uses"])
        for expression in re.findall(r"\$\{\{(.*?)\}\}", str(step)):
            assert re.match(r"\s*(secrets|github|env)\.\w+", expression)


def test_pull_requests_send_nothing_and_spend_little(tmp_path: Path):
    made(tmp_path / "bot")
    (job,) = workflow(tmp_path / "bot")["jobs"].values()
    runs = {step["run"]: step["if"] for step in job["steps"] if "bot.sh" in step.get("run", "")}
    assert runs["bash bot.sh"] == "github.event_name != 'pull_request'"
    assert runs["bash bot.sh --dry-run"].startswith("github.event_name == 'pull_request'")
    save = next(step for step in job["steps"] if "cache/save" in step.get("uses", ""))
    restore = next(step for step in job["steps"] if "cache/restore" in step.get("uses", ""))
    assert save["if"].startswith("always()")
    assert save["with"]["path"] == restore["with"]["path"] == ".foretell"
    assert save["with"]["key"].startswith(restore["with"]["restore-keys"])
    small, whole = read_spec(tmp_path / "bot" / "check.yaml"), read_spec(tmp_path / "bot" / "bot.yaml")
    assert small.questions.limit == 1
    assert small.budget.run <= 0.25 <= whole.budget.run


@pytest.mark.parametrize(("dollars", "hours"), [(3.0, 8), (1.0, 3), (0.5, 24), (10.0, 1), (2.0, 12)])
def test_runs_of_a_day_together_keep_to_the_days_budget(tmp_path: Path, dollars: float, hours: int):
    made(tmp_path / "bot", "--budget-per-day", str(dollars), "--interval", str(hours))
    run = read_spec(tmp_path / "bot" / "bot.yaml").budget.run
    assert run is not None
    assert 0 < run * 24 / hours <= dollars + 1e-9


def test_another_engine_takes_another_secret(tmp_path: Path):
    told = made(tmp_path / "bot", "--search", "asknews", "--model", "anthropic:claude-sonnet-4-5")
    assert told.exit_code == 0, told.output
    (job,) = workflow(tmp_path / "bot")["jobs"].values()
    secrets = next(step["env"] for step in job["steps"] if step.get("run") == "bash bot.sh")
    assert set(secrets) == {"METACULUS_TOKEN", "ANTHROPIC_API_KEY", "ASKNEWS_API_KEY"}
    assert all(value == f"${{{{ secrets.{name} }}}}" for name, value in secrets.items())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--interval", "7"), "do not divide the day"),
        (("--search", "local"), "cannot search"),
        (("--model", "local:m.gguf"), "cannot be reached"),
        (("--model", "openai:never-heard-of"), "price"),
        (("--tournament", "a b"), "not the name of a tournament"),
        (("--budget-per-day", "0.02", "--interval", "1"), "less than a cent"),
    ],
)
def test_choices_that_cannot_work_are_refused_before_anything_is_written(
    tmp_path: Path, options: tuple[str, ...], words: str
):
    told = made(tmp_path / "bot", *options)
    assert isinstance(told.exception, InputError)
    assert words in str(told.exception)
    assert not (tmp_path / "bot").exists()


def test_nothing_is_overwritten(tmp_path: Path):
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    told = made(tmp_path)
    assert isinstance(told.exception, InputError)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_the_bots_own_tests_pass(tmp_path: Path):
    made(tmp_path / "bot")
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path / "bot",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 0, told.stdout
