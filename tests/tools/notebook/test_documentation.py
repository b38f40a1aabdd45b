"""The snippets of the guide run, in order, as a reader would run them."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "notebook.md"


def test_snippets_run(sandboxed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for snippet in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S):
        exec(compile(snippet, "notebook.md", "exec"), names)
    assert "What the polls say" in (tmp_path / "polls.ipynb").read_text(encoding="utf-8")


def test_the_number_of_attacks_is_true() -> None:
    from tests.tools.notebook.hostile_notebooks import DESTROYERS, PROBES

    told = re.search(r"runs (\d+) hostile notebooks", PAGE.read_text(encoding="utf-8"))
    assert told is not None
    assert int(told[1]) == len(PROBES) + len(DESTROYERS)
