"""News archives: GDELT DOC 2.0, about three months, free but slow; and AskNews, back to 2023."""

import json
import re
from datetime import UTC, datetime, timedelta

from foretell.data.dates import parse_stated_date
from foretell.data.http import HttpResponse, SourceError
from foretell.data.payload import Payload
from foretell.data.search.engine import CannotSearch, SearchHit, clean_query, read_hits
from foretell.data.service import AccessToken, JsonService, ServiceConfig, TokenService
from foretell.questions.as_of import AsOf

GDELT_URL = "https://api.gdeltproject.org/api/v2"
MAX_RECORDS = 250
REACH = timedelta(days=90)
_STAMP = "%Y%m%d%H%M%S"
_SEEN = "%Y%m%dT%H%M%SZ"


class GdeltSearch:
    """Titles and addresses of articles, dated by when GDELT first saw them."""

    name = "gdelt"
    facts = "GDELT DOC 2.0's announcement and public clients, 2026-11-15; never checked against a recorded response"
    filters_dates = True

    def __init__(self, config: ServiceConfig) -> None:
        self._service = JsonService(config, GDELT_URL)

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """Return at most `limit` results by relevance."""
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
        # Without results, the response is an empty object.
        return read_hits(self._read(answer).rows("articles"), _gdelt_hit, limit)

    def _read(self, answer: HttpResponse) -> Payload:
        url = answer.hops[-1]
        body = answer.body.decode("utf-8", "replace").strip()
        if "json" not in answer.headers.get("content-type", "") and not body.startswith("{"):
            message = " ".join(re.sub(r"<[^<>]*>", " ", body[:2_000]).split())[:200]
            raise SourceError(f"the query was refused: {self._service.http.redact(message)}", url=url)
        try:
            return Payload(value=json.loads(_mended(body) or "{}", strict=False), url=url)
        except (ValueError, RecursionError):
            raise SourceError("the response is not JSON, even with its escapes repaired", url=url) from None


def _words(query: str) -> str:
    """Remove characters that GDELT treats as operators or rejects."""
    cleaned = re.sub(r"""[?!.,;:()\[\]{}<>/\\|*+=~^'’“”]""", " ", query)
    if cleaned.count('"') % 2:
        cleaned = cleaned.replace('"', " ")
    if not re.search(r"\w{3}", cleaned):
        raise CannotSearch("GDELT needs a word of at least three letters; write what to look for")
    return clean_query(cleaned, max_chars=1_000)


def _mended(body: str) -> str:
    """Double lone backslashes, which GDELT copies unescaped from titles."""
    return re.sub(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)', lambda m: m[0] if m[1] else r"\\", body)


def _gdelt_hit(row: Payload) -> SearchHit:
    try:
        seen = datetime.strptime(row.stated_text("seendate"), _SEEN).replace(tzinfo=UTC)
    except ValueError:
        seen = None
    return SearchHit(
        url=row.address("url"),
        title=row.stated_text("title"),
        snippet=" · ".join(filter(None, [row.optional_text("domain"), row.optional_text("sourcecountry")])),
        published=seen,
        dating="crawled" if seen else "none",
    )


# AskNews: a news archive that goes back to 2023, with a summary of each article.


ASKNEWS_URL = "https://api.asknews.app/v1"
TOKEN_URL = "https://auth.asknews.app/oauth2/token"
TOKEN_PATH = "/oauth2/token"
MAX_ARTICLES = 100
DAYS_BACK = timedelta(days=60)


class AskNewsSearch:
    """News articles. A backtest requests what its crawler had seen by the cutoff; the date shown is the article's."""

    name = "asknews"
    facts = "AskNews's own clients and public bots of August 2026; never checked against a recorded response"
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
        """Return at most `limit` results in AskNews's order."""
        params = {
            "query": clean_query(query, max_chars=2_000),
            "n_articles": str(min(limit, MAX_ARTICLES)),
            "return_type": "dicts",
            "method": "both",
        }
        if as_of.mode == "live":
            params["strategy"] = "news knowledge"
        else:
            # It can filter by two dates. The crawl date is the stricter: an article crawled by then existed by then.
            params |= {
                "strategy": "default",
                "historical": "true",
                "time_filter": "crawl_date",
                "start_timestamp": str(int((as_of.at - DAYS_BACK).timestamp())),
                "end_timestamp": str(int(as_of.at.timestamp())),
            }
        present = (await self._service.read("/news/search", params)).present("as_dicts")
        return read_hits(present.items() if present is not None else [], _asknews_hit, limit)


def _asknews_hit(row: Payload) -> SearchHit:
    published, dating = parse_stated_date(row.stated_text("pub_date"))
    return SearchHit(
        url=row.address("article_url"),
        title=row.optional_text("eng_title") or row.stated_text("title"),
        snippet="\n".join(row.texts("key_points")) or row.stated_text("summary"),
        published=published,
        dating=dating,
    )
