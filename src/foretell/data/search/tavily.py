"""Tavily: news search whose dates are those of its crawler."""

from typing import Any

from foretell.data.dates import EARLIEST, parse_stated_date
from foretell.data.payload import Payload
from foretell.data.search.engine import SearchHit, SearchHits, clean_query, read_hits
from foretell.data.service import JsonService, ServiceConfig
from foretell.questions.as_of import AsOf

TAVILY_URL = "https://api.tavily.com"
MAX_RESULTS = 20


class TavilySearch:
    """News with page text: a general search brings no dates. It filters by when it saw a page, which may be later."""

    name = "tavily"
    facts = "recorded answers of 2025 (general search), 2026-11-15"
    filters_dates = True
    key_variables = ("TAVILY_API_KEY",)

    def __init__(self, config: ServiceConfig) -> None:
        self._service = JsonService(config, TAVILY_URL, headers={"Authorization": f"Bearer {config.key}"})

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results in Tavily's order."""
        body: dict[str, Any] = {"query": clean_query(query, max_chars=400), "max_results": min(limit, MAX_RESULTS)}
        body |= {"topic": "news", "search_depth": "basic", "include_raw_content": "text"}
        if as_of.mode == "backtest":
            body |= {"start_date": str(EARLIEST), "end_date": f"{as_of.at:%Y-%m-%d}"}
        return tavily_hits(await self._service.post("/search", body), limit)


def tavily_hits(answer: Payload, limit: int | None = None) -> SearchHits:
    """The results of an answer. A general search brings no dates; those of a news search are the crawler's."""
    return read_hits(answer.need("results").items(), _hit, limit)


def _hit(one: Payload) -> SearchHit:
    published, dating = parse_stated_date(one.optional_text("published_date"))
    return SearchHit(
        url=one.address("url"),
        title=one.stated_text("title"),
        snippet=one.stated_text("content"),
        published=published,
        dating="crawled" if dating == "published" else dating,
        text=one.optional_text("raw_content") or None,
    )
