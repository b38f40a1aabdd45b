"""A notebook as a Jupyter file (format 4.5)."""

import base64
import json
from pathlib import Path
from typing import Any

from foretell.tools.notebook.notebook import Attempt, Cell, MarkdownCell, Notebook, PythonCell
from foretell.tools.notebook.outputs import Output, Printed, Raised

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


def write_ipynb(notebook: Notebook, path: Path) -> None:
    """Write it to a file."""
    text = json.dumps(ipynb(notebook), ensure_ascii=False, indent=1)
    path.write_bytes(text.encode("utf-8", "replace") + b"\n")  # a model may write half a character


def _cell(cell: Cell, name: str) -> dict[str, Any]:
    if isinstance(cell, MarkdownCell):
        return {"cell_type": "markdown", "id": name, "metadata": {}, "source": _lines(cell.source)}
    return {
        "cell_type": "code",
        "id": name,
        "metadata": _metadata(cell),
        "source": _lines(cell.source),
        "execution_count": cell.count,
        "outputs": [_output(output, cell.count) for output in cell.outputs] + _problem(cell),
    }


def _metadata(cell: PythonCell) -> dict[str, Any]:
    ours: dict[str, Any] = dict(cell.facts)
    if cell.problem:
        ours["problem"] = cell.problem
    if cell.attempts:
        ours["failed_versions"] = [_attempt(attempt) for attempt in cell.attempts]
    return {**({OURS: ours} if ours else {}), **({"jupyter": {"source_hidden": True}} if cell.setup else {})}


def _attempt(attempt: Attempt) -> dict[str, Any]:
    found: dict[str, Any] = {"source": attempt.source, "outputs": [_output(one, None) for one in attempt.outputs]}
    return {**found, "problem": attempt.problem} if attempt.problem else found


def _problem(cell: PythonCell) -> list[dict[str, Any]]:
    """What no kernel could say any more is said for it."""
    if not cell.problem:
        return []
    return [{"output_type": "stream", "name": "stderr", "text": _lines(f"[{cell.problem}]\n")}]


def _output(output: Output, count: int | None) -> dict[str, Any]:
    if isinstance(output, Printed):
        return {"output_type": "stream", "name": output.stream, "text": _lines(output.text)}
    if isinstance(output, Raised):
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
