"""Perplexity's Search API: results with excerpts, filtered by the day a page was published and last changed."""

from datetime import timedelta
from typing import Any

from foretell.data.dates import parse_stated_date
from foretell.data.payload import Payload
from foretell.data.search.engine import SearchHit, SearchHits, clean_query, read_hits
from foretell.data.service import JsonService, ServiceConfig
from foretell.questions.as_of import AsOf

PERPLEXITY_URL = "https://api.perplexity.ai"
MAX_RESULTS = 20
TOKENS_A_PAGE = 1_024
DAY = timedelta(days=1)


class PerplexitySearch:
    """Web results. A page counts as of its last change, because its excerpt is taken from the changed page."""

    name = "perplexity"
    facts = "Perplexity's own Python client 0.43 (September 2026); never held against a recorded answer"
    filters_dates = True
    key_variables = ("PERPLEXITY_API_KEY", "PPLX_API_KEY")

    def __init__(self, config: ServiceConfig) -> None:
        self._service = JsonService(config, PERPLEXITY_URL, headers={"Authorization": f"Bearer {config.key}"})

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results in Perplexity's order."""
        body: dict[str, Any] = {"query": clean_query(query, max_chars=2_000), "max_results": min(limit, MAX_RESULTS)}
        body["max_tokens_per_page"] = TOKENS_A_PAGE
        if as_of.mode == "backtest":
            # "Before" leaves the day itself out; what is too new of the last day is left to the fence.
            before = f"{as_of.at.date() + DAY:%m/%d/%Y}"
            body |= {"search_before_date_filter": before, "last_updated_before_filter": before}
        return perplexity_hits(await self._service.post("/search", body), limit)


def perplexity_hits(answer: Payload, limit: int | None = None) -> SearchHits:
    """The results of an answer."""
    return read_hits(answer.need("results").items(), _hit, limit)


def _hit(one: Payload) -> SearchHit:
    stated = [parse_stated_date(one.optional_text(name))[0] for name in ("date", "last_updated")]
    published = max((at for at in stated if at is not None), default=None)
    return SearchHit(
        url=one.address("url"),
        title=one.optional_text("title"),
        snippet=one.optional_text("snippet"),
        published=published,
        dating="published" if published is not None else "none",
    )
