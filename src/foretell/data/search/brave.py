"""Brave Search: an index of its own, filtered by the day a page was discovered."""

import html
import re

from foretell.data.dates import EARLIEST, parse_stated_date
from foretell.data.payload import Payload
from foretell.data.search.engine import SearchHit, SearchHits, clean_query, collect_hits, read_hits
from foretell.data.service import JsonService, ServiceConfig
from foretell.questions.as_of import AsOf

BRAVE_URL = "https://api.search.brave.com/res/v1"
PAGE = 20
MAX_PAGES = 10


class BraveSearch:
    """Web results with extra snippets. Undated pages pass its filter, so they come back without a date."""

    name = "brave"
    facts = "recorded answers of 2024 (web search), 2026-11-15"
    filters_dates = True
    key_variables = ("BRAVE_API_KEY",)

    def __init__(self, config: ServiceConfig) -> None:
        headers = {"X-Subscription-Token": config.key, "Accept": "application/json"}
        self._service = JsonService(config, BRAVE_URL, headers=headers)

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results in Brave's order."""
        size = min(limit, PAGE)
        params = {"q": clean_query(query, max_chars=400, max_words=50), "result_filter": "web"}
        params |= {"extra_snippets": "true", "text_decorations": "false", "count": str(size)}
        if as_of.mode == "backtest":
            params["freshness"] = f"{EARLIEST}to{as_of.at:%Y-%m-%d}"

        async def page(number: int) -> SearchHits:
            return brave_hits(await self._service.read("/web/search", params | {"offset": str(number)}))

        return await collect_hits(page, limit=limit, size=size, most=MAX_PAGES)


def brave_hits(answer: Payload) -> SearchHits:
    """The web results of an answer; videos, news and boxes beside them are left alone."""
    # An answer without any web result has no field "web"; "type" tells it from something else.
    if answer.get("web") is None and answer.optional_text("type") == "search":
        return SearchHits()
    return read_hits(answer.need("web", "results").items(), _hit)


def _hit(one: Payload) -> SearchHit:
    published, dating = parse_stated_date(one.optional_text("page_age"))
    if published is None:
        published, dating = parse_stated_date(one.optional_text("age"))
    snippets = filter(None, [one.optional_text("description"), *one.texts("extra_snippets")])
    return SearchHit(
        url=one.address("url"),
        title=_plain(one.stated_text("title")),
        snippet="\n".join(_plain(part) for part in snippets),
        published=published,
        dating=dating,
    )


def _plain(marked: str) -> str:
    return html.unescape(re.sub(r"</?strong>", "", marked))
