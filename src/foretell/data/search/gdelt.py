"""GDELT DOC 2.0: news of about the last three months, free and without a key, one request every five seconds."""

import json
import re
from datetime import UTC, datetime, timedelta

from foretell.data.http import AsyncHttpClient, HttpResponse, SourceError
from foretell.data.payload import Payload
from foretell.data.search.engine import (
    CannotSearch,
    SearchHit,
    address_field,
    clean_query,
    optional_text_field,
    text_field,
)
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf

GDELT_URL = "https://api.gdeltproject.org/api/v2"
MAX_RECORDS = 250
REACH = timedelta(days=90)
_STAMP = "%Y%m%d%H%M%S"
_SEEN = "%Y%m%dT%H%M%SZ"


class GdeltSearch:
    """Titles and addresses of articles, dated by when GDELT first saw them."""

    name = "gdelt"
    filters_dates = True

    def __init__(self, client: AsyncHttpClient, base_url: str = GDELT_URL, *, per_second: float = 0.2) -> None:
        client.pace(base_url, per_second=per_second)
        self._client = client
        self._url = f"{base_url}/doc/doc"

    @classmethod
    def open(cls, config: ServiceConfig) -> "GdeltSearch":
        """As the registry opens it."""
        return cls(config.http, config.address or GDELT_URL)

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
        answer = self._read(await self._client.get(self._url, params=params))
        # No article at all is an empty object.
        found = answer.get("articles")
        return [_hit(one) for one in (found.items() if found is not None else [])][:limit]

    def _read(self, answer: HttpResponse) -> Payload:
        url = answer.hops[-1]
        body = answer.body.decode("utf-8", "replace").strip()
        if "json" not in answer.headers.get("content-type", "") and not body.startswith("{"):
            said = " ".join(re.sub(r"<[^<>]*>", " ", body[:2_000]).split())[:200]
            raise SourceError(f"the query was refused: {self._client.redact(said)}", url=url)
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
    seen = _seen(text_field(one, "seendate"))
    return SearchHit(
        url=address_field(one, "url"),
        title=text_field(one, "title"),
        snippet=" · ".join(
            filter(None, [optional_text_field(one, "domain"), optional_text_field(one, "sourcecountry")])
        ),
        published=seen,
        dating="crawled" if seen else "none",
    )


def _seen(stamp: str) -> datetime | None:
    try:
        return datetime.strptime(stamp, _SEEN).replace(tzinfo=UTC)
    except ValueError:
        return None
