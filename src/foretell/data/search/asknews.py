"""AskNews: a news archive that goes back to 2023, with a summary of each article."""

from datetime import timedelta

from foretell.data.dates import parse_stated_date
from foretell.data.http import AsyncHttpClient
from foretell.data.payload import Payload
from foretell.data.search.engine import (
    SearchHit,
    address_field,
    clean_query,
    optional_text_field,
    text_field,
    text_list_field,
)
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf

ASKNEWS_URL = "https://api.asknews.app/v1"
MAX_ARTICLES = 100


class AskNewsSearch:
    """News articles. A backtest asks for what its crawler had seen by the cutoff; the date shown is the article's."""

    name = "asknews"
    filters_dates = True
    key_variables = ("ASKNEWS_API_KEY",)

    def __init__(
        self,
        client: AsyncHttpClient,
        key: str,
        base_url: str = ASKNEWS_URL,
        *,
        days_back: int = 60,
        per_second: float = 1.0,
    ) -> None:
        client.keep_secret(key)
        client.pace(base_url, per_second=per_second)
        self._client = client
        self._key = key
        self._url = f"{base_url}/news/search"
        self._back = timedelta(days=days_back)

    @classmethod
    def open(cls, config: ServiceConfig) -> "AskNewsSearch":
        """As the registry opens it."""
        return cls(config.http, config.key, config.address or ASKNEWS_URL)

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results in AskNews's order."""
        params = {
            "query": clean_query(query, max_chars=2_000),
            "n_articles": str(min(limit, MAX_ARTICLES)),
            "return_type": "dicts",
            "method": "both",
            **self._period(as_of),
        }
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        answer = Payload.of(await self._client.get(self._url, params=params, headers=headers), self._url)
        found = answer.present("as_dicts")
        return [_hit(one) for one in (found.items() if found is not None else [])][:limit]

    def _period(self, as_of: AsOf) -> dict[str, str]:
        if as_of.mode == "live":
            return {"strategy": "news knowledge"}
        # The crawl date is the stricter of the two it can filter by: what was crawled by then existed by then.
        return {
            "strategy": "default",
            "historical": "true",
            "time_filter": "crawl_date",
            "start_timestamp": str(int((as_of.at - self._back).timestamp())),
            "end_timestamp": str(int(as_of.at.timestamp())),
        }


def _hit(one: Payload) -> SearchHit:
    published, dating = parse_stated_date(text_field(one, "pub_date"))
    points = "\n".join(text_list_field(one, "key_points"))
    return SearchHit(
        url=address_field(one, "article_url"),
        title=optional_text_field(one, "eng_title") or text_field(one, "title"),
        snippet=points or text_field(one, "summary"),
        published=published,
        dating=dating,
    )
