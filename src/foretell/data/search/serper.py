"""Google's results through serper.dev."""

from datetime import timedelta
from typing import Any

from foretell.data.dates import EARLIEST, parse_stated_date
from foretell.data.http import AsyncHttpClient
from foretell.data.payload import Payload
from foretell.data.search.engine import (
    SearchHit,
    address_field,
    clean_query,
    collect_hits,
    optional_text_field,
    text_field,
)
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf

SERPER_URL = "https://google.serper.dev"
PAGE = 10
MAX_PAGES = 10


class SerperSearch:
    """Organic results only: answer boxes and knowledge panels carry no date."""

    name = "serper"
    filters_dates = True
    key_variables = ("SERPER_API_KEY",)

    def __init__(self, client: AsyncHttpClient, key: str, base_url: str = SERPER_URL) -> None:
        client.keep_secret(key)
        self._client = client
        self._key = key
        self._url = f"{base_url}/search"

    @classmethod
    def open(cls, config: ServiceConfig) -> "SerperSearch":
        """As the registry opens it."""
        return cls(config.http, config.key, config.address or SERPER_URL)

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results in Google's order."""
        body = _body(clean_query(query, max_chars=2_000), as_of)

        async def page(number: int) -> list[SearchHit]:
            sent = {**body, "num": PAGE, "page": number + 1}
            answer = await self._client.post(self._url, json=sent, headers={"X-API-KEY": self._key})
            return [_hit(one) for one in Payload.of(answer, self._url).need("organic").items()]

        return await collect_hits(page, limit=limit, size=PAGE, most=MAX_PAGES)


def _body(query: str, as_of: AsOf) -> dict[str, Any]:
    if as_of.mode == "live":
        return {"q": query}
    day = as_of.at.date()
    # Google has been seen to ignore the range in `tbs`; the operator in the query says the same once more.
    return {
        "q": f"{query} before:{day + timedelta(days=1)}",
        "tbs": f"cdr:1,cd_min:{EARLIEST:%m/%d/%Y},cd_max:{day:%m/%d/%Y}",
    }


def _hit(one: Payload) -> SearchHit:
    published, dating = parse_stated_date(optional_text_field(one, "date"))
    return SearchHit(
        url=address_field(one, "link"),
        title=text_field(one, "title"),
        snippet=optional_text_field(one, "snippet") or "",
        published=published,
        dating=dating,
    )
