"""The local corpus as a search engine: no network, no key, the same results every time."""

import asyncio

from foretell.data.corpus import Corpus, CorpusHit
from foretell.data.search.engine import SearchHit, clean_query
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf


class CorpusSearch:
    """Searches documents on this machine, with the date filter in the query itself."""

    name = "local"
    facts = "our own format"
    filters_dates = True

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    @classmethod
    def open(cls, config: ServiceConfig) -> "CorpusSearch":
        """Open for the registry."""
        return cls(Corpus(config.corpus, must_exist=True))

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """Return at most `limit` results by relevance."""
        query = clean_query(query, max_chars=2_000)
        found = await asyncio.to_thread(self._corpus.search, query, as_of, limit)
        return [_hit(one) for one in found]


def _hit(found: CorpusHit) -> SearchHit:
    document = found.document
    dated = document.published or document.captured
    return SearchHit(
        url=document.url,
        title=document.title,
        snippet=found.snippet,
        published=dated,
        dating="published" if document.published else "crawled" if dated else "none",
        text=document.text,
        text_as_of=document.captured,
    )
