"""Tavily: news search whose dates are those of its crawler."""

from typing import Any, Literal

from foretell.data.dates import EARLIEST, parse_stated_date
from foretell.data.http import AsyncHttpClient
from foretell.data.payload import Payload
from foretell.data.search.engine import SearchHit, address_field, clean_query, optional_text_field, text_field
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf

TAVILY_URL = "https://api.tavily.com"
MAX_RESULTS = 20


class TavilySearch:
    """Results with page text. It filters by when it saw a page, and the text may be of a later day."""

    name = "tavily"
    filters_dates = True
    key_variables = ("TAVILY_API_KEY",)

    def __init__(
        self,
        client: AsyncHttpClient,
        key: str,
        base_url: str = TAVILY_URL,
        *,
        topic: Literal["news", "general"] = "news",
        depth: Literal["basic", "advanced"] = "basic",
    ) -> None:
        """Only `topic="news"` brings dates; a general search returns undated hits."""
        client.keep_secret(key)
        self._client = client
        self._key = key
        self._url = f"{base_url}/search"
        self._fixed = {"topic": topic, "search_depth": depth, "include_raw_content": "text"}

    @classmethod
    def open(cls, config: ServiceConfig) -> "TavilySearch":
        """As the registry opens it."""
        return cls(config.http, config.key, config.address or TAVILY_URL)

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results in Tavily's order."""
        body: dict[str, Any] = {"query": clean_query(query, max_chars=400), **self._fixed}
        body["max_results"] = min(limit, MAX_RESULTS)
        if as_of.mode == "backtest":
            body |= {"start_date": str(EARLIEST), "end_date": f"{as_of.at:%Y-%m-%d}"}
        headers = {"Authorization": f"Bearer {self._key}"}
        answer = Payload.of(await self._client.post(self._url, json=body, headers=headers), self._url)
        return [_hit(one) for one in answer.need("results").items()][:limit]


def _hit(one: Payload) -> SearchHit:
    published, dating = parse_stated_date(optional_text_field(one, "published_date"))
    return SearchHit(
        url=address_field(one, "url"),
        title=text_field(one, "title"),
        snippet=text_field(one, "content"),
        published=published,
        dating="crawled" if dating == "published" else dating,
        text=optional_text_field(one, "raw_content") or None,
    )
