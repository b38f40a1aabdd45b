"""Documents in an SQLite file with a full-text index, and the search engine that reads them."""

import asyncio
import gzip
import hashlib
import os
import re
import sqlite3
import threading
import weakref
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from foretell.data.datasets.rows import Row, columns_of, table_rows
from foretell.data.dates import parse_stated_date
from foretell.data.pages import PageUnavailable, read_html, read_page
from foretell.data.search.engine import SearchHit, clean_query
from foretell.data.service import ServiceConfig
from foretell.data.usual_names import DOCUMENT_NAMES, columns_named
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.codec import parse_yaml
from foretell.questions.errors import DAMAGED_HINT, DamagedFile, InputError, storage_error

_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    -- The text comes last: what stands after it could only be reached through all its pages.
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, published TEXT, captured TEXT, source TEXT NOT NULL,
    url TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL
);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    title, text, content='documents', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER IF NOT EXISTS indexed AFTER INSERT ON documents BEGIN
    INSERT INTO words (rowid, title, text) VALUES (new.id, new.title, new.text);
END;
"""
_INSERT = """
INSERT INTO documents (hash, url, title, text, published, captured, source) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (hash) DO UPDATE SET
    published = max(coalesce(published, excluded.published), coalesce(excluded.published, published)),
    captured = min(coalesce(captured, excluded.captured), coalesce(excluded.captured, captured))
"""
# A capture proves that the text existed then, so it is used if a page states no date.
_BEST = """
SELECT words.rowid FROM words JOIN documents ON documents.id = words.rowid
WHERE words MATCH ? AND (? IS NULL OR coalesce(published, captured) <= ?)
ORDER BY bm25(words, 5.0, 1.0), words.rowid LIMIT ?
"""
# Separate from the ranking query, because snippets are costly and the ranking covers all matches.
_SHOWN = """
SELECT url, documents.title, documents.text, published, captured, source, snippet(words, 1, '', '', ' … ', 48)
FROM words JOIN documents ON documents.id = words.rowid WHERE words MATCH ? AND words.rowid = ?
"""
_AT = """
SELECT url, title, text, published, captured, source FROM documents
WHERE url = ? AND (? IS NULL OR coalesce(published, captured) <= ?)
ORDER BY coalesce(published, captured) DESC, id DESC LIMIT 1
"""
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been but by can did do does for from had has have how if in into is it its not of on or "
        "so than that the their there this to was were what when where which who why will with would",
    )
)
BATCH = 500


@frozen
class CorpusDocument:
    """A text with its dates: `published` as stated by itself, `captured` when this version was stored."""

    url: str
    title: str
    text: str
    published: datetime | None
    captured: datetime | None = None
    source: str = ""

    @property
    def hash(self) -> str:
        """Hash of the content, wherever it was imported from."""
        return hashlib.sha256("\0".join((self.url, self.title, self.text)).encode("utf-8", "replace")).hexdigest()


@frozen
class CorpusHit:
    """A document with the matching passage."""

    document: CorpusDocument
    snippet: str


@frozen
class CorpusCounts:
    """Result of an import."""

    added: int = 0
    known: int = 0
    undated: int = 0
    """Documents without any date: a backtest will never see them."""

    def __add__(self, other: "CorpusCounts") -> "CorpusCounts":
        return CorpusCounts(**{name: value + getattr(other, name) for name, value in vars(self).items()})


class Corpus:
    """One file of documents. Importing the same content twice changes nothing.

    >>> corpus = Corpus(":memory:")
    >>> counts = corpus.add([CorpusDocument(url="u", title="Rates", text="The bank held.", published=None)])
    >>> counts.added, counts.undated, len(corpus)
    (1, 1, 1)
    """

    def __init__(self, path: str | Path, *, must_exist: bool = False) -> None:
        if must_exist and not Path(path).is_file():
            raise InputError("no corpus here", path=path, hint="make one with: foretell corpus add FOLDER")
        self.path = path
        self._lock = threading.Lock()
        try:
            self._db = _connected(path)
            weakref.finalize(self, self._db.close)  # Searches of a run share it, and none knows that it is the last.
        except sqlite3.Error as error:
            problem = storage_error(error, path)
            if problem is not None and not isinstance(problem, DamagedFile):
                raise problem from None
            hint = f"name another file; {DAMAGED_HINT}"
            raise InputError(f"not a corpus, or damaged: {error}", path=path, hint=hint) from None

    def __len__(self) -> int:
        with self._lock:
            return self._db.execute("SELECT count(*) FROM documents").fetchone()[0]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def add(self, documents: Iterable[CorpusDocument]) -> CorpusCounts:
        """Store new documents. A known document with another date keeps the later publication and earlier capture."""
        counts, batch = CorpusCounts(), list[CorpusDocument]()
        for document in documents:
            batch.append(document)
            if len(batch) == BATCH:
                counts, batch = counts + self._store(batch), []
        return counts + self._store(batch)

    def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[CorpusHit]:
        """Return the best matches; in a backtest only documents dated at or before the cutoff."""
        words = _any_of(query)
        if not words:
            return []
        until = _date_to_text(as_of.at) if as_of.mode == "backtest" else None
        try:
            with self._lock:
                best = self._db.execute(_BEST, (words, until, until, limit)).fetchall()
                rows = [self._db.execute(_SHOWN, (words, id)).fetchone() for (id,) in best]
        except sqlite3.DatabaseError as error:
            raise storage_error(error, self.path) or error from None
        return [CorpusHit(document=_document_of(row), snippet=snippet) for *row, snippet in rows]

    def document(self, url: str, as_of: AsOf) -> CorpusDocument | None:
        """Return the newest document at an address; in a backtest the newest one dated at or before the cutoff."""
        until = _date_to_text(as_of.at) if as_of.mode == "backtest" else None
        try:
            with self._lock:
                row = self._db.execute(_AT, (url, until, until)).fetchone()
        except sqlite3.DatabaseError as error:
            raise storage_error(error, self.path) or error from None
        return None if row is None else _document_of(row)

    def _store(self, batch: list[CorpusDocument]) -> CorpusCounts:
        try:
            with self._lock, self._db:
                before = self._last_id()
                self._db.executemany(_INSERT, [_row(document) for document in batch])
                added = self._last_id() - before
        except sqlite3.DatabaseError as error:
            raise storage_error(error, self.path) or error from None
        undated = sum(document.published is None and document.captured is None for document in batch)
        return CorpusCounts(added=added, known=len(batch) - added, undated=undated)

    def _last_id(self) -> int:
        """Return the last id, which grows by one with every new document, because none is ever deleted."""
        return self._db.execute("SELECT coalesce(max(id), 0) FROM documents").fetchone()[0]


def _connected(path: str | Path) -> sqlite3.Connection:
    """Open the file, creating it if it is missing; read-only if it cannot be written to."""
    file = Path(path)
    if file.is_file() and not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
        log = Path(f"{file}-wal")
        mode = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
        return sqlite3.connect(f"{file.absolute().as_uri()}?{mode}", uri=True, check_same_thread=False)
    db = sqlite3.connect(path, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.executescript(_SCHEMA)
    except sqlite3.Error:
        db.close()
        raise
    return db


def _document_of(row: Sequence[Any]) -> CorpusDocument:
    url, title, text, published_at, captured_at, source = row
    return CorpusDocument(
        url=url,
        title=title,
        text=text,
        published=_date_from_text(published_at),
        captured=_date_from_text(captured_at),
        source=source,
    )


def _row(document: CorpusDocument) -> tuple[str | None, ...]:
    return (
        document.hash,
        document.url,
        document.title,
        document.text,
        _date_to_text(document.published),
        _date_to_text(document.captured),
        document.source,
    )


def _date_to_text(at: datetime | None) -> str | None:
    """Format with a fixed width, so that text order is time order."""
    return None if at is None else at.isoformat(timespec="microseconds")


def _date_from_text(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _any_of(query: str) -> str:
    """Return a query for any of the words except the most common ones; quoted phrases stay together.

    >>> _any_of('will the "central bank" cut?'), _any_of("to be or not to be")
    ('"central bank" OR "cut"', '"to" OR "be" OR "or" OR "not"')
    """
    parts = re.findall(r'"([^"]+)"|(\w+)', query)
    phrases = list(dict.fromkeys(" ".join(re.findall(r"\w+", phrase or word)) for phrase, word in parts))
    telling = [phrase for phrase in phrases if phrase.casefold() not in _COMMON]
    return " OR ".join(f'"{phrase}"' for phrase in telling or phrases if phrase)


# Web archive files (WARC): pages stored by crawlers, each with the time of its capture.

MAX_RECORD = 20_000_000
"""Larger records are skipped: they are not articles."""
Headers = dict[str, str]


def read_warc(path: Path) -> Iterator[CorpusDocument]:
    """Yield the readable pages of a web archive. Skips records without text, or with a status other than 200."""
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
        headers: Headers = {}
        while field := file.readline().strip():
            name, _, value = field.decode("utf-8", "replace").partition(":")
            headers[name.strip().lower()] = value.strip()
        length = headers.get("content-length", "")
        if not length.isdigit():
            raise InputError("a record does not state its length", path=path)
        if int(length) > MAX_RECORD:
            file.seek(int(length), 1)
            continue
        block = file.read(int(length))
        if len(block) < int(length):
            raise InputError("the last record is cut off", path=path, hint="download it again")
        yield headers, block


def _document(headers: Headers, block: bytes, source: str) -> CorpusDocument | None:
    url = headers.get("warc-target-uri", "").strip("<>")
    captured = parse_stated_date(headers.get("warc-date"))[0]
    if headers.get("warc-type") == "conversion":
        body, kind = block, headers.get("content-type", "text/plain")
    elif headers.get("warc-type") == "response" and (answer := _answered(block)) is not None:
        body, kind = answer
    else:
        return None
    try:
        page = read_page(body, kind, url)
    except PageUnavailable:
        return None
    return CorpusDocument(
        url=url, title=page.title, text=page.text, published=page.published, captured=captured, source=source
    )


def _answered(block: bytes) -> tuple[bytes, str] | None:
    """Return body and content type of a stored HTTP response with status 200."""
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
    """Return the joined chunks of a body; a body stored without chunks is returned as it is."""
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
    """Return the decompressed body, limited to the largest record, so that a zip bomb cannot fill the memory."""
    return zlib.decompressobj(window).decompress(body, MAX_RECORD)


# Documents from files: plain text, Markdown, HTML and tables.

_TEXTS = (".txt", ".md")
_PAGES = (".html", ".htm")
_WARCS = (".warc", ".warc.gz")
_TABLES = (".jsonl", ".parquet")
KINDS = (*_TEXTS, *_PAGES, *_TABLES, *_WARCS)
_FRONT = pattern(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_NAMED_DAY = pattern(r"(\d{4}-\d\d-\d\d)(?!\d)")
_DATE_KEYS = ("published", "date", "updated", "modified")


def read_documents(path: Path) -> Iterator[CorpusDocument]:
    """Yield every document of a file, or of a folder and its subfolders. HTML pages without text are left out."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file() and file.name.lower().endswith(KINDS) and not _is_other_table(file):
                yield from read_documents(file)
        return
    name = path.name.lower()
    if not path.is_file():
        raise InputError("no such file or folder", path=path)
    if not name.endswith(KINDS):
        raise InputError("this kind of file cannot be imported", path=path, hint=f"it takes {', '.join(KINDS)}")
    if name.endswith(_WARCS):
        yield from read_warc(path)
    elif name.endswith(_TABLES):
        yield from _table(path)
    elif name.endswith(_PAGES):
        yield from _page(path)
    else:
        yield _text(path)


def _is_other_table(file: Path) -> bool:
    """Whether a Parquet file, which may hold anything, has no texts of pages; in a folder it is passed over."""
    if not file.name.lower().endswith(".parquet"):
        return False
    columns = columns_of(file)
    return not all(columns_named(columns, DOCUMENT_NAMES[role]) for role in ("url", "text"))


def _text(path: Path) -> CorpusDocument:
    """Read a text file, dated by its front matter or by the beginning of its name."""
    content = path.read_text(encoding="utf-8", errors="replace").removeprefix("\ufeff")
    front, body = _front_matter(content, path)
    head = Row(path=path, number=0, fields=front)
    dates = [_date(head, key) for key in _DATE_KEYS if front.get(key) is not None]
    return CorpusDocument(
        url=str(front.get("url") or path.absolute().as_uri()),
        title=str(front.get("title") or _first_line(body) or path.stem),
        text=body.strip(),
        published=max(dates) if dates else _day_in_name(path),
        source=str(front.get("source") or path.name),
    )


def _page(path: Path) -> Iterator[CorpusDocument]:
    url = path.absolute().as_uri()
    try:
        html = read_html(path.read_bytes(), url)
    except PageUnavailable:
        return
    published = html.published or _day_in_name(path)
    yield CorpusDocument(url=url, title=html.title or path.stem, text=html.text, published=published, source=path.name)


def _table(path: Path) -> Iterator[CorpusDocument]:
    """Read a table of pages, such as articles of a news corpus or what was fetched of a frozen web."""
    for row in table_rows(path):
        names = _roles(tuple(row.fields))
        url, text = (row.fields.get(names[role]) for role in ("url", "text"))
        for role, value in (("url", url), ("text", text)):
            if not isinstance(value, str):
                hint = "write url, title, text and published; addresses alone cannot be searched"
                raise row.problem(names[role], "is missing or not a text", hint)
        published, captured = (
            _date(row, names[role]) if row.get(names[role]) is not None else None for role in ("published", "captured")
        )
        yield CorpusDocument(
            url=str(url),
            title=row.text(names["title"]) or str(url),
            text=str(text),
            published=published,
            captured=captured,
            source=row.text("source") or path.name,
        )


@lru_cache(maxsize=64)
def _roles(columns: tuple[str, ...]) -> Mapping[str, str]:
    """Role of a document → the column that has it; the name of the role if none has."""
    return {role: next(iter(columns_named(columns, groups)), role) for role, groups in DOCUMENT_NAMES.items()}


def _date(row: Row, column: str) -> datetime:
    date = parse_stated_date(str(row.fields[column]))[0]
    if date is None:
        raise row.problem(column, f"{row.fields[column]!r} is not a date", "write e.g. 2025-10-26")
    return date


def _front_matter(content: str, path: Path) -> tuple[dict[str, Any], str]:
    match = _FRONT.match(content)
    if match is None:
        return {}, content
    try:
        front: Any = parse_yaml(match[1])
    except InputError:
        raise InputError("the lines between --- are not YAML", path=path, hint="write e.g. date: 2025-10-26") from None
    return (front if isinstance(front, dict) else {}), content[match.end() :]


def _day_in_name(path: Path) -> datetime | None:
    match = _NAMED_DAY.match(path.name)
    return parse_stated_date(match[1])[0] if match else None


def _first_line(body: str) -> str:
    lines = body.strip().splitlines()
    return lines[0].lstrip("# ").strip()[:200] if lines else ""


# The local corpus as a search engine: no network, no key, the same results every time.


class CorpusSearch:
    """Searches documents on this machine; the query itself filters by date."""

    name = "local"
    facts = "our own format"
    filters_dates = True

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    @classmethod
    def open(cls, config: ServiceConfig) -> "CorpusSearch":
        """Open for the registry."""
        corpus = Corpus(config.corpus, must_exist=True)
        search = cls(corpus)
        weakref.finalize(search, corpus.close)  # Search engines have no end of their own.
        return search

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """Return at most `limit` results by relevance."""
        query = clean_query(query, max_chars=2_000)
        hits = await asyncio.to_thread(self._corpus.search, query, as_of, limit)
        return [_hit(hit) for hit in hits]

    async def document(self, url: str, as_of: AsOf) -> SearchHit | None:
        """Return the whole document at an address; None if there is none."""
        document = await asyncio.to_thread(self._corpus.document, url.strip(), as_of)
        return None if document is None else _hit(CorpusHit(document=document, snippet=""))


def _hit(hit: CorpusHit) -> SearchHit:
    document = hit.document
    dated = document.published or document.captured
    return SearchHit(
        url=document.url,
        title=document.title,
        snippet=hit.snippet,
        published=dated,
        dating="published" if document.published else "crawled" if dated else "none",
        text=document.text,
        text_as_of=document.captured,
    )
