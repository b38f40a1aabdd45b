"""Notebook sessions with data from the proxy, and their saved files."""

import asyncio
import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.tools.doubles import Numbers
from tests.tools.notebook.conftest import Loop

from foretell.questions.as_of import AsOf
from foretell.questions.trace import LeakBlocked, TraceEvent
from foretell.tools.notebook.endpoints import LocalFile, local_files_endpoint, series_endpoint
from foretell.tools.notebook.notebook import MarkdownCell, PythonCell
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.proxy import ProxyLimits
from foretell.tools.notebook.session import NotebookSession, open_notebook, setup_source

CUTOFF = AsOf.day("2025-10-26")
ROWS = {"2025-10-24": 1.0, "2025-10-25": 2.0, "2025-10-27": 666.0}


def opened(pool: KernelPool, tmp_path: Path, **options: Any) -> AbstractAsyncContextManager[NotebookSession]:
    (tmp_path / "polls.csv").write_text("day,share\n2025-10-20,41\n2025-10-30,666\n", encoding="utf-8")
    (tmp_path / "secret.csv").write_text("a\nthe host's secret\n", encoding="utf-8")
    files = local_files_endpoint(tmp_path, polls=LocalFile(path=Path("polls.csv"), meaning="polls", date_column="day"))
    series = series_endpoint(
        source=Numbers(rows=ROWS), providers={"fred": "ids such as DGS10"}, emit=options.get("emit", lambda _: None)
    )
    return open_notebook(pool, CUTOFF, [series, files], **options)


def python(*sources: str) -> list[PythonCell]:
    return [PythonCell(source=source) for source in sources]


def test_notebook_runs_is_corrected_and_saved(loop: Loop, roomy_pool: KernelPool, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    path = tmp_path / "book.ipynb"
    cells = [
        MarkdownCell(source="# What the yield does"),
        *python(
            "print(retrieve_api_doc())",
            "frame = to_frame(CALL_API('/series/observations', {'provider': 'fred', 'id': 'DGS10'}))\nframe",
            "open('frame.csv', 'w').write(frame.to_csv())\nframe.valeu",
            "import matplotlib.pyplot as plt\nframe.plot()",
        ),
    ]

    async def working() -> tuple[Any, ...]:
        async with opened(roomy_pool, tmp_path) as session:
            first = await session.run(cells)
            second = await session.correct(PythonCell(source="frame.valu"))
            third = await session.correct(PythonCell(source="frame.value.sum()"))
            session.save(path)
            return first, second, third, session.notebook, await asyncio.to_thread(session.collect)

    first, second, third, notebook, collected = loop.run(working())
    assert [result.ok for result in first.results] == [True, True, True, False]
    assert first.failed.place == 4
    assert "AttributeError" in first.failed.report
    assert first.waiting == 1
    assert second.failed is not None
    assert second.waiting == 1
    assert third.failed is None
    assert [result.ok for result in third.results] == [True, True]
    assert "3.0" in third.results[0].report
    assert any(getattr(output, "image", b"") for output in third.results[1].cell.outputs)
    assert collected.files["frame.csv"].startswith(b"date,value\n2025-10-24,1.0")
    assert "666" not in json.dumps([cell.source for cell in notebook.cells]) + first.results[2].report
    document = nbformat.read(path, as_version=4)
    nbformat.validate(document)
    assert len(document.cells) == 6
    assert document.cells[3].metadata["foretell"]["calls"][0]["path"] == "/series/observations"
    assert len(document.cells[4].metadata["foretell"]["failed_versions"]) == 2
    assert document.metadata["foretell"]["as_of"].startswith("2025-10-26")
    assert document.metadata["foretell"]["sandbox"] == "bubblewrap"
    assert [cell.execution_count for cell in document.cells if cell.cell_type == "code"] == [1, 2, 3, 6, 7]


DATA_ATTACKS = {
    "the future by parameter": "CALL_API('/series/observations', {'provider': 'fred', 'id': 'X', 'end': '2030-01-01'})",
    "the future by name": "CALL_API('/series/observations', {'provider': 'fred', 'id': 'X', 'as_of': '2030-01-01'})",
    "later rows": "CALL_API('/files/read', {'name': 'polls', 'limit': 10**9, 'offset': -10**9})",
    "another file": "CALL_API('/files/read', {'name': '../secret.csv'})",
    "a file beside": "CALL_API('/files/read', {'name': 'secret'})",
    "another path": "CALL_API('/files/read/../../../etc/shadow')",
    "a path of its own": "CALL_API({'a': 1}, {'b': object})",
    "numbers that are none": "CALL_API('/files/read', {'name': 'polls', 'offset': float('nan')})",
    "a huge request": "CALL_API('/series/observations', {'provider': 'f' * 10**7, 'id': 'X'})",
    "a nested request": "_ask(eval('[' * 60 + ']' * 60))",
    "another socket": "import os; os.unlink('/api/data.sock')",
    "rubbish": """
import socket
for data in (b'\\xff' * 100, b'{"call": "/x"', b'\\n' * 50, b'[' * 60_000 + b'\\n'):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect('/api/data.sock')
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        print(connection.recv(1000))
""",
    "a crowd": """
import socket
connections = []
for _ in range(60):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(2)
    try:
        connection.connect('/api/data.sock')
    except OSError:
        pass
    connections.append(connection)
print('crowd', len(connections))
""",
}


def test_hostile_data_requests_get_no_later_data(loop: Loop, roomy_pool: KernelPool, tmp_path: Path) -> None:
    events: list[TraceEvent] = []

    async def attacking() -> dict[str, str]:
        reports: dict[str, str] = {}
        async with opened(roomy_pool, tmp_path, limits=ProxyLimits(idle_seconds=2.0), emit=events.append) as session:
            for name, source in DATA_ATTACKS.items():
                reports[name] = (await session.run(python(source))).results[-1].report
            last = await session.run(python("CALL_API('/files/read', {'name': 'polls'})['rows']"))
            reports["afterwards"] = last.results[-1].report
        return reports

    reports = loop.run(attacking())
    text = json.dumps(reports)
    assert "666" not in text
    assert "host's secret" not in text
    assert "has no parameter 'as_of'" in reports["the future by name"]
    assert "there is no table '../secret.csv'" in reports["another file"]
    assert "Read-only file system" in reports["another socket"]
    assert "the data proxy" in reports["a huge request"]
    assert "cannot be sent" in reports["a path of its own"]
    assert "this is not a request" in reports["rubbish"]
    assert "crowd 60" in reports["a crowd"]
    assert "2025-10-20" in reports["afterwards"] or "data proxy" in reports["afterwards"]
    assert any("after the cutoff" in event.reason for event in events if isinstance(event, LeakBlocked))


def test_new_cells_replace_pending_cells(loop: Loop, roomy_pool: KernelPool, tmp_path: Path) -> None:
    async def changing_its_mind() -> tuple[Any, ...]:
        async with opened(roomy_pool, tmp_path) as session:
            first = await session.run(python("1 / 0", "print('never')"))
            with pytest.raises(ValueError, match="too long"):
                await session.run(python("x" * 200_000))
            second = await session.run([MarkdownCell(source="otherwise"), *python("2")])
            with pytest.raises(ValueError, match="only a last cell that failed"):
                await session.correct(PythonCell(source="3"))
            return first, second, session.notebook

    first, second, notebook = loop.run(changing_its_mind())
    assert first.waiting == 1
    assert second.failed is None
    assert [cell.source for cell in notebook.cells[1:]] == ["1 / 0", "otherwise", "2"]
    assert second.results[0].report == ""


def test_notice_tells_if_cells_cannot_be_rerun_in_a_new_kernel(
    loop: Loop, roomy_pool: KernelPool, tmp_path: Path
) -> None:
    async def repeating() -> tuple[Any, Any]:
        async with opened(roomy_pool, tmp_path, limits=ProxyLimits(calls=1)) as session:
            await session.run(python("seen = CALL_API('/files/read', {'name': 'polls'})"))
            died = await session.run(python("import os; os.kill(os.getpid(), 9)"))
            return died, await session.run(python("seen"))

    died, again = loop.run(repeating())
    assert died.failed.how == "dead"
    assert "SIGKILL" in again.notice
    assert "so are its variables: running cell 1 again did not work" in again.notice
    assert "NameError" in again.failed.report


def test_notebook_continues_if_rerun_cells_kill_the_kernel(loop: Loop, roomy_pool: KernelPool, tmp_path: Path) -> None:
    once = "import os\ntry: CALL_API('/files/read', {'name': 'polls'})\nexcept ApiError: os._exit(9)"

    async def dying() -> tuple[Any, Any]:
        async with opened(roomy_pool, tmp_path, limits=ProxyLimits(calls=1)) as session:
            await session.run(python(once, "import threading\nthreading.Timer(0.1, os._exit, [4]).start()"))
            async with asyncio.timeout(30):
                while session._kernel.alive:  # pyright: ignore[reportPrivateUsage]
                    await asyncio.sleep(0.05)
            return await session.run(python("'on'")), await session.run(python("'and on'"))

    first, second = loop.run(dying())
    assert "exit code 4" in first.notice
    assert "running cell 1 again did not work" in first.notice
    assert first.results[0].report == "'on'"
    assert (second.notice, second.results[0].report) == ("", "'and on'")


def test_setup_cell_raises_api_error_without_a_proxy() -> None:
    space: dict[str, Any] = {}
    exec(compile(setup_source("/nowhere/data.sock"), "setup", "exec"), space)
    with pytest.raises(space["ApiError"], match="cannot be reached"):
        space["CALL_API"]("/x")
    frame = space["to_frame"]({"rows": [{"at": "2025-01-01T00:00:00+00:00", "p": 0.5}]})
    assert list(frame.columns) == ["p"]
    assert space["to_frame"]([{"a": 1}])["a"].tolist() == [1]
