"""A notebook as a page shows it: what was thought, what was run, what came out. Only text and pictures pass."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foretell.forecasters.tree.proposition import Proposition
from foretell.questions.errors import InputError
from foretell.web.formatting import EXCERPT_LENGTH, excerpt

MAX_CELLS = 400
MAX_PICTURE_BYTES = 3_000_000
PNG_HEADER = b"\x89PNG\r\n\x1a\n"
TERMINAL_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, kw_only=True)
class NotebookOutput:
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
    outputs: tuple[NotebookOutput, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NotebookView:
    """The page of a notebook."""

    tree: str
    claim: str
    title: str
    cells: tuple[NotebookCell, ...]
    left_out: int = 0
    """Cells beyond what a page holds."""


def notebook_view(tree: str, node: Proposition, path: Path) -> NotebookView:
    """The notebook in that file; one that cannot be read is an `InputError`."""
    try:
        cells = [_cell(cell) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the notebook cannot be read: {type(error).__name__}") from None
    left_out = max(0, len(cells) - MAX_CELLS)
    return NotebookView(tree=tree, claim=node.id, title=node.claim, cells=tuple(cells[:MAX_CELLS]), left_out=left_out)


def _cell(cell: Mapping[str, Any]) -> NotebookCell:
    kind = "markdown" if cell.get("cell_type") == "markdown" else "code"
    outputs = tuple(_output(one) for one in cell.get("outputs") or ())
    return NotebookCell(kind=kind, source=_text(cell.get("source")), outputs=outputs)


def _output(output: Mapping[str, Any]) -> NotebookOutput:
    if output.get("output_type") == "error":
        lines = map(str, output.get("traceback") or [output.get("evalue", "")])
        return NotebookOutput(text=_plain("\n".join(lines)), error=True)
    if output.get("output_type") == "stream":
        return NotebookOutput(text=_plain(_text(output.get("text"))))
    data = output.get("data") or {}
    png = _png(_text(data.get("image/png")).strip())
    return NotebookOutput(png=png) if png else NotebookOutput(text=_plain(_text(data.get("text/plain"))))


def _png(text: str) -> str:
    """The picture, where it is one: what else may stand there is not shown."""
    if not text or len(text) > MAX_PICTURE_BYTES:
        return ""
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return base64.b64encode(data).decode() if data.startswith(PNG_HEADER) else ""


def _text(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _plain(text: str) -> str:
    """Without the colours of a terminal, and not endless."""
    return excerpt(TERMINAL_COLOURS.sub("", text), EXCERPT_LENGTH)
