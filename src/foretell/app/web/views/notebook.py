"""A notebook as a page shows it: what was thought, what was run, what came out. Only text and pictures pass."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foretell.questions.problems import InputError

MOST_CELLS = 400
LONGEST = 20_000
BIGGEST_PICTURE = 3_000_000
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, kw_only=True)
class Output:
    """Something a cell showed."""

    text: str = ""
    error: bool = False
    png: str = ""
    """A picture, in base 64."""


@dataclass(frozen=True, kw_only=True)
class NotebookCell:
    """One cell."""

    kind: str
    """markdown or code."""
    source: str
    outputs: tuple[Output, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NotebookView:
    """The page of a notebook."""

    tree: str
    claim: str
    title: str
    cells: tuple[NotebookCell, ...]
    left_out: int = 0
    """Cells beyond what a page holds."""


def notebook_view(tree: str, claim: str, title: str, path: Path) -> NotebookView:
    """The notebook in that file; one that cannot be read is an `InputError`."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        cells = [_cell(cell) for cell in found["cells"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the notebook cannot be read: {type(error).__name__}") from None
    return NotebookView(
        tree=tree, claim=claim, title=title, cells=tuple(cells[:MOST_CELLS]), left_out=max(0, len(cells) - MOST_CELLS)
    )


def _cell(cell: Mapping[str, Any]) -> NotebookCell:
    kind = "markdown" if cell.get("cell_type") == "markdown" else "code"
    outputs = tuple(_output(one) for one in cell.get("outputs") or ())
    return NotebookCell(kind=kind, source=_text(cell.get("source")), outputs=outputs)


def _output(output: Mapping[str, Any]) -> Output:
    if output.get("output_type") == "error":
        return Output(
            text=_plain("\n".join(map(str, output.get("traceback") or [output.get("evalue", "")]))), error=True
        )
    if output.get("output_type") == "stream":
        return Output(text=_plain(_text(output.get("text"))))
    data = output.get("data") or {}
    png = _png(_text(data.get("image/png")).strip())
    return Output(png=png) if png else Output(text=_plain(_text(data.get("text/plain"))))


def _png(text: str) -> str:
    """The picture, where it is one: what else may stand there is not shown."""
    if not text or len(text) > BIGGEST_PICTURE:
        return ""
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return base64.b64encode(data).decode() if data.startswith(PNG) else ""


def _text(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _plain(text: str) -> str:
    """Without the colours of a terminal, and not endless."""
    import re

    told = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    return told if len(told) <= LONGEST else told[:LONGEST] + "…"
