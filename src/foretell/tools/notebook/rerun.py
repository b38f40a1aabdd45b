"""Notebooks that are run again: with the data they read beside them, on any machine, without a key or a network."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from foretell.data.files import write_atomically
from foretell.questions.errors import InputError
from foretell.tools.notebook.kernel import ExecutionEnd
from foretell.tools.notebook.notebook import OURS, Notebook, PythonCell, ipynb, json_file
from foretell.tools.notebook.outputs import Output, join_outputs
from foretell.tools.notebook.pool import KernelPool
from foretell.tools.notebook.process import module_source

MOST_CELLS = 500
_CHANGING = re.compile(r"0x[0-9a-f]{4,16}|\x1b\[[0-9;]{0,20}[A-Za-z]")
"""What differs from one run to the next without meaning anything: addresses in memory, colours."""


def data_path(notebook: Path) -> Path:
    """The file of what a notebook read, beside it."""
    return notebook.with_suffix(".data.json")


def write_notebook(path: Path, document: Mapping[str, Any], data: Sequence[Mapping[str, Any]]) -> None:
    """Write a notebook so that every cell of it can be run again, and what it read beside it.

    Its first cell reads the answers from that file. A cell that was given up is marked, so that the ones after it run.
    """
    cells = [_rerunnable(cell) for cell in document["cells"]]
    if cells:
        cells[0] = {**cells[0], "source": offline_source(data_path(path).name).splitlines(keepends=True)}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(data_path(path), json_file(list(data)))
    write_atomically(path, json_file({**document, "cells": cells}, indent=1))


def offline_source(file: str) -> str:
    """The code of the first cell, for answers in a file."""
    online = module_source("foretell.tools.notebook.setup_cell")
    offline = module_source("foretell.tools.notebook.offline_cell").replace('"notebook.data.json"', repr(file), 1)
    return f"{online}\n\n{offline}"


def _rerunnable(cell: Mapping[str, Any]) -> dict[str, Any]:
    failed = any(one.get("output_type") == "error" for one in cell.get("outputs", ()))
    return {**cell, "metadata": {**cell["metadata"], "tags": ["raises-exception"]}} if failed else dict(cell)


@dataclass(frozen=True, kw_only=True)
class RerunResult:
    """What running a notebook again came to."""

    cells: int
    """Cells of code that were run."""
    differing: tuple[int, ...] = ()
    """Places of cells that said something else than before, counted from 1 as people count."""

    @property
    def same(self) -> bool:
        """Whether every cell said what it had said."""
        return not self.differing


def read_notebook(path: Path) -> dict[str, Any]:
    """The content of an `.ipynb` file, or an `InputError`."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict) and isinstance(cast("dict[str, Any]", found)["cells"], list):
            return cast("dict[str, Any]", found)
    except OSError as error:
        raise InputError(error.strerror or "cannot be read", path=path) from None
    except (ValueError, KeyError):
        pass
    raise InputError("is no notebook", path=path)


async def rerun_notebook(path: Path, pool: KernelPool) -> RerunResult:
    """Run every cell of a notebook in a kernel of the pool, with nothing but the file of its data, and compare."""
    cells = [cell for cell in read_notebook(path)["cells"][:MOST_CELLS] if isinstance(cell, dict)]
    beside = data_path(path)
    if not beside.is_file():
        hint = "it was made before data was kept; examine the leaf again with foretell tree ground"
        raise InputError(f"has no {beside.name} beside it", path=path, hint=hint)
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
            if _told(again) != _told(cell.get("outputs", ())):
                differing.append(place)
        return RerunResult(cells=count, differing=tuple(differing))
    finally:
        await pool.give_back(kernel)


def _told(outputs: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a cell said, without what means nothing."""
    found: list[str] = []
    for one in outputs:
        kind = str(one.get("output_type"))
        if kind == "error":
            text = f"{one.get('ename')}: {one.get('evalue')}"
        else:
            said = one.get("text") if kind == "stream" else one.get("data", {}).get("text/plain", "")
            text = "".join(cast("list[str]", said)) if isinstance(said, list) else str(said)
        found.append(_CHANGING.sub("", text))
    return found


def conclusion_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was concluded from a notebook: claim, p and key factor, as its file has it."""
    return cast("Mapping[str, Any]", document.get("metadata", {}).get(OURS, {}).get("conclusion", {}))
