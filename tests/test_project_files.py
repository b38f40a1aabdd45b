"""The files that make this a project one can join: workflows that are valid, and one version everywhere."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

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
    assert [path.stem for path in WORKFLOWS] == ["ci", "release"]
    done = subprocess.run(
        [linter, "-no-color", "-shellcheck=", "-pyflakes=", *map(str, WORKFLOWS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


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
