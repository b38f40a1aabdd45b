"""GDELT DOC 2.0: news of about the last three months, free and without a key, one request every five seconds."""

import json
import re
from datetime import UTC, datetime, timedelta

from foretell.data.http import HttpResponse, SourceError
from foretell.data.payload import Payload
from foretell.data.search.engine import CannotSearch, SearchHit, clean_query, read_hits
from foretell.data.service import JsonService, ServiceConfig
from foretell.questions.as_of import AsOf

GDELT_URL = "https://api.gdeltproject.org/api/v2"
MAX_RECORDS = 250
REACH = timedelta(days=90)
_STAMP = "%Y%m%d%H%M%S"
_SEEN = "%Y%m%dT%H%M%SZ"


class GdeltSearch:
    """Titles and addresses of articles, dated by when GDELT first saw them."""

    name = "gdelt"
    facts = "GDELT DOC 2.0's announcement and public clients, 2026-11-15; never held against a recorded answer"
    filters_dates = True

    def __init__(self, config: ServiceConfig) -> None:
        self._service = JsonService(config, GDELT_URL)

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """At most `limit` results by relevance."""
        params = {
            "query": f"{_words(query)} sourcelang:english",
            "mode": "artlist",
            "format": "json",
            "maxrecords": str(min(limit, MAX_RECORDS)),
            "sort": "hybridrel",
        }
        if as_of.mode == "backtest":
            params["startdatetime"] = (as_of.at - REACH).strftime(_STAMP)
            params["enddatetime"] = as_of.at.strftime(_STAMP)
        answer = await self._service.http.get(f"{self._service.host}/doc/doc", params=params)
        # No article at all is an empty object.
        return read_hits(self._read(answer).rows("articles"), _hit, limit)

    def _read(self, answer: HttpResponse) -> Payload:
        url = answer.hops[-1]
        body = answer.body.decode("utf-8", "replace").strip()
        if "json" not in answer.headers.get("content-type", "") and not body.startswith("{"):
            said = " ".join(re.sub(r"<[^<>]*>", " ", body[:2_000]).split())[:200]
            raise SourceError(f"the query was refused: {self._service.http.redact(said)}", url=url)
        try:
            return Payload(value=json.loads(_mended(body) or "{}", strict=False), url=url)
        except ValueError:
            raise SourceError("the answer is not JSON, even with its escapes mended", url=url) from None


def _words(query: str) -> str:
    """Without the signs that GDELT takes for operators or refuses."""
    kept = re.sub(r"""[?!.,;:()\[\]{}<>/\\|*+=~^'’“”]""", " ", query)
    if kept.count('"') % 2:
        kept = kept.replace('"', " ")
    if not re.search(r"\w{3}", kept):
        raise CannotSearch("GDELT needs a word of at least three letters; write what to look for")
    return clean_query(kept, max_chars=1_000)


def _mended(body: str) -> str:
    """GDELT passes on backslashes from titles as they are; a lone one is doubled."""
    return re.sub(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)', lambda m: m[0] if m[1] else r"\\", body)


def _hit(one: Payload) -> SearchHit:
    try:
        seen = datetime.strptime(one.stated_text("seendate"), _SEEN).replace(tzinfo=UTC)
    except ValueError:
        seen = None
    return SearchHit(
        url=one.address("url"),
        title=one.stated_text("title"),
        snippet=" · ".join(filter(None, [one.optional_text("domain"), one.optional_text("sourcecountry")])),
        published=seen,
        dating="crawled" if seen else "none",
    )
