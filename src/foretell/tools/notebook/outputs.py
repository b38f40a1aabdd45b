"""What a cell brought forth, as values that are safe to keep and to show."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal, cast

from foretell.tools.notebook.inert import harmless, plain, settled
from foretell.tools.notebook.limits import Caps
from foretell.tools.notebook.messages import Message

IMAGES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
"""The kinds of image that are kept, and how their bytes begin."""
WORDS = ("text/markdown", "text/latex")
"""Kept as plain text: rendered they could hold anything."""


@dataclass(frozen=True, kw_only=True)
class Printed:
    """Text on standard output or standard error."""

    stream: Literal["stdout", "stderr"]
    text: str


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A value or figure that a cell displayed, in one or more forms."""

    text: str
    html: str = ""
    """Tables and words only; everything that could act was taken out."""
    image: bytes = b""
    image_kind: str = "image/png"
    result: bool = False
    """Whether it is the value of the cell's last line."""


@dataclass(frozen=True, kw_only=True)
class Raised:
    """An exception that ended a cell."""

    name: str
    message: str
    traceback: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As Python prints it."""
        return "\n".join(self.traceback) or f"{self.name}: {self.message}"


Output = Printed | Shown | Raised


def output_of(message: Message, caps: Caps) -> Output | None:
    """The output in a message of the kernel, or None where the message is none, or nothing of it can be kept."""
    if message.kind == "stream":
        stream = "stderr" if message.text("name") == "stderr" else "stdout"
        text = shortened(plain(message.text("text")[: 4 * caps.text]), caps.text)
        return Printed(stream=stream, text=text) if text else None
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
        return Raised(
            name=plain(message.text("ename"))[:200] or "Error",
            message=shortened(plain(message.text("evalue")[: 4 * caps.text]), caps.text // 10),
            traceback=tuple(shortened(plain(line[:100_000]), caps.text // 10) for line in traceback),
        )
    return None


def _shown(data: Mapping[str, Any], caps: Caps) -> Shown | None:
    html = data.get("text/html")
    kept = harmless(html) if isinstance(html, str) and len(html) <= caps.html else ""
    kind, image = next(((kind, data[kind]) for kind in IMAGES if isinstance(data.get(kind), str)), ("image/png", ""))
    pixels = _pixels(kind, image, caps.image)
    text = _words(data, caps)
    if image and not pixels:
        text = f"{text}\n[{kind} left out: too large or unreadable]".strip()
    if not (kept or pixels or text):
        return None
    return Shown(text=text, html=kept, image=pixels, image_kind=kind)


def _words(data: Mapping[str, Any], caps: Caps) -> str:
    for kind in (*WORDS, "text/plain"):
        if isinstance(data.get(kind), str):
            return shortened(settled(plain(data[kind][: 4 * caps.text])), caps.text)
    return ", ".join(f"[{plain(kind)[:80]} is not shown]" for kind in list(data)[:5] if kind not in IMAGES)


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


def gathered(outputs: Iterable[Output], caps: Caps) -> tuple[Output, ...]:
    """The outputs of a cell within its caps, with what was printed in a row joined together."""
    joined = list(_joined(outputs, caps))
    head, tail = caps.pieces * 2 // 3, caps.pieces // 3
    middle = range(head, max(len(joined) - tail, head))
    kept: list[Output] = []
    size = left_out = 0
    for place, output in enumerate(joined):
        size += _size(output)
        if isinstance(output, Raised) or (place not in middle and size <= caps.cell):
            kept.append(output)
        else:
            left_out += 1
    note = Printed(stream="stderr", text=f"[{left_out:,} outputs left out]\n")
    return (*kept[:head], note, *kept[head:]) if left_out else tuple(kept)


def _joined(outputs: Iterable[Output], caps: Caps) -> Iterator[Output]:
    for stream, row in groupby(outputs, key=lambda output: output.stream if isinstance(output, Printed) else None):
        if stream is None:
            yield from row
        else:
            text = settled("".join(output.text for output in row if isinstance(output, Printed)))
            yield Printed(stream="stderr" if stream == "stderr" else "stdout", text=shortened(text, caps.text))


def _size(output: Output) -> int:
    if isinstance(output, Shown):
        return len(output.text) + len(output.html) + len(output.image)
    return len(output.text)
