"""`foretell init bot`: the files it writes, and that they are valid for GitHub."""

import csv
import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from foretell.cli.commands import operation_command
from foretell.operations.init_files import BOT_FILES, cron, packed_wheel
from foretell.operations.table import OPERATIONS
from foretell.questions.errors import InputError

init = operation_command("init")

needs_tournament_run = pytest.mark.skipif(
    "tournament run" not in OPERATIONS, reason="the bot calls a command that is not there yet"
)
WORKFLOW = ".github/workflows/forecast.yml"
EVENTS = {"schedule", "workflow_dispatch", "pull_request"}
JOB = {"runs-on", "timeout-minutes", "env", "steps"}
STEP = {"name", "uses", "with", "run", "env", "if"}


ADDRESS = ("--set", "install=git+https://git.example/me/foretell")
"""Avoids packing a wheel, which takes longer than writing all other files."""


def init_bot(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(init, ["bot", str(folder), *options])


def workflow(folder: Path) -> dict[Any, Any]:
    safe_load = yaml.safe_load((folder / WORKFLOW).read_text(encoding="utf-8"))
    assert isinstance(safe_load, dict)
    return safe_load


def test_all_files_are_written_without_placeholders(tmp_path: Path):
    folder = tmp_path / "my-bot"
    result = init_bot(folder)
    assert result.exit_code == 0, result.output
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert names == {*BOT_FILES.values(), "run.schema.json", f"wheels/{wheel_name()}"}
    for name in BOT_FILES.values():
        assert "@@" not in (folder / name).read_text(encoding="utf-8")
    assert (folder / "bot.sh").stat().st_mode & 0o100
    assert "my-bot" in (folder / "README.md").read_text(encoding="utf-8")
    assert "METACULUS_TOKEN and OPENROUTER_API_KEY" in result.output


def wheel_name() -> str:
    return f"foretell-{version('foretell')}-py3-none-any.whl"


def test_the_workflow_has_the_structure_that_github_expects(tmp_path: Path):
    init_bot(tmp_path / "bot", *ADDRESS)
    document = workflow(tmp_path / "bot")
    # YAML 1.1 reads the word `on` as true.
    assert set(document) == {"name", True, "permissions", "concurrency", "jobs"}
    assert set(document[True]) == EVENTS
    (schedule,) = document[True]["schedule"]
    assert schedule["cron"] == "7,27,47 * * * *", "every twenty minutes, and not on the hour"
    assert document[True]["workflow_dispatch"]["inputs"]["test"]["type"] == "boolean"
    assert document["permissions"] == {"contents": "read"}
    assert document["concurrency"]["cancel-in-progress"] is False
    (job,) = document["jobs"].values()
    assert set(job) == JOB
    assert job["timeout-minutes"] <= 360
    for step in job["steps"]:
        assert set(step) <= STEP
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w/-]+@[0-9a-f]{40}", step["uses"])
        for expression in re.findall(r"\$\{\{(.*?)\}\}", str(step)):
            assert re.match(r"\s*(secrets|github|env)\.\w+", expression)


BENCH = ("--for", "forecastbench", "--set", "organization=My Team (A.I.)")
ARENA = ("--for", "prophet-arena")


@pytest.mark.parametrize("options", [(), ("--set", "interval=1440"), BENCH, ARENA])
def test_the_linter_of_workflows_finds_nothing(tmp_path: Path, options: tuple[str, ...]):
    linter = shutil.which("actionlint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if linter is None:
        pytest.skip("actionlint is not installed: pip install 'foretell[dev]'")
    init_bot(tmp_path / "bot", *options, *ADDRESS)
    path = tmp_path / "bot" / WORKFLOW

    def lint() -> subprocess.CompletedProcess[str]:
        # Other linters that it would call differ between machines.
        command = [linter, "-no-color", "-shellcheck=", "-pyflakes=", str(path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    checked = lint()
    assert (checked.returncode, checked.stdout) == (0, "")
    path.write_text(path.read_text().replace("runs-on:", "runs-upon:"))
    assert lint().returncode == 1, "it does look"


def test_each_event_runs_one_step_and_only_that_step_sees_the_secrets(tmp_path: Path):
    init_bot(tmp_path / "bot", *ADDRESS)
    (job,) = workflow(tmp_path / "bot")["jobs"].values()
    runs = {step["run"]: step for step in job["steps"] if "bot.sh" in step.get("run", "")}
    assert runs["bash bot.sh --dry-run --limit 1 --trials 1"]["if"].startswith("github.event_name == 'pull_request' &&")
    assert runs["bash bot.sh --sandbox"]["if"] == "github.event_name == 'workflow_dispatch' && inputs.test"
    assert "pull_request" not in runs["bash bot.sh"]["if"]
    assert all(("env" in step) == ("bot.sh" in step.get("run", "")) for step in job["steps"])
    save = next(step for step in job["steps"] if "cache/save" in step.get("uses", ""))
    restore = next(step for step in job["steps"] if "cache/restore" in step.get("uses", ""))
    pages = next(step for step in job["steps"] if "upload-artifact" in step.get("uses", ""))
    assert save["if"].startswith("always()")
    assert save["with"]["path"] == restore["with"]["path"] == ".foretell"
    assert save["with"]["key"].startswith(restore["with"]["restore-keys"])
    # Folders that begin with a dot are left out by default.
    assert pages["with"]["include-hidden-files"] is True


@pytest.mark.parametrize(("minutes", "times"), [(20, 72), (15, 96), (60, 24), (360, 4), (1440, 1)])
def test_the_schedule_matches_the_interval(minutes: int, times: int):
    minute, hour, *rest = cron(minutes).split()
    hours = 24 // int(hour[2:]) if hour.startswith("*/") else 24 if hour == "*" else 1
    assert len(minute.split(",")) * hours == times
    assert rest == ["*"] * 3


def test_the_budgets_are_in_the_files(tmp_path: Path):
    init_bot(tmp_path / "bot", "--budget", "2", "--set", "tournament_budget=30", *ADDRESS)
    settings = yaml.safe_load((tmp_path / "bot" / "bot.yaml").read_text(encoding="utf-8"))
    assert settings["budget"] == {"run": 2.0, "question": 0.5}
    assert settings["tournament"] == {"budget": 30.0}


def test_foretell_is_installed_from_an_address_a_wheel_or_itself(tmp_path: Path):
    def first_line(folder: str) -> str:
        return (tmp_path / folder / "requirements.txt").read_text(encoding="utf-8").splitlines()[0]

    init_bot(tmp_path / "git", "--set", "install=git+https://git.example/me/foretell@v2")
    assert first_line("git") == "foretell[llm] @ git+https://git.example/me/foretell@v2"
    assert not (tmp_path / "git" / "wheels").exists()
    init_bot(tmp_path / "packed")
    assert first_line("packed") == f"./wheels/{wheel_name()}[llm]"
    packed = tmp_path / "packed" / "wheels" / wheel_name()
    init_bot(tmp_path / "given", "--set", f"install={packed}")
    assert (tmp_path / "given" / "wheels" / wheel_name()).read_bytes() == packed.read_bytes() == packed_wheel()[1]
    for source, words in (("a b", "neither a git address nor a wheel"), ("gone.whl", "no such file")):
        assert words in str(init_bot(tmp_path / "no", "--set", f"install={source}").exception)
    # Every file is in the record with its digest and size.
    with zipfile.ZipFile(packed) as wheel:
        facts = wheel_name().removesuffix("-py3-none-any.whl") + ".dist-info"
        rows = list(csv.reader(wheel.read(f"{facts}/RECORD").decode().splitlines()))
        assert {row[0] for row in rows} == set(wheel.namelist())
        for path, digest, size in rows[:-1]:
            content = wheel.read(path)
            assert len(content) == int(size)
            assert digest == "sha256=" + urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        assert f"Version: {version('foretell')}" in wheel.read(f"{facts}/METADATA").decode()
        assert "foretell = foretell.__main__:main" in wheel.read(f"{facts}/entry_points.txt").decode()
        assert "foretell/operations/templates/bot/bot.sh.template" in wheel.namelist()


def test_another_engine_needs_another_secret(tmp_path: Path):
    chosen = ("--set", "search=asknews", "--set", "model=anthropic:claude-sonnet-4-5")
    result = init_bot(tmp_path / "bot", *chosen, *ADDRESS)
    assert result.exit_code == 0, result.output
    (job,) = workflow(tmp_path / "bot")["jobs"].values()
    secrets = next(step["env"] for step in job["steps"] if step.get("run") == "bash bot.sh")
    assert set(secrets) == {"METACULUS_TOKEN", "ANTHROPIC_API_KEY", "ASKNEWS_API_KEY"}
    assert all(value == f"${{{{ secrets.{name} }}}}" for name, value in secrets.items())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--set", "interval=7"), "divide neither the hour nor the day"),
        (("--set", "search=local"), "cannot search"),
        (("--set", "model=local:m.gguf"), "cannot be reached"),
        (("--set", "model=openai:never-heard-of"), "price"),
        (("--set", "tournament=a b"), "not the name of a tournament"),
        (("--budget", "9", "--set", "tournament_budget=3"), "more than the tournament may cost"),
        (("--set", "trails=3"), "--set trails: there is no such setting (did you mean trials?)"),
        (("--set", "trials=many"), "--set trials"),
        (("--set", "bucket=gs://my-bucket/x"), "--set bucket: has no effect without --for forecastbench"),
    ],
)
def test_choices_that_cannot_work_are_refused_before_anything_is_written(
    tmp_path: Path, options: tuple[str, ...], words: str
):
    result = init_bot(tmp_path / "bot", *options)
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)
    assert not (tmp_path / "bot").exists()


def test_nothing_is_overwritten(tmp_path: Path):
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    result = init_bot(tmp_path)
    assert isinstance(result.exception, InputError)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


@needs_tournament_run
def test_the_bots_own_tests_pass(tmp_path: Path):
    init_bot(tmp_path / "bot")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path / "bot",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("options", "secrets"),
    [
        (BENCH, ["GOOGLE_SERVICE_ACCOUNT_KEY"]),
        (
            (
                *BENCH,
                *("--set", "model=openrouter:openai/gpt-5-mini", "--set", "bucket=gs://forecasts/{round}/us"),
                *("--budget", "3"),
            ),
            ["GOOGLE_SERVICE_ACCOUNT_KEY", "OPENROUTER_API_KEY"],
        ),
        (ARENA, ["ARENA_API_KEY", "OPENROUTER_API_KEY"]),
    ],
)
def test_other_tournaments_have_bots_whose_files_fit_together(
    tmp_path: Path, options: tuple[str, ...], secrets: list[str]
):
    folder = tmp_path / "bot"
    result = init_bot(folder, *options, *ADDRESS)
    assert result.exit_code == 0, result.output
    assert " and ".join(secrets) in result.output
    for path in folder.rglob("*"):
        assert path.is_dir() or "@@" not in path.read_text(encoding="utf-8"), path
    script = (folder / "bot.sh").read_text(encoding="utf-8")
    assert f"exec foretell tournament run {'prophet-arena:weekly' if options == ARENA else 'forecastbench'} " in script
    (job,) = workflow(folder)["jobs"].values()
    secret_names = [list(step["env"]) for step in job["steps"] if "env" in step]
    assert secret_names == [secrets] * 3
    # The bot's own tests, as its workflow runs them.
    document = runpy.run_path(str(folder / "tests" / "test_bot.py"))
    checks = [check for name, check in document.items() if name.startswith("test_")]
    assert len(checks) >= 2
    if "tournament run" not in OPERATIONS:  # The bot calls a command that does not exist yet.
        checks.remove(document["test_foretell_knows_the_command"])
    for check in checks:
        check()
    assert subprocess.run(["bash", "-n", str(folder / "bot.sh")], check=False).returncode == 0
    settings = yaml.safe_load((folder / "bot.yaml").read_text(encoding="utf-8"))
    if options != ARENA:
        assert settings["tournament"]["organization"] == "My Team (A.I.)"
        assert settings["tournament"].get("bucket") in (None, "gs://forecasts/{round}/us")


@pytest.mark.parametrize("code", [0, 1])
def test_the_key_of_the_bucket_is_deleted_even_if_it_is_refused(tmp_path: Path, code: int):
    init_bot(tmp_path / "bot", *BENCH, *ADDRESS)
    programs, left = tmp_path / "bin", tmp_path / "left"
    programs.mkdir()
    left.mkdir()
    for name, end in (("gcloud", code), ("foretell", 0)):
        (programs / name).write_text(f"#!/bin/sh\nexit {end}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    more = {"GOOGLE_SERVICE_ACCOUNT_KEY": "canary", "TMPDIR": str(left), "FORECASTBENCH_TOKEN": ""}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    script = ["bash", str(tmp_path / "bot" / "bot.sh")]
    assert subprocess.run(script, env={**os.environ, **more, "PATH": path}, check=False).returncode == code
    assert not list(left.iterdir())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--for", "forecastbench"), "--set organization: is needed"),
        ((*BENCH, "--set", "bucket=s3://x"), "--set bucket"),
        ((*BENCH, "--budget", "3"), "--budget: has no effect without --set model"),
        ((*BENCH, "--set", "trials=5"), "--set trials: has no effect without --set model"),
        ((*BENCH, "--set", "tournament=cup"), "--set tournament: has no effect without --for metaculus"),
        ((*ARENA, "--set", "tournament=cup"), "weekly or live"),
    ],
)
def test_invalid_bots_are_refused_before_anything_is_written(tmp_path: Path, options: tuple[str, ...], words: str):
    result = init_bot(tmp_path / "bot", *options)
    assert words in str(result.exception)
    assert not (tmp_path / "bot").exists()


@pytest.mark.parametrize("name", ['x"; rm -rf "', "a: b # c", "$(id) `id` ${HOME}", "Ærø\n- x"])
def test_team_names_are_quoted(tmp_path: Path, name: str):
    result = init_bot(tmp_path / "bot", "--for", "forecastbench", "--set", f"organization={name}", *ADDRESS)
    assert result.exit_code == 0, result.output
    settings = yaml.safe_load((tmp_path / "bot" / "bot.yaml").read_text(encoding="utf-8"))
    assert settings["tournament"]["organization"] == name
    assert name not in (tmp_path / "bot" / "bot.sh").read_text(encoding="utf-8")
