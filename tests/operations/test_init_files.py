"""Settings files of `foretell init`: commented, with a schema for editors, and they run unchanged without a key."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from foretell.arena.spec import read_arena
from foretell.cli.main import cli
from foretell.operations.init_files import spec_schema
from foretell.questions.errors import InputError
from foretell.runs.spec import read_spec, spec_from_mapping

KINDS = {"run": "run.yaml", "grid": "grid.yaml", "arena": "arena.yaml", "bot": "bot.yaml"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_names_its_schema_is_explained_and_runs_as_it_is(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    words = ["init", kind, *(["--set", "install=git+https://example.org/x"] if kind == "bot" else [])]
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    text = Path(KINDS[kind]).read_text(encoding="utf-8")
    first, *rest = text.splitlines()
    schema: dict[str, Any] = json.loads(Path(first.partition("$schema=")[2]).read_text(encoding="utf-8"))
    assert first.startswith("# yaml-language-server:")
    assert sum("#" in line for line in rest) >= 3
    body = yaml.safe_load(text)
    check = jsonschema.Draft202012Validator(schema)
    assert not list(check.iter_errors(body))
    assert list(check.iter_errors({**body, "surprise": 1}))
    runs = {"run": ["run", "run.yaml"], "grid": ["grid", "grid.yaml"], "arena": ["arena", "show"]}
    if kind in runs:
        done = CliRunner().invoke(cli, runs[kind], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    if kind == "arena":
        assert read_arena(Path()).entries
    again = CliRunner().invoke(cli, words)
    assert again.exit_code != 0
    assert Path(KINDS[kind]).read_text(encoding="utf-8") == text
    Path(KINDS[kind]).write_text("", encoding="utf-8")
    assert CliRunner().invoke(cli, [*words, "--force"]).exit_code == 0
    assert Path(KINDS[kind]).read_text(encoding="utf-8") == text


@pytest.mark.parametrize(("kind", "limit"), [("run", {"run": 3}), ("grid", 3), ("arena", 3)])
def test_a_budget_is_written_into_the_file(kind: str, limit: Any, tmp_path: Path):
    file = tmp_path / f"{kind}.yaml"
    result = CliRunner().invoke(cli, ["init", kind, str(file), "--budget", "3"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert yaml.safe_load(file.read_text(encoding="utf-8"))["budget"] == limit


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["run", "--set", "trials=3"], "--set: has no effect without KIND bot or KIND arena"),
        (["grid", "--for", "forecastbench"], "--for: has no effect without KIND bot"),
        (["arena", "--set", "nme=x"], "--set nme: there is no such setting"),
    ],
)
def test_options_without_effect_on_a_file_are_refused(words: list[str], problem: str, tmp_path: Path):
    result = CliRunner().invoke(cli, ["init", words[0], str(tmp_path / "x"), *words[1:]])
    assert problem in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_the_schema_accepts_what_the_file_accepts():
    check = jsonschema.Draft202012Validator(spec_schema("run"))
    for body in (
        {"questions": "demo"},
        {"questions": {"dataset": "demo", "limit": 3}, "trials": 2, "search": ["gdelt"]},
    ):
        assert not list(check.iter_errors(body))
        spec_from_mapping(body)
    described = [name for name, field in spec_schema("run")["properties"].items() if "description" in field]
    assert {"questions", "models", "search", "combine", "sampling", "prices"} <= set(described)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("questions: {dataset: demo, closes_after: 2026-13-40}", "month must be in 1..12"),
        ("questions: demo\ntrials: [1", "row 2: is not YAML"),
        ("questions: demo\nbudget: {run: -1}", "run = -1 is not an amount of dollars"),
        ("questions: demo\nbudget: {question: .inf}", "question = inf is not an amount of dollars"),
    ],
)
def test_invalid_files_are_refused_in_one_line(tmp_path: Path, text: str, problem: str):
    (tmp_path / "run.yaml").write_text(text)
    with pytest.raises(InputError, match=r"run\.yaml") as refused:
        read_spec(tmp_path / "run.yaml")
    assert problem in str(refused.value)
