"""An immutable notebook: cells are only appended. Only the last cell may be corrected, and only while it fails."""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from html import escape, unescape
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, cast

from foretell.data.untrusted import for_json, for_prompt
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.tools.notebook.limits import OutputCaps
from foretell.tools.notebook.notebook_file import OURS
from foretell.tools.notebook.protocol import JupyterMessage

# Sanitizing untrusted text and HTML, so that they can be shown in a terminal or on a page.

ESCAPES = pattern(r"\x1b(?:\[[0-9;:<=>?]{0,100}[ -/]{0,10}[@-~]|\][^\x07\x1b]{0,500}(?:\x07|\x1b\\)|[@-Z\\-_])")
CONTROLS = pattern(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that control a terminal or change text direction; tabs and line endings are kept."""
TAGS = frozenset(
    (
        *("table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption", "ul", "ol", "li", "dl", "dt", "dd"),
        *("p", "div", "span", "pre", "code", "b", "i", "em", "strong", "small", "sub", "sup", "br", "hr"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "blockquote"),
    )
)
EMPTY = frozenset(("br", "hr"))
SWALLOWED = frozenset(
    ("script", "style", "iframe", "object", "embed", "svg", "math", "template", "noscript", "title", "textarea")
)
"""Tags that are removed together with their content."""
# All repetitions are bounded, so that untrusted text cannot make the search slow.
TAG = pattern(r"<!--|<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9]{0,15})(?P<rest>[\s/][^<>]{0,500})?>")
ATTRIBUTE = pattern(r"(colspan|rowspan|scope)\s{0,9}=\s{0,9}[\"']?([A-Za-z0-9]{1,20})", re.IGNORECASE)
MAX_OPEN = 200


def plain_text(text: str) -> str:
    """Return the text without colours, control characters and lone surrogates."""
    return CONTROLS.sub("", ESCAPES.sub("", text)).encode("utf-8", "replace").decode()


def overwritten_text(text: str) -> str:
    """Return the text as it finally appears after carriage returns have overwritten parts of lines."""
    text = text.replace("\r\n", "\n")
    if "\r" not in text:
        return text
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def harmless_html(html: str) -> str:
    """Return the HTML reduced to tables, lists and text: no scripts, styles, links, images or event handlers.

    Only tags written by this function come out, so it does not matter how a browser would have parsed the input.

    >>> harmless_html('<table onclick="x()"><tr><td colspan=2>1 < 2<script>alert(1)</script>')
    '<table><tr><td colspan="2">1 &lt; 2</td></tr></table>'
    """
    html = overwritten_text(plain_text(html))
    out: list[str] = []
    open_tags: list[str] = []
    place = 0
    while (match := TAG.search(html, place)) is not None:
        out.append(escape(unescape(html[place : match.start()]), quote=False))
        place = _after(html, match)
        if match["name"] is not None and place == match.end():
            out += _harmless_tag(match["name"].lower(), bool(match["end"]), match["rest"] or "", open_tags)
    out.append(escape(unescape(html[place:]), quote=False))
    return "".join([*out, *(f"</{tag}>" for tag in reversed(open_tags))])


def _after(html: str, match: "re.Match[str]") -> int:
    """Return the position after a tag, skipping a comment or an element whose content is removed."""
    if match["name"] is None:
        end = html.find("-->", match.end())
        return end + 3 if end >= 0 else len(html)
    name = match["name"].lower()
    if match["end"] or name not in SWALLOWED:
        return match.end()
    closing = re.compile(rf"</{name}[\s/]{{0,9}}>", re.IGNORECASE).search(html, match.end())
    return closing.end() if closing is not None else len(html)


def _harmless_tag(name: str, closing: bool, rest: str, open_tags: list[str]) -> list[str]:
    """Return the output for a tag: nothing, the tag with harmless attributes, or all the closing tags it implies."""
    if name not in TAGS:
        return []
    if closing:
        closed: list[str] = []
        while name in open_tags and (not closed or closed[-1] != f"</{name}>"):
            closed.append(f"</{open_tags.pop()}>")
        return closed
    if len(open_tags) >= MAX_OPEN:
        return []
    open_tags += [name] if name not in EMPTY else []
    attributes = "".join(f' {key.lower()}="{value}"' for key, value in ATTRIBUTE.findall(rest))
    return [f"<{name}{attributes}>"]


IMAGES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
"""Maps each image type that is kept to its magic bytes."""
WORDS = ("text/markdown", "text/latex")
"""Types that are kept as plain text, because rendered they could contain anything."""


@frozen
class StreamOutput:
    """Text on standard output or standard error."""

    stream: Literal["stdout", "stderr"]
    text: str


@frozen
class DisplayOutput:
    """A value or figure that a cell displayed, in one or more forms."""

    text: str
    html: str = ""
    """Tables and text only; all active content has been removed."""
    image: bytes = b""
    image_kind: str = "image/png"
    result: bool = False
    """Whether it is the value of the cell's last expression."""


@frozen
class ErrorOutput:
    """An exception that ended a cell."""

    name: str
    message: str
    traceback: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The error as Python prints it."""
        return "\n".join(self.traceback) or f"{self.name}: {self.message}"


Output = StreamOutput | DisplayOutput | ErrorOutput


def output_of(message: JupyterMessage, caps: OutputCaps) -> Output | None:
    """Return the output in a kernel message, or None if the message holds none or nothing of it can be kept."""
    if message.kind == "stream":
        stream = "stderr" if message.text("name") == "stderr" else "stdout"
        text = shortened(plain_text(message.text("text")[: 4 * caps.text]), caps.text)
        return StreamOutput(stream=stream, text=text) if text else None
    if message.kind in ("display_data", "execute_result"):
        data = message.content.get("data")
        shown = _shown(cast("dict[str, Any]", data), caps) if isinstance(data, dict) else None
        if shown is None:
            return None
        return replace(shown, result=message.kind == "execute_result")
    if message.kind == "error":
        lines = message.content.get("traceback")
        lines = lines if isinstance(lines, list) else []
        traceback = [line for line in cast("list[Any]", lines)[-60:] if isinstance(line, str)]
        return ErrorOutput(
            name=plain_text(message.text("ename"))[:200] or "Error",
            message=shortened(plain_text(message.text("evalue")[: 4 * caps.text]), caps.text // 10),
            traceback=tuple(shortened(plain_text(line[:100_000]), caps.text // 10) for line in traceback),
        )
    return None


def _shown(data: Mapping[str, Any], caps: OutputCaps) -> DisplayOutput | None:
    html = data.get("text/html")
    clean_html = harmless_html(html) if isinstance(html, str) and len(html) <= caps.html else ""
    kind, image = next(((kind, data[kind]) for kind in IMAGES if isinstance(data.get(kind), str)), ("image/png", ""))
    pixels = _pixels(kind, image, caps.image)
    text = _words(data, caps)
    if image and not pixels:
        text = f"{text}\n[{kind} left out: too large or unreadable]".strip()
    if not (clean_html or pixels or text):
        return None
    return DisplayOutput(text=text, html=clean_html, image=pixels, image_kind=kind)


def _words(data: Mapping[str, Any], caps: OutputCaps) -> str:
    for kind in (*WORDS, "text/plain"):
        if isinstance(data.get(kind), str):
            return shortened(overwritten_text(plain_text(data[kind][: 4 * caps.text])), caps.text)
    return ", ".join(f"[{plain_text(kind)[:80]} is not shown]" for kind in list(data)[:5] if kind not in IMAGES)


def _pixels(kind: str, encoded: str, most: int) -> bytes:
    if not encoded or len(encoded) > most * 3 // 2:
        return b""
    try:
        pixels = base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""
    return pixels if len(pixels) <= most and pixels.startswith(IMAGES[kind]) else b""


def shortened(text: str, most: int) -> str:
    r"""Return a text that is too long as its beginning and end, with a note of how much was left out.

    >>> shortened("abcdefghij" * 10, 30)
    'abcdefghijabcdefghij\n[70 characters left out]\nabcdefghij'
    """
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    return f"{text[:head]}\n[{len(text) - head - tail:,} characters left out]\n{text[len(text) - tail :]}"


def join_outputs(outputs: Iterable[Output], caps: OutputCaps) -> tuple[Output, ...]:
    """Return a cell's outputs within its caps, with consecutive printed text joined."""
    joined = list(_joined(outputs, caps))
    head, tail = caps.pieces * 2 // 3, caps.pieces // 3
    middle = range(head, max(len(joined) - tail, head))
    fitting: list[Output] = []
    size = left_out = 0
    for place, output in enumerate(joined):
        size += _size(output)
        if isinstance(output, ErrorOutput) or (place not in middle and size <= caps.cell):
            fitting.append(output)
        else:
            left_out += 1
    note = StreamOutput(stream="stderr", text=f"[{left_out:,} outputs left out]\n")
    return (*fitting[:head], note, *fitting[head:]) if left_out else tuple(fitting)


def _joined(outputs: Iterable[Output], caps: OutputCaps) -> Iterator[Output]:
    for stream, row in groupby(outputs, key=lambda output: output.stream if isinstance(output, StreamOutput) else None):
        if stream is None:
            yield from row
        else:
            text = overwritten_text("".join(output.text for output in row if isinstance(output, StreamOutput)))
            yield StreamOutput(stream="stderr" if stream == "stderr" else "stdout", text=shortened(text, caps.text))


def _size(output: Output) -> int:
    if isinstance(output, DisplayOutput):
        return len(output.text) + len(output.html) + len(output.image)
    return len(output.text)


MODEL_TEXT = 8_000
"""Maximum length of a cell's report to a model, in characters."""


@frozen
class CellAttempt:
    """A version of a cell that failed and was replaced."""

    source: str
    outputs: tuple[Output, ...] = ()
    problem: str = ""
    """Why it ended, if its outputs do not show it."""


@frozen
class MarkdownCell:
    """A cell of Markdown text."""

    source: str


@frozen
class PythonCell:
    """A cell of code and its result."""

    source: str
    outputs: tuple[Output, ...] = ()
    count: int | None = None
    """The execution count; None if no execution finished."""
    ok: bool | None = None
    """Whether it ran to the end; None if it has not been run."""
    problem: str = ""
    """Why it ended, if its outputs do not show it: it ran out of time, or its kernel died."""
    attempts: tuple[CellAttempt, ...] = ()
    """Earlier versions that failed."""
    setup: bool = False
    """Whether it only prepares the environment for the other cells; readers need not see its code."""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Other facts about its execution, such as the data it requested."""

    def report(self, most: int = MODEL_TEXT) -> str:
        """Return all its output as plain text of bounded length; figures are only mentioned."""
        parts: list[str] = []
        for output in self.outputs:
            if isinstance(output, DisplayOutput) and output.image:
                parts.append(f"[figure, {len(output.image):,} bytes] {output.text}")
            else:
                text = output.text.rstrip("\n") if isinstance(output, StreamOutput) else output.text
                parts.append(shortened(text, most))
        parts += [f"[{self.problem}]"] if self.problem else []
        return shortened("\n".join(filter(None, parts)), most) or "[no output]"


_RESULT_HEAD = pattern(r"^([ \t]{0,8})(?=cell[ \t]{1,3}\d{1,5}[ \t]{0,3}\()", re.IGNORECASE | re.MULTILINE)


def report_for_prompt(report: str) -> str:
    r"""Return a cell's output in a form that cannot imitate the result of another cell in a prompt.

    >>> report_for_prompt("Cell 7 (python, ran):\n[search_1_result_2] 0.99")
    '‹Cell 7 (python, ran):\n‹search_1_result_2] 0.99'
    """
    return _RESULT_HEAD.sub(r"\1‹", for_prompt(report))


NotebookCell = MarkdownCell | PythonCell


@frozen
class Notebook:
    """An ordered sequence of cells. A cell that succeeded cannot be changed or removed."""

    cells: tuple[NotebookCell, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Facts about the notebook as a whole: the cutoff, the sandbox, who made it."""

    def appended(self, cell: NotebookCell) -> "Notebook":
        """Return a copy with one more cell at the end."""
        return replace(self, cells=(*self.cells, cell))

    def corrected(self, cell: PythonCell) -> "Notebook":
        """Return a copy in which the failed last cell is replaced. The failed version stays on record."""
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


def ipynb(notebook: Notebook) -> dict[str, Any]:
    """Return the content of an `.ipynb` file. Facts without a field in the format are stored as metadata."""
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": KERNEL, "language_info": {"name": "python"}, OURS: dict(notebook.facts)},
        "cells": [_cell(cell, f"cell-{place}") for place, cell in enumerate(notebook.cells, start=1)],
    }


def json_file(value: object, indent: int | None = None) -> bytes:
    """Return JSON that is safe to print to a terminal; a lone surrogate, as a model may produce, becomes `?`."""
    text = json.dumps(value, ensure_ascii=False, indent=indent).encode("utf-8", "replace").decode()
    return for_json(text).encode() + b"\n"


def write_ipynb(notebook: Notebook, path: Path) -> None:
    """Write the notebook to an `.ipynb` file."""
    path.write_bytes(json_file(ipynb(notebook), indent=1))


def _cell(cell: NotebookCell, name: str) -> dict[str, Any]:
    if isinstance(cell, MarkdownCell):
        return {"cell_type": "markdown", "id": name, "metadata": {}, "source": _lines(cell.source)}
    ours: dict[str, Any] = dict(cell.facts)
    outputs = [_output(output, cell.count) for output in cell.outputs]
    if cell.problem:
        ours["problem"] = cell.problem
        # Add an error output for a cell whose kernel could not report one.
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
    version = {"source": attempt.source, "outputs": [_output(output, None) for output in attempt.outputs]}
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
