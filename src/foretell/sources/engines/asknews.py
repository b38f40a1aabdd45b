"""AskNews: a news archive that goes back to 2023, with a summary of each article."""

from datetime import timedelta

from foretell.questions.clock import AsOf
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.engines.dates import stated
from foretell.sources.engines.fields import address, maybe, text, texts
from foretell.sources.engines.query import sendable
from foretell.sources.payload import Payload
from foretell.sources.search import SearchHit

ASKNEWS_URL = "https://api.asknews.app/v1"
MAX_ARTICLES = 100


class AskNews:
    """News articles. A backtest asks for what its crawler had seen by the cutoff; the date shown is the article's."""

    name = "asknews"
    filters_dates = True

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

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results in AskNews's order."""
        params = {
            "query": sendable(query, max_chars=2_000),
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
    published, dating = stated(text(one, "pub_date"))
    points = "\n".join(texts(one, "key_points"))
    return SearchHit(
        url=address(one, "article_url"),
        title=maybe(one, "eng_title") or text(one, "title"),
        snippet=points or text(one, "summary"),
        published=published,
        dating=dating,
    )
