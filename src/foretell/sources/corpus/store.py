"""Documents in one SQLite file with a full-text index."""

import hashlib
import re
import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from foretell.questions.clock import AsOf
from foretell.questions.problems import InputError

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
# A capture proves that the text existed then, so it stands in where a page states no date of its own.
_BEST = """
SELECT words.rowid FROM words JOIN documents ON documents.id = words.rowid
WHERE words MATCH ? AND (? IS NULL OR coalesce(published, captured) <= ?)
ORDER BY bm25(words, 5.0, 1.0), words.rowid LIMIT ?
"""
# Apart from the ranking, because a passage is costly and the ranking goes over everything that matches.
_SHOWN = """
SELECT url, documents.title, documents.text, published, captured, source, snippet(words, 1, '', '', ' … ', 48)
FROM words JOIN documents ON documents.id = words.rowid WHERE words MATCH ? AND words.rowid = ?
"""
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been but by can did do does for from had has have how if in into is it its not of on or "
        "so than that the their there this to was were what when where which who why will with would",
    )
)
BATCH = 500


@dataclass(frozen=True, kw_only=True)
class Document:
    """A text with its dates. `published` is what it states of itself, `captured` when this version was stored."""

    url: str
    title: str
    text: str
    published: datetime | None
    captured: datetime | None = None
    source: str = ""

    @property
    def hash(self) -> str:
        """The same for the same content, wherever it was imported from."""
        return hashlib.sha256("\0".join((self.url, self.title, self.text)).encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Found:
    """A document with the passage that matched."""

    document: Document
    snippet: str


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What an import brought."""

    added: int = 0
    known: int = 0
    undated: int = 0
    """Of all that were read, those with no date at all: a backtest will never see them."""

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            added=self.added + other.added, known=self.known + other.known, undated=self.undated + other.undated
        )


class Corpus:
    """One file of documents. Importing the same content twice changes nothing.

    >>> corpus = Corpus(":memory:")
    >>> counts = corpus.add([Document(url="u", title="Rates", text="The bank held.", published=None)])
    >>> counts.added, counts.undated, len(corpus)
    (1, 1, 1)
    """

    def __init__(self, path: str | Path, *, must_exist: bool = False) -> None:
        if must_exist and not Path(path).is_file():
            raise InputError("no corpus here", path=path, hint="make one with: foretell corpus import FOLDER")
        self.path = path
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise InputError(f"not a corpus: {error}", path=path, hint="name another file") from None

    def __len__(self) -> int:
        with self._lock:
            return self._db.execute("SELECT count(*) FROM documents").fetchone()[0]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def add(self, documents: Iterable[Document]) -> Counts:
        """Store what is new. A document met again with another date keeps the later publication and earlier capture."""
        counts, batch = Counts(), list[Document]()
        for document in documents:
            batch.append(document)
            if len(batch) == BATCH:
                counts, batch = counts + self._store(batch), []
        return counts + self._store(batch)

    def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[Found]:
        """The best matches; in a backtest only what is dated, and dated at or before the cutoff."""
        words = _any_of(query)
        if not words:
            return []
        until = _written(as_of.at) if as_of.mode == "backtest" else None
        with self._lock:
            best = self._db.execute(_BEST, (words, until, until, limit)).fetchall()
            rows = [self._db.execute(_SHOWN, (words, one)).fetchone() for (one,) in best]
        return [
            Found(
                document=Document(
                    url=url, title=title, text=text, published=_read(at), captured=_read(kept), source=source
                ),
                snippet=snippet,
            )
            for url, title, text, at, kept, source, snippet in rows
        ]

    def _store(self, batch: list[Document]) -> Counts:
        with self._lock, self._db:
            before = self._last_id()
            self._db.executemany(_INSERT, [_row(one) for one in batch])
            added = self._last_id() - before
        undated = sum(one.published is None and one.captured is None for one in batch)
        return Counts(added=added, known=len(batch) - added, undated=undated)

    def _last_id(self) -> int:
        """Grows by one with every new document, for none is ever taken out."""
        return self._db.execute("SELECT coalesce(max(id), 0) FROM documents").fetchone()[0]


def _row(one: Document) -> tuple[str | None, ...]:
    return (one.hash, one.url, one.title, one.text, _written(one.published), _written(one.captured), one.source)


def _written(moment: datetime | None) -> str | None:
    """Of fixed width, so that text order is time order."""
    return None if moment is None else moment.isoformat(timespec="microseconds")


def _read(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _any_of(query: str) -> str:
    """Any of the words but the commonest, phrases in quotes kept together; rare words count more by the ranking.

    >>> _any_of('will the "central bank" cut?'), _any_of("to be or not to be")
    ('"central bank" OR "cut"', '"to" OR "be" OR "or" OR "not"')
    """
    parts = re.findall(r'"([^"]+)"|(\w+)', query)
    phrases = list(dict.fromkeys(" ".join(re.findall(r"\w+", phrase or word)) for phrase, word in parts))
    telling = [one for one in phrases if one.casefold() not in _COMMON]
    return " OR ".join(f'"{one}"' for one in telling or phrases if one)
