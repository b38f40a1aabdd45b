"""Web search engines that need a key: Brave, Exa, Perplexity, Serper and Tavily."""

import html
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from foretell.data.dates import EARLIEST, parse_stated_date
from foretell.data.payload import Payload, readable
from foretell.data.search.engine import SearchHit, SearchHits, clean_query, collect_hits, read_hits
from foretell.data.service import JsonService, ServiceConfig
from foretell.questions.as_of import AsOf, Clock

# Brave: an index of its own, filtered by the day a page was discovered.


BRAVE_URL = "https://api.search.brave.com/res/v1"
BRAVE_PAGE = 20
MAX_PAGES = 10


class BraveSearch:
    """Web results with extra snippets. Undated pages pass its filter, so they are returned without a date."""

    name = "brave"
    facts = "recorded responses of 2024 (web search), 2026-11-15"
    filters_dates = True
    key_variables = ("BRAVE_API_KEY",)

    def __init__(self, config: ServiceConfig) -> None:
        headers = {"X-Subscription-Token": config.key, "Accept": "application/json"}
        self._service = JsonService(config, BRAVE_URL, headers=headers)

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """Return at most `limit` results in Brave's order."""
        size = min(limit, BRAVE_PAGE)
        params = {"q": clean_query(query, max_chars=400, max_words=50), "result_filter": "web"}
        params |= {"extra_snippets": "true", "text_decorations": "false", "count": str(size)}
        if as_of.mode == "backtest":
            params["freshness"] = f"{EARLIEST}to{as_of.at:%Y-%m-%d}"

        async def page(number: int) -> SearchHits:
            return brave_hits(await self._service.read("/web/search", params | {"offset": str(number)}))

        return await collect_hits(page, limit=limit, size=size, most=MAX_PAGES)


def brave_hits(answer: Payload) -> SearchHits:
    """Parse the web results of a response; videos, news and info boxes are ignored."""
    # A response without web results has no field "web"; "type" shows that it is one.
    if answer.get("web") is None and answer.optional_text("type") == "search":
        return SearchHits()
    return read_hits(answer.need("web", "results").items(), _brave_hit)


def _brave_hit(row: Payload) -> SearchHit:
    published, dating = parse_stated_date(row.optional_text("page_age"))
    if published is None:
        published, dating = parse_stated_date(row.optional_text("age"))
    snippets = filter(None, [row.optional_text("description"), *row.texts("extra_snippets")])
    return SearchHit(
        url=row.address("url"),
        title=_plain(row.stated_text("title")),
        snippet="\n".join(_plain(part) for part in snippets),
        published=published,
        dating=dating,
    )


def _plain(marked: str) -> str:
    return html.unescape(re.sub(r"</?strong>", "", marked))


# Exa: results by meaning with their text, on request as the page was at a past time.


EXA_URL = "https://api.exa.ai"
EXA_RESULTS = 100
MAX_CHARACTERS = 10_000
SNIPPET = 600
SNAPSHOT_WINDOW = timedelta(days=150)
"""How far back stored versions of pages reach."""


class ExaSearch:
    """Search with page text. Its date filter excludes pages that state no date."""

    name = "exa"
    facts = "Exa's OpenAPI of 2026-04-03, recorded responses of January 2026, the page on snapshots of autumn 2026"
    filters_dates = True
    key_variables = ("EXA_API_KEY",)

    def __init__(self, config: ServiceConfig, *, now: Clock = lambda: datetime.now(UTC)) -> None:
        """Backtests read stored versions of pages; `now` determines which cutoffs are recent enough for that."""
        self._service = JsonService(config, EXA_URL, headers={"x-api-key": config.key})
        self._now = now

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """Return at most `limit` results in Exa's order."""
        contents: dict[str, Any] = {"text": {"maxCharacters": MAX_CHARACTERS}}
        body: dict[str, Any] = {
            "query": clean_query(query, max_chars=2_000),
            "numResults": min(limit, EXA_RESULTS),
            "type": "auto",
            "contents": contents,
        }
        if as_of.mode == "backtest":
            cutoff = f"{as_of.at:%Y-%m-%dT%H:%M:%S}.{as_of.at.microsecond // 1000:03d}Z"
            body["endPublishedDate"] = cutoff
            if as_of.at >= self._now() - SNAPSHOT_WINDOW:
                contents["snapshotAsOf"] = cutoff
            else:
                # Never fetch the page again: today's text is further from the cutoff than a cached one.
                contents["maxAgeHours"] = -1
        return exa_hits(await self._service.post("/search", body), limit, pinned="snapshotAsOf" in contents)


def exa_hits(answer: Payload, limit: int | None = None, *, pinned: bool = False) -> SearchHits:
    """Parse the results of a search, of contents or of similar pages, or the citations of an answer.

    If stored versions were requested (`pinned`), a text that does not say when it was captured counts as today's and is
    left out.
    """
    statuses, _ = readable(answer.rows("statuses"), lambda row: (row.optional_text("id"), row.optional_text("status")))
    missing = {id for id, status in statuses if status == "error"}
    rows = answer.rows("citations") if answer.has("citations") else answer.need("results").items()
    return read_hits(rows, lambda row: _exa_hit(row, missing, pinned), limit)


def _exa_hit(row: Payload, missing: set[str], pinned: bool) -> SearchHit:
    published, dating = parse_stated_date(row.optional_text("publishedDate"))
    url = row.address("url")
    stored, crawled = (parse_stated_date(row.optional_text(name))[0] for name in ("snapshotAt", "crawlDate"))
    lost = bool(missing & {url, row.optional_text("id")}) or (pinned and stored is None)
    text = None if lost else row.optional_text("text") or None
    snippet = "" if lost else "\n".join(row.texts("highlights")) or (text or "")[:SNIPPET]
    return SearchHit(
        url=url,
        title=row.optional_text("title"),
        snippet=snippet,
        published=published,
        dating=dating,
        text=text,
        text_as_of=stored or crawled if text is not None else None,
    )


# Perplexity's Search API: results with excerpts, filtered by the day a page was published and last changed.


PERPLEXITY_URL = "https://api.perplexity.ai"
MAX_RESULTS = 20
TOKENS_A_PAGE = 1_024


class PerplexitySearch:
    """Web results. A page is dated by its last change, because its excerpt is taken from the changed page."""

    name = "perplexity"
    facts = "Perplexity's own Python client 0.43 (September 2026); never checked against a recorded response"
    filters_dates = True
    key_variables = ("PERPLEXITY_API_KEY", "PPLX_API_KEY")

    def __init__(self, config: ServiceConfig) -> None:
        self._service = JsonService(config, PERPLEXITY_URL, headers={"Authorization": f"Bearer {config.key}"})

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """Return at most `limit` results in Perplexity's order."""
        body: dict[str, Any] = {"query": clean_query(query, max_chars=2_000), "max_results": min(limit, MAX_RESULTS)}
        body["max_tokens_per_page"] = TOKENS_A_PAGE
        if as_of.mode == "backtest":
            # "Before" excludes the day itself. The leakage filter removes what is too new on the last day.
            before = f"{as_of.at.date() + timedelta(days=1):%m/%d/%Y}"
            body |= {"search_before_date_filter": before, "last_updated_before_filter": before}
        return read_hits((await self._service.post("/search", body)).need("results").items(), _perplexity_hit, limit)


def _perplexity_hit(row: Payload) -> SearchHit:
    stated = [parse_stated_date(row.optional_text(name))[0] for name in ("date", "last_updated")]
    published = max((at for at in stated if at is not None), default=None)
    return SearchHit(
        url=row.address("url"),
        title=row.optional_text("title"),
        snippet=row.optional_text("snippet"),
        published=published,
        dating="published" if published is not None else "none",
    )


# Google's results through serper.dev.


SERPER_URL = "https://google.serper.dev"
SERPER_PAGE = 10


class SerperSearch:
    """Organic results only: answer boxes and knowledge panels have no date."""

    name = "serper"
    facts = "serper.dev's playground, 2026-11-15; never checked against a recorded response"
    filters_dates = True
    key_variables = ("SERPER_API_KEY",)

    def __init__(self, config: ServiceConfig) -> None:
        self._service = JsonService(config, SERPER_URL, headers={"X-API-KEY": config.key})

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """Return at most `limit` results in Google's order."""
        body: dict[str, Any] = {"q": clean_query(query, max_chars=2_000), "num": SERPER_PAGE}
        if as_of.mode == "backtest":
            day = as_of.at.date()
            # Google sometimes ignores the range in `tbs`, so the query repeats it as an operator.
            body["q"] += f" before:{day + timedelta(days=1)}"
            body["tbs"] = f"cdr:1,cd_min:{EARLIEST:%m/%d/%Y},cd_max:{day:%m/%d/%Y}"

        async def page(number: int) -> SearchHits:
            answer = await self._service.post("/search", body | {"page": number + 1})
            return read_hits(answer.need("organic").items(), _serper_hit)

        return await collect_hits(page, limit=limit, size=SERPER_PAGE, most=MAX_PAGES)


def _serper_hit(row: Payload) -> SearchHit:
    published, dating = parse_stated_date(row.optional_text("date"))
    return SearchHit(
        url=row.address("link"),
        title=row.stated_text("title"),
        snippet=row.optional_text("snippet"),
        published=published,
        dating=dating,
    )


# Tavily: news search whose dates are those of its crawler.


TAVILY_URL = "https://api.tavily.com"


class TavilySearch:
    """News with page text: a general search has no dates. It filters by when it saw a page, which may be later."""

    name = "tavily"
    facts = "recorded responses of 2025 (general search), 2026-11-15"
    filters_dates = True
    key_variables = ("TAVILY_API_KEY",)

    def __init__(self, config: ServiceConfig) -> None:
        self._service = JsonService(config, TAVILY_URL, headers={"Authorization": f"Bearer {config.key}"})

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """Return at most `limit` results in Tavily's order."""
        body: dict[str, Any] = {"query": clean_query(query, max_chars=400), "max_results": min(limit, MAX_RESULTS)}
        body |= {"topic": "news", "search_depth": "basic", "include_raw_content": "text"}
        if as_of.mode == "backtest":
            body |= {"start_date": str(EARLIEST), "end_date": f"{as_of.at:%Y-%m-%d}"}
        return tavily_hits(await self._service.post("/search", body), limit)


def tavily_hits(answer: Payload, limit: int | None = None) -> SearchHits:
    """Parse the results of a response. A general search has no dates; those of a news search are the crawler's."""
    return read_hits(answer.need("results").items(), _tavily_hit, limit)


def _tavily_hit(row: Payload) -> SearchHit:
    published, dating = parse_stated_date(row.optional_text("published_date"))
    return SearchHit(
        url=row.address("url"),
        title=row.stated_text("title"),
        snippet=row.stated_text("content"),
        published=published,
        dating="crawled" if dating == "published" else dating,
        text=row.optional_text("raw_content") or None,
    )
