"""Results of search engines, what the engines guarantee about dates, and several engines combined."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from foretell.data.dates import Dating
from foretell.data.http import SourceError
from foretell.data.payload import Payload, readable
from foretell.frozen import frozen
from foretell.questions.as_of import AsOf


@frozen
class SearchHit:
    """One result, as the engine returned it. Nothing has been checked against a cutoff yet."""

    url: str
    title: str
    snippet: str
    published: datetime | None
    dating: Dating = "published"
    text: str | None = None
    """The page's text, if the engine returns it with the result."""
    text_as_of: datetime | None = None
    """For stored versions of a page: when this version was captured."""


class SearchHits(list[SearchHit]):
    """Results in the engine's order, with notes on those that could not be read."""

    def __init__(self, hits: Iterable[SearchHit] = (), notes: tuple[str, ...] = ()) -> None:
        super().__init__(hits)
        self.notes = notes


class CannotSearch(Exception):
    """The engine cannot run this query, e.g. it has no date filter and this is a backtest."""


class SearchEngine(Protocol):
    """Finds pages published by a cutoff."""

    @property
    def name(self) -> str:
        """Name in settings and traces."""
        ...

    @property
    def filters_dates(self) -> bool:
        """Whether the engine itself can exclude results newer than a cutoff; if not, backtests are refused."""
        ...

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """Return at most `limit` results in the engine's order."""
        ...


@runtime_checkable
class DocumentSource(Protocol):
    """Opens a document by the address under which a search returns it, as the user's own corpus does."""

    async def document(self, url: str, as_of: AsOf) -> SearchHit | None:
        """Return the whole document; None if there is none, or if it is newer than the cutoff of a backtest."""
        ...


class FallbackSearch:
    """Tries engines in order until one returns results. A backtest uses only those that can filter by date."""

    def __init__(self, engines: Sequence[SearchEngine]) -> None:
        if not engines:
            raise ValueError("at least one engine is needed")
        self._engines = tuple(engines)

    @property
    def name(self) -> str:
        """All names, in order."""
        return "+".join(engine.name for engine in self._engines)

    @property
    def filters_dates(self) -> bool:
        """Whether any of the engines can filter by date."""
        return any(engine.filters_dates for engine in self._engines)

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """Return the first non-empty results; raise the last error if all engines fail."""
        failure: Exception | None = None
        answered = False
        for engine in self._engines:
            if as_of.mode == "backtest" and not engine.filters_dates:
                continue
            try:
                hits = await engine.search(query, as_of, limit)
            except (CannotSearch, SourceError) as error:
                failure = error
                continue
            answered = True
            if hits:
                return hits
        if failure is not None and not answered:
            raise failure
        return []

    async def document(self, url: str, as_of: AsOf) -> SearchHit | None:
        """Return the document of the first engine that has it."""
        for engine in self._engines:
            if isinstance(engine, DocumentSource) and (hit := await engine.document(url, as_of)) is not None:
                return hit
        return None


def clean_query(query: str, *, max_chars: int, max_words: int | None = None) -> str:
    """Return the query on one line, or raise `CannotSearch` saying what to change.

    >>> clean_query("  rate  cut ", max_chars=400)
    'rate cut'
    """
    words = query.split()
    line = " ".join(words)
    if not line:
        raise CannotSearch("the query is empty; write what to look for")
    if len(line) > max_chars:
        raise CannotSearch(f"the query has {len(line)} characters and at most {max_chars} are allowed; shorten it")
    if max_words is not None and len(words) > max_words:
        raise CannotSearch(f"the query has {len(words)} words and at most {max_words} are allowed; shorten it")
    return line


def read_hits(rows: Sequence[Payload], read: Callable[[Payload], SearchHit], limit: int | None = None) -> SearchHits:
    """Parse results, at most `limit`; one that cannot be read, e.g. without an address, is left out and noted."""
    hits, notes = readable(rows, read)
    return SearchHits(hits[:limit], notes)


async def collect_hits(page: Callable[[int], Awaitable[SearchHits]], *, limit: int, size: int, most: int) -> SearchHits:
    """Fetch pages one after another, keeping each address once, until there are `limit` hits or no more.

    `size` is the number of hits on a full page, `most` the maximum number of pages.
    """
    hits: dict[str, SearchHit] = {}
    notes: list[str] = []
    for number in range(most):
        results = await page(number)
        notes += results.notes
        for hit in results:
            hits.setdefault(hit.url, hit)
        if len(hits) >= limit or (len(results) < size and not results.notes):
            break
    return SearchHits(list(hits.values())[:limit], tuple(notes))
