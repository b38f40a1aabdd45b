"""The examples of the README and the documentation run, page by page, as a reader would type them.

Blocks marked `bash` and `python` are run, in their order, in one empty folder per page, without a network and without
keys. Blocks marked `sh` are only checked for commands and options that exist: they need a key or a network.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.processes import forked_on_path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLE = re.compile(r"^```(bash|python)\n(.*?)^```", re.S | re.M)
SECONDS = 120


def examples(page: Path) -> list[tuple[str, str]]:
    return EXAMPLE.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, programs = tmp_path / "work", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_TOKEN")) or name.startswith("FORETELL_")]:
        monkeypatch.delenv(name)
    for name, value in {"FORETELL_HOME": tmp_path / "home", "FORETELL_NETWORK": "off", "COLUMNS": 100}.items():
        monkeypatch.setenv(name, str(value))
    path = (str(programs), str(Path(sys.executable).parent), os.environ["PATH"])
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    names: dict[str, object] = {}
    with forked_on_path(programs):
        for language, text in examples(page):
            if language == "python":
                exec(compile(text, str(page), "exec"), names)
            else:
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, timeout=SECONDS
                )
                assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_an_example_that_runs(page: Path) -> None:
    assert examples(page)
