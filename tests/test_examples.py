"""Every Python snippet of the README and the guide runs, in order, as a reader would run them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    "docs/python.md",
    "docs/combining.md",
    "docs/calibration.md",
    "docs/submission.md",
    "docs/practice.md",
    "docs/for_bot_builders.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for snippet in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.S):
        exec(compile(snippet, page, "exec"), names)
