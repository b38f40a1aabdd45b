"""Notebooks as shown on a page: reasoning, code and output. Only text and images are passed through."""

import base64
import binascii
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foretell.forecasters.tree.proposition import Grounding, Proposition
from foretell.patterns import pattern
from foretell.questions.errors import InputError
from foretell.report.markup import EXCERPT_LENGTH, excerpt
from foretell.tools.notebook.notebook import OURS

MAX_CELLS = 400
MAX_PICTURE_BYTES = 3_000_000
PNG_HEADER = b"\x89PNG\r\n\x1a\n"
TERMINAL_COLOURS = pattern(r"\x1b\[[0-9;]*[A-Za-z]")


def notebook_view(tree: str, node: Proposition, path: Path) -> dict[str, Any]:
    """Read the notebook in `path` for its page; raises `InputError` if it cannot be read."""
    try:
        cells = [_cell(cell) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the notebook cannot be read: {type(error).__name__}") from None
    left_out = max(0, len(cells) - MAX_CELLS)
    grounding = node.grounding or Grounding()
    return {
        "tree": tree,
        "claim": node.id,
        "title": node.claim,
        "p": node.p,
        "key_factor": grounding.key_factor,
        "cells": cells[:MAX_CELLS],
        "left_out": left_out,
    }


def _cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    kind = "markdown" if cell.get("cell_type") == "markdown" else "code"
    metadata = cell.get("metadata") or {}
    earlier = (metadata.get(OURS) or {}).get("failed_versions") or ()
    return {
        "kind": kind,
        **_version(cell),
        "setup": bool((metadata.get("jupyter") or {}).get("source_hidden")),
        "failed_versions": [_version(version) for version in earlier],
    }


def _version(cell: Mapping[str, Any]) -> dict[str, Any]:
    return {"source": _text(cell.get("source")), "outputs": [_output(output) for output in cell.get("outputs") or ()]}


def _output(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return the output of a cell: a base64-encoded image, or text."""
    kind, data = output.get("output_type"), output.get("data") or {}
    if png := _png(_text(data.get("image/png")).strip()):
        return {"text": "", "error": False, "png": png}
    text = _text(output.get("text") if kind == "stream" else data.get("text/plain"))
    if kind == "error":
        text = "\n".join(map(str, output.get("traceback") or [output.get("evalue", "")]))
    return {"text": excerpt(TERMINAL_COLOURS.sub("", text), EXCERPT_LENGTH), "error": kind == "error", "png": ""}


def _png(text: str) -> str:
    """Return the base64-encoded image if it is a valid PNG; anything else is not shown."""
    if not text or len(text) > MAX_PICTURE_BYTES:
        return ""
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return base64.b64encode(data).decode() if data.startswith(PNG_HEADER) else ""


def _text(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")
