"""Documents from files: plain text, Markdown, HTML and JSON lines."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from foretell.questions.problems import InputError
from foretell.sources.corpus.store import Document
from foretell.sources.corpus.warc import read_warc
from foretell.sources.engines.dates import stated
from foretell.sources.page import PageUnavailable
from foretell.sources.readable import read_html

_TEXTS = (".txt", ".md")
_PAGES = (".html", ".htm")
_WARCS = (".warc", ".warc.gz")
KINDS = (*_TEXTS, *_PAGES, ".jsonl", *_WARCS)
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_NAMED_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?!\d)")
_DATE_KEYS = ("published", "date", "updated", "modified")


def read_documents(path: Path) -> Iterator[Document]:
    """Every document of a file, or of a folder with all that lies beneath it. An HTML page without text is left out."""
    if path.is_dir():
        for one in sorted(path.rglob("*")):
            if one.is_file() and one.name.lower().endswith(KINDS):
                yield from read_documents(one)
        return
    name = path.name.lower()
    if not path.is_file():
        raise InputError("no such file or folder", path=path)
    if not name.endswith(KINDS):
        raise InputError("this kind of file cannot be imported", path=path, hint=f"it takes {', '.join(KINDS)}")
    if name.endswith(_WARCS):
        yield from read_warc(path)
    elif name.endswith(".jsonl"):
        yield from _json_lines(path)
    elif name.endswith(_PAGES):
        yield from _page(path)
    else:
        yield _text(path)


def _text(path: Path) -> Document:
    """A text, its date from the lines between --- at its head or from the beginning of its name."""
    content = path.read_text(encoding="utf-8", errors="replace").removeprefix("\ufeff")
    front, body = _front_matter(content, path)
    dates = [_date(front[key], path=path, column=key) for key in _DATE_KEYS if front.get(key) is not None]
    return Document(
        url=str(front.get("url") or path.absolute().as_uri()),
        title=str(front.get("title") or _first_line(body) or path.stem),
        text=body.strip(),
        published=max(dates) if dates else _day_in_name(path),
        source=str(front.get("source") or path.name),
    )


def _page(path: Path) -> Iterator[Document]:
    url = path.absolute().as_uri()
    try:
        found = read_html(path.read_bytes(), url)
    except PageUnavailable:
        return
    published = found.published or _day_in_name(path)
    yield Document(url=url, title=found.title or path.stem, text=found.text, published=published, source=path.name)


def _json_lines(path: Path) -> Iterator[Document]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    yield _from_json(line, path)
                except InputError as error:
                    raise error.at(path=path, row=number) from None


def _from_json(line: str, path: Path) -> Document:
    try:
        row: Any = json.loads(line)
    except ValueError as error:
        raise InputError(f"not JSON: {error}") from None
    if not isinstance(row, dict):
        raise InputError("not a JSON object", hint="write url, title, text and published")
    for name in ("url", "title", "text"):
        if not isinstance(row.get(name), str):
            raise InputError("is missing or not a text", column=name, hint="write url, title, text and published")
    return Document(
        url=row["url"],
        title=row["title"],
        text=row["text"],
        published=_optional_date(row, "published"),
        captured=_optional_date(row, "captured"),
        source=str(row.get("source") or path.name),
    )


def _optional_date(row: dict[str, Any], column: str) -> datetime | None:
    return None if row.get(column) is None else _date(row[column], column=column)


def _date(value: Any, *, column: str, path: Path | None = None) -> datetime:
    found = stated(str(value))[0]
    if found is None:
        raise InputError(f"{value!r} is not a date", path=path, column=column, hint="write e.g. 2025-10-26")
    return found


def _front_matter(content: str, path: Path) -> tuple[dict[str, Any], str]:
    import yaml

    found = _FRONT.match(content)
    if found is None:
        return {}, content
    try:
        front: Any = yaml.safe_load(found[1])
    except yaml.YAMLError:
        raise InputError("the lines between --- are not YAML", path=path, hint="write e.g. date: 2025-10-26") from None
    return (front if isinstance(front, dict) else {}), content[found.end() :]


def _day_in_name(path: Path) -> datetime | None:
    found = _NAMED_DAY.match(path.name)
    return stated(found[1])[0] if found else None


def _first_line(body: str) -> str:
    lines = body.strip().splitlines()
    return lines[0].lstrip("# ").strip()[:200] if lines else ""
