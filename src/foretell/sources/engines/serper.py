"""Google's results through serper.dev."""

from datetime import timedelta
from typing import Any

from foretell.questions.clock import AsOf
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.engines.dates import EARLIEST, stated
from foretell.sources.engines.fields import address, maybe, text
from foretell.sources.engines.query import gathered, sendable
from foretell.sources.payload import Payload
from foretell.sources.search import SearchHit

SERPER_URL = "https://google.serper.dev"
PAGE = 10
MAX_PAGES = 10


class Serper:
    """Organic results only: answer boxes and knowledge panels carry no date."""

    name = "serper"
    filters_dates = True

    def __init__(self, client: AsyncHttpClient, key: str, base_url: str = SERPER_URL) -> None:
        client.keep_secret(key)
        self._client = client
        self._key = key
        self._url = f"{base_url}/search"

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results in Google's order."""
        body = _body(sendable(query, max_chars=2_000), as_of)

        async def page(number: int) -> list[SearchHit]:
            sent = {**body, "num": PAGE, "page": number + 1}
            answer = await self._client.post(self._url, json=sent, headers={"X-API-KEY": self._key})
            return [_hit(one) for one in Payload.of(answer, self._url).need("organic").items()]

        return await gathered(page, limit=limit, size=PAGE, most=MAX_PAGES)


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
    published, dating = stated(maybe(one, "date"))
    return SearchHit(
        url=address(one, "link"),
        title=text(one, "title"),
        snippet=maybe(one, "snippet") or "",
        published=published,
        dating=dating,
    )
