"""What a cell brought forth, as values that are safe to keep and to show."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape, unescape
from itertools import groupby
from typing import Any, Literal, cast

from foretell.tools.notebook.limits import OutputCaps
from foretell.tools.notebook.protocol import JupyterMessage

# Text and HTML of a stranger, made harmless: what remains can be shown in a terminal or a page and does nothing.

ESCAPES = re.compile(r"\x1b(?:\[[0-9;:<=>?]{0,100}[ -/]{0,10}[@-~]|\][^\x07\x1b]{0,500}(?:\x07|\x1b\\)|[@-Z\\-_])")
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What steers a terminal or turns the direction of text; tabs and line ends stay."""
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
"""Of these the content goes as well."""
# Every repetition is bounded: a stranger's text must not make the search slow.
TAG = re.compile(r"<!--|<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9]{0,15})(?P<rest>[\s/][^<>]{0,500})?>")
ATTRIBUTE = re.compile(r"(colspan|rowspan|scope)\s{0,9}=\s{0,9}[\"']?([A-Za-z0-9]{1,20})", re.IGNORECASE)
MAX_OPEN = 200


def plain_text(text: str) -> str:
    """The text without colours, control characters and halves of characters."""
    return CONTROLS.sub("", ESCAPES.sub("", text)).encode("utf-8", "replace").decode()


def overwritten_text(text: str) -> str:
    """The text as it stands in the end where a line was written over and over."""
    text = text.replace("\r\n", "\n")
    if "\r" not in text:
        return text
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def harmless_html(html: str) -> str:
    """The HTML with nothing but tables, lists and words: no script, style, link, image or event.

    Only what is written here comes out, so it does not matter how a browser would have read what went in.

    >>> harmless_html('<table onclick="x()"><tr><td colspan=2>1 < 2<script>alert(1)</script>')
    '<table><tr><td colspan="2">1 &lt; 2</td></tr></table>'
    """
    html = overwritten_text(plain_text(html))
    out: list[str] = []
    open_tags: list[str] = []
    place = 0
    while (found := TAG.search(html, place)) is not None:
        out.append(escape(unescape(html[place : found.start()]), quote=False))
        place = _after(html, found)
        if found["name"] is not None and place == found.end():
            out += _harmless_tag(found["name"].lower(), bool(found["end"]), found["rest"] or "", open_tags)
    out.append(escape(unescape(html[place:]), quote=False))
    return "".join([*out, *(f"</{tag}>" for tag in reversed(open_tags))])


def _after(html: str, found: "re.Match[str]") -> int:
    """Where to read on after a tag: behind the end of a comment or of something swallowed whole."""
    if found["name"] is None:
        end = html.find("-->", found.end())
        return end + 3 if end >= 0 else len(html)
    name = found["name"].lower()
    if found["end"] or name not in SWALLOWED:
        return found.end()
    closing = re.compile(rf"</{name}[\s/]{{0,9}}>", re.IGNORECASE).search(html, found.end())
    return closing.end() if closing is not None else len(html)


def _harmless_tag(name: str, closing: bool, rest: str, open_tags: list[str]) -> list[str]:
    """What is written for a tag: nothing, the tag with its harmless attributes, or the ends of all that it closes."""
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
"""The kinds of image that are kept, and how their bytes begin."""
WORDS = ("text/markdown", "text/latex")
"""Kept as plain text: rendered they could hold anything."""


@dataclass(frozen=True, kw_only=True)
class StreamOutput:
    """Text on standard output or standard error."""

    stream: Literal["stdout", "stderr"]
    text: str


@dataclass(frozen=True, kw_only=True)
class DisplayOutput:
    """A value or figure that a cell displayed, in one or more forms."""

    text: str
    html: str = ""
    """Tables and words only; everything that could act was taken out."""
    image: bytes = b""
    image_kind: str = "image/png"
    result: bool = False
    """Whether it is the value of the cell's last line."""


@dataclass(frozen=True, kw_only=True)
class ErrorOutput:
    """An exception that ended a cell."""

    name: str
    message: str
    traceback: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As Python prints it."""
        return "\n".join(self.traceback) or f"{self.name}: {self.message}"


Output = StreamOutput | DisplayOutput | ErrorOutput


def output_of(message: JupyterMessage, caps: OutputCaps) -> Output | None:
    """The output in a message of the kernel, or None where the message is none, or nothing of it can be kept."""
    if message.kind == "stream":
        stream = "stderr" if message.text("name") == "stderr" else "stdout"
        text = shortened(plain_text(message.text("text")[: 4 * caps.text]), caps.text)
        return StreamOutput(stream=stream, text=text) if text else None
    if message.kind in ("display_data", "execute_result"):
        data = message.content.get("data")
        found = _shown(cast("dict[str, Any]", data), caps) if isinstance(data, dict) else None
        if found is None:
            return None
        return replace(found, result=message.kind == "execute_result")
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
    kept = harmless_html(html) if isinstance(html, str) and len(html) <= caps.html else ""
    kind, image = next(((kind, data[kind]) for kind in IMAGES if isinstance(data.get(kind), str)), ("image/png", ""))
    pixels = _pixels(kind, image, caps.image)
    text = _words(data, caps)
    if image and not pixels:
        text = f"{text}\n[{kind} left out: too large or unreadable]".strip()
    if not (kept or pixels or text):
        return None
    return DisplayOutput(text=text, html=kept, image=pixels, image_kind=kind)


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
    r"""The beginning and the end of a text that is too long.

    >>> shortened("abcdefghij" * 10, 30)
    'abcdefghijabcdefghij\n[70 characters left out]\nabcdefghij'
    """
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    return f"{text[:head]}\n[{len(text) - head - tail:,} characters left out]\n{text[len(text) - tail :]}"


def join_outputs(outputs: Iterable[Output], caps: OutputCaps) -> tuple[Output, ...]:
    """The outputs of a cell within its caps, with what was printed in a row joined together."""
    joined = list(_joined(outputs, caps))
    head, tail = caps.pieces * 2 // 3, caps.pieces // 3
    middle = range(head, max(len(joined) - tail, head))
    kept: list[Output] = []
    size = left_out = 0
    for place, output in enumerate(joined):
        size += _size(output)
        if isinstance(output, ErrorOutput) or (place not in middle and size <= caps.cell):
            kept.append(output)
        else:
            left_out += 1
    note = StreamOutput(stream="stderr", text=f"[{left_out:,} outputs left out]\n")
    return (*kept[:head], note, *kept[head:]) if left_out else tuple(kept)


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
