"""The programs and notebooks of `examples` run in the practice world, without a key and without a network."""

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import nbclient
import nbformat
import pytest

from foretell.operations.practice import open_practice
from foretell.operations.requests.setup import PracticeRequest
from foretell.runs.settings import Settings

EXAMPLES = Path(__file__).parents[1] / "examples"
PROGRAMS = sorted((EXAMPLES / "programs").glob("*.py"))
NOTEBOOKS = sorted((EXAMPLES / "notebooks").glob("*.ipynb"))
PROGRESS = re.compile(r"(\s*\d+ of \d+)*\s*")


@pytest.fixture(scope="module")
def practice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of programs in practice; its servers run in a thread."""
    home = tmp_path_factory.mktemp("practice")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    services = open_practice(PracticeRequest(), Settings(home=home))
    changes = asyncio.run_coroutine_threadsafe(services.__aenter__(), loop).result(30)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FORETELL_")}
    yield {name: value for name, value in (kept | changes).items() if value is not None}
    asyncio.run_coroutine_threadsafe(services.__aexit__(None, None, None), loop).result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_runs_and_writes_only_progress_to_stderr(
    program: Path, practice: dict[str, str], tmp_path: Path
) -> None:
    paths = os.pathsep.join(filter(None, sys.path))
    end = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env=practice | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert end.returncode == 0, end.stderr
    assert end.stdout.strip()
    assert PROGRESS.fullmatch(end.stderr), end.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(
    path: Path, practice: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in practice.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code), "stored with outputs"
    nbclient.NotebookClient(
        book, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}, timeout=120
    ).execute()
    shown = [output for cell in code for output in cell.outputs]
    assert shown
    assert not [output.text for output in shown if output.get("name") == "stderr"]


def test_the_readme_names_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    linked = {EXAMPLES / target for target in re.findall(r"\]\(([^)]+)\)", text)}
    assert linked == {*PROGRAMS, *NOTEBOOKS}
