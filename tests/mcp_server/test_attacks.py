"""Settings of a run that an assistant must not be able to use."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

import foretell
from foretell.mcp.permissions import ReadableFiles, ServerPermissions
from foretell.mcp.server import run_tool
from foretell.models.budget import Budget
from foretell.operations.requests.runs import RunRequest
from foretell.runs.settings import Settings
from foretell.runs.spec import with_settings

OTHER = "openai:gpt-5"
ATTACKS: list[tuple[dict[str, Any], str]] = [
    ({"models.agent": OTHER}, "not on offer"),
    ({"models.filter": OTHER}, "not on offer"),
    ({"models.agent": "compat:x@http://203.0.113.9/v1"}, "not on offer"),
    ({"models": {"agent": OTHER}}, "not on offer"),
    ({"models.judge": "command:/bin/sh"}, "not on offer"),
    ({"search": ["brave"]}, "not on offer|same as `search`"),
    ({"search": "brave"}, "must be a list|same as `search`"),
    ({"forecaster": "command"}, "not on offer"),
    ({"forecaster": "context"}, "not on offer"),
    ({"options.steps": 1000}, "at most 30"),
    ({"options.steps": '"1000"'}, "not a number"),
    ({"options": {"steps": 1000}}, "at most 30"),
    ({"options.seconds": 1e9}, "at most"),
    ({"options.unsandboxed": True}, "options.unsandboxed"),
    ({"options": {"unsandboxed": "true"}}, "options.unsandboxed"),
    ({"options.deep_model": OTHER}, "not on offer"),
    ({"options.grounder": "notebook"}, "not on offer"),
    ({"options.grounder": "deep"}, "not on offer"),
    ({"options.leaves": 100}, "at most 40"),
    ({"options.max_leaves": 100_000}, "at most"),
    ({"options.most_leaves": 100_000}, "at most|no option"),
    ({"options.at_once": 2000}, "at most|no option"),
    ({"options.retries": 1000}, "at most"),
    ({"options.kernels": 64}, "at most"),
    ({"options.rounds": 6}, "at most 3"),
    ({"trials": 1000}, "at most 10|same as"),
    ({"concurrency": 2000}, "at most 50"),
    ({"sampling.max_tokens": 10_000_000}, "at most"),
    ({"sampling.reply_seconds": 1e7}, "at most"),
    ({"clairvoyant": True}, "leakage_filter"),
    ({"clairvoyant": "yes"}, "leakage_filter"),
    ({"leakage_filter": False}, "leakage_filter"),
    ({"leakage_filter": "no"}, "leakage_filter|boolean"),
    ({"prices.openai:gpt-5-mini": "0/0"}, "prices"),
    ({"prices": {"agent": "0"}}, "prices"),
    ({"combine": "/etc/rule.json"}, "fitted rule|no file|not a file"),
    ({"combine": "../rule.json"}, "fitted rule|no file|not a file"),
]
"""Changed settings, and the error that refuses them."""
ONLY_TYPED = [
    ({"mode": "live"}, "the question is the one"),
    ({"questions.leaky_questions": "keep"}, "the question is the one"),
    ({"questions.dataset": "/etc/passwd"}, "the question is the one"),
    ({"questions": {"dataset": "/etc/passwd"}}, "the question is the one"),
]
TOURNAMENT_ATTACKS = [
    ({"tournament.folder": "/tmp"}, "does not offer it"),
    ({"tournament.bucket": "gs://mine/{round}/x"}, "does not offer it"),
    ({"tournament": {"folder": "/tmp"}}, "is a section"),
    ({"questions.leaky_questions": "keep"}, "from the tournament"),
    ({"mode": "backtest"}, "from the tournament"),
]


@pytest.fixture
def permissions(tmp_path: Path) -> ServerPermissions:
    settings = Settings(home=tmp_path / "home", budget=Budget("server", dollars=1.0))
    (tmp_path / "files").mkdir()
    files = ReadableFiles.under([tmp_path / "files"])
    return ServerPermissions(settings=settings, models=("openai:gpt-5-mini",), search=("local",), files=files)


def refused(permissions: ServerPermissions, tool: str, **arguments: Any) -> str:
    answer, worked = asyncio.run(run_tool(permissions, tool, json.loads(json.dumps(arguments))))
    assert not worked, answer
    return str(answer["problem"])


@pytest.mark.parametrize(("changes", "words"), [*ATTACKS, *ONLY_TYPED])
def test_settings_of_a_question_and_of_a_tree_stay_within_the_permissions(
    permissions: ServerPermissions, changes: dict[str, Any], words: str
) -> None:
    trees = permissions.settings.home / "trees"
    trees.mkdir(parents=True)
    tree = {"schema": "foretell/tree/1", "root": "P0", "nodes": {"P0": {"claim": "It is built.", "p": 0.5}}}
    (trees / "t.json").write_text(json.dumps(tree), encoding="utf-8")
    # The same setting by an option and by `set` is refused earlier; this test is about `set` alone.
    model = {"model": "none"} if "models.agent" in changes or "models" in changes else {}
    problem = refused(permissions, "ask", question="Will it?", as_of="2026-01-01", set=changes, **model)
    assert re.search(words, problem), problem
    problem = refused(permissions, "grow_tree", claim="It will.", as_of="2026-01-01", set=changes, **model)
    assert re.search(words, problem), problem
    problem = refused(permissions, "update_tree", tree="t", set=changes, **model)
    assert re.search(words, problem), problem
    assert not (permissions.settings.home / "runs.db").exists()


@pytest.mark.parametrize(("changes", "words"), ATTACKS)
def test_settings_of_a_run_stay_within_the_permissions(
    permissions: ServerPermissions, changes: dict[str, Any], words: str
) -> None:
    base = {"questions": "demo", "models": {"agent": "openai:gpt-5-mini"}}
    if any("leaves" in key or "once" in key or key == "options" for key in changes):
        base["forecaster"] = "tree"
    spec = with_settings(base, changes)
    problem = refused(permissions, "run", spec=spec)
    assert re.search(f"{words}|do not fit|no option|not a known|boolean", problem), problem
    (permissions.files.roots[0] / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    assert refused(permissions, "run", spec="spec.json").endswith(problem)
    problem = refused(permissions, "run", spec=base, set=changes)
    assert re.search(f"{words}|do not fit|no option|not a known|boolean", problem), problem


@pytest.mark.parametrize("action", ["plan", "dry_run", "sandbox"])
def test_settings_of_a_tournament_stay_within_the_permissions(permissions: ServerPermissions, action: str) -> None:
    tournament = "forecastbench" if action == "sandbox" else "metaculus:cup"
    for changes, words in [*ATTACKS, *TOURNAMENT_ATTACKS]:
        model = {"model": "none"} if "models.agent" in changes or "models" in changes else {}
        of_trees = any("leaves" in key or "once" in key for key in changes)
        settings = {**changes, **({"forecaster": "tree"} if of_trees else {})}
        problem = refused(permissions, "tournament", tournament=tournament, action=action, set=settings, **model)
        assert re.search(f"{words}|no option|no such setting", problem), (changes, problem)
    assert not permissions.settings.home.exists()


@pytest.mark.parametrize("tool", ["ask", "grow_tree", "update_tree", "run"])
@pytest.mark.parametrize("field", ["config", "out", "unsandboxed", "folder", "deep_model", "where", "save", "adaptive"])
def test_fields_that_read_or_write_files_are_not_offered(permissions: ServerPermissions, tool: str, field: str) -> None:
    problem = refused(permissions, tool, **{field: "/etc/passwd"})
    assert "does not offer it" in problem or "no such argument" in problem


def test_changes_of_a_stored_run_stay_within_the_permissions(permissions: ServerPermissions) -> None:
    spec = {"questions": {"dataset": "demo", "limit": 2}, "forecaster": "prior"}
    stored = foretell.run(spec, settings=permissions.settings)
    for changes, words in ATTACKS:
        for again in (False, True):
            problem = refused(permissions, "run", run=stored.run, set=changes, again=again)
            assert re.search(f"{words}|do not fit|no option|cannot be changed|boolean", problem), (changes, problem)
    assert "cannot be changed in a stored run" in refused(
        permissions, "run", run=stored.run, set={"questions.dataset": "/etc/passwd"}
    )


def test_question_files_and_leaky_questions_of_a_run_are_checked(permissions: ServerPermissions) -> None:
    for questions in ("/etc/passwd", {"dataset": "../home/runs.db"}, "kalshi", "jsonl:/etc/passwd"):
        problem = refused(permissions, "run", spec={"questions": questions, "forecaster": "prior"})
        assert "may be read" in problem or "not the name" in problem
    dataset = {"dataset": "demo", "leaky_questions": "keep"}
    assert "leaky_questions" in refused(permissions, "run", spec={"questions": dataset, "forecaster": "prior"})


def test_fitted_rule_is_read_from_the_file_that_was_checked(
    permissions: ServerPermissions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the same name in the directory of the server is another file."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    for folder in (tmp_path / "cwd", tmp_path / "files"):
        (folder / "rule.json").write_text("{}", encoding="utf-8")
    spec = {"questions": "demo", "forecaster": "prior", "combine": "rule.json"}
    checked: Any = permissions.check_run(RunRequest.read({"spec": spec})).spec
    assert Path(checked["aggregate"]) == (tmp_path / "files" / "rule.json").resolve()
