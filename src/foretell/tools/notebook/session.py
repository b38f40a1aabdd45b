"""A notebook at work: a kernel, the cells it has run so far, and the door to the data."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from foretell.questions.as_of import AsOf
from foretell.questions.trace import EmitEvent, ignore_event
from foretell.tools.notebook.endpoints import Endpoint
from foretell.tools.notebook.kernel import ExecutionEnd, ExecutionEnding, Kernel, now
from foretell.tools.notebook.notebook import MarkdownCell, Notebook, NotebookCell, PythonCell, write_ipynb
from foretell.tools.notebook.outputs import Output, join_outputs, plain_text
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.process import CollectedFiles, collect_files, module_source
from foretell.tools.notebook.proxy import SOCKET, DataProxy, ProxyLimits
from foretell.tools.notebook.sandbox import API, SandboxUnavailable

MAX_SOURCE = 100_000


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """What came of one cell."""

    place: int
    """Which cell of the notebook, counted from 0."""
    cell: NotebookCell
    how: ExecutionEnding = "done"
    """interrupted: out of time, variables kept; dead: the kernel went down with it."""

    @property
    def ok(self) -> bool:
        """Whether it ran to its end."""
        return self.how == "done"

    @property
    def report(self) -> str:
        """What the cell said and how it ended, for a model to read."""
        return self.cell.report() if isinstance(self.cell, PythonCell) else ""


@dataclass(frozen=True, kw_only=True)
class NotebookStep:
    """What came of some cells run in a row."""

    results: tuple[CellResult, ...]
    waiting: int = 0
    """Cells after a failed one that were not run yet; they are, once it is corrected."""
    notice: str = ""
    """What happened to the kernel before, if it had to be replaced."""

    @property
    def failed(self) -> CellResult | None:
        """The cell that failed, always the last one."""
        return self.results[-1] if self.results and not self.results[-1].ok else None


class NotebookSession:
    """One notebook from its first cell to its last. Made by `open_notebook`. How often to try is up to the caller."""

    def __init__(self, pool: KernelPool, kernel: Kernel, proxy: DataProxy, notebook: Notebook) -> None:
        self._pool = pool
        self._kernel = kernel
        self._proxy = proxy
        self._notebook = notebook
        self._waiting: tuple[NotebookCell, ...] = ()

    @property
    def notebook(self) -> Notebook:
        """The notebook as it stands."""
        return self._notebook

    @property
    def exchanges(self) -> Sequence[dict[str, Any]]:
        """What its cells asked for so far, with the answers."""
        return self._proxy.exchanges

    async def run(self, cells: Sequence[NotebookCell], *, seconds: float | None = None) -> NotebookStep:
        """Add cells and run them until one fails. Cells still waiting from before are dropped.

        Each may take so many seconds, or as long as the limits of the pool say.
        """
        self._waiting = tuple(cells)
        notice = await self._revive()
        return await self._go_on([], notice, seconds)

    async def correct(self, cell: PythonCell, *, seconds: float | None = None) -> NotebookStep:
        """Put another version in the place of the last cell, which failed; if it works, run those that waited."""
        if self._notebook.failing is None:
            raise ValueError("only a last cell that failed can be corrected")
        notice = await self._revive()
        ran, how = await self._run(cell.source, seconds)
        self._notebook = self._notebook.corrected(ran)
        place = len(self._notebook.cells) - 1
        result = CellResult(place=place, cell=self._notebook.cells[-1], how=how)
        return await self._go_on([result], notice, seconds)

    def collect(self) -> CollectedFiles:
        """The files the notebook wrote, if its kernel still lives."""
        if not self._kernel.alive:
            return CollectedFiles(files={}, left={})
        return collect_files(self._kernel.run.work)

    def save(self, path: Path) -> None:
        """Write the notebook as an `.ipynb` file."""
        write_ipynb(self._notebook, path)

    async def start(self) -> None:
        """Run the first cell, which opens the door to the data."""
        cell = await self._set_up()
        if not cell.ok:
            raise SandboxUnavailable(f"the first cell of a notebook did not run: {cell.report()}")
        self._notebook = self._notebook.appended(cell)

    async def close(self) -> None:
        """Throw the kernel away; the notebook stays."""
        await self._proxy.hush()
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
        """Another kernel where the last one died, with the cells that stand run again in it."""
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
    """A new notebook in a kernel of the pool. Data is served as of the cutoff, whatever the notebook asks for."""
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
    """The code of the first cell, for a socket at a given path."""
    return module_source("foretell.tools.notebook.setup_cell").replace('"/api/data.sock"', repr(socket), 1)


def _source(source: str) -> str:
    """What a model wrote, as a kernel and a file can take it."""
    if len(source) > MAX_SOURCE:
        raise ValueError(f"a cell of {len(source):,} characters is too long; at most {MAX_SOURCE:,}")
    return plain_text(source.replace("\r\n", "\n"))
