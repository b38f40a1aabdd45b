"""A running notebook: a kernel, the cells it has run so far, and the data proxy."""

import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from foretell.data.files import write_atomically
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.trace import EmitEvent, ignore_event
from foretell.tools.notebook.endpoints import Endpoint
from foretell.tools.notebook.kernel import ExecutionEnd, ExecutionEnding, Kernel, now
from foretell.tools.notebook.notebook import (
    MarkdownCell,
    Notebook,
    NotebookCell,
    Output,
    PythonCell,
    ipynb,
    join_outputs,
    json_file,
    plain_text,
    write_ipynb,
)
from foretell.tools.notebook.notebook_file import data_path, read_notebook
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.process import CollectedFiles, collect_files, module_source
from foretell.tools.notebook.proxy import SOCKET, DataProxy, ProxyLimits
from foretell.tools.notebook.sandbox import API, SandboxUnavailable

MAX_SOURCE = 100_000


@frozen
class CellResult:
    """The result of one cell."""

    place: int
    """Index of the cell in the notebook, from 0."""
    cell: NotebookCell
    how: ExecutionEnding = "done"
    """interrupted: it ran out of time, variables are kept; dead: the kernel died with it."""

    @property
    def ok(self) -> bool:
        """Whether it ran to the end."""
        return self.how == "done"

    @property
    def report(self) -> str:
        """The cell's output and how it ended, for a model to read."""
        return self.cell.report() if isinstance(self.cell, PythonCell) else ""


@frozen
class NotebookStep:
    """The results of cells that were run in sequence."""

    results: tuple[CellResult, ...]
    waiting: int = 0
    """Number of cells after a failed one that have not been run; they are run once it is corrected."""
    notice: str = ""
    """What happened to the previous kernel, if it had to be replaced."""

    @property
    def failed(self) -> CellResult | None:
        """The cell that failed, always the last one, or None."""
        return self.results[-1] if self.results and not self.results[-1].ok else None


class NotebookSession:
    """One notebook from its first cell to its last, created by `open_notebook`. Retrying is up to the caller."""

    def __init__(self, pool: KernelPool, kernel: Kernel, proxy: DataProxy, notebook: Notebook) -> None:
        self._pool = pool
        self._kernel = kernel
        self._proxy = proxy
        self._notebook = notebook
        self._waiting: tuple[NotebookCell, ...] = ()

    @property
    def notebook(self) -> Notebook:
        """The notebook in its current state."""
        return self._notebook

    @property
    def exchanges(self) -> Sequence[dict[str, Any]]:
        """All data requests of its cells so far, with the responses."""
        return self._proxy.exchanges

    async def run(self, cells: Sequence[NotebookCell], *, seconds: float | None = None) -> NotebookStep:
        """Append cells and run them until one fails. Cells still pending from before are dropped.

        Each may take `seconds`, or the pool's limit if that is None.
        """
        self._waiting = tuple(cells)
        notice = await self._revive()
        return await self._go_on([], notice, seconds)

    async def correct(self, cell: PythonCell, *, seconds: float | None = None) -> NotebookStep:
        """Replace the last cell, which failed, with another version; if it works, run the pending cells."""
        if self._notebook.failing is None:
            raise ValueError("only a last cell that failed can be corrected")
        notice = await self._revive()
        ran, how = await self._run(cell.source, seconds)
        self._notebook = self._notebook.corrected(ran)
        place = len(self._notebook.cells) - 1
        result = CellResult(place=place, cell=self._notebook.cells[-1], how=how)
        return await self._go_on([result], notice, seconds)

    def collect(self) -> CollectedFiles:
        """Return the files the notebook wrote, or none if its kernel is dead."""
        if not self._kernel.alive:
            return CollectedFiles(files={}, skipped={})
        return collect_files(self._kernel.run.work)

    def save(self, path: Path) -> None:
        """Write the notebook as an `.ipynb` file."""
        write_ipynb(self._notebook, path)

    async def start(self) -> None:
        """Run the first cell, which sets up access to the data."""
        cell = await self._set_up()
        if not cell.ok:
            raise SandboxUnavailable(f"the first cell of a notebook did not run: {cell.report()}")
        self._notebook = self._notebook.appended(cell)

    async def close(self) -> None:
        """Discard the kernel; the notebook remains."""
        await self._proxy.stop()
        await self._pool.give_back(self._kernel)

    async def _go_on(self, results: list[CellResult], notice: str, seconds: float | None) -> NotebookStep:
        while self._waiting and all(result.ok for result in results):
            cell, *rest = self._waiting
            self._waiting = tuple(rest)
            place = len(self._notebook.cells)
            if isinstance(cell, MarkdownCell):
                result = CellResult(place=place, cell=MarkdownCell(source=_source(cell.source)))
            else:
                ran, how = await self._run(cell.source, seconds)
                result = CellResult(place=place, cell=ran, how=how)
            self._notebook = self._notebook.appended(result.cell)
            results.append(result)
        return NotebookStep(results=tuple(results), waiting=len(self._waiting), notice=notice)

    async def _run(self, source: str, seconds: float | None) -> tuple[PythonCell, ExecutionEnding]:
        source = _source(source)
        before = len(self._proxy.calls)
        start = now()
        outputs, ended = await self._executed(source, seconds)
        facts: dict[str, Any] = {"seconds": round(now() - start, 3)}
        if calls := self._proxy.calls[before:]:
            facts["calls"] = calls
        problems = {"dead": "The kernel died", "interrupted": "The cell was interrupted"}
        cell = PythonCell(
            source=source,
            outputs=join_outputs(outputs, self._pool.caps),
            count=ended.count,
            ok=ended.how == "done",
            problem=f"{problems[ended.how]}: {ended.reason}." if ended.how in problems else "",
            facts=facts,
        )
        return cell, ended.how

    async def _executed(self, source: str, seconds: float | None = None) -> tuple[list[Output], ExecutionEnd]:
        outputs: list[Output] = []
        ended = ExecutionEnd(how="dead", reason="nothing was heard")
        async for event in self._kernel.execute(source, seconds=seconds):
            if isinstance(event, ExecutionEnd):
                ended = event
            else:
                outputs.append(event)
        return outputs, ended

    async def _set_up(self) -> PythonCell:
        where = await self._proxy.serve(self._kernel.run.api, self._kernel.user)
        inside = API / SOCKET if self._kernel.confined else where
        cell, _ = await self._run(setup_source(str(inside)), self._pool.limits.start_seconds)
        return replace(cell, setup=True)

    async def _revive(self) -> str:
        """Replace a dead kernel and rerun the successful cells in it; return a notice, or "" if it was alive."""
        if self._kernel.alive:
            return ""
        notice = f"The kernel had died ({self._kernel.death}). A new one was started; its files are gone"
        await self._exchange()
        for place, cell in enumerate(self._notebook.cells[1:], start=1):
            if isinstance(cell, PythonCell) and cell.ok:
                _, ended = await self._executed(cell.source)
                if ended.how == "dead":
                    await self._exchange()
                if ended.how != "done":
                    return f"{notice}, and so are its variables: running cell {place} again did not work."
        return f"{notice}, but the cells that had worked were run again, so that their variables are there."

    async def _exchange(self) -> None:
        self._kernel = await self._pool.exchange(self._kernel)
        await self._set_up()


@asynccontextmanager
async def open_notebook(
    pool: KernelPool,
    as_of: AsOf,
    endpoints: Iterable[Endpoint] = (),
    *,
    limits: ProxyLimits | None = None,
    emit: EmitEvent = ignore_event,
) -> AsyncGenerator[NotebookSession]:
    """Open a new notebook in a kernel of the pool. Data is always served as of the cutoff."""
    proxy = DataProxy(endpoints, as_of, limits=limits, emit=emit)
    facts = {
        "as_of": str(as_of),
        "mode": as_of.mode,
        **pool.protection,
        "data": list(proxy.paths),
        "limits": asdict(pool.limits),
    }
    session = NotebookSession(pool, await pool.take(), proxy, Notebook(facts=facts))
    try:
        await session.start()
        yield session
    finally:
        await session.close()


def setup_source(socket: str) -> str:
    """Return the code of the first cell, for a socket at the given path."""
    return module_source("foretell.tools.notebook.setup_cell").replace('"/api/data.sock"', repr(socket), 1)


def _source(source: str) -> str:
    """Return a model's source cleaned for the kernel and for files; raise `ValueError` if it is too long."""
    if len(source) > MAX_SOURCE:
        raise ValueError(f"a cell of {len(source):,} characters is too long; at most {MAX_SOURCE:,}")
    return plain_text(source.replace("\r\n", "\n"))


# Rerunning notebooks with their recorded data, on any machine, without keys or a network.


MOST_CELLS = 500
_CHANGING = pattern(r"0x[0-9a-f]{4,16}|\x1b\[[0-9;]{0,20}[A-Za-z]")
"""Output that differs between runs without significance: memory addresses and colours."""


def write_notebook(path: Path, document: Mapping[str, Any], data: Sequence[Mapping[str, Any]]) -> None:
    """Write a notebook so that every cell can be rerun, and the data it read to a file next to it.

    Its first cell reads the responses from that file. A cell that failed is marked, so that the ones after it still
    run.
    """
    cells = [_rerunnable(cell) for cell in document["cells"]]
    if cells:
        cells[0] = {**cells[0], "source": offline_source(data_path(path).name).splitlines(keepends=True)}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(data_path(path), json_file(list(data)))
    write_atomically(path, json_file({**document, "cells": cells}, indent=1))


def offline_source(file: str) -> str:
    """Return the code of the first cell, for responses stored in a file."""
    online = module_source("foretell.tools.notebook.setup_cell")
    offline = module_source("foretell.tools.notebook.offline_cell").replace('"notebook.data.json"', repr(file), 1)
    return f"{online}\n\n{offline}"


def _rerunnable(cell: Mapping[str, Any]) -> dict[str, Any]:
    failed = any(output.get("output_type") == "error" for output in cell.get("outputs", ()))
    return {**cell, "metadata": {**cell["metadata"], "tags": ["raises-exception"]}} if failed else dict(cell)


@frozen
class RerunResult:
    """The result of rerunning a notebook."""

    cells: int
    """Number of code cells that were run."""
    differing: tuple[int, ...] = ()
    """Numbers of the cells whose output differed from before, counted from 1."""

    @property
    def same(self) -> bool:
        """Whether every cell gave the same output as before."""
        return not self.differing


async def rerun_notebook(path: Path, pool: KernelPool) -> RerunResult:
    """Rerun every cell of a notebook in a kernel of the pool, with only its data file, and compare the outputs."""
    cells = [cell for cell in read_notebook(path)["cells"][:MOST_CELLS] if isinstance(cell, dict)]
    beside = data_path(path)
    if not beside.is_file():
        hint = "it was made before data was saved; research the leaf again with foretell tree update"
        raise InputError(f"has no {beside.name} next to it", path=path, hint=hint)
    kernel = await pool.take()
    try:
        copy = kernel.run.work / beside.name
        copy.write_bytes(beside.read_bytes())
        if kernel.user is not None:
            os.chown(copy, kernel.user, kernel.user)
        count, differing = 0, list[int]()
        for place, cell in enumerate(cells, start=1):
            if cell.get("cell_type") != "code":
                continue
            outputs: list[Output] = []
            async for event in kernel.execute("".join(cell["source"])):
                if not isinstance(event, ExecutionEnd):
                    outputs.append(event)
            count += 1
            ran = PythonCell(source="", outputs=join_outputs(outputs, pool.caps))
            again = ipynb(Notebook(cells=(ran,)))["cells"][0]["outputs"]
            if _comparable_texts(again) != _comparable_texts(cell.get("outputs", ())):
                differing.append(place)
        return RerunResult(cells=count, differing=tuple(differing))
    finally:
        await pool.give_back(kernel)


def _comparable_texts(outputs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a cell's output as text, without parts that vary between runs."""
    texts: list[str] = []
    for output in outputs:
        kind = str(output.get("output_type"))
        if kind == "error":
            text = f"{output.get('ename')}: {output.get('evalue')}"
        else:
            content = output.get("text") if kind == "stream" else output.get("data", {}).get("text/plain", "")
            text = "".join(cast("list[str]", content)) if isinstance(content, list) else str(content)
        texts.append(_CHANGING.sub("", text))
    return texts
