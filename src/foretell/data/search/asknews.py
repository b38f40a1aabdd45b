"""AskNews: a news archive that goes back to 2023, with a summary of each article."""

from datetime import timedelta

from foretell.data.dates import parse_stated_date
from foretell.data.payload import Payload
from foretell.data.search.engine import SearchHit, clean_query, read_hits
from foretell.data.service import AccessToken, JsonService, ServiceConfig, TokenService
from foretell.questions.as_of import AsOf

ASKNEWS_URL = "https://api.asknews.app/v1"
TOKEN_URL = "https://auth.asknews.app/oauth2/token"
TOKEN_PATH = "/oauth2/token"
MAX_ARTICLES = 100
DAYS_BACK = timedelta(days=60)


class AskNewsSearch:
    """News articles. A backtest asks for what its crawler had seen by the cutoff; the date shown is the article's."""

    name = "asknews"
    facts = "AskNews's own clients and public bots of August 2026; never held against a recorded answer"
    filters_dates = True
    key_variables = ("ASKNEWS_API_KEY", "ASKNEWS_CLIENT_ID+ASKNEWS_SECRET")

    def __init__(self, config: ServiceConfig) -> None:
        if ":" not in config.key:
            headers = {"Authorization": f"Bearer {config.key}", "Accept": "application/json"}
            self._service = JsonService(config, ASKNEWS_URL, headers=headers)
            return
        url = f"{config.address}{TOKEN_PATH}" if config.address else TOKEN_URL
        form = {"grant_type": "client_credentials", "scope": "news"}
        self._service = TokenService(config, ASKNEWS_URL, AccessToken(config.http, url, form, basic=config.key))

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results in AskNews's order."""
        params = {
            "query": clean_query(query, max_chars=2_000),
            "n_articles": str(min(limit, MAX_ARTICLES)),
            "return_type": "dicts",
            "method": "both",
        }
        if as_of.mode == "live":
            params["strategy"] = "news knowledge"
        else:
            # The crawl date is the stricter of the two it can filter by: what was crawled by then existed by then.
            params |= {
                "strategy": "default",
                "historical": "true",
                "time_filter": "crawl_date",
                "start_timestamp": str(int((as_of.at - DAYS_BACK).timestamp())),
                "end_timestamp": str(int(as_of.at.timestamp())),
            }
        found = (await self._service.read("/news/search", params)).present("as_dicts")
        return read_hits(found.items() if found is not None else [], _hit, limit)


def _hit(one: Payload) -> SearchHit:
    published, dating = parse_stated_date(one.stated_text("pub_date"))
    return SearchHit(
        url=one.address("article_url"),
        title=one.optional_text("eng_title") or one.stated_text("title"),
        snippet="\n".join(one.texts("key_points")) or one.stated_text("summary"),
        published=published,
        dating=dating,
    )
