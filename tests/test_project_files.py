"""The files that make this a project one can join: workflows that are valid, and one version everywhere."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from foretell.cli.moved import COMMANDS, OPTIONS

ROOT = Path(__file__).parents[1]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_workflows_are_valid() -> None:
    linter = shutil.which("actionlint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if linter is None:
        pytest.skip("actionlint is not installed: pip install 'foretell[dev]'")
    assert [path.stem for path in WORKFLOWS] == ["ci", "docs", "release"]
    done = subprocess.run(
        [linter, "-no-color", "-shellcheck=", "-pyflakes=", *map(str, WORKFLOWS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def jobs() -> list[tuple[str, dict[str, Any]]]:
    """Return every job of every workflow, with its name."""
    workflows = [(path.stem, yaml.safe_load(path.read_text())) for path in WORKFLOWS]
    return [(f"{name}/{id}", job) for name, workflow in workflows for id, job in workflow["jobs"].items()]


def test_workflows_run_commands_that_exist_and_actions_of_a_named_version() -> None:
    targets = set(re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text()))
    for name, job in jobs():
        for step in job["steps"]:
            made = set(re.findall(r"(?m)(?:^|&& )make ([a-z]+)", step.get("run", "")))
            assert made <= targets, name
            files = re.findall(r"(?:^|\s)((?:\.ci|tests|requirements)/[\w./]+)", step.get("run", ""))
            assert all((ROOT / file).exists() for file in files), name
            assert re.fullmatch(r"[\w./-]+@(v\d+|release/v\d+)", step.get("uses", "a@v1")), name


def test_workflows_may_do_no_more_than_they_need() -> None:
    assert all(yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"} for path in WORKFLOWS)
    more = {name: job["permissions"] for name, job in jobs() if "permissions" in job}
    assert more == {
        "docs/publish": {"pages": "write", "id-token": "write"},
        "release/publish": {"id-token": "write"},
    }
    assert all(job["timeout-minutes"] <= 90 for _, job in jobs())


def test_systems_and_versions_of_the_docs_are_tested() -> None:
    matrices = {name: job["strategy"]["matrix"] for name, job in jobs() if "strategy" in job}
    versions = ["3.11", "3.12", "3.13", "3.14"]
    assert matrices["ci/newcomer"] == {"os": ["ubuntu-latest", "macos-latest"], "python": versions}
    assert matrices["ci/windows"] == {"python": versions}


def test_hooks_before_a_commit_are_the_checks_of_make_style() -> None:
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    programs = {hook["entry"].split()[0] for hook in repo["hooks"]}
    assert repo["repo"] == "local"
    assert programs == {".venv/bin/ruff", ".venv/bin/lint-imports"}


def test_links_of_the_pages_beside_the_docs_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), ROOT / "examples" / "README.md"]
    broken = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_one_version_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert str(yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]) == version


def test_the_changelog_names_every_old_spelling() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    missing = [old for old in COMMANDS if not any(row.startswith(f"| `foretell {old}` |") for row in rows)]
    for words in OPTIONS:
        command, _, option = words.rpartition(" ")
        named = f"`{command}`" if command else "all"
        if not any(named in row.split("|")[1] and f"`{option}`" in row.split("|")[2] for row in rows):
            missing.append(words)
    assert missing == []


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_issue_forms_have_what_a_form_needs(path: Path) -> None:
    form = yaml.safe_load(path.read_text())
    assert form["name"]
    assert form["description"]
    assert all({"type", "id", "attributes"} <= set(field) for field in form["body"])
