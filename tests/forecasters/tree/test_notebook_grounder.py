"""The notebook grounder: turns, corrections, conclusion, saved files, and replay from the journal."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.forecasters.tree.random_trees import claim
from tests.forecasters.tree.scripted_tree import TreeSetup, playing
from tests.tools.doubles import Numbers

from foretell.api import show_tree
from foretell.cli.commands import operation_command
from foretell.forecasters.tree.grounders.notebook import NotebookGrounder
from foretell.forecasters.tree.grow.ground import GroundingResult, LeafBudget
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import write_tree
from foretell.models.journal import Journal
from foretell.models.model import ModelError, Request
from foretell.operations.replay import verify_notebooks
from foretell.questions.trace import LeakBlocked, ToolUsed
from foretell.tools.notebook.endpoints import series_endpoint
from foretell.tools.notebook.limits import KernelLimits
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.sandbox import SandboxUnavailable
from foretell.tools.notebook.sandbox_check import check_sandbox


@pytest.fixture(scope="module")
def sandboxed() -> None:
    """Skip the test if no sandbox is available."""
    pytest.importorskip("ipykernel")
    try:
        asyncio.run(check_sandbox(KernelLimits()))
    except SandboxUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal(tmp_path / "journal.db", durable=False)
    yield opened
    opened.close()


def cells(*sources: str, finished: bool = False) -> str:
    listed = [
        {"kind": "markdown" if source.startswith("#") else "python", "source": source.removeprefix("# ")}
        for source in sources
    ]
    return json.dumps({"cells": listed, "finished": finished})


END = json.dumps({"report": "counted", "key_factor": "the mean", "sources": ["/search/web"], "p": 0.35})


def ground(
    setup: TreeSetup, folder: Path, journal: Journal | None, *, kernels: bool = True, **how: Any
) -> GroundingResult:
    async def run() -> GroundingResult:
        pool = KernelPool(warm=0, most=1, preload=())
        grounder = NotebookGrounder(
            pool=pool,
            journal=journal,
            save=lambda leaf, trial: folder / "books" / f"{leaf.id}-{trial}.ipynb",
            base=folder,
            **how,
        )
        if not kernels:
            return await grounder.ground(setup.leaf(), setup.context)
        async with pool:
            return await grounder.ground(setup.leaf(), setup.context)

    return asyncio.run(run())


def scripted(*lines: str | Exception) -> TreeSetup:
    rest = list(lines)

    def say(request: Request) -> str | Exception:
        return rest.pop(0)

    return TreeSetup(model=playing(say))


@pytest.mark.usefixtures("sandboxed")
def test_cells_are_run_and_their_results_are_returned_to_the_model(tmp_path: Path, journal: Journal):
    setup = scripted(
        cells("# Count first.", "x = [1, 2, 3]\nprint(sum(x))"), cells("x + [4]"), cells(finished=True), END
    )
    result = ground(setup, tmp_path, journal)
    assert result.p == 0.35
    assert result.grounding.caveat == ""
    assert result.grounding.notebook == "books/P1-0.ipynb"
    assert result.grounding.sources == ("/search/web",)
    texts = [request.messages[-1].text for request in setup.requests]
    assert "6" in texts[1]
    assert "[1, 2, 3, 4]" in texts[2]
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(tmp_path / "books/P1-0.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert [cell.cell_type for cell in notebook.cells] == ["code", "markdown", "code", "code"]
    assert [event.tool for event in setup.of(ToolUsed)] == ["notebook", "notebook", "notebook"]


@pytest.mark.usefixtures("sandboxed")
def test_only_the_failed_cell_is_corrected_and_the_waiting_cells_run(tmp_path: Path, journal: Journal):
    setup = scripted(
        cells("print(y)", "print('later', y + 1)"),
        json.dumps({"source": "y = 1 / 0"}),
        json.dumps({"source": "y = 41"}),
        cells(finished=True),
        END,
    )
    ground(setup, tmp_path, journal)
    texts = [request.messages[-1].text for request in setup.requests]
    assert "NameError" in texts[1]
    assert "Cell 2 failed" in texts[1]
    assert "ZeroDivisionError" in texts[2]
    assert "later 42" in texts[3]
    notebook = json.loads((tmp_path / "books/P1-0.ipynb").read_text())
    assert ["".join(cell["source"]) for cell in notebook["cells"][1:]] == ["y = 41", "print('later', y + 1)"]
    assert len(notebook["cells"][1]["metadata"]["foretell"]["failed_versions"]) == 2


@pytest.mark.usefixtures("sandboxed")
def test_a_cell_that_cannot_be_corrected_is_given_up(tmp_path: Path):
    wrong = json.dumps({"source": "1 / 0"})
    setup = scripted(cells("1 / 0", "print('never')"), wrong, wrong, cells("print('on')"), cells(finished=True), END)
    assert ground(setup, tmp_path, None, tries=2).p == 0.35
    assert "given up" in setup.requests[3].messages[-1].text
    assert "on" in setup.requests[4].messages[-1].text


@pytest.mark.usefixtures("sandboxed")
def test_an_interrupted_notebook_resumes_from_the_journal(tmp_path: Path, journal: Journal):
    first = cells("import random\nx = random.random()\nprint(x)")
    setup = scripted(first, ModelError("killed"))
    with pytest.raises(ModelError):
        ground(setup, tmp_path, journal)
    seen = setup.requests[1].messages[-1].text
    again = scripted(first, cells("print(x > 0)"), cells(finished=True), END)
    ground(again, tmp_path, journal)
    assert again.requests[1].messages[-1].text == seen, "the stored result, not another random number"
    assert "True" in again.requests[2].messages[-1].text, "the new kernel has run the completed cells"


def test_a_replay_needs_no_kernel(tmp_path: Path, journal: Journal, sandboxed: None):
    script = (cells("print(6 * 7)"), cells(finished=True), END)
    first = ground(scripted(*script), tmp_path, journal)
    before = (tmp_path / "books/P1-0.ipynb").read_bytes()
    setup = scripted(*script)
    assert ground(setup, tmp_path, journal, kernels=False) == first
    assert (tmp_path / "books/P1-0.ipynb").read_bytes() == before


@pytest.mark.usefixtures("sandboxed")
def test_leaks_blocked_in_a_notebook_are_reported_in_every_replay(tmp_path: Path, journal: Journal):
    search = "for row in CALL_API('/search/web', {'query': 'bridge'})['rows']: print(row['title'])"
    script = (cells("print(retrieve_api_doc(['/search/web'])[:20])", search), cells(finished=True), END)
    for kernels in (True, False):
        setup = scripted(*script)
        ground(setup, tmp_path, journal, kernels=kernels)
        text = setup.requests[1].messages[-1].text
        assert "Article of 2025-10-01" in text
        assert "2025-11-05" not in text
        assert {event.layer for event in setup.of(LeakBlocked)} == {"date", "content"}
    assert "/search/web: Search the web." in setup.requests[0].messages[0].text


def test_turns_and_budget_of_a_notebook_are_limited(tmp_path: Path, sandboxed: None):
    setup = scripted(cells("1"), cells("2"), END)
    assert ground(setup, tmp_path, None, steps=2).p == 0.35
    setup = scripted(cells("1"), END)

    async def run() -> GroundingResult:
        async with KernelPool(warm=0, most=1, preload=()) as pool:
            budget = LeafBudget(0.0)
            return await NotebookGrounder(pool=pool).ground(setup.leaf(budget=budget), setup.context)

    assert asyncio.run(run()).p == 0.35


def test_a_notebook_that_ran_nothing_says_so(tmp_path: Path):
    result = ground(scripted(cells(finished=True), END), tmp_path, None, kernels=False)
    assert result.grounding.caveat == "no cell of its notebook ran"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (cells(), "no cells"),
        (cells("print(1)", finished=True), "no python cells"),
        ('{"cells": [{"kind": "shell", "source": "ls"}], "finished": false}', "must be one of python, markdown"),
    ],
)
def test_invalid_answers_are_requested_again(tmp_path: Path, wrong: str, reason: str):
    setup = scripted(wrong, cells(finished=True), END)
    assert ground(setup, tmp_path, None, kernels=False).p == 0.35
    assert reason in setup.requests[1].messages[-1].text


SERIES = "rows = CALL_API('/series/observations', {'provider': 'fred', 'id': 'DGS10'})['rows']"


@pytest.mark.usefixtures("sandboxed")
def test_a_saved_notebook_runs_again_from_its_files(tmp_path: Path, journal: Journal):
    """Run it from the saved data, in a sandbox without a network and in a plain Jupyter kernel."""
    numbers = Numbers(rows={"2025-10-24": 1.0, "2025-10-25": 2.0, "2025-10-27": 666.0})
    series = series_endpoint(source=numbers, providers={"fred": "ids such as DGS10"})

    def script() -> TreeSetup:
        return scripted(
            cells("print(retrieve_api_doc()[:20])", f"{SERIES}\nmean = sum(r['value'] for r in rows) / len(rows)"),
            cells("try:\n    CALL_API('/nothing')\nexcept ApiError as error:\n    print(error)", "object()", "mean"),
            cells(finished=True),
            END,
        )

    first = ground(script(), tmp_path / "first", journal, endpoints=[series])
    again = ground(script(), tmp_path / "second", journal, kernels=False, endpoints=[series])
    assert again == first
    path = tmp_path / "second/books/P1-0.ipynb"
    for name in ("P1-0.ipynb", "P1-0.data.json"):
        assert (path.parent / name).read_bytes() == (tmp_path / "first/books" / name).read_bytes(), "from the journal"
    data = json.loads((path.parent / "P1-0.data.json").read_text())
    assert [exchange["request"].get("call") for exchange in data] == [None, "/series/observations", "/nothing"]
    assert "666" not in json.dumps(data)

    top = claim("P0", p=first.p, grounding=first.grounding)
    write_tree(tmp_path / "second/tree.json", Tree(root="P0", nodes={"P0": top}))
    tree = tmp_path / "second/tree.json"
    shown = CliRunner().invoke(operation_command("tree show"), [str(tree), "--out", str(tmp_path / "copy")])
    assert shown.exit_code == 0, shown.output
    assert "notebook P0 35.0 % books/P1-0.ipynb, 6 cells" in shown.output
    verified = asyncio.run(verify_notebooks(tree))
    assert verified.ok
    assert "run again, 6 cells give the same output" in str(verified)

    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    copied = nbformat.read(tmp_path / "copy/P1-0.ipynb", as_version=4)
    stored = [cell.outputs for cell in copied.cells if cell.cell_type == "code"]
    nbformat.validate(copied)
    client = nbclient.NotebookClient(copied, resources={"metadata": {"path": str(tmp_path / "copy")}}, timeout=60)
    done = client.execute()
    assert done.cells[-1].outputs[0]["data"]["text/plain"] == stored[-1][0]["data"]["text/plain"] == "1.5"
    assert done.cells[1].outputs == stored[1]

    (path.parent / "P1-0.data.json").write_text(json.dumps(data).replace("2.0", "4.0"))
    changed = asyncio.run(verify_notebooks(tree))
    assert changed.exit_code == 1
    assert "different output in cell 6" in str(changed), str(changed)
    (path.parent / "P1-0.data.json").unlink()
    assert "was not saved" in str(show_tree(tree))
    assert not asyncio.run(verify_notebooks(tree)).ok
