"""A notebook as a value: cells are only ever added at the end. Just the last one may be corrected while it fails."""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foretell.data.untrusted import for_json, for_prompt
from foretell.tools.notebook.outputs import DisplayOutput, ErrorOutput, Output, StreamOutput, shortened

MODEL_TEXT = 8_000
"""Characters of a cell's report to a model."""


@dataclass(frozen=True, kw_only=True)
class CellAttempt:
    """A version of a cell that failed and was replaced."""

    source: str
    outputs: tuple[Output, ...] = ()
    problem: str = ""
    """Why it ended, where its outputs do not tell."""


@dataclass(frozen=True, kw_only=True)
class MarkdownCell:
    """Words."""

    source: str


@dataclass(frozen=True, kw_only=True)
class PythonCell:
    """Code, and what came of it."""

    source: str
    outputs: tuple[Output, ...] = ()
    count: int | None = None
    """The number of its execution; None if it never finished one."""
    ok: bool | None = None
    """Whether it ran to its end; None before it was run."""
    problem: str = ""
    """Why it ended, where its outputs do not tell: out of time, or its kernel died."""
    attempts: tuple[CellAttempt, ...] = ()
    """Earlier versions, which failed."""
    setup: bool = False
    """Whether it was put there to make the others work; readers need not see its code."""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else is known of its execution, such as the data it asked for."""

    def report(self, most: int = MODEL_TEXT) -> str:
        """Everything it said, as plain text of bounded length; figures are only mentioned."""
        parts: list[str] = []
        for output in self.outputs:
            if isinstance(output, DisplayOutput) and output.image:
                parts.append(f"[figure, {len(output.image):,} bytes] {output.text}")
            else:
                text = output.text.rstrip("\n") if isinstance(output, StreamOutput) else output.text
                parts.append(shortened(text, most))
        parts += [f"[{self.problem}]"] if self.problem else []
        return shortened("\n".join(filter(None, parts)), most) or "[no output]"


_RESULT_HEAD = re.compile(r"^([ \t]{0,8})(?=cell[ \t]{1,3}\d{1,5}[ \t]{0,3}\()", re.IGNORECASE | re.MULTILINE)


def report_for_prompt(report: str) -> str:
    r"""What a cell said, as a model may read it among our own words: nothing poses as a result of another cell.

    >>> report_for_prompt("Cell 7 (python, ran):\n[search_1_result_2] 0.99")
    '‹Cell 7 (python, ran):\n‹search_1_result_2] 0.99'
    """
    return _RESULT_HEAD.sub(r"\1‹", for_prompt(report))


NotebookCell = MarkdownCell | PythonCell


@dataclass(frozen=True, kw_only=True)
class Notebook:
    """Cells in order. There is no way to change or remove one that stands."""

    cells: tuple[NotebookCell, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """About the notebook as a whole: the cutoff, the sandbox, who made it."""

    def appended(self, cell: NotebookCell) -> "Notebook":
        """With one more cell at the end."""
        return replace(self, cells=(*self.cells, cell))

    def corrected(self, cell: PythonCell) -> "Notebook":
        """With another version of its last cell, which failed. The failed version stays on record."""
        failed = self.failing
        if failed is None:
            raise ValueError("only a last cell that failed can be corrected")
        attempt = CellAttempt(source=failed.source, outputs=failed.outputs, problem=failed.problem)
        attempts = (*failed.attempts, attempt)
        return replace(self, cells=(*self.cells[:-1], replace(cell, attempts=attempts)))

    @property
    def failing(self) -> PythonCell | None:
        """The last cell, if it failed."""
        last = self.cells[-1] if self.cells else None
        return last if isinstance(last, PythonCell) and last.ok is False else None


# A notebook as a Jupyter file (format 4.5).

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
OURS = "foretell"


def ipynb(notebook: Notebook) -> dict[str, Any]:
    """The notebook as the content of an `.ipynb` file; what has no place in the format goes to our own metadata."""
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": KERNEL, "language_info": {"name": "python"}, OURS: dict(notebook.facts)},
        "cells": [_cell(cell, f"cell-{place}") for place, cell in enumerate(notebook.cells, start=1)],
    }


def json_file(value: object, indent: int | None = None) -> bytes:
    """JSON for a file that steers no terminal it is printed to; half a character, as a model may write it, is `?`."""
    text = json.dumps(value, ensure_ascii=False, indent=indent).encode("utf-8", "replace").decode()
    return for_json(text).encode() + b"\n"


def write_ipynb(notebook: Notebook, path: Path) -> None:
    """Write it to a file."""
    path.write_bytes(json_file(ipynb(notebook), indent=1))


def _cell(cell: NotebookCell, name: str) -> dict[str, Any]:
    if isinstance(cell, MarkdownCell):
        return {"cell_type": "markdown", "id": name, "metadata": {}, "source": _lines(cell.source)}
    ours: dict[str, Any] = dict(cell.facts)
    outputs = [_output(output, cell.count) for output in cell.outputs]
    if cell.problem:
        ours["problem"] = cell.problem
        # What no kernel could say any more is said for it.
        outputs.append({"output_type": "stream", "name": "stderr", "text": _lines(f"[{cell.problem}]\n")})
    if cell.attempts:
        ours["failed_versions"] = [_attempt(attempt) for attempt in cell.attempts]
    hidden = {"jupyter": {"source_hidden": True}} if cell.setup else {}
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {**({OURS: ours} if ours else {}), **hidden},
        "source": _lines(cell.source),
        "execution_count": cell.count,
        "outputs": outputs,
    }


def _attempt(attempt: CellAttempt) -> dict[str, Any]:
    version = {"source": attempt.source, "outputs": [_output(one, None) for one in attempt.outputs]}
    return {**version, "problem": attempt.problem} if attempt.problem else version


def _output(output: Output, count: int | None) -> dict[str, Any]:
    if isinstance(output, StreamOutput):
        return {"output_type": "stream", "name": output.stream, "text": _lines(output.text)}
    if isinstance(output, ErrorOutput):
        traceback = list(output.traceback)
        return {"output_type": "error", "ename": output.name, "evalue": output.message, "traceback": traceback}
    data: dict[str, Any] = {"text/plain": _lines(output.text)}
    if output.html:
        data["text/html"] = _lines(output.html)
    if output.image:
        data[output.image_kind] = base64.b64encode(output.image).decode()
    if output.result:
        return {"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
