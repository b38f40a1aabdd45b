"""Exa: results by meaning with their text, on request as the page stood at a past moment."""

from datetime import UTC, datetime, timedelta
from typing import Any

from foretell.data.dates import parse_stated_date
from foretell.data.payload import Payload, readable
from foretell.data.search.engine import SearchHit, SearchHits, clean_query, read_hits
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
    facts = "Exa's OpenAPI of 2026-04-03, recorded answers of January 2026, the page on snapshots of autumn 2026"
    filters_dates = True
    key_variables = ("EXA_API_KEY",)

    def __init__(self, config: ServiceConfig, *, now: Clock = lambda: datetime.now(UTC)) -> None:
        """Backtests read stored versions of pages; `now` tells which cutoffs are recent enough for that."""
        self._service = JsonService(config, EXA_URL, headers={"x-api-key": config.key})
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
        return exa_hits(await self._service.post("/search", body), limit, pinned="snapshotAsOf" in contents)


def exa_hits(answer: Payload, limit: int | None = None, *, pinned: bool = False) -> SearchHits:
    """The results of a search, of contents or of similar pages, or what an answer cites.

    Where stored versions were asked for (`pinned`), a text that does not say of when it is counts as today's and is
    left out.
    """
    told, _ = readable(answer.rows("statuses"), lambda one: (one.optional_text("id"), one.optional_text("status")))
    missing = {id for id, status in told if status == "error"}
    rows = answer.rows("citations") if answer.has("citations") else answer.need("results").items()
    return read_hits(rows, lambda one: _hit(one, missing, pinned), limit)


def _hit(one: Payload, missing: set[str], pinned: bool) -> SearchHit:
    published, dating = parse_stated_date(one.optional_text("publishedDate"))
    url = one.address("url")
    stored, crawled = (parse_stated_date(one.optional_text(name))[0] for name in ("snapshotAt", "crawlDate"))
    lost = bool(missing & {url, one.optional_text("id")}) or (pinned and stored is None)
    text = None if lost else one.optional_text("text") or None
    snippet = "" if lost else "\n".join(one.texts("highlights")) or (text or "")[:SNIPPET]
    return SearchHit(
        url=url,
        title=one.optional_text("title"),
        snippet=snippet,
        published=published,
        dating=dating,
        text=text,
        text_as_of=stored or crawled if text is not None else None,
    )
