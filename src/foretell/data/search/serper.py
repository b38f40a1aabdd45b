"""Google's results through serper.dev."""

from datetime import timedelta
from typing import Any

from foretell.data.dates import EARLIEST, parse_stated_date
from foretell.data.payload import Payload
from foretell.data.search.engine import SearchHit, SearchHits, clean_query, collect_hits, read_hits
from foretell.data.service import JsonService, ServiceConfig
from foretell.questions.as_of import AsOf

SERPER_URL = "https://google.serper.dev"
PAGE = 10
MAX_PAGES = 10


class SerperSearch:
    """Organic results only: answer boxes and knowledge panels carry no date."""

    name = "serper"
    facts = "serper.dev's playground, 2026-11-15; never held against a recorded answer"
    filters_dates = True
    key_variables = ("SERPER_API_KEY",)

    def __init__(self, config: ServiceConfig) -> None:
        self._service = JsonService(config, SERPER_URL, headers={"X-API-KEY": config.key})

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results in Google's order."""
        body: dict[str, Any] = {"q": clean_query(query, max_chars=2_000), "num": PAGE}
        if as_of.mode == "backtest":
            day = as_of.at.date()
            # Google has been seen to ignore the range in `tbs`; the operator in the query says the same once more.
            body["q"] += f" before:{day + timedelta(days=1)}"
            body["tbs"] = f"cdr:1,cd_min:{EARLIEST:%m/%d/%Y},cd_max:{day:%m/%d/%Y}"

        async def page(number: int) -> SearchHits:
            answer = await self._service.post("/search", body | {"page": number + 1})
            return read_hits(answer.need("organic").items(), _hit)

        return await collect_hits(page, limit=limit, size=PAGE, most=MAX_PAGES)


def _hit(one: Payload) -> SearchHit:
    published, dating = parse_stated_date(one.optional_text("date"))
    return SearchHit(
        url=one.address("link"),
        title=one.stated_text("title"),
        snippet=one.optional_text("snippet"),
        published=published,
        dating=dating,
    )
