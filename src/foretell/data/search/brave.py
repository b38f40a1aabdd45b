"""Brave Search: an index of its own, filtered by the day a page was discovered."""

import html
import re
from datetime import datetime

from foretell.data.dates import EARLIEST, parse_stated_date
from foretell.data.http import AsyncHttpClient
from foretell.data.payload import Payload
from foretell.data.search.engine import (
    Dating,
    SearchHit,
    address_field,
    clean_query,
    collect_hits,
    optional_text_field,
    text_field,
    text_list_field,
)
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf

BRAVE_URL = "https://api.search.brave.com/res/v1"
PAGE = 20
MAX_PAGES = 10


class BraveSearch:
    """Web results with extra snippets. Undated pages pass its filter, so they come back without a date."""

    name = "brave"
    filters_dates = True
    key_variables = ("BRAVE_API_KEY",)

    def __init__(self, client: AsyncHttpClient, key: str, base_url: str = BRAVE_URL) -> None:
        client.keep_secret(key)
        self._client = client
        self._key = key
        self._url = f"{base_url}/web/search"

    @classmethod
    def open(cls, config: ServiceConfig) -> "BraveSearch":
        """As the registry opens it."""
        return cls(config.http, config.key, config.address or BRAVE_URL)

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results in Brave's order."""
        query = clean_query(query, max_chars=400, max_words=50)
        size = min(limit, PAGE)

        async def page(number: int) -> list[SearchHit]:
            params = _params(query, as_of) | {"count": str(size), "offset": str(number)}
            headers = {"X-Subscription-Token": self._key, "Accept": "application/json"}
            return _hits(Payload.of(await self._client.get(self._url, params=params, headers=headers), self._url))

        return await collect_hits(page, limit=limit, size=size, most=MAX_PAGES)


def _params(query: str, as_of: AsOf) -> dict[str, str]:
    params = {"q": query, "result_filter": "web", "extra_snippets": "true", "text_decorations": "false"}
    if as_of.mode == "backtest":
        params["freshness"] = f"{EARLIEST}to{as_of.at:%Y-%m-%d}"
    return params


def _hits(answer: Payload) -> list[SearchHit]:
    # An answer without any web result has no field "web"; "type" tells it from something else.
    if answer.get("web") is None and optional_text_field(answer, "type") == "search":
        return []
    return [_hit(one) for one in answer.need("web").need("results").items()]


def _hit(one: Payload) -> SearchHit:
    published, dating = _dated(one)
    snippets = filter(None, [optional_text_field(one, "description"), *text_list_field(one, "extra_snippets")])
    return SearchHit(
        url=address_field(one, "url"),
        title=_plain(text_field(one, "title")),
        snippet="\n".join(_plain(part) for part in snippets),
        published=published,
        dating=dating,
    )


def _dated(one: Payload) -> tuple[datetime | None, Dating]:
    found = parse_stated_date(optional_text_field(one, "page_age"))
    return found if found[0] is not None else parse_stated_date(optional_text_field(one, "age"))


def _plain(marked: str) -> str:
    return html.unescape(re.sub(r"</?strong>", "", marked))
