"""Runs the notebook examples of the page on trees. They need a sandbox, so they are marked `py` and run here."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "trees.md"


def test_documentation_snippets_run(sandboxed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for snippet in re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S):
        exec(compile(snippet, "trees.md", "exec"), names)
    assert "frame.share.mean()" in (tmp_path / "polls.ipynb").read_text(encoding="utf-8")


def test_documented_number_of_attacks_is_correct() -> None:
    from tests.tools.notebook.hostile_notebooks import DESTROYERS, PROBES

    stated = re.search(r"runs (\d+) hostile notebooks", PAGE.read_text(encoding="utf-8"))
    assert stated is not None
    assert int(stated[1]) == len(PROBES) + len(DESTROYERS)
