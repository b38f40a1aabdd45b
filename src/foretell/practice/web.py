"""The practice world's web site, its archive, Wikipedia, and the search engines over them."""

import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qsl

from foretell.practice.server import (
    Handler,
    PracticeServer,
    ServerRequest,
    ServerResponse,
    html_response,
    json_response,
)
from foretell.practice.world import SampleWebPage, SampleWorld, version_at
from foretell.questions.as_of import instant

_STAMP = "%Y%m%d%H%M%S"


def web_server(world: SampleWorld) -> PracticeServer:
    """The world's pages by their paths."""
    server = PracticeServer()
    for page in world.pages:
        server.route("GET", page.path, _serving(page))
    return server


def wayback_server(world: SampleWorld) -> PracticeServer:
    """Captures of the world's pages. A replay that there is not leads to the page's newest capture."""
    server = PracticeServer()
    server.route("GET", "/cdx/search/cdx", lambda request: _captures(world, request))
    server.route("GET", "/web/*", lambda request: _replayed(world, request))
    return server


def _captures(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    page = _by_url(world, request.query["url"])
    until = instant(_iso(request.query["to"])) if "to" in request.query else None
    rows = (
        [[one.at.strftime(_STAMP), page.url, "200"] for one in page.versions if until is None or one.at <= until]
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
    return next((one for one in world.pages if one.url == url), None)


def _serving(page: SampleWebPage) -> Handler:
    return lambda _: html_response(page.html())


def redirect(to: str) -> ServerResponse:
    """An answer that leads to another address."""
    return ServerResponse(status=302, headers={"Location": to, "Content-Type": "text/html"}, body=b"moved")


def _iso(stamp: str) -> str:
    return datetime.strptime(f"{stamp}+0000", f"{_STAMP}%z").isoformat()


def wikipedia_server(world: SampleWorld) -> PracticeServer:
    """Wikipedia's API at /w/api.php: revisions by date, and search over today's titles."""
    server = PracticeServer()
    server.route("GET", "/w/api.php", lambda request: _answer(world, request))
    return server


def _answer(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    query = request.query
    if "foretell" not in request.headers.get("user-agent", "") or "(" not in request.headers["user-agent"]:
        return json_response({"error": {"code": "ua", "info": "Please set a descriptive user agent"}})
    if query.get("list") == "search":
        return json_response({"query": {"search": _found(world, query["srsearch"])[: int(query["srlimit"])]}})
    if query.get("prop") == "revisions":
        return json_response({"query": {"pages": [_page(world, query)]}})
    return json_response({"error": {"code": "badvalue", "info": "Unrecognized value"}})


def _found(world: SampleWorld, query: str) -> list[dict[str, str]]:
    words = query.casefold().split()
    hits = [t for t, v in world.articles.items() if any(w in f"{t} {v[-1].text}".casefold() for w in words)]
    return [
        {"title": one, "snippet": f'now: <span class="searchmatch">{world.articles[one][-1].text[:40]}</span>'}
        for one in hits
    ]


def _page(world: SampleWorld, query: Any) -> dict[str, Any]:
    title = query["titles"].replace("_", " ")
    if title not in world.articles:
        return {"title": title, "missing": True}
    at = instant(query["rvstart"]) if "rvstart" in query else None
    versions = world.articles[title]
    found = version_at(versions, at)
    page: dict[str, Any] = {"pageid": 1, "title": title}
    if found is not None:
        revision: dict[str, Any] = {
            "revid": 1000 + versions.index(found),
            "timestamp": f"{found.at:%Y-%m-%dT%H:%M:%SZ}",
        }
        if "content" in query["rvprop"]:
            revision["slots"] = {"main": {"contentmodel": "wikitext", "content": found.text}}
        page["revisions"] = [revision]
    return page


# Search engines: the same pages in the format of each.

Engine = Callable[[SampleWorld, ServerRequest], ServerResponse]


def search_server(world: SampleWorld, key: str) -> PracticeServer:
    """All engines on one server, such as /brave, asked with one key, which also is the secret of AskNews's clients."""
    server = PracticeServer()
    for method, path, engine, header in ROUTES:
        server.route(method, path, _guarded(engine, world, header, key))
    server.route("POST", "/asknews/oauth2/token", lambda request: _token(request, key))
    return server


def _token(request: ServerRequest, key: str) -> ServerResponse:
    """The key as a token, for whoever shows it as the secret of a client."""
    shown = b64decode(request.headers.get("authorization", "").removeprefix("Basic ")).decode()
    asked = dict(parse_qsl(request.body.decode()))
    if shown.partition(":")[2] != key or asked.get("grant_type") != "client_credentials":
        return json_response({"error": "invalid_client"}, 401)
    return json_response({"access_token": key, "expires_in": 3600, "token_type": "bearer", "scope": asked.get("scope")})


def _guarded(engine: Engine, world: SampleWorld, header: str, key: str) -> Callable[[ServerRequest], ServerResponse]:
    def handle(request: ServerRequest) -> ServerResponse:
        if header and request.headers.get(header, "").removeprefix("Bearer ") != key:
            # Some real servers repeat what they were sent, and nobody may log it.
            return json_response({"detail": f"invalid key {request.headers.get(header, '')}"}, 401)
        return engine(world, request)

    return handle


def _brave(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    query = request.query
    if len(query["q"]) > 400 or int(query["count"]) > 20 or not 0 <= int(query["offset"]) <= 9:
        return json_response({"error": {"detail": "validation"}}, 422)
    until = _end_of(query["freshness"].split("to")[1]) if "freshness" in query else None
    size, page = int(query["count"]), int(query["offset"])
    found = world.find(query["q"], until=until)[page * size : (page + 1) * size]
    answer: dict[str, Any] = {"type": "search", "query": {"original": query["q"]}}
    if found:
        answer["web"] = {"type": "search", "results": [_brave_result(world, one) for one in found]}
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
    found = [one for one in world.find(body["query"], until=until) if until is None or one.published is not None]
    pinned = body["contents"].get("snapshotAsOf")
    results, statuses = [], []
    for page in found[: body["numResults"]]:
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
    found = [one for one in world.find(body["query"]) if one.crawled is None or _by(one.crawled, until)]
    results = [
        {"title": one.title, "url": one.url, "content": one.text[:60], "score": 0.9, "raw_content": one.text}
        | ({"published_date": one.crawled.strftime("%a, %d %b %Y %H:%M:%S GMT")} if one.crawled else {})
        for one in found[: body["max_results"]]
    ]
    return json_response({"query": body["query"], "results": results, "response_time": 0.1})


def _perplexity(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    body = request.json()
    bounds = [
        _american(body[name]) for name in ("search_before_date_filter", "last_updated_before_filter") if name in body
    ]
    until = min(bounds) - timedelta(microseconds=1) if bounds else None
    found = [one for one in world.find(body["query"], until=until) if one.updated is None or _by(one.updated, until)]
    results = [
        {"title": one.title, "url": one.url, "snippet": one.text}
        | ({"date": f"{one.published:%Y-%m-%d}"} if one.published and one.shown == "published" else {"date": None})
        | ({"last_updated": f"{one.updated:%Y-%m-%d}"} if one.updated else {})
        for one in found[: body["max_results"]]
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
    found = world.find(query, until=until)[start : start + body["num"]]
    organic = [
        {"title": one.title, "link": one.url, "snippet": one.text[:80], "position": i} | _google_date(world, one)
        for i, one in enumerate(found, start=1)
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
    found = [one for one in world.find(query["query"]) if one.crawled is not None and _by(one.crawled, until)]
    articles = [
        {"article_url": one.url, "article_id": "0", "title": one.title, "eng_title": one.title, "summary": one.text,
         "pub_date": one.published.isoformat(), "source_id": "news", "language": "en", "as_string_key": "[1]"}
        for one in found[: int(query["n_articles"])]
        if one.published is not None
    ]  # fmt: skip
    return json_response({"as_dicts": articles or None, "as_string": None, "offset": None})


def _gdelt(world: SampleWorld, request: ServerRequest) -> ServerResponse:
    query = request.query
    words = query["query"].replace("sourcelang:english", "")
    if len(words.strip()) < 3:
        return html_response("Your query was too short or too long.\n")
    end = query.get("enddatetime")
    until = datetime.strptime(end, "%Y%m%d%H%M%S").replace(tzinfo=UTC) if end else None
    found = [one for one in world.find(words) if one.crawled is not None and _by(one.crawled, until)]
    articles = [
        {"url": one.url, "title": one.title, "seendate": one.crawled.strftime("%Y%m%dT%H%M%SZ"),
         "domain": "news.example", "language": "English", "sourcecountry": "Norway"}
        for one in found[: int(query["maxrecords"])]
        if one.crawled is not None
    ]  # fmt: skip
    return json_response({"articles": articles} if articles else {})


def _by(at: datetime, until: datetime | None) -> bool:
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
