"""Exa: results by meaning with their text, on request as the page stood at a past moment."""

from datetime import UTC, datetime, timedelta
from typing import Any

from foretell.data.dates import parse_stated_date
from foretell.data.payload import Payload
from foretell.data.search.engine import SearchHit, clean_query
from foretell.data.service import JsonService, ServiceConfig
from foretell.questions.as_of import AsOf, Clock

EXA_URL = "https://api.exa.ai"
MAX_RESULTS = 100
MAX_CHARACTERS = 10_000
SNIPPET = 600
SNAPSHOT_WINDOW = timedelta(days=150)
"""How far back stored versions of pages reach."""


class ExaSearch:
    """Search with page text. Its date filter leaves out pages that state no date."""

    name = "exa"
    filters_dates = True
    key_variables = ("EXA_API_KEY",)

    def __init__(self, config: ServiceConfig, *, now: Clock = lambda: datetime.now(UTC)) -> None:
        """Backtests read stored versions of pages; `now` tells which cutoffs are recent enough for that."""
        self._service = JsonService(config, EXA_URL, per_second=10.0, burst=5, headers={"x-api-key": config.key})
        self._now = now

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results in Exa's order."""
        contents: dict[str, Any] = {"text": {"maxCharacters": MAX_CHARACTERS}}
        body: dict[str, Any] = {
            "query": clean_query(query, max_chars=2_000),
            "numResults": min(limit, MAX_RESULTS),
            "type": "auto",
            "contents": contents,
        }
        if as_of.mode == "backtest":
            moment = f"{as_of.at:%Y-%m-%dT%H:%M:%S}.{as_of.at.microsecond // 1000:03d}Z"
            body["endPublishedDate"] = moment
            if as_of.at >= self._now() - SNAPSHOT_WINDOW:
                contents["snapshotAsOf"] = moment
            else:
                # Never fetch the page anew: today's text is further from the cutoff than a cached one.
                contents["maxAgeHours"] = -1
        answer = await self._service.post("/search", body)
        missing = {one.optional_text("id") for one in answer.rows("statuses") if one.optional_text("status") == "error"}
        return [_hit(one, missing) for one in answer.need("results").items()][:limit]


def _hit(one: Payload, missing: set[str]) -> SearchHit:
    published, dating = parse_stated_date(one.optional_text("publishedDate"))
    url = one.address("url")
    text = None if missing & {url, one.optional_text("id")} else one.optional_text("text") or None
    captured = [parse_stated_date(one.optional_text(name))[0] for name in ("snapshotAt", "crawlDate")]
    return SearchHit(
        url=url,
        title=one.stated_text("title"),
        snippet="\n".join(one.texts("highlights")) or (text or "")[:SNIPPET],
        published=published,
        dating=dating,
        text=text,
        text_as_of=captured[0] or captured[1] if text is not None else None,
    )
