"""Web archive files (WARC): the pages that crawlers stored, each with the moment of its capture."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from foretell.questions.problems import InputError
from foretell.sources.corpus.store import Document
from foretell.sources.engines.dates import stated
from foretell.sources.page import PageUnavailable
from foretell.sources.readable import read

MAX_RECORD = 20_000_000
"""Larger records are passed over: they are not articles."""
Headers = dict[str, str]


def read_warc(path: Path) -> Iterator[Document]:
    """The readable pages of an archive. What is no page, was not answered with 200 or has no text is passed over."""
    packed = path.name.lower().endswith(".gz")
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        try:
            for headers, block in _records(file, path):  # pyright: ignore[reportArgumentType] - a GzipFile reads like a file
                document = _document(headers, block, path.name)
                if document is not None:
                    yield document
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"the archive is damaged: {error}", path=path, hint="download it again") from None


def _records(file: IO[bytes], path: Path) -> Iterator[tuple[Headers, bytes]]:
    while line := file.readline():
        if not line.strip():
            continue
        if not line.startswith(b"WARC/"):
            raise InputError("not a WARC file, or damaged: a record does not begin with WARC/", path=path)
        headers = _headers(file)
        length = headers.get("content-length", "")
        if not length.isdigit():
            raise InputError("a record does not tell its length", path=path)
        if int(length) > MAX_RECORD:
            file.seek(int(length), 1)
            continue
        block = file.read(int(length))
        if len(block) < int(length):
            raise InputError("the last record is cut off", path=path, hint="download it again")
        yield headers, block


def _headers(file: IO[bytes]) -> Headers:
    headers: Headers = {}
    while line := file.readline().strip():
        name, _, value = line.decode("utf-8", "replace").partition(":")
        headers[name.strip().lower()] = value.strip()
    return headers


def _document(headers: Headers, block: bytes, source: str) -> Document | None:
    url = headers.get("warc-target-uri", "").strip("<>")
    captured = stated(headers.get("warc-date"))[0]
    if headers.get("warc-type") == "conversion":
        body, kind = block, headers.get("content-type", "text/plain")
    elif headers.get("warc-type") == "response" and (answer := _answered(block)) is not None:
        body, kind = answer
    else:
        return None
    try:
        found = read(body, kind, url)
    except PageUnavailable:
        return None
    return Document(
        url=url, title=found.title, text=found.text, published=found.published, captured=captured, source=source
    )


def _answered(block: bytes) -> tuple[bytes, str] | None:
    """The body and its type of a stored HTTP answer with status 200."""
    head, _, body = block.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    if first.split(" ")[1:2] != ["200"]:
        return None
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    try:
        if "chunked" in headers.get("transfer-encoding", "").lower():
            body = _joined(body)
        return _unpacked(body, headers.get("content-encoding", "").lower()), headers.get("content-type", "")
    except (ValueError, zlib.error):
        return None


def _joined(body: bytes) -> bytes:
    """The pieces of a chunked body; a body stored already joined is taken as it is."""
    parts: list[bytes] = []
    rest = body
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        try:
            length = int(size.split(b";")[0], 16)
        except ValueError:
            return body if not parts else b"".join(parts)
        if length == 0:
            break
        parts.append(rest[:length])
        rest = rest[length + 2 :]
    return b"".join(parts)


def _unpacked(body: bytes, encoding: str) -> bytes:
    if encoding in ("gzip", "x-gzip"):
        return _inflated(body, 31) if body.startswith(b"\x1f\x8b") else body
    if encoding == "deflate":
        return _inflated(body, 15 if body[:1] == b"\x78" else -15)
    if encoding in ("", "identity"):
        return body
    raise ValueError(f"cannot unpack {encoding}")


def _inflated(body: bytes, window: int) -> bytes:
    """Unpacked, but never to more than the largest record, so that a bomb in an archive cannot fill the memory."""
    return zlib.decompressobj(window).decompress(body, MAX_RECORD)
