"""The corpus, a user's own dated documents: add to it and search it."""

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foretell.data.corpus import Corpus, CorpusCounts, CorpusHit, read_documents
from foretell.frozen import frozen
from foretell.operations.requests.data import (
    CorpusAddRequest,
    CorpusSearchRequest,
)
from foretell.questions.as_of import NO_CUTOFF, AsOf
from foretell.questions.errors import InputError, said
from foretell.report.result import Result
from foretell.runs.settings import load_settings


@frozen
class CorpusAddition(Result):
    """What was added to the corpus."""

    added: int
    known: int
    undated: int
    total: int
    corpus: Path

    @property
    def warnings(self) -> tuple[str, ...]:
        """How many documents have no date."""
        return (f"{self.undated} have no date: a backtest never sees them",) if self.undated else ()

    def __str__(self) -> str:
        return f"{self.added} added, {self.known} already there, {self.total} in {self.corpus}"


def add_documents(request: CorpusAddRequest) -> CorpusAddition:
    """Add files or folders; documents that are already in the corpus are not stored twice."""
    for source in request.sources:
        if not source.exists():
            raise InputError("there is no such file or folder", path=source)
    path = request.corpus or load_settings().corpus
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(Corpus(path)) as store:
        counts = sum((store.add(read_documents(source)) for source in request.sources), CorpusCounts())
        return CorpusAddition(**asdict(counts), total=len(store), corpus=path)


@frozen
class CorpusSearchResult(Result):
    """Documents of the corpus, best matches first."""

    hits: tuple[CorpusHit, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """A note if nothing was found."""
        return () if self.hits else ("nothing found",)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return one dictionary per document."""
        rows: list[dict[str, Any]] = []
        for hit in self.hits:
            dated = hit.document.published or hit.document.captured
            row = {"dated": dated.isoformat() if dated else None, "title": hit.document.title, "url": hit.document.url}
            rows.append({**row, "snippet": hit.snippet})
        return rows

    def __str__(self) -> str:
        return "\n".join(
            f"{row['dated'][:10] if row['dated'] else 'undated'}  {row['title']}\n"
            f"            {row['url']}\n            {row['snippet']}"
            for row in self.to_dict()
        )


def search_corpus(request: CorpusSearchRequest) -> CorpusSearchResult:
    """Search the corpus as of a date, or all of it."""
    try:
        as_of = AsOf.day(request.as_of) if request.as_of else NO_CUTOFF
    except ValueError as error:
        raise InputError(said(error), column="--as-of") from None
    with closing(Corpus(request.corpus or load_settings().corpus, must_exist=True)) as store:
        return CorpusSearchResult(hits=tuple(store.search(request.query, as_of, request.limit)))
