"""The content of the practice web: its site and archive, Wikipedia, and the search engines over them."""

import json
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pydantic import TypeAdapter

from foretell.data.dates import Dating
from foretell.frozen import frozen
from foretell.practice.server import (
    Handler,
    PracticeServer,
    ServerRequest,
    ServerResponse,
    html_response,
    json_response,
)
from foretell.questions.as_of import instant


@frozen
class PageVersion:
    """The text of a page or article from a given time on."""

    at: datetime
    text: str


@frozen
class SampleWebPage:
    """A page of the practice web."""

    url: str
    title: str
    text: str
    """The current text."""
    published: datetime | None = None
    updated: datetime | None = None
    shown: Dating = "published"
    """How search engines show its date: stated, as an age, or not at all."""
    crawled: datetime | None = None
    versions: tuple[PageVersion, ...] = ()
    """The versions that archives have, oldest first."""

    @property
    def path(self) -> str:
        """The path on its site."""
        return urlsplit(self.url).path

    def html(self, text: str | None = None) -> str:
        """Return the page as HTML, with its dates in the head."""
        dates = (("article:published_time", self.published), ("article:modified_time", self.updated))
        metas = "".join(f'<meta property="{name}" content="{at.isoformat()}">' for name, at in dates if at is not None)
        paragraphs = "".join(f"<p>{escape(part)}</p>" for part in (text or self.text).split("\n"))
        return (
            f'<!doctype html><html><head><meta charset="utf-8"><title>{escape(self.title)}</title>{metas}</head>'
            f"<body><article><h1>{escape(self.title)}</h1>{paragraphs}</article></body></html>"
        )


@dataclass(kw_only=True)
class SampleWorld:
    """Pages, articles and the current time of the practice web."""

    now: datetime
    pages: list[SampleWebPage] = field(default_factory=list[SampleWebPage])
    articles: dict[str, list[PageVersion]] = field(default_factory=dict[str, list[PageVersion]])
    """Encyclopedia articles: title → versions, oldest first."""

    def find(self, query: str, *, until: datetime | None = None) -> list[SampleWebPage]:
        """Return pages that share a word with the query, most shared words first; with `until`, none dated later."""
        words = set(re.findall(r"\w+", query.casefold()))
        scored = [
            (len(words & set(re.findall(r"\w+", f"{page.title} {page.text}".casefold()))), page) for page in self.pages
        ]
        pages = [page for score, page in sorted(scored, key=lambda pair: -pair[0]) if score]
        return [page for page in pages if until is None or page.published is None or page.published <= until]

    def age(self, page: SampleWebPage) -> str:
        """Return how long ago the page was published, in the words of a search engine."""
        days = (self.now - page.published).days if page.published else 0
        return f"{days} days ago"


def version_at(versions: list[PageVersion] | tuple[PageVersion, ...], at: datetime | None) -> PageVersion | None:
    """Return the newest version at or before a time; None if there is none."""
    fitting = [version for version in versions if at is None or version.at <= at]
    return fitting[-1] if fitting else None


def small_world() -> SampleWorld:
    """Return a few pages about one topic, with every kind of date that a search engine can encounter."""
    return _stored_world()[0]


def sample_world(now: datetime, site: str = "https://news.example", more: Sequence[SampleWebPage] = ()) -> SampleWorld:
    """Return the small world with more pages; page dates are fixed, only ages are relative to `now`."""
    small, stored = _stored_world()
    pages = [*(replace(page, url=site + page.path) for page in [*small.pages, *stored]), *more]
    return SampleWorld(now=now, pages=pages, articles=small.articles)


def _stored_world() -> tuple[SampleWorld, list[SampleWebPage]]:
    """Return the content of `sample_world.json`: a world, and more pages."""
    body = json.loads(files("foretell.practice").joinpath("sample_world.json").read_text(encoding="utf-8"))
    more = TypeAdapter(list[SampleWebPage]).validate_python(body.pop("more_pages"))
    return TypeAdapter(SampleWorld).validate_python(body), more


_STAMP = "%Y%m%d%H%M%S"


def web_server(world: SampleWorld) -> PracticeServer:
    """Create a server of the world's pages at their paths."""
    server = PracticeServer()
    for page in world.pages:
        server.route("GET", page.path, _serving(page))
    return server


def wayback_server(world: SampleWorld) -> PracticeServer:
    """Create a server of archived captures; a request for a missing capture redirects to the page's newest one."""
    server = PracticeServer()
    server.route("GET", "/cdx/search/cdx", lambda request: _captures(world, request))
    server.route("GET", "/web/*", lambda request: _replayed(world, request))
    return server


def _captures(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    page = _by_url(world, request.query["url"])
    until = instant(_iso(request.query["to"])) if "to" in request.query else None
    rows = (
        [
            [version.at.strftime(_STAMP), page.url, "200"]
            for version in page.versions
            if until is None or version.at <= until
        ]
        if page
        else []
    )
    newest = rows[int(request.query["limit"]) :]
    return json_response([["timestamp", "original", "statuscode"], *newest] if newest else [])


def _replayed(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    stamp, _, address = request.target.removeprefix("/web/").partition("id_/")
    page = _by_url(world, address)
    if page is None or not page.versions:
        return html_response("not archived", 404)
    version = version_at(page.versions, instant(_iso(stamp)))
    if version is None or version.at.strftime(_STAMP) != stamp:
        return redirect(f"/web/{page.versions[-1].at.strftime(_STAMP)}id_/{address}")
    page_then = html_response(page.html(version.text))
    return replace(
        page_then, headers={**page_then.headers, "Memento-Datetime": format_datetime(version.at, usegmt=True)}
    )


def _by_url(world: SampleWorld, url: str) -> SampleWebPage | None:
    return next((page for page in world.pages if page.url == url), None)


def _serving(page: SampleWebPage) -> Handler:
    return lambda _: html_response(page.html())


def redirect(to: str) -> ServerResponse:
    """Return a redirect to another address."""
    return ServerResponse(status=302, headers={"Location": to, "Content-Type": "text/html"}, body=b"moved")


def _iso(stamp: str) -> str:
    return datetime.strptime(f"{stamp}+0000", f"{_STAMP}%z").isoformat()


def wikipedia_server(world: SampleWorld) -> PracticeServer:
    """Create Wikipedia's API at /w/api.php: revisions by date, and search over current titles and texts."""
    server = PracticeServer()
    server.route("GET", "/w/api.php", lambda request: _answer(world, request))
    return server


def _answer(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    query = request.query
    if "foretell" not in request.headers.get("user-agent", "") or "(" not in request.headers["user-agent"]:
        return json_response({"error": {"code": "ua", "info": "Please set a descriptive user agent"}})
    if query.get("list") == "search":
        return json_response({"query": {"search": _search_results(world, query["srsearch"])[: int(query["srlimit"])]}})
    if query.get("prop") == "revisions":
        return json_response({"query": {"pages": [_page(world, query)]}})
    return json_response({"error": {"code": "badvalue", "info": "Unrecognized value"}})


def _search_results(world: SampleWorld, query: str) -> list[dict[str, str]]:
    words = query.casefold().split()
    hits = [t for t, v in world.articles.items() if any(w in f"{t} {v[-1].text}".casefold() for w in words)]
    return [
        {"title": hit, "snippet": f'now: <span class="searchmatch">{world.articles[hit][-1].text[:40]}</span>'}
        for hit in hits
    ]


def _page(world: SampleWorld, query: Any) -> dict[str, Any]:
    title = query["titles"].replace("_", " ")
    if title not in world.articles:
        return {"title": title, "missing": True}
    at = instant(query["rvstart"]) if "rvstart" in query else None
    versions = world.articles[title]
    version = version_at(versions, at)
    page: dict[str, Any] = {"pageid": 1, "title": title}
    if version is not None:
        revision: dict[str, Any] = {
            "revid": 1000 + versions.index(version),
            "timestamp": f"{version.at:%Y-%m-%dT%H:%M:%SZ}",
        }
        if "content" in query["rvprop"]:
            revision["slots"] = {"main": {"contentmodel": "wikitext", "content": version.text}}
        page["revisions"] = [revision]
    return page


# Search engines: the same pages in the format of each.

Engine = Callable[[SampleWorld, ServerRequest], ServerResponse]


def search_server(world: SampleWorld, key: str) -> PracticeServer:
    """Create all search engines on one server, such as /brave, with one key, which is also AskNews's client secret."""
    server = PracticeServer()
    for method, path, engine, header in ROUTES:
        server.route(method, path, _guarded(engine, world, header, key))
    server.route("POST", "/asknews/oauth2/token", lambda request: _token(request, key))
    return server


def _token(request: ServerRequest, key: str) -> ServerResponse:
    """Return the key as an access token if the request presents it as the client secret."""
    shown = b64decode(request.headers.get("authorization", "").removeprefix("Basic ")).decode()
    form = dict(parse_qsl(request.body.decode()))
    if shown.partition(":")[2] != key or form.get("grant_type") != "client_credentials":
        return json_response({"error": "invalid_client"}, 401)
    return json_response({"access_token": key, "expires_in": 3600, "token_type": "bearer", "scope": form.get("scope")})


def _guarded(engine: Engine, world: SampleWorld, header: str, key: str) -> Callable[[ServerRequest], ServerResponse]:
    def handle(request: ServerRequest) -> ServerResponse:
        if header and request.headers.get(header, "").removeprefix("Bearer ") != key:
            # Some real servers repeat the key in the error; clients must not log it.
            return json_response({"detail": f"invalid key {request.headers.get(header, '')}"}, 401)
        return engine(world, request)

    return handle


def _brave(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    query = request.query
    if len(query["q"]) > 400 or int(query["count"]) > 20 or not 0 <= int(query["offset"]) <= 9:
        return json_response({"error": {"detail": "validation"}}, 422)
    until = _end_of(query["freshness"].split("to")[1]) if "freshness" in query else None
    size, offset = int(query["count"]), int(query["offset"])
    pages = world.find(query["q"], until=until)[offset * size : (offset + 1) * size]
    answer: dict[str, Any] = {"type": "search", "query": {"original": query["q"]}}
    if pages:
        answer["web"] = {"type": "search", "results": [_brave_result(world, page) for page in pages]}
    return json_response(answer)


def _brave_result(world: SampleWorld, page: SampleWebPage) -> dict[str, Any]:
    description = f"<strong>{page.text[:20]}</strong>{page.text[20:60]}"
    result: dict[str, Any] = {"title": page.title, "url": page.url, "description": description}
    result["extra_snippets"] = [page.text]
    if page.shown == "relative":
        result["age"] = world.age(page)
    elif page.published is not None:
        result["page_age"] = page.published.replace(tzinfo=None).isoformat()
        result["age"] = f"{page.published:%B} {page.published.day}, {page.published.year}"
    return result


def _exa(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    body = request.json()
    until = instant(body["endPublishedDate"]) if "endPublishedDate" in body else None
    dated = [page for page in world.find(body["query"], until=until) if until is None or page.published is not None]
    pinned = body["contents"].get("snapshotAsOf")
    results, statuses = [], []
    for page in dated[: body["numResults"]]:
        result: dict[str, Any] = {
            "id": page.url,
            "url": page.url,
            "title": page.title,
            "text": page.text[: body["contents"]["text"]["maxCharacters"]],
        }
        result["publishedDate"] = f"{page.published:%Y-%m-%dT%H:%M:%S}.000Z" if page.published else None
        status = {"id": page.url, "status": "success"}
        if pinned:
            stored = version_at(page.versions, instant(pinned))
            if stored is None:
                del result["text"]
                status |= {"status": "error", "tag": "CONTENT_NOT_CACHED"}
            else:
                result |= {"text": stored.text, "snapshotAt": stored.at.isoformat()}
        results.append(result)
        statuses.append(status)
    return json_response({"requestId": "r", "results": results, "statuses": statuses, "costDollars": {"total": 0.005}})


def _tavily(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    body = request.json()
    until = _end_of(body["end_date"]) if "end_date" in body else None
    pages = [page for page in world.find(body["query"]) if page.crawled is None or _not_after(page.crawled, until)]
    results = [
        {"title": page.title, "url": page.url, "content": page.text[:60], "score": 0.9, "raw_content": page.text}
        | ({"published_date": page.crawled.strftime("%a, %d %b %Y %H:%M:%S GMT")} if page.crawled else {})
        for page in pages[: body["max_results"]]
    ]
    return json_response({"query": body["query"], "results": results, "response_time": 0.1})


def _perplexity(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    body = request.json()
    bounds = [
        _american(body[name]) for name in ("search_before_date_filter", "last_updated_before_filter") if name in body
    ]
    until = min(bounds) - timedelta(microseconds=1) if bounds else None
    matches = world.find(body["query"], until=until)
    pages = [page for page in matches if page.updated is None or _not_after(page.updated, until)]
    results = [
        {"title": page.title, "url": page.url, "snippet": page.text}
        | ({"date": f"{page.published:%Y-%m-%d}"} if page.published and page.shown == "published" else {"date": None})
        | ({"last_updated": f"{page.updated:%Y-%m-%d}"} if page.updated else {})
        for page in pages[: body["max_results"]]
    ]
    return json_response({"id": "r", "results": results})


def _american(day: str) -> datetime:
    return datetime.strptime(f"{day}+0000", "%m/%d/%Y%z")


def _serper(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    body = request.json()
    ends = re.search(r"cd_max:(\d+)/(\d+)/(\d+)", body.get("tbs", ""))
    until = _end_of(f"{ends[3]}-{int(ends[1]):02d}-{int(ends[2]):02d}") if ends else None
    query = re.sub(r"before:\S+", "", body["q"])
    start = (body["page"] - 1) * body["num"]
    pages = world.find(query, until=until)[start : start + body["num"]]
    organic = [
        {"title": page.title, "link": page.url, "snippet": page.text[:80], "position": i} | _google_date(world, page)
        for i, page in enumerate(pages, start=1)
    ]
    return json_response({"searchParameters": body, "organic": organic, "credits": 1})


def _google_date(world: SampleWorld, page: SampleWebPage) -> dict[str, str]:
    if page.shown == "relative":
        return {"date": world.age(page)}
    if page.published is None:
        return {}
    return {"date": f"{page.published:%b} {page.published.day}, {page.published.year}"}


def _asknews(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    query = request.query
    end = query.get("end_timestamp")
    until = datetime.fromtimestamp(int(end), UTC) if end else None
    pages = [
        page for page in world.find(query["query"]) if page.crawled is not None and _not_after(page.crawled, until)
    ]
    articles = [
        {"article_url": page.url, "article_id": "0", "title": page.title, "eng_title": page.title, "summary": page.text,
         "pub_date": page.published.isoformat(), "source_id": "news", "language": "en", "as_string_key": "[1]"}
        for page in pages[: int(query["n_articles"])]
        if page.published is not None
    ]  # fmt: skip
    return json_response({"as_dicts": articles or None, "as_string": None, "offset": None})


def _gdelt(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    query = request.query
    words = query["query"].replace("sourcelang:english", "")
    if len(words.strip()) < 3:
        return html_response("Your query was too short or too long.\n")
    end = query.get("enddatetime")
    until = datetime.strptime(end, "%Y%m%d%H%M%S").replace(tzinfo=UTC) if end else None
    pages = [page for page in world.find(words) if page.crawled is not None and _not_after(page.crawled, until)]
    articles = [
        {"url": page.url, "title": page.title, "seendate": page.crawled.strftime("%Y%m%dT%H%M%SZ"),
         "domain": "news.example", "language": "English", "sourcecountry": "Norway"}
        for page in pages[: int(query["maxrecords"])]
        if page.crawled is not None
    ]  # fmt: skip
    return json_response({"articles": articles} if articles else {})


def _not_after(at: datetime, until: datetime | None) -> bool:
    return until is None or at <= until


def _end_of(day: str) -> datetime:
    return instant(day) + timedelta(days=1, microseconds=-1)


ROUTES: tuple[tuple[str, str, Engine, str], ...] = (
    ("GET", "/brave/web/search", _brave, "x-subscription-token"),
    ("POST", "/exa/search", _exa, "x-api-key"),
    ("POST", "/tavily/search", _tavily, "authorization"),
    ("POST", "/perplexity/search", _perplexity, "authorization"),
    ("POST", "/serper/search", _serper, "x-api-key"),
    ("GET", "/asknews/news/search", _asknews, "authorization"),
    ("GET", "/gdelt/doc/doc", _gdelt, ""),
)
"""Method, path, engine and the header that holds the key."""
ENGINES = tuple(path.split("/")[1] for _, path, _, _ in ROUTES)
